//! The product of packed bf16 operands: tiles of the output in registers, blocks of the operands in cache.

use super::over_rows;
use super::packed_b::Operand;
use super::panels::{Layout, Place, WIDE};
use super::rounding::{STRETCH, pack, pack_rows};
use crate::aligned::Aligned;
use crate::mat::{Mat, MatMut};
use crate::{Accumulate, Isa};

/// How much of `k` is summed in registers before it is added to the output. Even, so that no pair is torn.
pub(super) const DEPTH: usize = 512;

/// Rows of a tile: with two vectors each, 24 sums and their operands fit 32 registers, and hide the latency of the instruction.
const ROWS: usize = 12;

/// Numbers of f32 in a vector.
const LANES: usize = 16;

/// Columns of a tile.
const COLUMNS: usize = 2 * LANES;

/// Rows of the left operand that are packed at a time, where the right one is packed already, and at least given to a thread: with
/// [`DEPTH`], a part of a second-level cache.
const TALL: usize = 8 * ROWS;

/// How the kernel wants its right operand: pairs of rows in a word.
pub(super) const LAYOUT: Layout = Layout { columns: COLUMNS, depth: DEPTH, in_word: 2 };

/// What instruction sets do in their own way.
pub(super) trait Kernel: Copy + Send + Sync {
    /// [`pack_rows`]
    fn pack_rows(self, x: Mat<'_>, to: &mut [u32], stride: usize);

    /// [`pack`]
    fn pack<const W: usize>(self, x: Mat<'_>, to: &mut [u32]);

    /// A tile: the sum over `pairs` pairs of [`ROWS`] rows at `left` by `V` vectors of columns at `right`. The rows of `left` lie
    /// `stride` words apart, `BY_ROWS`, or are woven together, `stride` words in each pair.
    ///
    /// # Safety
    /// Those rows can be read; `right` has `pairs` rows of a panel, each at a cache line; `place` can be written, and no other thread
    /// touches it. It has at most `ROWS` rows and `V · LANES` columns.
    unsafe fn tile<const V: usize, const BY_ROWS: bool>(
        self,
        pairs: usize,
        left: (*const u32, usize),
        right: *const u32,
        place: Place,
    );
}

/// Packs a right operand for [`in_hardware`].
pub(super) fn pack_in_hardware(isa: Isa, b: Mat<'_>, to: &mut Aligned<u32>) {
    assert!(isa.has_bf16());
    #[cfg(target_arch = "x86_64")]
    pack_right(x86::Avx512Bf16::new(isa), b, to);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (b, to);
}

/// Packs a right operand.
pub(super) fn pack_right<K: Kernel>(kernel: K, b: Mat<'_>, to: &mut Aligned<u32>) {
    LAYOUT.pack(b, to, |b, to| kernel.pack::<COLUMNS>(b.t(), to));
}

/// The product with `vdpbf16ps`.
pub(super) fn in_hardware(
    isa: Isa,
    c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
    threads: usize,
) {
    assert!(isa.has_bf16());
    #[cfg(target_arch = "x86_64")]
    product(x86::Avx512Bf16::new(isa), c, a, b, into, threads);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (c, a, b, into, threads);
}

/// The product by any kernel, split over threads.
pub(super) fn product<K: Kernel>(
    kernel: K,
    c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
    threads: usize,
) {
    over_rows((c, a, b), into, TALL, threads, &|c, a| {
        // Numbers of the left operand are broadcast one by one: rows can stay rows.
        let run = if a.col_stride == 1 { blocks::<K, true> } else { blocks::<K, false> };
        run(kernel, c, a, b, into);
    });
}

/// The product by one thread. Every number of the operands is rounded and packed once, here or before.
fn blocks<K: Kernel, const BY_ROWS: bool>(
    kernel: K,
    mut c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
) {
    let (m, n, k) = (a.rows, c.cols, a.cols);
    // Words from one row to the next, or from one pair to the next.
    let stride = |depth: usize| if BY_ROWS { depth.div_ceil(2).next_multiple_of(STRETCH) } else { ROWS };
    let size = |depth: usize| if BY_ROWS { ROWS * stride(depth) } else { ROWS * depth.div_ceil(2) };
    // A right operand that must be packed here is so for all rows.
    let (tall, room) = match b {
        Operand::Matrix(_) => (m, LAYOUT.words(k.min(DEPTH), n.min(WIDE))),
        Operand::Packed(_) => (m.min(TALL), 0),
    };
    let mut left = vec![0; tall.div_ceil(ROWS) * size(k.min(DEPTH))];
    let mut right = Aligned::zeros(room);
    for start in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - start);
        let pairs = depth.div_ceil(2);
        for top in (0..m).step_by(tall) {
            let tall = tall.min(m - top);
            let a = a.columns(start, depth).rows_from(top, tall);
            let left = &mut left[..tall.div_ceil(ROWS) * size(depth)];
            if BY_ROWS {
                kernel.pack_rows(a, left, stride(depth));
            } else {
                kernel.pack::<ROWS>(a, left);
            }
            for first in (0..n).step_by(WIDE) {
                let wide = WIDE.min(n - first);
                let panels = match b {
                    Operand::Matrix(b) => {
                        let to = &mut right.as_mut_slice()[..LAYOUT.words(depth, wide)];
                        kernel.pack::<COLUMNS>(b.rows_from(start, depth).columns(first, wide).t(), to);
                        &*to
                    }
                    Operand::Packed(b) => b.block(LAYOUT, start, first),
                };
                for (row, left) in (0..tall).step_by(ROWS).zip(left.chunks_exact(size(depth))) {
                    for (column, right) in
                        (0..wide).step_by(COLUMNS).zip(panels.chunks_exact(pairs * COLUMNS))
                    {
                        let extent = (ROWS.min(tall - row), COLUMNS.min(wide - column));
                        let add = into == Accumulate::Add || start > 0;
                        let place = Place::within(&mut c, (top + row, first + column), extent, add);
                        let (left, right) = ((left.as_ptr(), stride(depth)), right.as_ptr());
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
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::rounding::{Plain, Stretch, Turn};
    use super::{COLUMNS, Isa, Kernel, LANES, Mat, Place, ROWS, STRETCH, pack, pack_rows};
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
        fn pack_rows(self, x: Mat<'_>, to: &mut [u32], stride: usize) {
            #[target_feature(enable = "avx512f,avx512bw,avx2,fma")]
            fn compiled(x: Mat<'_>, to: &mut [u32], stride: usize) {
                pack_rows(x, to, stride);
            }
            // SAFETY: a value of this type is proof of the features.
            unsafe { compiled(x, to, stride) }
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
            left: (*const u32, usize),
            right: *const u32,
            place: Place,
        ) {
            // SAFETY: a value of this type is proof of the features; the caller vouches for the memory.
            unsafe { tile::<V, BY_ROWS>(pairs, left, right, place) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma")]
    unsafe fn tile<const V: usize, const BY_ROWS: bool>(
        pairs: usize,
        (left, stride): (*const u32, usize),
        right: *const u32,
        place: Place,
    ) {
        const { assert!(V * LANES <= COLUMNS) }
        for i in 0..ROWS {
            for v in 0..V {
                _mm_prefetch::<_MM_HINT_T0>(place.to.wrapping_add(i * place.stride + v * LANES).cast());
            }
        }
        let mut sums = [[_mm512_setzero_ps(); V]; ROWS];
        for p in 0..pairs {
            let mut w = [_mm512_setzero_si512(); V];
            for (v, w) in w.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the panel's row, at a cache line.
                *w = unsafe { _mm512_load_si512(right.add(p * COLUMNS + v * LANES).cast()) };
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let at = if BY_ROWS { i * stride + p } else { p * stride + i };
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
