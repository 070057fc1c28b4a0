//! The tokens around each token side by side: what a convolution multiplies with its kernel.

use crate::autograd::{Backward, Forward, Op, Var};
use regard_kernels::{Mat, add};
use std::ops::Range;
use std::sync::Arc;

/// `y_t = (x_{t−s}, …, x_t, …, x_{t+s})` within a sentence, zeros beyond its ends: `x [rows, d]`, `y [rows, width · d]`.
#[derive(Debug)]
pub struct Neighbours {
    /// x
    pub x: Var,
    /// How many tokens, an odd number.
    pub width: usize,
    /// How far they are apart.
    pub dilation: usize,
    /// Where the sentences begin and end.
    pub offsets: Arc<[usize]>,
}

/// For each token and each of its neighbours that is there: its row, which neighbour, and that one's row.
fn pairs(
    offsets: &[usize],
    width: usize,
    dilation: usize,
) -> impl Iterator<Item = (usize, usize, Option<usize>)> {
    let middle = width / 2;
    let inside = move |sentence: Range<usize>, row: usize, i: usize| {
        let there = (row + i * dilation).checked_sub(middle * dilation)?;
        sentence.contains(&there).then_some(there)
    };
    offsets.windows(2).map(|w| w[0]..w[1]).flat_map(move |sentence| {
        sentence.clone().flat_map(move |row| {
            let sentence = sentence.clone();
            (0..width).map(move |i| (row, i, inside(sentence.clone(), row, i)))
        })
    })
}

/// Fills `y [rows, width · d]`.
pub(crate) fn gather(x: Mat<'_>, offsets: &[usize], width: usize, dilation: usize, y: &mut [f32]) {
    let d = x.cols();
    for (row, i, there) in pairs(offsets, width, dilation) {
        let to = &mut y[(row * width + i) * d..][..d];
        match there {
            Some(there) => to.copy_from_slice(x.row(there)),
            None => to.fill(0.0),
        }
    }
}

impl Op for Neighbours {
    fn name(&self) -> &'static str {
        "neighbours"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let x = cx.value(self.x);
        (x.rows(), self.width * x.cols())
    }

    fn saves(&self, _: &Forward<'_>) -> usize {
        0
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], _: &mut [f32]) {
        gather(cx.value(self.x), &self.offsets, self.width, self.dilation, y);
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], _: &[f32], dy: &mut [f32]) {
        let d = cx.value(self.x).cols();
        let mut dx = cx.take_zeroed(self.x);
        for (row, i, there) in pairs(&self.offsets, self.width, self.dilation) {
            if let Some(there) = there {
                add(cx.isa, &mut dx[there * d..][..d], &dy[(row * self.width + i) * d..][..d]);
            }
        }
        cx.put(self.x, dx);
    }
}
