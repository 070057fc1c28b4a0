//! Gemm of f32 matrices: tiles of the output in registers, blocks of the operands in cache.
//!
//! The right operand is packed. Numbers of the left one are broadcast one by one: rows can be read
//! where they lie; columns are packed into panels, which a few tiles read again and again.

use super::over_rows;
use super::packed_b::Operand;
use super::panels::{CTile, Layout, NC};
use crate::aligned::Aligned;
use crate::mat::{Mat, MatMut};
use crate::simd::{Simd, lanes, simd_kernel};
use crate::{Accumulate, Isa};
use std::cell::Cell;

/// How much of `k` is summed in registers before it is added to the output: a panel of it takes
/// half of a first-level cache.
pub(super) const KC: usize = 256;

/// Rows of the left operand that all panels are multiplied with before the next ones come: a part
/// of a second-level cache, and whole tiles on every instruction set.
const MC: usize = 96;

/// How many tiles ahead rows of the left operand are prefetched, while those of the first panel are
/// multiplied.
const AHEAD: usize = 2;

/// Memory for packed operands, kept from one product to the next.
struct Workspace {
    right: Aligned<u32>,
    left: Aligned<f32>,
}

thread_local! {
    static WORKSPACE: Cell<Option<Workspace>> = const { Cell::new(None) };
}

const fn layout(lanes: usize) -> Layout {
    Layout { columns: 2 * lanes, kc: KC, in_word: 1 }
}

/// How the kernel of an instruction set wants its right operand.
pub(super) fn layout_of(isa: Isa) -> Layout {
    layout(lanes(isa))
}

/// Packs a right operand for [`product`].
pub(super) fn pack_right(isa: Isa, b: Mat<'_>, to: &mut Aligned<u32>) {
    assert!(b.is_within());
    layout_of(isa).pack(b, to, |b, to| pack_block(isa, b, floats_mut(to)));
}

/// The product, split over threads.
pub(super) fn product(isa: Isa, c: MatMut<'_>, a: Mat<'_>, b: Operand<'_>, into: Accumulate, threads: usize) {
    over_rows((c, a, b), into, MC, threads, &|c, a| {
        let mut workspace = WORKSPACE
            .take()
            .unwrap_or_else(|| Workspace { right: Aligned::zeros(KC * NC), left: Aligned::zeros(KC * MC) });
        by_one_thread(isa, c, a, b, into, &mut workspace);
        WORKSPACE.set(Some(workspace));
    });
}

/// The words as numbers.
fn floats(words: &[u32]) -> &[f32] {
    // SAFETY: both have the same size and alignment, and every pattern of bits is a number.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
}

fn floats_mut(words: &mut [u32]) -> &mut [f32] {
    // SAFETY: as above, and the loan is unique.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
}

#[inline(always)]
fn body<S: Simd>(
    s: S,
    c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
    workspace: &mut Workspace,
) {
    match S::TILE_ROWS {
        3 => blocks::<S, 3>(s, c, a, b, into, workspace),
        6 => blocks::<S, 6>(s, c, a, b, into, workspace),
        _ => blocks::<S, 12>(s, c, a, b, into, workspace),
    }
}
simd_kernel! {
    fn by_one_thread(c: MatMut<'_>, a: Mat<'_>, b: Operand<'_>, into: Accumulate, workspace: &mut Workspace) = body;
}

/// The product in tiles of `MR` rows.
#[inline(always)]
fn blocks<S: Simd, const MR: usize>(
    s: S,
    mut c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
    workspace: &mut Workspace,
) {
    const { assert!(MC.is_multiple_of(MR)) }
    let (m, n, k) = (a.rows, c.cols, a.cols);
    assert!(c.rows == m && b.shape() == (k, n) && a.is_within());
    let (layout, columns) = (layout(S::LANES), 2 * S::LANES);
    for start in (0..k).step_by(KC) {
        let kc = KC.min(k - start);
        let a = a.columns(start, kc);
        for first in (0..n).step_by(NC) {
            let nc = NC.min(n - first);
            let panels = match b {
                Operand::Matrix(b) => {
                    let to = &mut workspace.right.as_mut_slice()[..layout.words(kc, nc)];
                    pack(s, b.rows_from(start, kc).columns(first, nc), floats_mut(to));
                    floats(to)
                }
                Operand::Packed(b) => floats(b.block(layout, start, first)),
            };
            for top in (0..m).step_by(MC) {
                let mc = MC.min(m - top);
                let a = a.rows_from(top, mc);
                // Whole tiles of rows are read where they lie.
                let direct = if a.col_stride == 1 { mc / MR * MR } else { 0 };
                let packed_a = workspace.left.as_mut_slice();
                pack_a::<MR>(a.rows_from(direct, mc - direct), packed_a);
                for (column, panel) in (0..nc).step_by(columns).zip(panels.chunks_exact(columns * kc)) {
                    for row in (0..mc).step_by(MR) {
                        let size = (MR.min(mc - row), columns.min(nc - column));
                        let add = into == Accumulate::Add || start > 0;
                        let c_tile = CTile::within(&mut c, (top + row, first + column), size, add);
                        let left = a.data.as_ptr().wrapping_add(row * a.row_stride);
                        if row < direct && column == 0 {
                            prefetch_rows::<S, MR>(
                                s,
                                left.wrapping_add(AHEAD * MR * a.row_stride),
                                a.row_stride,
                                kc,
                            );
                        }
                        // SAFETY: `MR` rows from `row` on are there, or have been packed, filled up
                        // with zeros; a panel is a whole one; the tile is inside C, a `&mut` view.
                        unsafe {
                            if row < direct {
                                tile::<S, MR, true>(s, kc, (left, a.row_stride), panel.as_ptr(), c_tile);
                            } else {
                                let left = packed_a[(row - direct) * kc..].as_ptr();
                                tile::<S, MR, false>(s, kc, (left, MR), panel.as_ptr(), c_tile);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Prefetches `MR` rows; they may end anywhere.
#[inline(always)]
fn prefetch_rows<S: Simd, const MR: usize>(s: S, first: *const f32, stride: usize, kc: usize) {
    for i in 0..MR {
        for at in (0..kc).step_by(16) {
            s.prefetch(first.wrapping_add(i * stride + at));
        }
    }
}

/// `[rows, k]` as `[panel][k][MR rows]`, with zeros where the last panel has nothing.
#[inline(always)]
fn pack_a<const MR: usize>(x: Mat<'_>, to: &mut [f32]) {
    for (first, to) in (0..x.rows).step_by(MR).zip(to.chunks_exact_mut(MR * x.cols)) {
        let rows = MR.min(x.rows - first);
        let x = x.rows_from(first, rows);
        let (steps, _) = to.as_chunks_mut::<MR>();
        for (p, to) in steps.iter_mut().enumerate() {
            match x.data[p * x.col_stride..].first_chunk::<MR>() {
                Some(column) if x.row_stride == 1 && rows == MR => *to = *column,
                _ => {
                    for (i, to) in to.iter_mut().enumerate() {
                        *to = if i < rows { x.data[i * x.row_stride + p * x.col_stride] } else { 0.0 };
                    }
                }
            }
        }
    }
}

/// A tile: the sum over `kc` of `MR` rows by a panel. The rows lie `stride` apart, `BY_ROWS`, or
/// are packed (interleaved), `stride` in each step.
///
/// # Safety
/// Those rows can be read at `left`, and `kc · 2 · LANES` numbers at `right`; `c_tile` can be
/// written, and no other thread touches it. It has at most `MR` rows and `2 · LANES` columns.
#[inline(always)]
unsafe fn tile<S: Simd, const MR: usize, const BY_ROWS: bool>(
    s: S,
    kc: usize,
    (left, stride): (*const f32, usize),
    right: *const f32,
    c_tile: CTile,
) {
    for i in 0..MR {
        s.prefetch(c_tile.to.wrapping_add(i * c_tile.stride));
        s.prefetch(c_tile.to.wrapping_add(i * c_tile.stride + S::LANES));
    }
    let mut sums = [[s.zero(); 2]; MR];
    // Not a function: sums that are lent out leave their registers.
    macro_rules! step {
        ($p:expr) => {{
            let p = $p;
            let w = right.wrapping_add(2 * p * S::LANES);
            // SAFETY: the caller vouches for two vectors at each step.
            let w = unsafe { [s.load(w), s.load(w.add(S::LANES))] };
            for i in 0..MR {
                let at = if BY_ROWS { i * stride + p } else { p * stride + i };
                // SAFETY: the caller vouches for `MR` rows up to `kc`.
                let x = s.splat(unsafe { *left.add(at) });
                sums[i][0] = s.mul_add(x, w[0], sums[i][0]);
                sums[i][1] = s.mul_add(x, w[1], sums[i][1]);
            }
        }};
    }
    let whole = kc / 4 * 4;
    for p in (0..whole).step_by(4) {
        step!(p);
        step!(p + 1);
        step!(p + 2);
        step!(p + 3);
    }
    for p in whole..kc {
        step!(p);
    }
    let is_whole = c_tile.rows == MR && c_tile.columns == 2 * S::LANES;
    // The bounds of the loops are constants here too, for the same reason.
    for (i, sums) in sums.into_iter().enumerate() {
        for (v, sum) in sums.into_iter().enumerate() {
            let to = c_tile.to.wrapping_add(i * c_tile.stride + v * S::LANES);
            // SAFETY: row `i` of the tile is there, and so are the columns that are touched.
            unsafe {
                if is_whole {
                    s.store(to, if c_tile.add { s.add(s.load(to), sum) } else { sum });
                } else if i < c_tile.rows {
                    let there = c_tile.columns.saturating_sub(v * S::LANES).min(S::LANES);
                    let old = if c_tile.add { s.load_partial(to, there) } else { s.zero() };
                    s.store_partial(to, s.add(old, sum), there);
                }
            }
        }
    }
}

/// `[k, n]` as `[panel][k][columns of a tile]`, with zeros where the last panel has nothing.
#[inline(always)]
fn pack<S: Simd>(s: S, b: Mat<'_>, to: &mut [f32]) {
    let columns = 2 * S::LANES;
    assert!(b.is_within() && to.len() == layout(S::LANES).words(b.rows, b.cols));
    let kc = b.rows;
    for (first, to) in (0..b.cols).step_by(columns).zip(to.chunks_exact_mut(columns * kc)) {
        let nc = columns.min(b.cols - first);
        let b = b.columns(first, nc);
        let from = b.data.as_ptr();
        let to_ptr = to.as_mut_ptr();
        if nc == columns && b.col_stride == 1 {
            for p in 0..kc {
                // SAFETY: row `p` has two vectors in this panel; B is within its data, and `to` has
                // been counted.
                unsafe {
                    let (from, to) = (from.add(p * b.row_stride), to_ptr.add(p * columns));
                    s.store(to, s.load(from));
                    s.store(to.add(S::LANES), s.load(from.add(S::LANES)));
                }
            }
        } else {
            let whole = if nc == columns && b.row_stride == 1 { kc / 8 * 8 } else { 0 };
            for p in (0..whole).step_by(8) {
                for j in (0..columns).step_by(8) {
                    // SAFETY: eight columns from `j` on have eight numbers from `p` on, each where
                    // the panel has room for it.
                    unsafe {
                        let to = to_ptr.add(p * columns + j);
                        s.transpose_8x8(from.add(j * b.col_stride + p), b.col_stride, to, columns);
                    }
                }
            }
            for (p, to) in to.chunks_exact_mut(columns).enumerate().skip(whole) {
                for (j, to) in to.iter_mut().enumerate() {
                    *to = if j < nc { b.data[p * b.row_stride + j * b.col_stride] } else { 0.0 };
                }
            }
        }
    }
}
simd_kernel! {
    fn pack_block(b: Mat<'_>, to: &mut [f32]) = pack;
}

#[cfg(test)]
mod tests {
    use super::super::matmul;
    use super::*;
    use crate::naive;
    use crate::testing::{SIZES, assert_close, random, transposed, widen};

    /// Sizes around those of tiles, blocks and panels.
    fn sizes() -> Vec<(usize, usize, usize)> {
        let small = [0, 1, 5, 16, 33].into_iter().flat_map(|m| SIZES.iter().map(move |&n| (m, n)));
        let small = small.flat_map(|(m, n)| [0, 1, 17, 64].map(|k| (m, n, k)));
        small
            .chain([(MC + 7, 40, KC + 3), (14, NC + 21, 9), (2 * MC, 32, KC), (25, 33, 2 * KC + 1)])
            .collect()
    }

    #[test]
    fn every_transposition_agrees_with_the_naive_twin() {
        for isa in Isa::available() {
            for (m, n, k) in sizes() {
                let (a, b, old) = (random(m * k, 1), random(k * n, 2), random(m * n, 3));
                let (at, bt) = (transposed(&a, m, k), transposed(&b, k, n));
                let want = naive::product(&widen(&a), &widen(&b), m, n, k);
                let plus: Vec<f64> = want.iter().zip(&old).map(|(w, o)| w + f64::from(*o)).collect();
                let (a, at) = (Mat::new(&a, m, k), Mat::new(&at, k, m).t());
                let (b, bt) = (Mat::new(&b, k, n), Mat::new(&bt, n, k).t());
                for (a, b, form) in [(a, b, "nn"), (a, bt, "nt"), (at, b, "tn"), (at, bt, "tt")] {
                    for (into, want) in [(Accumulate::Overwrite, &want), (Accumulate::Add, &plus)] {
                        let mut c = old.clone();
                        matmul(isa, MatMut::new(&mut c, m, n), a, b, into, 1);
                        // Each of k products of at most 4 is rounded to 24 bits when it is added.
                        let tolerance = 1e-6 * k.max(10) as f64;
                        assert_close(&c, want, tolerance, &format!("{isa} {form} {m}×{n}×{k} {into:?}"));
                    }
                }
            }
        }
    }

    /// Views with gaps in both directions, as no caller has them yet, are multiplied too.
    #[test]
    fn strides_of_any_kind_are_read() {
        let (a, b) = (random(20 * 30, 1), random(30 * 40, 2));
        let left = Mat { data: &a, rows: 7, cols: 10, row_stride: 60, col_stride: 2 };
        let right = Mat { data: &b, rows: 10, cols: 13, row_stride: 80, col_stride: 3 };
        let at = |x: Mat<'_>, r: usize, c: usize| f64::from(x.data[r * x.row_stride + c * x.col_stride]);
        let want: Vec<f64> =
            (0..7 * 13).map(|i| (0..10).map(|p| at(left, i / 13, p) * at(right, p, i % 13)).sum()).collect();
        for isa in Isa::available() {
            let mut c = vec![0.0; 7 * 13];
            matmul(isa, MatMut::new(&mut c, 7, 13), left, right, Accumulate::Overwrite, 1);
            assert_close(&c, &want, 1e-5, &format!("{isa}"));
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_others_nor_on_the_threads() {
        let (m, n, k) = (2 * MC + 8, 33, KC + 20);
        let (a, b) = (random(m * k, 1), random(k * n, 2));
        let columns = transposed(&a, m, k);
        for isa in Isa::available() {
            for (form, a) in [("rows", Mat::new(&a, m, k)), ("columns", Mat::new(&columns, k, m).t())] {
                let run = |rows: std::ops::Range<usize>, threads| {
                    let mut c = vec![0.0; rows.len() * n];
                    let a = a.rows_from(rows.start, rows.len());
                    matmul(
                        isa,
                        MatMut::new(&mut c, rows.len(), n),
                        a,
                        Mat::new(&b, k, n),
                        Accumulate::Overwrite,
                        threads,
                    );
                    c
                };
                let all = run(0..m, 1);
                assert_eq!(run(0..m, 2), all, "{isa} {form}: two threads");
                assert_eq!(run(37..38, 1), all[37 * n..38 * n], "{isa} {form}: one row");
                assert_eq!(run(5..105, 1), all[5 * n..105 * n], "{isa} {form}: some rows");
            }
        }
    }

    #[test]
    fn what_is_not_finite_stays_in_its_row_and_column() {
        let (m, n, k) = (14, 35, 40);
        for isa in Isa::available() {
            let (mut a, mut b) = (vec![1.0; m * k], vec![1.0; k * n]);
            a[12 * k + 39] = f32::NAN;
            b[3 * n + 33] = f32::INFINITY;
            let mut c = vec![0.0; m * n];
            matmul(
                isa,
                MatMut::new(&mut c, m, n),
                Mat::new(&a, m, k),
                Mat::new(&b, k, n),
                Accumulate::Overwrite,
                1,
            );
            for (i, x) in c.iter().enumerate() {
                let right = match (i / n, i % n) {
                    (12, _) => x.is_nan(),
                    (_, 33) => *x == f32::INFINITY,
                    _ => *x == 40.0,
                };
                assert!(right, "{isa} {i}: {x}");
            }
        }
    }
}
