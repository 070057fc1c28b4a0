//! Random numbers by counter: number `i` of a stream is a function of the stream and of `i` alone.
//!
//! Nothing is carried from one number to the next, so that a dropout mask is the same however the work is split over
//! threads, and the backward pass makes it again instead of storing it.

use crate::simd::Simd;

/// A stream of random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    first: u32,
    second: u32,
}

/// Steele, Lea and Flood's finaliser of a 64-bit counter.
fn split_mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Key {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self::from_bits(split_mix(seed))
    }

    /// The stream number `n` below this one: of a step, of a layer, of an operation.
    pub fn child(self, n: u64) -> Self {
        Self::from_bits(split_mix(((u64::from(self.first) << 32) | u64::from(self.second)) ^ split_mix(n)))
    }

    fn from_bits(x: u64) -> Self {
        Key { first: (x >> 32) as u32, second: x as u32 }
    }

    /// The 32 random bits at `i`.
    pub fn bits(self, i: u32) -> u32 {
        mix(mix(i ^ self.first) ^ self.second)
    }

    /// A uniform number of [0, 1).
    pub fn uniform(self, i: u32) -> f32 {
        (self.bits(i) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// A normal number of mean 0 and variance 1, by Box and Muller.
    pub fn normal(self, i: u32) -> f32 {
        let child = self.child(1);
        let radius = (-2.0 * f64::from(1.0 - self.uniform(i)).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(child.uniform(i));
        (radius * angle.cos()) as f32
    }

    /// The bits at the lanes of `i`.
    #[inline(always)]
    pub(crate) fn bits_of<S: Simd>(self, s: S, i: S::U) -> S::U {
        let h = mix_of(s, s.xor_u(i, s.splat_u(self.first)));
        mix_of(s, s.xor_u(h, s.splat_u(self.second)))
    }
}

/// A bijection of 32 bits with low bias: two multiplications between three shifts.
fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[inline(always)]
fn mix_of<S: Simd>(s: S, x: S::U) -> S::U {
    let x = s.mul_u(s.xor_u(x, s.shr_u::<16>(x)), s.splat_u(0x7feb_352d));
    let x = s.mul_u(s.xor_u(x, s.shr_u::<15>(x)), s.splat_u(0x846c_a68b));
    s.xor_u(x, s.shr_u::<16>(x))
}

/// Which numbers of a `[rows, cols]` matrix survive, each with probability `1 − rate`, scaled by `1 / (1 − rate)`.
///
/// A row is known by its place in the whole batch, so that a replica which holds the rows from `first_row` on drops the
/// same numbers as one that holds them all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    key: Key,
    rate: f32,
    first_row: usize,
}

impl Dropout {
    /// Drops at `rate` (0 ≤ rate < 1) in the stream `key`, the first row at hand being row `first_row` of the batch.
    ///
    /// # Panics
    /// If `rate` is not in that range.
    pub fn new(key: Key, rate: f32, first_row: usize) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout rate {rate} is not in [0, 1)");
        Dropout { key, rate, first_row }
    }

    /// The same rate in a stream of its own for each attention head.
    pub fn head(self, head: usize) -> Self {
        Dropout { key: self.key.child(head as u64), ..self }
    }

    /// The factor of the number at row `r`, column `c` of a matrix `cols` wide: 0 or `1 / (1 − rate)`.
    pub fn factor(self, r: usize, c: usize, cols: usize) -> f32 {
        let i = self.counter(r, cols).wrapping_add(c as u32);
        if self.key.bits(i) < self.threshold() { 0.0 } else { self.scale() }
    }

    fn counter(self, r: usize, cols: usize) -> u32 {
        (self.first_row + r).wrapping_mul(cols) as u32
    }

    fn threshold(self) -> u32 {
        (f64::from(self.rate) * 4_294_967_296.0) as u32
    }

    fn scale(self) -> f32 {
        1.0 / (1.0 - self.rate)
    }

    /// The factors of one row, to be asked for vector by vector.
    #[inline(always)]
    pub(crate) fn row<S: Simd>(self, s: S, r: usize, cols: usize) -> RowFactors<S> {
        RowFactors {
            key: self.key,
            counter: self.counter(r, cols),
            threshold: s.splat_u(self.threshold()),
            scale: s.splat(self.scale()),
        }
    }
}

/// The dropout factors of a row.
#[derive(Clone, Copy)]
pub(crate) struct RowFactors<S: Simd> {
    key: Key,
    counter: u32,
    threshold: S::U,
    scale: S::F,
}

impl<S: Simd> RowFactors<S> {
    /// The factors of the columns from `c` on.
    #[inline(always)]
    pub(crate) fn at(&self, s: S, c: usize) -> S::F {
        let i = s.add_u(s.splat_u(self.counter.wrapping_add(c as u32)), s.lanes_u());
        s.select(s.lt_u(self.key.bits_of(s, i), self.threshold), s.zero(), self.scale)
    }
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
        // Unfold in the counter are not alike.
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

    #[test]
    fn a_split_of_the_rows_drops_the_same_numbers() {
        let whole = Dropout::new(Key::new(1), 0.3, 0);
        let part = Dropout::new(Key::new(1), 0.3, 5);
        for r in 0..7 {
            for c in 0..13 {
                assert_eq!(whole.factor(r + 5, c, 13), part.factor(r, c, 13));
            }
        }
        let kept = (0..10_000).filter(|&c| whole.factor(0, c, 10_000) > 0.0).count();
        assert!((6_800..7_200).contains(&kept), "{kept}");
    }
}
