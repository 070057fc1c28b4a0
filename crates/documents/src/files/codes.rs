//! The inline elements of XLIFF and TMX: elements around words move with the words, all others stay
//! in place.

use super::tags::{Element, Kind, Xml, XmlText};
use crate::document::{Document, Piece};
use crate::segment::{Escaping, Segment};

/// The pieces of the content of a `source` or `seg` element.
pub(super) fn content(xml: &Xml<'_>, item: usize, text: &mut XmlText, document: &mut Document) -> Vec<Piece> {
    let begin = || Segment::new(Escaping::xml());
    let (mut pieces, mut segment) = (Vec::new(), begin());
    let items = xml.inner_items(item);
    let mut inner = items.start;
    while inner < items.end {
        if segment.is_full() {
            pieces.extend(std::mem::replace(&mut segment, begin()).finish(document));
        }
        inner = add(xml, inner, text, &mut segment) + 1;
    }
    pieces.extend(segment.finish(document));
    pieces
}

/// Adds an item, and returns the last item that belongs to it.
fn add(xml: &Xml<'_>, item: usize, text: &mut XmlText, segment: &mut Segment) -> usize {
    let kept = |raw: &str| vec![Piece::Keep(raw.to_owned())];
    let raw = xml.raw(item);
    match &xml.items[item].kind {
        Kind::Text => text.add(raw, segment),
        Kind::End => {
            let name = raw.trim_start_matches("</").trim_end_matches('>').trim();
            segment.close(name.rsplit(':').next().unwrap_or(name), raw);
        }
        Kind::CData => {
            let inner = raw.strip_prefix("<![CDATA[").and_then(|raw| raw.strip_suffix("]]>")).unwrap_or(raw);
            segment.decoded(raw, |to, _| to.push_str(inner));
        }
        Kind::Other => segment.point(kept(raw)),
        Kind::Start(element) | Kind::Empty(element) => return add_element(xml, item, element, segment),
    }
    item
}

fn add_element(xml: &Xml<'_>, item: usize, element: &Element, segment: &mut Segment) -> usize {
    let outer = xml.outer_xml(item);
    let pieces = vec![Piece::Keep(outer.to_owned())];
    let protected = element.attribute_is("translate", "no") || element.attribute_is("mtype", "protected");
    match element.name.as_str() {
        // Elements that contain words.
        "g" | "pc" | "mrk" | "hi" | "sub" if !protected && xml.end_item(item) != item => {
            segment.open(&element.name, vec![Piece::Keep(xml.raw(item).to_owned())]);
            return item;
        }
        "g" | "pc" | "mrk" | "hi" if protected => segment.opaque(pieces, &xml.words(item)),
        // Separate elements mark the start and the end of a span.
        "bpt" | "bx" | "sc" => segment.open(&pair(element), pieces),
        "ept" | "ex" | "ec" => segment.close(&pair(element), outer),
        // A standalone code: the model reads its display text, if the file gives one.
        _ => {
            let shown = ["equiv-text", "disp", "equiv"].iter().find_map(|name| element.attribute(name));
            let shown =
                shown.map(|shown| htmlize::unescape(shown).into_owned()).unwrap_or_else(|| xml.words(item));
            // The model does not read codes that are not placeholders, such as `<br/>`.
            let is_placeholder = shown.starts_with(['{', '%', '$', '[']);
            segment.opaque(pieces, if is_placeholder { &shown } else { "" });
        }
    }
    xml.end_item(item)
}

/// The key that the start and the end of a pair of codes share.
fn pair(element: &Element) -> String {
    let names: &[&str] = match element.name.as_str() {
        "ec" => &["startRef"],
        "sc" => &["id"],
        "bx" | "ex" => &["rid", "id"],
        _ => &["i", "rid", "id"],
    };
    let number = names.iter().find_map(|name| element.attribute(name)).unwrap_or_default();
    format!("#{number}")
}
