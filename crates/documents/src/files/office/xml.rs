//! A part of a package as a list of tags and texts with byte ranges, so that everything that is not
//! translated can be copied as written.
//!
//! Entities are never expanded, so a DTD cannot make a part grow.

use quick_xml::Reader;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// The maximum nesting depth. Real documents stay far below it, and recursive functions need a
/// bound.
const DEPTH: usize = 400;
/// The maximum number of tags and texts in a part, which bounds the memory for the list.
const EVENTS: usize = 20_000_000;

/// The namespaces that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    None,
    Word,
    Drawing,
    Sheet,
    Math,
    Text,
    Table,
    Office,
    Style,
    Presentation,
    Xhtml,
    Ncx,
    Package,
    DublinCore,
    Other,
}

impl Namespace {
    fn of(uri: &str) -> Self {
        let uri = uri.trim();
        let ooxml = uri
            .strip_prefix("http://schemas.openxmlformats.org/")
            .or_else(|| uri.strip_prefix("http://purl.oclc.org/ooxml/"));
        if let Some(rest) = ooxml {
            return match rest {
                "wordprocessingml/2006/main" | "wordprocessingml/main" => Namespace::Word,
                "drawingml/2006/main" | "drawingml/main" => Namespace::Drawing,
                "spreadsheetml/2006/main" | "spreadsheetml/main" => Namespace::Sheet,
                "officeDocument/2006/math" | "officeDocument/math" => Namespace::Math,
                _ => Namespace::Other,
            };
        }
        if let Some(rest) = uri.strip_prefix("urn:oasis:names:tc:opendocument:xmlns:") {
            return match rest.split(':').next() {
                Some("text") => Namespace::Text,
                Some("table") => Namespace::Table,
                Some("office") => Namespace::Office,
                Some("style") => Namespace::Style,
                Some("presentation") => Namespace::Presentation,
                _ => Namespace::Other,
            };
        }
        match uri {
            "http://www.w3.org/1999/xhtml" => Namespace::Xhtml,
            "http://www.daisy.org/z3986/2005/ncx/" => Namespace::Ncx,
            "http://www.idpf.org/2007/opf" => Namespace::Package,
            "http://purl.org/dc/elements/1.1/" => Namespace::DublinCore,
            "" => Namespace::None,
            _ => Namespace::Other,
        }
    }
}

/// The type of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `<a>`; `partner` is the index of its end tag.
    Open,
    /// `</a>`; `partner` is the index of its start tag.
    Close,
    /// `<a/>`.
    Empty,
    /// Text that may contain entities.
    Text,
    /// `<![CDATA[…]]>`.
    CData,
    /// Comments, declarations, processing instructions.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    namespace: Namespace,
    start: u32,
    end: u32,
    partner: u32,
}

/// A parsed part.
#[derive(Debug)]
pub(super) struct Xml {
    pub(super) text: String,
    pub(super) items: Vec<Item>,
}

impl Xml {
    /// Parses a part, or returns what is wrong with it. `doctype` says whether a DTD is allowed;
    /// office documents must not have one.
    pub(super) fn parse(bytes: Vec<u8>, doctype: bool) -> Result<Self, String> {
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return Err("it is written in UTF-16; only UTF-8 can be read".to_owned());
        }
        let mut text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        // The byte order mark is not part of the first tag.
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        if u32::try_from(text.len()).is_err() {
            return Err("it is larger than 4 GB".to_owned());
        }
        let items = events(&text, doctype)?;
        Ok(Xml { text, items })
    }

    /// The byte range of an item.
    pub(super) fn range(&self, item: usize) -> Range<usize> {
        self.items[item].start as usize..self.items[item].end as usize
    }

    /// An item as written in the part.
    pub(super) fn raw(&self, item: usize) -> &str {
        &self.text[self.range(item)]
    }

    /// The last item of the element that begins with `item`; `item` itself if it is not an element
    /// with content.
    pub(super) fn end_item(&self, item: usize) -> usize {
        match self.items[item].kind {
            Kind::Open => self.items[item].partner as usize,
            _ => item,
        }
    }

    /// The byte range of a whole element.
    pub(super) fn outer_range(&self, item: usize) -> Range<usize> {
        self.range(item).start..self.range(self.end_item(item)).end
    }

    /// The byte range between the tags of an element.
    pub(super) fn inner_range(&self, item: usize) -> Range<usize> {
        let last = self.end_item(item);
        if last == item {
            self.range(item).end..self.range(item).end
        } else {
            self.range(item).end..self.range(last).start
        }
    }

    /// The namespace and the local name of an element.
    pub(super) fn name(&self, item: usize) -> (Namespace, &str) {
        let Item { kind, namespace, .. } = self.items[item];
        match kind {
            Kind::Open | Kind::Empty | Kind::Close => {
                let name = qualified(self.raw(item));
                (namespace, name.rsplit_once(':').map_or(name, |(_, local)| local))
            }
            _ => (Namespace::None, ""),
        }
    }

    /// Whether an item begins an element with this name.
    pub(super) fn begins(&self, item: usize, namespace: Namespace, local: &str) -> bool {
        matches!(self.items[item].kind, Kind::Open | Kind::Empty) && self.name(item) == (namespace, local)
    }

    /// The namespace prefix of an element, with its colon.
    pub(super) fn prefix(&self, item: usize) -> &str {
        let name = qualified(self.raw(item));
        name.find(':').map_or("", |at| &name[..=at])
    }

    /// The items directly inside an element.
    pub(super) fn children(&self, item: usize) -> impl Iterator<Item = usize> {
        let last = self.end_item(item);
        let mut next = item + 1;
        std::iter::from_fn(move || {
            let this = (next < last).then_some(next)?;
            next = self.end_item(this) + 1;
            Some(this)
        })
    }

    /// The first child with this name.
    pub(super) fn child(&self, item: usize, namespace: Namespace, local: &str) -> Option<usize> {
        self.children(item).find(|&child| self.begins(child, namespace, local))
    }

    /// The byte range of the value of an attribute, found by its local name or by its prefixed
    /// name.
    pub(super) fn attribute_range(&self, item: usize, name: &str) -> Option<Range<usize>> {
        attribute_range(self.raw(item), name).map(|range| {
            let start = self.range(item).start;
            start + range.start..start + range.end
        })
    }

    /// The byte range of the value of the attribute with exactly this name.
    pub(super) fn exact_attribute(&self, item: usize, name: &str) -> Option<Range<usize>> {
        let start = self.range(item).start;
        let found = attributes(self.raw(item)).find(|(key, _)| *key == name);
        found.map(|(_, range)| start + range.start..start + range.end)
    }

    /// The value of an attribute with its entities decoded.
    pub(super) fn attribute(&self, item: usize, name: &str) -> Option<String> {
        self.attribute_range(item, name).map(|range| unescape(&self.text[range]))
    }

    /// The text in an element at any depth, with its entities decoded.
    pub(super) fn content(&self, item: usize) -> String {
        (item..self.end_item(item)).filter_map(|inner| self.characters(inner)).collect()
    }

    /// The decoded text of an item, if it is text or CDATA.
    pub(super) fn characters(&self, item: usize) -> Option<String> {
        let raw = self.raw(item);
        match self.items[item].kind {
            Kind::Text => Some(unescape(raw)),
            Kind::CData => Some(cdata(raw).to_owned()),
            _ => None,
        }
    }
}

/// The content of a CDATA section.
pub(super) fn cdata(raw: &str) -> &str {
    raw.strip_prefix("<![CDATA[").and_then(|rest| rest.strip_suffix("]]>")).unwrap_or(raw)
}

/// The name in a tag.
pub(super) fn qualified(raw: &str) -> &str {
    let name = raw.trim_start_matches(['<', '/']);
    let end = name.find(|c: char| c.is_whitespace() || c == '>' || c == '/').unwrap_or(name.len());
    &name[..end]
}

/// The byte range of the value of an attribute in a tag. A name without a prefix matches any
/// prefix.
pub(super) fn attribute_range(tag: &str, name: &str) -> Option<Range<usize>> {
    attributes(tag).find_map(|(key, range)| {
        let local = key.rsplit_once(':').map_or(key, |(_, local)| local);
        (key == name || (!name.contains(':') && local == name)).then_some(range)
    })
}

/// The names of the attributes of a tag, and the byte ranges of their values.
fn attributes(tag: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let name_end = tag.len() - tag.trim_start_matches(['<', '/']).len() + qualified(tag).len();
    let end = tag.len() - if tag.ends_with("/>") { 2 } else { usize::from(tag.ends_with('>')) };
    let inner = tag.get(..end).unwrap_or_default();
    let start = inner.as_ptr() as usize;
    let mut found = Attributes::new(inner, name_end.min(inner.len()));
    found.with_checks(false);
    found.flatten().filter_map(move |attribute| {
        let Cow::Borrowed(value) = attribute.value else { return None };
        let at = (value.as_ptr() as usize).checked_sub(start)?;
        let key: &str = attribute.key.into_inner();
        Some((key, at..at + value.len()))
    })
}

/// Decodes predefined entities and numeric character references; other entities stay.
pub(super) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((character(&rest[1..end])?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

/// Escapes text for use between tags and in attributes. Characters that XML does not allow are
/// dropped.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if is_allowed(c) => out.push(c),
            _ => {}
        }
    }
    out
}

/// Whether XML allows a character.
pub(super) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// The tags and texts of a part.
fn events(text: &str, doctype: bool) -> Result<Vec<Item>, String> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    // Real XHTML books contain a bare `&` here and there; it is written back unchanged.
    config.allow_dangling_amp = true;
    let mut items: Vec<Item> = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    let mut prefixes: HashMap<String, Namespace> = HashMap::new();
    loop {
        let start = position(reader.buffer_position(), text)?;
        let event = reader
            .read_event()
            .map_err(|error| format!("its XML is damaged at byte {}: {error}", reader.error_position()))?;
        let end = position(reader.buffer_position(), text)?;
        let mut namespace = Namespace::None;
        let kind = match event {
            Event::Eof => break,
            Event::Start(_) => Kind::Open,
            Event::Empty(_) => Kind::Empty,
            Event::End(_) => Kind::Close,
            Event::Text(_) | Event::GeneralRef(_) => Kind::Text,
            Event::CData(_) => Kind::CData,
            Event::DocType(_) if !doctype => {
                return Err("it has a document type (DTD), which is not allowed here".to_owned());
            }
            _ => Kind::Other,
        };
        if start >= end {
            continue;
        }
        let raw = text.get(start as usize..end as usize).ok_or("its XML is damaged")?;
        if matches!(kind, Kind::Open | Kind::Empty) {
            namespace = declared(raw, &mut prefixes);
        }
        let number = items.len() as u32;
        let mut partner = number;
        match kind {
            Kind::Open if open.len() >= DEPTH => {
                return Err(format!("its elements are nested more than {DEPTH} deep"));
            }
            Kind::Open => open.push(number),
            Kind::Close => {
                partner = open.pop().ok_or("its XML is damaged: an end tag without a start tag")?;
                items[partner as usize].partner = number;
                namespace = items[partner as usize].namespace;
            }
            Kind::Text => {
                if let Some(last) =
                    items.last_mut().filter(|last| last.kind == Kind::Text && last.end == start)
                {
                    last.end = end;
                    continue;
                }
            }
            _ => {}
        }
        if items.len() >= EVENTS {
            return Err(format!("it has more than {EVENTS} tags"));
        }
        items.push(Item { kind, namespace, start, end, partner });
    }
    match open.last() {
        Some(&number) => {
            let name = qualified(&text[items[number as usize].start as usize..]);
            Err(format!("its XML is damaged: `{name}` is not closed"))
        }
        None => Ok(items),
    }
}

fn position(at: u64, text: &str) -> Result<u32, String> {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    u32::try_from(at).map_err(|_| "it is larger than 4 GB".to_owned())
}

/// The namespace of an element. A prefix declaration applies to the rest of the part, because real
/// documents do not redefine prefixes.
fn declared(raw: &str, prefixes: &mut HashMap<String, Namespace>) -> Namespace {
    if raw.contains("xmlns") {
        for (key, range) in attributes(raw) {
            let prefix = match key.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => match rest.strip_prefix(':') {
                    Some(prefix) => prefix,
                    None => continue,
                },
                None => continue,
            };
            prefixes.insert(prefix.to_owned(), Namespace::of(&raw[range]));
        }
    }
    let name = qualified(raw);
    let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
    prefixes.get(prefix).copied().unwrap_or(Namespace::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Xml {
        Xml::parse(text.as_bytes().to_vec(), true).unwrap()
    }

    #[test]
    fn all_items_together_are_the_part() {
        let text = "<?xml version='1.0'?><a x='1>' y=\"&quot;\"><!-- c --><b/>t &amp; u<![CDATA[<x>]]></a>\n";
        let xml = parse(text);
        let whole: String = (0..xml.items.len()).map(|item| xml.raw(item)).collect();
        assert_eq!(whole, text);
        let a = (0..xml.items.len()).find(|&item| xml.begins(item, Namespace::None, "a")).unwrap();
        assert_eq!(xml.attribute(a, "y").as_deref(), Some("\""));
        assert_eq!(xml.attribute(a, "x").as_deref(), Some("1>"));
        assert_eq!(xml.attribute(a, "z"), None);
        assert_eq!(xml.content(a), "t & u<x>");
        assert_eq!(xml.children(a).count(), 4);
    }

    #[test]
    fn names_have_namespaces_whatever_their_prefix() {
        let text = "<q:p xmlns:q='http://purl.oclc.org/ooxml/wordprocessingml/main'><q:r/><x:r/></q:p>";
        let xml = parse(text);
        assert!(xml.begins(0, Namespace::Word, "p") && xml.begins(1, Namespace::Word, "r"));
        assert!(xml.begins(2, Namespace::None, "r"));
        assert_eq!(xml.prefix(1), "q:");
    }

    #[test]
    fn damaged_parts_are_refused() {
        let deep = "<a>".repeat(DEPTH + 1);
        for (text, wanted) in [
            ("<a><b></a>", "damaged"),
            ("<a>", "not closed"),
            ("</a>", "damaged"),
            ("<a", "damaged"),
            (deep.as_str(), "nested more than"),
            ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "document type"),
        ] {
            let error = Xml::parse(text.as_bytes().to_vec(), false).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(Xml::parse(b"\xff\xfe<\0".to_vec(), false).unwrap_err().contains("UTF-16"));
        assert!(Xml::parse(b"<a>\xff</a>".to_vec(), false).unwrap_err().contains("UTF-8"));
    }
}
