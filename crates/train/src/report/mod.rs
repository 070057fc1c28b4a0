//! The records of a run that people look at: the log, TensorBoard's events, the report page.

mod log;
mod page;
pub mod tensorboard;

pub(crate) use log::Log;
pub use page::render as render_report;
pub(crate) use page::write;
