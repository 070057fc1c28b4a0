//! The replicas of a model: a tape and a gradient for each core, and the sum of their gradients in
//! a fixed order.

use crate::autograd::Tape;
use crate::threads::{PIECE, joined, over_threads};
use regard_kernels::{Gemm, Isa, add, sum_of_squares};

/// Every replica has a gradient buffer: with more cores than this, a replica spans several.
const MAX_REPLICAS: usize = 8;

/// The per-replica state of a step.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) tape: Tape,
    pub(crate) gradients: Vec<f32>,
}

/// All replicas of this process; at least one.
#[derive(Debug)]
pub(crate) struct Replicas {
    isa: Isa,
    list: Vec<Replica>,
}

impl Replicas {
    /// Replicas of a model with this many weights, on `threads` cores.
    pub(crate) fn new(isa: Isa, threads: usize, weights: usize) -> Self {
        let replicas = threads.clamp(1, MAX_REPLICAS);
        // If cores do not divide evenly, the first replicas get the remainder.
        let cores = |i: usize| (threads / replicas + usize::from(i < threads % replicas)).max(1);
        Self::with_cores(isa, (0..replicas).map(cores), weights)
    }

    /// One replica for each element of `cores`, whose matmuls use that many threads.
    pub(crate) fn with_cores(isa: Isa, cores: impl Iterator<Item = usize>, weights: usize) -> Self {
        let replica = |cores| Replica { tape: Tape::new(isa, cores), gradients: vec![0.0; weights] };
        Replicas { isa, list: cores.map(replica).collect() }
    }

    /// The number of replicas.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The instruction set.
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// Sets the kind of matmul for future operations.
    pub(crate) fn set_gemm(&mut self, gemm: Gemm) {
        self.list.iter_mut().for_each(|replica| replica.tape.set_gemm(gemm));
    }

    /// Frees the memory of the tapes; the gradients stay.
    pub(crate) fn release(&mut self) {
        self.list.iter_mut().for_each(|replica| replica.tape.release());
    }

    /// The memory of the tapes in floats.
    pub(crate) fn tape_capacity(&self) -> usize {
        self.list.iter().map(|replica| replica.tape.capacity()).sum()
    }

    /// Runs `f` on all replicas in parallel, each with its number and one of the `inputs`; returns
    /// the results in order.
    pub(crate) fn run<I: Send, T: Send>(
        &mut self,
        inputs: impl IntoIterator<Item = I>,
        f: impl Fn(usize, &mut Replica, I) -> T + Sync,
    ) -> Vec<T> {
        let f = &f;
        let mut work = self.list.iter_mut().zip(inputs).enumerate();
        let first = work.next();
        std::thread::scope(|scope| {
            let handles: Vec<_> = work
                .map(|(number, (replica, input))| scope.spawn(move || f(number, replica, input)))
                .collect();
            // This thread runs the first replica.
            let first = first.map(|(number, (replica, input))| f(number, replica, input));
            first.into_iter().chain(handles.into_iter().map(joined)).collect()
        })
    }

    /// The gradient of the first replica: after a sum, that of all replicas.
    pub(crate) fn gradient(&self) -> &[f32] {
        &self.list[0].gradients
    }

    /// The same, mutable.
    pub(crate) fn gradient_mut(&mut self) -> &mut [f32] {
        &mut self.list[0].gradients
    }

    /// Adds the gradients of all replicas to the first one's, always in the same order.
    pub(crate) fn sum(&mut self) {
        self.sum_pieces(|_| ());
    }

    /// The same; returns `Σ g²`.
    pub(crate) fn sum_and_square(&mut self) -> f64 {
        let isa = self.isa;
        self.sum_pieces(|piece| sum_of_squares(isa, piece)).iter().sum()
    }

    /// The same; returns what `f` computes for each piece while it is in cache.
    fn sum_pieces<R: Send>(&mut self, f: impl Fn(&[f32]) -> R + Sync) -> Vec<R> {
        let (isa, threads) = (self.isa, self.list.len());
        let (first, others) = self.list.split_at_mut(1);
        let others: Vec<&[f32]> = others.iter().map(|r| &r.gradients[..]).collect();
        let work = first[0].gradients.chunks_mut(PIECE).enumerate();
        over_threads(threads, work, |(i, piece)| {
            for other in &others {
                add(isa, piece, &other[i * PIECE..][..piece.len()]);
            }
            f(piece)
        })
    }
}
