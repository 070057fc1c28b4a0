//! R-Drop: the loss of two passes that should agree.

use super::CrossEntropy;
use crate::autograd::sampled_softmax::OutputLayer;
use crate::autograd::{Backward, Forward, Op};
use regard_kernels::{Accumulate, Mat, MatMut, log_softmax_rows, softmax_rows};

/// Pairs of rows whose logits exist at the same time.
const PAIRS: usize = 64;

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

/// The distributions of the rows of one pass, and their logarithms.
#[derive(Default)]
struct Pass {
    p: Vec<f32>,
    log_p: Vec<f32>,
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
        self.loss.forward(cx, y, saved);
        let d = cx.value(self.loss.x).cols();
        let output = self.loss.output(cx.weights, d);
        output
            .with_gradient(cx, (self.loss.table, d), |cx, de| self.add_divergence(cx, &output, y, saved, de));
    }

    fn backward(&self, cx: &mut Backward<'_>, dy: &[f32], saved: &[f32], dx: &mut [f32]) {
        self.loss.backward(cx, dy, saved, dx);
    }
}

impl RDrop {
    /// Adds the divergence to the losses and, if there is a gradient `[words, d]` of the output
    /// layer to accumulate in, to all gradients.
    fn add_divergence(
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
        let mut passes = [Pass::default(), Pass::default()];
        for first in (0..half).step_by(PAIRS) {
            let rows = PAIRS.min(half - first);
            let starts = [first, half + first];
            for (pass, start) in passes.iter_mut().zip(starts) {
                pass.log_p.resize(rows * words, 0.0);
                let to = MatMut::new(&mut pass.log_p, rows, words);
                cx.gemm.matmul(to, x.rows_from(start, rows), columns, Accumulate::Overwrite, cx.threads);
                if let Some(bias) = bias {
                    let rows = pass.log_p.chunks_exact_mut(words);
                    rows.for_each(|row| regard_kernels::add(cx.isa, row, &bias[..words]));
                }
                pass.p.clone_from(&pass.log_p);
                log_softmax_rows(cx.isa, &mut pass.log_p, words);
                softmax_rows(cx.isa, &mut pass.p, words);
            }
            let [one, two] = &mut passes;
            let pairs = one.log_p.chunks_exact_mut(words).zip(two.log_p.chunks_exact_mut(words));
            let distributions = one.p.chunks_exact(words).zip(two.p.chunks_exact(words));
            for (r, ((a, b), (p, q))) in pairs.zip(distributions).enumerate() {
                let divergence = self.weight * 0.5 * grads(a, b, p, q, 0.5 * self.weight * self.loss.scale);
                y[first + r] += 0.5 * divergence;
                y[half + first + r] += 0.5 * divergence;
            }
            let Some(de) = gradient.as_deref_mut() else { continue };
            for (pass, start) in passes.iter().zip(starts) {
                let grad = Mat::new(&pass.log_p, rows, words);
                let dx = MatMut::new(&mut saved[start * d..][..rows * d], rows, d);
                cx.gemm.matmul(dx, grad, table, Accumulate::Add, cx.threads);
                let x = x.rows_from(start, rows);
                cx.gemm.matmul(MatMut::new(&mut *de, words, d), grad.t(), x, Accumulate::Add, cx.threads);
            }
        }
    }
}

/// Returns `KL(p‖q) + KL(q‖p)` for the distributions whose logarithms are `a` and `b`, and replaces
/// these by `factor` times the gradients with respect to their logits.
fn grads(a: &mut [f32], b: &mut [f32], p: &[f32], q: &[f32], factor: f32) -> f32 {
    let (mut forth, mut back) = (0.0, 0.0);
    for ((a, b), (p, q)) in a.iter().zip(&*b).zip(p.iter().zip(q)) {
        forth += p * (a - b);
        back += q * (b - a);
    }
    for ((a, b), (p, q)) in a.iter_mut().zip(b.iter_mut()).zip(p.iter().zip(q)) {
        let apart = *a - *b;
        *a = factor * (p * (apart - forth) + p - q);
        *b = factor * (q * (-apart - back) + q - p);
    }
    forth + back
}
