//! Memory that returns to the operating system when it is freed.

use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size of a cache line, to which the data is aligned.
const LINE: usize = 64;

/// A buffer of floats from the system allocator, whatever the program's global allocator is,
/// aligned to a cache line.
///
/// A global allocator may keep freed blocks for the next request of that size, which suits small
/// values. If large blocks make up most of a program's memory and are replaced by larger ones, it
/// would keep the old ones beside the new.
///
/// ```
/// let mut numbers = regard_kernels::SystemMemory::zeros(1000);
/// numbers[999] = 1.0;
/// assert_eq!(numbers.iter().sum::<f32>(), 1.0);
/// ```
#[derive(Debug)]
pub struct SystemMemory {
    start: NonNull<f32>,
    len: usize,
}

// SAFETY: it owns its memory, as a `Vec<f32>` does.
unsafe impl Send for SystemMemory {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for SystemMemory {}

impl SystemMemory {
    /// Allocates `len` zeros.
    ///
    /// # Panics
    /// If the size exceeds the address space. If memory runs out, the program aborts, as with a
    /// `Vec`.
    pub fn zeros(len: usize) -> Self {
        let Some(layout) = Self::layout(len) else {
            return SystemMemory { start: NonNull::dangling(), len: 0 };
        };
        // SAFETY: the layout has a size above 0.
        let start = unsafe { System.alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start.cast()) else { handle_alloc_error(layout) };
        SystemMemory { start, len }
    }

    /// The layout of the allocation; `None` for an empty buffer.
    fn layout(len: usize) -> Option<Layout> {
        let layout = Layout::array::<f32>(len).and_then(|layout| layout.align_to(LINE));
        let layout = layout.expect("a length that an address can reach");
        (len > 0).then_some(layout)
    }
}

impl Drop for SystemMemory {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.len) {
            // SAFETY: `zeros` obtained it from the same allocator with the same layout.
            unsafe { System.dealloc(self.start.as_ptr().cast(), layout) }
        }
    }
}

impl Deref for SystemMemory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `len` initialised floats begin at `start`; with `len` 0 it is only aligned.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for SystemMemory {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
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
            assert!(len == 0 || numbers.as_ptr().addr().is_multiple_of(LINE));
            numbers.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32);
            let moved = std::thread::spawn(move || numbers).join().unwrap();
            assert!(moved.iter().enumerate().all(|(i, &x)| x == i as f32));
        }
    }
}
