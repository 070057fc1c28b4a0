//! The Transformer of "Attention Is All You Need" as a library, its modules in the order of the flow.

mod error;

pub mod metrics;

pub use error::{Error, Result};
