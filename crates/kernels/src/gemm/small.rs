//! Small matmuls and transpositions without packing, for the inside of other kernels: the rows of a
//! sentence are too few to pay for the packing of a large GEMM.
//!
//! Kernels call them through `Simd::product` and `Simd::transpose`, which are compiled once per
//! instruction set: inlining them at each of their dozen uses would take minutes to compile.

use crate::simd::Simd;

/// Rows of a tile: four rows of two vectors are eight accumulators, enough to hide the latency of
/// an FMA.
const ROWS: usize = 4;

/// A pointer to a matrix and its row and column strides.
#[derive(Clone, Copy)]
pub(crate) struct AView {
    pub(crate) at: *const f32,
    pub(crate) row: usize,
    pub(crate) col: usize,
}

/// A pointer to a matrix and its row stride; its columns are contiguous.
#[derive(Clone, Copy)]
pub(crate) struct BView {
    pub(crate) at: *const f32,
    pub(crate) row: usize,
}

/// The output matrix.
#[derive(Clone, Copy)]
pub(crate) struct CView {
    pub(crate) at: *mut f32,
    pub(crate) row: usize,
}

/// `C = A·B`, or `C += A·B`, with `A [m, k]`, `B [k, n]`, `C [m, n]`.
///
/// # Safety
/// All these elements are readable or writable, and `C` does not overlap `A` or `B`.
#[inline(always)]
pub(crate) unsafe fn product_body<S: Simd>(
    s: S,
    (m, n, k): (usize, usize, usize),
    a: AView,
    b: BView,
    c: CView,
    accumulate: bool,
) {
    let mut i = 0;
    while i < m {
        let rows = ROWS.min(m - i);
        // SAFETY: the caller vouches for rows `i .. i + rows <= m` of A and C, and for all of B.
        unsafe {
            let a = AView { at: a.at.add(i * a.row), ..a };
            let c = CView { at: c.at.add(i * c.row), ..c };
            match rows {
                4 => strip::<S, 4>(s, (n, k), a, b, c, accumulate),
                3 => strip::<S, 3>(s, (n, k), a, b, c, accumulate),
                2 => strip::<S, 2>(s, (n, k), a, b, c, accumulate),
                _ => strip::<S, 1>(s, (n, k), a, b, c, accumulate),
            }
        }
        i += rows;
    }
}

/// `R` rows of the result.
#[inline(always)]
unsafe fn strip<S: Simd, const R: usize>(
    s: S,
    (n, k): (usize, usize),
    a: AView,
    b: BView,
    c: CView,
    accumulate: bool,
) {
    let mut j = 0;
    while j < n {
        let left = n - j;
        // SAFETY: the columns `j ..` of B and C are inside what the caller of `product` vouches
        // for, and a tile covers at most `left` of them.
        unsafe {
            let b = BView { at: b.at.add(j), ..b };
            let c = CView { at: c.at.add(j), ..c };
            if left >= 2 * S::LANES {
                tile::<S, R, 2, false>(s, k, a, b, c, S::LANES, accumulate);
                j += 2 * S::LANES;
            } else if left > S::LANES {
                tile::<S, R, 2, true>(s, k, a, b, c, left - S::LANES, accumulate);
                j = n;
            } else if left == S::LANES {
                tile::<S, R, 1, false>(s, k, a, b, c, S::LANES, accumulate);
                j = n;
            } else {
                tile::<S, R, 1, true>(s, k, a, b, c, left, accumulate);
                j = n;
            }
        }
    }
}

/// `R` rows by `C` vectors; if `PARTIAL`, the last vector has `last` lanes.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const C: usize, const PARTIAL: bool>(
    s: S,
    k: usize,
    a: AView,
    b: BView,
    c: CView,
    last: usize,
    accumulate: bool,
) {
    let mut sums = [[s.zero(); C]; R];
    // SAFETY: `product` splits its matrices so that a tile lies inside them.
    unsafe {
        for t in 0..k {
            let mut row = [s.zero(); C];
            for (j, v) in row.iter_mut().enumerate() {
                let p = b.at.add(t * b.row + j * S::LANES);
                *v = if PARTIAL && j == C - 1 { s.load_partial(p, last) } else { s.load(p) };
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = s.splat(*a.at.add(i * a.row + t * a.col));
                for (sum, v) in sums.iter_mut().zip(row) {
                    *sum = s.mul_add(x, v, *sum);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, &sum) in sums.iter().enumerate() {
                let p = c.at.add(i * c.row + j * S::LANES);
                if PARTIAL && j == C - 1 {
                    let old = if accumulate { s.load_partial(p, last) } else { s.zero() };
                    s.store_partial(p, s.add(old, sum), last);
                } else {
                    let old = if accumulate { s.load(p) } else { s.zero() };
                    s.store(p, s.add(old, sum));
                }
            }
        }
    }
}

/// `to[c, r] = from[r, c]`, with `from [rows, cols]`; sets the columns of `to` from `rows` up to
/// its stride to zero.
///
/// # Safety
/// `from` can be read; `cols` rows of `to.row >= rows` floats can be written; they do not overlap.
#[inline(always)]
pub(crate) unsafe fn transpose_body<S: Simd>(s: S, rows: usize, cols: usize, from: BView, to: CView) {
    let (whole_rows, whole_cols) = (rows / 8 * 8, cols / 8 * 8);
    // SAFETY: every index below is inside what the caller vouches for.
    unsafe {
        for r in (0..whole_rows).step_by(8) {
            for c in (0..whole_cols).step_by(8) {
                s.transpose_8x8(from.at.add(r * from.row + c), from.row, to.at.add(c * to.row + r), to.row);
            }
            for c in whole_cols..cols {
                for r in r..r + 8 {
                    *to.at.add(c * to.row + r) = *from.at.add(r * from.row + c);
                }
            }
        }
        for r in whole_rows..rows {
            for c in 0..cols {
                *to.at.add(c * to.row + r) = *from.at.add(r * from.row + c);
            }
        }
        for c in 0..cols {
            for r in rows..to.row {
                *to.at.add(c * to.row + r) = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use crate::simd::simd_kernel;
    use crate::testing::{SIZES, assert_close, random, widen};

    #[inline(always)]
    fn product_test<S: Simd>(
        s: S,
        size: (usize, usize, usize),
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
        add: bool,
    ) {
        let (m, n, k) = size;
        assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n);
        let (a, b) = (AView { at: a.as_ptr(), row: k, col: 1 }, BView { at: b.as_ptr(), row: n });
        // SAFETY: the lengths have just been asserted.
        unsafe { s.product(size, a, b, CView { at: c.as_mut_ptr(), row: n }, add) }
    }
    simd_kernel! {
        fn product_of(size: (usize, usize, usize), a: &[f32], b: &[f32], c: &mut [f32], add: bool) = product_test;
    }

    #[inline(always)]
    fn transpose_test<S: Simd>(s: S, rows: usize, cols: usize, x: &[f32], y: &mut [f32], stride: usize) {
        assert!(x.len() == rows * cols && y.len() == cols * stride && stride >= rows);
        let from = BView { at: x.as_ptr(), row: cols };
        // SAFETY: the lengths have just been asserted.
        unsafe { s.transpose(rows, cols, from, CView { at: y.as_mut_ptr(), row: stride }) }
    }
    simd_kernel! {
        fn transpose_of(rows: usize, cols: usize, x: &[f32], y: &mut [f32], stride: usize) = transpose_test;
    }

    #[test]
    fn products_agree_with_the_naive_twin() {
        for isa in crate::Isa::available() {
            for &m in &[0, 1, 2, 3, 4, 5, 9] {
                for &n in SIZES {
                    for &k in &[0, 1, 7, 33] {
                        let (a, b, c) = (random(m * k, 1), random(k * n, 2), random(m * n, 3));
                        for add in [false, true] {
                            let mut got = c.clone();
                            product_of(isa, (m, n, k), &a, &b, &mut got, add);
                            let mut want = naive::matmul(&widen(&a), &widen(&b), m, n, k);
                            if add {
                                want.iter_mut().zip(&c).for_each(|(w, c)| *w += f64::from(*c));
                            }
                            assert_close(&got, &want, 1e-5, &format!("{isa} {m}×{n}×{k} add {add}"));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn transposition_agrees_and_pads_with_zeros() {
        for isa in crate::Isa::available() {
            for &rows in SIZES {
                for &cols in &[0, 1, 7, 8, 9, 16, 20] {
                    let x = random(rows * cols, 4);
                    let stride = rows.next_multiple_of(16);
                    let mut y = vec![f32::NAN; cols * stride];
                    transpose_of(isa, rows, cols, &x, &mut y, stride);
                    for c in 0..cols {
                        for r in 0..stride {
                            let want = if r < rows { x[r * cols + c] } else { 0.0 };
                            assert_eq!(y[c * stride + r], want, "{isa} {rows}×{cols} at {r},{c}");
                        }
                    }
                }
            }
        }
    }
}
