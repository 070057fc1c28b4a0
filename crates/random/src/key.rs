//! Counter-based random numbers: number `i` of a stream is a function of the stream and `i` alone.

use super::{GOLDEN, mix};

/// A stream of random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    first: u32,
    second: u32,
}

impl Key {
    /// Creates the stream for a seed.
    pub fn new(seed: u64) -> Self {
        Self::from_bits(mix(seed.wrapping_add(GOLDEN)))
    }

    /// Substream `n` of this stream, for example that of a step, a layer or an operation.
    pub fn child(self, n: u64) -> Self {
        let below = self.seed() ^ mix(n.wrapping_add(GOLDEN));
        Self::from_bits(mix(below.wrapping_add(GOLDEN)))
    }

    fn from_bits(x: u64) -> Self {
        Key { first: (x >> 32) as u32, second: x as u32 }
    }

    /// The whole state as one number.
    pub(super) fn seed(self) -> u64 {
        (u64::from(self.first) << 32) | u64::from(self.second)
    }

    /// The two words that `i` is mixed with. Vector code uses them to compute [`bits`](Self::bits)
    /// for many values of `i` at once.
    pub fn words(self) -> (u32, u32) {
        (self.first, self.second)
    }

    /// The 32 random bits at `i`.
    pub fn bits(self, i: u32) -> u32 {
        mix_u32(mix_u32(i ^ self.first) ^ self.second)
    }

    /// A uniform number in [0, 1).
    pub fn uniform(self, i: u32) -> f32 {
        (self.bits(i) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// A number from the standard normal distribution (Box-Muller).
    pub fn normal(self, i: u32) -> f32 {
        let child = self.child(1);
        let radius = (-2.0 * f64::from(1.0 - self.uniform(i)).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(child.uniform(i));
        (radius * angle.cos()) as f32
    }
}

/// A bijection on 32-bit integers with low bias: two multiplications between three xor-shifts.
pub fn mix_u32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_even_and_streams_differ() {
        let key = Key::new(7);
        let n = 100_000;
        for bit in 0..32 {
            let ones = (0..n).filter(|&i| key.bits(i) >> bit & 1 == 1).count() as f64;
            assert!((ones / f64::from(n) - 0.5).abs() < 0.01, "bit {bit}: {ones}");
        }
        let same = (0..n).filter(|&i| (key.child(1).bits(i) ^ key.child(2).bits(i)) & 0xff == 0).count();
        assert!((same as f64 / f64::from(n) - 1.0 / 256.0).abs() < 0.002, "{same}");
        // Consecutive counters give unrelated bits.
        let same = (0..n).filter(|&i| (key.bits(i) ^ key.bits(i + 1)) & 0xff == 0).count();
        assert!((same as f64 / f64::from(n) - 1.0 / 256.0).abs() < 0.002, "{same}");
    }

    #[test]
    fn normal_numbers_have_their_moments() {
        let key = Key::new(3);
        let n = 200_000;
        let x: Vec<f64> = (0..n).map(|i| f64::from(key.normal(i))).collect();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let fourth = x.iter().map(|x| x.powi(4)).sum::<f64>() / x.len() as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02 && (fourth - 3.0).abs() < 0.1);
    }
}
