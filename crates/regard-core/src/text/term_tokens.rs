//! Term tokens: a model that is trained with them reads translations of terms inside its source
//! text.
//!
//! A source sentence contains a term and its translation as `<term> dog <is> Hund </term>`, and the
//! model learns to use the translation, in the form that the sentence needs (Dinu et al., 2019;
//! Bergmanis and Pinnis, 2021).

use super::Tokenizer;
use std::ops::Range;

/// The ids of the tokens around a term and its translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermTokens {
    /// Before the term.
    pub begin: u32,
    /// Between the term and its translation.
    pub is: u32,
    /// After the translation.
    pub end: u32,
}

/// A term of a source sentence, as ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermIds {
    /// Its range in the sentence; not empty.
    pub range: Range<usize>,
    /// Its translation, as ids of the source's vocabulary.
    pub target: Vec<u32>,
}

/// A source sentence with translations of its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotatedIds {
    /// The input of the model.
    pub ids: Vec<u32>,
    /// For each of these, the corresponding position in the sentence without translations: for
    /// added tokens, that of their term.
    pub origins: Vec<usize>,
}

impl TermTokens {
    /// The tokens in a vocabulary trained here, in the order of the fields. Text never produces
    /// them.
    pub const TOKENS: [&str; 3] = ["<term>", "<is>", "</term>"];

    /// The tokens of a vocabulary, if it has all of them.
    pub fn find(tokenizer: &Tokenizer) -> Option<Self> {
        let [begin, is, end] = Self::TOKENS.map(|token| tokenizer.id(token));
        Some(TermTokens { begin: begin?, is: is?, end: end? })
    }

    /// The three ids.
    pub fn ids(&self) -> [u32; 3] {
        [self.begin, self.is, self.end]
    }

    /// Annotates a sentence with the translations of `terms`, which are in the order of the
    /// sentence and do not overlap; skips those that do not fit.
    pub fn annotate(&self, ids: &[u32], terms: &[TermIds]) -> AnnotatedIds {
        let mut found = AnnotatedIds::default();
        let mut done = 0;
        for TermIds { range, target } in terms {
            if range.start < done || range.is_empty() || range.end > ids.len() {
                continue;
            }
            found.extend(ids[done..range.start].iter().copied(), done..range.start);
            found.extend([self.begin], [range.start]);
            found.extend(ids[range.clone()].iter().copied(), range.clone());
            let added = [self.is].into_iter().chain(target.iter().copied()).chain([self.end]);
            found.extend(added, std::iter::repeat_n(range.end - 1, target.len() + 2));
            done = range.end;
        }
        found.extend(ids[done..].iter().copied(), done..ids.len());
        found
    }
}

impl AnnotatedIds {
    fn extend(&mut self, ids: impl IntoIterator<Item = u32>, origins: impl IntoIterator<Item = usize>) {
        self.ids.extend(ids);
        self.origins.extend(origins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: TermTokens = TermTokens { begin: 90, is: 91, end: 92 };

    #[test]
    fn translations_stand_behind_their_terms() {
        let term = |range, target: &[u32]| TermIds { range, target: target.to_vec() };
        let found = TOKENS.annotate(&[1, 2, 3, 4, 0], &[term(1..3, &[7, 8]), term(3..4, &[9])]);
        assert_eq!(found.ids, [1, 90, 2, 3, 91, 7, 8, 92, 90, 4, 91, 9, 92, 0]);
        assert_eq!(found.origins, [0, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4]);
    }

    #[test]
    fn without_terms_nothing_changes() {
        let found = TOKENS.annotate(&[1, 2, 0], &[]);
        assert_eq!((found.ids, found.origins), (vec![1, 2, 0], vec![0, 1, 2]));
        assert_eq!(TOKENS.annotate(&[], &[]), AnnotatedIds::default());
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let term = |range| TermIds { range, target: vec![7] };
        for terms in [vec![term(2..2)], vec![term(2..9)], vec![term(3..4), term(2..4)]] {
            let kept = usize::from(terms.len() == 2);
            let found = TOKENS.annotate(&[1, 2, 3, 4], &terms);
            assert_eq!(found.ids.iter().filter(|id| **id == 91).count(), kept);
            assert_eq!(found.ids.len(), found.origins.len());
        }
    }
}
