//! The weights as seen by operations, and their matrices packed for GEMM.

use super::{Param, SampledSoftmax};
use regard_kernels::{BOperand, Gemm, Mat, PackedB};
use std::collections::BTreeMap;

/// All weights, and optionally some of their matrices packed for GEMM.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// All weights, flat.
    pub flat: &'a [f32],
    ready: Option<&'a PackedWeights>,
    pub(super) sample: Option<&'a SampledSoftmax>,
}

impl<'a> From<&'a [f32]> for Weights<'a> {
    fn from(flat: &'a [f32]) -> Self {
        Weights { flat, ready: None, sample: None }
    }
}

impl<'a> From<&'a Vec<f32>> for Weights<'a> {
    fn from(flat: &'a Vec<f32>) -> Self {
        Weights { flat, ready: None, sample: None }
    }
}

impl<'a> Weights<'a> {
    /// Adds matrices packed from these weights.
    pub fn with_packed(flat: &'a [f32], ready: &'a PackedWeights) -> Self {
        Weights { flat, ready: Some(ready), sample: None }
    }

    /// Adds a sample of words for the loss.
    pub fn with_sample(self, sample: Option<&'a SampledSoftmax>) -> Self {
        Weights { sample, ..self }
    }

    /// The matrix `W` of that shape at the beginning of a parameter, as the right operand of `x·W`.
    pub fn right(self, param: Param, shape: [usize; 2]) -> BOperand<'a> {
        self.ready(param, shape).map_or_else(|| self.matrix(param, shape).into(), |ready| ready.right.whole())
    }

    /// The same as the right operand of `x·Wᵀ`.
    pub fn right_transposed(self, param: Param, shape: [usize; 2]) -> BOperand<'a> {
        let ready = self.ready(param, shape);
        ready.map_or_else(|| self.matrix(param, shape).t().into(), |ready| ready.transposed.whole())
    }

    fn ready(self, param: Param, shape: [usize; 2]) -> Option<&'a PackedWeight> {
        self.ready.and_then(|all| all.matrices.get(&param.offset)).filter(|ready| ready.shape == shape)
    }

    fn matrix(self, param: Param, shape: [usize; 2]) -> Mat<'a> {
        matrix(self.flat, param.offset, shape)
    }
}

fn matrix(weights: &[f32], offset: usize, [rows, cols]: [usize; 2]) -> Mat<'_> {
    Mat::new(&weights[offset..][..rows * cols], rows, cols)
}

/// Matrices packed for GEMM once per step and read by all replicas.
#[derive(Debug)]
pub struct PackedWeights {
    gemm: Gemm,
    /// Keyed by where they begin in the weights.
    matrices: BTreeMap<usize, PackedWeight>,
}

#[derive(Debug)]
struct PackedWeight {
    shape: [usize; 2],
    right: PackedB,
    transposed: PackedB,
}

/// One independent unit of work of [`PackedWeights::repack`].
#[derive(Debug)]
pub struct Repack<'a> {
    gemm: Gemm,
    matrix: Mat<'a>,
    to: &'a mut PackedB,
}

impl Repack<'_> {
    /// Packs the matrix.
    pub fn run(self) {
        self.gemm.pack_b(self.matrix, self.to);
    }
}

impl PackedWeights {
    /// Reserves an entry for the matrix at the beginning of each of these parameters. They must be
    /// [repacked](Self::repack) before use.
    pub fn new(gemm: Gemm, matrices: impl IntoIterator<Item = (Param, [usize; 2])>) -> Self {
        let empty = |shape| PackedWeight { shape, right: PackedB::default(), transposed: PackedB::default() };
        let matrices = matrices.into_iter().map(|(param, shape)| (param.offset, empty(shape))).collect();
        PackedWeights { gemm, matrices }
    }

    /// The work to do when the weights have changed.
    pub fn repack<'a>(&'a mut self, weights: &'a [f32]) -> impl Iterator<Item = Repack<'a>> {
        let gemm = self.gemm;
        self.matrices.iter_mut().flat_map(move |(&offset, PackedWeight { shape, right, transposed })| {
            let matrix = matrix(weights, offset, *shape);
            [(matrix, right), (matrix.t(), transposed)].map(|(matrix, to)| Repack { gemm, matrix, to })
        })
    }
}
