//! Batches: which sentences go together, and how they lie in memory.

mod packed;

pub use packed::{Batch, Packed};
