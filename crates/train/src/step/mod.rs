//! One training step: a batch is split over the replicas of all processes, one per core; their
//! gradients are summed in a fixed order and passed to Adam.

mod fit;
mod micro_batches;
mod ranks;
mod replicas;

pub use fit::{FitSettings, Pass, fit};
pub(crate) use replicas::Replicas;

use crate::autograd::{BackwardHook, Draw, PackedWeights, Repack, SampledSoftmax, Weights};
use crate::distributed::overlap::BucketQueue;
use crate::distributed::shared_step::{EarlySums, SharedStep, Totals};
use crate::optimizer::{AdamSettings, Optimizer};
use crate::taped::{Dropouts, LossSettings, loss};
use crate::threads::over_threads;
use micro_batches::{MicroBatch, micro_batches};
use regard_core::batch::Batch;
use regard_core::model::Transformer;
use regard_core::{Error, Result};
use regard_kernels::{Gemm, Isa, Key, Timer};
use replicas::Replica;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The settings that are the same in every step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSettings {
    /// ε of the label smoothing; 0.1 in the paper.
    pub label_smoothing: f32,
    /// Clipping and Adam.
    #[serde(flatten)]
    pub adam: AdamSettings,
    /// R-Drop: every pair passes through the model twice, and this weight times the divergence of
    /// the two passes is added to the loss. It is the α of Liang et al. (2021), who used 5 for
    /// translation.
    pub r_drop: Option<f32>,
    /// The approximate number of words in the softmax of a training step besides the target words
    /// of its batch, drawn at random in each step; all of them if not given. Validation always uses
    /// all.
    pub softmax_sample: Option<usize>,
    /// Muon for the matrices of linear layers, and Adam for the rest: the root mean square of an
    /// update of a matrix, relative to the learning rate. With 0.2, updates are about as large as
    /// Adam's and need no other learning rate. Adam for all weights if not given.
    pub muon: Option<f32>,
}

impl Default for StepSettings {
    fn default() -> Self {
        StepSettings {
            label_smoothing: 0.1,
            adam: AdamSettings::default(),
            r_drop: None,
            softmax_sample: None,
            muon: None,
        }
    }
}

/// The report of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// The mean loss per target token, with label smoothing and R-Drop's divergence.
    pub loss: f64,
    /// The mean of `−log p` over the target tokens: the cross-entropy without label smoothing,
    /// which validation measures too.
    pub nll: f64,
    /// The number of target tokens.
    pub target_tokens: usize,
    /// The norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Whether the weights were updated; false if loss or gradient is not finite.
    pub applied: bool,
    /// The total time of all replicas.
    pub busy: Duration,
    /// The part of it spent in GEMM.
    pub gemm_time: Duration,
    /// The time that this rank spent on the exchange with the other ranks.
    pub exchange: Duration,
    /// Whether the exchange overlapped with the backward pass.
    pub overlapped: bool,
    /// Whether a rank was asked to stop.
    pub stop: bool,
}

/// The work of all replicas in a step.
struct Work<'a> {
    model: &'a Transformer,
    weights: Weights<'a>,
    /// The micro-batches of each replica of all ranks, in order; the last replicas may have none.
    micro_batches: &'a [Vec<MicroBatch>],
    settings: LossSettings,
    key: Key,
}

impl Replica {
    /// Forward and backward for the micro-batches of replica `number`. Final gradients go to the queue.
    fn run(&mut self, work: &Work<'_>, number: usize, queue: Option<BucketQueue>) -> Result<Totals> {
        let start = Instant::now();
        Timer::take();
        self.gradients.fill(0.0);
        // Held here and not by the tape, so that it is dropped when the replica fails, and nobody
        // waits for it.
        let queue = queue.map(|queue| Arc::new(Mutex::new(queue)));
        self.tape.take_nll();
        let mut total = 0.0;
        let micro_batches = &work.micro_batches[number];
        for (n, MicroBatch { pairs, batch }) in micro_batches.iter().enumerate() {
            // Gradients only become final in the last micro-batch.
            let leaving = queue.as_ref().filter(|_| n + 1 == micro_batches.len());
            self.tape.set_backward_hook(leaving.map(bucket_hook));
            let dropouts = Some(Dropouts { key: work.key.child(*batch) });
            let gradients = Some(&mut self.gradients[..]);
            total +=
                loss(&mut self.tape, work.model, work.weights, gradients, pairs, work.settings, dropouts)?;
        }
        if let Some(queue) = queue {
            release(&queue, None, &self.gradients);
        }
        let (nll, busy, gemm_time) = (self.tape.take_nll(), start.elapsed(), Timer::take());
        Ok(Totals { loss: total, nll, busy, gemm_time, stop: false })
    }
}

/// The random stream of the word sample. Batches use streams from 0.
const SAMPLE_STREAM: u64 = u64::MAX;

/// Chooses the words of a step's sampled softmax, if it is enabled. Every rank chooses the same.
fn sample_words(
    sample: &mut SampledSoftmax,
    model: &Transformer,
    batches: &[Batch],
    count: Option<usize>,
    key: Key,
) -> bool {
    let Some(count) = count else { return false };
    let bias = model.shared_output_bias();
    let draw = Draw {
        words: model.config().output_words(),
        count,
        key: key.child(SAMPLE_STREAM),
        bias: bias.as_deref(),
    };
    sample.draw(batches.iter().flat_map(|batch| batch.output.iter().copied()), draw)
}

/// A hook that sends the final gradients during the backward pass, as long as the queue exists.
fn bucket_hook(queue: &Arc<Mutex<BucketQueue>>) -> BackwardHook {
    let queue = Arc::downgrade(queue);
    Box::new(move |mark, gradients| {
        if let Some(queue) = queue.upgrade() {
            release(&queue, Some(mark), gradients);
        }
    })
}

fn release(queue: &Mutex<BucketQueue>, passed: Option<usize>, gradients: &[f32]) {
    queue.lock().unwrap_or_else(PoisonError::into_inner).release(passed, gradients);
}

/// A model in training: weights, Adam's moments, and a replica for each core.
#[derive(Debug)]
pub struct Trainer {
    model: Transformer,
    settings: StepSettings,
    seed: u64,
    optimizer: Optimizer,
    replicas: Replicas,
    /// The packed weight matrices, shared by all replicas.
    packed: PackedWeights,
    gemm: Gemm,
    /// The words of the sampled softmax.
    sample: SampledSoftmax,
    shared: SharedStep,
}

/// Memory for the matrices that are packed once per step. Packing is cheap compared to a matmul of
/// hundreds of rows; but rounding to bf16 is not, and the loss reads the output matrix for a few
/// rows at a time.
fn packed(model: &Transformer, settings: StepSettings, gemm: Gemm) -> PackedWeights {
    // A sampled softmax packs its own rows of the output matrix.
    let (output, sampled) = (model.output(), settings.softmax_sample.is_some());
    let is_packed = |param| if param == output { !sampled } else { gemm.round() };
    PackedWeights::new(gemm, model.matrices().filter(|&(param, _)| is_packed(param)))
}

impl Trainer {
    /// Starts from `weights` on `threads` cores; `seed` is that of dropout.
    pub fn new(
        model: Transformer,
        weights: Vec<f32>,
        settings: StepSettings,
        isa: Isa,
        threads: usize,
        seed: u64,
    ) -> Result<Self> {
        let n = model.parameters().len();
        if weights.len() != n {
            let message = format!("{} weights for a model of {n}", weights.len());
            return Err(Error::Input { operation: "trainer", message });
        }
        if threads == 0 {
            return Err(Error::config("threads", "0 is too few, at least 1 is needed"));
        }
        let replicas = Replicas::new(isa, threads, n);
        let mut optimizer = Optimizer::new(weights, settings.adam, isa, replicas.len());
        if let Some(scale) = settings.muon {
            optimizer = optimizer.with_muon(scale, model.linear_matrices());
        }
        Ok(Trainer {
            settings,
            seed,
            optimizer,
            packed: packed(&model, settings, Gemm::f32(isa)),
            gemm: Gemm::f32(isa),
            sample: SampledSoftmax::default(),
            model,
            shared: SharedStep::single_process(n, replicas.len()),
            replicas,
        })
    }

    /// Uses matmuls in this number format instead of f32. Weights, moments, sums and everything
    /// that is not a matmul stay in f32.
    pub fn with_gemm(mut self, gemm: Gemm) -> Self {
        self.replicas.set_gemm(gemm);
        self.packed = packed(&self.model, self.settings, gemm);
        self.optimizer.set_gemm(gemm);
        self.gemm = gemm;
        self
    }

    /// The model.
    pub fn model(&self) -> &Transformer {
        &self.model
    }

    /// Its weights.
    pub fn weights(&self) -> &[f32] {
        self.optimizer.weights()
    }

    /// Changes R-Drop's weight from the next step on; all ranks must do so before the same step.
    pub(crate) fn set_r_drop(&mut self, weight: Option<f32>) {
        self.settings.r_drop = weight;
    }

    /// The number of steps taken.
    pub fn steps(&self) -> u64 {
        self.optimizer.steps()
    }

    /// Adam's first and second moments.
    pub fn moments(&self) -> (&[f32], &[f32]) {
        self.optimizer.moments()
    }

    /// Restores the state of another trainer after `steps` steps.
    pub fn restore(&mut self, steps: u64, weights: Vec<f32>, moments: (Vec<f32>, Vec<f32>)) -> Result<()> {
        self.optimizer.restore(steps, weights, moments)
    }

    /// The gradient of the last step, before clipping.
    pub fn gradient(&self) -> &[f32] {
        self.replicas.gradient()
    }

    /// Frees the memory of the replicas' tapes, for work between two steps. The next step allocates
    /// it again.
    pub fn release_memory(&mut self) {
        self.replicas.release();
    }

    /// The memory of the replicas' tapes in floats: must stop growing after the first steps.
    pub fn tape_capacity(&self) -> usize {
        self.replicas.tape_capacity()
    }

    /// One step with learning rate `rate` on the sum of the batches; several batches are gradient
    /// accumulation.
    ///
    /// The result depends only on the batches, the seed, the step and the number of replicas.
    pub fn step(&mut self, batches: &[Batch], rate: f32) -> Result<StepReport> {
        let tokens: usize = batches.iter().map(Batch::target_tokens).sum();
        if tokens == 0 {
            return Err(Error::Input {
                operation: "training step",
                message: "there are no target tokens".into(),
            });
        }
        let (start, overlapped) = (Instant::now(), self.shared.overlaps());
        // With R-Drop each token is seen twice and counts half.
        let seen = if self.settings.r_drop.is_some() { 2 * tokens } else { tokens };
        let (mine, early) = self.accumulate(batches, 1.0 / seen as f32, overlapped)?;
        let Totals { loss, nll, busy, gemm_time, stop } = self.shared.sum_totals(mine);
        let (loss, nll) = (loss / seen as f64, nll / seen as f64);
        let gradient_norm = self.shared.sum_gradients(&mut self.replicas, early).sqrt();
        let applied = self.optimizer.step_if_finite(loss, gradient_norm, |optimizer| {
            self.shared.update(optimizer, self.replicas.gradient_mut(), gradient_norm, rate);
        });
        let exchange = self.shared.end_step(overlapped, start.elapsed().as_secs_f64() / tokens as f64);
        Ok(StepReport {
            loss,
            nll,
            target_tokens: tokens,
            gradient_norm,
            applied,
            busy,
            gemm_time,
            exchange,
            overlapped,
            stop,
        })
    }

    /// Forward and backward of all batches on the replicas of this process. If overlapped, also
    /// sums the gradients of all ranks.
    fn accumulate(
        &mut self,
        batches: &[Batch],
        scale: f32,
        overlapped: bool,
    ) -> Result<(Totals, Option<EarlySums>)> {
        let key = Key::new(self.seed).child(self.optimizer.steps());
        let config = self.model.config();
        let StepSettings { label_smoothing: smoothing, r_drop, .. } = self.settings;
        let (twice, settings) = (r_drop.is_some(), LossSettings { smoothing, scale, r_drop });
        let micro_batches = micro_batches(batches, self.shared.parts(), twice, |s, t| config.cost(s, t));
        let flat = self.optimizer.weights();
        over_threads(self.replicas.len(), self.packed.repack(flat), Repack::run);
        let sampled = sample_words(&mut self.sample, &self.model, batches, self.settings.softmax_sample, key);
        if sampled {
            let (table, d) = (self.model.output(), config.d_model);
            self.sample.pack(self.gemm, flat, table, d, self.replicas.len());
        }
        let sample = sampled.then_some(&self.sample);
        let (model, weights) = (&self.model, Weights::with_packed(flat, &self.packed).with_sample(sample));
        let work = Work { model, weights, micro_batches: &micro_batches, settings, key };
        let first = self.shared.first_part();
        let (results, early) =
            self.shared.run_with_exchange(overlapped, &mut self.replicas, |replicas, queues| {
                replicas.run(queues, |i, replica, queue| replica.run(&work, first + i, queue))
            });
        let mut totals = Totals::default();
        for result in results {
            let Totals { loss, nll, busy, gemm_time, .. } = result?;
            totals.loss += loss;
            totals.nll += nll;
            totals.busy += busy;
            totals.gemm_time += gemm_time;
        }
        Ok((totals, early))
    }
}
