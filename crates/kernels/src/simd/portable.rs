//! The vector operations in plain Rust: eight lanes that the compiler may map to whatever the
//! target has.

use super::{GROUP, Simd, small_methods};
use crate::gemm::small::{AView, BView, CView};

/// Plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const N: usize = 8;

#[inline(always)]
fn zip(a: [f32; N], b: [f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn zip_u(a: [u32; N], b: [u32; N], f: impl Fn(u32, u32) -> u32) -> [u32; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    const LANES: usize = N;
    const MR: usize = 3;
    const FUSED: bool = false;
    type F = [f32; N];
    type U = [u32; N];
    type M = [bool; N];
    type I = [i32; N];
    type W = [i8; GROUP * N];

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        [x; N]
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        // SAFETY: the caller vouches for N floats at `p`.
        unsafe { p.cast::<[f32; N]>().read() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        // SAFETY: the caller vouches for N floats at `p`.
        unsafe { p.cast::<[f32; N]>().write(v) }
    }
    #[inline(always)]
    unsafe fn load_partial(self, p: *const f32, n: usize) -> Self::F {
        let mut v = [0.0; N];
        // SAFETY: the caller vouches for `n <= N` floats at `p`.
        v[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(p, n) });
        v
    }
    #[inline(always)]
    unsafe fn store_partial(self, p: *mut f32, v: Self::F, n: usize) {
        // SAFETY: the caller vouches for `n <= N` floats at `p`.
        unsafe { std::slice::from_raw_parts_mut(p, n) }.copy_from_slice(&v[..n]);
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        a.map(f32::sqrt)
    }
    /// Rounds twice: without the instruction, an FMA is a slow library call.
    #[inline(always)]
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        std::array::from_fn(|i| a[i] < b[i])
    }
    #[inline(always)]
    fn select(self, m: Self::M, yes: Self::F, no: Self::F) -> Self::F {
        std::array::from_fn(|i| if m[i] { yes[i] } else { no[i] })
    }
    /// Adding 1.5·2²³ pushes the fraction out of the mantissa, rounding ties to even.
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        const MAGIC: f32 = 12_582_912.0;
        a.map(|a| (a + MAGIC) - MAGIC)
    }
    #[inline(always)]
    fn pow2(self, n: Self::F) -> Self::F {
        n.map(|n| f32::from_bits(((n as i32).wrapping_add(127) as u32) << 23))
    }
    #[inline(always)]
    fn reduce_sum(self, a: Self::F) -> f32 {
        (a[0] + a[4]) + (a[1] + a[5]) + ((a[2] + a[6]) + (a[3] + a[7]))
    }
    #[inline(always)]
    fn reduce_max(self, a: Self::F) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, |m, x| if m > x { m } else { x })
    }
    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        [x; N]
    }
    #[inline(always)]
    fn lanes_u(self) -> Self::U {
        std::array::from_fn(|i| i as u32)
    }
    #[inline(always)]
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U {
        zip_u(a, b, u32::wrapping_add)
    }
    #[inline(always)]
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U {
        zip_u(a, b, u32::wrapping_mul)
    }
    #[inline(always)]
    fn xor_u(self, a: Self::U, b: Self::U) -> Self::U {
        zip_u(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn shr_u<const S: i32>(self, a: Self::U) -> Self::U {
        a.map(|a| a >> S)
    }
    #[inline(always)]
    fn lt_u(self, a: Self::U, b: Self::U) -> Self::M {
        std::array::from_fn(|i| a[i] < b[i])
    }
    #[inline(always)]
    fn bits(self, m: Self::M) -> u32 {
        (0..N).map(|i| u32::from(m[i]) << i).sum()
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        [x; N]
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        // SAFETY: the caller vouches for N integers at `p`.
        unsafe { p.cast::<[i32; N]>().read() }
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        // SAFETY: the caller vouches for N integers at `p`.
        unsafe { p.cast::<[i32; N]>().write(v) }
    }
    #[inline(always)]
    fn int_to_float(self, a: Self::I) -> Self::F {
        a.map(|a| a as f32)
    }
    #[inline(always)]
    fn sub_times(self, a: Self::I, b: Self::I, c: i32) -> Self::I {
        std::array::from_fn(|i| a[i] - b[i] * c)
    }
    #[inline(always)]
    unsafe fn load_weights(self, p: *const i8) -> Self::W {
        // SAFETY: the caller vouches for this many bytes at `p`.
        unsafe { p.cast::<Self::W>().read() }
    }
    #[inline(always)]
    fn dot(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I {
        std::array::from_fn(|lane| {
            let mut sum = sum[lane];
            for (w, a) in w.iter().zip(a) {
                for (w, a) in w[lane * GROUP..].iter().zip(a[lane].to_ne_bytes()) {
                    sum += i32::from(*w) * i32::from(a);
                }
            }
            sum
        })
    }
    #[inline(always)]
    unsafe fn quantize(self, x: *const f32, n: usize, factor: f32, zero: i32, most: i32, to: *mut i32) {
        let mut q = [zero as u8; GROUP * N];
        // SAFETY: the caller vouches for `n <= GROUP · N` floats at `x`.
        let x = unsafe { std::slice::from_raw_parts(x, n) };
        for (q, x) in q.iter_mut().zip(x) {
            let scaled = if x * factor < 127.0 { x * factor } else { 127.0 };
            *q = (scaled.round_ties_even() as i32).saturating_add(zero).clamp(0, most) as u8;
        }
        // SAFETY: the caller vouches for N words at `to`.
        unsafe { to.cast::<[u8; GROUP * N]>().write(q) }
    }

    small_methods!(Portable);
}
