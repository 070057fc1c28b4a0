//! Whole runs by the library: resumed to the bit, refused with a clear message, started from
//! another model; and the corpus they read.

mod check;
mod common;
mod corpus;
mod failures;
mod init;
mod multilingual;
mod records;
mod resume;
// The text that the tests of the tokenizers use.
#[path = "../../../regard-core/tests/sentences.rs"]
mod sentences;
mod terms;
