//! What a training step shares with the other ranks: the parts of a batch, the sums of losses and
//! gradients, the updated weights, and whether the gradient exchange overlaps with the backward
//! pass.
//!
//! This is all that the step knows of other processes. With a single process, nothing is sent or
//! copied.

use super::exchange::{Exchange, OwnedSums};
use super::overlap::{BucketQueue, GradientBucket, Overlap, OverlapTuner, bucket_queue, gradient_buckets};
use super::{Communicator, SingleProcess};
use crate::optimizer::Optimizer;
use crate::step::Replicas;
use crate::threads::joined;
use regard_core::DType;
use regard_core::model::Transformer;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a step sums over replicas, and then over ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) loss: f64,
    pub(crate) nll: f64,
    pub(crate) busy: Duration,
    pub(crate) gemm_time: Duration,
    pub(crate) stop: bool,
}

/// The gradient sums that arrived while the replicas worked, and how long the step waited for the
/// last.
#[derive(Debug)]
pub(crate) struct EarlySums {
    arrived: OwnedSums,
    waited: Duration,
}

/// This process's part in a distributed step.
#[derive(Debug)]
pub(crate) struct SharedStep {
    exchange: Exchange,
    tuner: OverlapTuner,
    /// In the order in which an overlapped step sends them.
    buckets: Arc<[GradientBucket]>,
    /// Whether the last step overlapped, and its seconds per token.
    last: Option<(bool, f64)>,
    /// The number of this process's first replica, and the number of replicas of all processes.
    first_replica: usize,
    all_replicas: usize,
    stopping: bool,
}

impl SharedStep {
    /// For a single process.
    pub(crate) fn single_process(weights: usize, replicas: usize) -> Self {
        SharedStep {
            exchange: Exchange::new(Arc::new(SingleProcess), DType::F32, weights, super::exchange::BUCKET),
            tuner: OverlapTuner::new(Overlap::Off),
            buckets: Arc::default(),
            last: None,
            first_replica: 0,
            all_replicas: replicas,
            stopping: false,
        }
    }

    /// For the ranks of a group, in buckets of at least `pieces` pieces. The optimizer receives the
    /// steps, weights and moments of rank 0.
    pub(crate) fn join(
        communicator: Arc<dyn Communicator>,
        (wire, overlap, pieces): (DType, Overlap, usize),
        model: &Transformer,
        replicas: usize,
        optimizer: &mut Optimizer,
    ) -> Self {
        let rank = communicator.rank();
        let exchange = Exchange::new(communicator, wire, optimizer.weights().len(), pieces);
        let of_ranks = exchange.all_gather_numbers(&[replicas as f64, optimizer.steps() as f64]);
        let of_rank: Vec<usize> = of_ranks.iter().map(|x| x[0] as usize).collect();
        let (steps, weights, moments) = optimizer.parts_mut();
        *steps = of_ranks[0][1] as u64;
        exchange.communicator.broadcast_f32(weights);
        if *steps > 0 {
            moments.into_iter().for_each(|moments| exchange.communicator.broadcast_f32(moments));
        }
        SharedStep {
            tuner: OverlapTuner::new(if exchange.is_single_process() { Overlap::Off } else { overlap }),
            buckets: gradient_buckets(model, exchange.buckets()),
            last: None,
            first_replica: of_rank[..rank].iter().sum(),
            all_replicas: of_rank.iter().sum(),
            stopping: false,
            exchange,
        }
    }

    /// The communicator.
    pub(crate) fn communicator(&self) -> &Arc<dyn Communicator> {
        &self.exchange.communicator
    }

    /// The number of parts of a batch: one for each replica of all processes.
    pub(crate) fn parts(&self) -> usize {
        self.all_replicas
    }

    /// The part of this process's first replica; the next replicas take the following parts.
    pub(crate) fn first_part(&self) -> usize {
        self.first_replica
    }

    /// The number of bytes that this process sends in a step of the optimizer.
    pub(crate) fn bytes(&self, optimizer: &Optimizer) -> usize {
        match self.exchange.is_single_process() {
            true => 0,
            false => self.exchange.bytes(optimizer.needs_whole_gradient()),
        }
    }

    /// The number of buckets that can be sent before the backward pass ends.
    #[cfg(test)]
    pub(crate) fn early_buckets(&self) -> usize {
        self.buckets.iter().filter(|bucket| bucket.mark.is_some()).count()
    }

    /// Makes the next step tell all processes that this one was asked to stop.
    pub(crate) fn ask_to_stop(&mut self) {
        self.stopping = true;
    }

    /// Whether the next step overlaps the gradient exchange with the backward pass.
    pub(crate) fn overlaps(&self) -> bool {
        self.tuner.overlaps()
    }

    /// Calls `run` with the replicas. If overlapped, each replica gets a queue for its final
    /// gradients, and a thread sums them over all replicas and ranks meanwhile.
    pub(crate) fn run_with_exchange<T>(
        &mut self,
        overlapped: bool,
        replicas: &mut Replicas,
        run: impl FnOnce(&mut Replicas, Vec<Option<BucketQueue>>) -> T,
    ) -> (T, Option<EarlySums>) {
        if !overlapped {
            let queues = (0..replicas.len()).map(|_| None).collect();
            return (run(replicas, queues), None);
        }
        let (isa, buckets, exchange) = (replicas.isa(), &self.buckets, &mut self.exchange);
        let (queues, receivers): (Vec<_>, Vec<_>) = (0..replicas.len())
            .map(|_| bucket_queue(buckets))
            .map(|(queue, receiver)| (Some(queue), receiver))
            .unzip();
        std::thread::scope(|scope| {
            let sums = scope.spawn(move || exchange.reduce_scatter_overlapped(isa, buckets, &receivers));
            let result = run(replicas, queues);
            let done = Instant::now();
            let early = joined(sums).map(|arrived| EarlySums { arrived, waited: done.elapsed() });
            (result, early)
        })
    }

    /// The totals of all processes. They also exchange the duration of the last step, on which the
    /// decision to overlap is based.
    pub(crate) fn sum_totals(&mut self, mine: Totals) -> Totals {
        if self.exchange.is_single_process() {
            return Totals { stop: self.stopping, ..mine };
        }
        let stop = f64::from(u8::from(self.stopping));
        let last = self.last.map_or(0.0, |(_, seconds)| seconds);
        let (busy, gemm_time) = (mine.busy.as_secs_f64(), mine.gemm_time.as_secs_f64());
        let (mut all, mut slowest) = (Totals::default(), 0f64);
        for numbers in self.exchange.all_gather_numbers(&[mine.loss, mine.nll, busy, gemm_time, stop, last]) {
            let [loss, nll, busy, gemm_time, stop, last] = numbers[..] else { continue };
            all.loss += loss;
            all.nll += nll;
            all.busy += Duration::from_secs_f64(busy);
            all.gemm_time += Duration::from_secs_f64(gemm_time);
            all.stop |= stop > 0.0;
            slowest = slowest.max(last);
        }
        if let Some((overlapped, _)) = self.last {
            self.tuner.record(overlapped, slowest);
        }
        all
    }

    /// Sums the gradients over all replicas of all processes, unless `early` already is that sum.
    /// The result is in the pieces that this process owns; returns `Σ g²` over all pieces.
    pub(crate) fn sum_gradients(&mut self, replicas: &mut Replicas, early: Option<EarlySums>) -> f64 {
        match early {
            Some(EarlySums { arrived, waited }) => {
                self.exchange.apply_reduced(arrived, waited, replicas.gradient_mut())
            }
            None if self.exchange.is_single_process() => replicas.sum_and_square(),
            None => {
                replicas.sum();
                self.exchange.reduce_scatter(replicas.isa(), replicas.len(), replicas.gradient_mut())
            }
        }
    }

    /// Runs the optimizer on the pieces that this process owns; the other weights come from their
    /// owners.
    pub(crate) fn update(&mut self, optimizer: &mut Optimizer, gradient: &mut [f32], norm: f64, rate: f32) {
        if optimizer.needs_whole_gradient() && !self.exchange.is_single_process() {
            self.exchange.all_gather(gradient);
        }
        self.exchange.before_update(optimizer.weights());
        let owns = self.exchange.owns();
        optimizer.step_where(gradient, norm, rate, |piece| owns[piece]);
        self.exchange.all_gather_weights(optimizer.parts_mut().1);
    }

    /// Gathers the optimizer's moments, of which each process only updates its own shard.
    pub(crate) fn collect_moments(&mut self, optimizer: &mut Optimizer) {
        if !self.exchange.is_single_process() {
            let (_, _, moments) = optimizer.parts_mut();
            moments.into_iter().for_each(|moments| self.exchange.all_gather(moments));
        }
    }

    /// Ends a step that took this many seconds per token; returns the time that this process spent
    /// on the exchange.
    pub(crate) fn end_step(&mut self, overlapped: bool, seconds: f64) -> Duration {
        self.last = Some((overlapped, seconds));
        self.exchange.take_time()
    }
}
