//! From raw text to ids and back.
//!
//! The stages, all of them written into one `tokenizer.json` that Python's `tokenizers` and
//! `transformers` read: [`normalise`] → split into words → split words into sub-words → ids →
//! `</s>` at the end.
//!
//! * **Normalisation** is mild; see [`normalise`]. For a tokenizer trained here,
//!   `decode(encode(x)) == normalise(x)` holds for every string.
//! * **Words** start at a space, which is written `▁` and belongs to the word after it. A run of
//!   letters, a run of digits and a run of anything else (punctuation, symbols) are different
//!   words, so that "dog." and "dog" share a piece. Chinese and Japanese characters are not joined
//!   with letters of other scripts.
//! * **Sub-words** are found by BPE or a unigram model. A character that the vocabulary lacks
//!   becomes its UTF-8 bytes, `<0x00>` to `<0xFF>`: nothing is ever unknown.
//! * **Ids** follow MarianMT: `</s>` is 0, `<unk>` 1, the bytes 2 to 257, `<pad>` the last id.
//!   `<pad>` also starts the decoder. Text that merely looks like one of them (`</s>`, `<0x41>`) is
//!   text.
//!
//! Published MarianMT folders have other files, which are read and kept unchanged:
//! [`SentencePiece`] models that split text into pieces, and a `vocab.json` with the ids of pieces.
//! A leading language token (`>>de<<`) is one piece.
//!
//! Vocabulary training and BPE-dropout require the feature `tokenizer-training`.

mod as_sentencepiece;
#[cfg(feature = "tokenizer-training")]
mod bpe_dropout;
mod expansion;
mod json;
mod language_tokens;
mod marian;
mod pair;
mod pieces;
mod pipeline;
mod sentencepiece;
mod sentences;
mod stems;
mod term_tokens;
mod tokenizer;
#[cfg(feature = "tokenizer-training")]
mod train;

pub use as_sentencepiece::SPM_MULTIPLE;
pub use language_tokens::{LanguagePlacement, LanguageToken, LanguageTokens};
pub use marian::PieceList;
pub use pair::{SpmFile, TokenizerPair};
pub use pieces::Pieces;
pub use pipeline::{hugging_face_config, normalise};
pub use sentencepiece::SentencePiece;
pub use sentences::{sentence_ranges, trimmed};
pub use stems::{fold, is_spaced, share_stem};
pub use term_tokens::{AnnotatedIds, TermIds, TermTokens};
pub use tokenizer::Tokenizer;
#[cfg(feature = "tokenizer-training")]
pub use train::{Segmentation, TextSample, TokenizerSettings, vocabulary_size_for};

/// Ends every sentence; id 0 in a vocabulary trained here.
pub const EOS: &str = "</s>";
/// Never produced by a vocabulary trained here, but the format requires it; id 1.
pub const UNK: &str = "<unk>";
/// Starts the decoder; the last id of a vocabulary trained here.
pub const PAD: &str = "<pad>";
