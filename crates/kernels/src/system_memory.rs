//! Memory that returns to the operating system when it is freed.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// A buffer of floats in pages of its own.
///
/// Allocators keep freed blocks for later requests, which suits small values. If large blocks make
/// up most of a program's memory and are replaced by larger ones, the old ones stay beside the new:
/// glibc's takes blocks of up to 32 MB from a heap that only shrinks at its end.
///
/// ```
/// let mut numbers = regard_kernels::SystemMemory::zeros(1000);
/// numbers[999] = 1.0;
/// assert_eq!(numbers.iter().sum::<f32>(), 1.0);
/// ```
#[derive(Debug)]
pub struct SystemMemory {
    /// `None` for an empty buffer.
    pages: Option<MmapMut>,
    len: usize,
}

impl SystemMemory {
    /// Allocates `len` zeros.
    ///
    /// # Panics
    /// If the size exceeds the address space. If memory runs out, the program aborts, as with a
    /// `Vec`.
    pub fn zeros(len: usize) -> Self {
        let layout = Layout::array::<f32>(len).expect("a length that an address can reach");
        let map = || MmapMut::map_anon(layout.size()).unwrap_or_else(|_| handle_alloc_error(layout));
        SystemMemory { pages: (len > 0).then(map), len }
    }
}

impl Deref for SystemMemory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        let Some(pages) = &self.pages else { return &[] };
        // SAFETY: the mapping begins at a page, which is aligned for floats, and has room for `len`
        // of them; it is zero at first, and any bits are a float.
        unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for SystemMemory {
    fn deref_mut(&mut self) -> &mut [f32] {
        let Some(pages) = &mut self.pages else { return &mut [] };
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zeros_at_first_and_stay_as_they_were_set() {
        for len in [0, 1, 15, 16, 17, 1000, 1 << 20] {
            let mut numbers = SystemMemory::zeros(len);
            assert_eq!(numbers.len(), len);
            assert!(numbers.iter().all(|&x| x == 0.0));
            assert!(len == 0 || numbers.as_ptr().addr().is_multiple_of(64));
            numbers.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32);
            let moved = std::thread::spawn(move || numbers).join().unwrap();
            assert!(moved.iter().enumerate().all(|(i, &x)| x == i as f32));
        }
    }
}
