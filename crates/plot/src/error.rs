//! What cannot be drawn.

/// A setting that makes no sense, or data that cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting that makes no sense.
    #[error("{field}: {message}")]
    Config {
        /// The setting.
        field: String,
        /// What is wrong and what would be accepted.
        message: String,
    },
    /// Data that cannot be drawn.
    #[error("{operation}: {message}")]
    Input {
        /// What was being done.
        operation: &'static str,
        /// What does not fit, with the values.
        message: String,
    },
    /// A PNG in a build without them.
    #[error("PNG needs the cargo feature `png`, which this build lacks; SVG and HTML work without it")]
    NoPng,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
