//! One file per command.

pub(crate) mod average;
pub(crate) mod bench;
pub(crate) mod info;

use std::error::Error;

/// What a command ends with: nothing, or the one message that the user sees.
pub(crate) type CommandResult = Result<(), Box<dyn Error>>;

/// How many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
