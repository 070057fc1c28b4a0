//! From parallel text files to a cache of ids on disk.
//!
//! [`Inputs`] names the files, [`Pairs`] streams their lines, [`Filters`] says what to drop,
//! [`Corpus`] holds the resulting ids, and [`Summary`] counts everything that was dropped.
//!
//! **Reading.** Files may be plain, gzip or zstd, identified by their first bytes. Lines end with
//! LF; a CR before it and a byte-order mark at the start of a file are not part of the text. The
//! last line needs no LF. The two sides must have the same number of lines, or nothing is built.
//!
//! **Always dropped, and counted**: pairs with a side that is not UTF-8, has no text, or is longer
//! than [`Filters::max_line_bytes`]; lines of a TSV without a tab, of a JSONL file without source
//! and target, messages without a translation. Everything else is up to the [`Filters`].

mod build;
mod cache;
mod check;
mod documents;
mod estimate;
mod filter;
mod lines;
mod pairs;
mod po;
mod readers;
mod summary;

#[cfg(any(test, feature = "fuzzing"))]
pub use cache::read_any_cache;
pub use cache::{CacheState, Corpus, PairIds};
pub use check::{CheckReport, CheckSettings, Example, Finding, OtherLanguage, Problem, Severity, check};
pub use estimate::{PairCount, count_pairs};
pub use filter::Filters;
pub use lines::open_text;
pub use pairs::{Inputs, Pair, Pairs, Side};
#[cfg(any(test, feature = "fuzzing"))]
pub use readers::read_any_pairs;
pub use summary::{Dropped, Reason, Summary};

use filter::TextFilter;
use regard_core::text::{TextSample, TokenizerPair, TokenizerSettings};
use regard_core::{Error, Result};

/// Trains the tokenizers of a model on its corpus: on every pair with two readable lines, before
/// the filters.
pub fn train_tokenizers(
    inputs: &Inputs,
    filters: &Filters,
    settings: &TokenizerSettings,
) -> Result<TokenizerPair> {
    train_tokenizers_for(inputs, filters, settings, &[], false)
}

/// The same with a token for each of these target languages; without any, there are no language
/// tokens. With `terms`, the vocabulary also has the tokens that mark terms.
pub fn train_tokenizers_for(
    inputs: &Inputs,
    filters: &Filters,
    settings: &TokenizerSettings,
    languages: &[String],
    terms: bool,
) -> Result<TokenizerPair> {
    let (mut source, mut target) = (TextSample::default(), TextSample::default());
    let (mut summary, mut usable) = (Summary::default(), TextFilter::new(filters));
    for pair in Pairs::open(inputs, filters.max_line_bytes)? {
        let pair = pair?;
        summary.read += 1;
        if let (Side::Text(from), Side::Text(to)) = (&pair.source, &pair.target) {
            source.add(from);
            target.add(to);
        }
        // The summary matters only if no pair is usable.
        if source.bytes().min(target.bytes()) == 0
            && let Err((reason, of_target)) = usable.pass(&pair)
        {
            summary.drop_pair(reason, || inputs.place(&pair, of_target));
        }
    }
    if summary.dropped.values().map(|dropped| dropped.count).sum::<u64>() == summary.read {
        return Err(nothing_usable(inputs, &summary));
    }
    TokenizerPair::train_with(&source, &target, settings, languages, terms)
}

/// The error for a corpus without a usable pair.
fn nothing_usable(inputs: &Inputs, summary: &Summary) -> Error {
    let path = inputs.paths()[0];
    if summary.read == 0 {
        return Error::file(path, "has no lines: there is nothing to train on");
    }
    if summary.dropped(Reason::NoTab) == summary.read {
        let message = "no line has a tab; source and target of each line must be separated by one";
        return Error::file(path, message);
    }
    if summary.dropped(Reason::NoObject) == summary.read {
        let message = "no line is an object with source and target; the fields may be source and target, src and tgt, \
                       or the codes of the two languages";
        return Error::file(path, message);
    }
    Error::file(path, format!("no pair of this corpus can be used\n{summary}"))
}
