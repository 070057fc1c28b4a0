//! The micro-kernel for operands rounded to bf16: both are packed, two elements to a word.

use super::Accumulate;
use super::nest::{self, CTile, MicroKernel, Workspace, split_rows};
use super::packed_b::{Layout, Operand};
use super::rounding::{STRETCH, pack, pack_rows};
use crate::Isa;
use crate::mat::{Mat, MatMut};
use std::ops::Range;

/// A panel of B, `KC · NR` two-byte elements, fills the L1 cache. KC is even, so that no pair is
/// split.
pub(super) const KC: usize = 512;

/// Rows of a tile: with two vectors each, 24 accumulators and their operands fit 32 registers and
/// hide the latency of the instruction.
pub(super) const MR: usize = 12;

/// f32 elements in a vector.
const LANES: usize = 16;

/// Columns of a tile.
pub(super) const NR: usize = 2 * LANES;

/// `MC · KC` elements of A take a part of the L2 cache.
const MC: usize = 8 * MR;

/// A block of B, `KC · NC` two-byte elements, takes half of a 1 MB L2 cache.
pub(super) const NC: usize = 512;

/// How the micro-kernel reads B: two rows share a word.
pub(super) const LAYOUT: Layout = Layout { nr: NR, kc: KC, in_word: 2 };

/// The operations that differ between instruction sets.
pub(super) trait Instructions: Copy + Send + Sync {
    /// [`pack_rows`]
    fn pack_rows(self, x: Mat<'_>, to: &mut [u32], stride: usize);

    /// [`pack`]
    fn pack<const W: usize>(self, x: Mat<'_>, to: &mut [u32]);

    /// A tile: the sum over `pairs` pairs of `R` rows at `left` times a panel, written to `c` or,
    /// if `add`, added to it. With `BY_ROWS` the rows of `left` lie `stride` words apart; otherwise
    /// they are packed (interleaved), with `stride` words per pair.
    ///
    /// # Safety
    /// Those rows are readable; `panel` has `pairs` rows of `NR` words, aligned to cache lines; `c`
    /// is writable, and no other thread accesses it.
    unsafe fn tile<const R: usize, const BY_ROWS: bool>(
        self,
        pairs: usize,
        left: (*const u32, usize),
        panel: *const u32,
        c: CTile,
        add: bool,
    );
}

/// Packs all of B for [`matmul_rows`].
pub(super) fn pack_b(isa: Isa, b: Mat<'_>, to: &mut [u32]) {
    assert!(isa.has_bf16());
    #[cfg(target_arch = "x86_64")]
    pack_b_by(x86::Avx512Bf16::new(isa), b, to);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (b, to);
}

/// Packs all of B with the given instructions.
pub(super) fn pack_b_by(instructions: impl Instructions, b: Mat<'_>, to: &mut [u32]) {
    LAYOUT.pack(b, to, |b, to| instructions.pack::<NR>(b.t(), to));
}

/// The matmul with `vdpbf16ps` on up to `threads` threads.
pub(super) fn matmul_rows(
    isa: Isa,
    c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
    threads: usize,
) {
    assert!(isa.has_bf16());
    #[cfg(target_arch = "x86_64")]
    matmul_rows_by(x86::Avx512Bf16::new(isa), c, a, b, into, threads);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (c, a, b, into, threads);
}

/// The matmul with the given instructions, split over threads.
pub(super) fn matmul_rows_by<I: Instructions>(
    instructions: I,
    c: MatMut<'_>,
    a: Mat<'_>,
    b: Operand<'_>,
    into: Accumulate,
    threads: usize,
) {
    split_rows((c, a, b), into, MC, threads, &|c, a| {
        Workspace::with(|workspace| {
            let panels = std::ptr::null();
            let kernel = Bf16 { instructions, a, b, into, workspace, panels, depth: 0..0, first: 0 };
            nest::run(kernel, c, a.cols);
        });
    });
}

struct Bf16<'a, I> {
    instructions: I,
    a: Mat<'a>,
    b: Operand<'a>,
    into: Accumulate,
    workspace: &'a mut Workspace,
    /// The block of B, `[panel][pair][NR]`.
    panels: *const u32,
    /// The block's range of `k`.
    depth: Range<usize>,
    /// The block's first column.
    first: usize,
}

impl<I> Bf16<'_, I> {
    /// The number of pairs in the block's range of `k`.
    fn pairs(&self) -> usize {
        self.depth.len().div_ceil(2)
    }

    /// Whether A is packed row by row: its elements are broadcast one by one, so rows can stay
    /// rows.
    fn by_rows(&self) -> bool {
        self.a.col_stride == 1
    }

    /// The number of words in a row of A.
    fn row_words(&self) -> usize {
        if self.by_rows() { self.pairs().next_multiple_of(STRETCH) } else { self.pairs() }
    }
}

impl<I: Instructions> MicroKernel for Bf16<'_, I> {
    const MR: usize = MR;
    const NR: usize = NR;
    const KC: usize = KC;
    const MC: usize = MC;
    const NC: usize = NC;

    fn begin_block(&mut self, depth: Range<usize>, columns: Range<usize>) {
        let panels = match self.b {
            Operand::Matrix(b) => {
                let words = LAYOUT.words(depth.len(), columns.len());
                self.workspace.b.at_least(words);
                let to = &mut self.workspace.b.as_mut_slice()[..words];
                let b = b.rows_from(depth.start, depth.len()).columns(columns.start, columns.len());
                self.instructions.pack::<NR>(b.t(), to);
                &*to
            }
            Operand::Packed(b) => b.block(LAYOUT, depth.start, columns.clone()),
        };
        (self.panels, self.depth, self.first) = (panels.as_ptr(), depth, columns.start);
    }

    fn pack_a(&mut self, rows: Range<usize>) {
        let words = self.row_words();
        self.workspace.a.at_least(self.a.rows.next_multiple_of(MR) * words);
        let a = self.a.columns(self.depth.start, self.depth.len()).rows_from(rows.start, rows.len());
        let by_rows = self.by_rows();
        let size = rows.len().next_multiple_of(MR) * words;
        let to = &mut self.workspace.a.as_mut_slice()[rows.start * words..][..size];
        if by_rows {
            self.instructions.pack_rows(a, to, words);
        } else {
            self.instructions.pack::<MR>(a, to);
        }
    }

    #[inline(always)]
    unsafe fn tile<const R: usize>(&mut self, row: usize, column: usize, c: CTile) {
        let (pairs, words) = (self.pairs(), self.row_words());
        let panel = self.panels.wrapping_add((column - self.first) * pairs);
        let left = self.workspace.a.as_slice().as_ptr();
        let add = self.into == Accumulate::Add || self.depth.start > 0;
        // SAFETY: the rows and the panel have been packed; the caller vouches for the tile.
        unsafe {
            if self.by_rows() {
                let left = (left.add(row * words), words);
                self.instructions.tile::<R, true>(pairs, left, panel, c, add);
            } else {
                let first = row / MR * MR;
                let left = (left.add(first * words + row - first), MR);
                self.instructions.tile::<R, false>(pairs, left, panel, c, add);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::rounding::{Plain, Rounding, Stretch};
    use super::{CTile, Instructions, Isa, LANES, Mat, NR, STRETCH, pack, pack_rows};
    use crate::simd::avx2::transpose_8x8;
    use std::arch::x86_64::*;

    /// A value exists only if the CPU has the instruction.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512Bf16(());

    impl Avx512Bf16 {
        pub(super) fn new(isa: Isa) -> Self {
            assert!(isa.has_bf16());
            Avx512Bf16(())
        }
    }

    /// Every method relies on this: a value of this type is proof of the features. The instructions
    /// round to nearest, ties to even, as [`Plain`] does; they treat denormals as zero, as the
    /// multiplication does.
    impl Rounding for Avx512Bf16 {
        #[inline(always)]
        fn pairs(self, from: &[f32], to: &mut [u32; STRETCH]) {
            let there = from.len().min(2 * LANES);
            // SAFETY: see above; the masks exclude what is past the end.
            unsafe {
                let low = _mm512_maskz_loadu_ps(first(there), from.as_ptr());
                let high = from.as_ptr().wrapping_add(LANES);
                let high = _mm512_maskz_loadu_ps(first(there.saturating_sub(LANES)), high);
                _mm512_storeu_si512(to.as_mut_ptr().cast(), as_words(_mm512_cvtne2ps_pbh(high, low)));
            }
        }

        #[inline(always)]
        fn interleave<const W: usize>(self, one: &[f32], two: &[f32], to: &mut [u32; W]) {
            for at in (0..W).step_by(LANES) {
                let mask = |x: &[f32]| first(x.len().saturating_sub(at));
                // SAFETY: see above; the masks exclude what is past the end of each slice.
                unsafe {
                    let low = _mm512_maskz_loadu_ps(mask(one), one.as_ptr().wrapping_add(at));
                    let high = _mm512_maskz_loadu_ps(mask(two), two.as_ptr().wrapping_add(at));
                    // [one…, two…] → one, two, one, two, …
                    let both = as_words(_mm512_cvtne2ps_pbh(high, low));
                    let mixed = _mm512_permutexvar_epi16(_mm512_loadu_si512(MIXED.as_ptr().cast()), both);
                    _mm512_mask_storeu_epi32(to.as_mut_ptr().add(at).cast(), first(W - at), mixed);
                }
            }
        }

        #[inline(always)]
        fn transpose<const W: usize>(self, from: &Stretch<W>, to: &mut [u32]) {
            if !W.is_multiple_of(8) || to.len() != W * STRETCH {
                return Plain.transpose(from, to);
            }
            for row in (0..W).step_by(8) {
                for column in (0..STRETCH).step_by(8) {
                    // SAFETY: a value of this type is proof of AVX2; a block of 8 × 8 words lies
                    // inside both slices, and words are only moved.
                    unsafe {
                        let from = from.as_ptr().cast::<u32>().add(row * STRETCH + column);
                        let to = to.as_mut_ptr().add(column * W + row);
                        transpose_8x8(from.cast(), STRETCH, to.cast(), W);
                    }
                }
            }
        }
    }

    /// A mask for the first `n` lanes, or for all.
    #[inline(always)]
    fn first(n: usize) -> __mmask16 {
        ((1u32 << n.min(LANES)) - 1) as __mmask16
    }

    /// The permutation that interleaves the 16-bit halves of two vectors.
    static MIXED: [u16; 2 * LANES] = {
        let mut mixed = [0; 2 * LANES];
        let mut i = 0;
        while i < 2 * LANES {
            mixed[i] = (i / 2 + i % 2 * LANES) as u16;
            i += 1;
        }
        mixed
    };

    impl Instructions for Avx512Bf16 {
        fn pack_rows(self, x: Mat<'_>, to: &mut [u32], stride: usize) {
            #[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma")]
            fn compiled(proof: Avx512Bf16, x: Mat<'_>, to: &mut [u32], stride: usize) {
                pack_rows(proof, x, to, stride);
            }
            // SAFETY: a value of this type is proof of the features.
            unsafe { compiled(self, x, to, stride) }
        }

        fn pack<const W: usize>(self, x: Mat<'_>, to: &mut [u32]) {
            #[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma")]
            fn compiled<const W: usize>(proof: Avx512Bf16, x: Mat<'_>, to: &mut [u32]) {
                pack::<W>(proof, x, to);
            }
            // SAFETY: a value of this type is proof of the features.
            unsafe { compiled::<W>(self, x, to) }
        }

        unsafe fn tile<const R: usize, const BY_ROWS: bool>(
            self,
            pairs: usize,
            left: (*const u32, usize),
            panel: *const u32,
            c: CTile,
            add: bool,
        ) {
            // SAFETY: a value of this type is proof of the features; the caller vouches for the
            // memory.
            unsafe { tile::<R, BY_ROWS>(pairs, left, panel, c, add) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma")]
    unsafe fn tile<const R: usize, const BY_ROWS: bool>(
        pairs: usize,
        (left, stride): (*const u32, usize),
        panel: *const u32,
        c: CTile,
        add: bool,
    ) {
        for i in 0..R {
            for v in 0..2 {
                _mm_prefetch::<_MM_HINT_T0>(c.to.wrapping_add(i * c.stride + v * LANES).cast());
            }
        }
        let mut sums = [[_mm512_setzero_ps(); 2]; R];
        for p in 0..pairs {
            // SAFETY: the caller vouches for the panel's row, at a cache line.
            let w = unsafe {
                [
                    _mm512_load_si512(panel.add(p * NR).cast()),
                    _mm512_load_si512(panel.add(p * NR + LANES).cast()),
                ]
            };
            for (i, sums) in sums.iter_mut().enumerate() {
                let at = if BY_ROWS { i * stride + p } else { p * stride + i };
                // SAFETY: the caller vouches for `R` words of each pair.
                let x = unsafe { *left.add(at) };
                let x = as_bf16(_mm512_set1_epi32(x as i32));
                for (sum, &w) in sums.iter_mut().zip(&w) {
                    *sum = _mm512_dpbf16_ps(*sum, x, as_bf16(w));
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                let mask = ((1u32 << c.lanes(v, LANES)) - 1) as __mmask16;
                // SAFETY: row `i` of the tile exists, and the mask excludes what is past its
                // columns.
                unsafe {
                    let to = c.to.wrapping_add(i * c.stride + v * LANES);
                    let old = if add { _mm512_maskz_loadu_ps(mask, to) } else { _mm512_setzero_ps() };
                    _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(old, sum));
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn as_words(x: __m512bh) -> __m512i {
        // SAFETY: both types are 64 bytes, and every bit pattern is valid.
        unsafe { std::mem::transmute(x) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn as_bf16(x: __m512i) -> __m512bh {
        // SAFETY: both types are 64 bytes, and every bit pattern is valid.
        unsafe { std::mem::transmute(x) }
    }
}
