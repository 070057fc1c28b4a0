//! Functions of one vector: the exponential and functions derived from it.

use crate::simd::Simd;

/// Below this the exponential is set to zero: it would be under 2⁻¹²⁵.
pub(crate) const EXP_LOW: f32 = -86.643;
/// Above this the exponential is infinite in `f32`.
pub(crate) const EXP_HIGH: f32 = 88.722_84;

/// `e^x` to about two units in the last place; 0 below [`EXP_LOW`], ∞ above [`EXP_HIGH`], NaN for
/// NaN.
///
/// `x = n·ln 2 + r` with |r| ≤ ln 2 / 2, `ln 2` in two parts so that `r` keeps its bits (Cody and
/// Waite); `e^r` by a polynomial; `2^n` by its exponent bits, in the form `2 · 2^(n−1)` so that n =
/// 128 does not overflow on the way.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    let (low, high) = (s.splat(EXP_LOW), s.splat(EXP_HIGH));
    // `min` and `max` return their second argument for NaN, so that a NaN in `x` propagates.
    let clamped = s.min(high, s.max(low, x));
    let n = s.round(s.mul(clamped, s.splat(std::f32::consts::LOG2_E)));
    let r = s.mul_add(n, s.splat(-0.693_359_4), clamped);
    let r = s.mul_add(n, s.splat(2.121_944_4e-4), r);
    let mut p = s.splat(1.987_569_1e-4);
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5, 1.0, 1.0] {
        p = s.mul_add(p, r, s.splat(c));
    }
    let y = s.mul(s.mul(p, s.splat(2.0)), s.pow2(s.sub(n, s.splat(1.0))));
    let y = s.select(s.lt(x, low), s.zero(), y);
    s.select(s.lt(high, x), s.splat(f32::INFINITY), y)
}

/// `e^x` to 10⁻⁶ for `x` that exceeds 0 at most by a rounding error: what a softmax needs, at half
/// the cost of [`exp`]. 0 below [`EXP_LOW`], NaN for NaN.
///
/// With FMA, using `ln 2` in one part changes `r` by at most 2.4·10⁻⁷. The polynomial is the one of
/// degree 5 of the form `1 + r + …` with the smallest relative error on |r| ≤ ln 2 / 2, which is
/// 1.05·10⁻⁷.
#[inline(always)]
pub(crate) fn exp_of_negative<S: Simd>(s: S, x: S::F) -> S::F {
    let n = s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let r = if S::FUSED {
        s.mul_add(n, s.splat(-std::f32::consts::LN_2), x)
    } else {
        s.mul_add(n, s.splat(2.121_944_4e-4), s.mul_add(n, s.splat(-0.693_359_4), x))
    };
    let mut p = s.splat(8.312_521e-3);
    for c in [4.189_016e-2, 1.666_711_4e-1, 4.999_923e-1, 1.0, 1.0] {
        p = s.mul_add(p, r, s.splat(c));
    }
    s.times_pow2_or_zero(p, n, s.lt(x, s.splat(EXP_LOW)))
}

/// `ln(1 + x)` for x from 0 to 1: `2 artanh z` with `z = x / (2 + x)`, by its series up to z¹³, which
/// leaves out less than 2·10⁻⁸.
#[inline(always)]
pub(crate) fn log_of_one_plus<S: Simd>(s: S, x: S::F) -> S::F {
    let z = s.div(x, s.add(x, s.splat(2.0)));
    let square = s.mul(z, z);
    let mut p = s.splat(2.0 / 13.0);
    for divisor in [11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        p = s.mul_add(p, square, s.splat(2.0 / divisor));
    }
    s.mul(p, z)
}

/// `1 / (1 + e^−x)`.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.sub(s.zero(), x))))
}

/// The standard normal distribution `Φ(x)` and its density `φ(x)`, from which GELU and its gradient
/// are computed.
///
/// By Abramowitz and Stegun 7.1.26, whose error is below 1.5·10⁻⁷.
#[inline(always)]
pub(crate) fn normal<S: Simd>(s: S, x: S::F) -> (S::F, S::F) {
    let negative = s.lt(x, s.zero());
    let size = s.select(negative, s.sub(s.zero(), x), x);
    let gauss = exp(s, s.mul(s.mul(size, size), s.splat(-0.5)));
    let z = s.mul(size, s.splat(std::f32::consts::FRAC_1_SQRT_2));
    let t = s.div(s.splat(1.0), s.mul_add(z, s.splat(0.327_591_1), s.splat(1.0)));
    let mut p = s.splat(1.061_405_4);
    for c in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        p = s.mul_add(p, t, s.splat(c));
    }
    let tail = s.mul(s.mul(s.mul(p, t), gauss), s.splat(0.5));
    let phi = s.select(negative, tail, s.sub(s.splat(1.0), tail));
    (phi, s.mul(gauss, s.splat(0.398_942_3)))
}

/// The approximation of `Φ(x)` in T5's GELU, and its gradient: `(1 + tanh(√(2/π)·(x +
/// 0.044715·x³))) / 2`, which is a sigmoid.
#[inline(always)]
pub(crate) fn normal_by_tanh<S: Simd>(s: S, x: S::F) -> (S::F, S::F) {
    const CUBIC: f32 = 0.044_715;
    // 2·√(2/π), because σ(2x) = (1 + tanh x) / 2.
    let twice = s.splat(1.595_769_2);
    let square = s.mul(x, x);
    let inside = s.mul(s.mul(twice, x), s.mul_add(square, s.splat(CUBIC), s.splat(1.0)));
    let phi = sigmoid(s, inside);
    let inner = s.mul(twice, s.mul_add(square, s.splat(3.0 * CUBIC), s.splat(1.0)));
    (phi, s.mul(s.mul(phi, s.sub(s.splat(1.0), phi)), inner))
}
