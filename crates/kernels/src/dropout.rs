//! Dropout by counter: what is dropped is a function of a [`Key`] and of the place alone, so that a
//! mask is the same however the work is split over threads, and the backward pass makes it again
//! instead of storing it.

use crate::simd::Simd;
use regard_random::Key;

/// [`Key::bits`] at the lanes of `i`.
#[inline(always)]
fn bits_of<S: Simd>(key: Key, s: S, i: S::U) -> S::U {
    let (first, second) = key.words();
    let h = mix_of(s, s.xor_u(i, s.splat_u(first)));
    mix_of(s, s.xor_u(h, s.splat_u(second)))
}

/// [`regard_random::mix_u32`] of each lane.
#[inline(always)]
fn mix_of<S: Simd>(s: S, x: S::U) -> S::U {
    let x = s.mul_u(s.xor_u(x, s.shr_u::<16>(x)), s.splat_u(0x7feb_352d));
    let x = s.mul_u(s.xor_u(x, s.shr_u::<15>(x)), s.splat_u(0x846c_a68b));
    s.xor_u(x, s.shr_u::<16>(x))
}

/// Which numbers of a `[rows, cols]` matrix survive, each with probability `1 − rate`, scaled by
/// `1 / (1 − rate)`.
///
/// A row is known by its place in the whole batch, so that a replica which holds the rows from
/// `first_row` on drops the same numbers as one that holds them all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    key: Key,
    rate: f32,
    first_row: usize,
}

impl Dropout {
    /// Drops at `rate` (0 ≤ rate < 1) in the stream `key`, the first row at hand being row
    /// `first_row` of the batch.
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

    /// The factor of the number at row `r`, column `c` of a matrix `cols` wide: 0 or
    /// `1 / (1 − rate)`.
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

    /// The factors of one row, computed vector by vector.
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
        s.select(s.lt_u(bits_of(self.key, s, i), self.threshold), s.zero(), self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
