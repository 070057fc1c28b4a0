//! `y = dropout(activation(x·Wᵀ + b))`

use crate::autograd::{Backward, Forward, Op, Param, Var};
use regard_kernels::{Accumulate, Activation, Dropout, Mat, MatMut, activate, activate_backward};

/// A linear layer with its activation and dropout: `x [rows, in]`, `W [out, in]`, `b [out]`, `y [rows, out]`.
#[derive(Debug)]
pub struct Linear {
    /// x
    pub x: Var,
    /// W
    pub weight: Param,
    /// b
    pub bias: Param,
    /// What comes after the sum.
    pub activation: Activation,
    /// Dropout of the output.
    pub dropout: Option<Dropout>,
}

impl Linear {
    /// The shape of W.
    fn matrix(&self) -> [usize; 2] {
        [self.bias.len, self.weight.len / self.bias.len]
    }
}

impl Op for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        (cx.value(self.x).rows(), self.bias.len)
    }

    fn saves(&self, cx: &Forward<'_>) -> usize {
        if self.activation.needs_input() { cx.value(self.x).rows() * self.bias.len } else { 0 }
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let x = cx.value(self.x);
        let to = MatMut::new(y, x.rows(), self.bias.len);
        let weight = cx.weights.right_transposed(self.weight, self.matrix());
        cx.products.matmul(to, x, weight, Accumulate::Overwrite, cx.threads);
        let before = self.activation.needs_input().then_some(saved);
        activate(cx.isa, y, cx.weight(self.bias), self.activation, self.dropout, before);
    }

    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]) {
        let known = if self.activation.needs_input() { saved } else { y };
        activate_backward(cx.isa, dy, known, self.activation, self.dropout, cx.gradient(self.bias));
        let x = cx.value(self.x);
        let dz = Mat::new(dy, x.rows(), self.bias.len);
        let dw = MatMut::new(&mut cx.gradients[self.weight.range()], dz.cols(), x.cols());
        cx.products.matmul(dw, dz.t(), x, Accumulate::Add, cx.threads);
        let (mut dx, into) = cx.take(self.x);
        let to = MatMut::new(&mut dx, x.rows(), x.cols());
        let weight = cx.weights.right(self.weight, self.matrix());
        cx.products.matmul(to, dz, weight, into, cx.threads);
        cx.put(self.x, dx);
    }
}
