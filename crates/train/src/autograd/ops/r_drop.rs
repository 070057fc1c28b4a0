//! R-Drop: the loss of two passes that should agree.

use super::CrossEntropy;
use crate::autograd::sampled_softmax::OutputLayer;
use crate::autograd::{Backward, Forward, Op};
use regard_kernels::{Accumulate, Mat, MatMut, RDropLoss, r_drop_row};

/// Pairs of rows whose logits exist at the same time.
const PAIRS: usize = 96;

/// Cross-entropy of the rows of two passes over the same tokens, with the rows of the second after
/// those of the first, plus their divergence: each pair of rows adds `½·(KL(p‖q) + KL(q‖p))` times
/// `weight`, half to each row.
#[derive(Debug)]
pub struct RDrop {
    /// The cross-entropy of all rows.
    pub loss: CrossEntropy,
    /// The weight of the divergence.
    pub weight: f32,
}

impl Op for RDrop {
    fn name(&self) -> &'static str {
        "r_drop"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        self.loss.shape(cx)
    }

    fn saves(&self, cx: &Forward<'_>) -> usize {
        self.loss.saves(cx)
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let d = cx.value(self.loss.x).cols();
        let output = self.loss.output(cx.weights, d);
        output.with_gradient(cx, (self.loss.table, d), |cx, de| self.run(cx, &output, y, saved, de));
    }

    fn backward(&self, cx: &mut Backward<'_>, dy: &[f32], saved: &[f32], dx: &mut [f32]) {
        self.loss.backward(cx, dy, saved, dx);
    }
}

impl RDrop {
    /// Computes the losses and, if there is a gradient `[words, d]` of the output layer to
    /// accumulate in, all gradients.
    fn run(
        &self,
        cx: &mut Forward<'_>,
        output: &OutputLayer<'_>,
        y: &mut [f32],
        saved: &mut [f32],
        mut gradient: Option<&mut [f32]>,
    ) {
        let x = cx.value(self.loss.x);
        let (half, d) = (x.rows() / 2, x.cols());
        let OutputLayer { table, columns, words, bias, .. } = *output;
        let CrossEntropy { smoothing, scale, .. } = self.loss;
        let loss = RDropLoss { smoothing, weight: self.weight, scale };
        let targets = output.places(&self.loss.targets);
        let mut logits = std::mem::take(&mut cx.scratch.logits);
        // Groups of about equal size: each reads the whole output matrix.
        let group = half.div_ceil(half.div_ceil(PAIRS).max(1));
        if logits.len() < 2 * group * words {
            logits.resize(2 * group * words, 0.0);
        }
        let mut exponentials = Vec::with_capacity(2 * words);
        // The rows of both passes, contiguous, so that one matmul reads or writes them all; then
        // their gradients.
        let mut rows_of_both = vec![0.0; 2 * group * d];

        for first in (0..half).step_by(group.max(1)) {
            let rows = group.min(half - first);
            let starts = [first, half + first];
            let logits = &mut logits[..2 * rows * words];
            let both = &mut rows_of_both[..2 * rows * d];
            for (r, to) in both.chunks_exact_mut(d.max(1)).enumerate() {
                to.copy_from_slice(x.row(starts[r / rows] + r % rows));
            }
            let shape = (2 * rows, words);
            let to = MatMut::new(logits, shape.0, shape.1);
            let x = Mat::new(both, 2 * rows, d);
            cx.gemm.matmul(to, x, columns, Accumulate::Overwrite, cx.threads);
            if let Some(bias) = bias {
                let rows = logits.chunks_exact_mut(words);
                rows.for_each(|row| regard_kernels::add(cx.isa, row, &bias[..words]));
            }
            let (one, two) = logits.split_at_mut(rows * words);
            let pairs = one.chunks_exact_mut(words).zip(two.chunks_exact_mut(words));
            for (r, (a, b)) in pairs.enumerate() {
                let target = targets[first + r] as usize;
                let row = r_drop_row(cx.isa, a, b, target, loss, &mut exponentials);
                y[first + r] = row.losses[0] + 0.5 * row.divergence;
                y[half + first + r] = row.losses[1] + 0.5 * row.divergence;
                cx.scratch.nll += f64::from(row.nll[0]) + f64::from(row.nll[1]);
            }
            let Some(de) = gradient.as_deref_mut() else { continue };
            let grad = Mat::new(logits, shape.0, shape.1);
            cx.gemm.matmul(MatMut::new(de, words, d), grad.t(), x, Accumulate::Add, cx.threads);
            let dx = MatMut::new(both, 2 * rows, d);
            cx.gemm.matmul(dx, grad, table, Accumulate::Overwrite, cx.threads);
            for (from, start) in both.chunks_exact(rows * d).zip(starts) {
                saved[start * d..][..rows * d].copy_from_slice(from);
            }
        }
        cx.scratch.logits = logits;
    }
}
