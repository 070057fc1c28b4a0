//! Readers for files of parallel text, chosen by file extension.

use std::path::Path;

use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::Side;
use super::lines::{Line, Lines};
use super::po::PoReader;
use regard_core::formats::Languages;
use regard_core::{Error, Result};

/// Reads the pairs of one file, or of two in parallel.
pub(super) trait PairReader {
    /// Source, target and their line number, from 1; `None` at the end.
    fn next(&mut self) -> Result<Option<(Side, Side, usize)>>;

    /// A hash of the document of the last pair, if the file names it.
    fn document(&self) -> Option<u64> {
        None
    }
}

/// The format of a file that holds both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairFormat {
    Tsv,
    Jsonl,
    Po,
}

impl PairFormat {
    /// The format for a file extension, ignoring that of compression.
    pub(super) fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("jsonl" | "ndjson") => PairFormat::Jsonl,
            Some("po") => PairFormat::Po,
            _ => PairFormat::Tsv,
        }
    }

    /// The maximum length of a line in bytes, given that of a side.
    fn line_bytes(self, of_side: usize) -> usize {
        match self {
            // Both columns and the tab.
            PairFormat::Tsv => of_side.saturating_mul(2).saturating_add(1),
            // There may be other fields, and `\u00e9` takes six bytes.
            PairFormat::Jsonl => of_side.saturating_mul(16),
            PairFormat::Po => of_side,
        }
    }
}

/// Opens a file that holds both sides; a side of more than `max_bytes` is discarded.
pub(super) fn open(path: &Path, languages: &Languages, max_bytes: usize) -> Result<Box<dyn PairReader>> {
    let format = PairFormat::of(path);
    Ok(reader(format, Lines::open(path, format.line_bytes(max_bytes))?, languages, max_bytes))
}

fn reader(format: PairFormat, lines: Lines, languages: &Languages, max_bytes: usize) -> Box<dyn PairReader> {
    match format {
        PairFormat::Tsv => Box::new(Tsv { lines, max_bytes, document: None }),
        PairFormat::Jsonl => Box::new(Jsonl { lines, languages: languages.clone(), max_bytes }),
        PairFormat::Po => Box::new(PoReader::new(lines, max_bytes)),
    }
}

/// Reads arbitrary bytes as parallel text of each format: gives pairs or an error, never a panic.
/// For fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_any_pairs(bytes: &[u8]) {
    const MAX_BYTES: usize = 200;
    let languages = Languages { source: Some("en".into()), target: Some("de".into()) };
    for format in [PairFormat::Tsv, PairFormat::Jsonl, PairFormat::Po] {
        let lines = Lines::of(bytes, format.line_bytes(MAX_BYTES));
        let mut reader = reader(format, lines, &languages, MAX_BYTES);
        let mut before = 0;
        while let Ok(Some((source, target, line))) = reader.next() {
            assert!(line >= before && line <= bytes.len(), "{format:?}");
            before = line;
            for side in [source, target] {
                if let Side::Text(text) = side {
                    assert!(text.len() <= MAX_BYTES && !text.contains('\n'), "{format:?}");
                }
            }
        }
    }
}

/// Opens two files, where line i of one is the translation of line i of the other.
pub(super) fn open_two(source: &Path, target: &Path, max_bytes: usize) -> Result<Box<dyn PairReader>> {
    Ok(Box::new(TwoFiles {
        source: Lines::open(source, max_bytes)?,
        target: Lines::open(target, max_bytes)?,
    }))
}

struct TwoFiles {
    source: Lines,
    target: Lines,
}

impl PairReader for TwoFiles {
    fn next(&mut self) -> Result<Option<(Side, Side, usize)>> {
        match (self.source.next()?, self.target.next()?) {
            (None, None) => Ok(None),
            (Some(from), Some(to)) => Ok(Some((from.into(), to.into(), self.source.count()))),
            _ => Err(self.uneven()?),
        }
    }
}

impl TwoFiles {
    /// Called when one file has ended: counts the lines of the other, so that the error can give
    /// both numbers.
    fn uneven(&mut self) -> Result<Error> {
        let TwoFiles { source, target } = self;
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
}

struct Tsv {
    lines: Lines,
    max_bytes: usize,
    document: Option<u64>,
}

impl PairReader for Tsv {
    fn next(&mut self) -> Result<Option<(Side, Side, usize)>> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        self.document = match &line {
            Line::Text(text) => text.split('\t').nth(2).map(|name| xxh3_64(name.as_bytes())),
            _ => None,
        };
        let (source, target) = split_columns(line, self.max_bytes);
        Ok(Some((source, target, self.lines.count())))
    }

    fn document(&self) -> Option<u64> {
        self.document
    }
}

fn split_columns(line: Line, max_bytes: usize) -> (Side, Side) {
    let text = match line {
        Line::Text(text) => text,
        other => return (other.clone().into(), other.into()),
    };
    let mut columns = text.split('\t');
    match (columns.next(), columns.next()) {
        (Some(source), Some(target)) => {
            (side(source.to_owned(), max_bytes), side(target.to_owned(), max_bytes))
        }
        _ => (Side::NoTab, Side::NoTab),
    }
}

/// A text as a side, unless it is too long.
pub(super) fn side(text: String, max_bytes: usize) -> Side {
    if text.len() > max_bytes { Side::TooLong } else { Side::Text(text) }
}

struct Jsonl {
    lines: Lines,
    languages: Languages,
    max_bytes: usize,
}

impl PairReader for Jsonl {
    fn next(&mut self) -> Result<Option<(Side, Side, usize)>> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        let (source, target) = match line {
            Line::Text(text) => match both_fields(&text, &self.languages) {
                Some((source, target)) => (side(source, self.max_bytes), side(target, self.max_bytes)),
                // Such as the empty line at the end of a file.
                None if text.trim().is_empty() => (Side::Text(String::new()), Side::Text(String::new())),
                None => (Side::NoObject, Side::NoObject),
            },
            other => (other.clone().into(), other.into()),
        };
        Ok(Some((source, target, self.lines.count())))
    }
}

/// Source and target of an object. Line breaks within them become spaces, so that each is one line.
fn both_fields(line: &str, languages: &Languages) -> Option<(String, String)> {
    let Ok(Value::Object(object)) = serde_json::from_str(line) else { return None };
    let names = [("source", "target"), ("src", "tgt")];
    let of_languages = languages.source.as_deref().zip(languages.target.as_deref());
    let inner = match object.get("translation") {
        Some(Value::Object(inner)) => Some(inner),
        _ => None,
    };
    let text = |object: &Map<String, Value>, name: &str| Some(one_line(object.get(name)?.as_str()?));
    [Some(&object), inner].into_iter().flatten().find_map(|object| {
        let mut names = names.into_iter().chain(of_languages);
        names.find_map(|(source, target)| text(object, source).zip(text(object, target)))
    })
}

/// Replaces line breaks by spaces.
pub(super) fn one_line(text: &str) -> String {
    if !text.contains(['\n', '\r', '\t']) {
        return text.to_owned();
    }
    let lines = text.split(['\n', '\r', '\t']).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_any_kind() {
        regard_core::formats::fuzzing::damage_seeds("pairs", read_any_pairs);
    }

    #[test]
    fn the_ending_decides() {
        for (name, format) in [
            ("a.tsv", PairFormat::Tsv),
            ("a.txt", PairFormat::Tsv),
            ("a", PairFormat::Tsv),
            ("a.jsonl", PairFormat::Jsonl),
            ("a.JSONL.gz", PairFormat::Jsonl),
            ("de.po", PairFormat::Po),
            ("de.po.zst", PairFormat::Po),
            (".po", PairFormat::Po),
        ] {
            assert_eq!(PairFormat::of(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn objects_of_several_kinds_are_read() {
        let languages = Languages { source: Some("en".into()), target: Some("de".into()) };
        let fields = |line: &str| both_fields(line, &languages);
        let found = Some(("A dog.".to_owned(), "Ein Hund.".to_owned()));
        assert_eq!(fields(r#"{"source": "A dog.", "target": "Ein Hund.", "score": 1}"#), found);
        assert_eq!(fields(r#"{"tgt": "Ein Hund.", "src": "A dog."}"#), found);
        assert_eq!(fields(r#"{"en": "A dog.", "de": "Ein Hund.", "fr": "Un chien."}"#), found);
        assert_eq!(fields(r#"{"id": 1, "translation": {"de": "Ein Hund.", "en": "A\ndog."}}"#), found);
        for line in ["", "[]", "{", r#"{"source": "A dog."}"#, r#"{"source": 1, "target": 2}"#] {
            assert_eq!(fields(line), None, "{line}");
        }
        assert_eq!(both_fields(r#"{"en": "a", "de": "b"}"#, &Languages::default()), None);
    }
}
