//! Whole models against PyTorch: logits, loss, every gradient, ten steps of Adam. Goldens by
//! tools/goldens/transformer.py.

use regard_core::Isa;
use regard_core::batch::Batch;
use regard_core::model::{Activation, ModelConfig, NormPlace, Positions, Transformer, Tying};
use regard_train::Taped;
use regard_train::autograd::Tape;
use regard_train::{AdamSettings, StepSettings, Trainer};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    words: usize,
    d_model: usize,
    heads: usize,
    d_ff: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    positions: usize,
    label_smoothing: f32,
    rate: f32,
    clip: f32,
    source: Vec<Vec<u32>>,
    target: Vec<Vec<u32>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    pre_norm: bool,
    tied: bool,
    activation: String,
    positions: String,
    weights: BTreeMap<String, Vec<f32>>,
    logits: Vec<f32>,
    gradients: BTreeMap<String, Vec<f32>>,
    gradient_norm: f64,
    losses: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("goldens/transformer.json")).unwrap()
}

fn model(golden: &Golden, case: &Case) -> Transformer {
    Transformer::new(ModelConfig {
        source_vocabulary: golden.words,
        target_vocabulary: golden.words,
        d_model: golden.d_model,
        heads: golden.heads,
        d_ff: golden.d_ff,
        encoder_layers: golden.encoder_layers,
        decoder_layers: golden.decoder_layers,
        norm: if case.pre_norm { NormPlace::Pre } else { NormPlace::Post },
        activation: if case.activation == "gelu" { Activation::Gelu } else { Activation::Relu },
        dropout: 0.0,
        tying: if case.tied { Tying::ThreeWay } else { Tying::None },
        positions: if case.positions == "learned" { Positions::Learned } else { Positions::Sinusoidal },
        max_positions: golden.positions,
        ..ModelConfig::default()
    })
    .unwrap()
}

fn weights(model: &Transformer, case: &Case) -> Vec<f32> {
    let names: Vec<&str> = model.parameters().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), case.weights.len(), "{}: {names:?} against {:?}", case.name, case.weights.keys());
    model.parameters().iter().flat_map(|p| case.weights[&p.name].iter().copied()).collect()
}

fn batch(golden: &Golden) -> Batch {
    let pairs = golden.source.iter().zip(&golden.target).map(|(s, t)| (&s[..], &t[..]));
    Batch::new(pairs, golden.words as u32 - 1).unwrap()
}

#[test]
fn logits_are_pytorchs() {
    let golden = golden();
    for isa in Isa::available() {
        for case in &golden.cases {
            let model = model(&golden, case);
            let weights = weights(&model, case);
            let batch = batch(&golden);
            let mut tape = Tape::new(isa, 1);
            let sides = (&batch.source, &batch.input);
            let mut e = Taped::new(&mut tape, &model, &weights, None, sides, None).unwrap();
            let memory = model.encode(&mut e);
            let x = model.decode(&mut e, memory);
            let table = &weights[model.output().range()];
            let words = golden.words - 1;
            let d = golden.d_model;
            let rows = e.value(x).chunks(d).zip(case.logits.chunks(words)).enumerate();
            for (r, (x, want)) in rows {
                for (w, want) in want.iter().enumerate() {
                    let got: f32 = x.iter().zip(&table[w * d..]).map(|(a, b)| a * b).sum();
                    assert!(
                        (got - want).abs() <= 1e-4,
                        "{} {isa}: row {r}, word {w}: {got}, not {want}",
                        case.name
                    );
                }
            }
        }
    }
}

#[test]
fn gradients_and_ten_steps_are_pytorchs() {
    let golden = golden();
    for isa in Isa::available() {
        for threads in [1, 2] {
            for case in &golden.cases {
                let model = model(&golden, case);
                let weights = weights(&model, case);
                let settings = StepSettings {
                    label_smoothing: golden.label_smoothing,
                    adam: AdamSettings { clip: Some(golden.clip), ..AdamSettings::default() },
                    ..StepSettings::default()
                };
                let mut trainer = Trainer::new(model, weights, settings, isa, threads, 1).unwrap();
                let batch = batch(&golden);
                for (step, want) in case.losses.iter().enumerate() {
                    let report = trainer.step(std::slice::from_ref(&batch), golden.rate).unwrap();
                    let what = format!("{} {isa} on {threads} threads, step {step}", case.name);
                    assert!(
                        (report.loss - want).abs() <= 1e-4 * want,
                        "{what}: loss {} is not {want}",
                        report.loss
                    );
                    if step == 0 {
                        assert!(
                            (report.gradient_norm - case.gradient_norm).abs() <= 1e-4 * case.gradient_norm,
                            "{what}"
                        );
                        same_gradients(&trainer, case, &what);
                    }
                }
            }
        }
    }
}

fn same_gradients(trainer: &Trainer, case: &Case, what: &str) {
    for parameter in trainer.model().parameters() {
        let got = &trainer.gradient()[parameter.param.range()];
        let want = &case.gradients[&parameter.name];
        assert_eq!(got.len(), want.len());
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            let name = &parameter.name;
            assert!((got - want).abs() <= 2e-5, "{what}: gradient {i} of {name} is {got}, not {want}");
        }
    }
}
