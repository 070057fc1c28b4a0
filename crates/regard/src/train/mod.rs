//! Training: the step over all cores.

mod step;

pub use step::{StepReport, StepSettings, Trainer};
