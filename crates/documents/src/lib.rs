//! Splits texts and documents into sentences for a translation model and reassembles the
//! translations, keeping everything that must not change.
//!
//! [`Document::plain`] and [`html::document`] split a text; a model translates its sentences;
//! [`Sentence::restore`] puts back URLs, placeholders and numbers that the model lost;
//! [`Document::render`] produces the translated text.
//!
//! [`Pipeline`] does all of this for lines, texts, HTML and [`files`], with one model or a chain of
//! them: [`pipeline`] creates the requests to the models, [`guard`] detects degenerate
//! translations, a [`Memory`] holds known translations, a [`Glossary`] holds terms, and
//! [`fn@confidence`] estimates the quality of a translation.

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
