//! Rounding to bf16 and packing in the order in which the micro-kernel reads its operands.

use crate::bf16::{round, upper_half};
use crate::mat::Mat;

/// Pairs of a row that are rounded before they are transposed: one cache line.
pub(super) const STRETCH: usize = 16;

/// Packs two adjacent elements as the instruction reads them: the first in the lower half.
#[inline(always)]
fn pair(first: f32, second: f32) -> u32 {
    upper_half(first) >> 16 | upper_half(second) & 0xffff_0000
}

/// The elements of a matrix, rounded, with the same strides.
pub(super) fn rounded(x: Mat<'_>) -> Vec<f32> {
    assert!(x.is_within());
    let extent = match (x.rows, x.cols) {
        (0, _) | (_, 0) => 0,
        (rows, cols) => (rows - 1) * x.row_stride + (cols - 1) * x.col_stride + 1,
    };
    x.data[..extent].iter().map(|&x| round(x)).collect()
}

/// `STRETCH` pairs of each of `W` rows.
pub(super) type Stretch<const W: usize> = [[u32; STRETCH]; W];

/// How to round elements and rearrange them.
pub(super) trait Rounding: Copy {
    /// Rounds the pairs at the beginning of `from` into `to`, completing the last pair with a zero.
    fn pairs(self, from: &[f32], to: &mut [u32; STRETCH]);

    /// Rounds and interleaves `first` and `second` into `W` pairs, padded with zeros.
    fn interleave<const W: usize>(self, first: &[f32], second: &[f32], to: &mut [u32; W]);

    /// Transposes: `to` receives, for each pair of the stretch, those of its `W` rows; it may be
    /// shorter than the stretch.
    fn transpose<const W: usize>(self, from: &Stretch<W>, to: &mut [u32]);
}

/// The plain Rust implementation.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Rounding for Plain {
    #[inline(always)]
    fn pairs(self, from: &[f32], to: &mut [u32; STRETCH]) {
        for (to, two) in to.iter_mut().zip(from.chunks(2)) {
            *to = pair(two[0], two.get(1).copied().unwrap_or(0.0));
        }
    }

    #[inline(always)]
    fn interleave<const W: usize>(self, first: &[f32], second: &[f32], to: &mut [u32; W]) {
        let at = |x: &[f32], i: usize| x.get(i).copied().unwrap_or(0.0);
        for (i, to) in to.iter_mut().enumerate() {
            *to = pair(at(first, i), at(second, i));
        }
    }

    #[inline(always)]
    fn transpose<const W: usize>(self, from: &Stretch<W>, to: &mut [u32]) {
        for (q, to) in to.chunks_exact_mut(W).enumerate() {
            for (to, pairs) in to.iter_mut().zip(from) {
                *to = pairs[q];
            }
        }
    }
}

/// Rounds the contiguous rows of a matrix and writes them `stride` words apart.
#[inline(always)]
pub(super) fn pack_rows(rounding: impl Rounding, x: Mat<'_>, to: &mut [u32], stride: usize) {
    assert!(stride.is_multiple_of(STRETCH) && stride >= x.cols.div_ceil(2) && to.len() >= x.rows * stride);
    for (r, to) in to.chunks_exact_mut(stride).enumerate().take(x.rows) {
        let (stretches, _) = to.as_chunks_mut::<STRETCH>();
        for (from, to) in x.row(r).chunks(2 * STRETCH).zip(stretches) {
            rounding.pairs(from, to);
        }
    }
}

/// Packs `[rows, cols]` as `[panel][pair of columns][W rows]`, with zero padding in the last panel
/// and the last pair.
#[inline(always)]
pub(super) fn pack<const W: usize>(rounding: impl Rounding, x: Mat<'_>, to: &mut [u32]) {
    assert!(to.len() == x.rows.next_multiple_of(W) * x.cols.div_ceil(2) && x.is_within());
    if to.is_empty() {
        return;
    }
    let size = x.cols.div_ceil(2) * W;
    for (panel, to) in to.chunks_exact_mut(size).enumerate() {
        let rows = W.min(x.rows - panel * W);
        let x = x.rows_from(panel * W, rows);
        if x.col_stride == 1 {
            pack_row_major::<W>(rounding, x, to);
        } else if x.row_stride == 1 {
            pack_col_major::<W>(rounding, x, to);
        } else {
            pack_strided::<W>(x, to);
        }
    }
}

/// Packs a panel with contiguous rows: rounds a stretch of each row, then transposes.
#[inline(always)]
fn pack_row_major<const W: usize>(rounding: impl Rounding, x: Mat<'_>, to: &mut [u32]) {
    let mut stretch = [[0; STRETCH]; W];
    for (s, to) in to.chunks_mut(STRETCH * W).enumerate() {
        for (r, to) in stretch.iter_mut().enumerate().take(x.rows) {
            rounding.pairs(&x.row(r)[s * 2 * STRETCH..], to);
        }
        rounding.transpose(&stretch, to);
    }
}

/// Packs a panel with contiguous columns: interleaves two of them at a time.
#[inline(always)]
fn pack_col_major<const W: usize>(rounding: impl Rounding, x: Mat<'_>, to: &mut [u32]) {
    let column = |c: usize| if c < x.cols { &x.data[c * x.col_stride..][..x.rows] } else { &[] };
    for (p, to) in to.as_chunks_mut::<W>().0.iter_mut().enumerate() {
        rounding.interleave(column(2 * p), column(2 * p + 1), to);
    }
}

/// Packs a panel with neither contiguous rows nor contiguous columns.
fn pack_strided<const W: usize>(x: Mat<'_>, to: &mut [u32]) {
    let at = |r: usize, c: usize| {
        if r < x.rows && c < x.cols { x.data[r * x.row_stride + c * x.col_stride] } else { 0.0 }
    };
    for (i, to) in to.iter_mut().enumerate() {
        let (r, c) = (i % W, i / W * 2);
        *to = pair(at(r, c), at(r, c + 1));
    }
}
