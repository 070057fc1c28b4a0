//! The elementwise recurrence of an SSRU decoder: its matmuls run before it, over whole sentences.

use crate::autograd::{Backward, Forward, Op, Var};
use regard_kernels::{SsruSaved, ssru_backward, ssru_forward};
use std::sync::Arc;

/// `f = σ(z)`, `c ← f∘c + (1 − f)∘x`, `y = relu(c)`, with `c = 0` before each sentence: all
/// `[rows, d]`.
#[derive(Debug)]
pub struct Ssru {
    /// x: the candidates.
    pub candidates: Var,
    /// z: the forget gates before their sigmoid.
    pub forget: Var,
    /// Where the sentences begin and end.
    pub offsets: Arc<[usize]>,
}

impl Op for Ssru {
    fn name(&self) -> &'static str {
        "ssru"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let x = cx.value(self.candidates);
        (x.rows(), x.cols())
    }

    /// Forget gates and states.
    fn saves(&self, cx: &Forward<'_>) -> usize {
        2 * cx.value(self.candidates).data().len()
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let (x, z) = (cx.value(self.candidates), cx.value(self.forget));
        let (forget, states) = saved.split_at_mut(y.len());
        ssru_forward(cx.isa, x, z, &self.offsets, forget, states, y);
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], saved: &[f32], dy: &mut [f32]) {
        let x = cx.value(self.candidates);
        let (forget, states) = saved.split_at(dy.len());
        let (mut dx, mut dz) = (cx.take_zeroed(self.candidates), cx.take_zeroed(self.forget));
        let mut carry = vec![0.0; x.cols()];
        let saved = SsruSaved { x, forget, states };
        ssru_backward(cx.isa, saved, &self.offsets, dy, &mut carry, &mut dx, &mut dz);
        cx.put(self.candidates, dx);
        cx.put(self.forget, dz);
    }
}
