//! A tokenizer: text to ids and back, for all supported files.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::json::{JsonTokenizer, WordCache};
use super::language_tokens::Frame;
use super::marian::MarianTokenizer;
use super::{EOS, PAD, UNK};
use crate::{Error, Result, bounded};

/// Text to ids and back.
#[derive(Clone)]
pub struct Tokenizer {
    kind: Arc<Kind>,
    special: Special,
    /// Ids of tokens that are not text, such as language tokens.
    hidden: Arc<HashSet<u32>>,
    /// The ids around every text.
    frame: Frame,
}

enum Kind {
    /// A `tokenizer.json`.
    Json(Box<JsonTokenizer>),
    /// A side of a published Marian folder: a `.spm` file and a `vocab.json`.
    Marian(Box<MarianTokenizer>),
}

/// The size of a vocabulary and the ids that every vocabulary has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Special {
    pub(super) size: usize,
    pub(super) eos: u32,
    pub(super) unk: u32,
    pub(super) pad: u32,
}

impl Special {
    /// Finds the ids; `path` is for the error if one is missing.
    pub(super) fn find(size: usize, id: impl Fn(&str) -> Option<u32>, path: &Path) -> Result<Self> {
        let ids = [EOS, UNK, PAD].map(id);
        let [Some(eos), Some(unk), Some(pad)] = ids else {
            let missing = [EOS, UNK, PAD].into_iter().zip(ids).filter(|(_, id)| id.is_none());
            let missing: Vec<&str> = missing.map(|(token, _)| token).collect();
            let message =
                format!("the vocabulary lacks {}; needed are {EOS}, {UNK} and {PAD}", missing.join(" and "));
            return Err(Error::file(path, message));
        };
        Ok(Special { size, eos, unk, pad })
    }

    /// Whether an id is one of these.
    pub(super) fn has(&self, id: u32) -> bool {
        [self.eos, self.unk, self.pad].contains(&id)
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("size", &self.size()).field("hash", &self.hash()).finish()
    }
}

impl From<JsonTokenizer> for Tokenizer {
    fn from(tokenizer: JsonTokenizer) -> Self {
        Self::new(tokenizer.special(), Kind::Json(Box::new(tokenizer)))
    }
}

impl From<MarianTokenizer> for Tokenizer {
    fn from(tokenizer: MarianTokenizer) -> Self {
        Self::new(tokenizer.special(), Kind::Marian(Box::new(tokenizer)))
    }
}

impl Tokenizer {
    fn new(special: Special, kind: Kind) -> Self {
        Tokenizer { kind: Arc::new(kind), special, hidden: Arc::default(), frame: Frame::default() }
    }

    /// The same with these ids as additional tokens that are not text.
    pub(super) fn hiding(&self, ids: impl IntoIterator<Item = u32>) -> Self {
        let hidden = self.hidden.iter().copied().chain(ids).collect();
        Tokenizer { hidden: Arc::new(hidden), ..self.clone() }
    }

    /// The same with these ids around every text.
    pub(super) fn framed(&self, frame: Frame) -> Self {
        Tokenizer { frame, ..self.clone() }
    }

    /// The ids before every text: a language token, for models that need one.
    pub fn prefix_ids(&self) -> &[u32] {
        &self.frame.prefix
    }

    /// Whether every text has an end token; some models read their source without one.
    pub fn ends(&self) -> bool {
        self.frame.ends
    }

    /// The ids after the end token of every text.
    pub fn suffix_ids(&self) -> &[u32] {
        &self.frame.suffix
    }

    /// Reads a `tokenizer.json`, our own or any other that has `</s>`, `<unk>` and `<pad>`.
    pub fn load(path: &Path) -> Result<Self> {
        Self::from_json(bounded::read_text(path, bounded::MAX_TEXT_BYTES)?, path)
    }

    /// Reads the text of a `tokenizer.json`; `path` is for messages.
    pub fn from_json(json: String, path: &Path) -> Result<Self> {
        JsonTokenizer::read(json, path).map(Self::from)
    }

    /// Writes the `tokenizer.json` atomically. A tokenizer of other files can only be saved through
    /// its [`TokenizerPair`](super::TokenizerPair).
    pub fn save(&self, path: &Path) -> Result<()> {
        match &*self.kind {
            Kind::Json(json) => json.save(path),
            Kind::Marian(_) => {
                Err(Error::file(path, "a tokenizer of .spm files cannot be written as a tokenizer.json"))
            }
        }
    }

    /// The text of the `tokenizer.json`, if it is one.
    pub fn to_json(&self) -> Option<&str> {
        match &*self.kind {
            Kind::Json(json) => Some(json.text()),
            Kind::Marian(_) => None,
        }
    }

    /// A SentencePiece model (`.spm` file) with the same ids, which segments the whole vocabulary
    /// and `sample` alike; a tokenizer that has no equivalent is rejected with the setting that
    /// prevents it. The number of pieces is the next multiple of
    /// [`SPM_MULTIPLE`](super::SPM_MULTIPLE): added pieces are never text. A tokenizer that was
    /// read from a `.spm` file returns that file, without padding.
    pub fn to_sentencepiece(&self, sample: &[&str]) -> Result<Vec<u8>> {
        match &*self.kind {
            Kind::Json(json) => super::as_sentencepiece::write(self, json.text(), sample),
            Kind::Marian(marian) if marian.has_own_ids() => Ok(marian.spm().to_vec()),
            Kind::Marian(_) => Err(Error::config(
                "tokenizer",
                "cannot be written as one SentencePiece model: its pieces have their ids from a vocab.json",
            )),
        }
    }

    /// Whether the tokenizer is a `.spm` file, which has no padding of its own.
    pub fn is_sentencepiece(&self) -> bool {
        matches!(&*self.kind, Kind::Marian(_))
    }

    #[cfg(feature = "tokenizer-training")]
    pub(super) fn as_json(&self) -> Option<&JsonTokenizer> {
        match &*self.kind {
            Kind::Json(json) => Some(json),
            Kind::Marian(_) => None,
        }
    }

    pub(super) fn as_marian(&self) -> Option<&MarianTokenizer> {
        match &*self.kind {
            Kind::Json(_) => None,
            Kind::Marian(marian) => Some(marian),
        }
    }

    /// A hash of the files and of the ids around texts: equal for equal tokenizers.
    pub fn hash(&self) -> u64 {
        let files = self.files_hash();
        if self.frame == Frame::default() {
            return files;
        }
        let end = u32::MAX - u32::from(self.ends());
        let ids = self.prefix_ids().iter().chain([&end]).chain(self.suffix_ids());
        xxh3_64_with_seed(&ids.flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>(), files)
    }

    fn files_hash(&self) -> u64 {
        match &*self.kind {
            Kind::Json(json) => json.hash(),
            Kind::Marian(marian) => marian.hash(),
        }
    }

    /// Whether the other tokenizer produces the same ids, even if its files differ: a Firefox
    /// vocabulary is one file there, and two files in a model converted to our format.
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (&*self.kind, &*other.kind) {
            (Kind::Marian(a), Kind::Marian(b)) => a.is_same_as(b),
            _ => self.files_hash() == other.files_hash(),
        }
    }

    /// The number of ids in the vocabulary, including special tokens.
    pub fn size(&self) -> usize {
        self.special.size
    }

    /// The id of `</s>`.
    pub fn eos(&self) -> u32 {
        self.special.eos
    }

    /// The id of `<unk>`.
    pub fn unk(&self) -> u32 {
        self.special.unk
    }

    /// The id of `<pad>`, which also starts the decoder.
    pub fn pad(&self) -> u32 {
        self.special.pad
    }

    /// The id of a piece.
    pub fn id(&self, piece: &str) -> Option<u32> {
        match &*self.kind {
            Kind::Json(json) => json.id(piece),
            Kind::Marian(marian) => marian.id(piece),
        }
    }

    /// The piece of an id.
    pub fn piece(&self, id: u32) -> Option<String> {
        match &*self.kind {
            Kind::Json(json) => json.piece(id),
            Kind::Marian(marian) => marian.piece(id).map(str::to_owned),
        }
    }

    /// A language token such as `>>de<<` at the start of a text, if the vocabulary has it, and what
    /// follows.
    pub fn split_language<'a>(&self, text: &'a str) -> (Option<&'a str>, &'a str) {
        let end = text.strip_prefix(">>").and_then(|rest| rest.find("<<")).map(|at| at + 4);
        match end.map(|end| text.split_at(end)) {
            Some((token, rest)) if self.id(token).is_some() => (Some(token), rest),
            _ => (None, text),
        }
    }

    /// The line to pass to [`Tokenizer::encode`]: [`normalise`](super::normalise)d, unless the
    /// tokenizer has its own normalisation, which must see the raw text. Empty if there is no text.
    pub fn prepare(&self, line: &str) -> String {
        let normalised = super::normalise(line);
        match &*self.kind {
            Kind::Marian(_) if !normalised.is_empty() => line.trim_end_matches(['\r', '\n']).to_owned(),
            Kind::Json(json) if !normalised.is_empty() && json.normalises() => {
                line.trim_end_matches(['\r', '\n']).to_owned()
            }
            _ => normalised,
        }
    }

    /// The ids of a sentence, with `</s>` at the end, and with a language token before or after it,
    /// if the tokenizer is for one language.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_cached(text, &mut WordCache::new())
    }

    fn encode_cached(&self, text: &str, cache: &mut WordCache) -> Result<Vec<u32>> {
        let text = self.text_ids_cached(text, cache)?;
        let Frame { prefix, ends, suffix } = &self.frame;
        let end = ends.then(|| self.eos());
        Ok(prefix.iter().copied().chain(text).chain(end).chain(suffix.iter().copied()).collect())
    }

    /// The ids of a text alone.
    pub fn text_ids(&self, text: &str) -> Result<Vec<u32>> {
        self.text_ids_cached(text, &mut WordCache::new())
    }

    fn text_ids_cached(&self, text: &str, cache: &mut WordCache) -> Result<Vec<u32>> {
        Ok(match &*self.kind {
            Kind::Json(json) => json.encode(text, cache)?,
            Kind::Marian(marian) => {
                let (language, rest) = self.split_language(text);
                let mut ids: Vec<u32> = language.and_then(|token| self.id(token)).into_iter().collect();
                marian.encode(rest, &mut ids);
                ids
            }
        })
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

    /// The text of ids; skips special tokens and ids outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> String {
        let text: Vec<u32> = ids.iter().copied().filter(|id| !self.hidden.contains(id)).collect();
        match &*self.kind {
            Kind::Json(json) => json.decode(&text),
            Kind::Marian(marian) => marian.decode(&text),
        }
    }

    /// The pieces of a sentence, for display; without `</s>` and language tokens.
    pub fn pieces(&self, text: &str) -> Result<Vec<String>> {
        Ok(self.text_ids(text)?.into_iter().map(|id| self.piece(id).unwrap_or_default()).collect())
    }
}

pub(super) fn failed(error: impl ToString) -> Error {
    Error::Input { operation: "tokenizing", message: error.to_string() }
}
