//! The human-readable records of a run: the log, TensorBoard's events, the report page, the model
//! card.

mod card;
mod log;
mod memory;
mod page;
pub mod tensorboard;
mod verdict;

pub(crate) use card::Card;
pub use card::CardCommands;
pub(crate) use log::Log;
pub(crate) use memory::resident;
pub(crate) use page::write;
pub use page::{RunStatus, render as render_report};
pub use verdict::{Trend, Verdict, verdict};
