//! Sentences stored contiguously without padding: the input of the model.

use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The token ids of several sentences, stored contiguously.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    ids: Arc<[u32]>,
    offsets: Arc<[usize]>,
    first_row: usize,
}

impl Packed {
    /// Packs the sentences in order.
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

    /// Where each sentence begins, plus the end of the last: `b + 1` offsets.
    pub fn offsets(&self) -> &Arc<[usize]> {
        &self.offsets
    }

    /// The index of the first row in the batch that this is a part of; dropout counts rows from
    /// there.
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// The number of sentences.
    pub fn sentences(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of tokens.
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

    /// All sentences twice, one copy after the other.
    fn twice(&self) -> Self {
        let tokens = self.tokens();
        let again = self.offsets[1..].iter().map(|o| o + tokens);
        Packed {
            ids: self.ids.iter().chain(&*self.ids).copied().collect(),
            offsets: self.offsets.iter().copied().chain(again).collect(),
            // Keeps the row ranges of the parts of a batch disjoint.
            first_row: 2 * self.first_row,
        }
    }

    /// A subset of the sentences, which remembers its position in the batch.
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

/// Sentence pairs for training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The input of the encoder.
    pub source: Packed,
    /// The input of the decoder: the start token and the target without its last token.
    pub input: Packed,
    /// The expected output of the decoder for each token of `input`.
    pub output: Arc<[u32]>,
}

impl Batch {
    /// Packs pairs of id sequences, each with its end token; `start` is the decoder's start token.
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

    /// The number of pairs.
    pub fn pairs(&self) -> usize {
        self.source.sentences()
    }

    /// The number of target tokens, by which a loss is divided.
    pub fn target_tokens(&self) -> usize {
        self.output.len()
    }

    /// All pairs twice, one copy after the other, for two passes with different dropout.
    pub fn twice(&self) -> Self {
        let output = self.output.iter().chain(&*self.output).copied().collect();
        Batch { source: self.source.twice(), input: self.input.twice(), output }
    }

    /// A subset of the pairs.
    pub fn part(&self, pairs: Range<usize>) -> Self {
        let offsets = self.input.offsets();
        let output = self.output[offsets[pairs.start]..offsets[pairs.end]].into();
        Batch { source: self.source.part(pairs.clone()), input: self.input.part(pairs), output }
    }

    /// Divides the pairs, in order, into at most `parts` ranges of about the same cost; none is
    /// empty.
    ///
    /// `cost` is that of a pair with the given numbers of source and target tokens. The order is
    /// kept, so that a part has the same random numbers as in the whole batch.
    pub fn split_by_cost(&self, parts: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<Range<usize>> {
        let costs: Vec<f64> =
            (0..self.pairs()).map(|i| cost(self.source.length(i), self.input.length(i))).collect();
        let total: f64 = costs.iter().sum();
        let mut ranges = Vec::with_capacity(parts);
        let (mut start, mut spent) = (0, 0.0);
        for part in 1..=parts {
            let goal = total * part as f64 / parts as f64;
            let mut end = start;
            // A pair belongs to the part that contains its midpoint.
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
