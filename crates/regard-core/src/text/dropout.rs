//! BPE-dropout (Provilkov et al., 2020): at every step of merging a word, each possible merge is left out with
//! probability p, so that the model sees a word in many segmentations.
//!
//! The `tokenizers` crate has it too, but with a generator that cannot be seeded; a run must be repeatable.

use std::collections::HashMap;

use serde_json::Value;

use crate::counter::Counter;

/// Words are merged in stretches of at most this many symbols: choosing a merge looks at all of them.
const STRETCH: usize = 128;

/// The merges of a BPE model by ids.
#[derive(Debug)]
pub(super) struct MergeTable {
    /// Pieces of one character.
    characters: HashMap<char, u32>,
    bytes: Vec<u32>,
    /// A pair of neighbours to the rank of their merge and its product.
    merges: HashMap<(u32, u32), (u32, u32)>,
}

impl MergeTable {
    /// Reads the `model` of a `tokenizer.json`; `None` if it is not a BPE with byte fallback and plain pieces.
    pub(super) fn read(model: &Value) -> Option<Self> {
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
        let mut characters = HashMap::new();
        for piece in vocabulary.keys() {
            let mut letters = piece.chars();
            if let (Some(character), None) = (letters.next(), letters.next()) {
                characters.insert(character, id(piece)?);
            }
        }
        let bytes = (0..=255u8).map(|b| id(&format!("<0x{b:02X}>"))).collect::<Option<_>>()?;
        let mut merges = HashMap::new();
        for (rank, merge) in model["merges"].as_array()?.iter().enumerate() {
            let (left, right) = merge_parts(merge)?;
            let product = id(&format!("{left}{right}"))?;
            merges.insert((id(left)?, id(right)?), (rank.try_into().ok()?, product));
        }
        Some(MergeTable { characters, bytes, merges })
    }

    /// Appends the pieces of `word` to `ids`.
    pub(super) fn segment(&self, word: &str, dropout: f64, random: &mut Counter, ids: &mut Vec<u32>) {
        let mut symbols = Vec::with_capacity(word.len());
        for character in word.chars() {
            match self.characters.get(&character) {
                Some(&id) => symbols.push(id),
                None => {
                    let mut buffer = [0; 4];
                    let encoded = character.encode_utf8(&mut buffer).bytes();
                    symbols.extend(encoded.map(|b| self.bytes[usize::from(b)]));
                }
            }
        }
        for stretch in symbols.chunks(STRETCH) {
            let mut symbols = stretch.to_vec();
            while let Some((at, product)) = self.best_merge(&symbols, dropout, random) {
                symbols[at] = product;
                symbols.remove(at + 1);
            }
            ids.append(&mut symbols);
        }
    }

    /// The first of the lowest-ranked merges that survive the dropout.
    fn best_merge(&self, symbols: &[u32], dropout: f64, random: &mut Counter) -> Option<(usize, u32)> {
        let mut best: Option<(u32, usize, u32)> = None;
        for (at, pair) in symbols.windows(2).enumerate() {
            if let Some(&(rank, product)) = self.merges.get(&(pair[0], pair[1]))
                && best.is_none_or(|(lowest, _, _)| rank < lowest)
                && random.unit() >= dropout
            {
                best = Some((rank, at, product));
            }
        }
        best.map(|(_, at, product)| (at, product))
    }
}

/// Both ways in which files write a merge: `["a", "b"]` and `"a b"`.
pub(super) fn merge_parts(merge: &Value) -> Option<(&str, &str)> {
    match merge {
        Value::String(text) => text.split_once(' '),
        Value::Array(parts) => match parts.as_slice() {
            [left, right] => Some((left.as_str()?, right.as_str()?)),
            _ => None,
        },
        _ => None,
    }
}
