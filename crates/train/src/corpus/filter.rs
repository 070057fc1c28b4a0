//! Filters that drop pairs from a corpus.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::summary::Reason;
use super::{Pair, Side};
use regard_core::{Error, Result};

/// What to drop, besides pairs that are unusable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filters {
    /// The maximum length of a line in bytes: longer lines are not sentences, and are not even held
    /// in memory.
    pub max_line_bytes: usize,
    /// The minimum number of words (separated by white space) per side.
    pub min_words: usize,
    /// The maximum number of words per side.
    pub max_words: Option<usize>,
    /// The maximum number of tokens per side, including `</s>`: the positions of a MarianMT model.
    pub max_tokens: usize,
    /// The maximum ratio of the lengths of the sides, in tokens without `</s>`.
    pub max_ratio: Option<f64>,
    /// Drop pairs that occurred before.
    pub drop_duplicates: bool,
    /// Drop pairs with two identical sides.
    pub drop_identical: bool,
    /// Drop pairs whose target has characters that the vocabulary lacks: from these, a model would
    /// learn to omit text, because decoding by default never writes the unknown token.
    pub drop_unknown: bool,
    /// The maximum number of pairs per document; a larger document is sampled at random. A document
    /// is a po file, or a value in the third column of a TSV, if there are at least 20 and each is
    /// contiguous.
    pub max_per_document: Option<usize>,
}

impl Default for Filters {
    fn default() -> Self {
        Filters {
            max_line_bytes: 65_536,
            min_words: 1,
            max_words: None,
            max_tokens: 512,
            max_ratio: None,
            drop_duplicates: false,
            drop_identical: false,
            drop_unknown: false,
            max_per_document: None,
        }
    }
}

impl Filters {
    /// Rejects filters that nothing could pass.
    pub fn check(&self) -> Result<()> {
        if self.max_line_bytes == 0 {
            return Err(Error::config("max_line_bytes", "0 leaves no line; give at least 1"));
        }
        if self.max_tokens < 2 {
            let message = format!("{} leaves no sentence: one word and </s> are 2 tokens", self.max_tokens);
            return Err(Error::config("max_tokens", message));
        }
        if let Some(max) = self.max_words.filter(|&max| max < self.min_words.max(1)) {
            let message = format!("{max} is below min_words, {}", self.min_words.max(1));
            return Err(Error::config("max_words", message));
        }
        if self.max_per_document == Some(0) {
            return Err(Error::config("max_per_document", "0 leaves no pair; give at least 1"));
        }
        if let Some(ratio) = self.max_ratio.filter(|ratio| ratio.is_nan() || *ratio < 1.0) {
            return Err(Error::config("max_ratio", format!("{ratio} is not a number of at least 1")));
        }
        Ok(())
    }

    /// Checks the tokens of a pair, including `</s>`; `unk` is the unknown token of the target.
    pub(super) fn by_tokens(&self, source: &[u32], target: &[u32], unk: u32) -> Option<Reason> {
        if self.drop_unknown && target.contains(&unk) {
            return Some(Reason::UnknownTarget);
        }
        let (source, target) = (source.len(), target.len());
        let shorter = source.min(target).saturating_sub(1);
        let longer = source.max(target).saturating_sub(1);
        if shorter == 0 {
            return Some(Reason::Empty);
        }
        if longer + 1 > self.max_tokens {
            return Some(Reason::TooManyTokens);
        }
        let uneven = self.max_ratio.is_some_and(|ratio| longer as f64 > ratio * shorter as f64);
        uneven.then_some(Reason::Ratio)
    }
}

/// The filters on text, with the hashes of earlier pairs.
pub(super) struct TextFilter<'a> {
    filters: &'a Filters,
    /// A 64-bit hash of each pair: with 100 million pairs, one corpus in 3,000 has a collision.
    seen: HashSet<u64>,
}

impl<'a> TextFilter<'a> {
    pub(super) fn new(filters: &'a Filters) -> Self {
        TextFilter { filters, seen: HashSet::new() }
    }

    /// The texts of a pair that passes; otherwise the reason, and whether the target's line is to
    /// blame.
    pub(super) fn pass<'p>(
        &mut self,
        pair: &'p Pair,
    ) -> std::result::Result<(&'p str, &'p str), (Reason, bool)> {
        let source = usable(&pair.source).map_err(|reason| (reason, false))?;
        let target = usable(&pair.target).map_err(|reason| (reason, true))?;
        if self.filters.drop_identical && source.split_whitespace().eq(target.split_whitespace()) {
            return Err((Reason::Identical, false));
        }
        for (text, of_target) in [(source, false), (target, true)] {
            let words = text.split_whitespace().count();
            if words < self.filters.min_words {
                return Err((Reason::TooFewWords, of_target));
            }
            if self.filters.max_words.is_some_and(|max| words > max) {
                return Err((Reason::TooManyWords, of_target));
            }
        }
        if self.filters.drop_duplicates && !self.seen.insert(hash(source, target)) {
            return Err((Reason::Duplicate, false));
        }
        Ok((source, target))
    }
}

fn usable(side: &Side) -> std::result::Result<&str, Reason> {
    match side {
        Side::Text(text) if text.trim().is_empty() => Err(Reason::Empty),
        Side::Text(text) => Ok(text),
        Side::InvalidUtf8 => Err(Reason::InvalidUtf8),
        Side::TooLong => Err(Reason::LineTooLong),
        Side::NoTab => Err(Reason::NoTab),
        Side::NoObject => Err(Reason::NoObject),
        Side::Untranslated => Err(Reason::Untranslated),
    }
}

/// A hash that ignores differences in white space.
pub(super) fn hash(source: &str, target: &str) -> u64 {
    let mut hash = Xxh3::new();
    for text in [source, target] {
        for word in text.split_whitespace() {
            hash.update(word.as_bytes());
            hash.update(b" ");
        }
        hash.update(b"\n");
    }
    hash.digest()
}
