//! Counter-based dropout: the mask is a function of a [`Key`] and the position alone, so it does
//! not depend on how the work is split over threads, and the backward pass recomputes it instead of
//! storing it.

use crate::simd::Simd;
use regard_random::Key;

/// [`Key::bits`] for the counters in the lanes of `i`.
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

/// A dropout mask for a `[rows, cols]` matrix: each element survives with probability `1 − rate`
/// and is then scaled by `1 / (1 − rate)`.
///
/// A row is identified by its position in the whole batch, so a replica that holds the rows from
/// `first_row` on drops the same elements as one that holds all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    key: Key,
    rate: f32,
    first_row: usize,
}

impl Dropout {
    /// Drops at `rate` (0 ≤ rate < 1) with the stream `key`; local row 0 is row `first_row` of the
    /// batch.
    ///
    /// # Panics
    /// If `rate` is not in that range.
    pub fn new(key: Key, rate: f32, first_row: usize) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout rate {rate} is not in [0, 1)");
        Dropout { key, rate, first_row }
    }

    /// The same rate, with a separate stream for each attention head.
    pub fn head(self, head: usize) -> Self {
        Dropout { key: self.key.child(head as u64), ..self }
    }

    /// The factor for the element at row `r`, column `c` of a matrix with `cols` columns: 0 or `1 /
    /// (1 − rate)`.
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

    /// The factors of one row, computed one vector at a time.
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
    /// The factors for the columns from `c` on.
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
