//! The errors of this crate.

/// An invalid setting, or input that cannot be scored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An invalid setting.
    #[error("{field}: {message}")]
    Config {
        /// The setting.
        field: String,
        /// What is wrong and which values are accepted.
        message: String,
    },
    /// Hypotheses and references that cannot be scored.
    #[error("{operation}: {message}")]
    Input {
        /// The operation that failed.
        operation: &'static str,
        /// What does not match, with the values.
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
