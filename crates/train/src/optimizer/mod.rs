//! From gradients to weights.

mod schedule;

pub use schedule::{Schedule, ScheduleKind};
