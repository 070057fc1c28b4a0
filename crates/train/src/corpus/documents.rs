//! The documents of a corpus, and a limit on the pairs per document.
//!
//! A model that sees mostly one large document learns how that document is translated. With the
//! same amount of text from many documents it translates others better: docs/firefox.md has the
//! measured gain.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Inputs, Pair, Pairs};
use regard_core::Result;

/// The minimum number of documents for the limit to apply: with few documents, it would lose too
/// much text.
const MIN_DOCUMENTS: usize = 20;

/// The number of pairs of each document, and the limit.
pub(super) struct Documents {
    counts: HashMap<(usize, u64), u64>,
    most: u64,
}

impl Documents {
    /// Reads the inputs once. A column names documents if the lines of a document are contiguous,
    /// apart from a few documents with the same name; any other column limits nothing.
    pub(super) fn count(inputs: &Inputs, max_line_bytes: usize, most: usize) -> Result<Self> {
        let mut counts: HashMap<(usize, u64), u64> = HashMap::new();
        let (mut last, mut runs) = (None, 0);
        for pair in Pairs::open(inputs, max_line_bytes)? {
            let pair = pair?;
            let document = pair.document.map(|document| (pair.file, document));
            if let Some(document) = document {
                *counts.entry(document).or_default() += 1;
                runs += usize::from(last != Some(document));
            }
            last = document;
        }
        if runs > 2 * counts.len() || counts.len() < MIN_DOCUMENTS {
            counts.clear();
        }
        Ok(Documents { counts, most: most as u64 })
    }

    /// Whether a pair is among the kept pairs of its document: a pseudo-random choice by line
    /// number.
    pub(super) fn keeps(&self, pair: &Pair) -> bool {
        let Some(document) = pair.document else { return true };
        let count = self.counts.get(&(pair.file, document)).copied().unwrap_or(0);
        let drawn = xxh3_64_with_seed(&(pair.line as u64).to_le_bytes(), document);
        count <= self.most || (u128::from(drawn) * u128::from(count)) >> 64 < u128::from(self.most)
    }
}
