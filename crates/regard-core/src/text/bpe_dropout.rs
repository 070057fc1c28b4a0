//! BPE-dropout (Provilkov et al., 2020): at every step of merging a word, each possible merge is
//! skipped with probability p, so that the model sees many segmentations of a word.
//!
//! The `tokenizers` crate has it too, but with a generator that cannot be seeded; a run must be
//! reproducible.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Tokenizer;
use super::json::{JsonTokenizer, merge_parts};
use crate::{Error, Result};
use regard_random::Rng;

/// Words are merged in stretches of at most this many symbols, because choosing a merge scans all
/// of them.
const STRETCH: usize = 128;

impl Tokenizer {
    /// BPE-dropout for a sentence that [`encode`](Self::encode) has encoded: merges its words
    /// again, skipping each merge with probability `dropout`. The result depends only on the ids,
    /// `dropout` and `seed`.
    pub fn resample(&self, ids: &[u32], dropout: f32, seed: u64) -> Result<Vec<u32>> {
        if !(0.0..=1.0).contains(&dropout) {
            return Err(Error::config("bpe_dropout", format!("{dropout} is not between 0 and 1")));
        }
        let merges = self.as_json().and_then(JsonTokenizer::merge_table).ok_or_else(|| {
            Error::config("bpe_dropout", "only a BPE vocabulary with byte fallback can do this; use 0")
        })?;
        Ok(merges.resample(ids, f64::from(dropout), &mut Rng::stream(seed, 0)))
    }
}

impl JsonTokenizer {
    /// The merges, read from the file on first use; `None` if the model has no merges to skip.
    fn merge_table(&self) -> Option<&MergeTable> {
        let read = || {
            let file: Value = serde_json::from_str(self.text()).ok()?;
            MergeTable::read(&file["model"])
        };
        self.merges.get_or_init(read).as_ref()
    }
}

/// The merges of a BPE model by ids.
#[derive(Debug)]
pub(super) struct MergeTable {
    /// From a pair of adjacent pieces to the rank and the result of their merge.
    merges: HashMap<(u32, u32), (u32, u32)>,
    /// From the result of a merge to its parts.
    parts: HashMap<u32, (u32, u32)>,
    /// Pieces that begin a word, and so never merge with the piece before them.
    begins_word: HashSet<u32>,
}

impl MergeTable {
    /// Reads the `model` of a `tokenizer.json`; `None` if it is not a BPE model with byte fallback
    /// and plain pieces.
    fn read(model: &Value) -> Option<Self> {
        let plain = |field: &str| model[field].as_str().is_none_or(str::is_empty);
        if model["type"] != "BPE"
            || model["byte_fallback"] != true
            || !plain("continuing_subword_prefix")
            || !plain("end_of_word_suffix")
        {
            return None;
        }
        let vocabulary = model["vocab"].as_object()?;
        let id = |piece: &str| vocabulary.get(piece)?.as_u64()?.try_into().ok();
        let mut begins_word = HashSet::new();
        for piece in vocabulary.keys().filter(|piece| piece.starts_with('▁')) {
            begins_word.insert(id(piece)?);
        }
        let (mut merges, mut parts) = (HashMap::new(), HashMap::new());
        for (rank, merge) in model["merges"].as_array()?.iter().enumerate() {
            let (left, right) = merge_parts(merge)?;
            let product = id(&format!("{left}{right}"))?;
            let pair = (id(left)?, id(right)?);
            merges.insert(pair, (rank.try_into().ok()?, product));
            parts.entry(product).or_insert(pair);
        }
        Some(MergeTable { merges, parts, begins_word })
    }

    /// A different segmentation of the same text: splits each word into single characters and
    /// merges them again, skipping each merge with probability `dropout`. Special tokens and bytes
    /// are not the result of a merge, and are kept.
    fn resample(&self, ids: &[u32], dropout: f64, random: &mut Rng) -> Vec<u32> {
        let (mut all, mut word) = (Vec::with_capacity(2 * ids.len()), Vec::new());
        for &id in ids {
            if self.begins_word.contains(&id) {
                self.merge(&mut word, dropout, random, &mut all);
            }
            self.take_apart(id, &mut word);
        }
        self.merge(&mut word, dropout, random, &mut all);
        all
    }

    fn take_apart(&self, id: u32, symbols: &mut Vec<u32>) {
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            match self.parts.get(&id) {
                Some(&(left, right)) => rest.extend([right, left]),
                None => symbols.push(id),
            }
        }
    }

    /// Merges the symbols of a word and moves them to `ids`.
    fn merge(&self, word: &mut Vec<u32>, dropout: f64, random: &mut Rng, ids: &mut Vec<u32>) {
        for stretch in word.chunks(STRETCH) {
            let mut symbols = stretch.to_vec();
            while let Some((at, product)) = self.best_merge(&symbols, dropout, random) {
                symbols[at] = product;
                symbols.remove(at + 1);
            }
            ids.append(&mut symbols);
        }
        word.clear();
    }

    /// The first of the lowest-ranked merges that are not dropped.
    fn best_merge(&self, symbols: &[u32], dropout: f64, random: &mut Rng) -> Option<(usize, u32)> {
        let mut best: Option<(u32, usize, u32)> = None;
        for (at, pair) in symbols.windows(2).enumerate() {
            if let Some(&(rank, product)) = self.merges.get(&(pair[0], pair[1]))
                && best.is_none_or(|(lowest, _, _)| rank < lowest)
                && random.uniform() >= dropout
            {
                best = Some((rank, at, product));
            }
        }
        best.map(|(_, at, product)| (at, product))
    }
}
