//! Smooth maxima, and softmax as their gradient.
//!
//! The maximum of two numbers is `(x + y + |x − y|) / 2`. The derivative of `|x|` is a step;
//! replacing the step with the logistic curve and integrating turns the maximum into
//! `ln(e^{kx} + e^{ky}) / k`, which is smooth everywhere and exact as `k → ∞`. For `n` numbers it
//! is [`log_sum_exp`], and its gradient is [`softmax`], which says to what degree each number is
//! the largest.
//!
//! Exponentials are not the only choice: `g⁻¹(Σ g(x))` is a smooth maximum for any `g` that grows
//! fast enough (see [`Generator`]). Only the exponential is translation-equivariant: adding `c` to
//! all arguments adds `c` to the result.
//!
//! ```
//! use regard_studies::smooth::{log_sum_exp, maximum, softmax};
//! assert_eq!(maximum(2.0, 5.0), 5.0);
//! assert!((log_sum_exp(&[2.0, 5.0], 10.0) - 5.0).abs() < 1e-10);
//! // A plain `exp` would overflow.
//! assert_eq!(log_sum_exp(&[1000.0, -1000.0], 1.0), 1000.0);
//! assert_eq!(softmax(&[0.0, 0.0], 1.0), [0.5, 0.5]);
//! ```

/// The larger of two numbers, written with the absolute value: `(x + y + |x − y|) / 2`.
pub fn maximum(x: f64, y: f64) -> f64 {
    (x + y + (x - y).abs()) / 2.0
}

/// The derivative of `max(x, 0)`: 0 below 0, 1 above it, and one half at 0.
pub fn step(x: f64) -> f64 {
    if x == 0.0 { 0.5 } else { f64::from(x > 0.0) }
}

/// The logistic curve `1 / (1 + e^{−kx})`, a smooth [`step`].
pub fn smooth_step(x: f64, k: f64) -> f64 {
    // The exponential of a negative number cannot overflow.
    let small = (-(k * x).abs()).exp();
    if k * x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

/// `ln(e^{kx} + e^{−kx}) / k`, a smooth `|x|`: its derivative rises from −1 to 1 like
/// `2·`[`smooth_step`]`(2x) − 1`.
pub fn smooth_absolute(x: f64, k: f64) -> f64 {
    log_sum_exp(&[x, -x], k)
}

/// The smooth maximum `ln(Σ e^{kx}) / k`, at most `ln(n) / k` above the maximum and never below it;
/// −∞ for no numbers.
///
/// The maximum is factored out before any exponential, so that nothing overflows:
/// `max + ln(Σ e^{k(x − max)}) / k`.
pub fn log_sum_exp(xs: &[f64], k: f64) -> f64 {
    let top = largest(xs);
    // All are −∞, or one is ∞: there is nothing to add, and ∞ − ∞ would be NaN.
    if top.is_infinite() {
        return top;
    }
    top + xs.iter().map(|x| (k * (x - top)).exp()).sum::<f64>().ln() / k
}

/// [`log_sum_exp`] written directly as in the formula. It is infinite above `kx ≈ 709`, and minus
/// infinity below −745, which is why the safe form is needed.
pub fn log_sum_exp_unsafe_form(xs: &[f64], k: f64) -> f64 {
    xs.iter().map(|x| (k * x).exp()).sum::<f64>().ln() / k
}

/// The gradient of [`log_sum_exp`]: `e^{kx} / Σ e^{kx}`, positive and summing to one.
pub fn softmax(xs: &[f64], k: f64) -> Vec<f64> {
    let top = largest(xs);
    let powers: Vec<f64> = xs.iter().map(|x| if *x == top { 1.0 } else { (k * (x - top)).exp() }).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// The increasing function `g` of a smooth maximum `g⁻¹(Σ g(x))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Generator {
    /// `x^k` for non-negative numbers: the k-norm.
    Power(f64),
    /// `e^{kx}`: [`log_sum_exp`].
    Exponential(f64),
    /// `e^{e^{kx}}`, which grows faster. It is close to the maximum for large numbers; far below 0,
    /// `g` is nearly 1 for all numbers, and the sum no longer distinguishes them.
    DoubleExponential(f64),
}

impl Generator {
    /// `g⁻¹(Σ g(x))` in a form that does not overflow; for no numbers it is −∞ (0 for a power).
    pub fn maximum(&self, xs: &[f64]) -> f64 {
        let top = largest(xs);
        match *self {
            Generator::Power(_) if xs.is_empty() || top == 0.0 => 0.0,
            Generator::Power(k) if top.is_finite() => {
                top * xs.iter().map(|x| (x / top).powf(k)).sum::<f64>().powf(1.0 / k)
            }
            Generator::Exponential(k) => log_sum_exp(xs, k),
            // ln ln Σ e^u with u = e^{kx}; the maximum is factored out twice.
            Generator::DoubleExponential(k) if top.is_finite() => {
                let u = (k * top).exp();
                let less = |x: f64| if x == top { 0.0 } else { u * (k * (x - top)).exp_m1() };
                let rest = xs.iter().map(|x| less(*x).exp()).sum::<f64>().ln();
                // Far below 0, u is negligible compared with what is added to it.
                if u > 0.0 { top + (rest / u).ln_1p() / k } else { rest.ln() / k }
            }
            _ => top,
        }
    }

    /// The gradient of [`maximum`](Self::maximum), `g′(x) / g′(maximum)`. It sums to one only for
    /// the exponential, where it is [`softmax`].
    pub fn gradient(&self, xs: &[f64]) -> Vec<f64> {
        let m = self.maximum(xs);
        let partial = |x: f64| match *self {
            Generator::Power(k) => (x / m).powf(k - 1.0),
            Generator::Exponential(k) => (k * (x - m)).exp(),
            // g′ = k·e^{kx}·g
            Generator::DoubleExponential(k) => (k * (x - m) + (k * m).exp() * (k * (x - m)).exp_m1()).exp(),
        };
        xs.iter().map(|x| partial(*x)).collect()
    }
}

fn largest(xs: &[f64]) -> f64 {
    xs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const XS: [f64; 4] = [0.4, 1.9, 1.2, 0.1];

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} against {b}");
    }

    #[test]
    fn the_maximum_by_its_absolute_value_and_its_steps() {
        for (x, y) in [(1.0, 2.0), (-3.0, -4.0), (0.0, 0.0), (7.5, -7.5)] {
            assert_eq!(maximum(x, y), f64::max(x, y));
        }
        assert_eq!([-2.0, 0.0, 2.0].map(step), [0.0, 0.5, 1.0]);
        assert_eq!(smooth_step(0.0, 3.0), 0.5);
        close(smooth_step(1.0, 2.0), 1.0 / (1.0 + (-2f64).exp()), 1e-15);
        close(smooth_step(-1.0, 2.0), 1.0 - smooth_step(1.0, 2.0), 1e-15);
        assert_eq!([smooth_step(1e9, 1e9), smooth_step(-1e9, 1e9)], [1.0, 0.0]);
        close(smooth_absolute(-3.0, 20.0), 3.0, 1e-12);
        close(smooth_absolute(0.0, 4.0), 2f64.ln() / 4.0, 1e-15);
    }

    #[test]
    fn the_derivative_of_the_smooth_absolute_is_a_smooth_step() {
        let (k, h) = (1.7, 1e-6);
        for x in [-2.0, -0.3, 0.0, 0.5] {
            let derivative = (smooth_absolute(x + h, k) - smooth_absolute(x - h, k)) / (2.0 * h);
            close(derivative, 2.0 * smooth_step(2.0 * x, k) - 1.0, 1e-8);
        }
    }

    #[test]
    fn the_error_is_at_most_ln_n_over_k() {
        for k in [0.5, 1.0, 8.0, 200.0] {
            let over = log_sum_exp(&XS, k) - 1.9;
            assert!((0.0..=4f64.ln() / k).contains(&over), "{over} at {k}");
            close(log_sum_exp(&[3.0; 4], k) - 3.0, 4f64.ln() / k, 1e-12);
        }
    }

    #[test]
    fn nothing_overflows_in_the_safe_form() {
        assert_eq!(log_sum_exp_unsafe_form(&[800.0, 0.0], 1.0), f64::INFINITY);
        assert_eq!(log_sum_exp_unsafe_form(&[-800.0, -900.0], 1.0), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[800.0, 0.0], 1.0), 800.0);
        assert_eq!(log_sum_exp(&[-800.0, -900.0], 1.0), -800.0);
        close(log_sum_exp(&XS, 3.0), log_sum_exp_unsafe_form(&XS, 3.0), 1e-14);
        assert_eq!(log_sum_exp(&[], 1.0), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY; 2], 1.0), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::INFINITY, 1.0], 1.0), f64::INFINITY);
        assert_eq!(softmax(&[1e300, 0.0], 1.0), [1.0, 0.0]);
        assert!(softmax(&[], 1.0).is_empty());
    }

    const FAMILY: [Generator; 3] =
        [Generator::Power(3.0), Generator::Exponential(2.5), Generator::DoubleExponential(1.3)];

    /// Computes the formula directly.
    fn plain(generator: Generator, xs: &[f64]) -> f64 {
        let sum = |g: &dyn Fn(f64) -> f64| xs.iter().map(|x| g(*x)).sum::<f64>();
        match generator {
            Generator::Power(k) => sum(&|x| x.powf(k)).powf(1.0 / k),
            Generator::Exponential(k) => sum(&|x| (k * x).exp()).ln() / k,
            Generator::DoubleExponential(k) => sum(&|x| (k * x).exp().exp()).ln().ln() / k,
        }
    }

    #[test]
    fn the_family_is_its_formula_and_comes_close_with_k() {
        for generator in FAMILY {
            close(generator.maximum(&XS), plain(generator, &XS), 1e-12);
        }
        for generator in
            [Generator::Power(80.0), Generator::Exponential(80.0), Generator::DoubleExponential(4.0)]
        {
            let over = generator.maximum(&XS) - 1.9;
            assert!((0.0..1e-9).contains(&over), "{generator:?}: {over}");
        }
        close(Generator::Power(2.0).maximum(&[3.0, 4.0]), 5.0, 1e-12);
    }

    #[test]
    fn the_family_does_not_overflow() {
        close(Generator::Power(500.0).maximum(&[1e200, 1e199]), 1e200, 1e187);
        assert_eq!(Generator::Power(3.0).maximum(&[0.0, 0.0]), 0.0);
        close(Generator::DoubleExponential(2.0).maximum(&[900.0, 900.0, 1.0]), 900.0, 1e-12);
        // Far below 0, the sum is that of n ones: ln ln 2 / k for any such numbers.
        let flat = Generator::DoubleExponential(2.0).maximum(&[-900.0, -800.0]);
        close(flat, 2f64.ln().ln() / 2.0, 1e-12);
        assert_eq!(Generator::DoubleExponential(2.0).maximum(&[]), f64::NEG_INFINITY);
    }

    #[test]
    fn gradients_are_those_of_finite_differences_and_the_exponential_one_is_softmax() {
        let h = 1e-6;
        for generator in FAMILY {
            let gradient = generator.gradient(&XS);
            for (i, got) in gradient.iter().enumerate() {
                let at = |step: f64| {
                    let mut xs = XS;
                    xs[i] += step;
                    generator.maximum(&xs)
                };
                close(*got, (at(h) - at(-h)) / (2.0 * h), 1e-7);
            }
        }
        let (soft, gradient) = (softmax(&XS, 2.5), Generator::Exponential(2.5).gradient(&XS));
        for (a, b) in soft.iter().zip(&gradient) {
            close(*a, *b, 1e-14);
        }
        close(soft.iter().sum::<f64>(), 1.0, 1e-14);
        // Only the exponential's gradient sums to one.
        assert!(Generator::Power(3.0).gradient(&XS).iter().sum::<f64>() > 1.01);
    }

    #[test]
    fn only_the_exponential_moves_with_its_arguments() {
        let moved = XS.map(|x| x + 5.0);
        for (generator, equal) in FAMILY.into_iter().zip([false, true, false]) {
            let difference = generator.maximum(&moved) - generator.maximum(&XS) - 5.0;
            assert_eq!(difference.abs() < 1e-12, equal, "{generator:?}: {difference}");
        }
    }
}
