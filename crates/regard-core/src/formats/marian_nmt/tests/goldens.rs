//! Tests on the models of `tools/goldens/marian_nmt.py`, with Marian's own translations, and on
//! published models.

use super::*;
use crate::decode::{SearchOptions, encoder_output, score_pairs, search_ensemble};
use crate::formats::Model;
use crate::model::Tying;
use crate::translator::Translator;
use crate::{DType, Isa};
use regard_random::mix;
use serde::Deserialize;
use std::path::PathBuf;

/// A case of `tools/goldens/marian_nmt.py`.
#[derive(Deserialize)]
struct Golden {
    name: String,
    options: String,
    /// Name, shape, scale and center of each item.
    items: Vec<(String, Vec<usize>, f32, f32)>,
    end_bias: f32,
    sentences: Vec<GoldenSentence>,
}

#[derive(Deserialize)]
struct GoldenSentence {
    source: Vec<u32>,
    greedy: Vec<u32>,
    best: Vec<(Vec<u32>, f32)>,
    encoder: Vec<f32>,
    logits: Vec<f32>,
}

fn goldens() -> Vec<Golden> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/marian_nmt/cases.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The values of an item, by the formula of the script.
fn golden_weights(name: &str, shape: &[usize], scale: f32, center: f32) -> Vec<f32> {
    let seed = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let bits = |i: usize| mix(u64::wrapping_add(seed, i as u64)) >> 40;
    let unit = |i: usize| bits(i) as f32 * 2f32.powi(-23) - 1.0;
    (0..shape.iter().product()).map(|i| center + scale * unit(i)).collect()
}

/// The items of a case, ready to write.
fn golden_items(case: &Golden) -> Vec<NewItem> {
    let item = |(name, shape, scale, center): &(String, Vec<usize>, f32, f32)| {
        let mut values = golden_weights(name, shape, *scale, *center);
        if name == "decoder_ff_logit_out_b" {
            values[0] = case.end_bias;
        }
        NewItem::floats(name, shape, values)
    };
    let options = NewItem { name: OPTIONS.into(), data: NewData::Text(case.options.clone()) };
    case.items.iter().map(item).chain([options]).collect()
}

/// The names and shapes of all items, derived from the options.
fn documented_items(options: &MarianOptions) -> Vec<(String, Vec<usize>)> {
    let parameters = options.parameters().into_iter();
    let mut items: Vec<_> = parameters.map(|(name, shape)| (name, shape.to_vec())).collect();
    items.sort();
    items
}

#[test]
fn models_that_marian_translates_with_have_the_documented_items() {
    let cases = goldens();
    assert!(cases.len() >= 8);
    for case in &cases {
        for bytes in [npz(&golden_items(case)), bin(&golden_items(case))] {
            let file = open(&bytes).unwrap();
            let options = file.options().unwrap_or_else(|e| panic!("{}: {e}", case.name));
            let mut found: Vec<_> = file
                .items()
                .filter(|i| i.name != OPTIONS)
                .map(|i| (i.name.to_owned(), i.shape.to_vec()))
                .collect();
            found.sort();
            assert_eq!(found, documented_items(&options), "{}", case.name);
            for item in golden_items(case) {
                if let NewData::F32(_, values) = item.data {
                    assert_eq!(file.need(&item.name).unwrap().floats().unwrap(), values, "{}", item.name);
                }
            }
            for sentence in &case.sentences {
                assert_eq!(sentence.encoder.len(), sentence.source.len() * options.d_model);
                assert_eq!(sentence.logits.len(), options.target_vocabulary);
                assert!(sentence.greedy.iter().all(|&id| (id as usize) < options.target_vocabulary));
                assert!(sentence.best.is_sorted_by(|a, b| a.1 >= b.1));
            }
        }
    }
}

/// A folder with the model of a case and its vocabularies in YAML.
fn golden_folder(case: &Golden) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("model.npz"), npz(&golden_items(case))).unwrap();
    let options = MarianOptions::parse(&case.options).unwrap();
    let sides = [("source.yml", options.source_vocabulary), ("target.yml", options.target_vocabulary)];
    for (name, words) in sides {
        let words: String = (2..words).map(|id| format!("w{id}: {id}\n")).collect();
        fs::write(path(name), format!("</s>: 0\n<unk>: 1\n{words}")).unwrap();
    }
    let vocabularies = match options.tying {
        Tying::ThreeWay | Tying::Embeddings => "[source.yml, source.yml]",
        _ => "[source.yml, target.yml]",
    };
    fs::write(path("config.yml"), format!("models: [model.npz]\nvocabs: {vocabularies}\n")).unwrap();
    folder
}

/// Compares greedy and beam search, encoder output and first logits. When Marian decodes with
/// self-attention that has a norm before its keys, it omits that norm (see the module): such a
/// model is not compared, because ours decodes in the same way as Marian trains.
#[test]
fn translations_are_marians() {
    for case in goldens().iter().filter(|case| case.name != "attention-pre-norm") {
        let folder = golden_folder(case);
        let (model, engine) = Model::load_engine(folder.path(), None, Isa::best()).unwrap();
        let (sources, want): (Vec<Vec<u32>>, Vec<&GoldenSentence>) =
            case.sentences.iter().map(|s| (s.source.clone(), s)).unzip();
        let options = Translator::new(vec![Model::load(folder.path()).unwrap()], DType::F32, Isa::best(), 1)
            .unwrap()
            .options();
        let greedy = SearchOptions { beam: 1, ..options.clone() };
        let best = SearchOptions { beam: 6, nbest: 6, ..options };
        let search = |options| search_ensemble(&[&engine], &sources, options, 1).unwrap();
        for ((greedy, best), want) in search(&greedy).into_iter().zip(search(&best)).zip(&want) {
            assert_eq!(greedy[0].ids, want.greedy, "{}", case.name);
            let ids: Vec<_> = best.iter().map(|h| &h.ids).collect();
            assert_eq!(ids, want.best.iter().map(|(ids, _)| ids).collect::<Vec<_>>(), "{}", case.name);
            for (found, (_, score)) in best.iter().zip(&want.best) {
                assert!((found.score - score).abs() < 1e-3, "{}: {} for {score}", case.name, found.score);
            }
            let encoded = encoder_output(&engine, &want.source).unwrap();
            assert_near(&encoded, &want.encoder, 1e-4, &case.name);
            let words = 0..want.logits.len() as u32;
            let pairs: Vec<_> = words.map(|word| (want.source.clone(), vec![word])).collect();
            let scores: Vec<f32> = score_pairs(&[&engine], &pairs, 1).unwrap().concat();
            let sum: f32 = want.logits.iter().map(|x| x.exp()).sum();
            let logits: Vec<f32> = scores.iter().map(|score| score + sum.ln()).collect();
            assert_near(&logits, &want.logits, 1e-3, &case.name);
        }
        assert_eq!(model.tokenizers.source().encode("w3 w2 nothing").unwrap(), [3, 2, 1, 0]);
    }
}

#[track_caller]
fn assert_near(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= tolerance, "{what}: number {i} is {got}, not {want}");
    }
}

/// An item that was read, ready to write.
fn copy(item: Item<'_>) -> NewItem {
    let data = match item.dtype {
        DType::U8 => NewData::Text(item.text().unwrap().to_owned()),
        DType::Int8 => NewData::Int8(item.int8().unwrap()),
        _ => NewData::F32(item.shape.to_vec(), item.floats().unwrap()),
    };
    NewItem { name: item.name.to_owned(), data }
}

/// The folders that `firefox_models.sh` creates, if REGARD_FIREFOX names their location.
#[test]
fn published_models_are_read() {
    let Some(folder) = std::env::var_os("REGARD_FIREFOX").map(PathBuf::from) else {
        eprintln!("skipped: REGARD_FIREFOX does not name a folder of models");
        return;
    };
    for (pair, source, target) in [("enpt", "en", "pt"), ("pten", "pt", "en")] {
        let found = MarianFolder::find(&folder.join(pair)).unwrap().expect("a model");
        assert_eq!(
            (found.languages.source.as_deref(), found.languages.target.as_deref()),
            (Some(source), Some(target))
        );
        let file = ItemFile::open(&found.model).unwrap();
        let options = file.options().unwrap();
        let mut names: Vec<_> = file
            .items()
            .filter(|item| item.name != OPTIONS && !item.name.ends_with("_QuantMultA"))
            .map(|item| (item.name.to_owned(), item.shape.to_vec()))
            .collect();
        names.sort();
        assert_eq!(names, documented_items(&options));
        for item in file.items().filter(|item| item.dtype == DType::Int8) {
            assert!(
                item.int8().unwrap().values.iter().any(|value| value.unsigned_abs() == 127),
                "{}",
                item.name
            );
            assert_eq!(item.floats().unwrap().len(), item.shape.iter().product::<usize>());
            if !item.name.ends_with("_QuantMultA") {
                assert!(file.input_multiplier(item.name).unwrap().is_some(), "{}", item.name);
            }
        }
        let written = open(&bin(&file.items().map(copy).collect::<Vec<_>>())).unwrap();
        assert_eq!(written.bytes(), file.bytes());
        for (old, new) in file.items().zip(written.items()) {
            assert_eq!(
                (old.name, old.shape, old.dtype, old.offset),
                (new.name, new.shape, new.dtype, new.offset)
            );
            assert_eq!(copy(old), copy(new));
        }
        let bytes = fs::read(found.shortlist.expect("a shortlist")).unwrap();
        let list = LexicalShortlist::read(&bytes).unwrap();
        assert_eq!((list.source_words(), list.first()), (options.source_vocabulary, 50));
        assert!(list.largest_id() < Some(options.target_vocabulary as u32));
        let mut written = Vec::new();
        list.write(&mut written).unwrap();
        assert!(written == bytes, "the writer's file is the same");
    }
}
