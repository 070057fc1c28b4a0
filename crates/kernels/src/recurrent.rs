//! One time step of a gated recurrent unit (GRU) for all unfinished sentences, between its matmuls.
//!
//! `r = σ(x_r + u_r)`, `z = σ(x_z + u_z)`, `c = tanh(x_c + r·u_c)`, `y = (1 − z)·c + z·h`, where
//! `x` is computed from the token and `u = U·h + b` from the previous state (Cho et al., 2014, in
//! the variant that keeps `U` one matrix).

use crate::mat::{Mat, MatMut};
use crate::math::sigmoid;
use crate::simd::loops::{Place, vectors};
use crate::simd::{Simd, simd_kernel};

/// `tanh x = 2·σ(2x) − 1`.
#[inline(always)]
fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let two = s.splat(2.0);
    s.mul_add(two, sigmoid(s, s.mul(two, x)), s.splat(-1.0))
}

/// Splits a row of `3·h` elements into reset, update and candidate.
#[inline(always)]
fn thirds(row: &[f32]) -> (&[f32], &[f32], &[f32]) {
    let h = row.len() / 3;
    (&row[..h], &row[h..2 * h], &row[2 * h..])
}

#[inline(always)]
fn thirds_mut(row: &mut [f32]) -> (&mut [f32], &mut [f32], &mut [f32]) {
    let h = row.len() / 3;
    let (first, rest) = row.split_at_mut(h);
    let (second, third) = rest.split_at_mut(h);
    (first, second, third)
}

#[inline(always)]
fn forward_body<S: Simd>(
    s: S,
    x: Mat<'_>,
    rows: &[usize],
    gates: &mut [f32],
    u_c: &mut [f32],
    state: &mut [f32],
    mut y: MatMut<'_>,
) {
    let h = y.cols;
    assert!(x.cols == 3 * h && gates.len() == rows.len() * 3 * h);
    assert!(u_c.len() == rows.len() * h && state.len() == rows.len() * h);
    let one = s.splat(1.0);
    for (i, &row) in rows.iter().enumerate() {
        let (x_r, x_z, x_c) = thirds(x.row(row));
        let (r, z, c) = thirds_mut(&mut gates[i * 3 * h..][..3 * h]);
        let (u_c, state) = (&mut u_c[i * h..][..h], &mut state[i * h..][..h]);
        let y = y.row(row);
        vectors!(S, h, at => {
            let reset = sigmoid(s, s.add(at.read(s, x_r), at.read(s, r)));
            let update = sigmoid(s, s.add(at.read(s, x_z), at.read(s, z)));
            let from_state = at.read(s, c);
            let candidate = tanh(s, s.mul_add(reset, from_state, at.read(s, x_c)));
            let new = s.mul_add(update, at.read(s, state), s.mul(s.sub(one, update), candidate));
            at.write(s, u_c, from_state);
            at.write(s, r, reset);
            at.write(s, z, update);
            at.write(s, c, candidate);
            at.write(s, state, new);
            at.write(s, y, new);
        });
    }
}
simd_kernel! {
    /// One step of `k` sentences, whose tokens are the `rows` of `x [.., 3·h]` and `y [.., h]`.
    ///
    /// `gates [k, 3·h]` holds `U·h + b` on entry and `r`, `z` and `c` on return; `u_c [k, h]`
    /// receives the last third of `U·h + b`; `state [k, h]` and the rows of `y` become the new
    /// state. A NaN stays in its row.
    ///
    /// # Panics
    /// If the sizes do not match.
    pub fn gru_forward(
        x: Mat<'_>, rows: &[usize], gates: &mut [f32], u_c: &mut [f32], state: &mut [f32], y: MatMut<'_>,
    ) = forward_body;
}

/// What the backward pass of a step needs: the gates `[k, 3·h]` and `u_c [k, h]`, as
/// [`gru_forward`] left them, and the states before the step `[k, h]`.
#[derive(Clone, Copy, Debug)]
pub struct GruStep<'a> {
    /// r, z and c.
    pub gates: &'a [f32],
    /// The last third of `U·h + b`: the contribution of the state to the candidate.
    pub u_c: &'a [f32],
    /// h, the state before the step.
    pub before: &'a [f32],
}

#[inline(always)]
fn backward_body<S: Simd>(
    s: S,
    step: GruStep<'_>,
    rows: &[usize],
    dy: Mat<'_>,
    carry: &mut [f32],
    mut dx: MatMut<'_>,
    d_gates: &mut [f32],
) {
    let (h, k) = (dy.cols, rows.len());
    assert!(dx.cols == 3 * h && step.gates.len() == k * 3 * h && d_gates.len() == k * 3 * h);
    assert!(step.u_c.len() == k * h && step.before.len() == k * h && carry.len() == k * h);
    let one = s.splat(1.0);
    for (i, &row) in rows.iter().enumerate() {
        let (r, z, c) = thirds(&step.gates[i * 3 * h..][..3 * h]);
        let (u_c, before) = (&step.u_c[i * h..][..h], &step.before[i * h..][..h]);
        let (d_r, d_z, d_u) = thirds_mut(&mut d_gates[i * 3 * h..][..3 * h]);
        let (dx_r, dx_z, dx_c) = thirds_mut(dx.row(row));
        let (dy, carry) = (dy.row(row), &mut carry[i * h..][..h]);
        vectors!(S, h, at => {
            let (reset, update, candidate) = (at.read(s, r), at.read(s, z), at.read(s, c));
            let grad = s.add(at.read(s, dy), at.read(s, carry));
            let by_candidate = s.mul(
                s.mul(grad, s.sub(one, update)),
                s.sub(one, s.mul(candidate, candidate)),
            );
            let by_reset = s.mul(
                s.mul(by_candidate, at.read(s, u_c)),
                s.mul(reset, s.sub(one, reset)),
            );
            let by_update = s.mul(
                s.mul(grad, s.sub(at.read(s, before), candidate)),
                s.mul(update, s.sub(one, update)),
            );
            at.write(s, carry, s.mul(grad, update));
            at.write(s, d_r, by_reset);
            at.write(s, d_z, by_update);
            at.write(s, d_u, s.mul(by_candidate, reset));
            at.write(s, dx_r, s.add(at.read(s, dx_r), by_reset));
            at.write(s, dx_z, s.add(at.read(s, dx_z), by_update));
            at.write(s, dx_c, s.add(at.read(s, dx_c), by_candidate));
        });
    }
}
simd_kernel! {
    /// The backward pass of one step. `carry [k, h]` holds the gradient with respect to the new
    /// state from later steps on entry. On return it holds the gradient with respect to the
    /// previous state, except for the part through `U`: that is `d_gates · U`, with `d_gates [k,
    /// 3·h]` the gradient with respect to `U·h + b`. The gradient with respect to the rows of `x`
    /// is added to those of `dx`.
    ///
    /// # Panics
    /// If the sizes do not match.
    pub fn gru_backward(
        step: GruStep<'_>, rows: &[usize], dy: Mat<'_>, carry: &mut [f32], dx: MatMut<'_>, d_gates: &mut [f32],
    ) = backward_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, naive};

    /// Steps of two sentences whose tokens are rows 3 and 1 of four.
    const ROWS: [usize; 2] = [3, 1];

    struct Case {
        x: Vec<f32>,
        from_state: Vec<f32>,
        state: Vec<f32>,
    }

    impl Case {
        fn new(h: usize) -> Self {
            Case { x: random(4 * 3 * h, 1), from_state: random(2 * 3 * h, 2), state: random(2 * h, 3) }
        }

        /// The output, the gates and `u_c`.
        fn forward(&self, isa: Isa, h: usize) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
            let (mut gates, mut state) = (self.from_state.clone(), self.state.clone());
            let (mut u_c, mut y) = (vec![0.0; 2 * h], vec![7.0; 4 * h]);
            let x = Mat::new(&self.x, 4, 3 * h);
            gru_forward(isa, x, &ROWS, &mut gates, &mut u_c, &mut state, MatMut::new(&mut y, 4, h));
            for (i, row) in ROWS.into_iter().enumerate() {
                let bits =
                    |x: &[f32], at: usize| x[at * h..][..h].iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&state, i), bits(&y, row));
            }
            assert!([0, 2].iter().all(|row| y[row * h..][..h].iter().all(|&y| y == 7.0)));
            (y, gates, u_c)
        }
    }

    #[test]
    fn forward_and_backward_agree_with_the_naive_twin() {
        for isa in Isa::available() {
            for &h in SIZES {
                let case = Case::new(h);
                let (y, gates, u_c) = case.forward(isa, h);
                let dy = random(4 * h, 4);
                let (mut carry, mut d_gates) = (random(2 * h, 5), vec![0.0; 2 * 3 * h]);
                let first_carry = carry.clone();
                let mut dx = vec![1.0; 4 * 3 * h];
                let step = GruStep { gates: &gates, u_c: &u_c, before: &case.state };
                let to = MatMut::new(&mut dx, 4, 3 * h);
                gru_backward(isa, step, &ROWS, Mat::new(&dy, 4, h), &mut carry, to, &mut d_gates);
                for (i, row) in ROWS.into_iter().enumerate() {
                    let what = format!("{isa} {h}, sentence {i}");
                    let x = widen(&case.x[row * 3 * h..][..3 * h]);
                    let u = widen(&case.from_state[i * 3 * h..][..3 * h]);
                    let before = widen(&case.state[i * h..][..h]);
                    let grad: Vec<f64> = (0..h)
                        .map(|j| f64::from(dy[row * h + j]) + f64::from(first_carry[i * h + j]))
                        .collect();
                    assert_close(&y[row * h..][..h], &naive::gru_step(&x, &u, &before), 1e-6, &what);
                    let total = |y: Vec<f64>| y.iter().zip(&grad).map(|(y, grad)| y * grad).sum::<f64>();
                    let by_x =
                        naive::finite_differences(&x, 1e-5, |x| total(naive::gru_step(x, &u, &before)));
                    let by_u =
                        naive::finite_differences(&u, 1e-5, |u| total(naive::gru_step(&x, u, &before)));
                    let by_h =
                        naive::finite_differences(&before, 1e-5, |h| total(naive::gru_step(&x, &u, h)));
                    let plus_one: Vec<f64> = by_x.iter().map(|x| x + 1.0).collect();
                    assert_close(&dx[row * 3 * h..][..3 * h], &plus_one, 2e-5, &what);
                    assert_close(&d_gates[i * 3 * h..][..3 * h], &by_u, 2e-5, &what);
                    assert_close(&carry[i * h..][..h], &by_h, 2e-5, &what);
                }
            }
        }
    }

    #[test]
    fn far_values_saturate_and_a_nan_stays_in_its_row() {
        let h = 5;
        for isa in Isa::available() {
            let mut case = Case::new(h);
            (case.x[3 * 3 * h], case.x[3 * 3 * h + 2 * h]) = (1e4, -1e4);
            assert!(case.forward(isa, h).0.iter().all(|y| y.is_finite()), "{isa}");
            case.state[0] = f32::NAN;
            let (y, ..) = case.forward(isa, h);
            assert!(y[3 * h].is_nan() && y[3 * h + 1..].iter().all(|y| y.is_finite()), "{isa}");
            assert!(y[h..2 * h].iter().all(|y| y.is_finite()), "{isa}");
        }
    }
}
