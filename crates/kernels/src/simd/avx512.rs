//! The vector operations in AVX-512 with BW and VNNI (Ice Lake, Zen 4 and later): sixteen lanes,
//! and masks for the tail.

use super::{Simd, small_methods};
use crate::gemm::small::{AView, BView, CView};
use std::arch::x86_64::*;

/// AVX-512 F, BW and VNNI; a value exists only where the CPU has them.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// Callable without `unsafe` only where the features are known to exist.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
    pub(crate) fn new() -> Self {
        Avx512(())
    }
}

const N: usize = 16;

#[inline(always)]
fn first(n: usize) -> __mmask16 {
    debug_assert!(n <= N);
    ((1u32 << n) - 1) as __mmask16
}

/// Every method relies on this: a value of `Avx512` is proof of the features, and the register
/// intrinsics require nothing else.
macro_rules! op {
    ($e:expr) => {
        // SAFETY: see above.
        unsafe { $e }
    };
}

impl Simd for Avx512 {
    const LANES: usize = N;
    const MR: usize = 12;
    type F = __m512;
    type U = __m512i;
    type M = __mmask16;
    type I = __m512i;
    type W = __m512i;

    #[inline(always)]
    fn prefetch(self, p: *const f32) {
        op!(_mm_prefetch::<_MM_HINT_T0>(p.cast()))
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        op!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        op!(_mm512_loadu_ps(p))
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        op!(_mm512_storeu_ps(p, v))
    }
    #[inline(always)]
    unsafe fn load_partial(self, p: *const f32, n: usize) -> Self::F {
        op!(_mm512_maskz_loadu_ps(first(n), p))
    }
    #[inline(always)]
    unsafe fn store_partial(self, p: *mut f32, v: Self::F, n: usize) {
        op!(_mm512_mask_storeu_ps(p, first(n), v))
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        op!(_mm512_sqrt_ps(a))
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        op!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        op!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        op!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b))
    }
    #[inline(always)]
    fn select(self, m: Self::M, yes: Self::F, no: Self::F) -> Self::F {
        op!(_mm512_mask_blend_ps(m, no, yes))
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        op!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn pow2(self, n: Self::F) -> Self::F {
        op!({
            let n = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(n))
        })
    }
    #[inline(always)]
    fn times_pow2_or_zero(self, a: Self::F, n: Self::F, zero: Self::M) -> Self::F {
        op!(_mm512_maskz_scalef_ps(!zero, a, n))
    }
    #[inline(always)]
    fn reduce_sum(self, a: Self::F) -> f32 {
        op!(_mm512_reduce_add_ps(a))
    }
    #[inline(always)]
    fn reduce_max(self, a: Self::F) -> f32 {
        op!(_mm512_reduce_max_ps(a))
    }
    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        op!(_mm512_set1_epi32(x as i32))
    }
    #[inline(always)]
    fn lanes_u(self) -> Self::U {
        op!(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
    }
    #[inline(always)]
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(_mm512_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn xor_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn shr_u<const S: i32>(self, a: Self::U) -> Self::U {
        // The intrinsic takes its shift as an unsigned constant; the variable form costs the same.
        op!(_mm512_srlv_epi32(a, _mm512_set1_epi32(S)))
    }
    #[inline(always)]
    fn lt_u(self, a: Self::U, b: Self::U) -> Self::M {
        op!(_mm512_cmplt_epu32_mask(a, b))
    }
    #[inline(always)]
    fn bits(self, m: Self::M) -> u32 {
        u32::from(m)
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        op!(_mm512_set1_epi32(x))
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        op!(_mm512_loadu_si512(p.cast()))
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        op!(_mm512_storeu_si512(p.cast(), v))
    }
    #[inline(always)]
    fn reduce_each(self, a: [Self::I; 8]) -> [i32; 8] {
        op!(super::avx2::reduce_each(fold_i(a)))
    }
    #[inline(always)]
    fn reduce_sums(self, a: [Self::F; 8]) -> [f32; 8] {
        op!(super::avx2::reduce_sums(fold(a)))
    }
    #[inline(always)]
    fn int_to_float(self, a: Self::I) -> Self::F {
        op!(_mm512_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn sub_times(self, a: Self::I, b: Self::I, c: i32) -> Self::I {
        op!(_mm512_sub_epi32(a, _mm512_mullo_epi32(b, _mm512_set1_epi32(c))))
    }
    #[inline(always)]
    unsafe fn load_weights(self, p: *const i8) -> Self::W {
        op!(_mm512_loadu_si512(p.cast()))
    }
    #[inline(always)]
    fn dot(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I {
        op!(_mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, a[0], w[0]), a[1], w[1]))
    }
    #[inline(always)]
    unsafe fn quantize(self, x: *const f32, n: usize, factor: f32, zero: i32, most: i32, to: *mut i32) {
        let (to, factor, zero): (*mut i8, _, _) = (to.cast(), self.splat(factor), self.splat_i(zero));
        for i in 0..super::GROUP {
            let from = n.min(i * N);
            // SAFETY: the caller vouches for `n` floats at `x` and for four times sixteen bytes at
            // `to`.
            unsafe {
                let part = self.load_partial(x.add(from), (n - from).min(N));
                let scaled = self.min(self.mul(part, factor), self.splat(127.0));
                let whole = _mm512_add_epi32(_mm512_cvtps_epi32(scaled), zero);
                let inside = _mm512_min_epi32(_mm512_max_epi32(whole, self.splat_i(0)), self.splat_i(most));
                _mm_storeu_si128(to.add(i * N).cast(), _mm512_cvtepi32_epi8(inside));
            }
        }
    }
    #[inline(always)]
    unsafe fn transpose_8x8(self, from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the caller vouches for the memory; a value of this type is proof of AVX2.
        unsafe { super::avx2::transpose_8x8(from, from_stride, to, to_stride) }
    }

    small_methods!(Avx512::new(), "avx512f,avx512bw,avx512vnni,avx2,fma");
}

/// The sum of the upper and the lower half of each vector.
#[inline]
#[target_feature(enable = "avx512f,avx2")]
fn fold_i(a: [__m512i; 8]) -> [__m256i; 8] {
    let mut halves = [_mm256_setzero_si256(); 8];
    for (half, a) in halves.iter_mut().zip(a) {
        *half = _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64::<1>(a));
    }
    halves
}

/// The same for floats.
#[inline]
#[target_feature(enable = "avx512f,avx2")]
fn fold(a: [__m512; 8]) -> [__m256; 8] {
    let mut halves = [_mm256_setzero_ps(); 8];
    for (half, a) in halves.iter_mut().zip(a) {
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(a)));
        *half = _mm256_add_ps(_mm512_castps512_ps256(a), upper);
    }
    halves
}
