//! `y = dropout(activation(x·Wᵀ + b))`

use crate::autograd::{Backward, Forward, Op, Param, Var};
use regard_kernels::{Accumulate, Activation, Dropout, Mat, MatMut, activate, activate_backward};

/// A linear layer with its activation and dropout: `x [rows, in]`, `W [out, in]`, `b [out]`,
/// `y [rows, out]`.
#[derive(Debug)]
pub struct Linear {
    /// x
    pub x: Var,
    /// W
    pub weight: Param,
    /// b, optional.
    pub bias: Option<Param>,
    /// The rows of W.
    pub outputs: usize,
    /// The activation.
    pub activation: Activation,
    /// Dropout of the output.
    pub dropout: Option<Dropout>,
}

impl Linear {
    /// The shape of W.
    fn matrix(&self) -> [usize; 2] {
        [self.outputs, self.weight.len / self.outputs]
    }

    /// Whether it is a plain matmul.
    fn is_product(&self) -> bool {
        self.bias.is_none() && self.activation == Activation::Identity && self.dropout.is_none()
    }
}

impl Op for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        (cx.value(self.x).rows(), self.outputs)
    }

    fn saves(&self, cx: &Forward<'_>) -> usize {
        if self.activation.needs_input() { cx.value(self.x).rows() * self.outputs } else { 0 }
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let x = cx.value(self.x);
        let to = MatMut::new(y, x.rows(), self.outputs);
        let weight = cx.weights.right_transposed(self.weight, self.matrix());
        cx.gemm.matmul(to, x, weight, Accumulate::Overwrite, cx.threads);
        let before = self.activation.needs_input().then_some(saved);
        match self.bias {
            Some(bias) => activate(cx.isa, y, cx.weight(bias), self.activation, self.dropout, before),
            None if self.is_product() => {}
            None => activate(cx.isa, y, &vec![0.0; self.outputs], self.activation, self.dropout, before),
        }
    }

    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]) {
        let known = if self.activation.needs_input() { saved } else { y };
        let (activation, dropout) = (self.activation, self.dropout);
        match self.bias {
            Some(bias) => activate_backward(cx.isa, dy, known, activation, dropout, cx.gradient(bias)),
            None if self.is_product() => {}
            None => activate_backward(cx.isa, dy, known, activation, dropout, &mut vec![0.0; self.outputs]),
        }
        let x = cx.value(self.x);
        let dz = Mat::new(dy, x.rows(), self.outputs);
        let dw = MatMut::new(&mut cx.gradients[self.weight.range()], dz.cols(), x.cols());
        cx.gemm.matmul(dw, dz.t(), x, Accumulate::Add, cx.threads);
        let (mut dx, into) = cx.take(self.x);
        let to = MatMut::new(&mut dx, x.rows(), x.cols());
        let weight = cx.weights.right(self.weight, self.matrix());
        cx.gemm.matmul(to, dz, weight, into, cx.threads);
        cx.put(self.x, dx);
    }
}
