//! What an evaluation needs besides a translator and metrics.

use crate::errors::of_library;
use pyo3::prelude::*;
use regard::metrics::{Tokenizer, lines};
use regard::train::corpus::open_text;
use std::io::Read;
use std::path::PathBuf;

/// The lines of a text file: plain, `.gz` or `.zst`.
#[pyfunction]
pub(crate) fn read_lines(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    let read = || {
        let mut text = String::new();
        let read = open_text(&path)?.read_to_string(&mut text);
        read.map_err(|error| regard::Error::io(&path, error))?;
        Ok(lines(&text))
    };
    py.detach(read).map_err(|error| of_library(py, &error))
}

/// The name of BLEU's tokenizer for a language.
#[pyfunction]
pub(crate) fn bleu_tokenizer(target_lang: Option<&str>) -> &'static str {
    target_lang.map_or_else(Tokenizer::default, Tokenizer::for_language).name()
}
