//! Streams the pairs of parallel files.

use std::path::{Path, PathBuf};

use super::readers::{self, PairReader};
use regard_core::formats::Languages;
use regard_core::{Error, Result};

/// The location of parallel text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Line i of a source file corresponds to line i of the target file at the same index of the
    /// list.
    Files {
        /// Files of the source language.
        source: Vec<PathBuf>,
        /// The corresponding files of the target language.
        target: Vec<PathBuf>,
    },
    /// Files that hold both sides. The extension of a file, without `.gz` or `.zst`, determines the
    /// format:
    ///
    /// - `.jsonl`: an object per line, with the fields `source` and `target`, `src` and `tgt`, or
    ///   the two languages, which may stand under `translation`;
    /// - `.po`: messages and their translations; fuzzy and obsolete ones are left out;
    /// - any other: source, tab, target on each line; a third column may name the document, and
    ///   further ones are left alone.
    Pairs {
        /// The files.
        files: Vec<PathBuf>,
        /// The names of the sides in files that name their languages.
        languages: Languages,
    },
}

impl Inputs {
    /// One file that holds both sides, without language names.
    pub fn pairs(file: impl Into<PathBuf>) -> Self {
        Inputs::Pairs { files: vec![file.into()], languages: Languages::default() }
    }

    /// All files, in the order in which they are read.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Inputs::Files { source, target } => source.iter().chain(target).map(PathBuf::as_path).collect(),
            Inputs::Pairs { files, .. } => files.iter().map(PathBuf::as_path).collect(),
        }
    }

    /// The location of one side of a pair, as `file:line`.
    pub(super) fn place(&self, pair: &Pair, of_target: bool) -> String {
        let path = match self {
            Inputs::Files { source, target } => &(if of_target { target } else { source })[pair.file],
            Inputs::Pairs { files, .. } => &files[pair.file],
        };
        format!("{}:{}", path.display(), pair.line)
    }
}

/// One side of a pair, or why it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The text, unchanged.
    Text(String),
    /// The line is not UTF-8.
    InvalidUtf8,
    /// The line has more bytes than allowed.
    TooLong,
    /// The line of a TSV has no tab.
    NoTab,
    /// The line of a JSONL file is not an object with source and target.
    NoObject,
    /// The message has no translation, or a fuzzy one.
    Untranslated,
}

/// Two corresponding lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The source line.
    pub source: Side,
    /// The target line.
    pub target: Side,
    /// The line number, from 1.
    pub line: usize,
    /// The index of its pair of files.
    pub file: usize,
    /// A hash of its document: the third column of a TSV, or the po file.
    pub document: Option<u64>,
}

/// An iterator over all pairs of the inputs; ends at the first error.
pub struct Pairs {
    inputs: Inputs,
    max_line_bytes: usize,
    file: usize,
    open: Option<Box<dyn PairReader>>,
    failed: bool,
}

impl Pairs {
    /// Checks that the files pair up and opens the first; lines of more than `max_line_bytes` are
    /// discarded.
    pub fn open(inputs: &Inputs, max_line_bytes: usize) -> Result<Self> {
        match inputs {
            Inputs::Files { source, target } if source.is_empty() || source.len() != target.len() => {
                let message = format!(
                    "{} source and {} target files; give one target file for each source file",
                    source.len(),
                    target.len()
                );
                return Err(Error::config("src/tgt", message));
            }
            Inputs::Pairs { files, .. } if files.is_empty() => {
                return Err(Error::config("pairs", "no file is given"));
            }
            _ => {}
        }
        let mut pairs = Pairs { inputs: inputs.clone(), max_line_bytes, file: 0, open: None, failed: false };
        pairs.open_files()?;
        Ok(pairs)
    }

    /// Opens the files at index `self.file`; leaves `self.open` empty after the last.
    fn open_files(&mut self) -> Result<()> {
        self.open = match &self.inputs {
            Inputs::Files { source, target } => match (source.get(self.file), target.get(self.file)) {
                (Some(source), Some(target)) => Some(readers::open_two(source, target, self.max_line_bytes)?),
                _ => None,
            },
            Inputs::Pairs { files, languages } => match files.get(self.file) {
                Some(file) => Some(readers::open(file, languages, self.max_line_bytes)?),
                None => None,
            },
        };
        Ok(())
    }

    fn next_pair(&mut self) -> Result<Option<Pair>> {
        loop {
            let Some(reader) = &mut self.open else { return Ok(None) };
            if let Some((source, target, line)) = reader.next()? {
                let document = reader.document();
                return Ok(Some(Pair { source, target, line, file: self.file, document }));
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
