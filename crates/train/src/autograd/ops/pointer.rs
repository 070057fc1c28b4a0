//! The loss of a pointer network: which token of a text is meant.

use crate::autograd::{Backward, Forward, Op, Var};
use regard_kernels::{Accumulate, Isa, Mat, MatMut, add, add_scaled, log_softmax_rows, matmul};
use std::ops::Range;
use std::sync::Arc;

/// One pointing decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointing {
    /// The rows of `q` that point together: their scores are added.
    pub rows: Range<usize>,
    /// The rows of `k` to choose from.
    pub among: Range<usize>,
    /// The target, counted from the first of them.
    pub target: usize,
}

/// Cross-entropy of `softmax(Σq·kᵀ / √d)` over the rows that each pointer chooses from, against its
/// target; `q [m, d]`, `k [n, d]`. The output is the loss of each pointer.
///
/// Its attention weights are the prediction (Vinyals, Fortunato and Jaitly, 2015).
#[derive(Debug)]
pub struct Pointer {
    /// The queries.
    pub q: Var,
    /// The keys.
    pub k: Var,
    /// The pointing decisions and their targets.
    pub pointers: Arc<[Pointing]>,
}

/// The sum of some rows.
fn sum(isa: Isa, x: Mat<'_>, rows: &Range<usize>) -> Vec<f32> {
    let mut total = vec![0.0; x.cols()];
    rows.clone().for_each(|row| add(isa, &mut total, x.row(row)));
    total
}

impl Op for Pointer {
    fn name(&self) -> &'static str {
        "pointer"
    }

    fn shape(&self, _: &Forward<'_>) -> (usize, usize) {
        (self.pointers.len(), 1)
    }

    /// The log-probabilities of all choices.
    fn saves(&self, _: &Forward<'_>) -> usize {
        self.pointers.iter().map(|p| p.among.len()).sum()
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let (q, k) = (cx.value(self.q), cx.value(self.k));
        let scale = (q.cols() as f32).sqrt().recip();
        let mut rest = saved;
        for (Pointing { rows, among, target }, loss) in self.pointers.iter().zip(y) {
            let (scores, others) = rest.split_at_mut(among.len());
            rest = others;
            let choices = k.rows_from(among.start, among.len());
            let to = MatMut::new(scores, 1, among.len());
            let from = sum(cx.isa, q, rows);
            matmul(cx.isa, to, Mat::new(&from, 1, q.cols()), choices.t(), Accumulate::Overwrite, cx.threads);
            scores.iter_mut().for_each(|score| *score *= scale);
            log_softmax_rows(cx.isa, scores, among.len());
            *loss = -scores[*target];
        }
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], saved: &[f32], dy: &mut [f32]) {
        let (q, k) = (cx.value(self.q), cx.value(self.k));
        let d = q.cols();
        let scale = (d as f32).sqrt().recip();
        let (mut dq, mut dk) = (cx.take_zeroed(self.q), cx.take_zeroed(self.k));
        let mut rest = saved;
        let mut d_from = vec![0.0; d];
        for (Pointing { rows, among, target }, grad) in self.pointers.iter().zip(dy) {
            let (log_p, others) = rest.split_at(among.len());
            rest = others;
            let from = sum(cx.isa, q, rows);
            d_from.fill(0.0);
            for (j, log_p) in log_p.iter().enumerate() {
                let right = if j == *target { 1.0 } else { 0.0 };
                let by_score = *grad * scale * (log_p.exp() - right);
                let at = (among.start + j) * d;
                add_scaled(cx.isa, &mut d_from, &k.data()[at..][..d], by_score);
                add_scaled(cx.isa, &mut dk[at..][..d], &from, by_score);
            }
            rows.clone().for_each(|row| add(cx.isa, &mut dq[row * d..][..d], &d_from));
        }
        cx.put(self.q, dq);
        cx.put(self.k, dk);
    }
}
