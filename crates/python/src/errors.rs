//! Errors of the library as exceptions of `regard._errors`, with their messages.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use regard::cli::Failure;
use regard::{Error, metrics};

/// An exception of the module `regard._errors`.
fn exception(py: Python<'_>, class: &str, message: String, code: Option<i32>, path: Option<String>) -> PyErr {
    let make = || py.import("regard._errors")?.getattr(class)?.call1((message, code, path));
    match make() {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// The exception for an error of the library.
pub(crate) fn of_library(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Config { .. } => exception(py, "ConfigError", message, None, None),
        Error::Io { path, source } => {
            let class = match source.kind() {
                std::io::ErrorKind::NotFound => "FileMissingError",
                _ => "FileError",
            };
            exception(py, class, message, source.raw_os_error(), Some(path.display().to_string()))
        }
        Error::File { path, .. } if !path.exists() => {
            exception(py, "FileMissingError", message, None, Some(path.display().to_string()))
        }
        Error::File { .. } | Error::Line { .. } => exception(py, "FormatError", message, None, None),
        Error::Input { .. } | Error::Inconsistent(_) => exception(py, "InputError", message, None, None),
        Error::Diverged { .. } => exception(py, "TrainingError", message, None, None),
        Error::Other(inner) => match inner.downcast_ref::<metrics::Error>() {
            Some(inner) => of_metrics(py, inner),
            None => exception(py, "RegardError", message, None, None),
        },
    }
}

/// The exception for an error of a metric.
pub(crate) fn of_metrics(py: Python<'_>, error: &metrics::Error) -> PyErr {
    let class = match error {
        metrics::Error::Config { .. } => "ConfigError",
        metrics::Error::Input { .. } => "InputError",
    };
    exception(py, class, error.to_string(), None, None)
}

/// The exception for what keeps a command from its end.
pub(crate) fn of_command(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Usage(message) => exception(py, "ConfigError", message, None, None),
        Failure::Interrupted => PyKeyboardInterrupt::new_err(()),
        Failure::Library(error) => of_library(py, &error),
        Failure::Other(message) => exception(py, "RegardError", message, None, None),
    }
}

/// Any other message as an exception.
pub(crate) fn other(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "RegardError", message.into(), None, None)
}
