//! Our search against `transformers`' generate: the same ids, the same scores (goldens by
//! tools/goldens/generate.py).

use crate::formats::{joint, ours};
use regard_core::DType;
use regard_core::Isa;
use regard_core::decode::{self, Hypothesis, SearchOptions};
use regard_core::formats::{GenerationConfig, Model};
use regard_core::model::{Direction, EncoderKind, ModelConfig};
use regard_core::translator::Translator;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Ids, whether they ended, and the score, which greedy search has none of.
type Theirs = (Vec<u32>, bool, Option<f32>);

#[derive(Deserialize)]
struct Case {
    model: String,
    settings: HashMap<String, Value>,
    /// Sentences and their hypotheses.
    results: Vec<(usize, Vec<Theirs>)>,
    /// What the sentences of this and the next cases are.
    sources: Option<Vec<Vec<u32>>>,
}

fn goldens(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(folder)
}

/// A golden model, with the tokenizer of another; the search goes from ids to ids.
fn load(name: &str) -> Model {
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(goldens("generate").join(name).join(file), folder.path().join(file)).unwrap();
    }
    let tokenizer = "tokenizer.json";
    fs::copy(goldens("marian/swish-shared").join(tokenizer), folder.path().join(tokenizer)).unwrap();
    Model::load(folder.path()).unwrap()
}

/// The search options that a generation_config.json of these settings means.
fn options(model: &Model, settings: &HashMap<String, Value>) -> SearchOptions {
    let mut file = json!({
        "num_beams": 4, "max_length": 12, "forced_eos_token_id": 0, "bad_words_ids": [[39]], "renormalize_logits": true,
    });
    for (key, value) in settings {
        file[key] = value.clone();
    }
    let generation: GenerationConfig = serde_json::from_value(file).unwrap();
    let generation = generation.or(GenerationConfig::implied());
    let model = Model { generation, ..model.clone() };
    let options = Translator::new(vec![model], DType::F32, Isa::best(), 1).unwrap().options();
    let nbest = settings.get("num_return_sequences").map_or(1, |n| n.as_u64().unwrap() as usize);
    SearchOptions { extra_length: 100, nbest, ..options }
}

fn search(model: &Model, sources: &[Vec<u32>], options: &SearchOptions) -> Vec<Vec<Hypothesis>> {
    decode::search(&model.transformer, &model.weights, sources, options, Isa::best(), 2).unwrap()
}

#[test]
fn the_search_finds_what_transformers_finds() {
    let cases = fs::read_to_string(goldens("generate/cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&cases).unwrap();
    let mut sources = Vec::new();
    let mut models: HashMap<String, Model> = HashMap::new();
    let (mut compared, mut differ) = (0, Vec::new());
    for case in cases {
        sources = case.sources.unwrap_or(sources);
        let model = models.entry(case.model.clone()).or_insert_with(|| load(&case.model));
        let options = options(model, &case.settings);
        let found = search(model, &sources, &options);
        for (number, want) in case.results {
            let got = &found[number];
            let same = got.len() == want.len()
                && got.iter().zip(&want).all(|(got, (ids, ended, score))| {
                    got.ids == *ids
                        && got.ended == *ended
                        && score.is_none_or(|score| (got.score - score).abs() <= 1e-4 * (1.0 + score.abs()))
                });
            compared += 1;
            if !same {
                let got: Vec<_> = got.iter().map(|h| (&h.ids, h.ended, h.score)).collect();
                differ.push(format!(
                    "{} {:?} {number}:\n  ours   {got:?}\n  theirs {want:?}",
                    case.model, case.settings
                ));
            }
        }
    }
    assert!(compared > 500, "{compared}");
    assert!(differ.is_empty(), "{} of {compared} differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn what_a_file_says_is_what_is_searched_with() {
    let model = load("swish-shared");
    let with = |settings: Value| options(&model, &serde_json::from_value(settings).unwrap());
    let plain = with(json!({}));
    assert_eq!((plain.beam, plain.max_length, plain.forced_end), (4, Some(11), true));
    assert_eq!((plain.length_penalty, plain.renormalize, plain.min_length), (1.0, true, 0));
    assert_eq!((plain.banned, plain.banned_sequences), (vec![], vec![]));
    assert!(!with(json!({"forced_eos_token_id": null})).forced_end);
    assert!(!with(json!({"renormalize_logits": null})).renormalize);
    assert_eq!(with(json!({"max_new_tokens": 5})).max_length, Some(5));
    assert_eq!(with(json!({"min_length": 5})).min_length, 4);
    assert_eq!(with(json!({"min_length": 5, "min_new_tokens": 6})).min_length, 6);
    assert_eq!(with(json!({"forced_bos_token_id": 7})).forced_first, Some(7));
    let banned = with(json!({"bad_words_ids": [[39], [0], [5], [6, 7], []]}));
    assert_eq!((banned.banned, banned.banned_sequences), (vec![5], vec![vec![6, 7]]));
}

/// The encoder takes a batch in parts of some hundred tokens; a sentence that is longer is a part
/// of its own.
#[test]
fn sentences_of_a_large_batch_are_translated_as_alone() {
    type Change = fn(&mut ModelConfig);
    let kinds: [Change; 3] = [
        |_| (),
        |c| c.encoder = EncoderKind::Recurrent { direction: Direction::Both },
        |c| c.encoder = EncoderKind::Convolutional { kernel_width: 3, dilated: false },
    ];
    for change in kinds {
        let model = ours(
            |config| {
                change(config);
                (config.max_positions, config.decoder_layers) = (512, 2);
            },
            joint(),
        );
        let search = |sources: &[Vec<u32>]| {
            let options = SearchOptions { beam: 2, max_length: Some(6), ..SearchOptions::default() };
            decode::search(&model.transformer, &model.weights, sources, &options, Isa::best(), 1).unwrap()
        };
        let (pad, eos) = (model.tokenizers.target().pad(), model.tokenizers.source().eos());
        let lengths = [100, 90, 300, 80, 260, 1, 255, 2];
        let sentence = |(i, &length): (usize, &usize)| {
            let ids = (0..length as u32 - 1).map(|t| (i as u32 + 7 * t) % (pad - 5) + 4);
            ids.filter(|&id| id != eos).chain([eos]).collect()
        };
        let sources: Vec<Vec<u32>> = lengths.iter().enumerate().map(sentence).collect();
        for (source, together) in sources.iter().zip(search(&sources)) {
            assert_eq!(search(std::slice::from_ref(source)), [together], "{} tokens", source.len());
        }
    }
}
