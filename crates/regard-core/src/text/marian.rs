//! The tokenizers of published MarianMT folders: `source.spm` and `target.spm` cut text into pieces, `vocab.json` says
//! which id a piece has. The numbers inside the `.spm` files are not used.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::sentencepiece::SentencePiece;
use super::tokenizer::Special;
use crate::replace::replace;
use crate::{Error, Result, bounded};

const SOURCE: &str = "source.spm";
const TARGET: &str = "target.spm";
const CONFIG: &str = "tokenizer_config.json";
/// File of the joint vocabulary, or of the source's.
pub(super) const VOCABULARY: &str = "vocab.json";
/// File of the target's vocabulary, if it is a separate one.
pub(super) const TARGET_VOCABULARY: &str = "target_vocab.json";

/// One side of a folder.
pub(super) struct MarianTokenizer {
    model: SentencePiece,
    /// The `.spm` file as it was read.
    file: Vec<u8>,
    vocabulary: Arc<Vocabulary>,
}

/// Pieces and their ids.
struct Vocabulary {
    /// The file as it was read.
    file: Vec<u8>,
    ids: HashMap<String, u32>,
    /// The piece of each id; a published vocabulary may have gaps.
    pieces: Vec<Option<String>>,
    special: Special,
}

/// Whether a folder has any of the files.
pub(super) fn is_in(folder: &Path) -> bool {
    [SOURCE, TARGET, VOCABULARY].iter().any(|file| folder.join(file).exists())
}

/// Reads both sides of a folder. They share a vocabulary unless `tokenizer_config.json` says `separate_vocabs`.
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

/// Writes the files as they were read, each beside its place and renamed.
pub(super) fn save(source: &MarianTokenizer, target: &MarianTokenizer, folder: &Path) -> Result<()> {
    let write = |name: &str, bytes: &[u8]| replace(&folder.join(name), |to| to.write_all(bytes));
    write(SOURCE, &source.file)?;
    write(TARGET, &target.file)?;
    write(VOCABULARY, &source.vocabulary.file)?;
    match source.shares_vocabulary(target) {
        true => super::pair::remove(&folder.join(TARGET_VOCABULARY)),
        false => write(TARGET_VOCABULARY, &target.vocabulary.file),
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
        let file = bounded::read(&path, bounded::LARGEST_TEXT)?;
        Ok(MarianTokenizer { model: SentencePiece::read(&file, &path)?, file, vocabulary })
    }

    pub(super) fn shares_vocabulary(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.vocabulary, &other.vocabulary)
    }

    pub(super) fn special(&self) -> Special {
        self.vocabulary.special
    }

    pub(super) fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        for file in [&self.file, &self.vocabulary.file] {
            hash.update(&(file.len() as u64).to_le_bytes());
            hash.update(file);
        }
        hash.digest()
    }

    pub(super) fn id(&self, piece: &str) -> Option<u32> {
        self.vocabulary.ids.get(piece).copied()
    }

    pub(super) fn piece(&self, id: u32) -> Option<&str> {
        self.vocabulary.pieces.get(id as usize)?.as_deref()
    }

    /// Appends the ids of a text, without an end.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let unknown = self.special().unk;
        self.model.for_each_piece(text, |piece| ids.push(self.id(piece).unwrap_or(unknown)));
    }

    /// The text of ids, without spaces at its ends, as `transformers` decodes it.
    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let special = self.special();
        let pieces = ids.iter().filter(|&&id| !special.has(id)).filter_map(|&id| self.piece(id));
        let text = self.model.decode(pieces);
        text.trim_matches(is_python_space).to_owned()
    }
}

/// What Python strips: white space, and the four separators of ASCII.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

impl Vocabulary {
    fn load(path: &Path) -> Result<Self> {
        let file = bounded::read(path, bounded::LARGEST_TEXT)?;
        let Entries(entries) = serde_json::from_slice(&file).map_err(|e| {
            Error::file(path, format!("not a vocabulary, which is {{\"piece\": id, …}}: {e}"))
        })?;
        let ids: HashMap<String, u32> = entries.iter().cloned().collect();
        let size = ids.values().max().map_or(0, |&id| id as usize + 1);
        // Gaps are allowed, an id that no vocabulary could have is not: a table of all ids is made.
        if size / 2 > ids.len() {
            let message = format!("the largest id is {}, but there are only {} pieces", size - 1, ids.len());
            return Err(Error::file(path, message));
        }
        let special = Special::find(size, |token| ids.get(token).copied(), path)?;
        let mut pieces: Vec<Option<String>> = vec![None; size];
        for (piece, id) in entries {
            // A piece that is there twice has the last of its ids, as in every reader of JSON.
            if ids.get(&piece) == Some(&id) {
                let message = |other| {
                    format!("the pieces {other:?} and {piece:?} have the same id, {id}; each needs its own")
                };
                if let Some(other) = pieces[id as usize].as_ref().filter(|other| **other != piece) {
                    return Err(Error::file(path, message(other)));
                }
                pieces[id as usize] = Some(piece);
            }
        }
        Ok(Vocabulary { file, ids, pieces, special })
    }
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
        assert_eq!((vocabulary.ids["a"], vocabulary.ids["c"]), (2, 3));
        let pieces: Vec<Option<&str>> = vocabulary.pieces.iter().map(Option::as_deref).collect();
        assert_eq!(pieces, [Some("</s>"), Some("<unk>"), Some("a"), Some("c"), None, Some("<pad>")]);
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
