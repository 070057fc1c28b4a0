//! Muon (Jordan et al., 2024): momentum whose singular values are all made about 1.

use regard_kernels::{Accumulate, Gemm, Mat, MatMut};
use std::ops::Range;

/// The decay of the momentum, which is Nesterov's.
const MOMENTUM: f32 = 0.95;
/// The coefficients of the polynomial `ax + bx³ + cx⁵`, chosen by Jordan et al. so that a few
/// iterations bring all singular values between 0.7 and 1.2.
const COEFFICIENTS: [f32; 3] = [3.4445, -4.7750, 2.0315];
const ITERATIONS: usize = 5;

/// A matrix that is updated as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    start: usize,
    rows: usize,
    cols: usize,
}

impl Matrix {
    /// The matrices in a parameter that begins at `start`: one that is several times as high as
    /// wide consists of square blocks, such as the projections to queries, keys and values.
    pub(super) fn blocks(start: usize, [rows, cols]: [usize; 2]) -> impl Iterator<Item = Matrix> {
        let blocks = if cols > 0 && rows % cols == 0 { rows / cols } else { 1 };
        let rows = rows / blocks.max(1);
        (0..blocks).map(move |block| Matrix { start: start + block * rows * cols, rows, cols })
    }

    /// Its location in the weight vector.
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.rows * self.cols
    }

    /// One step with learning rate `rate`; updates have a root mean square of about `scale` times
    /// the rate.
    pub(super) fn step(
        &self,
        gemm: Gemm,
        (rate, scale, gradient_scale): (f32, f32, f32),
        weights: &mut [f32],
        momentum: &mut [f32],
        gradient: &[f32],
    ) {
        let mut update = Vec::with_capacity(weights.len());
        for (m, g) in momentum.iter_mut().zip(gradient) {
            let g = gradient_scale * g;
            *m = MOMENTUM * *m + g;
            update.push(MOMENTUM * *m + g);
        }
        orthogonalize(gemm, &mut update, self.rows, self.cols);
        // The elements of a matrix with singular values of 1 have this root mean square.
        let factor = rate * scale * (self.rows.max(self.cols) as f32).sqrt();
        weights.iter_mut().zip(&update).for_each(|(w, x)| *w -= factor * x);
    }
}

/// Replaces `x [rows, cols]` by a matrix with about the same singular vectors, whose singular
/// values are about 1: Newton–Schulz iterations, which need nothing but matmuls.
fn orthogonalize(gemm: Gemm, x: &mut Vec<f32>, rows: usize, cols: usize) {
    let norm = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt() as f32;
    x.iter_mut().for_each(|v| *v /= norm + 1e-20);
    let n = rows.min(cols);
    let (mut gram, mut polynomial, mut next) = (vec![0.0; n * n], vec![0.0; n * n], vec![0.0; rows * cols]);
    let matmul = |to: &mut [f32], shape: (usize, usize), a: Mat<'_>, b: Mat<'_>, into| {
        gemm.matmul(MatMut::new(to, shape.0, shape.1), a, b, into, 1);
    };
    let [a, b, c] = COEFFICIENTS;
    for _ in 0..ITERATIONS {
        // With G = XXᵀ: X ← aX + (bG + cG²)X, or the same from the right if that is smaller.
        let view = Mat::new(x, rows, cols);
        let (left, right) = if rows <= cols { (view, view.t()) } else { (view.t(), view) };
        matmul(&mut gram, (n, n), left, right, Accumulate::Overwrite);
        let g = Mat::new(&gram, n, n);
        matmul(&mut polynomial, (n, n), g, g, Accumulate::Overwrite);
        polynomial.iter_mut().zip(&gram).for_each(|(p, g)| *p = b * g + c * *p);
        next.iter_mut().zip(&*x).for_each(|(next, x)| *next = a * x);
        let p = Mat::new(&polynomial, n, n);
        let (left, right) = if rows <= cols { (p, view) } else { (view, p) };
        matmul(&mut next, (rows, cols), left, right, Accumulate::Add);
        std::mem::swap(x, &mut next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_core::Isa;
    use regard_kernels::{Key, naive};

    fn random(n: usize, seed: u64) -> Vec<f32> {
        let key = Key::new(seed);
        (0..n).map(|i| 2.0 * key.uniform(i as u32) - 1.0).collect()
    }

    /// The same iterations in f64.
    fn orthogonalized(x: &[f32], rows: usize, cols: usize) -> Vec<f64> {
        let norm = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let mut x: Vec<f64> = x.iter().map(|v| f64::from(*v) / norm).collect();
        let [a, b, c] = COEFFICIENTS.map(f64::from);
        for _ in 0..ITERATIONS {
            let transposed: Vec<f64> = (0..rows * cols).map(|i| x[i % rows * cols + i / rows]).collect();
            let gram = naive::matmul(&x, &transposed, rows, rows, cols);
            let cubic = naive::matmul(&gram, &x, rows, cols, rows);
            let quintic = naive::matmul(&gram, &cubic, rows, cols, rows);
            x = x.iter().zip(&cubic).zip(&quintic).map(|((x, y), z)| a * x + b * y + c * z).collect();
        }
        x
    }

    #[test]
    fn it_agrees_with_plain_loops_and_all_singular_values_are_about_1() {
        for isa in Isa::available() {
            for (rows, cols) in [(1, 1), (1, 7), (9, 4), (16, 16), (17, 33), (40, 8)] {
                let x = random(rows * cols, 3);
                let mut got = x.clone();
                orthogonalize(Gemm::f32(isa), &mut got, rows, cols);
                for (got, want) in got.iter().zip(orthogonalized(&x, rows, cols)) {
                    assert!(
                        (f64::from(*got) - want).abs() < 1e-4,
                        "{isa} {rows} × {cols}: {got}, not {want}"
                    );
                }
                // ‖Xv‖ is between the smallest and the largest singular value for v in the smaller
                // space.
                let v = random(rows.min(cols), 4);
                let length = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
                let image: Vec<f32> = if rows <= cols {
                    (0..cols).map(|c| (0..rows).map(|r| got[r * cols + c] * v[r]).sum()).collect()
                } else {
                    (0..rows).map(|r| (0..cols).map(|c| got[r * cols + c] * v[c]).sum()).collect()
                };
                let ratio = length(&image) / length(&v);
                assert!((0.6..1.25).contains(&ratio), "{isa} {rows} × {cols}: {ratio}");
            }
        }
    }

    #[test]
    fn a_zero_gradient_changes_nothing() {
        let matrix = Matrix { start: 0, rows: 3, cols: 4 };
        let (mut weights, mut momentum) = (random(12, 1), vec![0.0; 12]);
        let before = weights.clone();
        matrix.step(Gemm::f32(Isa::best()), (0.1, 0.2, 1.0), &mut weights, &mut momentum, &[0.0; 12]);
        assert_eq!(weights, before);
    }

    #[test]
    fn stacked_projections_are_separate_matrices() {
        let of =
            |rows, cols| Matrix::blocks(100, [rows, cols]).map(|m| (m.range(), m.rows)).collect::<Vec<_>>();
        assert_eq!(of(6, 2), [(100..104, 2), (104..108, 2), (108..112, 2)]);
        assert_eq!(of(2, 6), [(100..112, 2)]);
        assert_eq!(of(5, 2), [(100..110, 5)]);
    }
}
