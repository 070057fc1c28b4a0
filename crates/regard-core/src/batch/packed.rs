//! Sentences laid end to end, without padding: what the model computes on.

use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Token ids of several sentences, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    ids: Arc<[u32]>,
    offsets: Arc<[usize]>,
    first_row: usize,
}

impl Packed {
    /// Packs the sentences in their order.
    pub fn new<'a>(sentences: impl IntoIterator<Item = &'a [u32]>) -> Self {
        let (mut ids, mut offsets) = (Vec::new(), vec![0]);
        for sentence in sentences {
            ids.extend_from_slice(sentence);
            offsets.push(ids.len());
        }
        Packed { ids: ids.into(), offsets: offsets.into(), first_row: 0 }
    }

    /// The ids of all sentences.
    pub fn ids(&self) -> &Arc<[u32]> {
        &self.ids
    }

    /// Where each sentence begins, and where the last one ends: `b + 1` numbers.
    pub fn offsets(&self) -> &Arc<[usize]> {
        &self.offsets
    }

    /// The place of the first row in the batch that this is a part of; random numbers are counted
    /// from there.
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// How many sentences.
    pub fn sentences(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many tokens.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// The length of sentence `i`.
    pub fn length(&self, i: usize) -> usize {
        self.offsets[i + 1] - self.offsets[i]
    }

    /// The position of each token in its sentence, from 0.
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.offsets.windows(2).flat_map(|w| 0..w[1] - w[0])
    }

    /// All sentences, and behind them all of them again.
    fn twice(&self) -> Self {
        let tokens = self.tokens();
        let again = self.offsets[1..].iter().map(|o| o + tokens);
        Packed {
            ids: self.ids.iter().chain(&*self.ids).copied().collect(),
            offsets: self.offsets.iter().copied().chain(again).collect(),
            // So that the rows of all parts of a batch are counted apart.
            first_row: 2 * self.first_row,
        }
    }

    /// A part of the sentences, which remembers where it came from.
    pub fn part(&self, sentences: Range<usize>) -> Self {
        let start = self.offsets[sentences.start];
        let end = self.offsets[sentences.end];
        Packed {
            ids: self.ids[start..end].into(),
            offsets: self.offsets[sentences.start..=sentences.end].iter().map(|o| o - start).collect(),
            first_row: self.first_row + start,
        }
    }
}

/// Sentence pairs to train on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What the encoder reads.
    pub source: Packed,
    /// What the decoder reads: the start token and the target without its last token.
    pub input: Packed,
    /// What the decoder should say, token by token, as long as `input`.
    pub output: Arc<[u32]>,
}

impl Batch {
    /// Packs pairs of id sequences, each with its end token; `start` is the decoder's first input.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a [u32], &'a [u32])>, start: u32) -> Result<Self> {
        let (mut source, mut input, mut output) = (Vec::new(), Vec::new(), Vec::new());
        for (n, (s, t)) in pairs.into_iter().enumerate() {
            if s.is_empty() || t.is_empty() {
                let message =
                    format!("pair {n} has {} source and {} target tokens, both need one", s.len(), t.len());
                return Err(Error::Input { operation: "batch", message });
            }
            source.push(s);
            let mut shifted = vec![start];
            shifted.extend_from_slice(&t[..t.len() - 1]);
            input.push(shifted);
            output.extend_from_slice(t);
        }
        Ok(Batch {
            source: Packed::new(source),
            input: Packed::new(input.iter().map(Vec::as_slice)),
            output: output.into(),
        })
    }

    /// How many pairs.
    pub fn pairs(&self) -> usize {
        self.source.sentences()
    }

    /// How many target tokens, which is what a loss is divided by.
    pub fn target_tokens(&self) -> usize {
        self.output.len()
    }

    /// All pairs, and behind them all of them again, for two passes with different dropout.
    pub fn twice(&self) -> Self {
        let output = self.output.iter().chain(&*self.output).copied().collect();
        Batch { source: self.source.twice(), input: self.input.twice(), output }
    }

    /// Some of the pairs.
    pub fn part(&self, pairs: Range<usize>) -> Self {
        let offsets = self.input.offsets();
        let output = self.output[offsets[pairs.start]..offsets[pairs.end]].into();
        Batch { source: self.source.part(pairs.clone()), input: self.input.part(pairs), output }
    }

    /// Cuts the pairs, in their order, into at most `parts` ranges of about the same cost; none is
    /// empty.
    ///
    /// `cost` is that of a pair of this many source and target tokens. The order is kept, so that a
    /// part's random numbers are those of the whole.
    pub fn split_by_cost(&self, parts: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<Range<usize>> {
        let costs: Vec<f64> =
            (0..self.pairs()).map(|i| cost(self.source.length(i), self.input.length(i))).collect();
        let total: f64 = costs.iter().sum();
        let mut ranges = Vec::with_capacity(parts);
        let (mut start, mut spent) = (0, 0.0);
        for part in 1..=parts {
            let goal = total * part as f64 / parts as f64;
            let mut end = start;
            // A pair belongs to the part in which its middle lies.
            while end < costs.len() && (part == parts || spent + 0.5 * costs[end] <= goal) {
                spent += costs[end];
                end += 1;
            }
            if end > start {
                ranges.push(start..end);
            }
            start = end;
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(lengths: &[(usize, usize)]) -> Batch {
        let pairs: Vec<(Vec<u32>, Vec<u32>)> = lengths
            .iter()
            .enumerate()
            .map(|(i, &(s, t))| (vec![i as u32; s], (0..t as u32).map(|j| 100 * i as u32 + j).collect()))
            .collect();
        Batch::new(pairs.iter().map(|(s, t)| (&s[..], &t[..])), 9).unwrap()
    }

    #[test]
    fn the_decoder_reads_what_it_said_before() {
        let b = batch(&[(2, 3), (1, 1)]);
        assert_eq!(b.input.ids()[..], [9, 0, 1, 9]);
        assert_eq!(b.output[..], [0, 1, 2, 100]);
        assert_eq!(b.source.offsets()[..], [0, 2, 3]);
        assert_eq!(b.input.positions().collect::<Vec<_>>(), [0, 1, 2, 0]);
    }

    #[test]
    fn a_part_keeps_its_pairs_and_knows_where_it_was() {
        let b = batch(&[(2, 3), (4, 1), (1, 2)]);
        let part = b.part(1..3);
        assert_eq!(part.source.ids()[..], [1, 1, 1, 1, 2]);
        assert_eq!(part.source.offsets()[..], [0, 4, 5]);
        assert_eq!((part.source.first_row(), part.input.first_row()), (2, 3));
        assert_eq!(part.output[..], [100, 200, 201]);
        assert_eq!(b.part(0..3), b);
    }

    #[test]
    fn parts_have_about_equal_cost_and_none_is_lost() {
        let lengths: Vec<_> = (1..40).map(|i| (i % 7 + 1, i % 11 + 1)).collect();
        let b = batch(&lengths);
        let cost = |s: usize, t: usize| (s + 2 * t) as f64;
        for parts in 1..6 {
            let ranges = b.split_by_cost(parts, cost);
            assert_eq!(ranges.len(), parts);
            assert_eq!((ranges[0].start, ranges[parts - 1].end), (0, 39));
            assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
            let costs: Vec<f64> =
                ranges.iter().map(|r| lengths[r.clone()].iter().map(|&(s, t)| cost(s, t)).sum()).collect();
            let mean = costs.iter().sum::<f64>() / parts as f64;
            assert!(costs.iter().all(|c| (c - mean).abs() <= 30.0), "{costs:?}");
        }
        // One long sentence and fewer pairs than parts.
        assert_eq!(batch(&[(50, 50), (1, 1)]).split_by_cost(2, cost), [0..1, 1..2]);
        assert_eq!(batch(&[(5, 5)]).split_by_cost(4, cost).len(), 1);
    }

    #[test]
    fn an_empty_side_is_refused() {
        let error = Batch::new([(&[1u32][..], &[2u32][..]), (&[][..], &[3][..])], 0).unwrap_err();
        assert_eq!(error.to_string(), "batch: pair 1 has 0 source and 1 target tokens, both need one");
    }
}
