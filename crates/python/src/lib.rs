//! The native half of the Python package `regard`: [`regard`] behind functions that take and return
//! plain Python values. Names, defaults, documentation and types are in `python/regard`, which
//! wraps it.
//!
//! Keywords travel as flags of the command line, so that every setting has one name, one range and
//! one message. All computing happens without the GIL.

mod errors;
mod evaluate;
mod metrics;
mod serve;
mod stream;
mod train;
mod translator;

use pyo3::prelude::*;

/// As in the command: the threads of a training step allocate large blocks anew in each step.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _regard {
    #[pymodule_export]
    use super::call;
    #[pymodule_export]
    use super::evaluate::{bleu_tokenizer, read_lines};
    #[pymodule_export]
    use super::metrics::{bleu, chrf, ter};
    #[pymodule_export]
    use super::run;
    #[pymodule_export]
    use super::serve::Server;
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::train::train;
    #[pymodule_export]
    use super::translator::Translator;

    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python packages use")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the command `regard` and returns its exit status.
#[pyfunction]
fn run(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| regard::cli::run(arguments))
}

/// Runs a command and raises what it would print as its error.
#[pyfunction]
fn call(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> PyResult<()> {
    py.detach(|| regard::cli::call(arguments)).map_err(|error| errors::of_command(py, error))
}
