//! Duplicate detection in bounded memory.

use std::collections::HashSet;

/// The maximum number of hashes to keep, about 60 MB.
const MAX_HASHES: usize = 4_000_000;

/// The hashes of pairs. If there are too many, only those of a half, a quarter, … of all pairs are
/// kept, selected by their last bits, and the number of duplicates is extrapolated.
#[derive(Debug)]
pub(super) struct PairHashes {
    hashes: HashSet<u64>,
    most: usize,
    /// Hashes are kept if this many of their last bits are zero.
    bits: u32,
    duplicates: u64,
}

impl Default for PairHashes {
    fn default() -> Self {
        PairHashes { hashes: HashSet::new(), most: MAX_HASHES, bits: 0, duplicates: 0 }
    }
}

impl PairHashes {
    /// Whether the pair certainly occurred before.
    pub(super) fn insert(&mut self, hash: u64) -> bool {
        if hash.trailing_zeros() < self.bits {
            return false;
        }
        let known = !self.hashes.insert(hash);
        self.duplicates += u64::from(known);
        if self.hashes.len() > self.most {
            self.bits += 1;
            self.duplicates /= 2;
            self.hashes.retain(|hash| hash.trailing_zeros() >= self.bits);
        }
        known
    }

    /// The number of duplicates among all pairs; an estimate if not all hashes were kept.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates << self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_core::random::mix;

    #[test]
    fn few_pairs_are_counted_and_many_are_estimated() {
        let count = |most: usize| {
            let mut seen = PairHashes { most, ..PairHashes::default() };
            // Every fourth occurs twice.
            for i in 0..40_000u64 {
                seen.insert(mix(i));
                if i % 4 == 0 {
                    seen.insert(mix(i));
                }
                assert!(seen.hashes.len() <= most);
            }
            seen.duplicates()
        };
        assert_eq!(count(100_000), 10_000);
        let estimate = count(1_000);
        assert!((8_000..12_000).contains(&estimate), "{estimate}");
    }
}
