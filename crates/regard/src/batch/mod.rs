//! Pairs to batches.

mod plan;

pub use plan::{BatchSettings, plan_epoch};
