//! The records of a run that people look at: the log, TensorBoard's events, the report page, the
//! model's card.

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
