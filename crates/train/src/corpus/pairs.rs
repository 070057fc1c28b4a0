//! The pairs of parallel files or of a TSV, streamed.

use std::path::{Path, PathBuf};

use super::lines::{Line, Lines};
use regard_core::{Error, Result};

/// Where the parallel text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Line i of a source file goes with line i of the target file at the same place of the list.
    Files {
        /// Files of the source language.
        source: Vec<PathBuf>,
        /// As many files of the target language.
        target: Vec<PathBuf>,
    },
    /// Source, tab, target; further columns are left alone.
    Tsv(PathBuf),
}

impl Inputs {
    /// All files, in the order in which they are read.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Inputs::Files { source, target } => source.iter().chain(target).map(PathBuf::as_path).collect(),
            Inputs::Tsv(path) => vec![path.as_path()],
        }
    }
}

/// One side of a pair, or why it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The line as it stands in the file.
    Text(String),
    /// The line is not UTF-8.
    InvalidUtf8,
    /// The line has more bytes than allowed.
    TooLong,
    /// The line of a TSV has no tab.
    NoTab,
}

/// Two lines that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The source's line.
    pub source: Side,
    /// The target's line.
    pub target: Side,
    /// The number of the line in its files, from 1.
    pub line: usize,
    /// Which pair of files it came from, from 0.
    pub file: usize,
}

/// An iterator over all pairs of the inputs; ends at the first error.
pub struct Pairs {
    inputs: Inputs,
    max_line_bytes: usize,
    file: usize,
    open: Option<(Lines, Option<Lines>)>,
    failed: bool,
}

impl Pairs {
    /// Checks that the files pair up and opens the first; lines of more than `max_line_bytes` are not kept.
    pub fn open(inputs: &Inputs, max_line_bytes: usize) -> Result<Self> {
        if let Inputs::Files { source, target } = inputs
            && (source.is_empty() || source.len() != target.len())
        {
            let message = format!(
                "{} source and {} target files; give one target file for each source file",
                source.len(),
                target.len()
            );
            return Err(Error::config("src/tgt", message));
        }
        let mut pairs = Pairs { inputs: inputs.clone(), max_line_bytes, file: 0, open: None, failed: false };
        pairs.open_files()?;
        Ok(pairs)
    }

    /// Opens the files at place `self.file`; leaves `self.open` empty after the last.
    fn open_files(&mut self) -> Result<()> {
        let lines = |path: &PathBuf| Lines::open(path, self.max_line_bytes);
        self.open = match &self.inputs {
            Inputs::Files { source, target } => match (source.get(self.file), target.get(self.file)) {
                (Some(source), Some(target)) => Some((lines(source)?, Some(lines(target)?))),
                _ => None,
            },
            // Both columns and the tab.
            Inputs::Tsv(path) if self.file == 0 => {
                let bytes = self.max_line_bytes.saturating_mul(2).saturating_add(1);
                Some((Lines::open(path, bytes)?, None))
            }
            Inputs::Tsv(_) => None,
        };
        Ok(())
    }

    fn next_pair(&mut self) -> Result<Option<Pair>> {
        loop {
            let Some((source, target)) = &mut self.open else { return Ok(None) };
            let sides = match target {
                None => source.next()?.map(|line| split_columns(line, self.max_line_bytes)),
                Some(target) => match (source.next()?, target.next()?) {
                    (None, None) => None,
                    (Some(from), Some(to)) => Some((from.into(), to.into())),
                    _ => return Err(uneven(source, target)?),
                },
            };
            if let Some((from, to)) = sides {
                return Ok(Some(Pair { source: from, target: to, line: source.count(), file: self.file }));
            }
            self.file += 1;
            self.open_files()?;
        }
    }
}

impl Iterator for Pairs {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_pair();
        self.failed = next.is_err();
        next.transpose()
    }
}

/// One of the files has ended: reads the other one out, to name both numbers.
fn uneven(source: &mut Lines, target: &mut Lines) -> Result<Error> {
    while source.next()?.is_some() {}
    while target.next()?.is_some() {}
    let message = format!(
        "{} lines, but {} has {}; line i of one must be the translation of line i of the other",
        source.count(),
        target.path().display(),
        target.count()
    );
    Ok(Error::file(source.path(), message))
}

impl From<Line> for Side {
    fn from(line: Line) -> Self {
        match line {
            Line::Text(text) => Side::Text(text),
            Line::InvalidUtf8 => Side::InvalidUtf8,
            Line::TooLong => Side::TooLong,
        }
    }
}

fn split_columns(line: Line, max_bytes: usize) -> (Side, Side) {
    let text = match line {
        Line::Text(text) => text,
        other => return (other.clone().into(), other.into()),
    };
    let mut columns = text.split('\t');
    let side = |column: &str| match column.len() {
        n if n > max_bytes => Side::TooLong,
        _ => Side::Text(column.to_owned()),
    };
    match (columns.next(), columns.next()) {
        (Some(source), Some(target)) => (side(source), side(target)),
        _ => (Side::NoTab, Side::NoTab),
    }
}
