//! HTML: text is translated, everything else is kept.
//!
//! Tags that begin a new line or box part the text. Tags inside a sentence (`<b>`, `<a>`, …) are put around the words that attended to
//! the words they were around; each appears exactly once, and they stay properly nested. Scripts, styles, comments, attributes, and the
//! content of `<code>`, `<pre>` and of elements with `translate="no"` are not touched. Entities come back as they were written.

mod entities;
mod place;
mod tokens;

pub use entities::{Entities, escape_with};
pub(crate) use place::Markup;

use crate::document::{Document, sentences};
use crate::protect::{is_translatable, protected, within, without_outer_emoji};
use entities::decode;
use place::Node;
use std::ops::Range;
use std::sync::Arc;
use tokens::{Token, tokens};

/// Tags inside of a line at most, and how deep they may lie in each other; one more parts the text. No page has so many, and who sends
/// them shall not pay less than we do.
const TAGS: usize = 500;
const DEPTH: usize = 100;

/// The document of a text with markup.
pub fn document(html: &str) -> Document {
    let mut document = Document::default();
    let mut segment = Segment::default();
    for token in tokens(html) {
        match token {
            Token::Break(raw) => {
                std::mem::take(&mut segment).close(&mut document);
                document.keep(raw);
            }
            inline => {
                if segment.is_full() {
                    std::mem::take(&mut segment).close(&mut document);
                }
                segment.add(inline);
            }
        }
    }
    segment.close(&mut document);
    document
}

/// The text between two breaks, and the tags in it.
#[derive(Debug, Default)]
struct Segment {
    raw: String,
    text: String,
    nodes: Vec<Node>,
    /// Elements that are open, by their number.
    open: Vec<(String, usize)>,
    /// Content that is not translated, as it stands in the text.
    opaque: Vec<(Range<usize>, String)>,
    entities: Entities,
}

impl Segment {
    fn is_full(&self) -> bool {
        self.open.len() >= DEPTH || self.nodes.len() + self.opaque.len() >= TAGS
    }

    fn add(&mut self, token: Token<'_>) {
        let at = self.text.len();
        let parent = self.open.last().map(|(_, node)| *node);
        match token {
            Token::Text(raw) => {
                self.raw.push_str(raw);
                decode(raw, &mut self.text, &mut self.entities);
            }
            Token::Open { name, raw } => {
                self.raw.push_str(raw);
                self.open.push((name, self.nodes.len()));
                self.nodes.push(Node {
                    range: at..usize::MAX,
                    open: raw.into(),
                    close: String::new(),
                    parent,
                });
            }
            Token::Close { name, raw } => {
                self.raw.push_str(raw);
                match self.open.iter().rposition(|(open, _)| *open == name) {
                    // What was left open inside is closed with it.
                    Some(place) => {
                        for (n, (_, node)) in self.open.drain(place..).enumerate() {
                            self.nodes[node].range.end = at;
                            if n == 0 {
                                self.nodes[node].close = raw.to_owned();
                            }
                        }
                    }
                    None => self.point(raw, parent),
                }
            }
            Token::Point(raw) => {
                self.raw.push_str(raw);
                self.point(raw, parent);
            }
            Token::Opaque { raw, text } => {
                self.raw.push_str(raw);
                let mut shown = String::new();
                decode(text, &mut shown, &mut Entities::default());
                let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
                if shown.is_empty() {
                    self.point(raw, parent);
                } else {
                    self.text.push_str(&shown);
                    self.opaque.push((at..self.text.len(), raw.to_owned()));
                }
            }
            Token::Break(_) => {}
        }
    }

    fn point(&mut self, raw: &str, parent: Option<usize>) {
        let at = self.text.len();
        self.nodes.push(Node { range: at..at, open: raw.to_owned(), close: String::new(), parent });
    }

    /// Adds its sentences to the document; as it was written, if nothing in it is to be translated.
    fn close(mut self, document: &mut Document) {
        let opaque: Vec<Range<usize>> = self.opaque.iter().map(|(range, _)| range.clone()).collect();
        let all = merged(protected(&self.text), &opaque);
        if !is_translatable(&self.text, &all) {
            document.keep(&self.raw);
            return;
        }
        for node in &mut self.nodes {
            node.range.end = node.range.end.min(self.text.len());
        }
        let sentences: Vec<Range<usize>> = sentences(&self.text, &all)
            .into_iter()
            .map(|range| outside(without_outer_emoji(&self.text, range), &opaque))
            .filter(|range| is_translatable(&self.text[range.clone()], &within(&all, range)))
            .collect();
        if sentences.is_empty() {
            document.keep(&self.raw);
            return;
        }
        let homes = place::homes(&self.nodes, &sentences);
        let entities = Arc::new(std::mem::take(&mut self.entities));
        let mut at = 0;
        for (i, range) in sentences.iter().enumerate() {
            document.keep(&self.kept(at..range.start, &entities));
            let opaque = self.opaque.iter().filter_map(|(place, raw)| {
                let inside = range.start <= place.start && place.end <= range.end;
                inside.then(|| (self.text[place.clone()].to_owned(), raw.clone()))
            });
            let markup =
                Markup::new(&self.nodes, &homes, (i, range), opaque.collect(), Arc::clone(&entities));
            let text = self.text[range.clone()].to_owned();
            document.translate(text, 0, within(&all, range), Some(Arc::new(markup)));
            at = range.end;
        }
        document.keep(&self.kept(at..self.text.len(), &entities));
    }

    /// What stands between sentences, as it was written but for its tags, which are the sentences'.
    fn kept(&self, range: Range<usize>, entities: &Entities) -> String {
        let (mut out, mut at) = (String::new(), range.start);
        let inside = |place: &Range<usize>| range.start <= place.start && place.end <= range.end;
        for (place, raw) in self.opaque.iter().filter(|(place, _)| inside(place)) {
            out.push_str(&escape_with(&self.text[at..place.start], entities));
            out.push_str(raw);
            at = place.end;
        }
        out + &escape_with(&self.text[at..range.end], entities)
    }
}

/// The range with the whole of what it begins or ends in.
fn outside(range: Range<usize>, opaque: &[Range<usize>]) -> Range<usize> {
    let around = |at: usize| opaque.iter().find(|place| place.start < at && at < place.end);
    let start = around(range.start).map_or(range.start, |place| place.start);
    start..around(range.end).map_or(range.end, |place| place.end)
}

/// Both lists in order; what lies in a range of `stronger` is left out.
fn merged(ranges: Vec<Range<usize>>, stronger: &[Range<usize>]) -> Vec<Range<usize>> {
    let free = |r: &Range<usize>| stronger.iter().all(|s| r.end <= s.start || s.end <= r.start);
    let mut all: Vec<_> = ranges.into_iter().filter(free).chain(stronger.iter().cloned()).collect();
    all.sort_by_key(|range| range.start);
    all
}

#[cfg(test)]
mod tests;
