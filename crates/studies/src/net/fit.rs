//! Trains a small model on an endless stream of examples, and evaluates it.

use super::Net;
use crate::Setup;
use regard_core::Result;
use regard_train::autograd::Tape;
use regard_train::{AdamSettings, FitSettings, Pass, Taped};
use std::time::Instant;

/// The maximum gradient norm; larger gradients are scaled down.
const CLIP: f32 = 1.0;

/// The batch size for evaluation.
const EVAL_BATCH: usize = 64;

/// The length of the training and the batch size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    /// The number of steps. The learning rate rises over the first tenth and then falls linearly to
    /// 0.
    pub(crate) steps: u64,
    /// The number of examples per step.
    pub(crate) batch: usize,
    /// The number of losses per example.
    pub(crate) losses: usize,
    /// The peak learning rate.
    pub(crate) peak: f64,
}

/// A trained model.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) weights: Vec<f32>,
    pub(crate) seconds: f64,
}

/// Trains a model: `example(i)` is the `i`-th of an endless stream, and `watch` is called with the
/// mean loss and the weights after each step.
///
/// The result depends only on the seed and the number of threads.
pub(crate) fn fit<N: Net>(
    setup: &Setup<'_>,
    net: &N,
    recipe: Recipe,
    example: impl Fn(u64) -> N::Example + Sync,
    mut watch: impl FnMut(u64, f64, &[f32]) -> Result<()>,
) -> Result<Fitted> {
    let replicas = setup.threads.clamp(1, recipe.batch);
    let settings = FitSettings {
        steps: recipe.steps,
        peak: recipe.peak,
        warmup: (recipe.steps / 10).max(1),
        adam: AdamSettings { clip: Some(CLIP), ..AdamSettings::default() },
        replicas,
        cores: 1,
    };
    let scale = 1.0 / (recipe.batch * recipe.losses) as f32;
    let share = recipe.batch.div_ceil(replicas);
    let loss = |Pass { step, replica, tape, weights, gradients }: Pass<'_>| {
        let mine = (replica * share).min(recipe.batch)..((replica + 1) * share).min(recipe.batch);
        let first = (step - 1) * recipe.batch as u64;
        let examples: Vec<N::Example> = mine.map(|i| example(first + i as u64)).collect();
        if examples.is_empty() {
            return Ok(0.0);
        }
        let (source, target) = net.tokens(&examples);
        let sides = (&source, &target);
        let mut e = Taped::with_config(tape, net.config(), weights, Some(&mut *gradients), sides, None)?;
        let losses = net.loss(&mut e, &examples, scale);
        let values = e.value(losses);
        let (total, grad) = (values.iter().map(|&x| f64::from(x)).sum::<f64>(), vec![scale; values.len()]);
        tape.backward(weights, gradients, losses, &grad);
        tape.clear_grads();
        Ok(total * f64::from(scale))
    };
    let (mut seconds, mut start) = (0.0, Instant::now());
    let after = |step: u64, loss: f64, weights: &[f32]| {
        seconds += start.elapsed().as_secs_f64();
        watch(step, loss, weights)?;
        // The time spent in `watch` is not training time.
        start = Instant::now();
        Ok(())
    };
    let weights = net.parameters().initialise(setup.seed);
    let weights = regard_train::fit(&settings, setup.isa, weights, loss, after)?;
    Ok(Fitted { weights, seconds })
}

/// The answers of a model with these weights to the examples, in order; each core evaluates a share
/// of them in batches.
pub(crate) fn answers<N: Net>(
    setup: &Setup<'_>,
    net: &N,
    weights: &[f32],
    examples: &[N::Example],
) -> Result<Vec<N::Answer>> {
    let share = examples.len().div_ceil(setup.threads.max(1)).max(1);
    let run = |examples: &[N::Example]| {
        let mut tape = Tape::new(setup.isa, 1);
        let mut found = Vec::new();
        for some in examples.chunks(EVAL_BATCH) {
            tape.clear();
            let (source, target) = net.tokens(some);
            let sides = (&source, &target);
            let mut e = Taped::with_config(&mut tape, net.config(), weights, None, sides, None)?;
            found.extend(net.answer(&mut e, some));
        }
        Ok(found)
    };
    let parts: Vec<Result<Vec<N::Answer>>> = std::thread::scope(|scope| {
        let run = &run;
        let handles: Vec<_> = examples.chunks(share).map(|part| scope.spawn(move || run(part))).collect();
        handles.into_iter().map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    Ok(parts.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
