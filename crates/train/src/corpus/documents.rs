//! The documents of a corpus, and a limit to the pairs of each.
//!
//! A model that learns most of its text from one large document learns how that is translated. With
//! as much text of many, it translates others better: docs/firefox.md has what that gained.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Inputs, Pair, Pairs};
use regard_core::Result;

/// Documents that a corpus must have before the pairs of any are limited: of a few, the text would
/// be lost.
const FEWEST: usize = 20;

/// How many pairs each document has, and how many of them are kept.
pub(super) struct Documents {
    counts: HashMap<(usize, u64), u64>,
    most: u64,
}

impl Documents {
    /// Reads the inputs once. A column of documents is one in which the lines of a document stand
    /// together, but for a few documents of the same name; nothing is limited by any other column.
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
        if runs > 2 * counts.len() || counts.len() < FEWEST {
            counts.clear();
        }
        Ok(Documents { counts, most: most as u64 })
    }

    /// Whether a pair is among those of its document that are kept: a choice by its line.
    pub(super) fn keeps(&self, pair: &Pair) -> bool {
        let Some(document) = pair.document else { return true };
        let count = self.counts.get(&(pair.file, document)).copied().unwrap_or(0);
        let drawn = xxh3_64_with_seed(&(pair.line as u64).to_le_bytes(), document);
        count <= self.most || (u128::from(drawn) * u128::from(count)) >> 64 < u128::from(self.most)
    }
}
