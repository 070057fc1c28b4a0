//! The product of packed bf16 operands: tiles of the output in registers, blocks of the operands in cache.

use super::over_rows;
use super::packed_b::Operand;
use super::panels::{CTile, Layout, NC};
use super::rounding::{STRETCH, pack, pack_rows};
use crate::aligned::Aligned;
use crate::mat::{Mat, MatMut};
use crate::{Accumulate, Isa};

/// How much of `k` is summed in registers before it is added to the output. Even, so that no pair is torn.
pub(super) const KC: usize = 512;

/// Rows of a tile: with two vectors each, 24 sums and their operands fit 32 registers, and hide the
/// latency of the instruction.
const MR: usize = 12;

/// Numbers of f32 in a vector.
const LANES: usize = 16;

/// Columns of a tile.
const NR: usize = 2 * LANES;

/// Rows of the left operand that are packed at a time, where the right one is packed already, and
/// at least given to a thread: with [`KC`], a part of a second-level cache.
const MC: usize = 8 * MR;

/// How the kernel wants its right operand: pairs of rows in a word.
pub(super) const LAYOUT: Layout = Layout { columns: NR, kc: KC, in_word: 2 };

/// What instruction sets do in their own way.
pub(super) trait Kernel: Copy + Send + Sync {
    /// [`pack_rows`]
    fn pack_rows(self, x: Mat<'_>, to: &mut [u32], stride: usize);

    /// [`pack`]
    fn pack<const W: usize>(self, x: Mat<'_>, to: &mut [u32]);

    /// A tile: the sum over `pairs` pairs of [`MR`] rows at `left` by `V` vectors of columns at
    /// `right`. The rows of `left` lie `stride` words apart, `BY_ROWS`, or are packed
    /// (interleaved), `stride` words in each pair.
    ///
    /// # Safety
    /// Those rows can be read; `right` has `pairs` rows of a panel, each at a cache line; `c_tile`
    /// can be written, and no other thread touches it. It has at most `MR` rows and `V · LANES`
    /// columns.
    unsafe fn tile<const V: usize, const BY_ROWS: bool>(
        self,
        pairs: usize,
        left: (*const u32, usize),
        right: *const u32,
        c_tile: CTile,
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
    LAYOUT.pack(b, to, |b, to| kernel.pack::<NR>(b.t(), to));
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
    over_rows((c, a, b), into, MC, threads, &|c, a| {
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
    let stride = |kc: usize| if BY_ROWS { kc.div_ceil(2).next_multiple_of(STRETCH) } else { MR };
    let size = |kc: usize| if BY_ROWS { MR * stride(kc) } else { MR * kc.div_ceil(2) };
    // A right operand that must be packed here is so for all rows.
    let (mc, words) = match b {
        Operand::Matrix(_) => (m, LAYOUT.words(k.min(KC), n.min(NC))),
        Operand::Packed(_) => (m.min(MC), 0),
    };
    let mut left = vec![0; mc.div_ceil(MR) * size(k.min(KC))];
    let mut right = Aligned::zeros(words);
    for start in (0..k).step_by(KC) {
        let kc = KC.min(k - start);
        let pairs = kc.div_ceil(2);
        for top in (0..m).step_by(mc) {
            let mc = mc.min(m - top);
            let a = a.columns(start, kc).rows_from(top, mc);
            let left = &mut left[..mc.div_ceil(MR) * size(kc)];
            if BY_ROWS {
                kernel.pack_rows(a, left, stride(kc));
            } else {
                kernel.pack::<MR>(a, left);
            }
            for first in (0..n).step_by(NC) {
                let nc = NC.min(n - first);
                let panels = match b {
                    Operand::Matrix(b) => {
                        let to = &mut right.as_mut_slice()[..LAYOUT.words(kc, nc)];
                        kernel.pack::<NR>(b.rows_from(start, kc).columns(first, nc).t(), to);
                        &*to
                    }
                    Operand::Packed(b) => b.block(LAYOUT, start, first),
                };
                for (row, left) in (0..mc).step_by(MR).zip(left.chunks_exact(size(kc))) {
                    for (column, right) in (0..nc).step_by(NR).zip(panels.chunks_exact(pairs * NR)) {
                        let extent = (MR.min(mc - row), NR.min(nc - column));
                        let add = into == Accumulate::Add || start > 0;
                        let c_tile = CTile::within(&mut c, (top + row, first + column), extent, add);
                        let (left, right) = ((left.as_ptr(), stride(kc)), right.as_ptr());
                        // SAFETY: the panels are whole ones, and the tile is inside C, a `&mut` view.
                        unsafe {
                            if c_tile.columns > LANES {
                                kernel.tile::<2, BY_ROWS>(pairs, left, right, c_tile);
                            } else {
                                kernel.tile::<1, BY_ROWS>(pairs, left, right, c_tile);
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
    use super::{CTile, Isa, Kernel, LANES, MR, Mat, NR, STRETCH, pack, pack_rows};
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
                    // SAFETY: a value of this type is proof of AVX2; a block of 8 × 8 words lies
                    // inside both, and words are only moved.
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
            c_tile: CTile,
        ) {
            // SAFETY: a value of this type is proof of the features; the caller vouches for the memory.
            unsafe { tile::<V, BY_ROWS>(pairs, left, right, c_tile) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma")]
    unsafe fn tile<const V: usize, const BY_ROWS: bool>(
        pairs: usize,
        (left, stride): (*const u32, usize),
        right: *const u32,
        c_tile: CTile,
    ) {
        const { assert!(V * LANES <= NR) }
        for i in 0..MR {
            for v in 0..V {
                _mm_prefetch::<_MM_HINT_T0>(c_tile.to.wrapping_add(i * c_tile.stride + v * LANES).cast());
            }
        }
        let mut sums = [[_mm512_setzero_ps(); V]; MR];
        for p in 0..pairs {
            let mut w = [_mm512_setzero_si512(); V];
            for (v, w) in w.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the panel's row, at a cache line.
                *w = unsafe { _mm512_load_si512(right.add(p * NR + v * LANES).cast()) };
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let at = if BY_ROWS { i * stride + p } else { p * stride + i };
                // SAFETY: the caller vouches for `MR` words of each pair.
                let x = unsafe { *left.add(at) };
                let x = as_bf16(_mm512_set1_epi32(x as i32));
                for (sum, &w) in sums.iter_mut().zip(&w) {
                    *sum = _mm512_dpbf16_ps(*sum, x, as_bf16(w));
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            if i < c_tile.rows {
                for (v, &sum) in sums.iter().enumerate() {
                    let there = c_tile.columns.saturating_sub(v * LANES).min(LANES);
                    let mask = ((1u32 << there) - 1) as __mmask16;
                    // SAFETY: row `i` of the tile is there, and the mask leaves out what is behind
                    // its columns.
                    unsafe {
                        let to = c_tile.to.add(i * c_tile.stride + v * LANES);
                        let old =
                            if c_tile.add { _mm512_maskz_loadu_ps(mask, to) } else { _mm512_setzero_ps() };
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
