//! The product of packed bf16 operands: tiles of the output in registers, blocks of the operands in cache.

use super::pack::{pack, pack_rows, words};
use super::prepared::Operand;
use crate::mat::{Mat, MatMut};
use crate::matmul::{Into, is_done};
use crate::{Isa, Timer};

/// How much of `k` is summed in registers before it is added to the output. Even, so that no pair is torn.
pub(crate) const DEPTH: usize = 512;

/// Words from one row of the left operand to the next, where it is packed by rows: the pairs of a block.
pub(super) const BLOCK: usize = DEPTH / 2;

/// Rows of a tile: with two vectors each, 24 sums and their operands fit 32 registers, and hide the latency of the instruction.
const ROWS: usize = 12;

/// Numbers of f32 in a vector.
const LANES: usize = 16;

/// Columns of a tile.
const COLUMNS: usize = 2 * LANES;

/// Columns of the right operand that are packed at a time: with `DEPTH`, half a megabyte, which second-level caches hold.
pub(crate) const WIDE: usize = 512;

/// Rows that are worth a thread, at least.
const LEAST: usize = 8 * ROWS;

/// A cache line of pairs, so that no vector of them lies across two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line([u32; LANES]);

impl Line {
    const ZERO: Line = Line([0; LANES]);
}

/// A right operand that is packed: blocks of [`DEPTH`] rows, in them blocks of [`WIDE`] columns, one behind the other, or a part of
/// one that begins and ends with blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines<'a> {
    lines: &'a [Line],
    /// Rows and columns of the whole.
    whole: (usize, usize),
    /// Where the part begins.
    first: (usize, usize),
    rows: usize,
    cols: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(lines: &'a [Line], rows: usize, cols: usize) -> Self {
        assert_eq!(lines.len(), words(cols, rows, COLUMNS) / LANES);
        Lines { lines, whole: (rows, cols), first: (0, 0), rows, cols }
    }

    pub(super) fn rows_from(self, from: usize, rows: usize) -> Self {
        let start = self.first.0 + from;
        assert!(from + rows <= self.rows && borders(start, rows, self.whole.0, DEPTH));
        Lines { first: (start, self.first.1), rows, ..self }
    }

    pub(super) fn columns(self, from: usize, cols: usize) -> Self {
        let start = self.first.1 + from;
        assert!(from + cols <= self.cols && borders(start, cols, self.whole.1, WIDE));
        Lines { first: (self.first.0, start), cols, ..self }
    }

    /// The block that begins with that row and column.
    fn block(&self, row: usize, column: usize) -> &'a [Line] {
        let ((rows, cols), (row, column)) = (self.whole, (self.first.0 + row, self.first.1 + column));
        let (depth, wide) = (DEPTH.min(rows - row), WIDE.min(cols - column));
        let before = words(cols, row, COLUMNS) + words(column, depth, COLUMNS);
        &self.lines[before / LANES..][..words(wide, depth, COLUMNS) / LANES]
    }
}

/// Whether a part begins with a block of `size` and ends with one.
fn borders(start: usize, count: usize, whole: usize, size: usize) -> bool {
    let is_border = |at: usize| at == whole || at.is_multiple_of(size);
    is_border(start) && is_border(start + count)
}

/// Where a tile of the output is, and how much of it there is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) to: *mut f32,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Whether to add to what is there.
    pub(super) add: bool,
}

/// What instruction sets do in their own way.
pub(super) trait Kernel: Copy + Send + Sync {
    /// [`pack_rows`]
    fn pack_rows(self, x: Mat<'_>, to: &mut [u32]);

    /// [`pack`]
    fn pack<const W: usize>(self, x: Mat<'_>, to: &mut [u32]);

    /// A tile: the sum over `pairs` pairs of [`ROWS`] rows at `left` by `V` vectors of columns at `right`. The rows of `left` lie
    /// `BLOCK` words apart, `BY_ROWS`, or are woven together.
    ///
    /// # Safety
    /// `left` has `ROWS · BLOCK` words, or `pairs · ROWS`; `right` has `pairs · 2` lines; `place` can be written, and no other thread
    /// touches it. It has at most `ROWS` rows and `V · LANES` columns.
    unsafe fn tile<const V: usize, const BY_ROWS: bool>(
        self,
        pairs: usize,
        left: *const u32,
        right: *const Line,
        place: Place,
    );
}

/// Packs a right operand for [`in_hardware`].
pub(super) fn pack_in_hardware(isa: Isa, b: Mat<'_>, to: &mut Vec<Line>) {
    assert!(isa.has_bf16());
    #[cfg(target_arch = "x86_64")]
    pack_right(x86::Avx512Bf16::new(isa), b, to);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (b, to);
}

/// Packs a right operand.
pub(super) fn pack_right<K: Kernel>(kernel: K, b: Mat<'_>, to: &mut Vec<Line>) {
    to.resize(words(b.cols, b.rows, COLUMNS) / LANES, Line::ZERO);
    let mut rest = &mut to[..];
    for start in (0..b.rows).step_by(DEPTH) {
        let depth = DEPTH.min(b.rows - start);
        for first in (0..b.cols).step_by(WIDE) {
            let wide = WIDE.min(b.cols - first);
            let (block, others) = rest.split_at_mut(words(wide, depth, COLUMNS) / LANES);
            kernel.pack::<COLUMNS>(b.rows_from(start, depth).columns(first, wide).t(), flat(block));
            rest = others;
        }
    }
}

/// The product with `vdpbf16ps`.
pub(super) fn in_hardware(isa: Isa, c: MatMut<'_>, a: Mat<'_>, b: Operand<'_>, into: Into, threads: usize) {
    assert!(isa.has_bf16());
    #[cfg(target_arch = "x86_64")]
    product(x86::Avx512Bf16::new(isa), c, a, b, into, threads);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (c, a, b, into, threads);
}

/// The product by any kernel, split over threads.
pub(super) fn product<K: Kernel>(
    kernel: K,
    mut c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Into,
    threads: usize,
) {
    let shape = match b {
        Operand::Matrix(b) => {
            assert!(b.is_within());
            (b.rows, b.cols)
        }
        Operand::Packed(b) => (b.rows, b.cols),
    };
    if is_done(&mut c, a, shape, into) {
        return;
    }
    let _timer = Timer::start();
    let m = a.rows;
    let share = m.div_ceil(threads.max(1)).next_multiple_of(ROWS).max(LEAST);
    // Numbers of the left operand are broadcast one by one: rows can stay rows.
    let run = if a.col_stride == 1 { blocks::<K, true> } else { blocks::<K, false> };
    if share >= m {
        return run(kernel, c, a, b, into);
    }
    rayon::scope(|scope| {
        let mut rest = c;
        for start in (0..m).step_by(share) {
            let rows = share.min(m - start);
            let (part, others) = rest.split_rows(rows);
            rest = others;
            scope.spawn(move |_| run(kernel, part, a.rows_from(start, rows), b, into));
        }
    });
}

/// The product by one thread. Every number of the operands is rounded and packed once, here or before.
fn blocks<K: Kernel, const BY_ROWS: bool>(
    kernel: K,
    mut c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Into,
) {
    let (m, n, k) = (a.rows, c.cols, a.cols);
    let size = |depth: usize| ROWS * if BY_ROWS { BLOCK } else { depth.div_ceil(2) };
    let mut left = vec![0; m.div_ceil(ROWS) * size(k.min(DEPTH))];
    let mut right = match b {
        Operand::Matrix(_) => vec![Line::ZERO; words(n.min(WIDE), k.min(DEPTH), COLUMNS) / LANES],
        Operand::Packed(_) => Vec::new(),
    };
    for start in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - start);
        let pairs = depth.div_ceil(2);
        let left = &mut left[..m.div_ceil(ROWS) * size(depth)];
        if BY_ROWS {
            kernel.pack_rows(a.columns(start, depth), left);
        } else {
            kernel.pack::<ROWS>(a.columns(start, depth), left);
        }
        for first in (0..n).step_by(WIDE) {
            let wide = WIDE.min(n - first);
            let lines = match b {
                Operand::Matrix(b) => {
                    let lines = &mut right[..words(wide, depth, COLUMNS) / LANES];
                    kernel.pack::<COLUMNS>(b.rows_from(start, depth).columns(first, wide).t(), flat(lines));
                    &*lines
                }
                Operand::Packed(b) => b.block(start, first),
            };
            for (row, left) in (0..m).step_by(ROWS).zip(left.chunks_exact(size(depth))) {
                for (column, right) in (0..wide).step_by(COLUMNS).zip(lines.chunks_exact(pairs * 2)) {
                    let place = Place {
                        // Not followed here; `wrapping_add` asks for nothing.
                        to: c.as_ptr().wrapping_add(row * c.stride + first + column),
                        stride: c.stride,
                        rows: ROWS.min(m - row),
                        columns: COLUMNS.min(wide - column),
                        add: into == Into::Add || start > 0,
                    };
                    let (left, right) = (left.as_ptr(), right.as_ptr());
                    // SAFETY: the panels are whole ones, and the place is inside C, a `&mut` view.
                    unsafe {
                        if place.columns > LANES {
                            kernel.tile::<2, BY_ROWS>(pairs, left, right, place);
                        } else {
                            kernel.tile::<1, BY_ROWS>(pairs, left, right, place);
                        }
                    }
                }
            }
        }
    }
}

/// The pairs of the lines.
fn flat(lines: &mut [Line]) -> &mut [u32] {
    // SAFETY: a line is sixteen words and nothing else.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LANES) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::pack::{Plain, STRETCH, Stretch, Turn};
    use super::{BLOCK, COLUMNS, Isa, Kernel, LANES, Line, Mat, Place, ROWS, pack, pack_rows};
    use crate::simd::avx2::transpose_8x8;
    use std::arch::x86_64::*;

    /// Exists only where the CPU has the instruction.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512Bf16(());

    impl Avx512Bf16 {
        pub(super) fn new(isa: Isa) -> Self {
            assert!(isa.has_bf16());
            Avx512Bf16(())
        }
    }

    impl Turn for Avx512Bf16 {
        #[inline(always)]
        fn turn<const W: usize>(self, from: &Stretch<W>, to: &mut [u32]) {
            if !W.is_multiple_of(8) || to.len() != W * STRETCH {
                return Plain.turn(from, to);
            }
            for row in (0..W).step_by(8) {
                for column in (0..STRETCH).step_by(8) {
                    // SAFETY: a value of this type is proof of AVX2; a block of 8 × 8 words lies inside both, and words are only moved.
                    unsafe {
                        let from = from.as_ptr().cast::<u32>().add(row * STRETCH + column);
                        let to = to.as_mut_ptr().add(column * W + row);
                        transpose_8x8(from.cast(), STRETCH, to.cast(), W);
                    }
                }
            }
        }
    }

    impl Kernel for Avx512Bf16 {
        fn pack_rows(self, x: Mat<'_>, to: &mut [u32]) {
            #[target_feature(enable = "avx512f,avx512bw,avx2,fma")]
            fn compiled(x: Mat<'_>, to: &mut [u32]) {
                pack_rows(x, to, BLOCK);
            }
            // SAFETY: a value of this type is proof of the features.
            unsafe { compiled(x, to) }
        }

        fn pack<const W: usize>(self, x: Mat<'_>, to: &mut [u32]) {
            #[target_feature(enable = "avx512f,avx512bw,avx2,fma")]
            fn compiled<const W: usize>(proof: Avx512Bf16, x: Mat<'_>, to: &mut [u32]) {
                pack::<W>(proof, x, to);
            }
            // SAFETY: a value of this type is proof of the features.
            unsafe { compiled::<W>(self, x, to) }
        }

        unsafe fn tile<const V: usize, const BY_ROWS: bool>(
            self,
            pairs: usize,
            left: *const u32,
            right: *const Line,
            place: Place,
        ) {
            // SAFETY: a value of this type is proof of the features; the caller vouches for the memory.
            unsafe { tile::<V, BY_ROWS>(pairs, left, right, place) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma")]
    unsafe fn tile<const V: usize, const BY_ROWS: bool>(
        pairs: usize,
        left: *const u32,
        right: *const Line,
        place: Place,
    ) {
        const { assert!(V * LANES <= COLUMNS) }
        let mut sums = [[_mm512_setzero_ps(); V]; ROWS];
        for p in 0..pairs {
            let mut w = [_mm512_setzero_si512(); V];
            for (v, w) in w.iter_mut().enumerate() {
                // SAFETY: the caller vouches for two lines of each pair.
                *w = unsafe { _mm512_load_si512(right.add(2 * p + v).cast()) };
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let at = if BY_ROWS { i * BLOCK + p } else { p * ROWS + i };
                // SAFETY: the caller vouches for `ROWS` words of each pair.
                let x = unsafe { *left.add(at) };
                let x = as_bf16(_mm512_set1_epi32(x as i32));
                for (sum, &w) in sums.iter_mut().zip(&w) {
                    *sum = _mm512_dpbf16_ps(*sum, x, as_bf16(w));
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            if i < place.rows {
                for (v, &sum) in sums.iter().enumerate() {
                    let there = place.columns.saturating_sub(v * LANES).min(LANES);
                    let mask = ((1u32 << there) - 1) as __mmask16;
                    // SAFETY: row `i` of the place is there, and the mask leaves out what is behind its columns.
                    unsafe {
                        let to = place.to.add(i * place.stride + v * LANES);
                        let old =
                            if place.add { _mm512_maskz_loadu_ps(mask, to) } else { _mm512_setzero_ps() };
                        _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(old, sum));
                    }
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn as_bf16(x: __m512i) -> __m512bh {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        unsafe { std::mem::transmute(x) }
    }
}
