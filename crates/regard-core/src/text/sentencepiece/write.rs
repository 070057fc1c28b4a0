//! Writes `.spm` files.

use super::model::{Algorithm, Kind};
use super::proto::Message;

/// A piece to write; its index is its id.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::text) struct NewPiece {
    pub(in crate::text) text: String,
    pub(in crate::text) score: f32,
    pub(in crate::text) kind: Kind,
}

/// A model with byte fallback, a space before the text and normalised spaces.
#[derive(Debug)]
pub(in crate::text) struct NewModel {
    pub(in crate::text) algorithm: Algorithm,
    pub(in crate::text) pieces: Vec<NewPiece>,
    /// The compiled rules of the normalisation.
    pub(in crate::text) charsmap: &'static [u8],
}

impl NewModel {
    /// The bytes of the file.
    pub(in crate::text) fn write(&self) -> Vec<u8> {
        let mut model = Message::default();
        for NewPiece { text, score, kind } in &self.pieces {
            let piece = Message::default().bytes(1, text.as_bytes()).float(2, *score);
            model = model.message(1, piece.integer(3, kind.number()));
        }
        let id = |kind| self.pieces.iter().position(|piece| piece.kind == kind);
        let id = |kind| id(kind).and_then(|id| i64::try_from(id).ok()).unwrap_or(-1);
        let algorithm = match self.algorithm {
            Algorithm::Unigram => 1,
            Algorithm::Bpe => 2,
        };
        // The processor finds `</s>` and `<unk>` by their text; the ids are informational.
        let trainer = Message::default()
            .integer(3, algorithm)
            .integer(4, self.pieces.len() as u64)
            .boolean(35, true)
            .signed(40, id(Kind::Unknown))
            .signed(41, -1)
            .signed(42, id(Kind::Control))
            .signed(43, -1);
        let normalizer = Message::default()
            .bytes(1, b"nfc")
            .bytes(2, self.charsmap)
            .boolean(3, true)
            .boolean(4, true)
            .boolean(5, true);
        model.message(2, trainer).message(3, normalizer).finish()
    }
}
