//! Rounding weights to integers so that the outputs change as little as possible.
//!
//! Rounding each weight to the nearest integer minimises the error of the weights, not of the
//! layer's output: its inputs are correlated, so the other weights of a row can compensate the
//! error of one. The weights of a row are rounded one after the other, and each is first adjusted
//! by the errors so far (LDLQ of QuIP, Chee et al., 2023, which is what GPTQ computes): with `H = Σ
//! x·xᵀ = (U + I)·D·(U + I)ᵀ`, `U` strictly upper triangular,
//!
//! ```text
//! q_j = round(w_j + Σ_{i<j} (w_i − q_i)·U_ij)
//! ```
//!
//! which has the smallest `(w − q)·H·(w − q)ᵀ` of all such rules.

use regard_kernels::{Accumulate, Isa, Mat, MatMut, matmul};

/// The damping added to the diagonal of `H`, as a share of its mean: inputs that never occur
/// together in the sample must not cancel each other.
const DAMPING: f64 = 0.01;

/// The second moments `Σ x·xᵀ` of the inputs of a matrix, `[k, k]`.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    k: usize,
    sums: Vec<f32>,
}

impl Moments {
    pub(super) fn new(k: usize) -> Self {
        Moments { k, sums: vec![0.0; k * k] }
    }

    /// Accumulates inputs, `[rows, k]`.
    pub(super) fn observe(&mut self, isa: Isa, inputs: &[f32]) {
        let x = Mat::new(inputs, inputs.len() / self.k.max(1), self.k);
        let to = MatMut::new(&mut self.sums, self.k, self.k);
        matmul(isa, to, x.t(), x, Accumulate::Add, 1);
    }

    /// How to compensate errors, if the inputs have the width of the weights and were not all zero.
    pub(super) fn feedback(&self, k: usize) -> Option<Feedback> {
        let mean =
            (0..self.k).map(|i| f64::from(self.sums[i * self.k + i])).sum::<f64>() / self.k.max(1) as f64;
        (k == self.k && mean > 0.0 && mean.is_finite()).then(|| Feedback::new(k, &self.sums, DAMPING * mean))
    }
}

/// `U`, transposed: row `j` has the `j` elements `U_ij`, `i < j`.
#[derive(Debug)]
pub(super) struct Feedback {
    k: usize,
    rows: Vec<f32>,
}

impl Feedback {
    fn new(k: usize, moments: &[f32], damping: f64) -> Self {
        let mut h: Vec<f64> = moments.iter().map(|&x| f64::from(x)).collect();
        (0..k).for_each(|i| h[i * k + i] += damping);
        let mut rows = vec![0.0f32; k * k];
        let mut u = vec![0.0f64; k];
        // Eliminate from the last column to the first: the remaining matrix is the one without that
        // column.
        for j in (0..k).rev() {
            let d = h[j * k + j].max(damping);
            for i in 0..j {
                u[i] = h[i * k + j] / d;
                rows[j * k + i] = u[i] as f32;
            }
            for i in 0..j {
                let factor = d * u[i];
                // Only the upper triangle is read.
                let row = &mut h[i * k..][i..j];
                row.iter_mut().zip(&u[i..j]).for_each(|(h, u)| *h -= factor * u);
            }
        }
        Feedback { k, rows }
    }

    /// Rounds the weights of a row; `multiplier` scales them to integers from −127 to 127.
    pub(super) fn round(&self, weights: &[f32], multiplier: f32, to: &mut Vec<i8>) {
        let mut errors: Vec<f32> = Vec::with_capacity(self.k);
        for (j, &w) in weights.iter().enumerate() {
            let correction: f32 = errors.iter().zip(&self.rows[j * self.k..]).map(|(e, u)| e * u).sum();
            let q = nearest(w + correction, multiplier);
            errors.push(w - f32::from(q) / multiplier);
            to.push(q);
        }
    }
}

/// The nearest integer, ties to even.
pub(super) fn nearest(weight: f32, multiplier: f32) -> i8 {
    (weight * multiplier).round_ties_even().clamp(-127.0, 127.0) as i8
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_kernels::Key;

    fn random(n: usize, seed: u64) -> Vec<f32> {
        (0..n).map(|i| Key::new(seed).normal(i as u32)).collect()
    }

    /// Inputs, each of which is half the one before.
    fn inputs(rows: usize, k: usize) -> Vec<f32> {
        let mut x = random(rows * k, 1);
        for row in x.chunks_exact_mut(k) {
            (1..k).for_each(|i| row[i] = 0.7 * row[i - 1] + 0.7 * row[i]);
        }
        x
    }

    /// The mean squared error of the outputs of a row.
    fn error(x: &[f32], w: &[f32], q: &[i8], multiplier: f32) -> f64 {
        let rows = x.chunks_exact(w.len());
        let off = |x: &[f32]| -> f64 {
            let apart = x.iter().zip(w).zip(q).map(|((x, w), &q)| x * (w - f32::from(q) / multiplier));
            f64::from(apart.sum::<f32>())
        };
        rows.map(|x| off(x).powi(2)).sum::<f64>() / (x.len() / w.len()) as f64
    }

    #[test]
    fn outputs_are_off_by_less_than_with_the_nearest_integers() {
        for k in [1, 3, 40, 65] {
            let (x, multiplier) = (inputs(400, k), 8.0);
            let mut moments = Moments::new(k);
            x.chunks(7 * k).for_each(|part| moments.observe(Isa::best(), part));
            let feedback = moments.feedback(k).unwrap();
            let (mut plain, mut fed) = (0.0, 0.0);
            for seed in 0..20 {
                let w = random(k, 10 + seed);
                let mut q = Vec::new();
                feedback.round(&w, multiplier, &mut q);
                fed += error(&x, &w, &q, multiplier);
                let q: Vec<i8> = w.iter().map(|&w| nearest(w, multiplier)).collect();
                plain += error(&x, &w, &q, multiplier);
            }
            assert!(fed < if k < 40 { 1.001 } else { 0.7 } * plain, "{k}: {fed} and {plain}");
        }
    }

    #[test]
    fn integers_stay_what_they_are_and_uncorrelated_inputs_change_nothing() {
        let k = 5;
        let mut moments = Moments::new(k);
        moments.observe(Isa::best(), &inputs(50, k));
        let whole = [3.0, -127.0, 0.0, 127.0, 5.0];
        let mut q = Vec::new();
        moments.feedback(k).unwrap().round(&whole, 1.0, &mut q);
        assert_eq!(q, [3, -127, 0, 127, 5]);
        let mut apart = Moments::new(2);
        apart.observe(Isa::best(), &[1.0, 0.0, 0.0, 2.0]);
        q.clear();
        apart.feedback(2).unwrap().round(&[0.4, 1.6], 1.0, &mut q);
        assert_eq!(q, [0, 2]);
    }

    #[test]
    fn there_is_no_feedback_without_inputs_or_for_another_width() {
        assert!(Moments::new(3).feedback(3).is_none());
        let mut moments = Moments::new(2);
        moments.observe(Isa::best(), &[1.0, 2.0]);
        assert!(moments.feedback(3).is_none() && moments.feedback(2).is_some());
    }
}
