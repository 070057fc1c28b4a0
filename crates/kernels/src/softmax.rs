//! Softmax and log-softmax of rows.

use crate::math::{exp_of_negative, log_of_one_plus};
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, simd_kernel};

/// `x = e^(x · scale − top)`; returns the sum.
#[inline(always)]
pub(crate) fn exponentials<S: Simd>(s: S, x: &mut [f32], scale: f32, top: f32) -> f32 {
    let (scale, minus_top) = (s.splat(scale), s.splat(-top));
    let mut total = s.zero();
    vectors!(S, x.len(), at => {
        let e = exp_of_negative(s, s.mul_add(at.read(s, x), scale, minus_top));
        at.write(s, x, e);
        total = s.add(total, at.fill(s, e, 0.0));
    });
    s.reduce_sum(total)
}

#[inline(always)]
fn softmax_body<S: Simd>(s: S, x: &mut [f32], cols: usize) {
    if cols == 0 {
        return;
    }
    for row in x.chunks_exact_mut(cols) {
        let top = loops::max(s, row);
        let total = exponentials(s, row, 1.0, top);
        loops::scale(s, row, 1.0 / total);
    }
}
simd_kernel! {
    /// Softmax of each row of `x [rows, cols]`, in place.
    ///
    /// A row that contains NaN or +∞, or only −∞, becomes NaN as a whole; −∞ next to finite values
    /// becomes 0.
    pub fn softmax_rows(x: &mut [f32], cols: usize) = softmax_body;
}

#[inline(always)]
fn log_softmax_body<S: Simd>(s: S, x: &mut [f32], cols: usize) {
    if cols == 0 {
        return;
    }
    for row in x.chunks_exact_mut(cols) {
        let top = loops::max(s, row);
        let minus_top = s.splat(-top);
        let mut total = s.zero();
        vectors!(S, cols, at => {
            let e = exp_of_negative(s, s.add(at.read(s, row), minus_top));
            total = s.add(total, at.fill(s, e, 0.0));
        });
        let shift = s.splat(top + s.reduce_sum(total).ln());
        vectors!(S, cols, at => { let v = s.sub(at.read(s, row), shift); at.write(s, row, v); });
    }
}
simd_kernel! {
    /// Log-softmax of each row of `x [rows, cols]`, in place; NaN and infinity as in
    /// [`softmax_rows`].
    pub fn log_softmax_rows(x: &mut [f32], cols: usize) = log_softmax_body;
}

#[inline(always)]
fn log_add_exp_body<S: Simd>(s: S, a: &mut [f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    vectors!(S, b.len(), at => {
        let (x, y) = (at.read(s, a), at.read(s, b));
        // Both return their second argument for NaN, which propagates this way.
        let top = s.max(y, x);
        let ratio = exp_of_negative(s, s.sub(s.min(x, y), top));
        at.write(s, a, s.add(top, log_of_one_plus(s, ratio)));
    });
}
simd_kernel! {
    /// `a = ln(eᵃ + eᵇ)`, element by element: adds the probabilities of two models. −∞ next to a
    /// finite value leaves that value; two of them become NaN.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn log_add_exp(a: &mut [f32], b: &[f32]) = log_add_exp_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::exp;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, naive};

    #[inline(always)]
    fn negative_body<S: Simd>(s: S, x: &mut [f32]) {
        vectors!(S, x.len(), at => { let v = exp_of_negative(s, at.read(s, x)); at.write(s, x, v); });
    }
    simd_kernel! { fn exp_of_negatives(x: &mut [f32]) = negative_body; }

    #[test]
    fn the_exponential_of_negative_numbers_is_right_too() {
        for isa in Isa::available() {
            let x: Vec<f32> = (0..100_000).map(|i| i as f32 * (-86.0 / 100_000.0)).collect();
            let mut y = x.clone();
            exp_of_negatives(isa, &mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let want = f64::from(x).exp();
                assert!((f64::from(y) - want).abs() <= 1e-6 * want, "{isa}: exp({x}) = {y}, not {want}");
            }
            let mut odd = [f32::NAN, f32::NEG_INFINITY, f32::MIN, -200.0];
            exp_of_negatives(isa, &mut odd);
            assert!(odd[0].is_nan() && odd[1..] == [0.0; 3], "{isa} {odd:?}");
        }
    }

    #[test]
    fn probabilities_are_added_as_logarithms() {
        for isa in Isa::available() {
            for &n in SIZES {
                // Differences of up to 120, some of them 0.
                let spread = |seed| random(n, seed).iter().map(|x| (x * 30.0).round()).collect::<Vec<f32>>();
                let (a, b) = (spread(1), spread(2));
                let sum = |(&x, &y): (&f64, &f64)| x.max(y) + (-(x - y).abs()).exp().ln_1p();
                let want: Vec<f64> = widen(&a).iter().zip(&widen(&b)).map(sum).collect();
                let mut got = a.clone();
                log_add_exp(isa, &mut got, &b);
                assert_close(&got, &want, 1e-6, &format!("{isa} {n}"));
            }
            let fine: Vec<f32> = (0..50_000).map(|i| i as f32 * -1e-3).collect();
            let mut got = fine.clone();
            log_add_exp(isa, &mut got, &vec![0.0; fine.len()]);
            for (&x, &y) in fine.iter().zip(&got) {
                let want = f64::from(x).exp().ln_1p();
                assert!((f64::from(y) - want).abs() <= 4e-7, "{isa}: ln(1 + exp {x}) = {y}, not {want}");
            }
            let mut odd = [f32::NEG_INFINITY, -2.0, f32::NAN, f32::NEG_INFINITY];
            log_add_exp(isa, &mut odd, &[-1.0, f32::NEG_INFINITY, -1.0, f32::NEG_INFINITY]);
            assert_eq!(odd[..2], [-1.0, -2.0], "{isa}");
            assert!(odd[2..].iter().all(|x| x.is_nan()), "{isa} {odd:?}");
        }
    }

    #[inline(always)]
    fn exp_body<S: Simd>(s: S, x: &mut [f32]) {
        vectors!(S, x.len(), at => { let v = exp(s, at.read(s, x)); at.write(s, x, v); });
    }
    simd_kernel! { fn exp_of(x: &mut [f32]) = exp_body; }

    #[test]
    fn exp_is_right_over_its_whole_range() {
        for isa in Isa::available() {
            let x: Vec<f32> = (0..200_000).map(|i| -88.0 + i as f32 * (176.7 / 200_000.0)).collect();
            let mut y = x.clone();
            exp_of(isa, &mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let want = f64::from(x).exp();
                let wrong = (f64::from(y) - want).abs();
                assert!(wrong <= 4e-7 * want || (x < -86.6 && y == 0.0), "{isa}: exp({x}) = {y}, not {want}");
            }
            let mut odd =
                [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 100.0, -100.0, 0.0, -0.0, f32::MIN, f32::MAX];
            exp_of(isa, &mut odd);
            assert!(odd[0].is_nan(), "{isa}");
            assert_eq!(
                odd[1..],
                [f32::INFINITY, 0.0, f32::INFINITY, 0.0, 1.0, 1.0, 0.0, f32::INFINITY],
                "{isa}"
            );
        }
    }

    #[test]
    fn rows_agree_with_the_naive_twin() {
        for isa in Isa::available() {
            for &cols in SIZES {
                let x: Vec<f32> = random(3 * cols, 5).iter().map(|x| 10.0 * x).collect();
                let (mut soft, mut log) = (x.clone(), x.clone());
                softmax_rows(isa, &mut soft, cols);
                log_softmax_rows(isa, &mut log, cols);
                for r in 0..3 {
                    let row = r * cols..(r + 1) * cols;
                    let wide = widen(&x[row.clone()]);
                    assert_close(
                        &soft[row.clone()],
                        &naive::softmax(&wide),
                        1e-6,
                        &format!("{isa} softmax {cols}"),
                    );
                    assert_close(&log[row], &naive::log_softmax(&wide), 2e-6, &format!("{isa} log {cols}"));
                }
            }
        }
    }

    #[test]
    fn nan_and_infinity_stay_in_their_row() {
        for isa in Isa::available() {
            for &cols in SIZES.iter().filter(|&&n| n > 0) {
                for (odd, at) in [(f32::NAN, 0), (f32::NAN, cols - 1), (f32::INFINITY, cols / 2)] {
                    let mut x = random(2 * cols, 6);
                    x[at] = odd;
                    softmax_rows(isa, &mut x, cols);
                    assert!(x[..cols].iter().all(|x| x.is_nan()), "{isa} {cols} {odd} at {at}: {x:?}");
                    assert!(x[cols..].iter().all(|x| x.is_finite()), "{isa} {cols}");
                }
                let mut x = random(cols + 1, 7);
                x[0] = f32::NEG_INFINITY;
                softmax_rows(isa, &mut x, cols + 1);
                assert_eq!(x[0], 0.0);
                assert!((x.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{isa} {cols}");
            }
        }
    }
}
