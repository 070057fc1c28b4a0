//! Packages of XML: docx, pptx, xlsx; odt, odp, ods; epub.
//!
//! The parts that hold text are read as XML, and every paragraph of them is a unit. What is not
//! translated is copied byte for byte: other parts as they are compressed, the rest of these parts
//! as it is written.

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
use crate::html::StandIns;
use inline::{Builder, Kind, Step, Tag, pairs, steps};
use package::Package;
use runs::Runs;
use std::collections::HashMap;
use std::ops::Range;
use xml::{Xml, is_allowed};

/// Takes a package apart.
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
        // What lies in something else comes behind it.
        part.edits.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
    }
    Ok(FileDocument::new(units, file))
}

/// A package without its texts.
#[derive(Debug)]
struct OfficeFile {
    package: Package,
    parts: Vec<Part>,
    /// The code of the language of its text, if that is known.
    language: Option<String>,
}

/// A part that changes.
#[derive(Debug)]
struct Part {
    name: String,
    xml: Xml,
    /// What is replaced; one may lie in another.
    edits: Vec<Edit>,
    /// The language of its text, which says where sentences end.
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
    /// The text of a unit with the tags in it, and how runs are written if the format has them.
    Inline { unit: usize, tags: Vec<Tag>, pairs: Vec<(usize, usize)>, runs: Option<Runs> },
    /// The text of a unit that has no tags.
    Plain { unit: usize },
    /// This, whatever is translated.
    Fixed(String),
}

impl OfficeFile {
    /// A part without edits.
    fn part(&self, name: &str, xml: Xml) -> Part {
        Part { name: name.to_owned(), xml, edits: Vec::new(), language: self.language.clone() }
    }

    /// Reads a part as XML.
    fn xml(&mut self, name: &str, doctype: bool) -> Result<Xml, FileError> {
        let bytes = self.package.read(name)?;
        Xml::parse(bytes, doctype).map_err(|problem| self.problem(name, problem))
    }

    fn problem(&self, part: &str, problem: impl Into<String>) -> FileError {
        FileError::Part { format: self.package.format(), part: part.to_owned(), problem: problem.into() }
    }
}

impl Part {
    /// Characters for entities that are not known; see there.
    fn stand_ins(&self) -> StandIns {
        StandIns::new(&self.xml.text)
    }

    /// Adds what a builder made of a range, if there is anything to translate in it.
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

    /// Adds text without tags that lies at a range, if there is anything to translate in it.
    fn add_plain(&mut self, units: &mut Vec<Unit>, range: Range<usize>) {
        let unit = Unit::html_in(&self.xml.text[range.clone()], self.language.as_deref());
        if !unit.document().sentences.is_empty() {
            self.edits.push(Edit { range, content: Content::Plain { unit: units.len() } });
            units.push(unit);
        }
    }

    /// The part with the texts of all units.
    fn render(&self, texts: &[String]) -> String {
        let mut out = String::with_capacity(self.xml.text.len() + self.xml.text.len() / 8);
        self.emit(0..self.xml.text.len(), 0, texts, &mut out);
        out
    }

    /// Writes a range with the edits in it, from the edit `first` on.
    fn emit(&self, range: Range<usize>, first: usize, texts: &[String], out: &mut String) {
        let found = self.edits[first..].partition_point(|edit| edit.range.start < range.start);
        let mut at = range.start;
        for (number, edit) in self.edits.iter().enumerate().skip(first + found) {
            if edit.range.start >= range.end {
                break;
            }
            // Inside of one that has been written.
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
                // It may be the value of an attribute.
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

/// Writes text with elements in it; `copy` writes a range of the part.
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
