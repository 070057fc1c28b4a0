//! Training: the settings, the step over all cores, the loop around it, and the records of it that people look at.

pub mod autograd;
mod batches;
mod checkpoint;
pub mod config;
pub mod corpus;
mod exchange;
mod worker;
pub mod distributed;
mod log;
mod overlap;
mod plan;
mod precision;
mod prepare;
mod report;
mod run;
mod schedule;
mod settings;
mod snapshots;
mod start;
mod state;
mod step;
mod taped;
pub mod tensorboard;
mod validate;

pub use batches::{BatchSettings, plan_epoch};
pub use config::TrainConfig;
pub use overlap::Overlap;
pub use precision::{BF16_VARIABLE, Choice, choose_dtype};
pub use prepare::{check_shape, has_run};
pub use regard_core::formats::{Record, StepRecord, ValidationRecord, read_log};
pub use report::render as render_report;
pub use run::{End, Outcome, Progress};
pub use schedule::{Schedule, ScheduleKind};
pub use snapshots::{load_checkpoint, to_average};
pub use start::{resumed_config, run_rank0, train};
#[cfg(any(test, feature = "fuzzing"))]
pub use state::read_anything as read_any_checkpoint;
pub use step::{StepReport, StepSettings, Trainer};
pub use taped::{Dropouts, LayerOutputs, LossSettings, Taped, layer_outputs, loss, token_losses};
pub use worker::run_worker;
