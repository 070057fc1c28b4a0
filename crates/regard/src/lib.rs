//! The Transformer of "Attention Is All You Need" as a library, its modules in the order of the flow.

pub mod builtin;
mod error;

pub use error::{Error, Result};
