//! Text input of commands: files, plain or compressed, and standard input under the name `-`.

use regard::train::corpus::open_text;
use regard::{Error, Result};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Whether a file name means standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file or standard input, read in batches of lines.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<Box<dyn Read>>,
    count: usize,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (path, source): (PathBuf, Box<dyn Read>) = match is_stdin(path) {
            true => ("standard input".into(), Box::new(io::stdin())),
            false => (path.to_path_buf(), Box::new(open_text(path)?)),
        };
        Ok(Lines { path, reader: BufReader::with_capacity(1 << 18, source), count: 0 })
    }

    /// The lines of a text given on the command line.
    pub(super) fn of_text(text: &str) -> Self {
        let source: Box<dyn Read> = Box::new(io::Cursor::new(text.to_owned()));
        Lines { path: "text".into(), reader: BufReader::new(source), count: 0 }
    }

    /// The name of the input in messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of lines read so far, which is also the number of the last line.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The next line, unchanged, without its LF; `None` at the end.
    pub(super) fn next_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let read = self.reader.read_until(b'\n', &mut line).map_err(|e| Error::io(&self.path, e))?;
        if read == 0 {
            return Ok(None);
        }
        self.count += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        Ok(Some(line))
    }

    /// The next line, which must be UTF-8.
    pub(super) fn next_text(&mut self) -> Result<Option<String>> {
        let Some(line) = self.next_bytes()? else { return Ok(None) };
        match String::from_utf8(line) {
            Ok(text) => Ok(Some(text)),
            Err(e) => Err(Error::Line {
                path: self.path.clone(),
                line: self.count,
                message: format!("not UTF-8 (byte {} of the line)", e.utf8_error().valid_up_to() + 1),
            }),
        }
    }

    /// The lines that can be read without waiting, at least one; empty at the end. A user who
    /// types, or a program that writes line by line into a pipe, gets each answer at once, and a
    /// file is read in large parts.
    pub(super) fn next_batch(&mut self) -> Result<Vec<String>> {
        let mut batch = Vec::new();
        while let Some(line) = self.next_text()? {
            batch.push(line);
            if self.reader.buffer().is_empty() {
                break;
            }
        }
        Ok(batch)
    }

    /// The next line with invalid UTF-8 replaced, and whether it was valid; `None` at the end.
    pub(super) fn next_lossy(&mut self) -> Result<Option<(String, bool)>> {
        let Some(line) = self.next_bytes()? else { return Ok(None) };
        Ok(Some(match String::from_utf8(line) {
            Ok(text) if self.count == 1 => (text.trim_start_matches('\u{feff}').to_owned(), true),
            Ok(text) => (text, true),
            Err(e) => (String::from_utf8_lossy(e.as_bytes()).into_owned(), false),
        }))
    }

    /// The lines that can be read without waiting, with invalid UTF-8 replaced: each line, and
    /// whether it was valid.
    pub(super) fn next_batch_lossy(&mut self) -> Result<Vec<(String, bool)>> {
        let mut batch = Vec::new();
        while let Some(line) = self.next_lossy()? {
            batch.push(line);
            if self.reader.buffer().is_empty() {
                break;
            }
        }
        Ok(batch)
    }
}

/// The whole text of a file, which must be UTF-8.
pub(super) fn read_text(path: &Path) -> Result<(PathBuf, String)> {
    let mut lines = Lines::open(path)?;
    let mut text = String::new();
    while let Some(line) = lines.next_text()? {
        text.push_str(&line);
        text.push('\n');
    }
    Ok((lines.path, text))
}

/// The first `most` lines of a file, which must be UTF-8.
pub(super) fn read_lines(path: &Path, most: usize) -> Result<Vec<String>> {
    let mut lines = Lines::open(path)?;
    let mut read = Vec::new();
    while read.len() < most
        && let Some(line) = lines.next_text()?
    {
        read.push(line);
    }
    Ok(read)
}
