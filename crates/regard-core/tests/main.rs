//! The formats of model folders and tokenizers, and the search, against the programs that define them.

mod export;
mod formats;
mod generate;
mod sentences;
mod sentencepiece;
mod text;
mod weights;
