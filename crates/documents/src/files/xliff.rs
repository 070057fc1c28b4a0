//! XLIFF 1.2 and 2: translates `source` into `target`.

use super::codes;
use super::encoding::decode;
use super::splice::whole;
use super::tags::{Edits, Kind, Xml, XmlText, with_attribute};
use super::{FileDocument, FileError, FileOptions, Format};
use crate::document::{Document, Piece, keep};

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(Format::Xliff, bytes)?;
    let document = document(&text, options)?;
    Ok(whole(text, encoding, document))
}

fn document(text: &str, options: &FileOptions) -> Result<Document, FileError> {
    let xml = Xml::parse(Format::Xliff, text)?;
    let root = (0..xml.items.len()).find_map(|item| xml.element(item));
    let Some(root) = root.filter(|root| root.name == "xliff") else {
        let found = "its first element is not `xliff`".to_owned();
        return Err(FileError::OtherFormat { format: Format::Xliff, found });
    };
    let version = root.attribute("version").unwrap_or("1.2");
    let version = if version.starts_with('2') { 2 } else { 1 };
    let mut edits = Edits::new(text, options.source_language.as_deref());
    let mut reader = Reader { xml: &xml, options, version, text: XmlText::new(text) };
    let mut item = 0;
    while item < xml.items.len() {
        let Some(element) = xml.element(item) else {
            item += 1;
            continue;
        };
        match element.name.as_str() {
            _ if element.attribute_is("translate", "no") => item = xml.end_item(item),
            "xliff" if version == 2 => reader.language(item, "trgLang", &mut edits),
            "file" if version == 1 => reader.language(item, "target-language", &mut edits),
            "trans-unit" | "segment" => {
                reader.unit(item, &mut edits);
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
    options: &'a FileOptions,
    version: u32,
    text: XmlText,
}

impl Reader<'_> {
    /// Records the target language, if the file does not give one.
    fn language(&self, item: usize, attribute: &str, edits: &mut Edits<'_>) {
        let Some(language) = &self.options.target_language else { return };
        if self.xml.element(item).is_some_and(|element| element.attribute(attribute).is_none()) {
            let tag = with_attribute(self.xml.raw(item), attribute, language);
            edits.replace(self.xml.items[item].range.clone(), vec![Piece::Keep(tag)]);
        }
    }

    /// The child of an element with this name.
    fn child(&self, parent: usize, name: &str) -> Option<usize> {
        let items = self.xml.inner_items(parent);
        let mut item = items.start;
        while item < items.end {
            if self.xml.element(item).is_some_and(|element| element.name == name) {
                return Some(item);
            }
            item = self.xml.end_item(item).max(item) + 1;
        }
        None
    }

    /// Whether a unit needs translation.
    fn is_open(&self, unit: usize, target: Option<usize>) -> bool {
        let element = |item: usize| self.xml.element(item);
        let states = [element(unit), target.and_then(element)].into_iter().flatten();
        let done = states.into_iter().any(|element| {
            element.attribute_is("approved", "yes")
                || element.attribute_is("state", "final")
                || element.attribute_is("state", "signed-off")
        });
        let empty = target.is_none_or(|target| self.xml.text[self.xml.content(target)].trim().is_empty());
        empty || !(done || self.options.only_empty)
    }

    /// Translates a `trans-unit` of XLIFF 1.2, or a `segment` of XLIFF 2.
    fn unit(&mut self, unit: usize, edits: &mut Edits<'_>) {
        let Some(source) = self.child(unit, "source") else { return };
        let target = self.child(unit, "target");
        if !self.is_open(unit, target) {
            return;
        }
        let first = edits.document.sentences.len();
        let content = codes::content(self.xml, source, &mut self.text, &mut edits.document);
        if edits.document.sentences.len() == first && target.is_some() {
            return;
        }
        let tag_range = self.xml.items[unit].range.clone();
        let place = match target {
            Some(target) => {
                self.xml.items[target].range.start..self.xml.items[self.xml.end_item(target)].range.end
            }
            None => {
                let last = self.child(unit, "seg-source").unwrap_or(source);
                let end = self.xml.items[self.xml.end_item(last)].range.end;
                end..end
            }
        };
        let mut pieces = Vec::new();
        keep(&mut pieces, &self.unit_tag(unit));
        keep(&mut pieces, &self.xml.text[tag_range.end..place.start]);
        self.target(source, target, content, &mut pieces);
        let whole = tag_range.start..place.end;
        let same = target.is_some_and(|target| {
            self.xml.text[self.xml.content(target)] == self.xml.text[self.xml.content(source)]
        });
        // A target that is already identical to the translation stays unchanged.
        let pieces = match same {
            true => vec![Piece::Either {
                raw: vec![Piece::Keep(self.xml.text[whole.clone()].to_owned())],
                translated: pieces,
                sentences: first..edits.document.sentences.len(),
            }],
            false => pieces,
        };
        edits.replace(whole, pieces);
    }

    /// The start tag of a unit. In XLIFF 2 a segment carries the translation state.
    fn unit_tag(&self, unit: usize) -> String {
        let raw = self.xml.raw(unit);
        if self.version == 2 { with_attribute(raw, "state", "translated") } else { raw.to_owned() }
    }

    /// Adds the `target` element with its content.
    fn target(&self, source: usize, target: Option<usize>, content: Vec<Piece>, pieces: &mut Vec<Piece>) {
        let (tag, end) = match target {
            Some(target) => {
                let raw = self.xml.raw(target);
                let name = raw[1..].split(|c: char| c.is_whitespace() || matches!(c, '/' | '>')).next();
                let end = format!("</{}>", name.unwrap_or("target"));
                match self.xml.items[target].kind {
                    Kind::Empty(_) => (raw.trim_end_matches("/>").trim_end().to_owned() + ">", end),
                    _ => (raw.to_owned(), self.xml.raw(self.xml.end_item(target)).to_owned()),
                }
            }
            None => {
                keep(pieces, self.indentation(source));
                let prefix = self.xml.element(source).map_or("", |source| source.prefix.as_str());
                (format!("<{prefix}target>"), format!("</{prefix}target>"))
            }
        };
        let tag = match self.version {
            1 => {
                let tag = with_attribute(&tag, "state", "needs-review-translation");
                with_attribute(&tag, "state-qualifier", "leveraged-mt")
            }
            _ => tag,
        };
        keep(pieces, &tag);
        pieces.extend(content);
        keep(pieces, &end);
    }

    /// The line break and the indentation before an element, if it is first on its line.
    fn indentation(&self, item: usize) -> &str {
        let before = &self.xml.text[..self.xml.items[item].range.start];
        let line = before.trim_end_matches([' ', '\t']).len();
        let start = before[..line].trim_end_matches(['\r', '\n']).len();
        // At most one line break, even after blank lines.
        let start = if start == line { before.len() } else { before[..line].rfind('\n').unwrap_or(line) };
        let start = if before[..start].ends_with('\r') { start - 1 } else { start };
        &before[start..]
    }
}

#[cfg(test)]
mod tests {
    use crate::files::testing::{capitals, identity, translated};
    use crate::files::{FileDocument, FileOptions, Format};

    fn in_1(body: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<xliff version=\"1.2\"><file source-language=\"en\" target-language=\"de\"><body>{body}</body></file></xliff>"
        )
    }

    fn in_2(body: &str) -> String {
        format!(
            "<xliff version=\"2.0\" srcLang=\"en\" trgLang=\"de\"><file id=\"f\"><unit id=\"u\">{body}</unit></file></xliff>"
        )
    }

    const STATE: &str = " state=\"needs-review-translation\" state-qualifier=\"leveraged-mt\"";

    #[test]
    fn targets_of_version_1_are_written() {
        let translate =
            |body: &str| translated(Format::Xliff, &in_1(body), &FileOptions::default(), capitals);
        for (body, wanted) in [
            (
                "<trans-unit id=\"1\">\n  <source>one dog</source>\n</trans-unit>",
                format!(
                    "<trans-unit id=\"1\">\n  <source>one dog</source>\n  <target{STATE}>ONE DOG</target>\n</trans-unit>"
                ),
            ),
            (
                "<trans-unit id=\"1\"><source>a <g id=\"1\">big</g> dog<x id=\"2\"/></source><target/></trans-unit>",
                format!(
                    "<trans-unit id=\"1\"><source>a <g id=\"1\">big</g> dog<x id=\"2\"/></source><target{STATE}>A <g id=\"1\">BIG</g> DOG<x id=\"2\"/></target></trans-unit>"
                ),
            ),
            (
                "<trans-unit id=\"1\"><source>hi <ph id=\"1\" equiv-text=\"{{name}}\">x</ph> &amp; <bpt id=\"1\">&lt;b&gt;</bpt>you<ept id=\"1\">&lt;/b&gt;</ept></source><target state=\"new\">x</target></trans-unit>",
                format!(
                    "<trans-unit id=\"1\"><source>hi <ph id=\"1\" equiv-text=\"{{{{name}}}}\">x</ph> &amp; <bpt id=\"1\">&lt;b&gt;</bpt>you<ept id=\"1\">&lt;/b&gt;</ept></source><target{STATE}>HI <ph id=\"1\" equiv-text=\"{{{{name}}}}\">x</ph> &amp; <bpt id=\"1\">&lt;b&gt;</bpt>YOU<ept id=\"1\">&lt;/b&gt;</ept></target></trans-unit>"
                ),
            ),
        ] {
            assert_eq!(translate(body), in_1(&wanted));
        }
        for body in [
            "<trans-unit id=\"1\" translate=\"no\"><source>one</source></trans-unit>",
            "<group translate=\"no\"><trans-unit id=\"1\"><source>one</source></trans-unit></group>",
            "<trans-unit id=\"1\" approved=\"yes\"><source>one</source><target>eins</target></trans-unit>",
            "<trans-unit id=\"1\"><source>one</source><target state=\"final\">eins</target></trans-unit>",
        ] {
            assert_eq!(translate(body), in_1(body));
        }
    }

    #[test]
    fn targets_of_version_2_are_written() {
        let body = "<segment id=\"s\" state=\"initial\"><source>a <pc id=\"1\">big</pc> <ph id=\"2\" disp=\"%s\"/> <sc id=\"3\"/>dog<ec startRef=\"3\"/></source></segment>";
        let wanted = "<segment id=\"s\" state=\"translated\"><source>a <pc id=\"1\">big</pc> <ph id=\"2\" disp=\"%s\"/> <sc id=\"3\"/>dog<ec startRef=\"3\"/></source><target>A <pc id=\"1\">BIG</pc> <ph id=\"2\" disp=\"%s\"/> <sc id=\"3\"/>DOG<ec startRef=\"3\"/></target></segment>";
        assert_eq!(translated(Format::Xliff, &in_2(body), &FileOptions::default(), capitals), in_2(wanted));
    }

    #[test]
    fn only_what_is_empty_is_translated_if_that_is_wanted() {
        let options = FileOptions { only_empty: true, ..FileOptions::default() };
        let body = "<trans-unit id=\"1\"><source>one</source><target>eins</target></trans-unit><trans-unit id=\"2\"><source>two</source><target></target></trans-unit>";
        let out = translated(Format::Xliff, &in_1(body), &options, capitals);
        assert_eq!(out, in_1(&body.replace("<target></target>", &format!("<target{STATE}>TWO</target>"))));
    }

    #[test]
    fn the_language_of_the_targets_is_said() {
        let options = FileOptions { target_language: Some("fr".to_owned()), ..FileOptions::default() };
        let text = in_1("").replace(" target-language=\"de\"", "");
        assert!(translated(Format::Xliff, &text, &options, capitals).contains("target-language=\"fr\""));
    }

    #[test]
    fn a_target_that_says_the_same_is_unchanged() {
        let body = "<trans-unit id=\"1\"><source>one  <g id=\"1\">dog</g></source><target state=\"new\">one  <g id=\"1\">dog</g></target></trans-unit>";
        assert_eq!(identity(Format::Xliff, in_1(body).as_bytes()), in_1(body).as_bytes());
    }

    #[test]
    fn damaged_files_are_named_by_their_line() {
        let open = |text: &str| {
            FileDocument::open(Format::Xliff, text.as_bytes(), &FileOptions::default())
                .unwrap_err()
                .to_string()
        };
        assert!(open("<xliff>\n<file></xliff>").starts_with("line 2 of the xliff file: the XML is damaged"));
        assert!(open("<tmx/>").contains("`xliff`"));
    }
}
