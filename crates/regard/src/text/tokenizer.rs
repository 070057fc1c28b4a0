//! One tokenizer: text to ids, ids to text, and its file.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::{fs, thread};

use serde_json::Value;
use tokenizers::{Model, OffsetReferential, OffsetType, PreTokenizer};
use xxhash_rust::xxh3::xxh3_64;

use super::dropout::{MergeTable, merge_parts};
use super::pipeline::{for_each_word, normalise, normaliser, word_splitter};
use super::train::{Pieces, learn};
use super::{EOS, PAD, TextSample, TokenizerSettings, UNK};
use crate::counter::Counter;
use crate::replace::replace;
use crate::{Error, Result};

/// Text to ids and back.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// The file as it was read or will be written.
    json: String,
    size: usize,
    eos: u32,
    unk: u32,
    pad: u32,
    /// Ids that are not text: left out by `decode`.
    special: HashSet<u32>,
    merges: OnceLock<Option<MergeTable>>,
    /// The stages before the model are the ones of this library, which has a faster way through them.
    own_stages: bool,
}

/// Words and their ids, so that frequent words are segmented once a batch.
type WordCache = HashMap<String, Vec<u32>>;

/// Words a cache holds at most; the rest is segmented each time.
const CACHE_WORDS: usize = 100_000;

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("size", &self.size).field("hash", &self.hash()).finish()
    }
}

impl Tokenizer {
    /// Trains one vocabulary on all samples together.
    pub fn train(samples: &[&TextSample], settings: &TokenizerSettings) -> Result<Self> {
        Self::from_pieces(learn(samples, settings)?)
    }

    pub(super) fn from_pieces(pieces: Pieces) -> Result<Self> {
        Self::from_json(pieces.into_json()?, Path::new("tokenizer.json"))
    }

    /// Reads a `tokenizer.json`, one of ours or any other that has `</s>`, `<unk>` and `<pad>`.
    pub fn load(path: &Path) -> Result<Self> {
        Self::from_json(fs::read_to_string(path).map_err(|e| Error::io(path, e))?, path)
    }

    /// Reads the text of a `tokenizer.json`; `path` is for messages.
    pub fn from_json(json: String, path: &Path) -> Result<Self> {
        let mut value: Value = serde_json::from_str(&json)
            .map_err(|e| Error::file(path, format!("not a tokenizer.json: {e}")))?;
        if !value.is_object() {
            return Err(Error::file(path, "not a tokenizer.json: an object is expected"));
        }
        check_merges(&value["model"], path)?;
        let own_stages = value["normalizer"] == normaliser() && value["pre_tokenizer"] == word_splitter();
        let mut special = keep_special_tokens_out_of_text(&mut value);
        let mut inner: tokenizers::Tokenizer = serde_json::from_value(value)
            .map_err(|e| Error::file(path, format!("not a tokenizer.json that can be used: {e}")))?;
        // A file may ask to cut or pad what it encodes; a sentence is never cut silently here.
        inner.with_truncation(None).map_err(|e| Error::file(path, e.to_string()))?;
        inner.with_padding(None);
        inner.set_encode_special_tokens(true);

        let ids = [EOS, UNK, PAD].map(|token| inner.token_to_id(token));
        let [Some(eos), Some(unk), Some(pad)] = ids else {
            let missing = [EOS, UNK, PAD].into_iter().zip(ids).filter(|(_, id)| id.is_none());
            let missing: Vec<&str> = missing.map(|(token, _)| token).collect();
            let message =
                format!("the vocabulary lacks {}; needed are {EOS}, {UNK} and {PAD}", missing.join(" and "));
            return Err(Error::file(path, message));
        };
        let vocabulary = inner.get_vocab(true);
        let size = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
        if size != vocabulary.len() {
            let message = format!(
                "the ids of the {} pieces should be 0 to {} without a gap, but the largest is {}",
                vocabulary.len(),
                vocabulary.len() - 1,
                size - 1
            );
            return Err(Error::file(path, message));
        }
        special.extend([eos, unk, pad]);
        Ok(Tokenizer { inner, json, size, eos, unk, pad, special, merges: OnceLock::new(), own_stages })
    }

    /// Writes the `tokenizer.json`: beside, then renamed.
    pub fn save(&self, path: &Path) -> Result<()> {
        replace(path, |to| to.write_all(self.json.as_bytes()))
    }

    /// The text of the `tokenizer.json`.
    pub fn to_json(&self) -> &str {
        &self.json
    }

    /// A hash of the file: equal for equal tokenizers.
    pub fn hash(&self) -> u64 {
        xxh3_64(self.json.as_bytes())
    }

    /// Ids in the vocabulary, special tokens included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The id of `</s>`.
    pub fn eos(&self) -> u32 {
        self.eos
    }

    /// The id of `<unk>`.
    pub fn unk(&self) -> u32 {
        self.unk
    }

    /// The id of `<pad>`, which also starts the decoder.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    /// The id of a piece.
    pub fn id(&self, piece: &str) -> Option<u32> {
        self.inner.token_to_id(piece)
    }

    /// The piece of an id.
    pub fn piece(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The ids of a sentence, `</s>` at the end.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_cached(text, &mut WordCache::new())
    }

    fn encode_cached(&self, text: &str, cache: &mut WordCache) -> Result<Vec<u32>> {
        let mut ids = if self.own_stages {
            self.encode_words(text, cache)
        } else {
            self.inner.encode_fast(text, false).map(|encoding| encoding.get_ids().to_vec())
        }
        .map_err(failed)?;
        ids.push(self.eos);
        Ok(ids)
    }

    fn encode_words(&self, text: &str, cache: &mut WordCache) -> tokenizers::Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 4);
        let mut outcome = Ok(());
        for_each_word(&normalise(text), |word| {
            if let Some(known) = cache.get(word) {
                ids.extend_from_slice(known);
                return;
            }
            match self.inner.get_model().tokenize(word) {
                Ok(pieces) => {
                    let start = ids.len();
                    ids.extend(pieces.iter().map(|piece| piece.id));
                    if cache.len() < CACHE_WORDS && word.len() < 64 {
                        cache.insert(word.to_owned(), ids[start..].to_vec());
                    }
                }
                Err(error) => outcome = Err(error),
            }
        });
        outcome.map(|()| ids)
    }

    /// [`Tokenizer::encode`] of many sentences, on `threads` threads (0 and 1: on this one).
    pub fn encode_batch(&self, texts: &[&str], threads: usize) -> Result<Vec<Vec<u32>>> {
        let share = texts.len().div_ceil(threads.max(1)).max(1);
        if share >= texts.len() {
            let mut cache = WordCache::new();
            return texts.iter().map(|text| self.encode_cached(text, &mut cache)).collect();
        }
        thread::scope(|scope| {
            let parts: Vec<_> =
                texts.chunks(share).map(|part| scope.spawn(|| self.encode_batch(part, 1))).collect();
            let mut all = Vec::with_capacity(texts.len());
            for part in parts {
                all.extend(part.join().map_err(|_| failed("a thread panicked"))??);
            }
            Ok(all)
        })
    }

    /// [`Tokenizer::encode`] with BPE-dropout: each merge is left out with probability `dropout`. The result depends
    /// on the text, `dropout` and `seed` alone.
    pub fn encode_dropout(&self, text: &str, dropout: f32, seed: u64) -> Result<Vec<u32>> {
        if !(0.0..=1.0).contains(&dropout) {
            return Err(Error::config("bpe_dropout", format!("{dropout} is not between 0 and 1")));
        }
        let merges = self.merges.get_or_init(|| {
            let file: Value = serde_json::from_str(&self.json).ok()?;
            MergeTable::read(&file["model"])
        });
        let Some(merges) = merges else {
            return Err(Error::config(
                "bpe_dropout",
                "only a BPE vocabulary with byte fallback can do this; use 0",
            ));
        };
        let mut random = Counter::new(seed, 0);
        let mut ids = Vec::with_capacity(text.len() / 3 + 4);
        let mut segment = |word: &str, ids: &mut Vec<u32>| {
            merges.segment(word, f64::from(dropout), &mut random, ids);
        };
        if self.own_stages {
            for_each_word(&normalise(text), |word| segment(word, &mut ids));
        } else {
            let added = self.inner.get_added_vocabulary();
            let mut words = added.extract_and_normalize(self.inner.get_normalizer(), text);
            if let Some(splitter) = self.inner.get_pre_tokenizer() {
                splitter.pre_tokenize(&mut words).map_err(failed)?;
            }
            for (word, _, tokens) in words.get_splits(OffsetReferential::Original, OffsetType::None) {
                match tokens {
                    // A special token such as `>>de<<`.
                    Some(tokens) => ids.extend(tokens.iter().map(|token| token.id)),
                    None => segment(word, &mut ids),
                }
            }
        }
        ids.push(self.eos);
        Ok(ids)
    }

    /// The text of ids, special tokens left out, ids outside the vocabulary too.
    pub fn decode(&self, ids: &[u32]) -> String {
        let text: Vec<u32> = ids.iter().copied().filter(|id| !self.special.contains(id)).collect();
        let pieces = || text.iter().filter_map(|&id| self.piece(id)).collect();
        self.inner.decode(&text, false).unwrap_or_else(|_| pieces())
    }

    /// The pieces of a sentence, for showing; without `</s>`.
    pub fn pieces(&self, text: &str) -> Result<Vec<String>> {
        let mut ids = self.encode(text)?;
        ids.pop();
        Ok(ids.into_iter().map(|id| self.piece(id).unwrap_or_default()).collect())
    }
}

/// Merges that the `tokenizers` crate would take for a broken invariant and panic over.
fn check_merges(model: &Value, path: &Path) -> Result<()> {
    let (Some(merges), Some(vocabulary)) = (model["merges"].as_array(), model["vocab"].as_object()) else {
        return Ok(());
    };
    let prefix = model["continuing_subword_prefix"].as_str().unwrap_or_default();
    for (rank, merge) in merges.iter().enumerate() {
        let product = merge_parts(merge)
            .and_then(|(left, right)| Some(format!("{left}{}", right.strip_prefix(prefix)?)));
        if product.is_none_or(|product| !vocabulary.contains_key(&product)) {
            let message = format!("merge {} ({merge}) does not make a piece of the vocabulary", rank + 1);
            return Err(Error::file(path, message));
        }
    }
    Ok(())
}

/// Lets `</s>`, `<unk>` and `<pad>` in a sentence be the text they are, while other special tokens of a foreign file
/// (`>>de<<`) are still found in it; returns the ids of all of them.
fn keep_special_tokens_out_of_text(file: &mut Value) -> HashSet<u32> {
    let mut special = HashSet::new();
    for token in file.get_mut("added_tokens").and_then(Value::as_array_mut).into_iter().flatten() {
        let id: Option<u32> = token["id"].as_u64().and_then(|id| id.try_into().ok());
        if token["special"] == true {
            special.extend(id);
        }
        let ours = token["content"].as_str().is_some_and(|content| [EOS, UNK, PAD].contains(&content));
        if token.is_object() {
            token["special"] = ours.into();
        }
    }
    special
}

fn failed(error: impl ToString) -> Error {
    Error::Input { operation: "tokenizing", message: error.to_string() }
}
