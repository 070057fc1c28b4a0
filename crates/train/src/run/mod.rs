//! A training run: its start, the loop, validation, checkpoints, resuming.

// Before the first step.
mod data;
mod folder;
mod init;
mod resume;
mod sampling;
mod start;
mod texts;
// The loop.
mod plan;
mod progress;
mod training_loop;
mod validate;
// What is saved during the run.
mod checkpoint;
mod snapshots;
mod state;

pub(crate) use checkpoint::write_text;
pub(crate) use data::Data;
pub(crate) use folder::Folder;
pub use folder::has_run;
pub use init::check_shape;
pub use progress::{End, Outcome, Progress};
pub use resume::resumed_config;
pub use snapshots::{load_checkpoint, to_average};
pub(crate) use start::dropout_seed;
pub use start::{Start, train};
#[cfg(any(test, feature = "fuzzing"))]
pub use state::read_anything as read_any_checkpoint;
pub use texts::{inputs, languages, validation_files};
