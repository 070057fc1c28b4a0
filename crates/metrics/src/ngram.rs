//! N-grams of several short sequences, with integer ids such that equal n-grams have equal ids.
//!
//! An n-gram is an (n-1)-gram plus one unit, so a pair of ids identifies it. Sorting the pairs
//! assigns the new ids without hashing or storing any n-gram.

/// The n-grams of one order, of the hypothesis (sequence 0) and its references.
pub(super) struct Ngrams {
    /// The 1-gram at every position of every sequence, end to end.
    units: Vec<u32>,
    /// Sequence `s` is `units[ends[s - 1]..ends[s]]`.
    ends: Vec<usize>,
    /// The id of the n-gram that starts at each position; stale at positions where none starts.
    ids: Vec<u32>,
    distinct: usize,
    order: usize,
}

impl Ngrams {
    /// The 1-grams of these sequences.
    pub(super) fn new(sequences: &[Vec<u32>]) -> Self {
        let ends = sequences
            .iter()
            .scan(0, |end, s| {
                *end += s.len();
                Some(*end)
            })
            .collect();
        let units: Vec<u32> = sequences.concat();
        let mut ngrams = Ngrams { ids: vec![0; units.len()], units, ends, distinct: 0, order: 1 };
        let mut keys: Vec<_> =
            ngrams.units.iter().enumerate().map(|(at, &unit)| (u64::from(unit), at)).collect();
        ngrams.number(&mut keys);
        ngrams.units.clone_from(&ngrams.ids);
        ngrams
    }

    /// Advances to n-grams that are one unit longer.
    pub(super) fn lengthen(&mut self) {
        let mut keys = Vec::with_capacity(self.ids.len());
        self.order += 1;
        for sequence in 0..self.ends.len() {
            for at in self.positions(sequence) {
                let last = self.units[at + self.order - 1];
                keys.push((u64::from(self.ids[at]) << 32 | u64::from(last), at));
            }
        }
        self.number(&mut keys);
    }

    /// The number of n-grams in the sequence.
    pub(super) fn len(&self, sequence: usize) -> usize {
        self.positions(sequence).len()
    }

    /// How often each n-gram occurs in the sequence, indexed by id.
    pub(super) fn counts(&self, sequence: usize) -> Vec<u32> {
        let mut counts = vec![0; self.distinct];
        for &id in &self.ids[self.positions(sequence)] {
            counts[id as usize] += 1;
        }
        counts
    }

    fn positions(&self, sequence: usize) -> std::ops::Range<usize> {
        let start = if sequence == 0 { 0 } else { self.ends[sequence - 1] };
        let end = (self.ends[sequence] + 1).saturating_sub(self.order);
        start..end.max(start)
    }

    fn number(&mut self, keys: &mut [(u64, usize)]) {
        keys.sort_unstable();
        self.distinct = 0;
        for run in keys.chunk_by(|a, b| a.0 == b.0) {
            for &(_, at) in run {
                self.ids[at] = self.distinct as u32;
            }
            self.distinct += 1;
        }
    }
}

/// The number of n-grams that two count vectors have in common.
pub(super) fn overlap(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).map(|(&a, &b)| a.min(b) as usize).sum()
}

/// Assigns ids to words: equal words have equal ids, also across sequences.
pub(super) struct Interner<'a> {
    numbers: std::collections::HashMap<&'a str, u32>,
}

impl<'a> Interner<'a> {
    pub(super) fn new() -> Self {
        Interner { numbers: std::collections::HashMap::new() }
    }

    pub(super) fn sequence(&mut self, words: impl Iterator<Item = &'a str>) -> Vec<u32> {
        let numbers = &mut self.numbers;
        words
            .map(|word| {
                let next = numbers.len() as u32;
                *numbers.entry(word).or_insert(next)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_meet_across_sequences_and_stop_at_their_ends() {
        let mut ngrams = Ngrams::new(&[vec![7, 7, 9, 7, 7], vec![7, 7, 9], vec![], vec![9]]);
        let lens = |n: &Ngrams| (0..4).map(|s| n.len(s)).collect::<Vec<_>>();
        assert_eq!(lens(&ngrams), [5, 3, 0, 1]);
        assert_eq!(overlap(&ngrams.counts(0), &ngrams.counts(1)), 3);
        ngrams.lengthen();
        assert_eq!(lens(&ngrams), [4, 2, 0, 0]);
        let mut counts = ngrams.counts(0);
        counts.sort_unstable();
        assert_eq!(counts, [1, 1, 2]);
        assert_eq!(overlap(&ngrams.counts(0), &ngrams.counts(1)), 2);
        ngrams.lengthen();
        assert_eq!(lens(&ngrams), [3, 1, 0, 0]);
        ngrams.lengthen();
        assert_eq!(lens(&ngrams), [2, 0, 0, 0]);
        assert_eq!(overlap(&ngrams.counts(0), &ngrams.counts(1)), 0);
    }
}
