//! HTML: translates the text and keeps everything else.
//!
//! Block-level tags split the text. Inline tags (`<b>`, `<a>`, …) are placed around the words that
//! attended to the words inside them in the source; each appears exactly once, and they stay
//! properly nested. Scripts, styles, comments, and the content of `<code>`, `<pre>` and of elements
//! with `translate="no"` are not touched. The attributes `title`, `alt`, `placeholder` and
//! `aria-label` are translated. Entities keep their spelling, and a `&nbsp;` stays between the
//! words that it joins.

mod entities;
mod tokens;

pub(crate) use entities::{EntityPlaceholders, decode};

use crate::document::{Document, Piece, keep};
use crate::segment::{Escaping, Segment};
use htmlize::Context;
use tokens::{Attribute, Tag, Token, tokens};
pub(crate) use tokens::{HIDDEN, INLINE, OPAQUE, TRANSLATED, is_marked_up};

/// Parses HTML.
pub fn document(html: &str) -> Document {
    document_in(html, None)
}

/// Like [`document`], for a text in the language with this code: its abbreviations do not end a
/// sentence.
pub fn document_in(html: &str, language: Option<&str>) -> Document {
    let mut document = Document::in_language(language);
    let pieces =
        pieces(html, Kind::Page, &mut document, &mut Page { entities: EntityPlaceholders::new(html) });
    document.add(pieces);
    document
}

/// How to interpret the tags of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page or a part of one.
    Page,
    /// A program message, in which a tag with any name can be inline.
    Message,
}

/// How to read the text between tags.
pub(crate) trait AddText {
    /// Adds the text between two tags to a segment.
    fn add_text(&mut self, raw: &str, segment: &mut Segment, document: &mut Document);
    /// The entity placeholders of the document.
    fn entities(&mut self) -> &mut EntityPlaceholders;
    /// How to escape text.
    fn escaping(&self) -> Escaping;
}

struct Page {
    entities: EntityPlaceholders,
}

impl AddText for Page {
    fn add_text(&mut self, raw: &str, segment: &mut Segment, _: &mut Document) {
        segment.decoded(raw, |text, escaping| {
            decode(raw, Context::General, text, &mut self.entities, (escaping, true));
        });
    }

    fn entities(&mut self) -> &mut EntityPlaceholders {
        &mut self.entities
    }

    fn escaping(&self) -> Escaping {
        Escaping::xml()
    }
}

/// The pieces of a text with tags.
pub(crate) fn pieces(html: &str, kind: Kind, document: &mut Document, text: &mut impl AddText) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut segment = Segment::new(text.escaping());
    for token in tokens(html, kind) {
        if matches!(token, Token::Break(_)) || segment.is_full() {
            pieces.extend(std::mem::replace(&mut segment, Segment::new(text.escaping())).finish(document));
        }
        match token {
            Token::Text(raw) => text.add_text(raw, &mut segment, document),
            Token::Break(tag) => pieces.extend(tag_pieces(&tag, document, text.entities())),
            Token::Open { name, tag } => segment.open(&name, tag_pieces(&tag, document, text.entities())),
            Token::Close { name, raw } => segment.close(&name, raw),
            Token::Point(tag) => segment.point(tag_pieces(&tag, document, text.entities())),
            Token::Opaque { raw, text: content } => {
                let mut shown = String::new();
                let escaping = (&mut segment.escaping, false);
                decode(content, Context::General, &mut shown, text.entities(), escaping);
                segment.opaque(vec![Piece::Keep(raw.to_owned())], &shown);
            }
        }
    }
    pieces.extend(segment.finish(document));
    pieces
}

/// An inline HTML tag in Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InlineTag {
    /// The start of an element with this name.
    Open(String),
    /// The start of an element whose text is not translated.
    Opaque(String),
    /// The end of an element.
    Close(String),
    /// Content without text.
    Point,
    /// A tag that splits the text.
    Break,
}

/// Classifies a single tag.
pub(crate) fn inline_tag(raw: &str) -> InlineTag {
    match tokens(raw, Kind::Page).into_iter().next() {
        Some(Token::Open { name, .. }) => InlineTag::Open(name),
        Some(Token::Close { name, .. }) => InlineTag::Close(name),
        Some(Token::Point(_) | Token::Text(_)) | None => InlineTag::Point,
        Some(Token::Break(_) | Token::Opaque { .. }) => {
            let name: String = raw.chars().skip(1).take_while(|c| c.is_ascii_alphanumeric()).collect();
            let name = name.to_ascii_lowercase();
            // Without its end tag, an opaque element would be read as a break.
            if tokens::is_untouched(&format!("{raw}</{name}>")) {
                InlineTag::Opaque(name)
            } else {
                InlineTag::Break
            }
        }
    }
}

/// Adds a block of HTML to a document.
pub(crate) fn add_block(html: &str, document: &mut Document) {
    let pieces = pieces(html, Kind::Page, document, &mut Page { entities: EntityPlaceholders::new(html) });
    document.add(pieces);
}

/// The pieces of a tag with translatable attributes.
fn tag_pieces(tag: &Tag<'_>, document: &mut Document, entities: &mut EntityPlaceholders) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    for attribute in &tag.attributes {
        let value = &tag.raw[attribute.range.clone()];
        keep(&mut pieces, &tag.raw[at..attribute.range.start]);
        pieces.extend(attribute_pieces(value, attribute, document, entities));
        at = attribute.range.end;
    }
    keep(&mut pieces, &tag.raw[at..]);
    pieces
}

/// The pieces of an attribute value.
fn attribute_pieces(
    value: &str,
    attribute: &Attribute,
    document: &mut Document,
    entities: &mut EntityPlaceholders,
) -> Vec<Piece> {
    let mut segment = Segment::new(Escaping::xml());
    segment.decoded(value, |text, escaping| {
        decode(value, Context::Attribute, text, entities, (&mut *escaping, true));
        let quote = attribute.quote.unwrap_or('"');
        escaping.record(quote, || if quote == '"' { "&quot;" } else { "&#39;" }.to_owned());
    });
    let mut pieces = segment.finish(document);
    // An unquoted value could not contain spaces, so its translation is quoted.
    if let ([Piece::Either { translated, .. }], None) = (pieces.as_mut_slice(), attribute.quote) {
        translated.insert(0, Piece::Keep("\"".to_owned()));
        keep(translated, "\"");
    }
    pieces
}

/// Escapes a text so that none of its characters are read as markup.
pub fn escape(text: &str) -> String {
    Escaping::xml().write(text)
}

/// The sorted tags and the text without white space of each input: these must be the same in HTML
/// and in its translation to itself.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn contents<const N: usize>(texts: [&str; N]) -> [(Vec<String>, String); N] {
    let mut entities = EntityPlaceholders::new(&texts.concat());
    texts.map(|html| {
        let (mut tags, mut content) = (Vec::new(), String::new());
        for token in tokens(html, Kind::Page) {
            match token {
                Token::Text(raw) => {
                    let escaping = &mut Escaping::default();
                    decode(raw, Context::General, &mut content, &mut entities, (escaping, false))
                }
                Token::Break(tag) | Token::Point(tag) => tags.push(written(&tag, &mut entities)),
                Token::Open { tag, .. } => tags.push(written(&tag, &mut entities)),
                Token::Close { raw, .. } | Token::Opaque { raw, .. } => tags.push(raw.to_owned()),
            }
        }
        tags.sort_unstable();
        content.retain(|c| !c.is_whitespace());
        (tags, content)
    })
}

/// A normalised tag: its translated attributes are spelt uniformly and without white space.
#[cfg(any(test, feature = "fuzzing"))]
fn written(tag: &Tag<'_>, entities: &mut EntityPlaceholders) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for Attribute { range, quote } in &tag.attributes {
        let marks = usize::from(quote.is_some());
        out.push_str(&tag.raw[at..range.start - marks]);
        let (mut value, escaping) = (String::new(), &mut Escaping::default());
        decode(&tag.raw[range.clone()], Context::Attribute, &mut value, entities, (escaping, false));
        value.retain(|c| !c.is_whitespace());
        out.push_str(&value);
        at = range.end + marks;
    }
    out + &tag.raw[at..]
}

#[cfg(test)]
mod tests;
