//! What `regard translate` translates: standard input, files, or text on the command line.

use super::super::input::{Lines, is_stdin};
use super::Arguments;
use std::path::{Path, PathBuf};

/// Where lines come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    /// A file, or standard input under the name `-`.
    File(PathBuf),
    /// Text that was given itself.
    Text(String),
}

impl Input {
    pub(super) fn open(&self) -> Result<Lines, regard::Error> {
        match self {
            Input::File(path) => Lines::open(path),
            Input::Text(text) => Ok(Lines::of_text(text)),
        }
    }

    pub(super) fn is_stdin(&self) -> bool {
        matches!(self, Input::File(path) if is_stdin(path))
    }
}

/// The inputs of a call in their order, texts of `--text` first; standard input if there are none.
pub(super) fn of(arguments: &Arguments) -> Result<Vec<Input>, regard::Error> {
    let mut inputs: Vec<Input> = arguments.text.iter().cloned().map(Input::Text).collect();
    for argument in &arguments.files {
        inputs.push(file_or_text(argument)?);
    }
    if inputs.is_empty() {
        inputs.push(Input::File("-".into()));
    }
    Ok(inputs)
}

/// An existing path is a file, an argument with white space is text, and a single word that names
/// no file is more likely a mistyped name than a text.
fn file_or_text(argument: &Path) -> Result<Input, regard::Error> {
    if is_stdin(argument) || argument.exists() {
        return Ok(Input::File(argument.to_owned()));
    }
    match argument.to_str() {
        Some(text) if text.contains(char::is_whitespace) => Ok(Input::Text(text.to_owned())),
        _ => {
            let word = argument.display();
            let message =
                format!("No such file or directory; if it is text to translate, use --text \"{word}\"");
            Err(regard::Error::file(argument, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_texts_and_mistakes_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b.txt");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(file_or_text(&file).unwrap(), Input::File(file.clone()));
        assert_eq!(file_or_text(Path::new("A dog runs.")).unwrap(), Input::Text("A dog runs.".into()));
        assert_eq!(file_or_text(Path::new("-")).unwrap(), Input::File("-".into()));
        let message = file_or_text(Path::new("input.en")).unwrap_err().to_string();
        let wanted =
            "input.en: No such file or directory; if it is text to translate, use --text \"input.en\"";
        assert_eq!(message, wanted);
    }
}
