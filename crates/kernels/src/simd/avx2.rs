//! The vector operations in AVX2 and FMA: eight lanes.

use super::{Simd, small_methods};
use crate::gemm::small::{AView, BView, CView};
use std::arch::x86_64::*;

/// AVX2 with FMA; a value exists only where the CPU has both.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Callable without `unsafe` only where the features are known to exist.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn new() -> Self {
        Avx2(())
    }
}

const N: usize = 8;

/// An 8 × 8 transposition in registers: pairs, quarters, halves. AVX-512 uses it too.
///
/// # Safety
/// The CPU has AVX2; eight floats can be read at each `from + r · from_stride` and written at each
/// `to + c · to_stride`.
#[inline(always)]
pub(crate) unsafe fn transpose_8x8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
    // SAFETY: the caller vouches for the memory and the feature.
    unsafe {
        let r: [__m256; N] = std::array::from_fn(|i| _mm256_loadu_ps(from.add(i * from_stride)));
        let mut t = [r[0]; N];
        for i in 0..4 {
            t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        let mut u = [r[0]; N];
        for half in 0..2 {
            let h = 4 * half;
            u[h] = _mm256_shuffle_ps::<0x44>(t[h], t[h + 2]);
            u[h + 1] = _mm256_shuffle_ps::<0xee>(t[h], t[h + 2]);
            u[h + 2] = _mm256_shuffle_ps::<0x44>(t[h + 1], t[h + 3]);
            u[h + 3] = _mm256_shuffle_ps::<0xee>(t[h + 1], t[h + 3]);
        }
        for i in 0..4 {
            _mm256_storeu_ps(to.add(i * to_stride), _mm256_permute2f128_ps::<0x20>(u[i], u[i + 4]));
            _mm256_storeu_ps(to.add((i + 4) * to_stride), _mm256_permute2f128_ps::<0x31>(u[i], u[i + 4]));
        }
    }
}

/// `N` ones, then zeros: a window into this is the mask of the first `n` lanes.
static MASK: [i32; 2 * N] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
fn first(n: usize) -> __m256i {
    debug_assert!(n <= N);
    // SAFETY: `n <= N`, so the window lies inside the table; the CPU has AVX (see `Avx2`).
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(N - n).cast()) }
}

/// Every method relies on this: a value of `Avx2` is proof of the features, and the register
/// intrinsics require nothing else.
macro_rules! op {
    ($e:expr) => {
        // SAFETY: see above.
        unsafe { $e }
    };
}

impl Simd for Avx2 {
    const LANES: usize = N;
    const MR: usize = 6;
    type F = __m256;
    type U = __m256i;
    type M = __m256;
    type I = __m256i;
    type W = __m256i;
    /// More rows would spill accumulators to memory in each step: 29 products per cycle with six
    /// rows, 38 with three (Zen 3).
    const INT8_MR: usize = 3;
    const ADDS_IN_16_BITS: bool = true;

    #[inline(always)]
    fn prefetch(self, p: *const f32) {
        op!(_mm_prefetch::<_MM_HINT_T0>(p.cast()))
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        op!(_mm256_set1_ps(x))
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        op!(_mm256_loadu_ps(p))
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        op!(_mm256_storeu_ps(p, v))
    }
    #[inline(always)]
    unsafe fn load_partial(self, p: *const f32, n: usize) -> Self::F {
        op!(_mm256_maskload_ps(p, first(n)))
    }
    #[inline(always)]
    unsafe fn store_partial(self, p: *mut f32, v: Self::F, n: usize) {
        op!(_mm256_maskstore_ps(p, first(n), v))
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        op!(_mm256_sqrt_ps(a))
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        op!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        op!(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b))
    }
    #[inline(always)]
    fn select(self, m: Self::M, yes: Self::F, no: Self::F) -> Self::F {
        op!(_mm256_blendv_ps(no, yes, m))
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        op!(_mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn pow2(self, n: Self::F) -> Self::F {
        op!({
            let n = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n))
        })
    }
    #[inline(always)]
    fn reduce_sum(self, a: Self::F) -> f32 {
        op!({
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
        })
    }
    #[inline(always)]
    fn reduce_max(self, a: Self::F) -> f32 {
        op!({
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)))
        })
    }
    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        op!(_mm256_set1_epi32(x as i32))
    }
    #[inline(always)]
    fn lanes_u(self) -> Self::U {
        op!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
    }
    #[inline(always)]
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(_mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(_mm256_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn xor_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(_mm256_xor_si256(a, b))
    }
    #[inline(always)]
    fn shr_u<const S: i32>(self, a: Self::U) -> Self::U {
        op!(_mm256_srli_epi32::<S>(a))
    }
    /// AVX2 compares only signed integers: flipping the top bit orders unsigned ones the same way.
    #[inline(always)]
    fn lt_u(self, a: Self::U, b: Self::U) -> Self::M {
        op!({
            let top = _mm256_set1_epi32(i32::MIN);
            _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_xor_si256(b, top), _mm256_xor_si256(a, top)))
        })
    }
    #[inline(always)]
    fn bits(self, m: Self::M) -> u32 {
        op!(_mm256_movemask_ps(m)) as u32
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        op!(_mm256_set1_epi32(x))
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        op!(_mm256_loadu_si256(p.cast()))
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        op!(_mm256_storeu_si256(p.cast(), v))
    }
    #[inline(always)]
    fn reduce_each(self, a: [Self::I; 8]) -> [i32; 8] {
        op!(reduce_each(a))
    }
    #[inline(always)]
    fn reduce_sums(self, a: [Self::F; 8]) -> [f32; 8] {
        op!(reduce_sums(a))
    }
    #[inline(always)]
    fn max_in_16_bits(self, a: Self::I, b: Self::I) -> Self::I {
        op!(_mm256_max_epi16(a, b))
    }
    #[inline(always)]
    fn largest_in_16_bits(self, a: Self::I) -> i32 {
        op!({
            let a = _mm_max_epi16(_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
            // The instruction finds the smallest unsigned element: apply it to the distances from
            // `i16::MAX`.
            let distances = _mm_sub_epi16(_mm_set1_epi16(i16::MAX), _mm_max_epi16(a, _mm_setzero_si128()));
            i32::from(i16::MAX) - (_mm_cvtsi128_si32(_mm_minpos_epu16(distances)) & 0xffff)
        })
    }
    #[inline(always)]
    fn positive_and_negative(self, w: Self::W) -> [Self::I; 2] {
        op!({
            let (zero, ones) = (_mm256_setzero_si256(), _mm256_set1_epi8(1));
            let positive = _mm256_max_epi8(w, zero);
            let negative = _mm256_sub_epi8(zero, _mm256_min_epi8(w, zero));
            // Both are unsigned: 128 can occur.
            [_mm256_maddubs_epi16(positive, ones), _mm256_maddubs_epi16(negative, ones)]
        })
    }
    #[inline(always)]
    fn int_to_float(self, a: Self::I) -> Self::F {
        op!(_mm256_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn sub_times(self, a: Self::I, b: Self::I, c: i32) -> Self::I {
        op!(_mm256_sub_epi32(a, _mm256_mullo_epi32(b, _mm256_set1_epi32(c))))
    }
    #[inline(always)]
    unsafe fn load_weights(self, p: *const i8) -> Self::W {
        op!(_mm256_loadu_si256(p.cast()))
    }
    /// The first instruction adds two products in 16 bits, which is enough for 127 · 127; the
    /// second widens.
    #[inline(always)]
    fn dot(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I {
        op!({
            let ones = _mm256_set1_epi16(1);
            let first = _mm256_madd_epi16(_mm256_maddubs_epi16(a[0], w[0]), ones);
            let second = _mm256_madd_epi16(_mm256_maddubs_epi16(a[1], w[1]), ones);
            _mm256_add_epi32(sum, _mm256_add_epi32(first, second))
        })
    }
    #[inline(always)]
    fn products_in_16_bits(self, a: Self::I, w: Self::W) -> Self::I {
        op!(_mm256_maddubs_epi16(a, w))
    }
    #[inline(always)]
    fn add_in_16_bits(self, a: Self::I, b: Self::I) -> Self::I {
        op!(_mm256_add_epi16(a, b))
    }
    #[inline(always)]
    fn add_widened(self, sum: Self::I, a: Self::I) -> Self::I {
        op!(_mm256_add_epi32(sum, _mm256_madd_epi16(a, _mm256_set1_epi16(1))))
    }
    /// Widens to 16 bits first: the even bytes of each group, then the odd ones.
    #[inline(always)]
    fn dot_wide(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I {
        op!({
            let mut sum = sum;
            for i in 0..2 {
                let even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(w[i]));
                let even = _mm256_madd_epi16(_mm256_and_si256(a[i], _mm256_set1_epi16(255)), even);
                let odd = _mm256_madd_epi16(_mm256_srli_epi16::<8>(a[i]), _mm256_srai_epi16::<8>(w[i]));
                sum = _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
            }
            sum
        })
    }
    #[inline(always)]
    unsafe fn quantize(self, x: *const f32, n: usize, factor: f32, zero: i32, most: i32, to: *mut i32) {
        let (factor, zero) = (self.splat(factor), self.splat_i(zero));
        // SAFETY: the caller vouches for `n` floats at `x` and for a vector at `to`.
        unsafe {
            let mut parts = [zero; 4];
            for (i, part) in parts.iter_mut().enumerate() {
                let from = n.min(i * N);
                let x = match n == 4 * N {
                    true => self.load(x.add(i * N)),
                    false => self.load_partial(x.add(from), (n - from).min(N)),
                };
                let scaled = self.min(self.mul(x, factor), self.splat(127.0));
                *part = _mm256_add_epi32(_mm256_cvtps_epi32(scaled), zero);
            }
            let low = _mm256_packs_epi32(parts[0], parts[1]);
            let high = _mm256_packs_epi32(parts[2], parts[3]);
            let packed = _mm256_min_epu8(_mm256_packus_epi16(low, high), _mm256_set1_epi8(most as i8));
            // The instructions pack within 128-bit halves; the permutation restores the order.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(packed, order));
        }
    }
    #[inline(always)]
    unsafe fn transpose_8x8(self, from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the caller vouches for the memory; a value of this type is proof of AVX2.
        unsafe { transpose_8x8(from, from_stride, to, to_stride) }
    }

    small_methods!(Avx2::new(), "avx2,fma");
}

/// The sum of the lanes of each vector.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn reduce_each(a: [__m256i; 8]) -> [i32; 8] {
    let pairs = [
        _mm256_hadd_epi32(a[0], a[1]),
        _mm256_hadd_epi32(a[2], a[3]),
        _mm256_hadd_epi32(a[4], a[5]),
        _mm256_hadd_epi32(a[6], a[7]),
    ];
    // Each half has the sums of half of the lanes of four vectors.
    let (first, second) = (_mm256_hadd_epi32(pairs[0], pairs[1]), _mm256_hadd_epi32(pairs[2], pairs[3]));
    let low = _mm256_permute2x128_si256::<0x20>(first, second);
    let high = _mm256_permute2x128_si256::<0x31>(first, second);
    let mut sums = [0; 8];
    // SAFETY: `sums` holds eight 32-bit integers.
    unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), _mm256_add_epi32(low, high)) };
    sums
}

/// The same for floats.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn reduce_sums(a: [__m256; 8]) -> [f32; 8] {
    let pairs = [
        _mm256_hadd_ps(a[0], a[1]),
        _mm256_hadd_ps(a[2], a[3]),
        _mm256_hadd_ps(a[4], a[5]),
        _mm256_hadd_ps(a[6], a[7]),
    ];
    let (first, second) = (_mm256_hadd_ps(pairs[0], pairs[1]), _mm256_hadd_ps(pairs[2], pairs[3]));
    let low = _mm256_permute2f128_ps::<0x20>(first, second);
    let high = _mm256_permute2f128_ps::<0x31>(first, second);
    let mut sums = [0.0; 8];
    // SAFETY: `sums` holds eight floats.
    unsafe { _mm256_storeu_ps(sums.as_mut_ptr(), _mm256_add_ps(low, high)) };
    sums
}
