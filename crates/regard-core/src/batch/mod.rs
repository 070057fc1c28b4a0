//! Contiguous sentences in memory, and the order in which a recurrent layer reads them.

mod packed;
mod steps;
mod unfold;

pub use packed::{Batch, Packed};
pub use steps::{TimeSteps, gru_states};
pub use unfold::{unfold, unfold_pairs};
