//! Numbers that begin at a cache line, so that no vector of them lies across two.

use std::marker::PhantomData;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A type of which every pattern of bits is a value, zeros too, and which fits a line evenly.
///
/// # Safety
/// That must be so.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: every pattern of bits is a number.
unsafe impl Plain for f32 {}
// SAFETY: every pattern of bits is a number.
unsafe impl Plain for i8 {}
// SAFETY: every pattern of bits is a number.
unsafe impl Plain for u32 {}

/// A vector of `T` that begins at a multiple of 64 bytes.
#[derive(Clone, Debug)]
pub(crate) struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Aligned<T> {
    pub(crate) const EMPTY: Self = Aligned { lines: Vec::new(), len: 0, of: PhantomData };
}

impl<T> Default for Aligned<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T: Plain> Aligned<T> {
    pub(crate) fn zeros(len: usize) -> Self {
        let mut zeros = Aligned::default();
        zeros.resize(len);
        zeros
    }

    /// Makes it that long; what it holds is arbitrary, but for zeros where it was never longer.
    pub(crate) fn resize(&mut self, len: usize) {
        self.lines.resize((len * size_of::<T>()).div_ceil(64), Line([0; 64]));
        self.len = len;
    }

    /// Makes it no shorter than that.
    pub(crate) fn at_least(&mut self, len: usize) {
        self.resize(len.max(self.len));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * 64
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: the lines hold `len` numbers, aligned for any of the types, and all bits are
        // valid (`Plain`).
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and the loan is unique.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
