//! Counts of the kept and dropped pairs of a corpus, with reasons.

use std::collections::BTreeMap;
use std::fmt;

use regard_plot::grouped;
use serde::{Deserialize, Serialize};

/// Why a pair was dropped; the first applicable reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A side is not UTF-8.
    InvalidUtf8,
    /// A side is too long to be a sentence.
    LineTooLong,
    /// A line of a TSV without a tab.
    NoTab,
    /// A line of a JSONL file without source and target.
    NoObject,
    /// A message without a translation, or with a fuzzy one.
    Untranslated,
    /// A side has no text.
    Empty,
    /// Both sides are the same text.
    Identical,
    /// The pair occurred before.
    Duplicate,
    /// A side has fewer words than the minimum.
    TooFewWords,
    /// A side has more words than the maximum.
    TooManyWords,
    /// A side has more tokens than the maximum.
    TooManyTokens,
    /// One side is too long in proportion to the other.
    Ratio,
    /// The target has characters that the vocabulary lacks.
    UnknownTarget,
    /// Its document has more pairs than the maximum.
    LargeDocument,
}

impl Reason {
    /// The reason as a phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            Reason::InvalidUtf8 => "not UTF-8",
            Reason::LineTooLong => "overlong line",
            Reason::NoTab => "no tab in the line",
            Reason::NoObject => "no source and target in the line",
            Reason::Untranslated => "message without a translation, or with a fuzzy one",
            Reason::Empty => "empty line",
            Reason::Identical => "source and target identical",
            Reason::Duplicate => "duplicate",
            Reason::TooFewWords => "too few words",
            Reason::TooManyWords => "too many words",
            Reason::TooManyTokens => "too many tokens",
            Reason::Ratio => "lengths too different",
            Reason::UnknownTarget => "characters in the target that the vocabulary lacks",
            Reason::LargeDocument => "one of a document with more pairs than max_per_document",
        }
    }
}

/// The pairs dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The number of pairs.
    pub count: u64,
    /// The first of them, as `file:line`.
    pub first: String,
}

/// The counts of a corpus: `read` = `kept` + the sum of `dropped`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of pairs in the files.
    pub read: u64,
    /// The number of pairs in the corpus.
    pub kept: u64,
    /// The kept pairs of each pair of files, or of each file that holds both sides, in their order.
    #[serde(default)]
    pub kept_by_file: Vec<u64>,
    /// Dropped pairs, by reason.
    pub dropped: BTreeMap<Reason, Dropped>,
    /// The number of source tokens in kept pairs, including `</s>`.
    pub source_tokens: u64,
    /// The number of target tokens in kept pairs, including `</s>`.
    pub target_tokens: u64,
    /// The number of `<unk>` among these tokens: 0 with a vocabulary trained here.
    pub unknown_tokens: u64,
    /// The number of tokens of the longest kept sentence on either side.
    pub longest: u64,
}

impl Summary {
    /// The number of pairs dropped for `reason`.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.dropped.get(&reason).map_or(0, |d| d.count)
    }

    pub(super) fn keep_pair(&mut self, file: usize) {
        if self.kept_by_file.len() <= file {
            self.kept_by_file.resize(file + 1, 0);
        }
        self.kept += 1;
        self.kept_by_file[file] += 1;
    }

    pub(super) fn drop_pair(&mut self, reason: Reason, place: impl FnOnce() -> String) {
        match self.dropped.get_mut(&reason) {
            Some(dropped) => dropped.count += 1,
            None => {
                self.dropped.insert(reason, Dropped { count: 1, first: place() });
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = grouped(self.read).len();
        writeln!(f, "{} pairs read", grouped(self.read))?;
        for (reason, dropped) in &self.dropped {
            let count = grouped(dropped.count);
            writeln!(f, "{count:>width$} dropped: {} (first: {})", reason.phrase(), dropped.first)?;
        }
        let mean = |tokens: u64| tokens as f64 / self.kept.max(1) as f64;
        write!(
            f,
            "{:>width$} kept: {} source and {} target tokens, {:.1} and {:.1} per sentence, at most {}",
            grouped(self.kept),
            grouped(self.source_tokens),
            grouped(self.target_tokens),
            mean(self.source_tokens),
            mean(self.target_tokens),
            self.longest,
        )?;
        if self.unknown_tokens > 0 {
            write!(f, "; {} of them unknown", grouped(self.unknown_tokens))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_prints_well() {
        let mut summary = Summary { read: 29_000, kept: 28_987, ..Summary::default() };
        (summary.source_tokens, summary.target_tokens, summary.longest) = (1_400_000, 450_123, 51);
        for line in 1..=12 {
            summary.drop_pair(Reason::Empty, || format!("a.en:{line}"));
        }
        summary.drop_pair(Reason::InvalidUtf8, || "b.de:7".into());
        let expected = "29,000 pairs read\n\
                        \x20    1 dropped: not UTF-8 (first: b.de:7)\n\
                        \x20   12 dropped: empty line (first: a.en:1)\n\
                        28,987 kept: 1,400,000 source and 450,123 target tokens, 48.3 and 15.5 per sentence, at most 51";
        assert_eq!(summary.to_string(), expected);
    }
}
