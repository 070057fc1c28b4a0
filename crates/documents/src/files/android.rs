//! Android's `strings.xml`: strings, arrays and plurals.

use super::encoding::decode;
use super::splice::whole;
use super::tags::{Edits, Kind, Xml, XmlText};
use super::{FileDocument, FileError, FileOptions, Format};
use crate::document::{Document, Piece, keep};
use crate::html::{self, AddText, EntityPlaceholders};
use crate::message::special;
use crate::segment::{Escaping, Segment};
use std::ops::Range;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(Format::AndroidStrings, bytes)?;
    let document = document(&text, options.source_language.as_deref())?;
    Ok(whole(text, encoding, document))
}

fn document(text: &str, language: Option<&str>) -> Result<Document, FileError> {
    let xml = Xml::parse(Format::AndroidStrings, text)?;
    let root = (0..xml.items.len()).find_map(|item| xml.element(item));
    if root.is_none_or(|root| root.name != "resources") {
        let found = "its first element is not `resources`".to_owned();
        return Err(FileError::OtherFormat { format: Format::AndroidStrings, found });
    }
    let mut edits = Edits::new(text, language);
    let mut reader = Reader { xml: &xml, text: XmlText::new(text) };
    let mut item = 0;
    while item < xml.items.len() {
        let name = xml.element(item).map_or("", |element| element.name.as_str());
        let kept = xml.element(item).is_some_and(|element| element.attribute_is("translatable", "false"));
        match name {
            _ if kept => item = xml.end_item(item),
            "string" => {
                reader.string(item, &mut edits);
                item = xml.end_item(item);
            }
            "string-array" | "plurals" => {
                let items = xml
                    .inner_items(item)
                    .filter(|inner| xml.element(*inner).is_some_and(|e| e.name == "item"));
                items.for_each(|inner| reader.string(inner, &mut edits));
                item = xml.end_item(item);
            }
            _ => {}
        }
        item += 1;
    }
    Ok(edits.finish())
}

struct Reader<'a> {
    xml: &'a Xml<'a>,
    text: XmlText,
}

impl Reader<'_> {
    /// Translates the content of a `string` or `item` element.
    fn string(&mut self, item: usize, edits: &mut Edits<'_>) {
        let content = self.xml.content(item);
        let raw = self.xml.text[content.clone()].trim();
        // References to other resources are not translated.
        if raw.starts_with(['@', '?']) {
            return;
        }
        let quoted = raw.len() > 1 && raw.starts_with('"') && raw.ends_with('"') && !raw.ends_with("\\\"");
        let mut pieces = Vec::new();
        let mut segment = Segment::new(escaping(quoted, true));
        let items = self.xml.inner_items(item);
        let mut inner = items.start;
        while inner < items.end {
            if segment.is_full() {
                let full = std::mem::replace(&mut segment, Segment::new(escaping(quoted, true)));
                pieces.extend(full.finish(&mut edits.document));
            }
            inner = self.add(inner, quoted, &mut segment, &mut pieces, edits) + 1;
        }
        pieces.extend(segment.finish(&mut edits.document));
        edits.replace(content, pieces);
    }

    /// Adds one item of the content, and returns the last item that belongs to it.
    fn add(
        &mut self,
        item: usize,
        quoted: bool,
        segment: &mut Segment,
        pieces: &mut Vec<Piece>,
        edits: &mut Edits<'_>,
    ) -> usize {
        let raw = self.xml.raw(item);
        let kept = |raw: &str| vec![Piece::Keep(raw.to_owned())];
        match &self.xml.items[item].kind {
            Kind::Text => self.lines(raw, quoted, segment, pieces, &mut edits.document),
            Kind::CData => {
                let full = std::mem::replace(segment, Segment::new(escaping(quoted, true)));
                pieces.extend(full.finish(&mut edits.document));
                let inner =
                    raw.strip_prefix("<![CDATA[").and_then(|raw| raw.strip_suffix("]]>")).unwrap_or(raw);
                keep(pieces, "<![CDATA[");
                let mut text = CData { entities: std::mem::take(&mut self.text.entities) };
                pieces.extend(html::pieces(inner, html::Kind::Message, &mut edits.document, &mut text));
                self.text.entities = text.entities;
                keep(pieces, "]]>");
            }
            // `xliff:g` marks a placeholder with a name and an example.
            Kind::Start(element) if element.name == "g" || element.attribute_is("translate", "no") => {
                segment.opaque(kept(self.xml.outer_xml(item)), &self.xml.words(item));
                return self.xml.end_item(item);
            }
            Kind::Start(element) => segment.open(&element.name, kept(raw)),
            Kind::End => {
                let name = raw.trim_start_matches("</").trim_end_matches('>').trim();
                segment.close(name.rsplit(':').next().unwrap_or(name), raw);
            }
            Kind::Empty(_) | Kind::Other => segment.point(kept(raw)),
        }
        item
    }

    /// Adds text; each line is translated separately.
    fn lines(
        &mut self,
        raw: &str,
        quoted: bool,
        segment: &mut Segment,
        pieces: &mut Vec<Piece>,
        document: &mut Document,
    ) {
        let mut at = 0;
        for line_end in line_ends(raw) {
            add_text(&raw[at..line_end.start], segment, &mut self.text.entities);
            let full = std::mem::replace(segment, Segment::new(escaping(quoted, true)));
            pieces.extend(full.finish(document));
            keep(pieces, &raw[line_end.clone()]);
            at = line_end.end;
        }
        add_text(&raw[at..], segment, &mut self.text.entities);
    }
}

/// The ranges of the escape `\n` in a text.
fn line_ends(raw: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = raw[at..].find('\\') {
        at += step;
        if raw[at..].starts_with("\\n") {
            found.push(at..at + 2);
        }
        at += 1 + raw[at + 1..].chars().next().map_or(0, char::len_utf8);
    }
    found
}

/// How characters are escaped in a string: unescaped apostrophes and quotation marks would end it.
fn escaping(quoted: bool, xml: bool) -> Escaping {
    let mut escaping = if xml { Escaping::xml() } else { Escaping::default() };
    if !quoted {
        escaping.record('\'', || "\\'".to_owned());
        escaping.record('"', || "\\\"".to_owned());
    }
    escaping.record('\\', || "\\\\".to_owned());
    escaping
}

/// Adds text with entities, escapes and placeholders to a segment.
fn add_text(raw: &str, segment: &mut Segment, entities: &mut EntityPlaceholders) {
    let mut at = 0;
    for range in special(raw, false) {
        add_plain(&raw[at..range.start], segment, entities);
        let placeholder = &raw[range.clone()];
        segment.opaque(vec![Piece::Keep(placeholder.to_owned())], placeholder);
        at = range.end;
    }
    add_plain(&raw[at..], segment, entities);
}

fn add_plain(raw: &str, segment: &mut Segment, entities: &mut EntityPlaceholders) {
    let mut at = 0;
    while let Some(step) = raw[at..].find('\\') {
        let start = at + step;
        let escape = escape(&raw[start..]);
        let Some((c, length)) = escape else { break };
        add_entities(&raw[at..start], segment, entities);
        segment.decoded(&raw[start..start + length], |text, escaping| {
            text.push(c);
            if !matches!(c, '\'' | '"' | '\\' | ' ') {
                escaping.record(c, || raw[start..start + length].to_owned());
            }
        });
        at = start + length;
    }
    add_entities(&raw[at..], segment, entities);
}

/// The character that an escape at the start of a text stands for, and the length of the escape.
fn escape(raw: &str) -> Option<(char, usize)> {
    let c = raw[1..].chars().next()?;
    match c {
        't' => Some(('\t', 2)),
        'u' => {
            let digits = raw.get(2..6).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            (!c.is_control()).then_some((c, 6))
        }
        c => Some((c, 1 + c.len_utf8())),
    }
}

fn add_entities(raw: &str, segment: &mut Segment, entities: &mut EntityPlaceholders) {
    segment.decoded(raw, |text, escaping| {
        html::decode(raw, htmlize::Context::General, text, entities, (escaping, true));
    });
}

/// HTML in a CDATA section.
struct CData {
    entities: EntityPlaceholders,
}

impl AddText for CData {
    fn add_text(&mut self, raw: &str, segment: &mut Segment, _: &mut Document) {
        add_text(raw, segment, &mut self.entities);
    }

    fn entities(&mut self) -> &mut EntityPlaceholders {
        &mut self.entities
    }

    fn escaping(&self) -> Escaping {
        // `]]>` would end the section.
        escaping(false, true)
    }
}

#[cfg(test)]
mod tests {
    use crate::files::testing::{capitals, identity, translated};
    use crate::files::{FileDocument, FileOptions, Format};

    fn capital(body: &str) -> String {
        let text = format!("<?xml version=\"1.0\"?>\n<resources>\n{body}\n</resources>\n");
        assert_eq!(identity(Format::AndroidStrings, text.as_bytes()), text.as_bytes());
        let out = translated(Format::AndroidStrings, &text, &FileOptions::default(), capitals);
        let (start, end) = text.split_once(body).unwrap();
        out.strip_prefix(start).unwrap().strip_suffix(end).unwrap().to_owned()
    }

    #[test]
    fn strings_arrays_and_plurals_are_translated() {
        for (body, wanted) in [
            ("<string name=\"a\">open the file</string>", "<string name=\"a\">OPEN THE FILE</string>"),
            (
                "<plurals name=\"n\"><item quantity=\"one\">one <b>file</b></item><item quantity=\"other\">%d files</item></plurals>",
                "<plurals name=\"n\"><item quantity=\"one\">ONE <b>FILE</b></item><item quantity=\"other\">%d FILES</item></plurals>",
            ),
            (
                "<string-array name=\"x\"><item>red</item><!-- c --><item>green</item></string-array>",
                "<string-array name=\"x\"><item>RED</item><!-- c --><item>GREEN</item></string-array>",
            ),
            (
                "<string name=\"a\">don\\'t say \\\"no\\\"\\nplease</string>",
                "<string name=\"a\">DON\\'T SAY \\\"NO\\\"\\nPLEASE</string>",
            ),
            ("<string name=\"a\">\"it's  so\"</string>", "<string name=\"a\">\"IT'S SO\"</string>"),
            (
                "<string name=\"a\">hello <xliff:g id=\"n\" example=\"Ann\">%1$s</xliff:g> &amp; you</string>",
                "<string name=\"a\">HELLO <xliff:g id=\"n\" example=\"Ann\">%1$s</xliff:g> &amp; YOU</string>",
            ),
            (
                "<string name=\"a\"><![CDATA[<p>read <b>it</b></p>]]></string>",
                "<string name=\"a\"><![CDATA[<p>READ <b>IT</b></p>]]></string>",
            ),
            // Not translated.
            (
                "<string name=\"a\" translatable=\"false\">id</string>",
                "<string name=\"a\" translatable=\"false\">id</string>",
            ),
            ("<string name=\"a\">@string/b</string>", "<string name=\"a\">@string/b</string>"),
            ("<color name=\"a\">red</color>", "<color name=\"a\">red</color>"),
        ] {
            assert_eq!(capital(body), wanted);
        }
    }

    #[test]
    fn damaged_files_are_named_by_their_line() {
        let open = |text: &str| {
            FileDocument::open(Format::AndroidStrings, text.as_bytes(), &FileOptions::default())
                .unwrap_err()
                .to_string()
        };
        let message = open("<resources>\n<string name=\"a\">x</strin>\n</resources>");
        assert!(message.starts_with("line 2 of the android file: the XML is damaged"), "{message}");
        let message = open("<resources>\n<string name=\"a\">x");
        assert!(
            message.starts_with("line 2 of the android file: `<string name=\"a\">` is not closed"),
            "{message}"
        );
        assert!(open("<html/>").contains("resources"));
    }
}
