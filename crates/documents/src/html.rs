//! HTML: text is translated, everything else is kept.
//!
//! Tags that begin a new line or box part the text. Tags inside a sentence (`<b>`, `<a>`, …) are
//! put around the words that attended to the words they were around; each appears exactly once, and
//! they stay properly nested. Scripts, styles, comments, attributes, and the content of `<code>`,
//! `<pre>` and of elements with `translate="no"` are not touched. Entities come back as they were
//! written.

mod entities;
mod place;
mod tokens;

pub use entities::{Entities, escape_with};
pub(crate) use place::Markup;

use crate::document::{Document, sentences};
use crate::protect::{is_translatable, protected, within, without_outer_emoji};
use entities::{StandIns, decode};
use place::{Node, Nodes, Opaque};
use std::ops::Range;
use std::sync::Arc;
use tokens::{Token, tokens};

/// The most tags in a line and the deepest nesting; beyond them the text is split. No real page
/// comes near these limits, and they bound the work that hostile input can cause.
const TAGS: usize = 500;
const DEPTH: usize = 100;

/// The document of a text with markup.
pub fn document(html: &str) -> Document {
    let mut document = Document::default();
    let mut segment = Segment::default();
    let mut stand_ins = StandIns::new(html);
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
                segment.add(inline, &mut stand_ins);
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
    opaque: Vec<Opaque>,
    entities: Entities,
}

impl Segment {
    fn is_full(&self) -> bool {
        self.open.len() >= DEPTH || self.nodes.len() + self.opaque.len() >= TAGS
    }

    fn add(&mut self, token: Token<'_>, stand_ins: &mut StandIns) {
        let at = self.text.len();
        let parent = self.open.last().map(|(_, node)| *node);
        match token {
            Token::Text(raw) => {
                self.raw.push_str(raw);
                decode(raw, &mut self.text, stand_ins, &mut self.entities, true);
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
                decode(text, &mut shown, stand_ins, &mut self.entities, false);
                let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
                if shown.is_empty() {
                    self.point(raw, parent);
                } else {
                    self.text.push_str(&shown);
                    self.opaque.push(Opaque { range: at..self.text.len(), raw: raw.to_owned() });
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
        let opaque: Vec<Range<usize>> = self.opaque.iter().map(|opaque| opaque.range.clone()).collect();
        let all = merged(protected(&self.text), &opaque);
        if !is_translatable(&self.text, &all) {
            document.keep(&self.raw);
            return;
        }
        for node in &mut self.nodes {
            node.range.end = node.range.end.min(self.text.len());
        }
        let sentences: Vec<Range<usize>> = sentences(&self.text, &all, None)
            .into_iter()
            .map(|range| outside(without_outer_emoji(&self.text, range), &opaque))
            .filter(|range| is_translatable(&self.text[range.clone()], &within(&all, range)))
            .collect();
        if sentences.is_empty() {
            document.keep(&self.raw);
            return;
        }
        let entities = Arc::new(std::mem::take(&mut self.entities));
        let mut nodes = Nodes::new(&self.nodes, &sentences);
        let mut at = 0;
        for (i, range) in sentences.iter().enumerate() {
            document.keep(&self.kept(at..range.start, &entities));
            let opaque = self.opaque_within(range).map(|opaque| opaque.from(range.start)).collect();
            let markup = Markup::new(&mut nodes, (i, range), opaque, Arc::clone(&entities));
            let text = self.text[range.clone()].to_owned();
            document.translate(text, 0, within(&all, range), Some(Arc::new(markup)));
            at = range.end;
        }
        document.keep(&self.kept(at..self.text.len(), &entities));
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
pub(crate) fn contents<const N: usize>(texts: [&str; N]) -> [(Vec<&str>, String); N] {
    let mut stand_ins = StandIns::new(&texts.concat());
    texts.map(|html| {
        let (mut tags, mut content) = (Vec::new(), String::new());
        for token in tokens(html) {
            match token {
                Token::Text(raw) => {
                    decode(raw, &mut content, &mut stand_ins, &mut Entities::default(), false)
                }
                Token::Break(raw) | Token::Point(raw) => tags.push(raw),
                Token::Open { raw, .. } | Token::Close { raw, .. } => tags.push(raw),
                Token::Opaque { raw, .. } => tags.push(raw),
            }
        }
        tags.sort_unstable();
        content.retain(|c| !c.is_whitespace());
        (tags, content)
    })
}

#[cfg(test)]
mod tests;
