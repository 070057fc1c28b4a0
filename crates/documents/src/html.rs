//! HTML: text is translated, everything else is kept.
//!
//! Tags that begin a new line or box part the text. Tags inside a sentence (`<b>`, `<a>`, …) are
//! put around the words that attended to the words they were around; each appears exactly once, and
//! they stay properly nested. Scripts, styles, comments, and the content of `<code>`, `<pre>` and of
//! elements with `translate="no"` are not touched. Of attributes, `title`, `alt`, `placeholder` and
//! `aria-label` are translated. Entities come back as they were written, and a `&nbsp;` stays between the
//! words that it holds together.

mod entities;
mod pieces;
mod place;
mod tokens;

pub(crate) use entities::StandIns;
pub use entities::{Entities, escape_with};
pub(crate) use place::Markup;
pub(crate) use tokens::{HIDDEN, INLINE, OPAQUE, TRANSLATED, Tag, Token};

use crate::document::{Document, Piece, keep, sentences};
use crate::protect::{is_translatable, protected, within, without_outer_emoji};
use entities::decode;
use htmlize::Context;
use place::{Node, Nodes, Opaque};
use std::ops::Range;
use std::sync::Arc;
use tokens::{Attribute, tokens};

/// The most tags in a line and the deepest nesting; beyond them the text is split. No real page
/// comes near these limits, and they bound the work that hostile input can cause.
pub(crate) const TAGS: usize = 500;
pub(crate) const DEPTH: usize = 100;

/// The document of a text with markup.
pub fn document(html: &str) -> Document {
    document_in(html, None)
}

/// The same of a text in the language of this code, whose abbreviations end no sentence.
pub fn document_in(html: &str, language: Option<&str>) -> Document {
    let mut document = Document::in_language(language);
    let mut segment = Segment::default();
    let mut stand_ins = StandIns::new(html);
    for token in tokens(html) {
        match token {
            Token::Break(tag) => {
                std::mem::take(&mut segment).close(&mut document);
                let pieces = tag_pieces(&tag, &mut document, &mut stand_ins);
                document.add(pieces);
            }
            inline => {
                if segment.is_full() {
                    std::mem::take(&mut segment).close(&mut document);
                }
                segment.add(inline, &mut document, &mut stand_ins);
            }
        }
    }
    segment.close(&mut document);
    document
}

/// A tag whose attributes are translated.
fn tag_pieces(tag: &Tag<'_>, document: &mut Document, stand_ins: &mut StandIns) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    for attribute in &tag.attributes {
        let value = &tag.raw[attribute.range.clone()];
        let Some(translated) = attribute_pieces(value, attribute, document, stand_ins) else { continue };
        keep(&mut pieces, &tag.raw[at..attribute.range.start]);
        pieces.push(Piece::Either { raw: vec![Piece::Keep(value.to_owned())], translated });
        at = attribute.range.end;
    }
    keep(&mut pieces, &tag.raw[at..]);
    pieces
}

/// The value of an attribute; nothing if nothing in it is to be translated.
fn attribute_pieces(
    value: &str,
    attribute: &Attribute,
    document: &mut Document,
    stand_ins: &mut StandIns,
) -> Option<Vec<Piece>> {
    let (mut text, mut entities) = (String::new(), Entities::default());
    decode(value, Context::Attribute, &mut text, stand_ins, (&mut entities, true));
    entities.escape_quote(attribute.quote.unwrap_or('"'));
    let all = protected(&text);
    let ranges = translatable_sentences(&text, &all, document.language.as_deref());
    if ranges.is_empty() {
        return None;
    }
    let markup = Arc::new(Markup::none(entities));
    // A value without quotation marks could not have spaces.
    let quote = if attribute.quote.is_none() { "\"" } else { "" };
    let (mut pieces, mut at) = (vec![Piece::Keep(quote.to_owned())], 0);
    for range in ranges {
        keep(&mut pieces, &escape_with(&text[at..range.start], &markup.entities));
        let sentence = text[range.clone()].to_owned();
        pieces.push(document.sentence(sentence, 0, within(&all, &range), Some(Arc::clone(&markup))));
        at = range.end;
    }
    keep(&mut pieces, &escape_with(&text[at..], &markup.entities));
    keep(&mut pieces, quote);
    Some(pieces)
}

/// Where the sentences lie that are translated.
fn translatable_sentences(
    text: &str,
    protected: &[Range<usize>],
    language: Option<&str>,
) -> Vec<Range<usize>> {
    let ranges =
        sentences(text, protected, language).into_iter().map(|range| without_outer_emoji(text, range));
    ranges.filter(|range| is_translatable(&text[range.clone()], &within(protected, range))).collect()
}

/// The text between two breaks, and the tags in it.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// All of it, as it was written.
    raw: Vec<Piece>,
    text: String,
    nodes: Vec<Node>,
    /// Elements that are open, by their number.
    open: Vec<(String, usize)>,
    /// Content that is not translated, as it stands in the text.
    opaque: Vec<Opaque>,
    entities: Entities,
}

impl Segment {
    fn is_full(&self) -> bool {
        self.open.len() >= DEPTH || self.nodes.len() + self.opaque.len() >= TAGS
    }

    /// Adds what is no break.
    pub(crate) fn add(&mut self, token: Token<'_>, document: &mut Document, stand_ins: &mut StandIns) {
        let at = self.text.len();
        let parent = self.open.last().map(|(_, node)| *node);
        match token {
            Token::Text(raw) => {
                keep(&mut self.raw, raw);
                decode(raw, Context::General, &mut self.text, stand_ins, (&mut self.entities, true));
            }
            Token::Open { name, tag } => {
                let open = tag_pieces(&tag, document, stand_ins);
                self.raw.extend_from_slice(&open);
                self.open.push((name, self.nodes.len()));
                self.nodes.push(Node { range: at..usize::MAX, open, close: String::new(), parent });
            }
            Token::Close { name, raw } => {
                match self.open.iter().rposition(|(open, _)| *open == name) {
                    // What was left open inside is closed with it.
                    Some(place) => {
                        keep(&mut self.raw, raw);
                        for (n, (_, node)) in self.open.drain(place..).enumerate() {
                            self.nodes[node].range.end = at;
                            if n == 0 {
                                self.nodes[node].close = raw.to_owned();
                            }
                        }
                    }
                    None => self.point(vec![Piece::Keep(raw.to_owned())], parent),
                }
            }
            Token::Point(tag) => self.point(tag_pieces(&tag, document, stand_ins), parent),
            Token::Opaque { raw, text } => {
                let mut shown = String::new();
                decode(text, Context::General, &mut shown, stand_ins, (&mut self.entities, false));
                let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
                if shown.is_empty() {
                    self.point(vec![Piece::Keep(raw.to_owned())], parent);
                } else {
                    keep(&mut self.raw, raw);
                    self.text.push_str(&shown);
                    self.opaque.push(Opaque { range: at..self.text.len(), raw: raw.to_owned() });
                }
            }
            Token::Break(_) => {}
        }
    }

    fn point(&mut self, open: Vec<Piece>, parent: Option<usize>) {
        let at = self.text.len();
        self.raw.extend_from_slice(&open);
        self.nodes.push(Node { range: at..at, open, close: String::new(), parent });
    }

    /// Adds its sentences to the document; as it was written, if nothing in it is to be translated.
    pub(crate) fn close(mut self, document: &mut Document) {
        let opaque: Vec<Range<usize>> = self.opaque.iter().map(|opaque| opaque.range.clone()).collect();
        let all = merged(protected(&self.text), &opaque);
        for node in &mut self.nodes {
            node.range.end = node.range.end.min(self.text.len());
        }
        let sentences = self.sentences(&all, &opaque, document.language.as_deref());
        if sentences.is_empty() {
            document.add(self.raw);
            return;
        }
        let entities = Arc::new(std::mem::take(&mut self.entities));
        let mut nodes = Nodes::new(&self.nodes, &sentences);
        let (mut translated, mut at) = (Vec::new(), 0);
        for (i, range) in sentences.iter().enumerate() {
            keep(&mut translated, &self.kept(at..range.start, &entities));
            let opaque = self.opaque_within(range).map(|opaque| opaque.from(range.start)).collect();
            let markup = Markup::new(&mut nodes, (i, range), opaque, Arc::clone(&entities));
            let text = self.text[range.clone()].to_owned();
            translated.push(document.sentence(text, 0, within(&all, range), Some(Arc::new(markup))));
            at = range.end;
        }
        keep(&mut translated, &self.kept(at..self.text.len(), &entities));
        document.add([Piece::Either { raw: self.raw, translated }]);
    }

    /// Where the sentences lie that are translated. One that has nothing to translate stays as it is, unless
    /// a tag begins or ends in it: then it is translated with the next, so that the tag finds its place.
    fn sentences(
        &self,
        all: &[Range<usize>],
        opaque: &[Range<usize>],
        language: Option<&str>,
    ) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut waiting: Option<Range<usize>> = None;
        for range in sentences(&self.text, all, language) {
            let range = outside(without_outer_emoji(&self.text, range), opaque);
            if is_translatable(&self.text[range.clone()], &within(all, &range)) {
                let start = waiting.take().map_or(range.start, |waiting| waiting.start);
                found.push(start..range.end);
            } else if self.nodes.iter().any(|node| node.has_end_in(&range)) {
                let start = waiting.map_or(range.start, |waiting| waiting.start);
                waiting = Some(start..range.end);
            }
        }
        if let (Some(waiting), Some(last)) = (waiting, found.last_mut()) {
            last.end = waiting.end;
        }
        found
    }

    fn opaque_within(&self, range: &Range<usize>) -> impl Iterator<Item = &Opaque> {
        let first = self.opaque.partition_point(|opaque| opaque.range.start < range.start);
        let end = range.end;
        self.opaque[first..].iter().take_while(move |opaque| opaque.range.end <= end)
    }

    /// What stands between sentences, as it was written but for its tags, which are the sentences'.
    fn kept(&self, range: Range<usize>, entities: &Entities) -> String {
        let (mut out, mut at) = (String::new(), range.start);
        for Opaque { range: place, raw } in self.opaque_within(&range) {
            out.push_str(&escape_with(&self.text[at..place.start], entities));
            out.push_str(raw);
            at = place.end;
        }
        out + &escape_with(&self.text[at..range.end], entities)
    }
}

/// The range with the whole of what it begins or ends in.
fn outside(range: Range<usize>, opaque: &[Range<usize>]) -> Range<usize> {
    let around = |at: usize| {
        let place = opaque.get(opaque.partition_point(|place| place.end <= at));
        place.filter(|place| place.start < at)
    };
    let start = around(range.start).map_or(range.start, |place| place.start);
    start..around(range.end).map_or(range.end, |place| place.end)
}

/// Both lists, each of them in order, as one; what overlaps a range of `stronger` is left out.
fn merged(ranges: Vec<Range<usize>>, stronger: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut all = Vec::with_capacity(ranges.len() + stronger.len());
    let mut stronger = stronger.iter().peekable();
    for range in ranges {
        while let Some(before) = stronger.next_if(|s| s.end <= range.start) {
            all.push(before.clone());
        }
        if stronger.peek().is_none_or(|next| range.end <= next.start) {
            all.push(range);
        }
    }
    all.extend(stronger.cloned());
    all
}

/// The tags of texts, in an order of their own, and their text without white space: what must not
/// differ between HTML and its translation into itself.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn contents<const N: usize>(texts: [&str; N]) -> [(Vec<String>, String); N] {
    let mut stand_ins = StandIns::new(&texts.concat());
    texts.map(|html| {
        let (mut tags, mut content) = (Vec::new(), String::new());
        for token in tokens(html) {
            match token {
                Token::Text(raw) => {
                    let entities = &mut Entities::default();
                    decode(raw, Context::General, &mut content, &mut stand_ins, (entities, false))
                }
                Token::Break(tag) | Token::Point(tag) => tags.push(written(&tag, &mut stand_ins)),
                Token::Open { tag, .. } => tags.push(written(&tag, &mut stand_ins)),
                Token::Close { raw, .. } | Token::Opaque { raw, .. } => tags.push(raw.to_owned()),
            }
        }
        tags.sort_unstable();
        content.retain(|c| !c.is_whitespace());
        (tags, content)
    })
}

/// A tag whose translated attributes are written in one way, without white space.
#[cfg(any(test, feature = "fuzzing"))]
fn written(tag: &Tag<'_>, stand_ins: &mut StandIns) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for Attribute { range, quote } in &tag.attributes {
        let marks = usize::from(quote.is_some());
        out.push_str(&tag.raw[at..range.start - marks]);
        let (mut value, entities) = (String::new(), &mut Entities::default());
        decode(&tag.raw[range.clone()], Context::Attribute, &mut value, stand_ins, (entities, false));
        value.retain(|c| !c.is_whitespace());
        out.push_str(&value);
        at = range.end + marks;
    }
    out + &tag.raw[at..]
}

#[cfg(test)]
mod tests;
