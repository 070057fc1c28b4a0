//! The micro-kernel for f32 matrices.
//!
//! B is packed. Elements of A are broadcast one by one: rows are read in place; columns are packed
//! into panels, which several tiles reuse.

use super::nest::{self, CTile, MicroKernel, Workspace, split_rows};
use super::packed_b::{Layout, Operand};
use super::{Accumulate, Epilogue};
use crate::Isa;
use crate::mat::{Mat, MatMut};
use crate::simd::{Simd, lanes, simd_kernel};
use std::ops::Range;

/// A panel of B, `KC · NR` elements, is read from the L2 cache at a fraction of its bandwidth; the
/// larger KC, the less often C is read and written.
pub(super) const KC: usize = 512;

/// `MC · KC` elements of A take a part of the L2 cache, beside the block of B.
const MC: usize = 96;

/// A block of B, `KC · NC` four-byte elements, takes half of a 1 MB L2 cache.
pub(super) const NC: usize = 256;

/// How many tiles ahead to prefetch rows of A while the first panel is multiplied.
const AHEAD: usize = 2;

/// Rows a multiple of this apart (4 KB) map to the same set of the L1 cache, which has eight ways.
const ALIASED: usize = 1024;

/// The padding of one cache line that prevents this for copied rows.
const GAP: usize = 16;

/// How the micro-kernel for an instruction set reads B.
pub(super) fn layout(isa: Isa) -> Layout {
    Layout { nr: 2 * lanes(isa), kc: KC, in_word: 1 }
}

/// Packs all of B.
pub(super) fn pack_b(isa: Isa, b: Mat<'_>, to: &mut [u32]) {
    assert!(b.is_within());
    layout(isa).pack(b, to, |b, to| pack_block(isa, b, floats_mut(to)));
}

/// How to store the sums: `C = A·B` or `C += A·B`, and the epilogue once the sum is complete.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) into: Accumulate,
    pub(super) epilogue: Epilogue<'a>,
}

/// The matmul on this thread.
pub(super) fn matmul(isa: Isa, c: MatMut<'_>, a: Mat<'_>, b: Operand<'_>, output: Output<'_>) {
    Workspace::with(|workspace| on_isa(isa, c, a, b, output, workspace));
}

/// The matmul on up to `threads` threads, each with a share of the rows.
pub(super) fn matmul_rows(
    isa: Isa,
    c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
    threads: usize,
) {
    let output = Output { into, epilogue: Epilogue::default() };
    split_rows((c, a, b), into, MC, threads, &|c, a| matmul(isa, c, a, b, output));
}

#[inline(always)]
fn body<S: Simd>(
    s: S,
    c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    output: Output<'_>,
    workspace: &mut Workspace,
) {
    let (k, n) = (a.cols, c.cols);
    assert!(c.rows == a.rows && b.shape() == (k, n) && a.is_within());
    assert!(output.epilogue.bias.is_none_or(|bias| bias.len() == n));
    let panels = std::ptr::null();
    match S::MR {
        3 => nest::run(F32::<S, 3> { s, a, b, output, workspace, panels, depth: 0..0, first: 0 }, c, k),
        6 => nest::run(F32::<S, 6> { s, a, b, output, workspace, panels, depth: 0..0, first: 0 }, c, k),
        _ => nest::run(F32::<S, 12> { s, a, b, output, workspace, panels, depth: 0..0, first: 0 }, c, k),
    }
}
simd_kernel! {
    fn on_isa(c: MatMut<'_>, a: Mat<'_>, b: Operand<'_>, output: Output<'_>, workspace: &mut Workspace) = body;
}

/// Reinterprets the words as floats.
pub(super) fn floats(words: &[u32]) -> &[f32] {
    // SAFETY: both types have the same size and alignment, and every bit pattern is a valid number.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
}

fn floats_mut(words: &mut [u32]) -> &mut [f32] {
    // SAFETY: as above, and the borrow is unique.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
}

struct F32<'a, S, const ROWS: usize> {
    s: S,
    a: Mat<'a>,
    b: Operand<'a>,
    output: Output<'a>,
    workspace: &'a mut Workspace,
    /// The block of B, `[panel][depth][NR]`.
    panels: *const f32,
    /// The block's range of `k`.
    depth: Range<usize>,
    /// The block's first column.
    first: usize,
}

/// How A is read.
enum ALayout {
    /// Rows, in place.
    InPlace,
    /// Copies of rows that would conflict in the cache.
    Copied,
    /// Packed panels of columns, `[panel][depth][MR]`.
    Packed,
}

impl<S, const ROWS: usize> F32<'_, S, ROWS> {
    #[inline(always)]
    fn a_layout(&self) -> ALayout {
        let aliased = ROWS > 8 && self.a.rows > 8 && self.a.row_stride.is_multiple_of(ALIASED);
        match self.a.col_stride {
            1 if aliased => ALayout::Copied,
            1 => ALayout::InPlace,
            _ => ALayout::Packed,
        }
    }
}

impl<S: Simd, const ROWS: usize> MicroKernel for F32<'_, S, ROWS> {
    const MR: usize = ROWS;
    const NR: usize = 2 * S::LANES;
    const KC: usize = KC;
    const MC: usize = MC;
    const NC: usize = NC;

    #[inline(always)]
    fn begin_block(&mut self, depth: Range<usize>, columns: Range<usize>) {
        let layout = Layout { nr: Self::NR, kc: KC, in_word: 1 };
        let panels = match self.b {
            Operand::Matrix(b) => {
                let words = layout.words(depth.len(), columns.len());
                self.workspace.b.at_least(words);
                let to = &mut self.workspace.b.as_mut_slice()[..words];
                let b = b.rows_from(depth.start, depth.len()).columns(columns.start, columns.len());
                pack_panels(self.s, b, floats_mut(to));
                &*to
            }
            Operand::Packed(b) => b.block(layout, depth.start, columns.clone()),
        };
        (self.panels, self.depth, self.first) = (floats(panels).as_ptr(), depth, columns.start);
    }

    #[inline(always)]
    fn pack_a(&mut self, rows: Range<usize>) {
        let kc = self.depth.len();
        let words = match self.a_layout() {
            ALayout::InPlace => return,
            ALayout::Copied => kc + GAP,
            ALayout::Packed => kc,
        };
        self.workspace.a.at_least(self.a.rows.next_multiple_of(ROWS) * words);
        let a = self.a.columns(self.depth.start, kc).rows_from(rows.start, rows.len());
        let to = &mut floats_mut(self.workspace.a.as_mut_slice())[rows.start * words..];
        if a.col_stride == 1 {
            for (r, to) in (0..a.rows).zip(to.chunks_exact_mut(words)) {
                to[..kc].copy_from_slice(a.row(r));
            }
        } else {
            pack_columns::<ROWS>(a, to);
        }
    }

    #[inline(always)]
    unsafe fn tile<const R: usize>(&mut self, row: usize, column: usize, c: CTile) {
        let (s, a, kc) = (self.s, self.a, self.depth.len());
        let panel = self.panels.wrapping_add((column - self.first) * kc);
        let packed = floats(self.workspace.a.as_slice()).as_ptr();
        c.prefetch::<S, R>(s);
        // SAFETY: the rows exist in place, copied or packed; the panel is complete.
        let sums = unsafe {
            match self.a_layout() {
                ALayout::InPlace => {
                    let left = a.data.as_ptr().add(row * a.row_stride + self.depth.start);
                    if R == ROWS && column == self.first {
                        let ahead = left.wrapping_add(AHEAD * ROWS * a.row_stride);
                        prefetch_rows::<S, R>(s, ahead, a.row_stride, kc);
                    }
                    sums::<S, R, true>(s, kc, (left, a.row_stride), panel)
                }
                ALayout::Copied => {
                    let stride = kc + GAP;
                    sums::<S, R, true>(s, kc, (packed.add(row * stride), stride), panel)
                }
                ALayout::Packed => {
                    let first = row / ROWS * ROWS;
                    sums::<S, R, false>(s, kc, (packed.add(first * kc + row - first), ROWS), panel)
                }
            }
        };
        let add = self.output.into == Accumulate::Add || self.depth.start > 0;
        let Epilogue { bias, relu } = self.output.epilogue;
        if (bias.is_none() && !relu) || self.depth.end < a.cols {
            for (i, sums) in sums.into_iter().enumerate() {
                // SAFETY: row `i` of the tile exists.
                unsafe { c.write(s, i, sums, add) };
            }
            return;
        }
        let mut biases = [s.zero(); 2];
        if let Some(bias) = bias {
            for (v, to) in biases.iter_mut().enumerate() {
                let there = c.lanes(v, S::LANES);
                // SAFETY: the bias has an element for each existing column.
                *to = unsafe { s.load_partial(bias.as_ptr().wrapping_add(column + v * S::LANES), there) };
            }
        }
        for (i, sums) in sums.into_iter().enumerate() {
            // SAFETY: row `i` of the tile exists.
            unsafe { finish_row(s, c, i, sums, (add, biases, relu)) };
        }
    }
}

/// Writes row `i` of a tile whose sums are complete, with the epilogue.
///
/// # Safety
/// The row is writable, and no other thread accesses it.
#[inline(always)]
unsafe fn finish_row<S: Simd>(
    s: S,
    c: CTile,
    i: usize,
    sums: [S::F; 2],
    (add, bias, relu): (bool, [S::F; 2], bool),
) {
    let mut values = sums;
    for v in 0..2 {
        if add {
            let from = c.to.wrapping_add(i * c.stride + v * S::LANES);
            // SAFETY: the caller vouches for the row; only existing columns are read.
            values[v] = s.add(unsafe { s.load_partial(from, c.lanes(v, S::LANES)) }, values[v]);
        }
        values[v] = s.add(values[v], bias[v]);
        if relu {
            values[v] = s.max(s.zero(), values[v]);
        }
    }
    // SAFETY: the caller vouches for the row.
    unsafe { c.write(s, i, values, false) };
}

/// Prefetches `R` rows, which may end anywhere.
#[inline(always)]
fn prefetch_rows<S: Simd, const R: usize>(s: S, first: *const f32, stride: usize, kc: usize) {
    for i in 0..R {
        for at in (0..kc).step_by(16) {
            s.prefetch(first.wrapping_add(i * stride + at));
        }
    }
}

/// The sums of a tile: `R` rows times a panel. With `BY_ROWS` the rows lie `stride` apart;
/// otherwise they are packed (interleaved), with `stride` elements per step.
///
/// # Safety
/// Those rows are readable at `left`, and `kc · 2 · LANES` elements at `panel`.
#[inline(always)]
unsafe fn sums<S: Simd, const R: usize, const BY_ROWS: bool>(
    s: S,
    kc: usize,
    (left, stride): (*const f32, usize),
    panel: *const f32,
) -> [[S::F; 2]; R] {
    let mut sums = [[s.zero(); 2]; R];
    // A macro and not a function: accumulators passed by reference would leave their registers.
    macro_rules! step {
        ($p:expr) => {{
            let p = $p;
            let w = panel.wrapping_add(2 * p * S::LANES);
            // SAFETY: the caller vouches for two vectors at each step.
            let w = unsafe { [s.load(w), s.load(w.add(S::LANES))] };
            for i in 0..R {
                let at = if BY_ROWS { i * stride + p } else { p * stride + i };
                // SAFETY: the caller vouches for `R` rows up to `kc`.
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
    sums
}

/// Packs `[rows, k]` as `[panel][k][MR rows]`, with zero padding in the last panel.
#[inline(always)]
fn pack_columns<const MR: usize>(x: Mat<'_>, to: &mut [f32]) {
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

/// Packs `[k, n]` as `[panel][k][columns of a tile]`, with zero padding in the last panel.
#[inline(always)]
fn pack_panels<S: Simd>(s: S, b: Mat<'_>, to: &mut [f32]) {
    let columns = 2 * S::LANES;
    assert!(b.is_within() && to.len() == b.cols.next_multiple_of(columns) * b.rows);
    let kc = b.rows;
    for (first, to) in (0..b.cols).step_by(columns).zip(to.chunks_exact_mut(columns * kc)) {
        let nc = columns.min(b.cols - first);
        let b = b.columns(first, nc);
        let from = b.data.as_ptr();
        let to_ptr = to.as_mut_ptr();
        if nc == columns && b.col_stride == 1 {
            for p in 0..kc {
                // SAFETY: row `p` has two vectors in this panel; B lies within its data, and the
                // caller has sized `to`.
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
                    // SAFETY: eight columns from `j` on have eight elements from `p` on, and the
                    // panel has room for each.
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
    fn pack_block(b: Mat<'_>, to: &mut [f32]) = pack_panels;
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
                let want = naive::matmul(&widen(&a), &widen(&b), m, n, k);
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

    /// Views with gaps in both directions, which no caller has yet, are multiplied correctly too.
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
