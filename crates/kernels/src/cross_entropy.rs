//! The two passes over a block of logits: softmax statistics, then the gradient.
//!
//! The vocabulary is processed block by block, while a block is in cache. The first pass replaces
//! the logits by `e^(l − top)`, where `top` is the largest logit of the row in this block. When all
//! blocks have been seen, the second pass turns that into the gradient with one multiplication per
//! element and no second exponential.

use crate::mat::MatMut;
use crate::math::exp_of_negative;
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, simd_kernel};

/// The softmax statistics of one row within a block of the vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockStatistics {
    /// The largest logit.
    pub top: f32,
    /// `Σ e^(l − top)`
    pub exponentials: f32,
    /// `Σ l`, for label smoothing.
    pub logits: f32,
}

#[inline(always)]
fn exponentials_body<S: Simd>(s: S, mut logits: MatMut<'_>, statistics: &mut [BlockStatistics]) {
    assert_eq!(logits.rows(), statistics.len());
    for (r, statistics) in statistics.iter_mut().enumerate() {
        let row = logits.row(r);
        let top = loops::max(s, row);
        let minus_top = s.splat(-top);
        let (mut sum, mut total) = (s.zero(), s.zero());
        vectors!(S, row.len(), at => {
            let l = at.read(s, row);
            let e = exp_of_negative(s, s.add(l, minus_top));
            at.write(s, row, e);
            total = s.add(total, l);
            sum = s.add(sum, at.fill(s, e, 0.0));
        });
        *statistics = BlockStatistics { top, exponentials: s.reduce_sum(sum), logits: s.reduce_sum(total) };
    }
}
simd_kernel! {
    /// Replaces each logit by `e^(l − top)`; `statistics` has one entry per row.
    ///
    /// A NaN or +∞ among the logits of a row makes `exponentials` NaN.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn logits_to_exponentials(logits: MatMut<'_>, statistics: &mut [BlockStatistics]) = exponentials_body;
}

#[inline(always)]
fn gradient_body<S: Simd>(s: S, mut block: MatMut<'_>, factors: &[f32], shift: f32) {
    assert_eq!(block.rows(), factors.len());
    let shift = s.splat(-shift);
    for (r, &factor) in factors.iter().enumerate() {
        let row = block.row(r);
        let factor = s.splat(factor);
        vectors!(S, row.len(), at => { let v = s.mul_add(at.read(s, row), factor, shift); at.write(s, row, v); });
    }
}
simd_kernel! {
    /// Replaces each `e` of row `r` by `e · factors[r] − shift`: the gradient of a smoothed
    /// cross-entropy, except for the target's own term.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn logits_to_gradient(block: MatMut<'_>, factors: &[f32], shift: f32) = gradient_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::testing::{SIZES, assert_close, random, widen};

    #[test]
    fn statistics_and_gradient_agree_with_plain_loops() {
        for isa in Isa::available() {
            for &cols in SIZES.iter().filter(|&&n| n > 0) {
                let rows = 2;
                let x = random(rows * cols, 1);
                let mut e = x.clone();
                let mut statistics = vec![BlockStatistics::default(); rows];
                logits_to_exponentials(isa, MatMut::new(&mut e, rows, cols), &mut statistics);
                for (r, got) in statistics.iter().enumerate() {
                    let row = widen(&x[r * cols..][..cols]);
                    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let want: Vec<f64> = row.iter().map(|l| (l - top).exp()).collect();
                    assert_close(&e[r * cols..][..cols], &want, 1e-6, &format!("{isa} {cols}"));
                    let got = [got.top, got.exponentials, got.logits];
                    assert_close(
                        &got,
                        &[top, want.iter().sum(), row.iter().sum()],
                        1e-5,
                        &format!("{isa} {cols}"),
                    );
                }
                let before = widen(&e);
                logits_to_gradient(isa, MatMut::new(&mut e, rows, cols), &[0.5, 2.0], 0.125);
                let want: Vec<f64> =
                    before.iter().enumerate().map(|(i, e)| e * [0.5, 2.0][i / cols] - 0.125).collect();
                assert_close(&e, &want, 1e-6, &format!("{isa} {cols}"));
            }
            let mut bad = [0.0, f32::NAN, 1.0];
            let mut statistics = [BlockStatistics::default()];
            logits_to_exponentials(isa, MatMut::new(&mut bad, 1, 3), &mut statistics);
            assert!(statistics[0].exponentials.is_nan(), "{isa}");
        }
    }
}
