//! Sums, dropout and norms of contiguous rows.

use crate::Accumulate;
use crate::dropout::Dropout;
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, simd_kernel};

#[inline(always)]
fn add_body<S: Simd>(s: S, y: &mut [f32], x: &[f32]) {
    assert_eq!(y.len(), x.len());
    vectors!(S, x.len(), at => { let v = s.add(at.read(s, y), at.read(s, x)); at.write(s, y, v); });
}
simd_kernel! {
    /// `y += x`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add(y: &mut [f32], x: &[f32]) = add_body;
}

#[inline(always)]
fn add_scaled_body<S: Simd>(s: S, y: &mut [f32], x: &[f32], factor: f32) {
    assert_eq!(y.len(), x.len());
    let factor = s.splat(factor);
    vectors!(S, x.len(), at => { let v = s.mul_add(at.read(s, x), factor, at.read(s, y)); at.write(s, y, v); });
}
simd_kernel! {
    /// `y += factor · x`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_scaled(y: &mut [f32], x: &[f32], factor: f32) = add_scaled_body;
}

#[inline(always)]
fn multiply_body<S: Simd>(s: S, y: &mut [f32], x: &[f32]) {
    assert_eq!(y.len(), x.len());
    vectors!(S, x.len(), at => { let v = s.mul(at.read(s, y), at.read(s, x)); at.write(s, y, v); });
}
simd_kernel! {
    /// `y = y ∘ x`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn multiply(y: &mut [f32], x: &[f32]) = multiply_body;
}

#[inline(always)]
fn add_product_body<S: Simd>(s: S, y: &mut [f32], a: &[f32], b: &[f32]) {
    assert!(y.len() == a.len() && y.len() == b.len());
    vectors!(S, a.len(), at => {
        let v = s.mul_add(at.read(s, a), at.read(s, b), at.read(s, y));
        at.write(s, y, v);
    });
}
simd_kernel! {
    /// `y += a ∘ b`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_product(y: &mut [f32], a: &[f32], b: &[f32]) = add_product_body;
}

#[inline(always)]
fn dropout_body<S: Simd>(s: S, y: &mut [f32], x: &[f32], cols: usize, dropout: Dropout, into: Accumulate) {
    assert_eq!(y.len(), x.len());
    if cols == 0 {
        return;
    }
    for (r, (y, x)) in y.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).enumerate() {
        let factors = dropout.row(s, r, cols);
        vectors!(S, cols, at => {
            let old = if into == Accumulate::Add { at.read(s, y) } else { s.zero() };
            at.write(s, y, s.mul_add(at.read(s, x), factors.at(s, at.index()), old));
        });
    }
}
simd_kernel! {
    /// `y = dropout(x)` or `y += dropout(x)` for `[rows, cols]`. It is its own backward pass: the
    /// gradient of a dropped element is zero.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn dropout(y: &mut [f32], x: &[f32], cols: usize, dropout: Dropout, into: Accumulate) = dropout_body;
}

#[inline(always)]
fn dropout_in_place_body<S: Simd>(s: S, x: &mut [f32], cols: usize, dropout: Dropout) {
    if cols == 0 {
        return;
    }
    for (r, x) in x.chunks_exact_mut(cols).enumerate() {
        let factors = dropout.row(s, r, cols);
        vectors!(S, cols, at => { let v = s.mul(at.read(s, x), factors.at(s, at.index())); at.write(s, x, v); });
    }
}
simd_kernel! {
    /// `x = dropout(x)` for `[rows, cols]`.
    pub fn dropout_in_place(x: &mut [f32], cols: usize, dropout: Dropout) = dropout_in_place_body;
}

#[inline(always)]
fn sum_of_squares_body<S: Simd>(s: S, x: &[f32]) -> f64 {
    x.chunks(4096).map(|part| f64::from(loops::sum_of_squares(s, part, 0.0))).sum()
}
simd_kernel! {
    /// `Σ x²`, summed in blocks that are added up in `f64`, so that the sum over sixty million
    /// gradients does not lose the small ones.
    pub fn sum_of_squares(x: &[f32]) -> f64 = sum_of_squares_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZES, assert_close, random, widen};
    use crate::{Isa, Key};

    #[test]
    fn sums_dropout_and_squares_agree_with_plain_loops() {
        for isa in Isa::available() {
            for &n in SIZES {
                let (x, y) = (random(n, 1), random(n, 2));
                let (wx, wy) = (widen(&x), widen(&y));
                let what = format!("{isa} {n}");
                let mut got = y.clone();
                add(isa, &mut got, &x);
                assert_close(&got, &wx.iter().zip(&wy).map(|(x, y)| x + y).collect::<Vec<_>>(), 1e-6, &what);
                let mut got = y.clone();
                add_scaled(isa, &mut got, &x, -0.5);
                assert_close(
                    &got,
                    &wx.iter().zip(&wy).map(|(x, y)| y - 0.5 * x).collect::<Vec<_>>(),
                    1e-6,
                    &what,
                );
                let mut got = y.clone();
                multiply(isa, &mut got, &x);
                let products: Vec<f64> = wx.iter().zip(&wy).map(|(x, y)| x * y).collect();
                assert_close(&got, &products, 1e-6, &what);
                let mut got = x.clone();
                add_product(isa, &mut got, &x, &y);
                let want: Vec<f64> = wx.iter().zip(&products).map(|(x, product)| x + product).collect();
                assert_close(&got, &want, 1e-6, &what);
                let p = Dropout::new(Key::new(4), 0.5, 11);
                for (into, keep) in [(Accumulate::Overwrite, 0.0), (Accumulate::Add, 1.0)] {
                    let mut got = y.clone();
                    dropout(isa, &mut got, &x, n, p, into);
                    let want: Vec<f64> =
                        (0..n).map(|c| wx[c] * f64::from(p.factor(0, c, n)) + keep * wy[c]).collect();
                    assert_close(&got, &want, 1e-6, &what);
                }
                let mut got = x.clone();
                dropout_in_place(isa, &mut got, n, p);
                let want: Vec<f64> = (0..n).map(|c| wx[c] * f64::from(p.factor(0, c, n))).collect();
                assert_close(&got, &want, 1e-6, &what);
                let want: f64 = wx.iter().map(|x| x * x).sum();
                assert!((sum_of_squares(isa, &x) - want).abs() <= 1e-5 * want.max(1.0), "{what}");
            }
            assert!(sum_of_squares(isa, &[1.0, f32::NAN]).is_nan());
            let many = vec![1e-3f32; 1_000_000];
            assert!((sum_of_squares(isa, &many) - 1.0).abs() < 1e-5, "{isa}");
        }
    }
}
