//! The loss: logits, label-smoothed cross-entropy and its gradient, without materialising all
//! logits.

use crate::autograd::sampled_softmax::OutputLayer;
use crate::autograd::{Backward, Forward, Op, Param, Var, Weights};
use regard_kernels::{
    Accumulate, BOperand, BlockStatistics, Mat, MatMut, logits_to_exponentials, logits_to_gradient,
};
use std::sync::Arc;

/// Words in a block of the vocabulary, whose logits are used while they are in cache. Output
/// matrices can be packed in such blocks.
const WORDS: usize = BOperand::STEP;

/// The maximum number of rows whose logits exist at the same time. Each such group reads the whole
/// output matrix, which is cheap if it is already packed: fewer rows keep the logits in cache and
/// the memory small.
const ROWS: usize = 192;

/// Cross-entropy of `softmax(x·Eᵀ + b)` against the targets, with label smoothing; `x [m, d]`,
/// `E [v, d]`.
///
/// The output is the loss of each row. The gradient is computed in the forward pass, because the
/// logits are gone afterwards: it is the gradient of `scale · Σ` over the rows, whatever `dy` the
/// backward pass receives.
#[derive(Debug)]
pub struct CrossEntropy {
    /// x
    pub x: Var,
    /// E: the rows of the words, of which only the first `words` take part; the padding token comes
    /// after them.
    pub table: Param,
    /// b, which has no gradient; zero if not given.
    pub bias: Option<Arc<[f32]>>,
    /// The number of words in the softmax.
    pub words: usize,
    /// The target word of each row.
    pub targets: Arc<[u32]>,
    /// ε, the probability that is spread evenly over all words.
    pub smoothing: f32,
    /// The factor applied to the sum over all rows: one over the number of target tokens in the
    /// whole batch.
    pub scale: f32,
}

/// The blocks of the vocabulary, as start and width.
fn blocks(words: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..words).step_by(WORDS).map(move |start| (start, WORDS.min(words - start)))
}

impl Op for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        (cx.value(self.x).rows(), 1)
    }

    /// The gradient with respect to `x`.
    fn saves(&self, cx: &Forward<'_>) -> usize {
        let x = cx.value(self.x);
        if cx.gradients.is_some() { x.rows() * x.cols() } else { 0 }
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let d = cx.value(self.x).cols();
        let output = self.output(cx.weights, d);
        output.with_gradient(cx, (self.table, d), |cx, de| self.run(cx, &output, y, saved, de));
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], saved: &[f32], _: &mut [f32]) {
        let (mut dx, into) = cx.take(self.x);
        match into {
            Accumulate::Overwrite => dx.copy_from_slice(saved),
            Accumulate::Add => regard_kernels::add(cx.isa, &mut dx, saved),
        }
        cx.put(self.x, dx);
    }
}

impl CrossEntropy {
    /// The output layer with the words in use.
    pub(super) fn output<'a>(&'a self, weights: Weights<'a>, d: usize) -> OutputLayer<'a> {
        OutputLayer::new(weights, self.table, (self.words, d), self.bias.as_deref())
    }

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
        let x = cx.value(self.x);
        let d = x.cols();
        let OutputLayer { table, columns, words, bias, .. } = *output;
        let targets = output.places(&self.targets);
        let mut logits = std::mem::take(&mut cx.scratch.logits);
        // Groups of about equal size: a small last group would cost as much as a large one, since
        // each reads the whole matrix.
        let group = x.rows().div_ceil(x.rows().div_ceil(ROWS).max(1));
        if logits.len() < group * words {
            logits.resize(group * words, 0.0);
        }
        let mut statistics = vec![BlockStatistics::default(); words.div_ceil(WORDS) * group];
        let mut factors = vec![0.0f32; group];
        let even = self.smoothing / words as f32;

        for first in (0..x.rows()).step_by(group.max(1)) {
            let rows = group.min(x.rows() - first);
            let x = x.rows_from(first, rows);
            let targets = &targets[first..first + rows];
            let losses = &mut y[first..first + rows];
            // Add −(1−ε)·l_target now, while the logits exist, and the sum over the vocabulary
            // afterwards.
            for (block, (start, width)) in blocks(words).enumerate() {
                let to = &mut logits[start * rows..][..rows * width];
                let e = columns.columns(start, width);
                cx.gemm.matmul(MatMut::new(to, rows, width), x, e, Accumulate::Overwrite, cx.threads);
                if let Some(bias) = bias {
                    let bias = &bias[start..start + width];
                    to.chunks_exact_mut(width).for_each(|row| regard_kernels::add(cx.isa, row, bias));
                }
                for (r, &target) in targets.iter().enumerate() {
                    if (start..start + width).contains(&(target as usize)) {
                        losses[r] = -(1.0 - self.smoothing) * to[r * width + target as usize - start];
                    }
                }
                let statistics = &mut statistics[block * group..][..rows];
                logits_to_exponentials(cx.isa, MatMut::new(to, rows, width), statistics);
            }
            let of_row = |r: usize| statistics.iter().skip(r).step_by(group);
            let log_sums: Vec<f32> = (0..rows).map(|r| log_sum(of_row(r))).collect();
            for (r, loss) in losses.iter_mut().enumerate() {
                // `loss` is −(1−ε)·l_target so far.
                cx.scratch.nll += f64::from(log_sums[r] + *loss / (1.0 - self.smoothing));
                let all: f32 = of_row(r).map(|s| s.logits).sum();
                *loss += log_sums[r] - even * all;
            }

            let Some(gradient) = gradient.as_deref_mut() else { continue };
            let dx = &mut saved[first * d..][..rows * d];
            for (block, (start, width)) in blocks(words).enumerate() {
                let grad = &mut logits[start * rows..][..rows * width];
                for r in 0..rows {
                    factors[r] = self.scale * (statistics[block * group + r].top - log_sums[r]).exp();
                }
                let to = MatMut::new(grad, rows, width);
                logits_to_gradient(cx.isa, to, &factors[..rows], self.scale * even);
                for (r, &target) in targets.iter().enumerate() {
                    if (start..start + width).contains(&(target as usize)) {
                        grad[r * width + target as usize - start] -= self.scale * (1.0 - self.smoothing);
                    }
                }
                let grad = Mat::new(grad, rows, width);
                let e = table.rows_from(start, width);
                let into = if block == 0 { Accumulate::Overwrite } else { Accumulate::Add };
                cx.gemm.matmul(MatMut::new(dx, rows, d), grad, e, into, cx.threads);
                let de = &mut gradient[start * d..][..width * d];
                cx.gemm.matmul(MatMut::new(de, width, d), grad.t(), x, Accumulate::Add, cx.threads);
            }
        }
        cx.scratch.logits = logits;
    }
}

/// `ln Σ exp(l)` over all logits of a row, from the statistics of its blocks.
fn log_sum<'a>(blocks: impl Iterator<Item = &'a BlockStatistics> + Clone) -> f32 {
    let top = blocks.clone().map(|s| s.top).fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = blocks.map(|s| f64::from(s.exponentials) * f64::from(s.top - top).exp()).sum();
    (f64::from(top) + sum.ln()) as f32
}
