//! Translation memories (TMX), both as documents whose units get a variant in the target language
//! and as sentence pairs for a translation memory or for training.

use super::codes;
use super::encoding::{at, decode};
use super::splice::whole;
use super::tags::{Edits, Xml, XmlText};
use super::{FileDocument, FileError, FileOptions, Format};
use crate::document::{Document, Piece, keep};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::io::BufRead;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(Format::Tmx, bytes)?;
    let document = document(&text, options)?;
    Ok(whole(text, encoding, document))
}

fn document(text: &str, options: &FileOptions) -> Result<Document, FileError> {
    let xml = Xml::parse(Format::Tmx, text)?;
    let root = (0..xml.items.len()).find_map(|item| xml.element(item));
    if root.is_none_or(|root| root.name != "tmx") {
        let found = "its first element is not `tmx`".to_owned();
        return Err(FileError::OtherFormat { format: Format::Tmx, found });
    }
    let Some(target) = options.target_language.as_deref() else {
        let problem = "the language of the translation must be given: a tmx file holds many languages";
        return Err(at(Format::Tmx, text, 0, problem));
    };
    let header =
        (0..xml.items.len()).filter_map(|item| xml.element(item)).find(|element| element.name == "header");
    let stated =
        header.and_then(|header| header.attribute("srclang")).filter(|language| *language != "*all*");
    let source = options.source_language.as_deref().or(stated);
    let mut edits = Edits::new(text, source);
    let mut reader = TmxReader { xml: &xml, text: XmlText::new(text), only_empty: options.only_empty };
    let mut item = 0;
    while item < xml.items.len() {
        if xml.element(item).is_some_and(|element| element.name == "tu") {
            reader.unit(item, source, target, &mut edits);
            item = xml.end_item(item);
        }
        item += 1;
    }
    Ok(edits.finish())
}

struct TmxReader<'a> {
    xml: &'a Xml<'a>,
    text: XmlText,
    only_empty: bool,
}

impl TmxReader<'_> {
    /// The variants of a unit: language, `tuv` element and `seg` element.
    fn variants(&self, unit: usize) -> Vec<(String, usize, usize)> {
        let inside = self
            .xml
            .inner_items(unit)
            .filter(|item| self.xml.element(*item).is_some_and(|e| e.name == "tuv"));
        inside
            .filter_map(|variant| {
                let element = self.xml.element(variant)?;
                let language = element.attribute("xml:lang").or_else(|| element.attribute("lang"))?;
                let is_segment = |item: &usize| self.xml.element(*item).is_some_and(|e| e.name == "seg");
                Some((language.to_owned(), variant, self.xml.inner_items(variant).find(is_segment)?))
            })
            .collect()
    }

    fn unit(&mut self, unit: usize, source: Option<&str>, target: &str, edits: &mut Edits<'_>) {
        let variants = self.variants(unit);
        let of = |language: &str| {
            let languages = variants.iter().map(|(language, ..)| language.as_str());
            best_match(languages, language).map(|place| (variants[place].1, variants[place].2))
        };
        let Some((variant, segment)) = (match source {
            Some(source) => of(source),
            None => variants.first().map(|(_, variant, segment)| (*variant, *segment)),
        }) else {
            return;
        };
        let existing = of(target).filter(|(other, _)| *other != variant);
        let raw_content = |segment: usize| &self.xml.text[self.xml.content(segment)];
        if existing.is_some_and(|(_, existing)| self.only_empty && !raw_content(existing).trim().is_empty()) {
            return;
        }
        let first = edits.document.sentences.len();
        let content = codes::content(self.xml, segment, &mut self.text, &mut edits.document);
        let sentences = first..edits.document.sentences.len();
        match existing {
            Some((_, existing)) if self.xml.end_item(existing) != existing => {
                let raw = raw_content(existing);
                let pieces = match raw == raw_content(segment) {
                    true => vec![Piece::Either {
                        raw: vec![Piece::Keep(raw.to_owned())],
                        translated: content,
                        sentences,
                    }],
                    false => content,
                };
                edits.replace(self.xml.content(existing), pieces);
            }
            Some((_, existing)) => {
                let mut pieces = vec![Piece::Keep("<seg>".to_owned())];
                pieces.extend(content);
                keep(&mut pieces, "</seg>");
                edits.replace(self.xml.items[existing].range.clone(), pieces);
            }
            None => {
                let (last, end) = (variants.iter().map(|variant| variant.1).max().unwrap_or(variant), unit);
                let place =
                    self.xml.items[self.xml.end_item(last)].range.end.max(self.xml.items[end].range.end);
                let before = &self.xml.text[..self.xml.items[last].range.start];
                let indentation = &before[before.trim_end().len()..];
                let target = crate::html::escape(target);
                let mut pieces = vec![Piece::Keep(format!("{indentation}<tuv xml:lang=\"{target}\"><seg>"))];
                pieces.extend(content);
                keep(&mut pieces, "</seg></tuv>");
                edits.replace(place..place, pieces);
            }
        }
    }
}

/// The index of the language that matches `wanted` exactly, otherwise of one that differs in its
/// region.
fn best_match<'a>(languages: impl Iterator<Item = &'a str> + Clone, wanted: &str) -> Option<usize> {
    let main = |language: &str| language.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let exact = languages.clone().position(|language| language.eq_ignore_ascii_case(wanted));
    exact.or_else(|| languages.clone().position(|language| main(language) == main(wanted)))
}

/// Iterates over the pairs of a translation memory. It streams the file, which may be larger than
/// RAM.
///
/// Inline codes are removed. Units that lack one of the languages are skipped.
pub fn pairs<R: BufRead>(reader: R, source: &str, target: &str) -> Pairs<R> {
    let mut reader = Reader::from_reader(reader);
    reader.config_mut().allow_dangling_amp = true;
    Pairs {
        reader,
        buffer: Vec::new(),
        languages: [source.to_owned(), target.to_owned()],
        line: 1,
        failed: false,
    }
}

/// An iterator over the pairs of a translation memory.
pub struct Pairs<R> {
    reader: Reader<R>,
    buffer: Vec<u8>,
    languages: [String; 2],
    line: usize,
    failed: bool,
}

impl<R> std::fmt::Debug for Pairs<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pairs")
            .field("languages", &self.languages)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

impl<R: BufRead> Iterator for Pairs<R> {
    type Item = Result<(String, String), FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let found = self.next_pair().transpose();
        self.failed = !matches!(found, Some(Ok(_)));
        found
    }
}

/// A unit that is being read.
#[derive(Default)]
struct PairUnit {
    /// The languages and the texts of its variants.
    variants: Vec<(String, String)>,
    language: Option<String>,
    in_segment: bool,
    /// The number of open inline codes, whose content is not text.
    codes: usize,
}

impl<R: BufRead> Pairs<R> {
    fn next_pair(&mut self) -> Result<Option<(String, String)>, FileError> {
        let mut unit = PairUnit::default();
        loop {
            self.buffer.clear();
            let event = self.reader.read_event_into(&mut self.buffer).map_err(|error| FileError::Line {
                format: Format::Tmx,
                line: self.line,
                problem: format!("the XML is damaged: {error}"),
            })?;
            self.line += event.matches('\n').count();
            match event {
                Event::Eof => return Ok(None),
                Event::Start(tag) => unit.start(&tag),
                Event::End(tag) => {
                    if unit.end(tag.name().0)
                        && let Some(pair) = std::mem::take(&mut unit).pair(&self.languages)
                    {
                        return Ok(Some(pair));
                    }
                }
                Event::Text(text) => unit.text(&text),
                Event::CData(text) => unit.text(&text),
                Event::GeneralRef(entity) => unit.text(&htmlize::unescape(format!("&{};", &*entity))),
                _ => {}
            }
        }
    }
}

impl PairUnit {
    fn start(&mut self, tag: &BytesStart<'_>) {
        match tag.name().0 {
            "tu" => *self = PairUnit::default(),
            "tuv" => {
                let is_language = |key: &str| matches!(key, "xml:lang" | "lang");
                let mut attributes = tag.attributes().flatten();
                let found = attributes.find(|attribute| is_language(attribute.key.0));
                self.language = found.map(|attribute| attribute.value.into_owned());
            }
            "seg" => {
                self.in_segment = true;
                let language = self.language.clone().unwrap_or_default();
                self.variants.push((language, String::new()));
            }
            "bpt" | "ept" | "it" | "ph" | "ut" => self.codes += 1,
            _ => {}
        }
    }

    /// Ends an element, and returns whether it was the unit.
    fn end(&mut self, name: &str) -> bool {
        match name {
            "seg" => (self.in_segment, self.codes) = (false, 0),
            "bpt" | "ept" | "it" | "ph" | "ut" => self.codes = self.codes.saturating_sub(1),
            _ => {}
        }
        name == "tu"
    }

    fn text(&mut self, text: &str) {
        if self.in_segment
            && self.codes == 0
            && let Some((_, segment)) = self.variants.last_mut()
        {
            segment.push_str(text);
        }
    }

    fn pair(self, languages: &[String; 2]) -> Option<(String, String)> {
        let place =
            |language: &str| best_match(self.variants.iter().map(|(found, _)| found.as_str()), language);
        let (source, target) = (place(&languages[0])?, place(&languages[1])?);
        let text = |place: usize| self.variants[place].1.split_whitespace().collect::<Vec<_>>().join(" ");
        (source != target)
            .then(|| (text(source), text(target)))
            .filter(|(a, b)| !a.is_empty() && !b.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::{capitals, identity, translated};

    fn file(body: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<tmx version=\"1.4\"><header srclang=\"en\"/><body>{body}</body></tmx>"
        )
    }

    #[test]
    fn units_get_a_variant() {
        let options = FileOptions { target_language: Some("de".to_owned()), ..FileOptions::default() };
        let body = "<tu>\n  <tuv xml:lang=\"en-US\"><seg>one <hi>dog</hi></seg></tuv>\n</tu>";
        let wanted = "<tu>\n  <tuv xml:lang=\"en-US\"><seg>one <hi>dog</hi></seg></tuv>\n  <tuv xml:lang=\"de\"><seg>ONE <hi>DOG</hi></seg></tuv>\n</tu>";
        assert_eq!(translated(Format::Tmx, &file(body), &options, capitals), file(wanted));
        let body =
            "<tu><tuv xml:lang=\"en\"><seg>two</seg></tuv><tuv xml:lang=\"DE\"><seg>zwei</seg></tuv></tu>";
        assert_eq!(
            translated(Format::Tmx, &file(body), &options, capitals),
            file(&body.replace("zwei", "TWO"))
        );
        let options = FileOptions { only_empty: true, ..options };
        assert_eq!(translated(Format::Tmx, &file(body), &options, capitals), file(body));
        let same = file(&body.replace("zwei", "two"));
        assert_eq!(identity(Format::Tmx, same.as_bytes()), same.as_bytes());
    }

    #[test]
    fn pairs_are_read_one_by_one() {
        let body = "<tu><tuv xml:lang=\"en\"><seg>a <bpt i=\"1\">&lt;b></bpt>big<ept i=\"1\">&lt;/b></ept> &amp; old dog</seg></tuv>\
                    <tuv xml:lang=\"fr\"><seg>x</seg></tuv><tuv xml:lang=\"de-AT\"><seg>ein Hund</seg></tuv></tu>\
                    <tu><tuv xml:lang=\"en\"><seg>alone</seg></tuv></tu>\
                    <tu><tuv lang=\"EN\"><seg>two\n cats</seg></tuv><tuv lang=\"DE\"><seg>zwei Katzen</seg></tuv></tu>";
        let found: Result<Vec<_>, _> = pairs(file(body).as_bytes(), "en", "de").collect();
        let wanted = [("a big & old dog", "ein Hund"), ("two cats", "zwei Katzen")];
        assert_eq!(found.unwrap(), wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));
        let error = pairs(&b"<tmx>\n<tu></tmx>"[..], "en", "de").next().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("line 2 of the tmx file: the XML is damaged"), "{error}");
        assert_eq!(pairs(&b"<tmx/>"[..], "en", "de").count(), 0);
    }

    #[test]
    fn the_language_must_be_known() {
        let error =
            FileDocument::open(Format::Tmx, file("").as_bytes(), &FileOptions::default()).unwrap_err();
        assert!(error.to_string().contains("language of the translation"), "{error}");
    }
}
