//! What does not change a translation, over models of random sizes and parts: the number of threads
//! and the batch nothing at all, the instruction set no more than a near tie.

use crate::small_models::{model, options, random_config, sentences};
use regard_core::decode::{Engine, Hypothesis, SearchOptions, search_ensemble};
use regard_core::model::Transformer;
use regard_core::{DType, Isa};

fn found(engine: &Engine, sources: &[Vec<u32>], batch: usize, threads: usize) -> Vec<Vec<Hypothesis>> {
    let options = SearchOptions { batch, nbest: 2, ..options(3) };
    search_ensemble(&[engine], sources, &options, threads).unwrap()
}

fn random_model(seed: u64) -> (String, (Transformer, Vec<f32>)) {
    let config = random_config(seed);
    (format!("model {seed}: {config:?}"), model(config, seed))
}

#[test]
fn threads_and_batches_change_no_bit_of_any_model() {
    for seed in 0..24 {
        let (name, (model, weights)) = random_model(seed);
        let sources = sentences(1 + seed as usize * 7 % 31, seed);
        for dtype in [DType::F32, DType::Int8] {
            // Another instruction set each time.
            let isa = Isa::available()[seed as usize % Isa::available().len()];
            let engine = Engine::new(&model, &weights, dtype, isa);
            let want = found(&engine, &sources, 1, 1);
            for threads in 1..=5 {
                for batch in [1, 2, 3, 8, 64] {
                    let got = found(&engine, &sources, batch, threads);
                    assert!(got == want, "{name}, {dtype:?}, {isa}, batches of {batch} on {threads} threads");
                }
            }
        }
    }
}

/// Sums of f32 are added in another order by each instruction set, so that two words of nearly the
/// same probability may change places: in fewer than one of a thousand lines of models that are at least eight wide.
#[test]
fn instruction_sets_find_the_same_lines() {
    let (mut lines, mut other) = (0, Vec::new());
    // A norm of two or three numbers leaves little but their signs, so that ties are exact.
    for seed in (100..).filter(|&seed| random_config(seed).d_model >= 8).take(60) {
        let (name, (model, weights)) = random_model(seed);
        let sources = sentences(40, seed);
        let of = |isa| found(&Engine::new(&model, &weights, DType::F32, isa), &sources, 16, 2);
        let portable = of(Isa::PORTABLE);
        for isa in Isa::available().into_iter().filter(|isa| *isa != Isa::PORTABLE) {
            for (line, (a, b)) in of(isa).iter().zip(&portable).enumerate() {
                lines += 1;
                if a[0].ids != b[0].ids {
                    other.push(format!("{isa}, line {line} of {name}"));
                }
            }
        }
    }
    // A machine with nothing but plain code has nothing to compare.
    assert!(lines == 0 || lines >= 2_400);
    assert!(1_000 * other.len() <= lines, "{} of {lines} lines: {other:#?}", other.len());
}
