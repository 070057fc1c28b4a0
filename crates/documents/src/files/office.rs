//! Zip packages of XML parts: docx, pptx, xlsx; odt, odp, ods; epub.
//!
//! Parts that contain text are parsed as XML, and each of their paragraphs becomes a unit.
//! Everything else is copied byte for byte: other parts in their compressed form, the rest of the
//! text parts as written.

mod epub;
mod inline;
mod odf;
mod ooxml;
mod package;
mod run_writer;
mod runs;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod samples;
mod xml;

use super::{FileDocument, FileError, FileOptions, Format, Unit, WriteFile};
use crate::html::EntityPlaceholders;
use inline::{Builder, Kind, Step, Tag, pairs, steps};
use package::Package;
use runs::Runs;
use std::collections::HashMap;
use std::ops::Range;
use xml::{Xml, is_allowed};

/// Parses a package.
pub(super) fn open(format: Format, bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let language = options.source_language.clone();
    let mut file = OfficeFile { package: Package::open(format, bytes)?, parts: Vec::new(), language };
    let mut units = Vec::new();
    match format {
        Format::Odt | Format::Odp | Format::Ods => odf::read(&mut file, &mut units)?,
        Format::Epub => epub::read(&mut file, &mut units, options)?,
        _ => ooxml::read(&mut file, &mut units)?,
    }
    for part in &mut file.parts {
        // An edit that contains others comes before them.
        part.edits.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
    }
    Ok(FileDocument::new(units, file))
}

/// A package whose text has been extracted.
#[derive(Debug)]
struct OfficeFile {
    package: Package,
    parts: Vec<Part>,
    /// The language code of its text, if known.
    language: Option<String>,
}

/// A part with replacements.
#[derive(Debug)]
struct Part {
    name: String,
    xml: Xml,
    /// The replacements; one may lie inside another.
    edits: Vec<Edit>,
    /// The language code of its text, which determines where sentences end.
    language: Option<String>,
}

#[derive(Debug)]
struct Edit {
    range: Range<usize>,
    content: Content,
}

/// The replacement of a range.
#[derive(Debug)]
enum Content {
    /// The text of a unit with its inline tags, and the run format if the file format has runs.
    Inline { unit: usize, tags: Vec<Tag>, pairs: Vec<(usize, usize)>, runs: Option<Runs> },
    /// The text of a unit without tags.
    Plain { unit: usize },
    /// A fixed text that does not depend on the translation.
    Fixed(String),
}

impl OfficeFile {
    /// A part without edits.
    fn part(&self, name: &str, xml: Xml) -> Part {
        Part { name: name.to_owned(), xml, edits: Vec::new(), language: self.language.clone() }
    }

    /// Reads and parses a part.
    fn xml(&mut self, name: &str, doctype: bool) -> Result<Xml, FileError> {
        let bytes = self.package.read(name)?;
        Xml::parse(bytes, doctype).map_err(|problem| self.problem(name, problem))
    }

    fn problem(&self, part: &str, problem: impl Into<String>) -> FileError {
        FileError::Part { format: self.package.format(), part: part.to_owned(), problem: problem.into() }
    }
}

impl Part {
    /// Placeholder characters for unknown entities; see [`EntityPlaceholders`].
    fn entities(&self) -> EntityPlaceholders {
        EntityPlaceholders::new(&self.xml.text)
    }

    /// Adds the inline content of a range, if it contains anything to translate.
    fn add_inline(
        &mut self,
        units: &mut Vec<Unit>,
        range: Range<usize>,
        builder: Builder<'_>,
        runs: Option<Runs>,
    ) {
        if let Some((document, tags)) = builder.finish() {
            let pairs = pairs(&tags, &self.xml.text);
            self.edits
                .push(Edit { range, content: Content::Inline { unit: units.len(), tags, pairs, runs } });
            let source = document.words();
            units.push(Unit::new(source, document));
        }
    }

    /// Adds the text of a range without tags, if it contains anything to translate.
    fn add_plain(&mut self, units: &mut Vec<Unit>, range: Range<usize>) {
        let unit = Unit::html_in(&self.xml.text[range.clone()], self.language.as_deref());
        if !unit.document().sentences.is_empty() {
            self.edits.push(Edit { range, content: Content::Plain { unit: units.len() } });
            units.push(unit);
        }
    }

    /// The part with the texts of all units in place.
    fn render(&self, texts: &[String]) -> String {
        let mut out = String::with_capacity(self.xml.text.len() + self.xml.text.len() / 8);
        self.emit(0..self.xml.text.len(), 0, texts, &mut out);
        out
    }

    /// Writes a range with its edits, beginning the search at edit `first`.
    fn emit(&self, range: Range<usize>, first: usize, texts: &[String], out: &mut String) {
        let found = self.edits[first..].partition_point(|edit| edit.range.start < range.start);
        let mut at = range.start;
        for (number, edit) in self.edits.iter().enumerate().skip(first + found) {
            if edit.range.start >= range.end {
                break;
            }
            // Skips an edit inside one that has already been written.
            if edit.range.start < at || edit.range.end > range.end {
                continue;
            }
            out.push_str(&self.xml.text[at..edit.range.start]);
            self.emit_edit(number, texts, out);
            at = edit.range.end;
        }
        out.push_str(&self.xml.text[at.min(range.end)..range.end]);
    }

    fn emit_edit(&self, number: usize, texts: &[String], out: &mut String) {
        match &self.edits[number].content {
            Content::Fixed(text) => out.push_str(text),
            Content::Plain { unit } => {
                // The text may be an attribute value.
                let quote = self.xml.text.as_bytes().get(self.edits[number].range.end);
                for c in texts[*unit].chars().filter(|c| is_allowed(*c)) {
                    match c {
                        '"' if quote == Some(&b'"') => out.push_str("&quot;"),
                        '\'' if quote == Some(&b'\'') => out.push_str("&#39;"),
                        c => out.push(c),
                    }
                }
            }
            Content::Inline { unit, tags, pairs, runs } => {
                let text: String = texts[*unit].chars().filter(|c| is_allowed(*c)).collect();
                let copy = |range: &Range<usize>, out: &mut String| {
                    self.emit(range.clone(), number + 1, texts, out);
                };
                let steps = steps(&text, tags, pairs);
                match runs {
                    Some(runs) => runs.write(steps, tags, copy, out),
                    None => write_elements(steps, tags, copy, out),
                }
            }
        }
    }
}

/// Writes text with inline elements; `copy` writes a range of the part.
fn write_elements(
    steps: Vec<Step<'_>>,
    tags: &[Tag],
    copy: impl Fn(&Range<usize>, &mut String),
    out: &mut String,
) {
    for step in steps {
        match step {
            Step::Text(text) => out.push_str(text),
            Step::Open(number) => {
                if let Kind::Element { open, .. } = &tags[number].kind {
                    copy(open, out);
                }
            }
            Step::Close(number) => {
                if let Kind::Element { close, .. } = &tags[number].kind {
                    copy(close, out);
                }
            }
            Step::Point(number) => {
                if let Kind::Point { range } = &tags[number].kind {
                    copy(range, out);
                }
            }
        }
    }
}

impl WriteFile for OfficeFile {
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError> {
        let changed: HashMap<&str, Vec<u8>> = self
            .parts
            .iter()
            .filter(|part| !part.edits.is_empty())
            .map(|part| (part.name.as_str(), part.render(&texts).into_bytes()))
            .collect();
        self.package.write(changed)
    }
}

#[cfg(test)]
mod tests;
