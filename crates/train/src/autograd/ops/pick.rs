//! Selects rows of a value, for classifiers of whole sentences.

use crate::autograd::{Backward, Forward, Op, Var};
use regard_kernels::add;
use std::sync::Arc;

/// `y_i = x_{rows[i]}`: `x [.., d]`, `y [rows, d]`.
#[derive(Debug)]
pub struct Pick {
    /// x
    pub x: Var,
    /// The selected rows; a row may occur more than once.
    pub rows: Arc<[usize]>,
}

impl Op for Pick {
    fn name(&self) -> &'static str {
        "pick"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        (self.rows.len(), cx.value(self.x).cols())
    }

    fn saves(&self, _: &Forward<'_>) -> usize {
        0
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], _: &mut [f32]) {
        let x = cx.value(self.x);
        for (y, &row) in y.chunks_exact_mut(x.cols().max(1)).zip(&*self.rows) {
            y.copy_from_slice(x.row(row));
        }
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], _: &[f32], dy: &mut [f32]) {
        let d = cx.value(self.x).cols();
        let mut dx = cx.take_zeroed(self.x);
        for (dy, &row) in dy.chunks_exact(d.max(1)).zip(&*self.rows) {
            add(cx.isa, &mut dx[row * d..][..d], dy);
        }
        cx.put(self.x, dx);
    }
}
