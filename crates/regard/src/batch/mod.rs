//! Batches: which sentences go together, and how they lie in memory.

mod packed;
mod plan;

pub use packed::{Batch, Packed};
pub use plan::{BatchSettings, plan_epoch};
