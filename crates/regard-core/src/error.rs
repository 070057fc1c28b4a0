//! The error type of the library: what failed, in which file, line or field, and what is accepted.

use std::io;
use std::path::{Path, PathBuf};

/// Everything that can go wrong in this library, with the value or place that caused it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid setting; `message` says what is allowed.
    #[error("{field}: {message}")]
    Config {
        /// The field as the user writes it.
        field: String,
        /// What is wrong and what is accepted.
        message: String,
    },
    /// An I/O error of the operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file that is readable but invalid.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and what is accepted.
        message: String,
    },
    /// An invalid line of a text file.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// What is wrong and what is accepted.
        message: String,
    },
    /// Data that does not match the model or the operation.
    #[error("{operation}: {message}")]
    Input {
        /// The operation that failed.
        operation: &'static str,
        /// What does not match, with the values.
        message: String,
    },
    /// Ranks that are inconsistent; all of them report this error.
    #[error("{0}")]
    Inconsistent(String),
    /// A training run that was stopped because its loss or gradient diverged.
    #[error("training: {message}: {}", settings.join(", "))]
    Diverged {
        /// What happened, and what helps.
        message: String,
        /// The settings that help, each as `name=value`.
        settings: Vec<String>,
        /// Whether this run can go on with them; one with a time limit plans its learning rate
        /// itself, so that another one must be started.
        resumable: bool,
    },
    /// An error of another library.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// A result of this library.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An invalid setting.
    pub fn config(field: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Config { field: field.into(), message: message.into() }
    }

    /// An error of another library.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Other(Box::new(error))
    }

    /// An I/O error for a file.
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Error::Io { path: path.as_ref().to_path_buf(), source }
    }

    /// An invalid file.
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Error::File { path: path.as_ref().to_path_buf(), message: message.into() }
    }
}
