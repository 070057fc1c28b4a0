//! `y = x + dropout(f)`

use crate::autograd::{Backward, Forward, Op, Var};
use regard_kernels::{Accumulate, Dropout, add, dropout};

/// The residual sum of a pre-norm layer.
#[derive(Debug)]
pub struct Residual {
    /// x `[rows, d]`
    pub x: Var,
    /// f `[rows, d]`
    pub branch: Var,
    /// Dropout of f.
    pub dropout: Option<Dropout>,
}

impl Op for Residual {
    fn name(&self) -> &'static str {
        "residual"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let x = cx.value(self.x);
        (x.rows(), x.cols())
    }

    fn saves(&self, _: &Forward<'_>) -> usize {
        0
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], _: &mut [f32]) {
        let f = cx.value(self.branch);
        y.copy_from_slice(cx.value(self.x).data());
        match self.dropout {
            Some(p) => dropout(cx.isa, y, f.data(), f.cols(), p, Accumulate::Add),
            None => add(cx.isa, y, f.data()),
        }
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], _: &[f32], dy: &mut [f32]) {
        let cols = cx.value(self.x).cols();
        for (var, p) in [(self.x, None), (self.branch, self.dropout)] {
            let (mut dx, into) = cx.take(var);
            match (p, into) {
                (Some(p), into) => dropout(cx.isa, &mut dx, dy, cols, p, into),
                (None, Accumulate::Add) => add(cx.isa, &mut dx, dy),
                (None, Accumulate::Overwrite) => dx.copy_from_slice(dy),
            }
            cx.put(var, dx);
        }
    }
}
