//! Concatenates the tokens around each token (im2col), for convolutions.

use crate::autograd::{Backward, Forward, Op, Var};
use regard_core::batch::{unfold, unfold_pairs};
use regard_kernels::add;
use std::sync::Arc;

/// `y_t = (x_{t−s}, …, x_t, …, x_{t+s})` within a sentence, zeros beyond its ends: `x [rows, d]`,
/// `y [rows, width · d]`.
#[derive(Debug)]
pub struct Unfold {
    /// x
    pub x: Var,
    /// The number of tokens, an odd number.
    pub width: usize,
    /// The distance between them.
    pub dilation: usize,
    /// Where the sentences begin and end.
    pub offsets: Arc<[usize]>,
}

impl Op for Unfold {
    fn name(&self) -> &'static str {
        "unfold"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let x = cx.value(self.x);
        (x.rows(), self.width * x.cols())
    }

    fn saves(&self, _: &Forward<'_>) -> usize {
        0
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], _: &mut [f32]) {
        unfold(cx.value(self.x), &self.offsets, self.width, self.dilation, y);
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], _: &[f32], dy: &mut [f32]) {
        let d = cx.value(self.x).cols();
        let mut dx = cx.take_zeroed(self.x);
        for (row, i, there) in unfold_pairs(&self.offsets, self.width, self.dilation) {
            if let Some(there) = there {
                add(cx.isa, &mut dx[there * d..][..d], &dy[(row * self.width + i) * d..][..d]);
            }
        }
        cx.put(self.x, dx);
    }
}
