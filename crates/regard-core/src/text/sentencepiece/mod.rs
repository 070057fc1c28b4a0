//! SentencePiece models (`.spm` files): splits text into pieces and joins them, exactly like the
//! `sentencepiece` library.
//!
//! The stages: the file is a protocol buffer ([`proto`]) with pieces, their scores and settings
//! ([`model`]) → compiled rules normalise the text ([`charsmap`], [`normaliser`]) → a unigram model
//! ([`unigram`]) or byte-pair encoding ([`bpe`]) finds the pieces, both with lookups in a trie
//! ([`trie`]) → unknown text is encoded as bytes, or each run of it is one piece.

mod bpe;
mod charsmap;
mod double_array;
mod model;
mod normaliser;
mod proto;
mod trie;
mod unigram;
mod write;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use super::EOS;
use super::marian::PieceList;
use crate::{Error, Result};
use bpe::Bpe;
use model::{Algorithm, Kind, ModelFile, Piece};
use normaliser::Normaliser;
use proto::Problem;
use trie::Trie;
use unigram::Unigram;

pub(super) use charsmap::compile as compile_rules;
pub(super) use model::{Algorithm as SpmAlgorithm, Kind as PieceKind, byte_of};
pub(super) use write::{NewModel, NewPiece};

/// The representation of a space within pieces.
const SPACE: &str = "▁";
/// The maximum size of a model, so that ids and offsets fit 32 bits.
const MAX_FILE_BYTES: usize = 1 << 30;

/// A SentencePiece model.
#[derive(Debug)]
pub struct SentencePiece {
    normaliser: Normaliser,
    /// Applied to decoded text; most models have none.
    denormaliser: Option<Normaliser>,
    vocabulary: Vocabulary,
    segmenter: Segmenter,
    byte_fallback: bool,
}

#[derive(Debug)]
enum Segmenter {
    Unigram(Unigram),
    Bpe(Bpe),
}

/// Pieces by their text.
#[derive(Debug)]
struct Vocabulary {
    all: Trie,
    kinds: Vec<Kind>,
    user_defined: Trie,
}

impl Vocabulary {
    fn new(pieces: &[Piece<'_>]) -> std::result::Result<Self, Problem> {
        let keys = |keep: fn(Kind) -> bool| {
            let numbered = pieces.iter().zip(0..).filter(|(piece, _)| keep(piece.kind));
            Trie::build(numbered.map(|(piece, id)| (piece.text, id)).collect())
        };
        let twice = |piece| format!("the piece {piece:?} is there twice");
        Ok(Vocabulary {
            all: keys(|_| true).map_err(twice)?,
            kinds: pieces.iter().map(|piece| piece.kind).collect(),
            user_defined: keys(|kind| kind == Kind::UserDefined).map_err(twice)?,
        })
    }

    fn user_defined(&self) -> &Trie {
        &self.user_defined
    }

    /// The number and kind of a piece.
    fn find(&self, piece: &str) -> Option<(u32, Kind)> {
        self.all.get(piece).map(|id| (id, self.kinds[id as usize]))
    }

    /// Calls `action` with the length and number of each piece that is a prefix of `text`, except
    /// unused ones.
    fn for_each_prefix(&self, text: &str, mut action: impl FnMut(usize, u32)) {
        let mut node = Trie::ROOT;
        for (i, byte) in text.bytes().enumerate() {
            let Some(child) = self.all.child(node, byte) else { return };
            node = child;
            if let Some(id) = self.all.value(node)
                && matches!(self.kinds[id as usize], Kind::Normal | Kind::UserDefined)
            {
                action(i + 1, id);
            }
        }
    }
}

impl SentencePiece {
    /// Reads the bytes of a `.spm` file; `path` is for messages.
    pub fn read(file: &[u8], path: &Path) -> Result<Self> {
        Self::build(file).map_err(|problem| Error::file(path, problem))
    }

    fn build(file: &[u8]) -> std::result::Result<Self, Problem> {
        if file.len() > MAX_FILE_BYTES {
            return Err(format!("longer than {MAX_FILE_BYTES} bytes: not a SentencePiece model"));
        }
        let file = ModelFile::read(file)?;
        let denormaliser = !file.denormaliser.charsmap.is_empty();
        Ok(SentencePiece {
            normaliser: Normaliser::new(&file.normaliser, file.whitespace_as_suffix)?,
            denormaliser: denormaliser.then(|| Normaliser::new(&file.denormaliser, false)).transpose()?,
            vocabulary: Vocabulary::new(&file.pieces)?,
            segmenter: match file.algorithm {
                Algorithm::Unigram => Segmenter::Unigram(Unigram::new(&file.pieces)),
                Algorithm::Bpe => Segmenter::Bpe(Bpe::new(&file.pieces)),
            },
            byte_fallback: file.byte_fallback,
        })
    }

    /// The pieces of a `.spm` file by number, with the end and the unknown token.
    pub(super) fn pieces(file: &[u8]) -> std::result::Result<PieceList, Problem> {
        let file = ModelFile::read(file)?;
        let find = |what: &str, fits: &dyn Fn(&Piece<'_>) -> bool| {
            let at = file.pieces.iter().position(fits).map(|at| at as u32);
            at.ok_or_else(|| format!("there is no piece {what}"))
        };
        Ok(PieceList {
            eos: find(EOS, &|piece| piece.kind == Kind::Control && piece.text == EOS)?,
            unk: find("for what is unknown", &|piece| piece.kind == Kind::Unknown)?,
            pieces: Arc::new(file.pieces.iter().map(|piece| piece.text).collect()),
        })
    }

    /// The pieces of a `.spm` file by number; `path` is for messages.
    pub fn piece_list(file: &[u8], path: &Path) -> Result<Vec<String>> {
        let file = ModelFile::read(file).map_err(|problem| Error::file(path, problem))?;
        Ok(file.pieces.iter().map(|piece| piece.text.to_owned()).collect())
    }

    /// The normalised text, as segmentation sees it.
    #[cfg(test)]
    pub(super) fn normalise(&self, text: &str) -> String {
        self.normaliser.normalise(text, None)
    }

    /// The pieces of a text.
    pub fn encode(&self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        self.for_each_piece(text, |piece| pieces.push(piece.to_owned()));
        pieces
    }

    /// Calls `action` with each piece of a text.
    pub(super) fn for_each_piece(&self, text: &str, mut action: impl FnMut(&str)) {
        let text = self.normaliser.normalise(text, Some(&self.vocabulary.user_defined));
        let ends = match &self.segmenter {
            Segmenter::Unigram(unigram) => unigram.segment(&text, &self.vocabulary),
            Segmenter::Bpe(bpe) => bpe.segment(&text, &self.vocabulary),
        };
        let mut ends = ends.into_iter().peekable();
        let mut start = 0;
        let mut spelt = String::new();
        while let Some((mut end, unknown)) = ends.next() {
            if unknown && self.byte_fallback {
                for byte in text[start..end].bytes() {
                    spelt.clear();
                    // Writing to a string cannot fail.
                    let _ = write!(spelt, "<0x{byte:02X}>");
                    action(&spelt);
                }
            } else {
                while let Some((next, _)) = ends.next_if(|&(_, next)| unknown && next) {
                    end = next;
                }
                action(&text[start..end]);
            }
            start = end;
        }
    }

    /// The text of pieces: skips control symbols, combines bytes, and replaces `▁` by a space.
    /// Keeps spaces at the ends, and the unknown piece.
    pub fn decode<'a>(&self, pieces: impl IntoIterator<Item = &'a str>) -> String {
        let (mut text, mut bytes) = (String::new(), Vec::new());
        for piece in pieces {
            let kind = self.vocabulary.find(piece).map(|(_, kind)| kind);
            if let (Some(Kind::Byte), Some(byte)) = (kind, byte_of(piece)) {
                bytes.push(byte);
                continue;
            }
            push_bytes(&mut text, &mut bytes);
            if kind != Some(Kind::Control) {
                text += piece;
            }
        }
        push_bytes(&mut text, &mut bytes);
        let text = text.replace(SPACE, " ");
        match &self.denormaliser {
            Some(denormaliser) => denormaliser.normalise(&text, None),
            None => text,
        }
    }
}

/// Appends bytes as text; each byte that is not part of a character becomes U+FFFD.
fn push_bytes(text: &mut String, bytes: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        *text += chunk.valid();
        chunk.invalid().iter().for_each(|_| text.push('\u{fffd}'));
    }
    bytes.clear();
}
