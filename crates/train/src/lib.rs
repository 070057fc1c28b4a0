//! Training: settings, corpus and batches, the model on a tape, a step over all cores and
//! processes, the loop around it, logs and reports.

// The settings of a run.
pub mod config;
// Files → pairs of ids → batches.
mod batches;
pub mod corpus;
mod terms;
// The model on a tape, forward and backward.
pub mod autograd;
mod taped;
// Gradients → weights; one step over all cores, and over all processes.
pub mod distributed;
mod optimizer;
mod step;
mod threads;
// The run around the steps, and what it writes down.
mod report;
mod run;

pub use batches::{BatchSettings, plan_epoch};
pub use config::{BF16_VARIABLE, Choice, TrainConfig, choose_dtype};
pub use distributed::{Overlap, run_worker};
pub use optimizer::{AdamSettings, Optimizer, Schedule, ScheduleKind};
pub use regard_core::formats::{Record, StepRecord, ValidationRecord, read_log};
pub use report::{CardCommands, RunStatus, Trend, Verdict, render_report, tensorboard, verdict};
#[cfg(any(test, feature = "fuzzing"))]
pub use run::read_any_checkpoint;
pub use run::{
    End, Outcome, Progress, Start, check_shape, has_run, inputs, languages, load_checkpoint, resumed_config,
    to_average, train, validation_files,
};
pub use step::{FitSettings, Pass, StepReport, StepSettings, Trainer, fit};
pub use taped::{Dropouts, LayerOutputs, LossSettings, Taped, layer_outputs, loss, token_losses};
