//! Numbers that begin at a cache line, so that no vector of them lies across two.

use std::marker::PhantomData;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A type of which every pattern of bits is a value, zeros too, and which fits a line evenly.
///
/// # Safety
/// That must be so.
pub(super) unsafe trait Plain: Copy {}
// SAFETY: every pattern of bits is a number.
unsafe impl Plain for f32 {}
// SAFETY: every pattern of bits is a number.
unsafe impl Plain for i8 {}

/// A vector of `T` that begins at a multiple of 64 bytes.
#[derive(Clone, Debug)]
pub(super) struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Plain> Aligned<T> {
    pub(super) fn zeros(len: usize) -> Self {
        let lines = vec![Line([0; 64]); (len * size_of::<T>()).div_ceil(64)];
        Aligned { lines, len, of: PhantomData }
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.len() * 64
    }

    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: the lines hold `len` numbers, aligned for any of the types, and all bits are valid (`Plain`).
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and the loan is unique.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
