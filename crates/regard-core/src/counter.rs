//! Random numbers by counter: value `i` of a stream is a hash of (seed, stream, i), so that any draw can be made again
//! without its predecessors and is the same on every machine.

/// A stream of 64-bit random values.
#[derive(Clone, Debug)]
pub struct Counter {
    key: u64,
    next: u64,
}

impl Counter {
    /// The stream `stream` of `seed`, at its first value.
    pub fn new(seed: u64, stream: u64) -> Self {
        Counter { key: mix(mix(seed) ^ stream), next: 0 }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        // Weyl increment by the golden ratio, then the finaliser: SplitMix64 with a keyed start.
        self.next = self.next.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.key.wrapping_add(self.next))
    }

    /// A number in `0..n`; `n` must not be 0. The bias of the multiplication is below n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Fisher-Yates, from the end.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A bijection of 64 bits in which every input bit reaches every output bit.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, stream| {
            let mut counter = Counter::new(seed, stream);
            [counter.bits(), counter.bits(), counter.bits()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        assert_ne!(draw(0, 1), draw(1, 0));
    }

    #[test]
    fn draws_are_uniform() {
        let mut counter = Counter::new(7, 0);
        let mut counts = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            counts[counter.below(10)] += 1;
            sum += counter.unit();
        }
        // Five standard deviations of a binomial with 100,000 draws.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 475), "{counts:?}");
        assert!((sum / 100_000.0 - 0.5).abs() < 0.005, "{sum}");
    }
}
