//! The input of `regard translate`: standard input, files, or text on the command line.

use super::super::input::{Lines, is_stdin};
use super::{Arguments, CommandResult, Output};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A source of lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    /// A file, or standard input under the name `-`.
    File(PathBuf),
    /// Text on the command line.
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

/// The inputs of a call in order, texts of `--text` first; standard input if there are none.
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

/// Reads the lines of all inputs with `read`, as they arrive, and passes them to `translate` in
/// parts of at most `size` lines, with the input's name and the number of lines before the part.
///
/// `signals` are the flag that a signal sets, which ends the work between two parts, and a flag
/// that is true while ending at once loses nothing.
pub(super) fn for_each_part<T>(
    inputs: &[Input],
    (stop, idle): (&AtomicBool, &AtomicBool),
    size: usize,
    read: impl Fn(&mut Lines) -> regard::Result<Vec<T>>,
    mut translate: impl FnMut(&Path, usize, &[T], &mut Output) -> CommandResult,
) -> CommandResult {
    let stopped_after = |lines: usize| Err(format!("stopped after {lines} lines, which are complete").into());
    let mut output = Output::new();
    for input in inputs {
        let mut lines = input.open()?;
        loop {
            let before = lines.count();
            idle.store(true, Ordering::SeqCst);
            // From now on a signal ends the program; an earlier one has set the flag.
            if stop.load(Ordering::SeqCst) {
                return stopped_after(before);
            }
            let batch = read(&mut lines);
            idle.store(false, Ordering::SeqCst);
            let batch = batch?;
            if batch.is_empty() {
                break;
            }
            for (start, part) in batch.chunks(size).enumerate().map(|(i, part)| (before + i * size, part)) {
                if stop.load(Ordering::Relaxed) {
                    output.flush()?;
                    return stopped_after(start);
                }
                translate(lines.path(), start, part, &mut output)?;
            }
        }
    }
    output.flush()
}

/// An existing path is a file, an argument with white space is text, and a single word that does
/// not name a file is more likely a mistyped name than a text.
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
