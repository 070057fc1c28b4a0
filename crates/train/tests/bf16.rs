//! Training steps with matrix multiplications in bf16: by the instruction where the CPU has it, and
//! in software everywhere.

use crate::invariants::{batch, trainer, variants};
use crate::small_models::small;
use regard_core::batch::Batch;
use regard_core::model::ModelConfig;
use regard_core::{Gemm, Isa};
use regard_train::autograd::Tape;
use regard_train::{LossSettings, Trainer, loss};

/// Everything in bf16 that this machine can do.
fn every_bf16() -> Vec<Gemm> {
    let isa = Isa::best();
    Gemm::bf16(isa).into_iter().chain([Gemm::bf16_in_software(isa)]).collect()
}

fn with(gemm: Gemm, dropout: f32) -> Trainer {
    trainer(ModelConfig { dropout, ..small() }, 2).with_gemm(gemm)
}

fn steps(trainer: &mut Trainer, batches: &[Batch], rate: f32) -> Vec<f64> {
    batches.iter().map(|b| trainer.step(std::slice::from_ref(b), rate).unwrap().loss).collect()
}

#[test]
fn a_gradient_in_bf16_is_that_in_f32_but_for_its_rounding() {
    let gradient = |gemm| {
        let mut trainer = with(gemm, 0.0);
        steps(&mut trainer, &[batch(40, 2)], 0.0);
        trainer.gradient().to_vec()
    };
    let exact = gradient(Gemm::f32(Isa::best()));
    let length: f64 = exact.iter().map(|&x| f64::from(x).powi(2)).sum();
    for gemm in every_bf16() {
        let apart: f64 = exact.iter().zip(gradient(gemm)).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let relative = (apart / length).sqrt();
        // A number is off by 2⁻⁹ at most; some tens of such errors add up on the way, in random
        // directions.
        assert!(relative > 1e-4 && relative < 2e-2, "{}: {relative}", gemm.name());
    }
}

/// The trainer makes the matrices of the weights ready once a step; a tape alone rounds them in
/// every product.
#[test]
fn matrices_made_ready_change_no_bit() {
    // More words than fit one block of the loss.
    let many = ModelConfig { source_vocabulary: 1100, target_vocabulary: 1100, ..small() };
    for (name, config) in variants().into_iter().chain([("many words".into(), many)]) {
        for gemm in every_bf16() {
            let mut trainer = trainer(ModelConfig { dropout: 0.0, ..config.clone() }, 1).with_gemm(gemm);
            for (seed, rate) in [(1, 0.01), (2, 0.0)] {
                let (batch, weights) = (batch(20, seed), trainer.weights().to_vec());
                let report = trainer.step(std::slice::from_ref(&batch), rate).unwrap();
                let (mut tape, mut gradients) = (Tape::with_gemm(gemm, 1), vec![0.0; weights.len()]);
                let settings =
                    LossSettings { smoothing: 0.1, scale: 1.0 / report.target_tokens as f32, r_drop: None };
                let (model, to) = (trainer.model(), Some(&mut gradients[..]));
                let total = loss(&mut tape, model, &weights, to, &batch, settings, None).unwrap();
                assert_eq!(total / report.target_tokens as f64, report.loss, "{name}, {}", gemm.name());
                assert!(gradients == trainer.gradient(), "{name}, {}", gemm.name());
            }
        }
    }
}

#[test]
fn a_small_model_learns_its_batch_by_heart_as_it_does_in_f32() {
    let learn = |gemm| {
        let mut trainer = with(gemm, 0.0);
        *steps(&mut trainer, &vec![batch(8, 1); 150], 3e-3).last().unwrap()
    };
    let exact = learn(Gemm::f32(Isa::best()));
    for gemm in every_bf16() {
        let last = learn(gemm);
        assert!((last - exact).abs() < 0.02 * exact, "{}: {last}, in f32 {exact}", gemm.name());
    }
}

#[test]
fn a_run_in_bf16_is_the_same_again_and_goes_on_bit_for_bit() {
    let batches: Vec<Batch> = (0..6).map(|i| batch(30, 10 * i)).collect();
    for gemm in every_bf16() {
        let (mut whole, mut again) = (with(gemm, 0.2), with(gemm, 0.2));
        let wanted = steps(&mut whole, &batches, 0.01);
        assert_eq!(steps(&mut again, &batches[..3], 0.01), wanted[..3]);
        let (first, second) = again.moments();
        let moments = (first.to_vec(), second.to_vec());
        let mut resumed = with(gemm, 0.2);
        resumed.restore(again.steps(), again.weights().to_vec(), moments).unwrap();
        assert_eq!(steps(&mut resumed, &batches[3..], 0.01), wanted[3..]);
        assert_eq!(resumed.weights(), whole.weights());
    }
}
