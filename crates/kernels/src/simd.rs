//! The vector operations from which kernels are built, for every instruction set.
//!
//! A kernel is a generic `#[inline(always)]` function over [`Simd`]; [`simd_kernel!`] generates its
//! public form, which takes an [`Isa`](crate::Isa) and calls the body inside a function compiled
//! for that instruction set. The loops in [`loops`] handle the tail, so most kernels contain no
//! `unsafe` of their own.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod loops;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod portable;

use crate::gemm::small::{AView, BView, CView};

/// 8-bit elements in a 32-bit lane.
pub(crate) const GROUP: usize = 4;

/// One instruction set: vectors of `f32`, `u32` and `i32` lanes and the operations on them.
///
/// A value of an implementing type is proof that the CPU has the instruction set: values are
/// constructed only inside the `#[target_feature]` functions that [`simd_kernel!`] generates, after
/// an `Isa` has been matched.
pub(crate) trait Simd: Copy {
    /// Lanes in a vector.
    const LANES: usize;
    /// Lanes of `f32`.
    type F: Copy;
    /// Lanes of `u32`.
    type U: Copy;
    /// Boolean lanes.
    type M: Copy;
    /// Lanes of `i32`.
    type I: Copy;
    /// Lanes of 8-bit weights, [`GROUP`] in each.
    type W: Copy;
    /// Rows of a GEMM tile, 3, 6 or 12: as many as fit the registers with two accumulator vectors
    /// each.
    const MR: usize;
    /// Rows of an int8 GEMM tile, at most six: as many as fit the registers with two accumulator
    /// vectors each and hide the latency.
    const INT8_MR: usize = 6;
    /// Whether `mul_add` rounds once.
    const FUSED: bool = true;
    /// Whether `products_in_16_bits` and the related methods exist.
    const ADDS_IN_16_BITS: bool = false;

    /// Prefetches the cache line at an address, which need not be readable.
    #[inline(always)]
    fn prefetch(self, _: *const f32) {}
    fn splat(self, x: f32) -> Self::F;
    /// # Safety
    /// `LANES` floats can be read at `p`.
    unsafe fn load(self, p: *const f32) -> Self::F;
    /// # Safety
    /// `LANES` floats can be written at `p`.
    unsafe fn store(self, p: *mut f32, v: Self::F);
    /// Loads the first `n` lanes and sets the others to zero.
    /// # Safety
    /// `n <= LANES`, and `n` floats can be read at `p`.
    unsafe fn load_partial(self, p: *const f32, n: usize) -> Self::F;
    /// Stores the first `n` lanes.
    /// # Safety
    /// `n <= LANES`, and `n` floats can be written at `p`.
    unsafe fn store_partial(self, p: *mut f32, v: Self::F, n: usize);

    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    fn sqrt(self, a: Self::F) -> Self::F;
    /// `a * b + c`, rounded once if [`FUSED`](Self::FUSED).
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The maximum; `b` where either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// The minimum; `b` where either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a < b`, false where either is NaN.
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    fn select(self, m: Self::M, yes: Self::F, no: Self::F) -> Self::F;
    /// Rounds to the nearest integer, ties to even, for |a| < 2²².
    fn round(self, a: Self::F) -> Self::F;
    /// `2^n` for integer-valued `n` in −126 ..= 127.
    fn pow2(self, n: Self::F) -> Self::F;
    /// `a · 2^n` for integer-valued `n` up to 127, and 0 where `zero` is set, which it must be
    /// where `n` is below −126.
    #[inline(always)]
    fn times_pow2_or_zero(self, a: Self::F, n: Self::F, zero: Self::M) -> Self::F {
        self.select(zero, self.zero(), self.mul(a, self.pow2(self.max(self.splat(-126.0), n))))
    }
    fn reduce_sum(self, a: Self::F) -> f32;
    fn reduce_max(self, a: Self::F) -> f32;
    /// The sum of the lanes of each vector.
    #[inline(always)]
    fn reduce_sums(self, a: [Self::F; 8]) -> [f32; 8] {
        let mut sums = [0.0; 8];
        for (sum, a) in sums.iter_mut().zip(a) {
            *sum = self.reduce_sum(a);
        }
        sums
    }

    fn splat_u(self, x: u32) -> Self::U;
    /// 0, 1, 2, …
    fn lanes_u(self) -> Self::U;
    fn add_u(self, a: Self::U, b: Self::U) -> Self::U;
    fn mul_u(self, a: Self::U, b: Self::U) -> Self::U;
    fn xor_u(self, a: Self::U, b: Self::U) -> Self::U;
    fn shr_u<const N: i32>(self, a: Self::U) -> Self::U;
    /// `a < b` as unsigned numbers.
    fn lt_u(self, a: Self::U, b: Self::U) -> Self::M;
    /// The true lanes as bits, the first in the lowest one.
    fn bits(self, m: Self::M) -> u32;

    fn splat_i(self, x: i32) -> Self::I;
    /// # Safety
    /// `LANES` integers can be read at `p`.
    unsafe fn load_i(self, p: *const i32) -> Self::I;
    /// # Safety
    /// `LANES` integers can be written at `p`.
    unsafe fn store_i(self, p: *mut i32, v: Self::I);
    /// The sum of the lanes of each vector.
    #[inline(always)]
    fn reduce_each(self, a: [Self::I; 8]) -> [i32; 8] {
        let mut sums = [0; 8];
        for (sum, a) in sums.iter_mut().zip(a) {
            let mut lanes = [0i32; 16];
            // SAFETY: no vector has more lanes.
            unsafe { self.store_i(lanes.as_mut_ptr(), a) };
            *sum = lanes.iter().sum();
        }
        sums
    }
    fn int_to_float(self, a: Self::I) -> Self::F;
    /// `a − b·c`
    fn sub_times(self, a: Self::I, b: Self::I, c: i32) -> Self::I;
    /// # Safety
    /// `LANES · GROUP` bytes can be read at `p`.
    unsafe fn load_weights(self, p: *const i8) -> Self::W;
    /// Adds to each lane the products of its weights with the inputs in the same lane of `a`, for
    /// two groups; inputs are at most 127 or, if `ADDS_IN_16_BITS`, two adjacent products fit 16
    /// bits.
    fn dot(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I;
    /// The same for arbitrary inputs.
    #[inline(always)]
    fn dot_wide(self, sum: Self::I, w: [Self::W; 2], a: [Self::I; 2]) -> Self::I {
        self.dot(sum, w, a)
    }
    /// The products of unsigned inputs and weights, with each two adjacent products added in a
    /// 16-bit element. The sum must fit.
    #[inline(always)]
    fn products_in_16_bits(self, _a: Self::I, _w: Self::W) -> Self::I {
        unreachable!("only where ADDS_IN_16_BITS")
    }
    /// Adds 16-bit elements. The sums must fit.
    #[inline(always)]
    fn add_in_16_bits(self, _a: Self::I, _b: Self::I) -> Self::I {
        unreachable!("only where ADDS_IN_16_BITS")
    }
    /// The maximum of 16-bit elements.
    #[inline(always)]
    fn max_in_16_bits(self, _a: Self::I, _b: Self::I) -> Self::I {
        unreachable!("only where ADDS_IN_16_BITS")
    }
    /// The largest 16-bit element, or 0.
    #[inline(always)]
    fn largest_in_16_bits(self, _a: Self::I) -> i32 {
        unreachable!("only where ADDS_IN_16_BITS")
    }
    /// The sums of each two adjacent weights in 16 bits: of the positive ones, and of the
    /// magnitudes of the negative ones.
    #[inline(always)]
    fn positive_and_negative(self, _w: Self::W) -> [Self::I; 2] {
        unreachable!("only where ADDS_IN_16_BITS")
    }
    /// Adds both 16-bit elements in each lane of `a` to the sum.
    #[inline(always)]
    fn add_widened(self, _sum: Self::I, _a: Self::I) -> Self::I {
        unreachable!("only where ADDS_IN_16_BITS")
    }
    /// Quantizes `LANES · GROUP` values, of which `n` are read and the others are 0: multiplies by
    /// `factor` with an upper limit of 127, rounds, adds `zero`, clamps to the range from 0 to
    /// `most`, and writes `LANES` words of `GROUP` values each.
    /// # Safety
    /// `n <= LANES · GROUP` floats can be read at `x`, and `LANES` words written at `to`.
    unsafe fn quantize(self, x: *const f32, n: usize, factor: f32, zero: i32, most: i32, to: *mut i32);

    #[inline(always)]
    fn zero(self) -> Self::F {
        self.splat(0.0)
    }

    /// `C = A·B` or `C += A·B` for sizes `(m, n, k)`: see [`crate::gemm::small`].
    /// # Safety
    /// All these elements are readable or writable, and `C` does not overlap `A` or `B`.
    unsafe fn product(self, size: (usize, usize, usize), a: AView, b: BView, c: CView, accumulate: bool);

    /// `to[c, r] = from[r, c]`: see [`crate::gemm::small`].
    /// # Safety
    /// `from [rows, cols]` can be read; `cols` rows of `to.row >= rows` floats can be written; they
    /// do not overlap.
    unsafe fn transpose(self, rows: usize, cols: usize, from: BView, to: CView);

    /// `to[c · to_stride + r] = from[r · from_stride + c]` for an 8 × 8 block.
    /// # Safety
    /// All these elements are readable or writable, and the blocks do not overlap.
    #[inline(always)]
    unsafe fn transpose_8x8(self, from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        for r in 0..8 {
            for c in 0..8 {
                // SAFETY: the caller vouches for both blocks.
                unsafe { *to.add(c * to_stride + r) = *from.add(r * from_stride + c) };
            }
        }
    }
}

/// [`Simd::LANES`] of an instruction set, for data laid out before a kernel runs.
pub(crate) fn lanes(isa: crate::Isa) -> usize {
    match isa.level() {
        crate::isa::Level::Portable => portable::Portable::LANES,
        #[cfg(target_arch = "x86_64")]
        crate::isa::Level::Avx2 => avx2::Avx2::LANES,
        #[cfg(target_arch = "x86_64")]
        crate::isa::Level::Avx512 => avx512::Avx512::LANES,
        #[cfg(target_arch = "aarch64")]
        crate::isa::Level::Neon => neon::Neon::LANES,
    }
}

/// [`Simd::ADDS_IN_16_BITS`] of an instruction set.
pub(crate) fn adds_in_16_bits(isa: crate::Isa) -> bool {
    match isa.level() {
        #[cfg(target_arch = "x86_64")]
        crate::isa::Level::Avx2 => avx2::Avx2::ADDS_IN_16_BITS,
        _ => false,
    }
}

/// `Simd::product` and `Simd::transpose` of an instruction set, compiled once and not inlined.
macro_rules! small_methods {
    ($S:expr $(, $features:literal)?) => {
        unsafe fn product(self, size: (usize, usize, usize), a: AView, b: BView, c: CView, accumulate: bool) {
            #[inline(never)]
            $(#[target_feature(enable = $features)])?
            unsafe fn product(size: (usize, usize, usize), a: AView, b: BView, c: CView, accumulate: bool) {
                // SAFETY: the caller vouches for the memory.
                unsafe { $crate::gemm::small::product_body($S, size, a, b, c, accumulate) }
            }
            // SAFETY: the caller vouches for the memory; a value of this type is proof of the
            // features.
            unsafe { product(size, a, b, c, accumulate) }
        }
        unsafe fn transpose(self, rows: usize, cols: usize, from: BView, to: CView) {
            #[inline(never)]
            $(#[target_feature(enable = $features)])?
            unsafe fn transpose(rows: usize, cols: usize, from: BView, to: CView) {
                // SAFETY: the caller vouches for the memory.
                unsafe { $crate::gemm::small::transpose_body($S, rows, cols, from, to) }
            }
            // SAFETY: the caller vouches for the memory; a value of this type is proof of the
            // features.
            unsafe { transpose(rows, cols, from, to) }
        }
    };
}
pub(crate) use small_methods;

/// Generates the public form of a kernel: `simd_kernel! { /// docs  pub fn name(a: A, b: B) -> R =
/// body; }` where `body` is a generic `#[inline(always)] fn body<S: Simd>(s: S, a: A, b: B) -> R`.
macro_rules! simd_kernel {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident;) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(isa: $crate::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                $body($crate::simd::avx2::Avx2::new(), $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                $body($crate::simd::avx512::Avx512::new(), $($arg),*)
            }
            #[cfg(target_arch = "aarch64")]
            #[target_feature(enable = "neon")]
            #[allow(clippy::too_many_arguments)]
            fn neon($($arg: $ty),*) $(-> $ret)? {
                $body($crate::simd::neon::Neon::new(), $($arg),*)
            }
            match isa.level() {
                $crate::isa::Level::Portable => $body($crate::simd::portable::Portable, $($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` of this level exists only where the CPU has the features.
                $crate::isa::Level::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::isa::Level::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "aarch64")]
                // SAFETY: as above.
                $crate::isa::Level::Neon => unsafe { neon($($arg),*) },
            }
        }
    };
}
pub(crate) use simd_kernel;
