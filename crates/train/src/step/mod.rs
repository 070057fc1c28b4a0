//! One training step: the batch is split over the replicas of all ranks, each core being one; their gradients are summed in a fixed
//! order; Adam.

use crate::autograd::{PackedWeights, Repack, Tape, Watch, Weights};
use crate::distributed::exchange::{Arrived, BUCKET, Exchange};
use crate::distributed::overlap::{BucketQueue, GradientBucket, OverlapTuner, gradient_buckets, post};
use crate::distributed::{Communicator, Overlap, Wire};
use crate::taped::{Dropouts, LossSettings, loss};
use regard_core::batch::Batch;
use regard_core::model::Transformer;
use regard_core::{Error, Result};
use regard_kernels::{Adam, Isa, Key, Products, Timer, adam_step, add, sum_of_squares};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Replicas have a gradient buffer each: with more cores than this, a replica spans several.
const MOST_REPLICAS: usize = 8;

/// Numbers that one thread sums and updates at a time: four of such pieces fit the second-level cache.
pub(crate) const PIECE: usize = 1 << 15;

/// The settings of a step that do not change from step to step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSettings {
    /// ε of the label smoothing; 0.1 in the paper.
    pub label_smoothing: f32,
    /// Adam's β₁ and β₂; 0.9 and 0.98 in the paper.
    pub betas: (f32, f32),
    /// Adam's ε; 1e-9 in the paper.
    pub epsilon: f32,
    /// The longest gradient; longer ones are scaled down to it. None in the paper.
    pub clip: Option<f32>,
    /// R-Drop: every pair goes through the model twice, and this times the divergence of the two passes is added to the loss. It is
    /// the α of Liang and others (2021), who used 5 for translation.
    pub r_drop: Option<f32>,
}

impl Default for StepSettings {
    fn default() -> Self {
        StepSettings { label_smoothing: 0.1, betas: (0.9, 0.98), epsilon: 1e-9, clip: None, r_drop: None }
    }
}

/// What a step was like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// The mean loss of a target token, with label smoothing, and with R-Drop's divergence.
    pub loss: f64,
    /// The mean of `−log p` of the target tokens: the cross-entropy without label smoothing, which
    /// validation measures too.
    pub nll: f64,
    /// How many target tokens there were.
    pub target_tokens: usize,
    /// The length of the gradient before clipping.
    pub gradient_norm: f64,
    /// Whether the weights were changed: not if loss or gradient is not finite.
    pub applied: bool,
    /// Time that the replicas spent in all, added up.
    pub busy: Duration,
    /// The part of it in matrix products.
    pub products: Duration,
    /// Time that this rank spent on sums with the other ranks, and on their weights.
    pub exchange: Duration,
    /// Whether the sums with the other ranks began while the backward pass still ran.
    pub overlapped: bool,
    /// Whether a rank was asked to stop.
    pub stop: bool,
}

/// One core's copy of what changes during a step.
#[derive(Debug)]
struct Replica {
    tape: Tape,
    gradients: Vec<f32>,
}

/// What all replicas work on in a step.
struct Work<'a> {
    model: &'a Transformer,
    weights: Weights<'a>,
    /// Of each batch, a part for each replica of all ranks; the last ones may have none.
    parts: &'a [Vec<Batch>],
    settings: LossSettings,
    key: Key,
}

/// What a replica adds to a step: loss, loss without smoothing, time, and the part of it in matrix products.
struct Share {
    loss: f64,
    nll: f64,
    busy: Duration,
    products: Duration,
}

impl Replica {
    /// Forward and backward of the parts of replica `number`. Gradients that are final go to the outbox.
    fn run(&mut self, work: &Work<'_>, number: usize, outbox: Option<BucketQueue>) -> Result<Share> {
        let start = Instant::now();
        Timer::take();
        self.gradients.fill(0.0);
        // Held here and not by the tape, so that it is gone when the replica fails, and nobody waits for it.
        let outbox = outbox.map(|outbox| Arc::new(Mutex::new(outbox)));
        self.tape.take_nll();
        let mut total = 0.0;
        for (n, parts) in work.parts.iter().enumerate() {
            let Some(part) = parts.get(number) else { continue };
            // Gradients are final in the last batch.
            let leaving = outbox.as_ref().filter(|_| n + 1 == work.parts.len());
            self.tape.set_watch(leaving.map(watch));
            let dropouts = Some(Dropouts { key: work.key.child(n as u64) });
            let gradients = Some(&mut self.gradients[..]);
            total +=
                loss(&mut self.tape, work.model, work.weights, gradients, part, work.settings, dropouts)?;
        }
        if let Some(outbox) = outbox {
            release(&outbox, None, &self.gradients);
        }
        let nll = self.tape.take_nll();
        Ok(Share { loss: total, nll, busy: start.elapsed(), products: Timer::take() })
    }
}

/// Lets the backward pass send what it has done with, as long as the outbox is there.
fn watch(outbox: &Arc<Mutex<BucketQueue>>) -> Watch {
    let outbox = Arc::downgrade(outbox);
    Box::new(move |mark, gradients| {
        if let Some(outbox) = outbox.upgrade() {
            release(&outbox, Some(mark), gradients);
        }
    })
}

fn release(outbox: &Mutex<BucketQueue>, passed: Option<usize>, gradients: &[f32]) {
    outbox.lock().unwrap_or_else(PoisonError::into_inner).release(passed, gradients);
}

/// A model in training: weights, Adam's moments, and a replica for each core.
#[derive(Debug)]
pub struct Trainer {
    model: Transformer,
    settings: StepSettings,
    isa: Isa,
    seed: u64,
    step: u64,
    weights: Vec<f32>,
    first_moments: Vec<f32>,
    second_moments: Vec<f32>,
    replicas: Vec<Replica>,
    /// Matrices of the weights as the products of all replicas read them.
    ready: PackedWeights,
    exchange: Exchange,
    /// Whether steps overlap, the buckets in the order in which they then leave, and which way the last step went and how many
    /// seconds it took a token.
    pace: OverlapTuner,
    gradient_buckets: Arc<[GradientBucket]>,
    last: Option<(bool, f64)>,
    /// The number of this rank's first replica, and how many all ranks have.
    first_replica: usize,
    all_replicas: usize,
    stopping: bool,
}

/// What a step adds up: over replicas, then over ranks.
#[derive(Clone, Copy, Default)]
struct Sums {
    loss: f64,
    nll: f64,
    busy: Duration,
    products: Duration,
    stop: bool,
}

/// Room for the matrices that are packed once a step. Packing is cheap beside a product of hundreds of rows; but rounding is not, and the loss
/// reads the output's matrix for a few rows at a time.
fn ready(model: &Transformer, products: Products) -> PackedWeights {
    let output = model.output();
    PackedWeights::new(products, model.matrices().filter(|&(param, _)| products.round() || param == output))
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
        let replicas = threads.min(MOST_REPLICAS);
        // Cores that do not divide evenly go to the first replicas.
        let cores = |i: usize| threads / replicas + usize::from(i < threads % replicas);
        Ok(Trainer {
            settings,
            isa,
            seed,
            step: 0,
            first_moments: vec![0.0; n],
            second_moments: vec![0.0; n],
            replicas: (0..replicas)
                .map(|i| Replica { tape: Tape::new(isa, cores(i)), gradients: vec![0.0; n] })
                .collect(),
            weights,
            ready: ready(&model, Products::f32(isa)),
            model,
            exchange: Exchange::alone(n),
            pace: OverlapTuner::new(Overlap::Off),
            gradient_buckets: Arc::default(),
            last: None,
            first_replica: 0,
            all_replicas: replicas,
            stopping: false,
        })
    }

    /// Makes the matrix products of the steps in this way in place of f32. Weights, moments, sums and everything that is not a
    /// product stay in f32.
    pub fn with_products(mut self, products: Products) -> Self {
        self.replicas.iter_mut().for_each(|replica| replica.tape.set_products(products));
        self.ready = ready(&self.model, products);
        self
    }

    /// Trains together with the other ranks of a group: a step is over the replicas of all. Every rank must have made its trainer with
    /// the same model and settings, and gets the steps, weights and moments of rank 0.
    pub fn join(&mut self, group: Arc<dyn Communicator>, wire: Wire, overlap: Overlap) -> Result<()> {
        self.join_in_buckets(group, wire, overlap, BUCKET)
    }

    /// The same in buckets of this many pieces.
    pub(crate) fn join_in_buckets(
        &mut self,
        group: Arc<dyn Communicator>,
        wire: Wire,
        overlap: Overlap,
        pieces: usize,
    ) -> Result<()> {
        let rank = group.rank();
        self.exchange = Exchange::new(group, wire, self.weights.len(), pieces);
        self.gradient_buckets = gradient_buckets(&self.model, self.exchange.buckets());
        self.pace = OverlapTuner::new(if self.exchange.is_alone() { Overlap::Off } else { overlap });
        let of_ranks = self.exchange.gather(&[self.replicas.len() as f64, self.step as f64]);
        let replicas: Vec<usize> = of_ranks.iter().map(|x| x[0] as usize).collect();
        self.first_replica = replicas[..rank].iter().sum();
        self.all_replicas = replicas.iter().sum();
        self.step = of_ranks[0][1] as u64;
        let group = &self.exchange.group;
        group.broadcast_f32(&mut self.weights);
        if self.step > 0 {
            group.broadcast_f32(&mut self.first_moments);
            group.broadcast_f32(&mut self.second_moments);
        }
        Ok(())
    }

    /// The group that it trains in.
    pub fn group(&self) -> &Arc<dyn Communicator> {
        &self.exchange.group
    }

    /// How many replicas all ranks have.
    pub fn replicas(&self) -> usize {
        self.all_replicas
    }

    /// Bytes that this rank sends in a step.
    pub fn wire_bytes(&self) -> usize {
        if self.exchange.is_alone() { 0 } else { self.exchange.bytes() }
    }

    /// How many buckets can leave before the backward pass is over.
    #[cfg(test)]
    pub(crate) fn early_parcels(&self) -> usize {
        self.gradient_buckets.iter().filter(|parcel| parcel.mark.is_some()).count()
    }

    /// Lets the next step's report tell all ranks that this one was asked to stop.
    pub fn ask_to_stop(&mut self) {
        self.stopping = true;
    }

    /// Makes [`moments`](Self::moments) whole, of which each rank keeps up its own part only. All ranks must call it.
    pub fn collect_moments(&mut self) {
        if !self.exchange.is_alone() {
            self.exchange.share(&mut self.first_moments);
            self.exchange.share(&mut self.second_moments);
        }
    }

    /// The model.
    pub fn model(&self) -> &Transformer {
        &self.model
    }

    /// Its weights.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// How many steps have been taken.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Adam's first and second moments.
    pub fn moments(&self) -> (&[f32], &[f32]) {
        (&self.first_moments, &self.second_moments)
    }

    /// Goes on from where another one was after `steps` steps.
    pub fn restore(&mut self, steps: u64, weights: Vec<f32>, moments: (Vec<f32>, Vec<f32>)) -> Result<()> {
        let n = self.weights.len();
        for vector in [&weights, &moments.0, &moments.1] {
            if vector.len() != n {
                let message = format!("{} numbers for a model of {n}", vector.len());
                return Err(Error::Input { operation: "restoring a trainer", message });
            }
        }
        self.step = steps;
        self.weights = weights;
        (self.first_moments, self.second_moments) = moments;
        Ok(())
    }

    /// The gradient of the last step, before clipping.
    pub fn gradient(&self) -> &[f32] {
        &self.replicas[0].gradients
    }

    /// How many numbers the replicas' tapes hold: what must stop growing after the first steps.
    pub fn tape_capacity(&self) -> usize {
        self.replicas.iter().map(|r| r.tape.capacity()).sum()
    }

    /// One step with learning rate `rate` on the sum of the batches, of which there are several for gradient accumulation.
    ///
    /// The result depends on the batches, the seed, the step and the number of replicas, and on nothing else.
    pub fn step(&mut self, batches: &[Batch], rate: f32) -> Result<StepReport> {
        let tokens: usize = batches.iter().map(Batch::target_tokens).sum();
        if tokens == 0 {
            return Err(Error::Input {
                operation: "training step",
                message: "there are no target tokens".into(),
            });
        }
        let (start, overlapped) = (Instant::now(), self.pace.overlaps());
        // What is seen twice counts half.
        let seen = if self.settings.r_drop.is_some() { 2 * tokens } else { tokens };
        let (mine, arrived) = self.accumulate(batches, 1.0 / seen as f32, overlapped)?;
        let Sums { loss, nll, busy, products, stop } = self.sum_over_ranks(mine);
        let (loss, nll) = (loss / seen as f64, nll / seen as f64);
        let squares = match arrived {
            Some((arrived, waited)) => {
                self.exchange.take_arrived(arrived, waited, &mut self.replicas[0].gradients)
            }
            None => self.sum_gradients(),
        };
        let gradient_norm = squares.sqrt();
        let applied = loss.is_finite() && gradient_norm.is_finite();
        self.step += 1;
        if applied {
            let gradient_scale = match self.settings.clip {
                Some(most) if gradient_norm > f64::from(most) => (f64::from(most) / gradient_norm) as f32,
                _ => 1.0,
            };
            self.update(rate, gradient_scale);
        }
        self.last = Some((overlapped, start.elapsed().as_secs_f64() / tokens as f64));
        Ok(StepReport {
            loss,
            nll,
            target_tokens: tokens,
            gradient_norm,
            applied,
            busy,
            products,
            exchange: self.exchange.take_time(),
            overlapped,
            stop,
        })
    }

    fn sum_over_ranks(&mut self, mine: Sums) -> Sums {
        if self.exchange.is_alone() {
            return mine;
        }
        let stop = f64::from(u8::from(self.stopping));
        let last = self.last.map_or(0.0, |(_, seconds)| seconds);
        let (busy, products) = (mine.busy.as_secs_f64(), mine.products.as_secs_f64());
        let numbers = [mine.loss, mine.nll, busy, products, stop, last];
        let (mut all, mut slowest) = (Sums::default(), 0f64);
        for numbers in self.exchange.gather(&numbers) {
            let [loss, nll, busy, products, stop, last] = numbers[..] else { continue };
            all.loss += loss;
            all.nll += nll;
            all.busy += Duration::from_secs_f64(busy);
            all.products += Duration::from_secs_f64(products);
            all.stop |= stop > 0.0;
            slowest = slowest.max(last);
        }
        if let Some((overlapped, _)) = self.last {
            self.pace.record(overlapped, slowest);
        }
        all
    }

    /// Forward and backward of all batches on the replicas of this rank. Overlapped, also the sums of all gradients, and how long
    /// these took once the replicas were done.
    fn accumulate(
        &mut self,
        batches: &[Batch],
        scale: f32,
        overlapped: bool,
    ) -> Result<(Sums, Option<(Arrived, Duration)>)> {
        let key = Key::new(self.seed).child(self.step);
        let config = self.model.config();
        let StepSettings { label_smoothing: smoothing, r_drop, .. } = self.settings;
        let (twice, settings) = (r_drop.is_some(), LossSettings { smoothing, scale, r_drop });
        let parts: Vec<Vec<Batch>> = batches
            .iter()
            .map(|b| {
                let ranges = b.split_by_cost(self.all_replicas, |s, t| config.cost(s, t));
                let part = |r| if twice { b.part(r).twice() } else { b.part(r) };
                ranges.into_iter().map(part).collect()
            })
            .collect();
        over_threads(self.replicas.len(), self.ready.repack(&self.weights), Repack::run);
        let (model, weights) = (&self.model, Weights::with_packed(&self.weights, &self.ready));
        let work = &Work { model, weights, parts: &parts, settings, key };
        let (isa, gradient_buckets, exchange) = (self.isa, &self.gradient_buckets, &mut self.exchange);
        let (mut outboxes, inboxes): (Vec<_>, Vec<_>) = self
            .replicas
            .iter()
            .filter(|_| overlapped)
            .map(|_| post(gradient_buckets))
            .map(|(to, from)| (Some(to), from))
            .unzip();
        outboxes.resize_with(self.replicas.len(), || None);
        let (results, arrived) = std::thread::scope(|scope| {
            let exchange = overlapped
                .then(|| scope.spawn(move || exchange.sum_arriving(isa, gradient_buckets, &inboxes)));
            let mut replicas = self.replicas.iter_mut().zip(outboxes).zip(self.first_replica..);
            let first = replicas.next();
            let handles: Vec<_> = replicas
                .map(|((replica, outbox), number)| scope.spawn(move || replica.run(work, number, outbox)))
                .collect();
            let mut results: Vec<Result<Share>> = first
                .into_iter()
                .map(|((replica, outbox), number)| replica.run(work, number, outbox))
                .collect();
            results.extend(handles.into_iter().map(joined));
            let done = Instant::now();
            (results, exchange.and_then(joined).map(|arrived| (arrived, done.elapsed())))
        });
        let mut sums = Sums { stop: self.stopping, ..Sums::default() };
        for result in results {
            let Share { loss, nll, busy, products } = result?;
            sums.loss += loss;
            sums.nll += nll;
            sums.busy += busy;
            sums.products += products;
        }
        Ok((sums, arrived))
    }

    /// Adds the replicas' gradients to the first one's, always in the same order, then those of the other ranks, and returns `Σ g²`.
    fn sum_gradients(&mut self) -> f64 {
        let (isa, threads, alone) = (self.isa, self.replicas.len(), self.exchange.is_alone());
        let (first, others) = self.replicas.split_at_mut(1);
        let others: Vec<&[f32]> = others.iter().map(|r| &r.gradients[..]).collect();
        let work = first[0].gradients.chunks_mut(PIECE).enumerate();
        let sums = over_threads(threads, work, |(i, piece)| {
            for other in &others {
                add(isa, piece, &other[i * PIECE..][..piece.len()]);
            }
            if alone { sum_of_squares(isa, piece) } else { 0.0 }
        });
        if alone {
            return sums.iter().sum();
        }
        self.exchange.sum(isa, threads, &mut first[0].gradients)
    }

    /// Adam, on the part of the weights that this rank owns; the other parts come from their owners.
    fn update(&mut self, rate: f32, gradient_scale: f32) {
        let StepSettings { betas, epsilon, .. } = self.settings;
        let adam = Adam { rate, betas, epsilon, step: self.step, gradient_scale };
        let (isa, threads) = (self.isa, self.replicas.len());
        self.exchange.before_update(&self.weights);
        let work = self
            .weights
            .chunks_mut(PIECE)
            .zip(self.first_moments.chunks_mut(PIECE).zip(self.second_moments.chunks_mut(PIECE)))
            .zip(self.replicas[0].gradients.chunks(PIECE))
            .zip(self.exchange.owns())
            .filter_map(|(work, own)| own.then_some(work));
        over_threads(threads, work, |((w, (m, v)), g)| adam_step(isa, adam, w, m, v, g));
        self.exchange.share_weights(&mut self.weights);
    }
}

/// What a thread returns; its panic goes on here.
fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does the pieces of work on this many threads, each taking its share in turn; results in the order of the pieces.
pub(crate) fn over_threads<T: Send, R: Send>(
    threads: usize,
    work: impl Iterator<Item = T>,
    f: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let mut shares: Vec<Vec<T>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, piece) in work.enumerate() {
        shares[i % threads].push(piece);
    }
    let do_share = |share: Vec<T>| share.into_iter().map(&f).collect::<Vec<R>>();
    let mut results: Vec<_> = std::thread::scope(|scope| {
        let mut shares = shares.into_iter();
        let first = shares.next().unwrap_or_default();
        let handles: Vec<_> = shares.map(|share| scope.spawn(|| do_share(share))).collect();
        std::iter::once(do_share(first)).chain(handles.into_iter().map(joined)).map(Vec::into_iter).collect()
    });
    let longest = results.first().map_or(0, ExactSizeIterator::len);
    let mut in_order = Vec::with_capacity(longest * threads);
    for _ in 0..longest {
        in_order.extend(results.iter_mut().filter_map(Iterator::next));
    }
    in_order
}
