//! Tokenizers from `.spm` files.
//!
//! In published MarianMT folders, `source.spm` and `target.spm` split text into pieces and
//! `vocab.json` has their ids; the piece numbers inside the `.spm` files are not used. In folders
//! of Marian itself and of Firefox, the id of a piece is its number in the `.spm` file, or comes
//! from a vocabulary beside it ([`PieceList`]). Folders of other families have one `.spm` file for
//! all languages; `formats::families` assembles their ids.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};
use xxhash_rust::xxh3::Xxh3;

use super::pieces::Pieces;
use super::sentencepiece::SentencePiece;
use super::tokenizer::Special;
use super::{EOS, PAD, UNK};
use crate::replace::replace;
use crate::{Error, Result, bounded};

const SOURCE: &str = "source.spm";
const TARGET: &str = "target.spm";
const CONFIG: &str = "tokenizer_config.json";
/// The file of the joint vocabulary, or of the source's.
pub(super) const VOCABULARY: &str = "vocab.json";
/// The file of the target's vocabulary, if it is separate.
pub(super) const TARGET_VOCABULARY: &str = "target_vocab.json";

/// One side of a folder.
pub(super) struct MarianTokenizer {
    model: SentencePiece,
    /// The `.spm` file as read.
    file: Vec<u8>,
    vocabulary: Arc<Vocabulary>,
}

/// The pieces of a vocabulary by id, for tokenizers without a `vocab.json`. Such vocabularies have
/// no padding: it gets the id after the last.
#[derive(Clone, Debug)]
pub struct PieceList {
    /// By id; empty if an id has no piece.
    pub pieces: Arc<Pieces>,
    /// The id of the end token.
    pub eos: u32,
    /// The id of the unknown token.
    pub unk: u32,
}

impl PieceList {
    /// The placeholder in a `tokenizer.json` for an id without a piece. No text matches it, because
    /// text is split at spaces.
    pub fn placeholder(id: u32) -> String {
        format!(" {id}")
    }

    /// A `tokenizer.json` that splits text at spaces into these pieces.
    pub fn to_json(&self) -> String {
        let vocabulary = Vocabulary::new(self.clone());
        let pieces = vocabulary.pieces.iter().zip(0u32..).map(|(piece, id)| {
            let found = vocabulary.id(piece) == Some(id);
            (if found { piece.to_owned() } else { Self::placeholder(id) }, id.into())
        });
        let ids: serde_json::Map<String, Value> = pieces.collect();
        let special = |(content, id): (&str, u32)| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true})
        };
        let Special { eos, unk, pad, .. } = vocabulary.special;
        let added: Vec<Value> = [(EOS, eos), (UNK, unk), (PAD, pad)].map(special).into();
        json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
            "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
            "model": {"type": "WordLevel", "vocab": ids, "unk_token": UNK},
        })
        .to_string()
    }
}

/// Pieces and their ids.
struct Vocabulary {
    /// The `vocab.json` as read; otherwise it is generated on demand.
    file: Option<Vec<u8>>,
    /// A published vocabulary may have ids without a piece.
    pieces: Pieces,
    special: Special,
}

/// Whether a folder has any of the files.
pub(super) fn is_in(folder: &Path) -> bool {
    [SOURCE, TARGET, VOCABULARY].iter().any(|file| folder.join(file).exists())
}

/// Reads both sides of a folder. They share a vocabulary unless `tokenizer_config.json` sets
/// `separate_vocabs`.
pub(super) fn load(folder: &Path) -> Result<(MarianTokenizer, MarianTokenizer)> {
    let separate = has_separate_vocabularies(&folder.join(CONFIG))?;
    let needed: &[&str] = match separate {
        true => &[SOURCE, TARGET, VOCABULARY, TARGET_VOCABULARY],
        false => &[SOURCE, TARGET, VOCABULARY],
    };
    if let Some(missing) = needed.iter().find(|file| !folder.join(file).exists()) {
        let message =
            format!("is missing; a tokenizer needs {}, or else a tokenizer.json", needed.join(", "));
        return Err(Error::file(folder.join(missing), message));
    }
    let joint = Arc::new(Vocabulary::load(&folder.join(VOCABULARY))?);
    let target = match separate {
        true => Arc::new(Vocabulary::load(&folder.join(TARGET_VOCABULARY))?),
        false => joint.clone(),
    };
    Ok((
        MarianTokenizer::load(folder.join(SOURCE), joint)?,
        MarianTokenizer::load(folder.join(TARGET), target)?,
    ))
}

/// Writes the files unchanged, each atomically.
pub(super) fn save(source: &MarianTokenizer, target: &MarianTokenizer, folder: &Path) -> Result<()> {
    let write = |name: &str, bytes: &[u8]| replace(&folder.join(name), |to| to.write_all(bytes));
    write(SOURCE, &source.file)?;
    write(TARGET, &target.file)?;
    write(VOCABULARY, &source.vocabulary.json())?;
    match source.shares_vocabulary(target) {
        true => super::pair::remove(&folder.join(TARGET_VOCABULARY)),
        false => write(TARGET_VOCABULARY, &target.vocabulary.json()),
    }
}

fn has_separate_vocabularies(path: &Path) -> Result<bool> {
    if !path.exists() {
        return Ok(false);
    }
    let text = bounded::read(path, 4 << 20)?;
    let config: Value =
        serde_json::from_slice(&text).map_err(|e| Error::file(path, format!("not JSON: {e}")))?;
    match config.get("separate_vocabs") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(separate)) => Ok(*separate),
        Some(other) => {
            Err(Error::file(path, format!("separate_vocabs: {other}, but true or false is expected")))
        }
    }
}

impl MarianTokenizer {
    fn load(path: PathBuf, vocabulary: Arc<Vocabulary>) -> Result<Self> {
        let file = bounded::read(&path, bounded::MAX_TEXT_BYTES)?;
        Ok(MarianTokenizer { model: SentencePiece::read(&file, &path)?, file, vocabulary })
    }

    /// Reads the bytes of a `.spm` file, whose own piece numbers are the ids unless `pieces` has
    /// others; `path` is for messages.
    pub(super) fn from_spm(file: Vec<u8>, path: &Path, pieces: Option<PieceList>) -> Result<Self> {
        let model = SentencePiece::read(&file, path)?;
        let pieces = match pieces {
            Some(pieces) => pieces,
            None => SentencePiece::pieces(&file).map_err(|problem| Error::file(path, problem))?,
        };
        Ok(MarianTokenizer { model, file, vocabulary: Arc::new(Vocabulary::new(pieces)) })
    }

    /// Reads the bytes of a `.spm` file whose pieces have the given ids; the paths are for
    /// messages.
    pub(super) fn with_ids(file: Vec<u8>, path: &Path, ids: Vec<(String, u32)>, of: &Path) -> Result<Self> {
        let model = SentencePiece::read(&file, path)?;
        Ok(MarianTokenizer { model, file, vocabulary: Arc::new(Vocabulary::from_entries(None, ids, of)?) })
    }

    /// Whether the ids are the piece numbers of the `.spm` file, with padding after the last.
    pub(super) fn has_own_ids(&self) -> bool {
        let Ok(own) = SentencePiece::pieces(&self.file) else { return false };
        let own = Vocabulary::new(own);
        own.pieces == self.vocabulary.pieces && own.special.size == self.vocabulary.special.size
    }

    /// The `.spm` file as read.
    pub(super) fn spm(&self) -> &[u8] {
        &self.file
    }

    pub(super) fn shares_vocabulary(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.vocabulary, &other.vocabulary)
    }

    pub(super) fn special(&self) -> Special {
        self.vocabulary.special
    }

    pub(super) fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        for file in [Some(&self.file), self.vocabulary.file.as_ref()].into_iter().flatten() {
            hash.update(&(file.len() as u64).to_le_bytes());
            hash.update(file);
        }
        if self.vocabulary.file.is_none() {
            self.vocabulary.pieces.iter().for_each(|piece| hash.update(piece.as_bytes()));
        }
        hash.digest()
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.file == other.file && self.vocabulary.pieces == other.vocabulary.pieces
    }

    pub(super) fn id(&self, piece: &str) -> Option<u32> {
        self.vocabulary.id(piece)
    }

    pub(super) fn piece(&self, id: u32) -> Option<&str> {
        self.vocabulary.pieces.get(id)
    }

    /// Appends the ids of a text, without an end token.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let unknown = self.special().unk;
        self.model.for_each_piece(text, |piece| ids.push(self.id(piece).unwrap_or(unknown)));
    }

    /// The text of ids, without spaces at its ends, as in `transformers`.
    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let special = self.special();
        let pieces = ids.iter().filter(|&&id| !special.has(id)).filter_map(|&id| self.piece(id));
        let text = self.model.decode(pieces);
        text.trim_matches(is_python_space).to_owned()
    }
}

/// What Python strips: white space, and the four ASCII separators.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

impl Vocabulary {
    fn new(pieces: PieceList) -> Self {
        let PieceList { pieces, eos, unk } = pieces;
        let pad = pieces.len() as u32;
        let special = Special { size: pieces.len() + 1, eos, unk, pad };
        let named = pieces.iter().zip(0..).map(|(piece, id)| match id {
            _ if id == eos => EOS,
            _ if id == unk => UNK,
            _ => piece,
        });
        Vocabulary { file: None, pieces: named.chain([PAD]).collect(), special }
    }

    fn id(&self, piece: &str) -> Option<u32> {
        self.pieces.id(piece)
    }

    /// The `vocab.json`.
    fn json(&self) -> Cow<'_, [u8]> {
        if let Some(file) = &self.file {
            return Cow::Borrowed(file);
        }
        let named = self.pieces.iter().zip(0u32..).filter(|(piece, _)| !piece.is_empty());
        let lines: Vec<String> = named.map(|(piece, id)| format!("{}: {id}", Value::from(piece))).collect();
        Cow::Owned(format!("{{{}}}\n", lines.join(",\n")).into_bytes())
    }

    fn load(path: &Path) -> Result<Self> {
        let file = bounded::read(path, bounded::MAX_TEXT_BYTES)?;
        let entries = read_entries(&file, path)?;
        Self::from_entries(Some(file), entries, path)
    }

    /// A vocabulary from pieces and their ids; `path` is for messages.
    fn from_entries(file: Option<Vec<u8>>, mut entries: Vec<(String, u32)>, path: &Path) -> Result<Self> {
        // A piece that occurs twice has the last of its ids, as in every JSON reader.
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let of_pieces = entries.chunk_by(|(a, _), (b, _)| a == b).filter_map(|same| same.last());
        let entries: Vec<(&str, u32)> = of_pieces.map(|(piece, id)| (piece.as_str(), *id)).collect();
        let size = entries.iter().map(|&(_, id)| id as usize + 1).max().unwrap_or(0);
        // Gaps are allowed, but not implausibly large ids, because a table of all ids is allocated.
        if size / 2 > entries.len() {
            let message =
                format!("the largest id is {}, but there are only {} pieces", size - 1, entries.len());
            return Err(Error::file(path, message));
        }
        let mut pieces = vec![""; size];
        for (piece, id) in entries {
            let other = std::mem::replace(&mut pieces[id as usize], piece);
            if !other.is_empty() {
                let message =
                    format!("the pieces {other:?} and {piece:?} have the same id, {id}; each needs its own");
                return Err(Error::file(path, message));
            }
        }
        let pieces: Pieces = pieces.into_iter().collect();
        let special = Special::find(size, |token| pieces.id(token), path)?;
        Ok(Vocabulary { file, pieces, special })
    }
}

/// The pairs of a `vocab.json` in the order of the file; `path` is for messages.
pub(super) fn read_entries(file: &[u8], path: &Path) -> Result<Vec<(String, u32)>> {
    let Entries(entries) = serde_json::from_slice(file)
        .map_err(|e| Error::file(path, format!("not a vocabulary, which is {{\"piece\": id, …}}: {e}")))?;
    Ok(entries)
}

/// The pairs of a JSON object in the order of the file.
struct Entries(Vec<(String, u32)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of pieces and ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Entries, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(json: &str) -> Result<Vocabulary> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.json");
        fs::write(&path, json).unwrap();
        Vocabulary::load(&path)
    }

    #[test]
    fn a_vocabulary_may_have_gaps_and_repetitions() {
        let vocabulary = read(r#"{"</s>": 0, "a": 7, "a": 2, "<unk>": 1, "c": 3, "<pad>": 5}"#).unwrap();
        assert_eq!(vocabulary.special.size, 6);
        assert_eq!((vocabulary.special.eos, vocabulary.special.unk, vocabulary.special.pad), (0, 1, 5));
        assert_eq!((vocabulary.id("a"), vocabulary.id("c")), (Some(2), Some(3)));
        assert!(vocabulary.pieces.iter().eq(["</s>", "<unk>", "a", "c", "", "<pad>"]));
    }

    #[test]
    fn pieces_of_no_file_get_padding_and_are_written_as_a_vocabulary() {
        let pieces = Arc::new(["eos", "UNK", "▁a", "", "<pad>", "\"b"].into_iter().collect());
        let made = Vocabulary::new(PieceList { pieces, eos: 0, unk: 1 });
        let special = made.special;
        assert_eq!((special.size, special.eos, special.unk, special.pad), (7, 0, 1, 6));
        assert_eq!(["</s>", "▁a", "<pad>"].map(|piece| made.id(piece)), [Some(0), Some(2), Some(6)]);
        let again = read(std::str::from_utf8(&made.json()).unwrap()).unwrap();
        assert_eq!((again.special.size, again.special.pad, again.id("\"b")), (7, 6, Some(5)));
        assert_eq!(again.pieces.get(0), Some("</s>"));
    }

    #[test]
    fn a_broken_vocabulary_is_refused() {
        for (json, want) in [
            ("", "not a vocabulary, which is {\"piece\": id, …}: EOF"),
            (
                "[1]",
                "not a vocabulary, which is {\"piece\": id, …}: invalid type: sequence, expected an object of",
            ),
            (
                r#"{"a": -1}"#,
                "not a vocabulary, which is {\"piece\": id, …}: invalid value: integer `-1`, expected u32",
            ),
            (r#"{"a": 1e9}"#, "not a vocabulary, which is {\"piece\": id, …}: invalid type: floating point"),
            (r#"{"a": 4294967295}"#, "the largest id is 4294967295, but there are only 1 pieces"),
            (
                r#"{"</s>": 0, "<unk>": 1, "b": 2, "c": 2, "<pad>": 3}"#,
                "the pieces \"b\" and \"c\" have the same id, 2; each needs its own",
            ),
            (r#"{"</s>": 0, "<pad>": 1}"#, "the vocabulary lacks <unk>; needed are </s>, <unk> and <pad>"),
            ("{}", "the vocabulary lacks </s> and <unk> and <pad>"),
        ] {
            let error = read(json).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(&format!("vocab.json: {want}")), "{error}");
        }
    }
}
