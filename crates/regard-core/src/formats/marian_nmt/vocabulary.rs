//! Marian's own vocabularies: `piece: id` in YAML or JSON, or one piece per line. They have no
//! subword model: text is split at spaces, after SentencePiece or BPE has produced the pieces.

use super::yaml::{self, Yaml};
use crate::{Error, Result};
use std::collections::HashMap;
use std::path::Path;

const EOS: &str = "</s>";
const UNK: &str = "<unk>";
/// The names of pieces 0 and 1 in older toolkits.
const OLD_EOS: &str = "eos";
const OLD_UNK: &str = "UNK";

/// The pieces of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarianVocabulary {
    /// By id; empty for an id that is not in the file.
    pieces: Vec<String>,
    ids: HashMap<String, u32>,
    eos: u32,
    unk: u32,
}

impl MarianVocabulary {
    /// Reads the text of a file. `path` is for messages, and its extension distinguishes YAML and
    /// JSON from lines.
    pub fn read(text: &str, path: &Path) -> Result<Self> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = crate::formats::compressed::without_ending(name);
        let is_yaml = [".yml", ".yaml", ".json"].iter().any(|ending| name.ends_with(ending));
        let parsed = if is_yaml { Self::from_yaml(text) } else { Self::from_lines(text) };
        parsed.map_err(|message| Error::file(path, message))
    }

    /// Reads `piece: id` pairs.
    pub fn from_yaml(text: &str) -> std::result::Result<Self, String> {
        let pairs = yaml::parse(text)?;
        // Ids may have gaps, but no more than there are pieces: a large number in the file must not
        // cause a large allocation.
        let most = 2 * pairs.len() + 2;
        let mut found = Vec::with_capacity(pairs.len());
        for (piece, value) in pairs {
            let id = value.text().and_then(|id| id.parse::<usize>().ok()).filter(|&id| id < most);
            let id = id.ok_or_else(|| wrong_id(&piece, &value, most))?;
            found.push((piece, id));
        }
        Self::new(found, true)
    }

    /// Reads one piece per line; the first has id 0.
    pub fn from_lines(text: &str) -> std::result::Result<Self, String> {
        let pieces = text.lines().map(|line| line.trim_end_matches('\r').to_owned());
        Self::new(pieces.zip(0..).collect(), false)
    }

    fn new(pairs: Vec<(String, usize)>, is_yaml: bool) -> std::result::Result<Self, String> {
        let size = pairs.iter().map(|(_, id)| id + 1).max().ok_or("the vocabulary is empty")?;
        let mut pieces = vec![String::new(); size];
        let mut ids = HashMap::with_capacity(pairs.len());
        let mut named = vec![false; size];
        for (piece, id) in pairs {
            if piece.is_empty() && !is_yaml {
                return Err(format!("line {} is empty; a piece is expected on every line", id + 1));
            }
            if std::mem::replace(&mut named[id], true) {
                return Err(format!("the pieces {:?} and {piece:?} have the same id {id}", pieces[id]));
            }
            let number =
                u32::try_from(id).map_err(|_| "the vocabulary has more pieces than 32 bits count")?;
            if ids.insert(piece.clone(), number).is_some() {
                return Err(format!("the piece {piece:?} is there twice"));
            }
            pieces[id] = piece;
        }
        // As in Marian: in YAML, ids 0 and 1 are the end and the unknown token if they are unused
        // or have the old names.
        let find = |name: &str, old: &str, id: u32| match pieces.get(id as usize) {
            Some(piece) if is_yaml && (piece.is_empty() || piece == old) => Ok(id),
            _ => ids.get(name).copied().ok_or_else(|| format!("there is no piece {name:?}")),
        };
        let (eos, unk) = (find(EOS, OLD_EOS, 0)?, find(UNK, OLD_UNK, 1)?);
        Ok(MarianVocabulary { pieces, ids, eos, unk })
    }

    /// The number of pieces.
    pub fn size(&self) -> usize {
        self.pieces.len()
    }

    /// The end token.
    pub fn eos(&self) -> u32 {
        self.eos
    }

    /// The unknown token.
    pub fn unk(&self) -> u32 {
        self.unk
    }

    /// The id of a piece, or that of the unknown token.
    pub fn id(&self, piece: &str) -> u32 {
        self.ids.get(piece).copied().unwrap_or(self.unk)
    }

    /// The piece of an id.
    pub fn piece(&self, id: u32) -> Option<&str> {
        self.pieces.get(id as usize).map(String::as_str)
    }
}

fn wrong_id(piece: &str, value: &Yaml, most: usize) -> String {
    format!("the piece {piece:?} has the id {}; a number below {most} is expected", value.shown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_json_and_lines_are_read() {
        let yaml = MarianVocabulary::from_yaml("\"</s>\": 0\n<unk>: 1\n▁a: 2\n\"b:\": 3\n").unwrap();
        let json = MarianVocabulary::from_yaml(r#"{"</s>": 0, "<unk>": 1, "▁a": 2, "b:": 3}"#).unwrap();
        let lines = MarianVocabulary::from_lines("</s>\n<unk>\n▁a\nb:\n").unwrap();
        assert_eq!(yaml, json);
        assert_eq!(yaml, lines);
        assert_eq!((yaml.size(), yaml.eos(), yaml.unk()), (4, 0, 1));
        assert_eq!(["▁a", "b:", "c", "</s>"].map(|piece| yaml.id(piece)), [2, 3, 1, 0]);
        assert_eq!([3, 2, 77].map(|id| yaml.piece(id)), [Some("b:"), Some("▁a"), None]);
        let path = Path::new("vocab.yml.gz");
        assert_eq!(MarianVocabulary::read("</s>: 0\n<unk>: 1\n", path).unwrap().size(), 2);
        assert_eq!(MarianVocabulary::read("</s>: 0\n</s>\n<unk>\n", Path::new("v.txt")).unwrap().eos(), 1);
        // Ids 0 and 1 of older vocabularies, with their old names or without a name.
        let old = MarianVocabulary::from_yaml("eos: 0\nUNK: 1\na: 2").unwrap();
        assert_eq!((old.eos(), old.unk()), (0, 1));
        let gaps = MarianVocabulary::from_yaml("a: 2\nb: 3").unwrap();
        assert_eq!((gaps.size(), gaps.eos(), gaps.unk(), gaps.piece(0)), (4, 0, 1, Some("")));
    }

    #[test]
    fn vocabularies_that_lie_are_refused() {
        for (text, want) in [
            ("", "the vocabulary is empty"),
            ("a: 0\nb: 1\n", "there is no piece \"</s>\""),
            ("</s>: 0\n<unk>: 1\na: 99\n", "the piece \"a\" has the id \"99\"; a number below 8 is expected"),
            ("</s>: 0\n<unk>: x\n", "has the id \"x\""),
            ("</s>: 0\n<unk>: 0\n", "the pieces \"</s>\" and \"<unk>\" have the same id 0"),
            ("</s>: 0\n</s>: 1\n", "the piece \"</s>\" is there twice"),
            ("</s>: [0]\n", "has the id [\"0\"]"),
        ] {
            let message = MarianVocabulary::from_yaml(text).unwrap_err();
            assert!(message.contains(want), "{text:?}: {message}");
        }
        assert!(MarianVocabulary::from_lines("</s>\n\n<unk>\n").unwrap_err().contains("line 2 is empty"));
    }
}
