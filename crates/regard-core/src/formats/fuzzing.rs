//! Runs the readers of model files on arbitrary bytes, for the targets in `fuzz/`: a panic is a
//! bug.

use super::generation::GenerationConfig;
use super::json::Keys;
use super::tensor::Tensor;
use super::weights::Tensors;
use super::{Languages, families, marian, safetensors, torch};
use crate::model::Transformer;
use crate::text::{Tokenizer, TokenizerPair};
use regard_random::Rng;
use std::fs;
use std::path::Path;

/// A tokenizer with some languages.
const WORDS: &str = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": null, "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "unk_token": "<unk>",
    "vocab": {"</s>": 0, "<unk>": 1, "<pad>": 2, "__de__": 3, "__en__": 4, "__fr__": 5, "__pt__": 6}}}"#;

/// Checks that every tensor lies in the file, has no more elements than it, and can be read or is
/// rejected.
fn check(file: &[u8], tensors: &Tensors) {
    for entry in tensors.values() {
        let bytes = &file[entry.range.clone()];
        let numbers: usize = entry.shape.iter().product();
        assert!(numbers * entry.dtype.bytes() <= file.len());
        let tensor =
            Tensor { dtype: entry.dtype, shape: &entry.shape, strides: entry.strides.as_deref(), bytes };
        let mut to = vec![0.0; numbers];
        let _ = tensor.read(&mut to);
    }
}

/// A model card.
pub fn model_card(text: &str) {
    if let Some(name) = super::licence::of_card(text) {
        let _ = super::Licence::new(&name).to_string();
    }
}

/// A safetensors file.
pub fn safetensors(file: &[u8]) {
    if let Ok(tensors) = safetensors::read(file) {
        check(file, &tensors);
    }
}

/// A tensor of a file: name, type, shape and bytes.
pub type ListedTensor<'a> = (String, &'static str, Vec<usize>, &'a [u8]);

/// The tensors of a safetensors file, sorted by name, for comparison with other readers of the
/// format.
pub fn list_safetensors(file: &[u8]) -> Result<Vec<ListedTensor<'_>>, String> {
    let tensors = safetensors::read(file)?;
    let mut list: Vec<ListedTensor<'_>> = tensors
        .into_iter()
        .map(|(name, entry)| (name, entry.dtype.code(), entry.shape, &file[entry.range]))
        .collect();
    list.sort();
    Ok(list)
}

/// A `pytorch_model.bin`.
pub fn pytorch(file: &[u8]) {
    if let Ok(tensors) = torch::read(file) {
        check(file, &tensors);
    }
}

/// A `.bin` or `.npz` file of Marian.
pub fn marian_model(file: &[u8]) {
    super::marian_nmt::fuzzing::model(file);
}

/// A `lex*.bin` file.
pub fn marian_shortlist(file: &[u8]) {
    super::marian_nmt::fuzzing::shortlist(file);
}

/// The options or the vocabulary of a Marian model.
pub fn marian_yaml(file: &[u8]) {
    super::marian_nmt::fuzzing::yaml(file);
}

/// A `model.bin` of CTranslate2.
pub fn ctranslate2(file: &[u8]) {
    super::ctranslate2::fuzzing::model(file);
}

/// A package of Argos Translate.
pub fn argos(file: &[u8]) {
    super::ctranslate2::fuzzing::package(file);
}

/// The settings files of a folder: `config.json`, `generation_config.json`,
/// `tokenizer_config.json`.
pub fn config(text: &[u8]) {
    let Ok(keys) = Keys::parse(Path::new("config.json"), text) else { return };
    let _ = (keys.all::<GenerationConfig>(), keys.all::<Languages>(), marian::read_eos(&keys));
    if let Ok(tokenizer) = Tokenizer::from_json(WORDS.into(), Path::new("tokenizer.json")) {
        let pair = families::own_languages(TokenizerPair::joint(tokenizer), &keys);
        let _ = (pair.map(families::scan_languages), families::chosen(&keys));
    }
    let Ok(config) = marian::read_config(&keys) else { return };
    assert!(!marian::vocabulary_places(&config).is_empty());
    let _ = marian::why_not(&config);
    // Larger models are compared with the weights before anything is allocated.
    if config.encoder_layers.max(config.decoder_layers) <= 64
        && let Ok(model) = Transformer::new(config)
    {
        assert!(!marian::places(&model).is_empty());
    }
}

/// A `tokenizer.json`; encodes various texts and decodes various ids with it.
pub fn tokenizer(file: &[u8]) {
    const TEXT: &str =
        " ab  abab <unk>▁\t\u{200b}山 </s>\u{0}\u{10ffff}👩\u{200d}👧 12 ﬁ e\u{301} >>de<< a. ";
    let Ok(json) = std::str::from_utf8(file) else { return };
    let Ok(tokenizer) = Tokenizer::from_json(json.to_owned(), Path::new("tokenizer.json")) else { return };
    // Include its own text, which contains its own pieces.
    let own: String = json.chars().take(200).collect();
    for text in [TEXT, "", &own] {
        let Ok(ids) = tokenizer.encode(text) else { continue };
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.size()));
        assert_eq!(tokenizer.encode(text).ok(), Some(ids.clone()), "one text, one segmentation");
        tokenizer.decode(&ids);
        let _ = tokenizer.resample(&ids, 0.5, 1);
    }
    tokenizer.decode(&[0, 1, 2, 7, u32::MAX]);
}

/// Calls `read` with the seeds in `fuzz/corpus/NAME` and then with randomly damaged copies of them:
/// a short version of what `fuzz/` does, for tests. REGARD_FUZZ sets the number of copies.
///
/// # Panics
/// If there are no seeds, or if `read` panics.
pub fn damage_seeds(name: &str, read: impl Fn(&[u8])) {
    let seeds = seeds(name);
    seeds.iter().for_each(|seed| read(seed));
    let mut random = Mutator(Rng::new(7));
    for _ in 0..rounds() {
        read(&random.damage(&seeds));
    }
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder of seeds").filter_map(|file| Some(file.ok()?.path())).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().filter_map(|file| fs::read(file).ok()).collect();
    assert!(!seeds.is_empty(), "no seeds for {name}");
    seeds
}

fn rounds() -> usize {
    std::env::var("REGARD_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

/// Damages files, deterministically.
struct Mutator(Rng);

impl Mutator {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    fn byte(&mut self) -> u8 {
        const ODD: [u8; 16] = *b"\x00\x01\x7f\x80\xff(.{}[]\"9-:,";
        if self.below(2) == 0 { ODD[self.below(16)] } else { self.below(256) as u8 }
    }

    /// Changes, removes, inserts or repeats a few bytes, or copies them from another seed.
    fn damage(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut file = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let at = self.below(file.len() + 1);
            let end = (at + self.below(24)).min(file.len());
            match self.below(8) {
                0 | 1 if at < file.len() => file[at] = self.byte(),
                2 => drop(file.drain(at..end)),
                3 => file.insert(at, self.byte()),
                4 => file.truncate(at),
                5 => {
                    let again = file[at..end].to_vec();
                    let to = self.below(file.len() + 1);
                    file.splice(to..to, again);
                }
                6 => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len());
                    let part = other[from..(from + self.below(64)).min(other.len())].to_vec();
                    file.splice(at..end, part);
                }
                _ => {
                    let number = [0, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 62, i64::MAX as u64][self.below(7)];
                    let bytes = number.to_le_bytes();
                    let width = [2usize, 4, 8][self.below(3)].min(file.len() - at);
                    file[at..at + width].copy_from_slice(&bytes[..width]);
                }
            }
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::{Mutator, damage_seeds, rounds, seeds};
    use serde_json::{Value, json};

    /// Calls `read` with the seeds after replacing some of their values: the files stay valid JSON.
    fn damage_json(of: &str, read: fn(&[u8])) {
        let seeds: Vec<Value> = seeds(of).iter().map(|seed| serde_json::from_slice(seed).unwrap()).collect();
        let mut random = Mutator(regard_random::Rng::new(8));
        for _ in 0..rounds() {
            let mut file = seeds[random.below(seeds.len())].clone();
            for _ in 0..=random.below(3) {
                let value = random.value(&seeds);
                *random.place(&mut file) = value;
            }
            read(file.to_string().as_bytes());
        }
    }

    impl Mutator {
        /// A random value inside another, at any depth.
        fn place<'a>(&mut self, value: &'a mut Value) -> &'a mut Value {
            let inside = match value {
                Value::Array(items) => items.len(),
                Value::Object(fields) => fields.len(),
                _ => 0,
            };
            // Replace the whole value one time in eight.
            if inside == 0 || self.below(8) == 0 {
                return value;
            }
            let at = self.below(inside);
            match value {
                Value::Array(items) => self.place(&mut items[at]),
                Value::Object(fields) => match fields.values_mut().nth(at) {
                    Some(field) => self.place(field),
                    None => unreachable!("there are as many fields"),
                },
                _ => unreachable!("only arrays and objects have something inside"),
            }
        }

        /// An unusual value, or one from elsewhere in the seeds.
        fn value(&mut self, seeds: &[Value]) -> Value {
            let odd = [
                json!(null),
                json!(true),
                json!(0),
                json!(-1),
                json!(u64::MAX),
                json!(1u64 << 32),
                json!(0.5),
                json!(-1e308),
                json!(""),
                json!("▁"),
                json!("(a*)*"),
                json!("<unk>"),
                json!([]),
                json!({}),
                json!(["a", "b"]),
            ];
            if self.below(3) > 0 {
                return odd[self.below(odd.len())].clone();
            }
            let mut other = seeds[self.below(seeds.len())].clone();
            self.place(&mut other).clone()
        }
    }

    #[test]
    fn settings_of_any_kind() {
        damage_seeds("config", super::config);
        damage_json("config", super::config);
    }

    #[test]
    fn safetensors_of_any_kind() {
        damage_seeds("safetensors", super::safetensors);
    }

    #[test]
    fn pytorch_files_of_any_kind() {
        damage_seeds("pickle", super::pytorch);
    }

    #[test]
    fn marian_files_of_any_kind() {
        damage_seeds("marian_bin", super::marian_model);
        damage_seeds("marian_npz", super::marian_model);
        damage_seeds("marian_lex", super::marian_shortlist);
        damage_seeds("marian_yml", super::marian_yaml);
    }

    #[test]
    fn ctranslate2_files_of_any_kind() {
        damage_seeds("ctranslate2", super::ctranslate2);
        damage_seeds("argos", super::argos);
    }

    #[test]
    fn tokenizers_of_any_kind() {
        damage_seeds("tokenizer", super::tokenizer);
        damage_json("tokenizer", super::tokenizer);
    }
}
