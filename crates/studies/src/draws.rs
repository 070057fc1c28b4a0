//! Random numbers one after the other, for what the studies draw and write.

use regard_core::Key;

/// A stream of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    key: Key,
    at: u32,
}

impl Draws {
    pub(crate) fn new(key: Key) -> Self {
        Draws { key, at: 0 }
    }

    fn next(&mut self) -> u32 {
        self.at = self.at.wrapping_add(1);
        self.key.bits(self.at)
    }

    /// From 0 up to, but not including, `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.next()) * n as u64) >> 32) as usize
    }

    /// From `low` up to `high`.
    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.next() >> 8) as f32 / 16_777_216.0
    }

    /// So many different numbers below `n`, in random order; all of them where `count` is larger.
    pub(crate) fn distinct(&mut self, count: usize, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in 0..count.min(n) {
            let j = i + self.below(n - i);
            all.swap(i, j);
        }
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_distinct_ones_differ() {
        let mut draws = Draws::new(Key::new(4));
        let mut counts = [0; 6];
        (0..6000).for_each(|_| counts[draws.below(6)] += 1);
        assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
        for _ in 0..100 {
            let mut three = draws.distinct(3, 5);
            assert!(three.iter().all(|&i| i < 5));
            three.sort_unstable();
            three.dedup();
            assert_eq!(three.len(), 3);
            assert!((2.0..3.0).contains(&draws.between(2.0, 3.0)));
        }
        assert_eq!(draws.distinct(9, 4).len(), 4);
    }
}
