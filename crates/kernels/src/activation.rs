//! Position-wise activations, fused with the bias before them and the dropout after them.

use crate::dropout::Dropout;
use crate::math::{normal, normal_by_tanh, sigmoid};
use crate::simd::loops::{Place, vectors};
use crate::simd::{Simd, simd_kernel};

/// The non-linearity of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activation {
    /// No activation.
    Identity,
    /// `max(x, 0)`, as in the paper.
    #[default]
    Relu,
    /// `x · Φ(x)`, the exact form with the error function.
    Gelu,
    /// GELU with Φ approximated by a hyperbolic tangent, as in T5.
    GeluTanh,
    /// `x · σ(x)`, also called swish.
    Silu,
}

impl Activation {
    /// Whether the backward pass needs the input of the activation; otherwise the output suffices.
    pub fn needs_input(self) -> bool {
        matches!(self, Activation::Gelu | Activation::GeluTanh | Activation::Silu)
    }

    #[inline(always)]
    fn apply<S: Simd>(self, s: S, z: S::F) -> S::F {
        match self {
            Activation::Identity => z,
            // `max` returns its second argument for NaN, so that a NaN propagates.
            Activation::Relu => s.max(s.zero(), z),
            Activation::Gelu => s.mul(z, normal(s, z).0),
            Activation::GeluTanh => s.mul(z, normal_by_tanh(s, z).0),
            Activation::Silu => s.mul(z, sigmoid(s, z)),
        }
    }

    /// The derivative at `z`.
    #[inline(always)]
    fn grad<S: Simd>(self, s: S, z: S::F) -> S::F {
        let one = s.splat(1.0);
        match self {
            Activation::Identity => one,
            Activation::Relu => s.select(s.lt(s.zero(), z), one, s.zero()),
            Activation::Gelu => {
                let (phi, density) = normal(s, z);
                s.mul_add(z, density, phi)
            }
            Activation::GeluTanh => {
                let (phi, density) = normal_by_tanh(s, z);
                s.mul_add(z, density, phi)
            }
            Activation::Silu => {
                let sigma = sigmoid(s, z);
                s.mul(sigma, s.mul_add(z, s.sub(one, sigma), one))
            }
        }
    }
}

#[inline(always)]
fn forward_body<S: Simd>(
    s: S,
    y: &mut [f32],
    bias: &[f32],
    activation: Activation,
    dropout: Option<Dropout>,
    mut before: Option<&mut [f32]>,
) {
    let cols = bias.len();
    if cols == 0 {
        return;
    }
    assert!(y.len().is_multiple_of(cols) && before.as_ref().is_none_or(|b| b.len() == y.len()));
    for (r, y) in y.chunks_exact_mut(cols).enumerate() {
        if let Some(before) = &mut before {
            let before = &mut before[r * cols..][..cols];
            vectors!(S, cols, at => { at.write(s, before, s.add(at.read(s, y), at.read(s, bias))); });
        }
        match dropout {
            None => vectors!(S, cols, at => {
                let v = activation.apply(s, s.add(at.read(s, y), at.read(s, bias)));
                at.write(s, y, v);
            }),
            Some(dropout) => {
                let factors = dropout.row(s, r, cols);
                vectors!(S, cols, at => {
                    let v = activation.apply(s, s.add(at.read(s, y), at.read(s, bias)));
                    at.write(s, y, s.mul(v, factors.at(s, at.index())));
                });
            }
        }
    }
}
simd_kernel! {
    /// `y = dropout(activation(y + bias))` for each row of `y [rows, bias.len()]`, in place;
    /// `before` receives `y + bias`.
    ///
    /// A NaN propagates through every activation.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn activate(
        y: &mut [f32], bias: &[f32], activation: Activation, dropout: Option<Dropout>, before: Option<&mut [f32]>,
    ) = forward_body;
}

#[inline(always)]
fn in_place_body<S: Simd>(s: S, y: &mut [f32], activation: Activation) {
    if activation != Activation::Identity {
        vectors!(S, y.len(), at => { at.write(s, y, activation.apply(s, at.read(s, y))); });
    }
}
simd_kernel! {
    /// `y = activation(y)`.
    pub fn activate_in_place(y: &mut [f32], activation: Activation) = in_place_body;
}

#[inline(always)]
fn backward_body<S: Simd>(
    s: S,
    dy: &mut [f32],
    known: &[f32],
    activation: Activation,
    dropout: Option<Dropout>,
    d_bias: &mut [f32],
) {
    let cols = d_bias.len();
    if cols == 0 {
        return;
    }
    assert!(dy.len().is_multiple_of(cols));
    if activation == Activation::Identity && dropout.is_none() {
        for dy in dy.chunks_exact(cols) {
            vectors!(S, cols, at => { at.write(s, d_bias, s.add(at.read(s, d_bias), at.read(s, dy))); });
        }
        return;
    }
    assert!(known.len() == dy.len());
    for (r, (dy, known)) in dy.chunks_exact_mut(cols).zip(known.chunks_exact(cols)).enumerate() {
        match dropout {
            None => vectors!(S, cols, at => {
                let v = s.mul(at.read(s, dy), activation.grad(s, at.read(s, known)));
                at.write(s, dy, v);
                at.write(s, d_bias, s.add(at.read(s, d_bias), v));
            }),
            Some(dropout) => {
                let factors = dropout.row(s, r, cols);
                vectors!(S, cols, at => {
                    let grad = s.mul(activation.grad(s, at.read(s, known)), factors.at(s, at.index()));
                    let v = s.mul(at.read(s, dy), grad);
                    at.write(s, dy, v);
                    at.write(s, d_bias, s.add(at.read(s, d_bias), v));
                });
            }
        }
    }
}
simd_kernel! {
    /// Turns `dy`, the gradient with respect to the output of [`activate`], into the gradient with
    /// respect to its input, and adds the sums of its columns to `d_bias`.
    ///
    /// `known` is the input of the activation if the activation [needs](Activation::needs_input)
    /// it, and the output otherwise: for ReLU, input and output are positive at the same places,
    /// except where dropout makes the gradient zero anyway.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn activate_backward(
        dy: &mut [f32], known: &[f32], activation: Activation, dropout: Option<Dropout>, d_bias: &mut [f32],
    ) = backward_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, Key, naive};

    type Twin = fn(f64) -> f64;

    const ALL: [(Activation, Twin); 5] = [
        (Activation::Identity, |x| x),
        (Activation::Relu, naive::relu),
        (Activation::Gelu, naive::gelu),
        (Activation::GeluTanh, naive::gelu_tanh),
        (Activation::Silu, naive::silu),
    ];

    #[test]
    fn forward_and_backward_agree_with_the_naive_twin() {
        for isa in Isa::available() {
            for (activation, twin) in ALL {
                for &cols in SIZES {
                    for dropout in [None, Some(Dropout::new(Key::new(2), 0.25, 7))] {
                        let rows = 2;
                        let (z, bias, dy) = (random(rows * cols, 1), random(cols, 2), random(rows * cols, 3));
                        let factor =
                            |i: usize| dropout.map_or(1.0, |p| f64::from(p.factor(i / cols, i % cols, cols)));
                        let input = |i: usize| f64::from(z[i]) + f64::from(bias[i % cols]);
                        let what = format!("{isa} {activation:?} {cols} {dropout:?}");

                        let (mut y, mut before) = (z.clone(), vec![0.0; z.len()]);
                        activate(isa, &mut y, &bias, activation, dropout, Some(&mut before));
                        let want: Vec<f64> = (0..z.len()).map(|i| factor(i) * twin(input(i))).collect();
                        assert_close(&y, &want, 1e-6, &what);
                        assert_close(&before, &(0..z.len()).map(input).collect::<Vec<_>>(), 1e-6, &what);

                        let known = if activation.needs_input() { &before } else { &y };
                        let (mut dz, mut d_bias) = (dy.clone(), vec![1.0; cols]);
                        activate_backward(isa, &mut dz, known, activation, dropout, &mut d_bias);
                        let h = 1e-5;
                        let grad = |x: f64| (twin(x + h) - twin(x - h)) / (2.0 * h);
                        let want: Vec<f64> =
                            (0..z.len()).map(|i| f64::from(dy[i]) * factor(i) * grad(input(i))).collect();
                        assert_close(&dz, &want, 2e-5, &what);
                        let sums: Vec<f64> = (0..cols)
                            .map(|c| 1.0 + (0..rows).map(|r| want[r * cols + c]).sum::<f64>())
                            .collect();
                        assert_close(&d_bias, &sums, 5e-5, &what);
                    }
                }
            }
        }
    }

    #[test]
    fn far_values_and_nan() {
        for isa in Isa::available() {
            for (activation, twin) in ALL {
                let x = [f32::NAN, 0.0, -0.0, 30.0, -30.0, 80.0, -80.0, 1e4, -1e4];
                let mut y = x;
                activate(isa, &mut y, &[0.0; 9], activation, None, None);
                assert!(y[0].is_nan(), "{isa} {activation:?}");
                let want: Vec<f64> = widen(&x[1..]).into_iter().map(twin).collect();
                assert_close(&y[1..], &want, 1e-6, &format!("{isa} {activation:?}"));
            }
        }
    }
}
