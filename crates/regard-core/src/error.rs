//! The one error type of the library: what failed, in which file, line or field, and what would be
//! accepted.

use std::io;
use std::path::{Path, PathBuf};

/// Everything that can go wrong in this library, with the value or place that caused it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that makes no sense; `message` says what is allowed.
    #[error("{field}: {message}")]
    Config {
        /// The field as the user writes it.
        field: String,
        /// What is wrong and what would be accepted.
        message: String,
    },
    /// The operating system refused a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that could be read but not understood.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and what would be accepted.
        message: String,
    },
    /// One line of a text file that could not be used.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong and what would be accepted.
        message: String,
    },
    /// Data that does not fit the model or the operation it was given to.
    #[error("{operation}: {message}")]
    Input {
        /// What was being done.
        operation: &'static str,
        /// What does not fit, with the values.
        message: String,
    },
    /// Ranks that cannot work together; every one of them has this same error.
    #[error("{0}")]
    Inconsistent(String),
    /// A training run that was stopped because its loss or gradient went wrong.
    #[error("training: {message}: {}", settings.join(", "))]
    Diverged {
        /// What happened, and what helps.
        message: String,
        /// The settings that help, each as `name=value`.
        settings: Vec<String>,
    },
    /// An error of another library.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// A result of this library.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A setting that makes no sense.
    pub fn config(field: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Config { field: field.into(), message: message.into() }
    }

    /// An error of another library.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Other(Box::new(error))
    }

    /// A file that the system refused.
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Error::Io { path: path.as_ref().to_path_buf(), source }
    }

    /// A file that could not be understood.
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Error::File { path: path.as_ref().to_path_buf(), message: message.into() }
    }
}
