//! Vectors that start at a cache line, so that no SIMD vector straddles two lines.

use std::marker::PhantomData;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A type for which every bit pattern is valid, including zero, and whose size divides a cache
/// line.
///
/// # Safety
/// The implementing type must have both properties.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: every bit pattern is a valid number.
unsafe impl Plain for f32 {}
// SAFETY: every bit pattern is a valid number.
unsafe impl Plain for i8 {}
// SAFETY: every bit pattern is a valid number.
unsafe impl Plain for u32 {}

/// A vector of `T` that starts at a multiple of 64 bytes.
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

    /// Sets the length. The contents are arbitrary, except that elements never in use before are
    /// zero.
    pub(crate) fn resize(&mut self, len: usize) {
        self.lines.resize((len * size_of::<T>()).div_ceil(64), Line([0; 64]));
        self.len = len;
    }

    /// Grows the vector to at least `len` elements.
    pub(crate) fn at_least(&mut self, len: usize) {
        self.resize(len.max(self.len));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * 64
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: the lines hold `len` elements, aligned for any of the types, and all bit patterns
        // are valid (`Plain`).
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
