//! From a text to the sentences that a model translates, and back: everything that must not change
//! is kept.
//!
//! [`Document::plain`] and [`html::document`] take a text apart; the sentences go through a model;
//! [`Sentence::restore`] puts back what the model lost of addresses, placeholders and numbers;
//! [`Document::render`] makes the translated text.
//!
//! [`Pipeline`] does all of this for lines, texts, HTML and [`files`], with one model or several in
//! a row: [`pipeline`] makes the requests to the models, [`guard`] notices degenerate translations,
//! a [`Memory`] has known ones, a [`Glossary`] has terms, and [`fn@confidence`] says how good a
//! translation is likely to be.

pub mod files;
pub mod glossary;
pub mod guard;
pub mod html;
pub mod language;
pub mod pipeline;

mod confidence;
mod document;
mod lines;
mod memory;
mod markup;
mod message;
mod protect;
mod restore;
mod segment;
mod texts;
mod translate;
mod words;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

#[cfg(test)]
mod linear;
#[cfg(test)]
mod testing;

pub use confidence::confidence;
pub use document::{Document, Rendered, Sentence};
pub use glossary::{Glossary, GlossaryError, GlossaryMethod, TermReport};
pub use guard::{Fault, Guarded};
pub use lines::{TranslatedLine, translate_lines};
pub use memory::{Match, Memory};
pub use texts::Texts;
pub use translate::{Pipeline, PipelineError, Report, TranslatedText};
pub use words::{Translation, Word};
