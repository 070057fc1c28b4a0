//! Gradient exchange: reduce-scatter, Adam on this rank's shard (ZeRO stage 1), all-gather of the
//! weights.
//!
//! The weight vector is divided into pieces, and every piece is owned by one rank. The owner
//! receives the gradients of its piece from all ranks and adds them in rank order, whatever the
//! network does, so equal runs are bitwise equal. Only the owner runs Adam on the piece, and then
//! all ranks receive the new weights. This moves as many bytes as an all-reduce, and no rank
//! repeats the work of another.
//!
//! With `bf16`, the gradients and then the weight updates are rounded before they are sent; sums,
//! moments and weights stay `f32`. All ranks, including the owner, apply the rounded update, so all
//! hold the same weights.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use regard_core::DType;
use regard_kernels::{Isa, add, bf16, sum_of_squares};

use super::Communicator;
use super::overlap::GradientBucket;
use crate::threads::{PIECE, over_threads};

/// The minimum number of pieces sent together: 16 MB.
pub(crate) const BUCKET: usize = 128;

/// This rank's part in the exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) communicator: Arc<dyn Communicator>,
    /// The format of gradients and weights between ranks: f32 or bf16.
    wire: DType,
    /// The number of weights of the model.
    length: usize,
    /// The number of elements in a bucket: every rank owns a part of it.
    bucket: usize,
    received: Vec<f32>,
    bf16_buffers: (Vec<u16>, Vec<u16>),
    /// This rank's weights before the update, if the wire format is `bf16`.
    before: Vec<f32>,
    spent: Duration,
}

/// A bucket, and the number of its elements that each rank owns, in rank order.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    index: usize,
    pub(super) range: Range<usize>,
    counts: Vec<usize>,
    own: Range<usize>,
}

/// The sums over all ranks in the pieces that this rank owns, and `Σ g²` of each piece, bucket by
/// bucket.
#[derive(Debug)]
pub(super) struct OwnedSums {
    sums: Vec<(Range<usize>, Vec<f32>)>,
    squares: Vec<Vec<f64>>,
}

impl Exchange {
    /// An exchange of this many weights, in buckets of at least `pieces` pieces.
    pub(super) fn new(
        communicator: Arc<dyn Communicator>,
        wire: DType,
        length: usize,
        pieces: usize,
    ) -> Self {
        let bucket = PIECE * pieces.next_multiple_of(communicator.size());
        let (received, bf16_buffers, before, spent) = Default::default();
        Exchange { communicator, wire, length, bucket, received, bf16_buffers, before, spent }
    }

    pub(super) fn is_single_process(&self) -> bool {
        self.communicator.size() == 1
    }

    /// The time that [`reduce_scatter`](Self::reduce_scatter) and
    /// [`all_gather_weights`](Self::all_gather_weights) have taken since the last call.
    pub(super) fn take_time(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }

    pub(super) fn buckets(&self) -> impl Iterator<Item = Bucket> + use<> {
        let (length, bucket) = (self.length, self.bucket);
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        (0..length.div_ceil(bucket)).map(move |i| {
            let range = i * bucket..length.min((i + 1) * bucket);
            let pieces = range.len().div_ceil(PIECE);
            // Whole pieces, split as evenly as possible.
            let start = |r: usize| (range.start + pieces * r / ranks * PIECE).min(range.end);
            let counts = (0..ranks).map(|r| start(r + 1) - start(r)).collect();
            let own = start(rank)..start(rank + 1);
            Bucket { index: i, range, counts, own }
        })
    }

    /// For each piece, whether this rank owns it.
    pub(super) fn owns(&self) -> Vec<bool> {
        let mut owns = vec![false; self.length.div_ceil(PIECE)];
        for bucket in self.buckets() {
            owns[bucket.own.start / PIECE..bucket.own.end.div_ceil(PIECE)].fill(true);
        }
        owns
    }

    /// The number of bytes that this rank sends in a step, in which it may also gather the whole
    /// gradient.
    pub(super) fn bytes(&self, gather: bool) -> usize {
        let own: usize = self.buckets().map(|b| b.own.len()).sum();
        let gradients = self.length - own;
        let weights = own * (self.communicator.size() - 1);
        let gathered = if gather { weights * size_of::<f32>() } else { 0 };
        (gradients + weights) * self.wire.bytes() + gathered
    }

    /// Gathers the numbers of all ranks, in rank order. All ranks pass the same count.
    pub(super) fn all_gather_numbers(&self, mine: &[f64]) -> Vec<Vec<f64>> {
        let bytes: Vec<u8> = mine.iter().flat_map(|x| x.to_le_bytes()).collect();
        let numbers =
            |bytes: Vec<u8>| bytes.as_chunks::<8>().0.iter().map(|x| f64::from_le_bytes(*x)).collect();
        self.communicator.all_gather_bytes(&bytes).into_iter().map(numbers).collect()
    }

    /// Replaces the gradient in the pieces that this rank owns by its sum over all ranks, and
    /// returns `Σ g²` over all pieces.
    pub(super) fn reduce_scatter(&mut self, isa: Isa, threads: usize, gradients: &mut [f32]) -> f64 {
        let start = Instant::now();
        let mut squares = Vec::new();
        for bucket in self.buckets() {
            self.all_to_all(&bucket, threads, &gradients[bucket.range.clone()]);
            squares.extend(self.add_received(isa, threads, &mut gradients[bucket.own]));
        }
        let sum = self.sum_squares(&squares);
        self.spent += start.elapsed();
        sum
    }

    /// Replaces this rank's part of a bucket by the sum over all ranks; returns `Σ g²` of each
    /// piece.
    fn add_received(&self, isa: Isa, threads: usize, own: &mut [f32]) -> Vec<f64> {
        let (length, received) = (own.len(), &self.received);
        over_threads(threads, own.chunks_mut(PIECE).enumerate(), |(i, piece)| {
            let n = piece.len();
            let part = |rank: usize| &received[rank * length + i * PIECE..][..n];
            piece.copy_from_slice(part(0));
            for rank in 1..received.len() / length {
                add(isa, piece, part(rank));
            }
            sum_of_squares(isa, piece)
        })
    }

    /// Sums the buckets of all replicas and ranks as the replicas of this rank send them. `None` if
    /// a replica failed.
    pub(super) fn reduce_scatter_overlapped(
        &mut self,
        isa: Isa,
        gradient_buckets: &[GradientBucket],
        replicas: &[Receiver<Vec<f32>>],
    ) -> Option<OwnedSums> {
        let mut arrived = OwnedSums { sums: Vec::new(), squares: vec![Vec::new(); gradient_buckets.len()] };
        for GradientBucket { bucket, .. } in gradient_buckets {
            let mut of_replicas = replicas.iter().map(Receiver::recv);
            let mut sum = of_replicas.next()?.ok()?;
            for other in of_replicas {
                add(isa, &mut sum, &other.ok()?);
            }
            self.all_to_all(bucket, 1, &sum);
            sum.truncate(bucket.own.len());
            arrived.squares[bucket.index] = self.add_received(isa, 1, &mut sum);
            arrived.sums.push((bucket.own.clone(), sum));
        }
        Some(arrived)
    }

    /// Like [`reduce_scatter`](Self::reduce_scatter), for sums that have already arrived; `waited`
    /// is the time that the step had to wait for them.
    pub(super) fn apply_reduced(
        &mut self,
        arrived: OwnedSums,
        waited: Duration,
        gradients: &mut [f32],
    ) -> f64 {
        let start = Instant::now();
        for (own, sum) in arrived.sums {
            gradients[own].copy_from_slice(&sum);
        }
        let sum = self.sum_squares(&arrived.squares.concat());
        self.spent += waited + start.elapsed();
        sum
    }

    /// Adds the squares of all ranks in the order of the pieces.
    fn sum_squares(&self, mine: &[f64]) -> f64 {
        let all = self.all_gather_numbers(mine);
        let mut of_ranks: Vec<_> = all.iter().map(|squares| squares.iter()).collect();
        let mut sum = 0.0;
        for bucket in self.buckets() {
            for (rank, count) in bucket.counts.iter().enumerate() {
                // Add them one by one, as a single rank does.
                of_ranks[rank].by_ref().take(count.div_ceil(PIECE)).for_each(|x| sum += x);
            }
        }
        sum
    }

    fn is_bf16(&self) -> bool {
        self.wire == DType::Bf16
    }

    /// Fills `received` with the gradients of all ranks for this rank's part of a bucket.
    fn all_to_all(&mut self, bucket: &Bucket, threads: usize, gradients: &[f32]) {
        self.received.resize(bucket.own.len() * bucket.counts.len(), 0.0);
        if !self.is_bf16() {
            return self.communicator.all_to_all_f32(gradients, &bucket.counts, &mut self.received);
        }
        let (out, into) = &mut self.bf16_buffers;
        out.resize(gradients.len(), 0);
        into.resize(self.received.len(), 0);
        let work = out.chunks_mut(PIECE).zip(gradients.chunks(PIECE));
        over_threads(threads, work, |(out, x)| to_bf16(out, x.iter().copied()));
        self.communicator.all_to_all_u16(out, &bucket.counts, into);
        let work = self.received.chunks_mut(PIECE).zip(into.chunks(PIECE));
        over_threads(threads, work, |(x, from)| from_bf16(x, from));
    }

    /// Saves the weights that [`all_gather_weights`](Self::all_gather_weights) needs to compute
    /// their changes.
    pub(super) fn before_update(&mut self, weights: &[f32]) {
        self.before.clear();
        if self.is_bf16() && !self.is_single_process() {
            for bucket in self.buckets() {
                self.before.extend_from_slice(&weights[bucket.own]);
            }
        }
    }

    /// Distributes the updated weights from their owners to all ranks.
    pub(super) fn all_gather_weights(&mut self, weights: &mut [f32]) {
        let start = Instant::now();
        match (self.is_single_process(), self.is_bf16()) {
            (true, _) => {}
            (false, false) => self.all_gather(weights),
            (false, true) => self.all_gather_updates(weights),
        }
        self.spent += start.elapsed();
    }

    fn all_gather_updates(&mut self, weights: &mut [f32]) {
        let mut before = std::mem::take(&mut self.before);
        let mut rest = &before[..];
        for bucket in self.buckets() {
            let (old, after) = rest.split_at(bucket.own.len());
            rest = after;
            let (mine, all) = &mut self.bf16_buffers;
            mine.resize(old.len(), 0);
            all.resize(bucket.range.len(), 0);
            let own = &mut weights[bucket.own];
            to_bf16(mine, own.iter().zip(old).map(|(new, old)| new - old));
            own.copy_from_slice(old);
            self.communicator.all_gather_u16(mine, &bucket.counts, all);
            weights[bucket.range]
                .iter_mut()
                .zip(all.iter())
                .for_each(|(w, change)| *w += bf16::to_f32(*change));
        }
        before.clear();
        self.before = before;
    }

    /// Distributes a vector from the owners of its pieces to all ranks.
    pub(super) fn all_gather(&mut self, vector: &mut [f32]) {
        for bucket in self.buckets() {
            self.received.clear();
            self.received.extend_from_slice(&vector[bucket.own]);
            self.communicator.all_gather_f32(&self.received, &bucket.counts, &mut vector[bucket.range]);
        }
    }
}

fn to_bf16(to: &mut [u16], from: impl Iterator<Item = f32>) {
    to.iter_mut().zip(from).for_each(|(to, x)| *to = bf16::from_f32(x));
}

fn from_bf16(to: &mut [f32], from: &[u16]) {
    to.iter_mut().zip(from).for_each(|(to, x)| *to = bf16::to_f32(*x));
}

#[cfg(test)]
mod tests;
