//! XML as tags and text with byte ranges, and the text between tags before and after translation.
//!
//! Entities are never expanded; those that a DTD defines are kept.

use super::encoding::at;
use super::{FileError, Format};
use crate::document::{Document, Piece};
use crate::html::{EntityPlaceholders, decode};
use crate::message::special;
use crate::segment::Segment;
use htmlize::Context;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::ops::Range;

/// The maximum nesting depth of elements.
const DEPTH: usize = 400;

/// A tag, or the content between tags.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// `<a>`
    Start(Element),
    /// `<a/>`
    Empty(Element),
    /// `</a>`
    End,
    /// Text that may contain entities.
    Text,
    /// `<![CDATA[…]]>`
    CData,
    /// Comments, declarations, processing instructions.
    Other,
}

/// The name and the attributes of an element.
#[derive(Debug)]
pub(super) struct Element {
    /// Its name without a prefix.
    pub(super) name: String,
    /// The namespace prefix with its colon, or an empty string.
    pub(super) prefix: String,
    attributes: Vec<(String, String)>,
}

impl Element {
    /// The value of an attribute; entities are not decoded.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether an attribute has this value.
    pub(super) fn attribute_is(&self, name: &str, value: &str) -> bool {
        self.attribute(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    fn new(tag: &BytesStart<'_>) -> Result<Self, String> {
        let name = tag.name();
        let (prefix, name) = match name.0.split_once(':') {
            Some((prefix, name)) => (format!("{prefix}:"), name.to_owned()),
            None => (String::new(), name.0.to_owned()),
        };
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            attributes.push((attribute.key.0.to_owned(), attribute.value.into_owned()));
        }
        Ok(Element { name, prefix, attributes })
    }
}

/// A parsed XML file.
pub(super) struct Xml<'a> {
    pub(super) text: &'a str,
    pub(super) items: Vec<Item>,
    /// For each item, the index of the item that ends its element.
    ends: Vec<usize>,
}

impl<'a> Xml<'a> {
    pub(super) fn parse(format: Format, text: &'a str) -> Result<Self, FileError> {
        let mut reader = Reader::from_str(text);
        let (mut items, mut ends, mut open) = (Vec::<Item>::new(), Vec::new(), Vec::new());
        loop {
            let start = position(text, reader.buffer_position());
            let problem = |problem: String| at(format, text, start, format!("the XML is damaged: {problem}"));
            let event = reader.read_event().map_err(|error| {
                let place = position(text, reader.error_position());
                at(format, text, place, format!("the XML is damaged: {error}"))
            })?;
            let kind = match &event {
                Event::Eof => break,
                Event::Start(tag) => Kind::Start(Element::new(tag).map_err(problem)?),
                Event::Empty(tag) => Kind::Empty(Element::new(tag).map_err(problem)?),
                Event::End(_) => Kind::End,
                Event::Text(_) | Event::GeneralRef(_) => Kind::Text,
                Event::CData(_) => Kind::CData,
                _ => Kind::Other,
            };
            let range = start..position(text, reader.buffer_position());
            if range.is_empty() {
                continue;
            }
            match kind {
                Kind::Start(_) if open.len() == DEPTH => {
                    return Err(problem(format!("elements are nested more than {DEPTH} deep")));
                }
                Kind::Start(_) => open.push(items.len()),
                Kind::End => match open.pop() {
                    Some(start) => ends[start] = items.len(),
                    None => return Err(problem("an end tag has no start tag".to_owned())),
                },
                Kind::Text => {
                    if let Some(last) = items.last_mut().filter(|last| matches!(last.kind, Kind::Text)) {
                        last.range.end = range.end;
                        continue;
                    }
                }
                _ => {}
            }
            ends.push(items.len());
            items.push(Item { range, kind });
        }
        match open.last().map(|open| &items[*open]) {
            Some(item) => {
                let problem = format!("`{}` is not closed", &text[item.range.clone()]);
                Err(at(format, text, item.range.start, problem))
            }
            None => Ok(Xml { text, items, ends }),
        }
    }

    /// An item as written in the file.
    pub(super) fn raw(&self, item: usize) -> &'a str {
        &self.text[self.items[item].range.clone()]
    }

    /// The element that begins with an item.
    pub(super) fn element(&self, item: usize) -> Option<&Element> {
        match &self.items[item].kind {
            Kind::Start(element) | Kind::Empty(element) => Some(element),
            _ => None,
        }
    }

    /// The item that ends the element that begins with `item`; `item` itself if the element has no
    /// content.
    pub(super) fn end_item(&self, item: usize) -> usize {
        self.ends[item]
    }

    /// The items inside an element.
    pub(super) fn inner_items(&self, item: usize) -> Range<usize> {
        (item + 1).min(self.end_item(item))..self.end_item(item)
    }

    /// The byte range of the content of an element.
    pub(super) fn content(&self, item: usize) -> Range<usize> {
        let end = self.end_item(item);
        let start = self.items[item].range.end;
        if end == item { start..start } else { start..self.items[end].range.start }
    }

    /// A whole element as written in the file.
    pub(super) fn outer_xml(&self, item: usize) -> &'a str {
        &self.text[self.items[item].range.start..self.items[self.end_item(item)].range.end]
    }

    /// The decoded text of an element without its tags.
    pub(super) fn words(&self, item: usize) -> String {
        let texts = self.inner_items(item).filter(|inner| matches!(self.items[*inner].kind, Kind::Text));
        htmlize::unescape(texts.map(|inner| self.raw(inner)).collect::<String>()).into_owned()
    }
}

fn position(text: &str, at: u64) -> usize {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Sets an attribute of a start tag.
pub(super) fn with_attribute(tag: &str, name: &str, value: &str) -> String {
    let value = crate::html::escape(value).replace('"', "&quot;");
    if let Some(range) = attribute_range(tag, name) {
        return format!("{}\"{value}\"{}", &tag[..range.start], &tag[range.end..]);
    }
    let end = tag.trim_end_matches(['/', '>']).trim_end().len();
    format!("{} {name}=\"{value}\"{}", &tag[..end], &tag[end..])
}

/// The byte range of the value of an attribute in a tag, including its quotation marks.
fn attribute_range(tag: &str, name: &str) -> Option<Range<usize>> {
    let mut at = tag.find(char::is_whitespace)?;
    loop {
        let equals = at + tag[at..].find('=')?;
        let start = equals + tag[equals..].find(['"', '\''])?;
        let quote = tag[start..].chars().next()?;
        let end = start + 1 + tag[start + 1..].find(quote)? + 1;
        if tag[at..equals].trim() == name {
            return Some(start..end);
        }
        at = end;
    }
}

/// Decodes the text between tags.
pub(super) struct XmlText {
    pub(super) entities: EntityPlaceholders,
}

impl XmlText {
    pub(super) fn new(text: &str) -> Self {
        XmlText { entities: EntityPlaceholders::new(text) }
    }

    /// Adds text with entities and placeholders to a segment.
    pub(super) fn add(&mut self, raw: &str, segment: &mut Segment) {
        let mut at = 0;
        for range in special(raw, false) {
            self.add_plain(&raw[at..range.start], segment);
            let placeholder = &raw[range.clone()];
            segment.opaque(vec![Piece::Keep(placeholder.to_owned())], placeholder);
            at = range.end;
        }
        self.add_plain(&raw[at..], segment);
    }

    pub(super) fn add_plain(&mut self, raw: &str, segment: &mut Segment) {
        segment.decoded(raw, |text, escaping| {
            decode(raw, Context::General, text, &mut self.entities, (escaping, true));
        });
    }
}

/// Replaces parts of a text with pieces; the replacements must come in order.
pub(super) struct Edits<'a> {
    text: &'a str,
    at: usize,
    pub(super) document: Document,
}

impl<'a> Edits<'a> {
    pub(super) fn new(text: &'a str, language: Option<&str>) -> Self {
        Edits { text, at: 0, document: Document::in_language(language) }
    }

    /// Replaces a range with pieces. Ignored if the range begins before the end of the last
    /// replacement.
    pub(super) fn replace(&mut self, range: Range<usize>, pieces: Vec<Piece>) {
        if range.start < self.at {
            return;
        }
        self.document.keep(&self.text[self.at..range.start]);
        self.document.add(pieces);
        self.at = range.end;
    }

    /// The document of the whole text.
    pub(super) fn finish(mut self) -> Document {
        self.document.keep(&self.text[self.at..]);
        self.document
    }
}
