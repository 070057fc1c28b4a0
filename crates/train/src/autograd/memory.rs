//! Memory of a tape: an arena for the values of a pass, a pool for gradients.
//!
//! Batches differ in shape. With one buffer per value, each buffer would grow to the largest batch
//! that *this* value has seen, for some the longest sources, for others the longest targets. The
//! arena only grows to the largest pass as a whole.

use regard_kernels::{Mat, SystemMemory};

/// Floats per cache line: values begin at multiples of it.
const LINE: usize = 16;

/// The minimum size of a block that is added while a pass is recorded.
const MIN_BLOCK: usize = 1 << 16;

/// Where a `[rows, cols]` value is stored.
#[derive(Clone, Copy, Debug)]
struct Place {
    block: usize,
    start: usize,
    rows: usize,
    cols: usize,
}

/// The values of one pass, contiguous. They are all freed at once.
///
/// Between passes there is one block, of the size that the largest pass has needed. A pass that
/// needs more gets additional blocks, because existing values cannot move; at its end one block
/// replaces them all.
#[derive(Debug, Default)]
pub(super) struct Arena {
    blocks: Vec<SystemMemory>,
    /// How much of the last block is in use.
    taken: usize,
    /// The total size of the blocks before the last.
    full: usize,
    /// The size that the largest pass has needed.
    largest: usize,
    places: Vec<Place>,
}

/// All values of an arena up to some point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    places: &'a [Place],
    /// The blocks, of which the last may be truncated.
    blocks: &'a [SystemMemory],
    last: &'a [f32],
}

impl<'a> Values<'a> {
    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The elements of a value.
    pub(super) fn get(&self, value: usize) -> &'a [f32] {
        let Place { block, start, rows, cols } = self.places[value];
        let block = self.blocks.get(block).map_or(self.last, |block| &block[..]);
        &block[start..][..rows * cols]
    }

    /// A value as a matrix.
    pub(super) fn mat(&self, value: usize) -> Mat<'a> {
        let Place { rows, cols, .. } = self.places[value];
        Mat::new(self.get(value), rows, cols)
    }
}

impl Arena {
    /// Frees all values. Keeps the memory, as one block.
    pub(super) fn clear(&mut self) {
        self.largest = self.largest.max(self.full + self.taken);
        if self.blocks.len() > 1 {
            // Free the old blocks before allocating the new one, so that both never exist at once.
            self.blocks.clear();
            self.blocks.push(SystemMemory::zeros(self.largest));
        }
        self.places.clear();
        (self.taken, self.full) = (0, 0);
    }

    /// Frees all values and their memory. The next pass gets one block again.
    pub(super) fn release(&mut self) {
        self.clear();
        self.blocks = Vec::new();
    }

    /// All values.
    pub(super) fn values(&self) -> Values<'_> {
        Values { places: &self.places, blocks: &self.blocks, last: &[] }
    }

    /// Allocates values of the given shapes with arbitrary contents, and returns the index of the
    /// first.
    pub(super) fn add<const N: usize>(&mut self, shapes: [(usize, usize); N]) -> (usize, [&mut [f32]; N]) {
        let (_, first, room) = self.add_after(shapes);
        (first, room)
    }

    /// The same, along with all values before them.
    pub(super) fn add_after<const N: usize>(
        &mut self,
        shapes: [(usize, usize); N],
    ) -> (Values<'_>, usize, [&mut [f32]; N]) {
        let lengths = shapes.map(|(rows, cols)| rows * cols);
        let needed: usize = lengths.iter().map(|n| n.next_multiple_of(LINE)).sum();
        if self.blocks.last().is_none_or(|block| block.len() - self.taken < needed) {
            let more = if self.blocks.is_empty() { self.largest } else { self.capacity() / 4 };
            self.full += self.taken;
            self.taken = 0;
            self.blocks.push(SystemMemory::zeros(needed.max(more).max(MIN_BLOCK)));
        }
        let (first, block, start) = (self.places.len(), self.blocks.len() - 1, self.taken);
        for (&(rows, cols), length) in shapes.iter().zip(lengths) {
            self.places.push(Place { block, start: self.taken, rows, cols });
            self.taken += length.next_multiple_of(LINE);
        }
        let (blocks, last) = self.blocks.split_at_mut(block);
        let (before, mut rest) = last[0].split_at_mut(start);
        let room = lengths.map(|length| {
            let (room, after) = std::mem::take(&mut rest).split_at_mut(length.next_multiple_of(LINE));
            rest = after;
            &mut room[..length]
        });
        (Values { places: &self.places[..first], blocks, last: before }, first, room)
    }

    /// The capacity in floats.
    pub(super) fn capacity(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }
}

/// Free gradient buffers.
#[derive(Debug, Default)]
pub(super) struct GradientPool {
    free: Vec<Vec<f32>>,
}

impl GradientPool {
    /// A buffer of `n` floats with arbitrary contents: the smallest free one that suffices, else a
    /// new one that replaces the largest.
    pub(super) fn take(&mut self, n: usize) -> Vec<f32> {
        let sizes = || self.free.iter().map(Vec::capacity).enumerate();
        let fit = sizes().filter(|&(_, size)| size >= n).min_by_key(|&(_, size)| size);
        let mut buffer = match (fit, sizes().max_by_key(|&(_, size)| size)) {
            (Some((i, _)), _) => self.free.swap_remove(i),
            (None, largest) => {
                if let Some((i, _)) = largest {
                    self.free.swap_remove(i);
                }
                // Round up, so that slightly larger batches can reuse the buffer.
                Vec::with_capacity(n.next_multiple_of((n.next_power_of_two() / 16).max(1)))
            }
        };
        buffer.resize(n, 0.0);
        buffer
    }

    /// Returns a buffer to the pool.
    pub(super) fn put(&mut self, buffer: Vec<f32>) {
        self.free.push(buffer);
    }

    /// The capacity of the free buffers in floats.
    pub(super) fn capacity(&self) -> usize {
        self.free.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_where_they_are_while_the_arena_grows() {
        let mut arena = Arena::default();
        for pass in 0..3 {
            arena.clear();
            for i in 0..100usize {
                let (before, first, [y, saved]) = arena.add_after([(i * 50, 7), (i % 3, 1)]);
                assert_eq!((before.len(), first), (2 * i, 2 * i));
                if i > 0 {
                    assert!(before.get(2 * i - 2).iter().all(|&x| x == (i - 1) as f32));
                }
                y.fill(i as f32);
                saved.fill(-(i as f32));
            }
            let values = arena.values();
            for i in 0..100usize {
                let (y, saved) = (values.mat(2 * i), values.get(2 * i + 1));
                assert_eq!((y.rows(), y.cols(), saved.len()), (i * 50, 7, i % 3));
                assert!(y.data().iter().all(|&x| x == i as f32) && saved.iter().all(|&x| x == -(i as f32)));
            }
            // One block from the second pass on.
            assert_eq!(arena.blocks.len() == 1, pass > 0);
        }
    }

    #[test]
    fn the_arena_is_as_large_as_the_largest_pass() {
        let mut arena = Arena::default();
        // Long sources with short targets, and vice versa.
        for (source, target) in [(4000, 1000), (1000, 4000), (2500, 2500), (4000, 1000)] {
            for _ in 0..2 {
                arena.clear();
                arena.add([(source, 64), (target, 64)]);
            }
        }
        arena.clear();
        assert_eq!(arena.capacity(), 5000 * 64);
        arena.release();
        assert_eq!(arena.capacity(), 0);
        // The first value of the next pass allocates space for all of them.
        arena.add([(1, 1)]);
        assert_eq!(arena.capacity(), 5000 * 64);
    }

    #[test]
    fn buffers_of_about_the_same_size_are_reused() {
        let mut pool = GradientPool::default();
        for n in [1000, 1020, 1001, 600, 1024, 40] {
            let buffers = [pool.take(n), pool.take(n / 2)];
            assert_eq!(buffers.each_ref().map(Vec::len), [n, n / 2]);
            buffers.into_iter().for_each(|buffer| pool.put(buffer));
        }
        assert_eq!(pool.free.len(), 2);
        assert!(pool.capacity() <= 1024 + 512, "{}", pool.capacity());
    }
}
