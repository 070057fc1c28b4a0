//! A sequential random number generator: SplitMix64.

use super::{GOLDEN, Key, mix};

/// A sequential random number generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates the generator for a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Creates independent stream number `stream` of a seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        Rng(mix(mix(seed) ^ stream))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number in `0..n`; `n` must not be 0. The bias of the multiplication is below n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// A number in `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform number in `[low, high)`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.bits() >> 40) as f32 / 16_777_216.0
    }

    /// A random element of a list, which must not be empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Fisher-Yates shuffle, from the end.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    /// `count` distinct numbers below `n`, in random order; all `n` of them if `count` is larger.
    pub fn distinct(&mut self, count: usize, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in 0..count.min(n) {
            let j = i + self.below(n - i);
            all.swap(i, j);
        }
        all.truncate(count);
        all
    }
}

impl From<Key> for Rng {
    fn from(key: Key) -> Self {
        Rng(key.seed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix64() {
        // The first outputs for seed 0 of the published algorithm.
        let mut rng = Rng::new(0);
        assert_eq!([rng.bits(), rng.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, stream| {
            let mut rng = Rng::stream(seed, stream);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        assert_ne!(draw(0, 1), draw(1, 0));
    }

    #[test]
    fn draws_are_uniform() {
        let mut rng = Rng::stream(7, 0);
        let mut counts = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            counts[rng.below(10)] += 1;
            sum += rng.uniform();
        }
        // Five standard deviations of a binomial with 100,000 draws.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 475), "{counts:?}");
        assert!((sum / 100_000.0 - 0.5).abs() < 0.005, "{sum}");
    }

    #[test]
    fn distinct_ones_differ_and_the_rest_is_in_range() {
        let mut rng = Rng::from(Key::new(4));
        for _ in 0..100 {
            let mut three = rng.distinct(3, 5);
            assert!(three.iter().all(|&i| i < 5));
            three.sort_unstable();
            three.dedup();
            assert_eq!(three.len(), 3);
            assert!((2.0..3.0).contains(&rng.between(2.0, 3.0)));
            assert!([7, 8].contains(&rng.pick(&[7, 8])));
        }
        assert_eq!(rng.distinct(9, 4).len(), 4);
        let mut all: Vec<usize> = (0..50).collect();
        rng.shuffle(&mut all);
        assert_ne!(all, (0..50).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }
}
