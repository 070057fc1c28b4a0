//! Layer and RMS normalisation, fused with the residual sum and the dropout that precede it in the
//! paper's post-norm layers.

use crate::Accumulate;
use crate::dropout::Dropout;
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, simd_kernel};

/// The weights of a layer normalisation, or of an RMS normalisation, which has no β and does not
/// subtract the mean.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'a> {
    /// γ `[d]`
    pub gamma: &'a [f32],
    /// β `[d]`; without it, rows are divided by their root mean square.
    pub beta: Option<&'a [f32]>,
    /// ε under the root.
    pub epsilon: f32,
}

/// What the forward pass saves for the backward pass.
#[derive(Debug)]
pub struct NormSaved<'a> {
    /// The rows before γ and β are applied, `[rows, d]`.
    pub normalised: &'a mut [f32],
    /// `1 / √(variance + ε)` of each row, or the same with the mean square.
    pub scale: &'a mut [f32],
}

#[inline(always)]
fn forward_body<S: Simd>(
    s: S,
    x: &[f32],
    branch: Option<&[f32]>,
    dropout: Option<Dropout>,
    norm: Norm<'_>,
    y: &mut [f32],
    saved: NormSaved<'_>,
) {
    let d = norm.gamma.len();
    let rows = saved.scale.len();
    assert!(
        norm.beta.is_none_or(|beta| beta.len() == d)
            && x.len() == rows * d
            && y.len() == rows * d
            && saved.normalised.len() == rows * d
    );
    assert!(branch.is_none_or(|f| f.len() == rows * d));
    for r in 0..rows {
        let row = r * d..(r + 1) * d;
        let x = &x[row.clone()];
        let sum = &mut saved.normalised[row.clone()];
        let mut total = s.zero();
        match (branch, dropout) {
            (None, _) => vectors!(S, d, at => {
                let v = at.read(s, x);
                at.write(s, sum, v);
                total = s.add(total, v);
            }),
            (Some(f), None) => {
                let f = &f[row.clone()];
                vectors!(S, d, at => {
                    let v = s.add(at.read(s, x), at.read(s, f));
                    at.write(s, sum, v);
                    total = s.add(total, v);
                });
            }
            (Some(f), Some(dropout)) => {
                let f = &f[row.clone()];
                let factors = dropout.row(s, r, d);
                vectors!(S, d, at => {
                    let v = s.mul_add(at.read(s, f), factors.at(s, at.index()), at.read(s, x));
                    at.write(s, sum, v);
                    total = s.add(total, at.fill(s, v, 0.0));
                });
            }
        }
        let mean = if norm.beta.is_some() { s.reduce_sum(total) / d as f32 } else { 0.0 };
        let scale = 1.0 / (loops::sum_of_squares(s, sum, mean) / d as f32 + norm.epsilon).sqrt();
        saved.scale[r] = scale;
        let (mean, scale) = (s.splat(mean), s.splat(scale));
        let y = &mut y[row];
        match norm.beta {
            Some(beta) => vectors!(S, d, at => {
                let v = s.mul(s.sub(at.read(s, sum), mean), scale);
                at.write(s, sum, v);
                at.write(s, y, s.mul_add(v, at.read(s, norm.gamma), at.read(s, beta)));
            }),
            None => vectors!(S, d, at => {
                let v = s.mul(at.read(s, sum), scale);
                at.write(s, sum, v);
                at.write(s, y, s.mul(v, at.read(s, norm.gamma)));
            }),
        }
    }
}
simd_kernel! {
    /// `y = LayerNorm(x + dropout(branch))` of each row; without a branch, `y = LayerNorm(x)`.
    /// Without a β it is RMS normalisation.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn add_norm(
        x: &[f32], branch: Option<&[f32]>, dropout: Option<Dropout>, norm: Norm<'_>, y: &mut [f32], saved: NormSaved<'_>,
    ) = forward_body;
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn backward_body<S: Simd>(
    s: S,
    dy: &[f32],
    gamma: &[f32],
    (normalised, scale): (&[f32], &[f32]),
    dropout: Option<Dropout>,
    (dx, into_x): (&mut [f32], Accumulate),
    mut branch: Option<(&mut [f32], Accumulate)>,
    (d_gamma, mut d_beta): (&mut [f32], Option<&mut [f32]>),
) {
    let d = gamma.len();
    let rows = scale.len();
    assert!(dy.len() == rows * d && normalised.len() == rows * d && dx.len() == rows * d);
    assert!(d_gamma.len() == d && d_beta.as_ref().is_none_or(|d_beta| d_beta.len() == d));
    let centred = d_beta.is_some();
    assert!(branch.as_ref().is_none_or(|(df, _)| df.len() == rows * d));
    for (r, &scale) in scale.iter().enumerate() {
        let row = r * d..(r + 1) * d;
        let (dy, hat, dx) = (&dy[row.clone()], &normalised[row.clone()], &mut dx[row.clone()]);
        let (mut sum, mut sum_hat) = (s.zero(), s.zero());
        vectors!(S, d, at => {
            let (g, h) = (at.read(s, dy), at.read(s, hat));
            if let Some(d_beta) = &mut d_beta {
                at.write(s, d_beta, s.add(at.read(s, d_beta), g));
            }
            at.write(s, d_gamma, s.mul_add(g, h, at.read(s, d_gamma)));
            let g = s.mul(g, at.read(s, gamma));
            sum = s.add(sum, g);
            sum_hat = s.mul_add(g, h, sum_hat);
        });
        let n = d as f32;
        let mean = if centred { s.reduce_sum(sum) / n } else { 0.0 };
        let (mean, mean_hat) = (s.splat(mean), s.splat(s.reduce_sum(sum_hat) / n));
        let scale = s.splat(scale);
        vectors!(S, d, at => {
            let g = s.sub(s.mul(at.read(s, dy), at.read(s, gamma)), mean);
            let v = s.mul(scale, s.sub(g, s.mul(at.read(s, hat), mean_hat)));
            let old = if into_x == Accumulate::Add { at.read(s, dx) } else { s.zero() };
            at.write(s, dx, s.add(old, v));
            if let Some((df, into)) = &mut branch {
                let df = &mut df[row.clone()];
                let v = match dropout {
                    Some(dropout) => s.mul(v, dropout.row(s, r, d).at(s, at.index())),
                    None => v,
                };
                let old = if *into == Accumulate::Add { at.read(s, df) } else { s.zero() };
                at.write(s, df, s.add(old, v));
            }
        });
    }
}
simd_kernel! {
    /// The gradients of [`add_norm`] with respect to `x`, the branch, γ and, if present, β; those
    /// of γ and β are accumulated.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn add_norm_backward(
        dy: &[f32], gamma: &[f32], saved: (&[f32], &[f32]), dropout: Option<Dropout>, dx: (&mut [f32], Accumulate),
        branch: Option<(&mut [f32], Accumulate)>, d_norm: (&mut [f32], Option<&mut [f32]>),
    ) = backward_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, Key, naive};

    const EPSILON: f32 = 1e-5;

    fn twin(x: &[f64], f: &[f64], gamma: &[f64], beta: Option<&[f64]>, dropout: Option<Dropout>) -> Vec<f64> {
        let d = gamma.len();
        let rows = x.len().checked_div(d).unwrap_or(0);
        let factor = |r, c| dropout.map_or(1.0, |p| f64::from(p.factor(r, c, d)));
        (0..rows)
            .flat_map(|r| {
                let sum: Vec<f64> = (0..d).map(|c| x[r * d + c] + factor(r, c) * f[r * d + c]).collect();
                match beta {
                    Some(beta) => naive::layer_norm(&sum, gamma, beta, f64::from(EPSILON)),
                    None => naive::rms_norm(&sum, gamma, f64::from(EPSILON)),
                }
            })
            .collect()
    }

    #[test]
    fn forward_and_backward_agree_with_the_naive_twin() {
        for isa in Isa::available() {
            for &d in SIZES.iter().filter(|&&d| d <= 33) {
                let dropped = Some(Dropout::new(Key::new(9), 0.4, 3));
                for (dropout, centred) in [(None, true), (dropped, true), (None, false), (dropped, false)] {
                    let rows = 3;
                    let n = rows * d;
                    let (x, f, dy) = (random(n, 1), random(n, 2), random(n, 3));
                    let (gamma, beta) = (random(d, 4), random(d, 5));
                    let (mut y, mut hat, mut scale) = (vec![0.0; n], vec![0.0; n], vec![0.0; rows]);
                    let norm = Norm { gamma: &gamma, beta: centred.then_some(&beta[..]), epsilon: EPSILON };
                    let saved = NormSaved { normalised: &mut hat, scale: &mut scale };
                    add_norm(isa, &x, Some(&f), dropout, norm, &mut y, saved);
                    let (wx, wf, wg, wb) = (widen(&x), widen(&f), widen(&gamma), widen(&beta));
                    let want = twin(&wx, &wf, &wg, centred.then_some(&wb[..]), dropout);
                    assert_close(&y, &want, 1e-4, &format!("{isa} {d} {centred}"));

                    let (mut dx, mut df) = (vec![1.0; n], vec![f32::NAN; n]);
                    let (mut dg, mut db) = (vec![1.0; d], vec![1.0; d]);
                    add_norm_backward(
                        isa,
                        &dy,
                        &gamma,
                        (&hat, &scale),
                        dropout,
                        (&mut dx, Accumulate::Add),
                        Some((&mut df, Accumulate::Overwrite)),
                        (&mut dg, centred.then_some(&mut db[..])),
                    );
                    if d == 1 && centred {
                        continue; // The variance is 0: the gradients are 1/√ε times 0.
                    }
                    let loss = |y: Vec<f64>| y.iter().zip(&dy).map(|(y, g)| y * f64::from(*g)).sum::<f64>();
                    let plus = |w: Vec<f64>| w.into_iter().map(|w| w + 1.0).collect::<Vec<_>>();
                    let h = 1e-6;
                    let by = |x: &[f64], f: &dyn Fn(&[f64]) -> f64| naive::finite_differences(x, h, f);
                    let tolerance = 2e-3; // With two columns the variance can be near ε, and the gradient large.
                    assert_close(
                        &dx,
                        &plus(by(&wx, &|x| loss(twin(x, &wf, &wg, centred.then_some(&wb[..]), dropout)))),
                        tolerance,
                        "dx",
                    );
                    assert_close(
                        &df,
                        &by(&wf, &|f| loss(twin(&wx, f, &wg, centred.then_some(&wb[..]), dropout))),
                        tolerance,
                        "df",
                    );
                    assert_close(
                        &dg,
                        &plus(by(&wg, &|g| loss(twin(&wx, &wf, g, centred.then_some(&wb[..]), dropout)))),
                        tolerance,
                        "dγ",
                    );
                    assert_close(
                        &db,
                        &plus(by(&wb, &|b| loss(twin(&wx, &wf, &wg, centred.then_some(b), dropout)))),
                        tolerance,
                        "dβ",
                    );
                }
            }
        }
    }

    #[test]
    fn a_nan_stays_in_its_row() {
        for isa in Isa::available() {
            let d = 19;
            let (mut x, gamma, beta) = (random(2 * d, 1), vec![1.0; d], vec![0.0; d]);
            x[d - 1] = f32::NAN;
            let (mut y, mut hat, mut scale) = (vec![0.0; 2 * d], vec![0.0; 2 * d], vec![0.0; 2]);
            let norm = Norm { gamma: &gamma, beta: Some(&beta), epsilon: EPSILON };
            let saved = NormSaved { normalised: &mut hat, scale: &mut scale };
            add_norm(isa, &x, None, None, norm, &mut y, saved);
            assert!(y[..d].iter().all(|y| y.is_nan()) && y[d..].iter().all(|y| y.is_finite()), "{isa}");
        }
    }
}
