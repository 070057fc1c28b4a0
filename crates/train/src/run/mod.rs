//! A training run: its start, the loop, validation, checkpoints, and how it goes on where it was stopped.

mod checkpoint;
mod plan;
mod prepare;
mod snapshots;
mod start;
mod state;
mod training_loop;
mod validate;

pub(crate) use checkpoint::write_text;
pub(crate) use prepare::{Data, Folder};
pub use prepare::{check_shape, has_run};
pub use snapshots::{load_checkpoint, to_average};
pub(crate) use start::dropout_seed;
pub use start::{resumed_config, run_rank0, train};
#[cfg(any(test, feature = "fuzzing"))]
pub use state::read_anything as read_any_checkpoint;
pub use training_loop::{End, Outcome, Progress};
