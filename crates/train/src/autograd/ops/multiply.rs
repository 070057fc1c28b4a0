//! `y = a ∘ b`, and `y = factor · x`

use crate::autograd::{Backward, Forward, Op, Var};
use regard_kernels::{add_product, add_scaled, multiply};

/// The elementwise product of two values, used in gated feed-forward layers.
#[derive(Debug)]
pub struct Multiply {
    /// a `[rows, d]`
    pub a: Var,
    /// b `[rows, d]`
    pub b: Var,
}

impl Op for Multiply {
    fn name(&self) -> &'static str {
        "multiply"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let a = cx.value(self.a);
        (a.rows(), a.cols())
    }

    fn saves(&self, _: &Forward<'_>) -> usize {
        0
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], _: &mut [f32]) {
        y.copy_from_slice(cx.value(self.a).data());
        multiply(cx.isa, y, cx.value(self.b).data());
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], _: &[f32], dy: &mut [f32]) {
        for (var, other) in [(self.a, self.b), (self.b, self.a)] {
            let mut dx = cx.take_zeroed(var);
            add_product(cx.isa, &mut dx, dy, cx.value(other).data());
            cx.put(var, dx);
        }
    }
}

/// A value times a scalar.
#[derive(Debug)]
pub struct Scale {
    /// x `[rows, d]`
    pub x: Var,
    /// The scalar.
    pub factor: f32,
}

impl Op for Scale {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let x = cx.value(self.x);
        (x.rows(), x.cols())
    }

    fn saves(&self, _: &Forward<'_>) -> usize {
        0
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], _: &mut [f32]) {
        y.fill(0.0);
        add_scaled(cx.isa, y, cx.value(self.x).data(), self.factor);
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], _: &[f32], dy: &mut [f32]) {
        let mut dx = cx.take_zeroed(self.x);
        add_scaled(cx.isa, &mut dx, dy, self.factor);
        cx.put(self.x, dx);
    }
}
