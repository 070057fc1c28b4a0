//! A text on its way through a translator: cut into sentences, with everything kept that must not
//! change, and put together again.
//!
//! [`Document::plain`] and [`html::document`] take a text apart; the sentences go through a model;
//! [`Sentence::restore`] puts back what the model lost of addresses, placeholders and numbers;
//! [`Document::render`] makes the translated text.
//!
//! [`translate_lines`] does all of this for lines of plain text, [`files`] for whole files.

pub mod files;
pub mod html;

mod document;
mod lines;
mod protect;
mod restore;
mod texts;
mod words;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

#[cfg(test)]
mod linear;
#[cfg(test)]
mod testing;

pub use document::{Document, Rendered, Sentence};
pub use lines::translate_lines;
pub use texts::Texts;
pub use words::{Translation, Word};
