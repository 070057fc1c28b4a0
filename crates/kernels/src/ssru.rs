//! The simpler simple recurrent unit (SSRU; Kim et al., 2019), between its matmuls: the recurrence
//! itself is elementwise, so the matmuls for all tokens of a sentence run before it and are as
//! large as those of attention.
//!
//! `f = σ(z)`, `c = f·c₋ + (1 − f)·x`, `y = max(c, 0)`, where `x = W·h` and `z = W_f·h + b_f` are
//! computed from the token and `c₋` is the previous state, zero at the beginning of a sentence.

use crate::mat::Mat;
use crate::math::sigmoid;
use crate::simd::loops::{Place, vectors};
use crate::simd::{Simd, simd_kernel};

#[inline(always)]
fn step_body<S: Simd>(s: S, x: &[f32], z: &[f32], state: &mut [f32], y: &mut [f32]) {
    let d = state.len();
    assert!(x.len() == d && z.len() == d && y.len() == d);
    let one = s.splat(1.0);
    vectors!(S, d, at => {
        let forget = sigmoid(s, at.read(s, z));
        let new = s.mul_add(forget, at.read(s, state), s.mul(s.sub(one, forget), at.read(s, x)));
        at.write(s, state, new);
        // `max` returns its second argument for NaN, so that a NaN propagates.
        at.write(s, y, s.max(s.zero(), new));
    });
}
simd_kernel! {
    /// One token: updates `state [d]` and writes the output to `y [d]`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn ssru_step(x: &[f32], z: &[f32], state: &mut [f32], y: &mut [f32]) = step_body;
}

#[inline(always)]
fn forward_body<S: Simd>(
    s: S,
    x: Mat<'_>,
    z: Mat<'_>,
    offsets: &[usize],
    forget: &mut [f32],
    states: &mut [f32],
    y: &mut [f32],
) {
    let (rows, d) = (x.rows, x.cols);
    assert!(z.rows == rows && z.cols == d && offsets.last().is_none_or(|&end| end == rows));
    assert!(forget.len() == rows * d && states.len() == rows * d && y.len() == rows * d);
    let one = s.splat(1.0);
    for sentence in offsets.windows(2) {
        for row in sentence[0]..sentence[1] {
            let (x, z) = (x.row(row), z.row(row));
            let (before, rest) = states.split_at_mut(row * d);
            let before = (row > sentence[0]).then(|| &before[(row - 1) * d..]);
            let state = &mut rest[..d];
            let (forget, y) = (&mut forget[row * d..][..d], &mut y[row * d..][..d]);
            vectors!(S, d, at => {
                let f = sigmoid(s, at.read(s, z));
                let kept = match before {
                    Some(before) => s.mul(f, at.read(s, before)),
                    None => s.zero(),
                };
                let new = s.mul_add(s.sub(one, f), at.read(s, x), kept);
                at.write(s, forget, f);
                at.write(s, state, new);
                at.write(s, y, s.max(s.zero(), new));
            });
        }
    }
}
simd_kernel! {
    /// Whole sentences, contiguous, beginning at `offsets`. `x`, `z`, the outputs `y` and what the
    /// backward pass needs, the forget gates `f` and the `states`, are `[rows, d]`.
    ///
    /// # Panics
    /// If the sizes do not match.
    pub fn ssru_forward(
        x: Mat<'_>, z: Mat<'_>, offsets: &[usize], forget: &mut [f32], states: &mut [f32], y: &mut [f32],
    ) = forward_body;
}

/// What the backward pass needs: `x`, and what [`ssru_forward`] has saved, all `[rows, d]`.
#[derive(Clone, Copy, Debug)]
pub struct SsruSaved<'a> {
    /// The candidates.
    pub x: Mat<'a>,
    /// The forget gates.
    pub forget: &'a [f32],
    /// The states.
    pub states: &'a [f32],
}

#[inline(always)]
fn backward_body<S: Simd>(
    s: S,
    saved: SsruSaved<'_>,
    offsets: &[usize],
    dy: &[f32],
    carry: &mut [f32],
    dx: &mut [f32],
    dz: &mut [f32],
) {
    let SsruSaved { x, forget, states } = saved;
    let (rows, d) = (x.rows, x.cols);
    let len = rows * d;
    assert!(forget.len() == len && states.len() == len && dy.len() == len && carry.len() == d);
    assert!(dx.len() == len && dz.len() == len && offsets.last().is_none_or(|&end| end == rows));
    let one = s.splat(1.0);
    for sentence in offsets.windows(2) {
        carry.fill(0.0);
        for row in (sentence[0]..sentence[1]).rev() {
            let at_row = row * d..(row + 1) * d;
            let before = (row > sentence[0]).then(|| &states[(row - 1) * d..row * d]);
            let (x, forget, state) = (x.row(row), &forget[at_row.clone()], &states[at_row.clone()]);
            let (dy, dx, dz) = (&dy[at_row.clone()], &mut dx[at_row.clone()], &mut dz[at_row]);
            vectors!(S, d, at => {
                let f = at.read(s, forget);
                let own = s.select(s.lt(s.zero(), at.read(s, state)), at.read(s, dy), s.zero());
                let grad = s.add(own, at.read(s, carry));
                let rest = s.sub(one, f);
                let before = match before {
                    Some(before) => at.read(s, before),
                    None => s.zero(),
                };
                let by_gate = s.mul(s.mul(grad, s.sub(before, at.read(s, x))), s.mul(f, rest));
                at.write(s, carry, s.mul(grad, f));
                at.write(s, dx, s.add(at.read(s, dx), s.mul(grad, rest)));
                at.write(s, dz, s.add(at.read(s, dz), by_gate));
            });
        }
    }
}
simd_kernel! {
    /// The backward pass of [`ssru_forward`]: accumulates the gradients with respect to `x` and `z`
    /// in `dx` and `dz`; `carry [d]` is scratch memory.
    ///
    /// # Panics
    /// If the sizes do not match.
    pub fn ssru_backward(
        saved: SsruSaved<'_>, offsets: &[usize], dy: &[f32], carry: &mut [f32], dx: &mut [f32], dz: &mut [f32],
    ) = backward_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, naive};

    /// Three sentences, one of which is empty.
    const OFFSETS: [usize; 4] = [0, 3, 3, 5];

    #[test]
    fn forward_and_backward_agree_with_the_naive_twin() {
        let rows = 5;
        for isa in Isa::available() {
            for &d in SIZES {
                let what = format!("{isa} {d}");
                let (x, z, dy) = (random(rows * d, 1), random(rows * d, 2), random(rows * d, 3));
                let [mut forget, mut states, mut y] = [(); 3].map(|()| vec![7.0; rows * d]);
                let x_mat = Mat::new(&x, rows, d);
                let z_mat = Mat::new(&z, rows, d);
                ssru_forward(isa, x_mat, z_mat, &OFFSETS, &mut forget, &mut states, &mut y);
                let (x64, z64) = (widen(&x), widen(&z));
                assert_close(&y, &naive::ssru(&x64, &z64, &OFFSETS, d), 1e-6, &what);
                let (mut dx, mut dz) = (vec![1.0; rows * d], vec![2.0; rows * d]);
                let saved = SsruSaved { x: x_mat, forget: &forget, states: &states };
                ssru_backward(isa, saved, &OFFSETS, &dy, &mut vec![0.0; d], &mut dx, &mut dz);
                let total = |y: Vec<f64>| y.iter().zip(&dy).map(|(y, g)| y * f64::from(*g)).sum::<f64>();
                let by_x =
                    naive::finite_differences(&x64, 1e-6, |x| total(naive::ssru(x, &z64, &OFFSETS, d)));
                let by_z =
                    naive::finite_differences(&z64, 1e-6, |z| total(naive::ssru(&x64, z, &OFFSETS, d)));
                let plus = |g: Vec<f64>, n: f64| g.into_iter().map(|g| g + n).collect::<Vec<_>>();
                assert_close(&dx, &plus(by_x, 1.0), 1e-5, &format!("{what}: dx"));
                assert_close(&dz, &plus(by_z, 2.0), 1e-5, &format!("{what}: dz"));
            }
        }
    }

    #[test]
    fn steps_are_sentences_token_by_token() {
        let d = 19;
        for isa in Isa::available() {
            let (x, z) = (random(3 * d, 1), random(3 * d, 2));
            let [mut state, mut y] = [(); 2].map(|()| vec![0.0; d]);
            let want = naive::ssru(&widen(&x), &widen(&z), &[0, 3], d);
            for t in 0..3 {
                ssru_step(isa, &x[t * d..][..d], &z[t * d..][..d], &mut state, &mut y);
                assert_close(&y, &want[t * d..][..d], 1e-6, &format!("{isa}, token {t}"));
            }
        }
    }

    #[test]
    fn gates_saturate_and_a_nan_stays_in_its_column() {
        for isa in Isa::available() {
            let (x, z) = ([f32::NAN, 2.0, 3.0, -4.0], [0.0, 1e4, -1e4, -1e4]);
            let (mut state, mut y) = ([1.0, 1.0, 1.0, 1.0], [0.0; 4]);
            ssru_step(isa, &x, &z, &mut state, &mut y);
            assert!(y[0].is_nan() && state[0].is_nan(), "{isa}");
            assert_eq!((&y[1..], &state[1..]), (&[1.0, 3.0, 0.0][..], &[1.0, 3.0, -4.0][..]), "{isa}");
        }
    }
}
