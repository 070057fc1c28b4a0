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
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn config(field: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Config { field: field.into(), message: message.into() }
    }
}
