//! The vector operations in NEON: four lanes.

use super::{Simd, small_methods};
use crate::gemm::small::{AView, BView, CView};
use std::arch::aarch64::*;

/// NEON; a value exists only where the CPU has it.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// Callable without `unsafe` only where the feature is known to exist.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn new() -> Self {
        Neon(())
    }
}

const N: usize = 4;

/// Every method relies on this: a value of `Neon` is proof of the feature, and the register
/// intrinsics require nothing else.
macro_rules! op {
    ($e:expr) => {
        // SAFETY: see above.
        unsafe { $e }
    };
}

impl Simd for Neon {
    const LANES: usize = N;
    const MR: usize = 12;
    type F = float32x4_t;
    type U = uint32x4_t;
    type M = uint32x4_t;
    type I = int32x4_t;
    type W = int8x16_t;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        op!(vdupq_n_f32(x))
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        op!(vld1q_f32(p))
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        op!(vst1q_f32(p, v))
    }
    #[inline(always)]
    unsafe fn load_partial(self, p: *const f32, n: usize) -> Self::F {
        let mut v = [0.0; N];
        // SAFETY: the caller vouches for `n <= N` floats at `p`.
        v[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(p, n) });
        op!(vld1q_f32(v.as_ptr()))
    }
    #[inline(always)]
    unsafe fn store_partial(self, p: *mut f32, v: Self::F, n: usize) {
        let mut lanes = [0.0; N];
        op!(vst1q_f32(lanes.as_mut_ptr(), v));
        // SAFETY: the caller vouches for `n <= N` floats at `p`.
        unsafe { std::slice::from_raw_parts_mut(p, n) }.copy_from_slice(&lanes[..n]);
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        op!(vaddq_f32(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        op!(vsubq_f32(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        op!(vmulq_f32(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        op!(vdivq_f32(a, b))
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        op!(vsqrtq_f32(a))
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        op!(vfmaq_f32(c, a, b))
    }
    /// Not `vmaxq_f32`, which returns NaN where `a` is NaN.
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        op!(vbslq_f32(vcgtq_f32(a, b), a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        op!(vbslq_f32(vcltq_f32(a, b), a, b))
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        op!(vcltq_f32(a, b))
    }
    #[inline(always)]
    fn select(self, m: Self::M, yes: Self::F, no: Self::F) -> Self::F {
        op!(vbslq_f32(m, yes, no))
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        op!(vrndnq_f32(a))
    }
    #[inline(always)]
    fn pow2(self, n: Self::F) -> Self::F {
        op!(vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)))))
    }
    #[inline(always)]
    fn reduce_sum(self, a: Self::F) -> f32 {
        op!(vaddvq_f32(a))
    }
    #[inline(always)]
    fn reduce_max(self, a: Self::F) -> f32 {
        op!(vmaxvq_f32(a))
    }
    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        op!(vdupq_n_u32(x))
    }
    #[inline(always)]
    fn lanes_u(self) -> Self::U {
        const LANES: [u32; N] = [0, 1, 2, 3];
        op!(vld1q_u32(LANES.as_ptr()))
    }
    #[inline(always)]
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(vaddq_u32(a, b))
    }
    #[inline(always)]
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(vmulq_u32(a, b))
    }
    #[inline(always)]
    fn xor_u(self, a: Self::U, b: Self::U) -> Self::U {
        op!(veorq_u32(a, b))
    }
    #[inline(always)]
    fn shr_u<const S: i32>(self, a: Self::U) -> Self::U {
        op!(vshrq_n_u32::<S>(a))
    }
    #[inline(always)]
    fn lt_u(self, a: Self::U, b: Self::U) -> Self::M {
        op!(vcltq_u32(a, b))
    }
    #[inline(always)]
    fn bits(self, m: Self::M) -> u32 {
        op!(vaddvq_u32(vandq_u32(m, vld1q_u32([1, 2, 4, 8].as_ptr()))))
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        op!(vdupq_n_s32(x))
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        op!(vld1q_s32(p))
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        op!(vst1q_s32(p, v))
    }
    #[inline(always)]
    fn int_to_float(self, a: Self::I) -> Self::F {
        op!(vcvtq_f32_s32(a))
    }
    #[inline(always)]
    fn sub_times(self, a: Self::I, b: Self::I, c: i32) -> Self::I {
        op!(vmlsq_n_s32(a, b, c))
    }
    #[inline(always)]
    unsafe fn load_weights(self, p: *const i8) -> Self::W {
        op!(vld1q_s8(p))
    }
    /// Inputs are at most 127, so they can be read as signed.
    #[inline(always)]
    fn dot(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I {
        op!({
            let group = |w: int8x16_t, a: int32x4_t| {
                let a = vreinterpretq_s8_s32(a);
                let low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)));
                vpaddq_s32(low, vpaddlq_s16(vmull_high_s8(w, a)))
            };
            vaddq_s32(sum, vaddq_s32(group(w[0], a[0]), group(w[1], a[1])))
        })
    }
    /// Widens to 16 bits first.
    #[inline(always)]
    fn dot_wide(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I {
        op!({
            let group = |w: int8x16_t, a: int32x4_t| {
                let a = vreinterpretq_u8_s32(a);
                let (w_low, w_high) = (vmovl_s8(vget_low_s8(w)), vmovl_high_s8(w));
                let a_low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(a)));
                let a_high = vreinterpretq_s16_u16(vmovl_high_u8(a));
                let pairs = |w: int16x8_t, a: int16x8_t| {
                    vpaddq_s32(vmull_s16(vget_low_s16(w), vget_low_s16(a)), vmull_high_s16(w, a))
                };
                vpaddq_s32(pairs(w_low, a_low), pairs(w_high, a_high))
            };
            vaddq_s32(sum, vaddq_s32(group(w[0], a[0]), group(w[1], a[1])))
        })
    }
    #[inline(always)]
    unsafe fn quantize(self, x: *const f32, n: usize, factor: f32, zero: i32, most: i32, to: *mut i32) {
        let (factor, zero) = (self.splat(factor), self.splat_i(zero));
        // SAFETY: the caller vouches for `n` floats at `x` and for a vector at `to`.
        unsafe {
            let part = |i: usize| {
                let from = n.min(i * N);
                let x = self.load_partial(x.add(from), (n - from).min(N));
                let scaled = self.min(self.mul(x, factor), self.splat(127.0));
                vqmovn_s32(vqaddq_s32(vcvtnq_s32_f32(scaled), zero))
            };
            let low = vqmovun_s16(vcombine_s16(part(0), part(1)));
            let high = vqmovun_s16(vcombine_s16(part(2), part(3)));
            vst1q_u8(to.cast(), vminq_u8(vcombine_u8(low, high), vdupq_n_u8(most as u8)));
        }
    }

    small_methods!(Neon::new(), "neon");
}
