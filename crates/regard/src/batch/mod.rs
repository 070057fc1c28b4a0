//! Batches: which sentences go together, and how they lie in memory.

mod packed;
mod plan;
mod steps;

pub use packed::{Batch, Packed};
pub use plan::{BatchSettings, plan_epoch};
pub(crate) use steps::TimeSteps;
