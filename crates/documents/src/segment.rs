//! A stretch of text with markup. Its sentences are translated, and the markup moves with the words
//! inside it. The formats with markup (HTML, Markdown, XLIFF, …) build it piece by piece.

use crate::document::{Document, Piece, keep, sentences};
use crate::markup::{Markup, Node, Nodes, Opaque};
use crate::protect::{is_translatable, protected, within, without_outer_emoji};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The maximum number of tags in a segment and the maximum nesting depth; beyond them the text is
/// split. Real documents stay far below these limits, which bound the work that hostile input can
/// cause.
pub(crate) const TAGS: usize = 500;
pub(crate) const DEPTH: usize = 100;

/// How a format writes the characters of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Escaping {
    /// Characters with a special spelling in the text, such as `&nbsp;` and `\*`.
    escapes: HashMap<char, String>,
    /// Whether `&`, `<` and `>` must be escaped.
    is_xml: bool,
}

impl Escaping {
    /// The escapes of HTML and XML.
    pub(crate) fn xml() -> Self {
        Escaping { is_xml: true, ..Escaping::default() }
    }

    /// Records how a character is written, unless an escape is already known.
    pub(crate) fn record(&mut self, c: char, written: impl FnOnce() -> String) {
        self.escapes.entry(c).or_insert_with(written);
    }

    /// Writes a text with the escapes of the format.
    pub(crate) fn write(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match (self.escapes.get(&c), c) {
                (Some(written), _) => out.push_str(written),
                (None, '&') if self.is_xml => out.push_str("&amp;"),
                (None, '<') if self.is_xml => out.push_str("&lt;"),
                (None, '>') if self.is_xml => out.push_str("&gt;"),
                _ => out.push(c),
            }
        }
        out
    }
}

/// Text with its tags.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// The complete input as written.
    raw: Vec<Piece>,
    text: String,
    nodes: Vec<Node>,
    /// The names of the open elements, and the indices of their nodes.
    open: Vec<(String, usize)>,
    /// Content that is not translated, with its range in the text.
    opaque: Vec<Opaque>,
    /// Links whose text is also their label: the name and the depth of the element, and its end.
    references: Vec<(String, usize, String)>,
    pub(crate) escaping: Escaping,
}

impl Segment {
    pub(crate) fn new(escaping: Escaping) -> Self {
        Segment { escaping, ..Segment::default() }
    }

    /// Whether the markup has reached the limits of a segment, which must then be finished.
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= DEPTH || self.nodes.len() + self.opaque.len() >= TAGS
    }

    /// Adds text that is written as `raw`; `decode` appends its decoded form.
    pub(crate) fn decoded(&mut self, raw: &str, decode: impl FnOnce(&mut String, &mut Escaping)) {
        keep(&mut self.raw, raw);
        decode(&mut self.text, &mut self.escaping);
    }

    /// Adds text that needs no decoding.
    pub(crate) fn text(&mut self, text: &str) {
        self.decoded(text, |to, _| to.push_str(text));
    }

    /// Opens an element.
    pub(crate) fn open(&mut self, name: &str, tag: Vec<Piece>) {
        let parent = self.parent();
        self.raw.extend_from_slice(&tag);
        self.open.push((name.to_owned(), self.nodes.len()));
        let range = self.text.len()..usize::MAX;
        self.nodes.push(Node { range, open: tag, close: String::new(), parent });
    }

    /// Closes the innermost element with this name and the elements left open inside it.
    pub(crate) fn close(&mut self, name: &str, raw: &str) {
        let Some(place) = self.open.iter().rposition(|(open, _)| open == name) else {
            return self.point(vec![Piece::Keep(raw.to_owned())]);
        };
        keep(&mut self.raw, raw);
        let depth = self.open.len();
        let named = self.references.pop_if(|(other, at, _)| other.as_str() == name && *at == depth);
        for (n, (_, node)) in self.open.drain(place..).enumerate() {
            self.nodes[node].range.end = self.text.len();
            if n == 0 {
                self.nodes[node].close = named.as_ref().map_or(raw, |(_, _, close)| close).to_owned();
            }
        }
    }

    /// Marks the open link as a Markdown shortcut reference, `[text]`: it is written as
    /// `[translation][text]`, so that the label stays valid.
    pub(crate) fn name_reference(&mut self, label: &str) {
        if let Some((name, _)) = self.open.last() {
            self.references.push((name.clone(), self.open.len(), format!("][{label}]")));
        }
    }

    /// Adds content without text: an image, a comment.
    pub(crate) fn point(&mut self, tag: Vec<Piece>) {
        let (at, parent) = (self.text.len(), self.parent());
        self.raw.extend_from_slice(&tag);
        self.nodes.push(Node { range: at..at, open: tag, close: String::new(), parent });
    }

    /// Adds content whose text is not translated, or not in this segment; the model reads `shown`
    /// in its place.
    pub(crate) fn opaque(&mut self, pieces: Vec<Piece>, shown: &str) {
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        if shown.is_empty() {
            return self.point(pieces);
        }
        let at = self.text.len();
        self.raw.extend_from_slice(&pieces);
        self.text.push_str(&shown);
        self.opaque.push(Opaque { range: at..self.text.len(), pieces });
    }

    /// The innermost open element.
    fn parent(&self) -> Option<usize> {
        self.open.last().map(|(_, node)| *node)
    }

    /// Whether nothing has been added.
    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Adds the sentences to a document and returns the pieces of the segment; if there is nothing
    /// to translate, these are the input as written.
    pub(crate) fn finish(mut self, document: &mut Document) -> Vec<Piece> {
        let opaque: Vec<Range<usize>> = self.opaque.iter().map(|opaque| opaque.range.clone()).collect();
        let all = merged(protected(&self.text), &opaque);
        for node in &mut self.nodes {
            node.range.end = node.range.end.min(self.text.len());
        }
        let sentences = self.sentences(&all, &opaque, document.language.as_deref());
        if sentences.is_empty() {
            return self.raw;
        }
        let escaping = Arc::new(std::mem::take(&mut self.escaping));
        let mut nodes = Nodes::new(&self.nodes, &sentences);
        let behind_last = self.behind_last(&sentences);
        let first = document.sentences.len();
        let (mut translated, mut at) = (Vec::new(), 0);
        for (i, range) in sentences.iter().enumerate() {
            self.kept(at..range.start, &escaping, &mut translated);
            let opaque = self.opaque_within(range).map(|opaque| opaque.from(range.start)).collect();
            let behind = if i + 1 == sentences.len() { range.end..behind_last } else { 0..0 };
            let behind = &self.text[behind];
            let markup = Markup::new(&mut nodes, (i, range), opaque, Arc::clone(&escaping), behind);
            let text = self.text[range.clone()].to_owned();
            translated.push(document.sentence(text, 0, within(&all, range), Some(Arc::new(markup))));
            at = range.end;
        }
        self.kept(at.max(behind_last)..self.text.len(), &escaping, &mut translated);
        vec![Piece::Either { raw: self.raw, translated, sentences: first..document.sentences.len() }]
    }

    /// The end of the white space between the last sentence and tags without text after it, such as
    /// the tag in `of <name/>`; the end of that sentence if there are none.
    fn behind_last(&self, sentences: &[Range<usize>]) -> usize {
        let end = sentences.last().map_or(self.text.len(), |last| last.end);
        let empty = self.nodes.iter().filter(|node| node.range.is_empty()).map(|node| node.range.start);
        let behind = empty.filter(|&at| at > end && self.text[end..at].trim().is_empty());
        behind.max().unwrap_or(end)
    }

    /// The ranges of the sentences to translate. A sentence with nothing to translate is kept,
    /// unless a tag begins or ends in it: then it is translated together with the next one, so that
    /// the tag can be placed.
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

    /// Adds the text between sentences as written, but without its tags, which belong to the
    /// sentences.
    fn kept(&self, range: Range<usize>, escaping: &Escaping, out: &mut Vec<Piece>) {
        let mut at = range.start;
        for Opaque { range: place, pieces } in self.opaque_within(&range) {
            keep(out, &escaping.write(&self.text[at..place.start]));
            out.extend_from_slice(pieces);
            at = place.end;
        }
        keep(out, &escaping.write(&self.text[at..range.end]));
    }
}

/// Extends a range to include untranslated content that it begins or ends in.
fn outside(range: Range<usize>, opaque: &[Range<usize>]) -> Range<usize> {
    let around = |at: usize| {
        let place = opaque.get(opaque.partition_point(|place| place.end <= at));
        place.filter(|place| place.start < at)
    };
    let start = around(range.start).map_or(range.start, |place| place.start);
    start..around(range.end).map_or(range.end, |place| place.end)
}

/// Merges two sorted lists of ranges, dropping those of `ranges` that overlap one of `stronger`.
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
