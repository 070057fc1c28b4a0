//! The errors of this crate.

/// An invalid setting, or data that cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An invalid setting.
    #[error("{field}: {message}")]
    Config {
        /// The setting.
        field: String,
        /// What is wrong, and what would be accepted.
        message: String,
    },
    /// Data that cannot be drawn.
    #[error("{operation}: {message}")]
    Input {
        /// The operation that failed.
        operation: &'static str,
        /// What is wrong with the data, with the values.
        message: String,
    },
    /// A PNG was requested, but this build does not support PNG.
    #[error("PNG needs the cargo feature `png`, which this build lacks; SVG and HTML work without it")]
    NoPng,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
