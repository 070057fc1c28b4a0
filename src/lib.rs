//! Regard: the Transformer of "Attention Is All You Need", from raw parallel text to a translator.
//!
//! This crate is the front of the workspace. Without default features it is the library alone: what translation needs, and
//! [`metrics`]. The feature `train` adds `regard::train`; `cli`, on by default, adds the command `regard`.

pub use regard_core::translator::Translator;
pub use regard_core::{
    Error, Isa, IsaError, Key, Products, Result, batch, decode, formats, model, replace, text, translator,
};
pub use regard_metrics as metrics;
#[cfg(feature = "train")]
pub use regard_train as train;
