//! A tokenizer from a `tokenizer.json`, trained here or foreign.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
#[cfg(feature = "tokenizer-training")]
use std::sync::OnceLock;

use serde_json::Value;
use tokenizers::Model;
use xxhash_rust::xxh3::xxh3_64;

#[cfg(feature = "tokenizer-training")]
use super::bpe_dropout::MergeTable;
use super::expansion::check_expansion;
use super::pipeline::{for_each_word, normalise, normaliser, word_splitter};
use super::tokenizer::{Special, failed};
use super::{EOS, PAD, UNK};
use crate::replace::replace;
use crate::{Error, Result};

/// Encodes and decodes with the `tokenizers` crate.
pub(super) struct JsonTokenizer {
    inner: tokenizers::Tokenizer,
    /// The file as read or as it will be written.
    json: String,
    special: Special,
    /// Ids that are not text: `decode` skips them.
    hidden: HashSet<u32>,
    /// Read on first use.
    #[cfg(feature = "tokenizer-training")]
    pub(super) merges: OnceLock<Option<MergeTable>>,
    /// Whether the stages before the model are those of this library, which has a faster
    /// implementation of them.
    own_stages: bool,
}

/// Words and their ids, so that frequent words are segmented once per batch.
pub(super) type WordCache = HashMap<String, Vec<u32>>;

/// The maximum number of words in a cache; others are segmented each time.
const CACHE_WORDS: usize = 100_000;

/// Parses a `tokenizer.json`. Passes it as text to the `tokenizers` crate, because deserializing a
/// [`Value`] would compile all of its readers a second time, into this crate; the position of an
/// error in that text means nothing to the user.
///
/// The value is dropped before the tokenizer is built: with 256,000 words, each takes tens of
/// megabytes.
pub(super) fn parse(value: Value) -> std::result::Result<tokenizers::Tokenizer, String> {
    let text = value.to_string();
    drop(value);
    text.parse().map_err(|e: tokenizers::Error| {
        let message = e.to_string();
        message.split_once(" at line ").map_or(message.as_str(), |(what, _)| what).to_owned()
    })
}

impl JsonTokenizer {
    /// Reads the text of a `tokenizer.json`; `path` is for messages.
    pub(super) fn read(json: String, path: &Path) -> Result<Self> {
        let mut value: Value = serde_json::from_str(&json)
            .map_err(|e| Error::file(path, format!("not a tokenizer.json: {e}")))?;
        if !value.is_object() {
            return Err(Error::file(path, "not a tokenizer.json: an object is expected"));
        }
        check_merges(&value["model"], path)?;
        check_ids(&value, path)?;
        for stage in ["normalizer", "decoder"] {
            check_expansion(&value[stage])
                .map_err(|problem| Error::file(path, format!("{stage}: {problem}")))?;
        }
        // A file may request BPE-dropout, which is for training: a text to translate has one
        // segmentation. Training has its own setting for it.
        if let Some(dropout) = value.get_mut("model").and_then(|model| model.get_mut("dropout")) {
            *dropout = Value::Null;
        }
        let own_stages = value["normalizer"] == normaliser() && value["pre_tokenizer"] == word_splitter();
        let mut hidden = keep_special_tokens_out_of_text(&mut value);
        let mut inner = parse(value)
            .map_err(|e| Error::file(path, format!("not a tokenizer.json that can be used: {e}")))?;
        // A file may request truncation or padding; a sentence is never truncated silently here.
        inner.with_truncation(None).map_err(|e| Error::file(path, e.to_string()))?;
        inner.with_padding(None);
        inner.set_encode_special_tokens(true);

        // Not `inner.get_vocab`, which copies every piece.
        let (listed, added) = (inner.get_model(), inner.get_added_vocabulary().get_vocab());
        let beside = added.keys().filter(|token| listed.token_to_id(token).is_none()).count();
        let size = listed.get_vocab_size() + beside;
        if let Some(missing) = (0..size as u32).find(|&id| inner.id_to_token(id).is_none()) {
            let message = format!(
                "the ids of the {size} pieces should be 0 to {} without a gap, but {missing} is missing",
                size - 1
            );
            return Err(Error::file(path, message));
        }
        let special = Special::find(size, |token| inner.token_to_id(token), path)?;
        hidden.extend([special.eos, special.unk, special.pad]);
        Ok(JsonTokenizer {
            inner,
            json,
            special,
            hidden,
            #[cfg(feature = "tokenizer-training")]
            merges: OnceLock::new(),
            own_stages,
        })
    }

    /// Writes the file atomically.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        replace(path, |to| to.write_all(self.json.as_bytes()))
    }

    pub(super) fn text(&self) -> &str {
        &self.json
    }

    pub(super) fn hash(&self) -> u64 {
        xxh3_64(self.json.as_bytes())
    }

    /// Whether the file has its own normalisation, which must see the raw text.
    pub(super) fn normalises(&self) -> bool {
        !self.own_stages && self.inner.get_normalizer().is_some()
    }

    pub(super) fn special(&self) -> Special {
        self.special
    }

    pub(super) fn id(&self, piece: &str) -> Option<u32> {
        self.inner.token_to_id(piece)
    }

    pub(super) fn piece(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The ids of a sentence, without an end token.
    pub(super) fn encode(&self, text: &str, cache: &mut WordCache) -> Result<Vec<u32>> {
        if self.own_stages {
            self.encode_words(text, cache)
        } else {
            self.inner.encode_fast(text, false).map(|encoding| encoding.get_ids().to_vec())
        }
        .map_err(failed)
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

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let text: Vec<u32> = ids.iter().copied().filter(|id| !self.hidden.contains(id)).collect();
        let pieces = || text.iter().filter_map(|&id| self.piece(id)).collect();
        self.inner.decode(&text, false).unwrap_or_else(|_| pieces())
    }
}

/// Parses both notations of a merge: `["a", "b"]` and `"a b"`.
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

/// Rejects merges on which the `tokenizers` crate would panic.
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

/// Rejects two tokens with the same id, in any of the lists.
fn check_ids(file: &Value, path: &Path) -> Result<()> {
    let vocabulary = &file["model"]["vocab"];
    let listed = vocabulary.as_object().into_iter().flatten();
    let listed = listed.filter_map(|(token, id)| Some((token.as_str(), id.as_u64()?)));
    // The pieces of a unigram model have their indices as ids.
    let placed = vocabulary.as_array().into_iter().flatten().zip(0..);
    let placed = placed.filter_map(|(entry, id)| Some((entry[0].as_str()?, id)));
    let added = file["added_tokens"].as_array().into_iter().flatten();
    let added = added.filter_map(|token| Some((token["content"].as_str()?, token["id"].as_u64()?)));
    let mut tokens: HashMap<u64, &str> = HashMap::new();
    for (token, id) in listed.chain(placed).chain(added) {
        if let Some(other) = tokens.insert(id, token).filter(|other| *other != token) {
            let message =
                format!("the tokens {other:?} and {token:?} have the same id, {id}; each needs its own");
            return Err(Error::file(path, message));
        }
    }
    Ok(())
}

/// Makes `</s>`, `<unk>` and `<pad>` in a sentence ordinary text, while other special tokens of a
/// foreign file (`>>de<<`) are still recognised; returns the ids of all of them.
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
