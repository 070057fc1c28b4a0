//! Training of a small model: each core takes a part of the examples, gradients are added in a fixed order, Adam.

use super::Pass;
use crate::Setup;
use regard_core::Result;
use regard_core::model::HeadShape;
use regard_core::model::Parameters;
use regard_kernels::{Adam, adam_step, add, sum_of_squares};
use regard_train::autograd::{Tape, Var};
use regard_train::{Schedule, ScheduleKind};
use std::time::Instant;

/// The longest gradient; longer ones are scaled down to it.
const CLIP: f64 = 1.0;

/// Examples that a trained model sees at once.
const TOGETHER: usize = 64;

/// How long a model is trained, and on how much at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    /// Steps, in whose first tenth the rate rises; it falls to 0 after that in a straight line.
    pub(crate) steps: u64,
    /// Examples of a step.
    pub(crate) batch: usize,
    /// Losses of an example.
    pub(crate) losses: usize,
    /// The highest rate.
    pub(crate) peak: f64,
}

/// A model after its training.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) weights: Vec<f32>,
    /// The mean loss of each step.
    pub(crate) losses: Vec<f64>,
    pub(crate) seconds: f64,
}

/// One core's tape and gradients.
struct Replica {
    tape: Tape,
    gradients: Vec<f32>,
}

/// Trains a model: `example(i)` is the `i`-th of an endless stream, `loss` records the model over some examples and returns the
/// loss of each of their answers, `watch` sees the weights after each step.
///
/// The result depends on the seed and the number of threads alone.
pub(crate) fn fit<E: Sync + Send>(
    setup: &Setup<'_>,
    (parameters, heads): (&Parameters, HeadShape),
    recipe: Recipe,
    example: impl Fn(u64) -> E + Sync,
    loss: impl Fn(&mut Pass<'_>, &[E]) -> Var + Sync,
    mut watch: impl FnMut(u64, f64, &[f32]) -> Result<()>,
) -> Result<Fitted> {
    let n = parameters.len();
    let mut weights = parameters.initialise(setup.seed);
    let mut moments = (vec![0.0; n], vec![0.0; n]);
    let mut replicas: Vec<Replica> = (0..setup.threads.clamp(1, recipe.batch))
        .map(|_| Replica { tape: Tape::new(setup.isa, 1), gradients: vec![0.0; n] })
        .collect();
    let warmup = (recipe.steps / 10).max(1);
    let schedule = Schedule { kind: ScheduleKind::Linear, peak: Some(recipe.peak), warmup };
    let scale = 1.0 / (recipe.batch * recipe.losses) as f32;
    let share = recipe.batch.div_ceil(replicas.len());
    let mut fitted = Fitted { weights: Vec::new(), losses: Vec::new(), seconds: 0.0 };
    for step in 1..=recipe.steps {
        let start = Instant::now();
        let first = (step - 1) * recipe.batch as u64;
        let run = |number: usize, replica: &mut Replica| {
            let mine = (number * share).min(recipe.batch)..((number + 1) * share).min(recipe.batch);
            let examples: Vec<E> = mine.map(|i| example(first + i as u64)).collect();
            replica.gradients.fill(0.0);
            if examples.is_empty() {
                return 0.0;
            }
            replica.tape.clear();
            let gradients = Some(&mut replica.gradients[..]);
            let mut pass = Pass { tape: &mut replica.tape, weights: &weights, gradients, heads, scale };
            let losses = loss(&mut pass, &examples);
            let values = replica.tape.value(losses).data();
            let (total, grad) =
                (values.iter().map(|&x| f64::from(x)).sum::<f64>(), vec![scale; values.len()]);
            replica.tape.backward(&weights, &mut replica.gradients, losses, &grad);
            replica.tape.clear_grads();
            total
        };
        let total = over_replicas(&mut replicas, run);
        let rate = schedule.rate(step, 1, Some(recipe.steps)) as f32;
        update(setup, &mut replicas, &mut weights, &mut moments, (rate, step));
        fitted.seconds += start.elapsed().as_secs_f64();
        fitted.losses.push(total * f64::from(scale));
        watch(step, total * f64::from(scale), &weights)?;
    }
    Ok(Fitted { weights, ..fitted })
}

/// Runs each replica on a thread of its own; what they return, added in their order.
fn over_replicas(replicas: &mut [Replica], run: impl Fn(usize, &mut Replica) -> f64 + Sync) -> f64 {
    std::thread::scope(|scope| {
        let run = &run;
        let handles: Vec<_> = replicas
            .iter_mut()
            .enumerate()
            .map(|(number, replica)| scope.spawn(move || run(number, replica)))
            .collect();
        handles.into_iter().map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).sum()
    })
}

/// Adds the gradients up and takes a step of Adam.
fn update(
    setup: &Setup<'_>,
    replicas: &mut [Replica],
    weights: &mut [f32],
    (first, second): &mut (Vec<f32>, Vec<f32>),
    (rate, step): (f32, u64),
) {
    let (head, others) = replicas.split_at_mut(1);
    let gradients = &mut head[0].gradients;
    for other in others {
        add(setup.isa, gradients, &other.gradients);
    }
    let norm = sum_of_squares(setup.isa, gradients).sqrt();
    let gradient_scale = if norm > CLIP { (CLIP / norm) as f32 } else { 1.0 };
    let adam = Adam { rate, betas: (0.9, 0.98), epsilon: 1e-9, step, gradient_scale };
    adam_step(setup.isa, adam, weights, first, second, gradients);
}

/// Runs a trained model over the examples, some at a time, each core taking its share; what `f` makes of them, in their order.
pub(crate) fn over_examples<E: Sync, T: Send>(
    setup: &Setup<'_>,
    (weights, heads): (&[f32], HeadShape),
    examples: &[E],
    f: impl Fn(&mut Pass<'_>, &[E]) -> Vec<T> + Sync,
) -> Vec<T> {
    let share = examples.len().div_ceil(setup.threads.max(1)).max(1);
    let run = |examples: &[E]| {
        let mut tape = Tape::new(setup.isa, 1);
        let mut found = Vec::new();
        for some in examples.chunks(TOGETHER) {
            tape.clear();
            found.extend(f(&mut Pass { tape: &mut tape, weights, gradients: None, heads, scale: 1.0 }, some));
        }
        found
    };
    std::thread::scope(|scope| {
        let run = &run;
        let handles: Vec<_> = examples.chunks(share).map(|part| scope.spawn(move || run(part))).collect();
        handles.into_iter().flat_map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}
