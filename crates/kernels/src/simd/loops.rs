//! Loops over slices in whole vectors plus one tail.
//!
//! [`vectors!`] expands its body twice, once for whole vectors and once for the tail: a closure
//! might not be inlined into the function that has the target features, and would then cost a call
//! for each instruction.

use super::Simd;

/// The position of a vector in a slice.
pub(crate) trait Place: Copy {
    /// The vector at this place of `x`.
    fn read<S: Simd>(self, s: S, x: &[f32]) -> S::F;
    /// Writes the vector to this place of `y`.
    fn write<S: Simd>(self, s: S, y: &mut [f32], v: S::F);
    /// `v`, with `beyond` in the lanes past the end of the slice.
    fn fill<S: Simd>(self, s: S, v: S::F, beyond: f32) -> S::F;
    /// The index of the first lane.
    fn index(self) -> usize;
}

/// A whole vector that starts at this index.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) usize);

/// The last, partial vector: its start index and its number of lanes.
#[derive(Clone, Copy)]
pub(crate) struct Tail(pub(crate) usize, pub(crate) usize);

impl Place for Whole {
    #[inline(always)]
    fn read<S: Simd>(self, s: S, x: &[f32]) -> S::F {
        assert!(self.0 + S::LANES <= x.len());
        // SAFETY: just asserted.
        unsafe { s.load(x.as_ptr().add(self.0)) }
    }
    #[inline(always)]
    fn write<S: Simd>(self, s: S, y: &mut [f32], v: S::F) {
        assert!(self.0 + S::LANES <= y.len());
        // SAFETY: just asserted.
        unsafe { s.store(y.as_mut_ptr().add(self.0), v) }
    }
    #[inline(always)]
    fn fill<S: Simd>(self, _: S, v: S::F, _: f32) -> S::F {
        v
    }
    #[inline(always)]
    fn index(self) -> usize {
        self.0
    }
}

impl Place for Tail {
    #[inline(always)]
    fn read<S: Simd>(self, s: S, x: &[f32]) -> S::F {
        assert!(self.1 <= S::LANES && self.0 + self.1 <= x.len());
        // SAFETY: just asserted.
        unsafe { s.load_partial(x.as_ptr().add(self.0), self.1) }
    }
    #[inline(always)]
    fn write<S: Simd>(self, s: S, y: &mut [f32], v: S::F) {
        assert!(self.1 <= S::LANES && self.0 + self.1 <= y.len());
        // SAFETY: just asserted.
        unsafe { s.store_partial(y.as_mut_ptr().add(self.0), v, self.1) }
    }
    #[inline(always)]
    fn fill<S: Simd>(self, s: S, v: S::F, beyond: f32) -> S::F {
        s.select(s.lt_u(s.lanes_u(), s.splat_u(self.1 as u32)), v, s.splat(beyond))
    }
    #[inline(always)]
    fn index(self) -> usize {
        self.0
    }
}

/// `vectors!(S, len, at => { … })`: runs the body for each vector of a slice of `len` floats, with
/// its [`Place`] in `at`.
macro_rules! vectors {
    ($S:ident, $len:expr, $at:ident => $body:block) => {{
        let len: usize = $len;
        let mut start = 0;
        while start + $S::LANES <= len {
            let $at = $crate::simd::loops::Whole(start);
            $body;
            start += $S::LANES;
        }
        if start < len {
            let $at = $crate::simd::loops::Tail(start, len - start);
            $body;
        }
    }};
}
pub(crate) use vectors;

/// The maximum of `x`; −∞ if empty. May ignore NaNs: a softmax finds them in its sum.
#[inline(always)]
pub(crate) fn max<S: Simd>(s: S, x: &[f32]) -> f32 {
    let mut top = s.splat(f32::NEG_INFINITY);
    vectors!(S, x.len(), at => { top = s.max(top, at.fill(s, at.read(s, x), f32::NEG_INFINITY)); });
    s.reduce_max(top)
}

/// The sum of `(x − centre)²`.
#[inline(always)]
pub(crate) fn sum_of_squares<S: Simd>(s: S, x: &[f32], centre: f32) -> f32 {
    let (mut total, centre) = (s.zero(), s.splat(centre));
    vectors!(S, x.len(), at => {
        let v = at.fill(s, s.sub(at.read(s, x), centre), 0.0);
        total = s.mul_add(v, v, total);
    });
    s.reduce_sum(total)
}

/// The sum of `a · b`.
#[inline(always)]
pub(crate) fn dot<S: Simd>(s: S, a: &[f32], b: &[f32]) -> f32 {
    let b = &b[..a.len()];
    let mut total = s.zero();
    vectors!(S, a.len(), at => { total = s.mul_add(at.read(s, a), at.read(s, b), total); });
    s.reduce_sum(total)
}

/// `x *= factor`.
#[inline(always)]
pub(crate) fn scale<S: Simd>(s: S, x: &mut [f32], factor: f32) {
    let factor = s.splat(factor);
    vectors!(S, x.len(), at => { let v = s.mul(at.read(s, x), factor); at.write(s, x, v); });
}
