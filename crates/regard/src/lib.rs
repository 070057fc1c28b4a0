//! The Transformer of "Attention Is All You Need" as a library, its modules in the order of the flow.

/// Raw text to ids and back: the normalisation, training a tokenizer, `tokenizer.json`.
pub mod text;

/// Parallel files to a memory-mapped cache of ids: reading, filters, the summary of what was dropped.
pub mod corpus;

/// Pairs to batches: which pairs make a batch and in what order, by seed and epoch.
pub mod batch;

mod counter;
mod error;

pub use error::{Error, Result};
