//! The loss: logits, label-smoothed cross-entropy and its gradient, which never exist as a whole.

use crate::autograd::sampled_softmax::OutputLayer;
use crate::autograd::{Backward, Forward, Op, Param, Var, Weights};
use regard_kernels::{
    Accumulate, BlockStatistics, Mat, MatMut, Right, logits_to_exponentials, logits_to_gradient,
};
use std::sync::Arc;

/// Words of the vocabulary in a block, whose logits are used while they are in cache. Tables can be
/// packed in such blocks.
const WORDS: usize = Right::STEP;

/// Rows whose logits exist at the same time, at most. Each such group reads the whole output
/// matrix, which is cheap where it has been packed before: fewer rows keep the logits in cache and
/// memory small.
const ROWS: usize = 192;

/// Cross-entropy of `softmax(x·Eᵀ + b)` against the targets, with label smoothing; `x [m, d]`,
/// `E [v, d]`.
///
/// The output is the loss of each row. The gradient is made on the way forward, because the logits
/// are gone afterwards: it is that of `scale · Σ` of the rows, whatever gradient the output is
/// given.
#[derive(Debug)]
pub struct CrossEntropy {
    /// x
    pub x: Var,
    /// E: the rows of the words, of which only the first `words` take part; the padding token is
    /// the one behind them.
    pub table: Param,
    /// b, which has no gradient; zero if not given.
    pub bias: Option<Arc<[f32]>>,
    /// How many words take part in the softmax.
    pub words: usize,
    /// The word that should come, for each row.
    pub targets: Arc<[u32]>,
    /// ε, the probability that is spread evenly over all words.
    pub smoothing: f32,
    /// What the sum of all rows is multiplied by: one over the number of target tokens of the whole
    /// batch.
    pub scale: f32,
}

/// The logits of some rows, block by block: blocks of the vocabulary lie one behind the other.
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
    /// The words that take part.
    pub(super) fn output<'a>(&'a self, weights: Weights<'a>, d: usize) -> OutputLayer<'a> {
        OutputLayer::new(weights, self.table, (self.words, d), self.bias.as_deref())
    }

    /// The losses and, if there is a gradient `[words, d]` of the output layer to add to, all
    /// gradients.
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
        // Groups of about the same size: a small one at the end would pay for reading the whole
        // matrix as a large one does.
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
            // −(1−ε)·l_target comes now, while the logits are there; the sum over the vocabulary
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
