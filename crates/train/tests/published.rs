//! Models of `transformers` on the tape: the same encoder output, logits and losses. Goldens by
//! tools/goldens/marian.py.

use regard_core::Isa;
use regard_core::batch::{Batch, Packed};
use regard_core::formats::Model;
use regard_train::autograd::Tape;
use regard_train::{Taped, token_losses};
use serde::Deserialize;
use std::fs;
use std::path::Path;

#[derive(Deserialize)]
struct Golden {
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    source: Vec<u32>,
    target: Vec<u32>,
    encoded: Vec<f32>,
    logits: Vec<f32>,
}

/// Encoder output and logits of one sentence.
fn run(model: &Model, source: &[u32], target: &[u32]) -> (Vec<f32>, Vec<f32>) {
    let (source, target) = (Packed::new([source]), Packed::new([target]));
    let mut tape = Tape::new(Isa::best(), 1);
    let transformer = &model.transformer;
    let mut e = Taped::new(&mut tape, transformer, &model.weights, None, (&source, &target), None).unwrap();
    let memory = transformer.encode(&mut e);
    let encoded = e.value(memory).to_vec();
    let x = transformer.decode(&mut e, memory);
    let config = transformer.config();
    let (d, words) = (config.d_model, config.target_vocabulary);
    let table = &model.weights[transformer.output().range()];
    let zeros = vec![0.0; words];
    let bias = transformer.output_bias().unwrap_or(&zeros);
    let mut logits = Vec::new();
    for row in e.value(x).chunks(d) {
        for (word, bias) in table.chunks(d).zip(bias) {
            logits.push(bias + row.iter().zip(word).map(|(a, b)| a * b).sum::<f32>());
        }
    }
    (encoded, logits)
}

fn close(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= 1e-4 * (1.0 + want.abs()), "{what} {i}: {got} is not {want}");
    }
}

/// The losses of the words of a sentence, bias of the logits included. Padding, the last word,
/// takes no part.
fn losses(sentence: &Sentence, words: usize) -> Vec<f32> {
    let rows = sentence.target[1..].iter().zip(sentence.logits.chunks(words));
    rows.map(|(&id, row)| row[..words - 1].iter().map(|x| x.exp()).sum::<f32>().ln() - row[id as usize])
        .collect()
}

#[test]
fn published_models_compute_on_the_tape_what_transformers_does() {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../regard-core/tests/goldens/marian");
    let mut cases = 0;
    for folder in fs::read_dir(goldens).unwrap().map(|folder| folder.unwrap().path()) {
        let golden = fs::read_to_string(folder.join("golden.json")).unwrap();
        let golden: Golden = serde_json::from_str(&golden).unwrap();
        let model = Model::load(&folder).unwrap();
        let Model { transformer, weights, .. } = &model;
        let config = transformer.config();
        for (i, sentence) in golden.sentences.iter().enumerate() {
            let name = format!("{}, sentence {i}", folder.display());
            let (encoded, logits) = run(&model, &sentence.source, &sentence.target);
            close(&encoded, &sentence.encoded, &format!("{name}, encoder"));
            close(&logits, &sentence.logits, &format!("{name}, logits"));
            let batch = Batch::new([(&sentence.source[..], &sentence.target[1..])], config.start()).unwrap();
            let got = token_losses(&mut Tape::new(Isa::best(), 1), transformer, weights, &batch).unwrap();
            close(&got, &losses(sentence, config.target_vocabulary), &format!("{name}, loss"));
        }
        cases += 1;
    }
    assert_eq!(cases, 7);
}
