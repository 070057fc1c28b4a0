//! R-Drop for one pair of rows: two cross-entropies, the divergence of their distributions, and all
//! gradients.

use crate::math::exp_of_negative;
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, simd_kernel};

/// The loss of a pair of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RDropLoss {
    /// ε, the probability that label smoothing spreads evenly over all words.
    pub smoothing: f32,
    /// The factor of the divergence `½·(KL(p‖q) + KL(q‖p))`.
    pub weight: f32,
    /// The factor of all gradients.
    pub scale: f32,
}

/// What a pair of rows adds to the loss; pairs of numbers are for the first and the second row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RDropRow {
    /// The label-smoothed cross-entropies.
    pub losses: [f32; 2],
    /// `−ln p` of the target.
    pub nll: [f32; 2],
    /// `weight · ½·(KL(p‖q) + KL(q‖p))`
    pub divergence: f32,
}

/// The largest logit and the sum of all.
#[inline(always)]
fn top_and_sum<S: Simd>(s: S, x: &[f32]) -> (f32, f32) {
    let mut sum = s.zero();
    vectors!(S, x.len(), at => { sum = s.add(sum, at.read(s, x)); });
    (loops::max(s, x), s.reduce_sum(sum))
}

/// `e = e^(x − top)`; returns the sum.
#[inline(always)]
fn exponentials<S: Simd>(s: S, x: &[f32], e: &mut [f32], top: f32) -> f32 {
    let minus_top = s.splat(-top);
    let mut total = s.zero();
    vectors!(S, x.len(), at => {
        let v = exp_of_negative(s, s.add(at.read(s, x), minus_top));
        at.write(s, e, v);
        total = s.add(total, at.fill(s, v, 0.0));
    });
    s.reduce_sum(total)
}

#[inline(always)]
fn r_drop_body<S: Simd>(
    s: S,
    a: &mut [f32],
    b: &mut [f32],
    target: usize,
    loss: RDropLoss,
    scratch: &mut Vec<f32>,
) -> RDropRow {
    let n = a.len();
    assert!(b.len() == n && target < n);
    scratch.resize(2 * n, 0.0);
    let (p, q) = scratch.split_at_mut(n);
    let ((top_a, sum_a), (top_b, sum_b)) = (top_and_sum(s, a), top_and_sum(s, b));
    let (total_a, total_b) = (exponentials(s, a, p, top_a), exponentials(s, b, q, top_b));
    let (log_a, log_b) = (top_a + total_a.ln(), top_b + total_b.ln());
    let even = loss.smoothing / n as f32;
    let cross = |logits: &[f32], log: f32, sum: f32| {
        (log - (1.0 - loss.smoothing) * logits[target] - even * sum, log - logits[target])
    };
    let ((loss_a, nll_a), (loss_b, nll_b)) = (cross(a, log_a, sum_a), cross(b, log_b, sum_b));

    // ln(p/q) is the difference of the logits plus this.
    let shift = s.splat(log_b - log_a);
    let (norm_a, norm_b) = (s.splat(1.0 / total_a), s.splat(1.0 / total_b));
    let (mut forth, mut back) = (s.zero(), s.zero());
    vectors!(S, n, at => {
        let apart = s.add(s.sub(at.read(s, a), at.read(s, b)), shift);
        let (e, f) = (s.mul(at.read(s, p), norm_a), s.mul(at.read(s, q), norm_b));
        forth = s.add(forth, at.fill(s, s.mul(e, apart), 0.0));
        back = s.add(back, at.fill(s, s.mul(f, apart), 0.0));
    });
    let (forth, back) = (s.reduce_sum(forth), -s.reduce_sum(back));

    // With f = ½·weight·scale, the gradient with respect to a logit of the first row is
    // scale·(p − smoothed target) + f·(p·(ln(p/q) − KL(p‖q)) + p − q); p and q change places for
    // the second row.
    let divergence = s.splat(0.5 * loss.weight * loss.scale);
    let (scale, minus_even) = (s.splat(loss.scale), s.splat(-loss.scale * even));
    let (minus_forth, minus_back) = (s.splat(-forth), s.splat(-back));
    vectors!(S, n, at => {
        let apart = s.add(s.sub(at.read(s, a), at.read(s, b)), shift);
        let (e, f) = (s.mul(at.read(s, p), norm_a), s.mul(at.read(s, q), norm_b));
        let between = s.sub(e, f);
        let first = s.mul_add(e, s.add(apart, minus_forth), between);
        let second = s.sub(s.mul(f, s.sub(minus_back, apart)), between);
        let first = s.mul_add(divergence, first, s.mul_add(scale, e, minus_even));
        let second = s.mul_add(divergence, second, s.mul_add(scale, f, minus_even));
        at.write(s, a, first);
        at.write(s, b, second);
    });
    a[target] -= loss.scale * (1.0 - loss.smoothing);
    b[target] -= loss.scale * (1.0 - loss.smoothing);
    RDropRow { losses: [loss_a, loss_b], nll: [nll_a, nll_b], divergence: 0.5 * loss.weight * (forth + back) }
}
simd_kernel! {
    /// Computes the loss of a pair of rows of logits, `a` and `b`, which have the same target, and
    /// replaces the logits by their gradients.
    ///
    /// # Panics
    /// If the rows have different lengths or the target is not in them.
    pub fn r_drop_row(a: &mut [f32], b: &mut [f32], target: usize, loss: RDropLoss, scratch: &mut Vec<f32>) -> RDropRow
        = r_drop_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, naive};

    /// The loss of a pair as a function of both rows.
    fn definition(x: &[f64], target: usize, loss: RDropLoss) -> f64 {
        let (a, b) = x.split_at(x.len() / 2);
        let smoothing = f64::from(loss.smoothing);
        let cross = naive::cross_entropy(a, target, smoothing) + naive::cross_entropy(b, target, smoothing);
        cross + f64::from(loss.weight) * 0.5 * naive::symmetric_divergence(a, b)
    }

    #[test]
    fn losses_and_gradients_agree_with_the_naive_twin() {
        for isa in Isa::available() {
            for &n in SIZES.iter().filter(|&&n| n > 0) {
                for (smoothing, weight) in [(0.1, 5.0), (0.0, 0.0), (0.2, 0.5)] {
                    let loss = RDropLoss { smoothing, weight, scale: 0.25 };
                    let (mut a, mut b, target) = (random(n, 1), random(n, 2), n / 2);
                    let both = widen(&[a.clone(), b.clone()].concat());
                    let row = r_drop_row(isa, &mut a, &mut b, target, loss, &mut vec![1.0; 3]);
                    let (x, y) = both.split_at(n);
                    let apart = naive::symmetric_divergence(x, y);
                    let got = [row.losses[0], row.losses[1], row.nll[0], row.nll[1], row.divergence];
                    let want = [
                        naive::cross_entropy(x, target, f64::from(smoothing)),
                        naive::cross_entropy(y, target, f64::from(smoothing)),
                        naive::cross_entropy(x, target, 0.0),
                        naive::cross_entropy(y, target, 0.0),
                        f64::from(weight) * 0.5 * apart,
                    ];
                    let what = format!("{isa}, {n} words, {loss:?}");
                    assert_close(&got, &want, 1e-5, &what);
                    let gradients = naive::finite_differences(&both, 1e-5, |x| definition(x, target, loss));
                    let want: Vec<f64> = gradients.iter().map(|g| 0.25 * g).collect();
                    assert_close(&[a, b].concat(), &want, 1e-5, &what);
                }
            }
        }
    }

    #[test]
    fn nan_in_one_row_makes_the_pair_nan() {
        for isa in Isa::available() {
            let loss = RDropLoss { smoothing: 0.1, weight: 1.0, scale: 1.0 };
            let (mut a, mut b) = (random(20, 1), random(20, 2));
            b[7] = f32::NAN;
            let row = r_drop_row(isa, &mut a, &mut b, 3, loss, &mut Vec::new());
            assert!(row.divergence.is_nan() && row.losses[1].is_nan() && row.losses[0].is_finite(), "{isa}");
            assert!(a.iter().chain(&b).all(|x| x.is_nan()), "{isa}");
        }
    }
}
