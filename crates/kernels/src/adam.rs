//! Fused Adam: one pass over weights, gradients and both moments.

use crate::simd::loops::{Place, vectors};
use crate::simd::{Simd, simd_kernel};

/// The settings of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// The learning rate of this step.
    pub rate: f32,
    /// β₁ and β₂, the decay rates of the first and second moment.
    pub betas: (f32, f32),
    /// ε, which keeps the division finite.
    pub epsilon: f32,
    /// The number of this step, from 1.
    pub step: u64,
    /// The factor applied to the gradients first; below 1 when the norm is clipped.
    pub gradient_scale: f32,
}

#[inline(always)]
fn body<S: Simd>(s: S, adam: Adam, weights: &mut [f32], m: &mut [f32], v: &mut [f32], gradients: &[f32]) {
    let n = weights.len();
    assert!(m.len() == n && v.len() == n && gradients.len() == n);
    let (beta1, beta2) = adam.betas;
    // Compute the bias corrections in f64: in f32, 1 − β^t loses half its digits in the first
    // steps.
    let correction = |beta: f32| 1.0 - f64::from(beta).powi(adam.step.min(i32::MAX as u64) as i32);
    let rate = s.splat((-f64::from(adam.rate) / correction(beta1)) as f32);
    let root = s.splat((1.0 / correction(beta2).sqrt()) as f32);
    let epsilon = s.splat(adam.epsilon);
    let scale = s.splat(adam.gradient_scale);
    let (b1, b2, c1, c2) = (s.splat(beta1), s.splat(beta2), s.splat(1.0 - beta1), s.splat(1.0 - beta2));
    vectors!(S, n, at => {
        let g = s.mul(at.read(s, gradients), scale);
        let m1 = s.mul_add(at.read(s, m), b1, s.mul(g, c1));
        let v1 = s.mul_add(at.read(s, v), b2, s.mul(s.mul(g, g), c2));
        at.write(s, m, m1);
        at.write(s, v, v1);
        let step = s.div(m1, s.mul_add(s.sqrt(v1), root, epsilon));
        let w = s.mul_add(step, rate, at.read(s, weights));
        at.write(s, weights, w);
    });
}
simd_kernel! {
    /// One step of Adam (Kingma and Ba, algorithm 1) on weights `w` with moments `m` and `v`.
    ///
    /// A NaN gradient makes the weight and its moments NaN permanently: check the gradient norm
    /// before calling this.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn adam_step(adam: Adam, w: &mut [f32], m: &mut [f32], v: &mut [f32], gradients: &[f32]) = body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, naive};

    #[test]
    fn five_steps_agree_with_the_naive_twin() {
        for isa in Isa::available() {
            for &n in SIZES {
                let mut w = random(n, 1);
                let mut twin: Vec<(f64, f64, f64)> = w.iter().map(|&w| (f64::from(w), 0.0, 0.0)).collect();
                let (mut m, mut v) = (vec![0.0; n], vec![0.0; n]);
                for step in 1..=5 {
                    let g = random(n, 10 + step);
                    let adam =
                        Adam { rate: 0.01, betas: (0.9, 0.98), epsilon: 1e-9, step, gradient_scale: 0.5 };
                    adam_step(isa, adam, &mut w, &mut m, &mut v, &g);
                    for (t, g) in twin.iter_mut().zip(widen(&g)) {
                        *t = naive::adam(t.0, 0.5 * g, (t.1, t.2), 0.01, (0.9, 0.98), 1e-9, step as i32);
                    }
                }
                let what = format!("{isa} {n}");
                assert_close(&w, &twin.iter().map(|t| t.0).collect::<Vec<_>>(), 1e-5, &what);
                assert_close(&m, &twin.iter().map(|t| t.1).collect::<Vec<_>>(), 1e-5, &what);
                assert_close(&v, &twin.iter().map(|t| t.2).collect::<Vec<_>>(), 1e-5, &what);
            }
        }
    }

    #[test]
    fn a_weight_without_gradient_stays_where_it_is() {
        for isa in Isa::available() {
            let (mut w, mut m, mut v) = ([0.25; 9], [0.0; 9], [0.0; 9]);
            let adam = Adam { rate: 1.0, betas: (0.9, 0.98), epsilon: 1e-9, step: 1, gradient_scale: 1.0 };
            adam_step(isa, adam, &mut w, &mut m, &mut v, &[0.0; 9]);
            assert_eq!(w, [0.25; 9], "{isa}");
        }
    }
}
