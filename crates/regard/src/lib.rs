//! The Transformer of "Attention Is All You Need" as a library, its modules in the order of the flow.

mod error;

/// BLEU, chrF and TER with the numbers and signatures of sacreBLEU, and bootstrap significance.
pub mod metrics;

pub use error::{Error, Result};
