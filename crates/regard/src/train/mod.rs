//! Training: the step over all cores, and the records that TensorBoard reads.

mod step;
pub mod tensorboard;

pub use step::{StepReport, StepSettings, Trainer};
