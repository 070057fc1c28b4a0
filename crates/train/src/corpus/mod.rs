//! Parallel text files to a memory-mapped cache of ids.
//!
//! [`Inputs`] names the files, [`Pairs`] streams their lines, [`Filters`] says what is dropped, [`Corpus`] holds the
//! ids that came out, and [`Summary`] counts everything that did not.
//!
//! **Reading.** Files may be plain, gzip or zstd, told apart by their first bytes. Lines end at LF; a CR before it and
//! a byte-order mark at the start of a file do not belong to the text. The last line needs no LF. The two sides must
//! have the same number of lines, or nothing is built.
//!
//! **What is always dropped, and counted**: pairs of which a side is not UTF-8, has no text, or is longer than
//! [`Filters::max_line_bytes`]; lines of a TSV without a tab. Everything else is up to the [`Filters`].

mod build;
mod cache;
mod filter;
mod lines;
mod pairs;
mod summary;

pub use cache::{CacheState, Corpus};
pub use filter::Filters;
pub use lines::open_text;
pub use pairs::{Inputs, Pair, Pairs, Side};
pub use summary::{Dropped, Reason, Summary};

use regard_core::Result;
use regard_core::text::{TextSample, TokenizerPair, TokenizerSettings};

/// Trains the tokenizers of a model on its corpus: every pair that is not dropped for what its lines are.
pub fn train_tokenizers(
    inputs: &Inputs,
    filters: &Filters,
    settings: &TokenizerSettings,
) -> Result<TokenizerPair> {
    let (mut source, mut target) = (TextSample::default(), TextSample::default());
    for pair in Pairs::open(inputs, filters.max_line_bytes)? {
        let pair = pair?;
        if let (Side::Text(from), Side::Text(to)) = (&pair.source, &pair.target) {
            source.add(from);
            target.add(to);
        }
    }
    TokenizerPair::train(&source, &target, settings)
}
