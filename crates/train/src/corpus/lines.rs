//! The lines of one file, plain or compressed, holding at most one in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use regard_core::formats::compressed::decompress;
use regard_core::{Error, Result};

/// One line of a file, or why it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    InvalidUtf8,
    TooLong,
}

/// A file being read line by line.
pub(super) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    count: usize,
    max_bytes: usize,
}

impl Lines {
    pub(super) fn open(path: &Path, max_bytes: usize) -> Result<Self> {
        let reader = open_text(path)?;
        Ok(Lines { path: path.to_path_buf(), reader, count: 0, max_bytes })
    }

    /// The lines of a text in memory.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn of(text: &[u8], max_bytes: usize) -> Self {
        let reader = Box::new(io::Cursor::new(text.to_vec()));
        Lines { path: "text".into(), reader, count: 0, max_bytes }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of lines read so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The next line, `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        let mut any = false;
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.broken(e)),
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|&b| b == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            // Skip the rest of an overlong line while it streams by. Allow five more bytes: a
            // byte-order mark, a CR, and one to distinguish too long from just fitting.
            if line.len() + part.len() > self.max_bytes.saturating_add(5) {
                too_long = true;
            } else {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.count += 1;
        if self.count == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if too_long || line.len() > self.max_bytes {
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(String::from_utf8(line).map_or(Line::InvalidUtf8, Line::Text)))
    }

    fn broken(&self, error: io::Error) -> Error {
        let message = format!("{error} (after line {})", self.count);
        Error::io(&self.path, io::Error::new(error.kind(), message))
    }
}

/// Opens a text file, plain, gzip or zstd.
pub fn open_text(path: &Path) -> Result<Box<dyn BufRead>> {
    let opened = File::open(path).and_then(|file| {
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, not a text file"));
        }
        decompress(BufReader::with_capacity(1 << 16, file))
    });
    opened.map_err(|e| Error::io(path, e))
}
