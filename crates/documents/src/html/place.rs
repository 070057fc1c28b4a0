//! Where the tags of a sentence go in its translation: around the words that attended to the words they
//! were around.

use super::{Entities, escape_with};
use crate::document::Piece;
use crate::restore::{Finder, Span};
use crate::words::{Translation, Word, word_ranges};
use std::ops::Range;
use std::sync::Arc;

/// An element inside a line, or, with an empty range, something that stands at a place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// What it is around, in bytes of the segment.
    pub(super) range: Range<usize>,
    pub(super) open: Vec<Piece>,
    /// Empty if it is not closed in the segment.
    pub(super) close: String,
    /// The element it lies in.
    pub(super) parent: Option<usize>,
}

/// An element whose content is not translated.
#[derive(Clone, Debug)]
pub(super) struct Opaque {
    /// Where its content is shown, in bytes of the segment, or of the sentence.
    pub(super) range: Range<usize>,
    pub(super) raw: String,
}

impl Opaque {
    /// With its place counted from `start` on.
    pub(super) fn from(&self, start: usize) -> Self {
        Opaque { range: self.range.start - start..self.range.end - start, raw: self.raw.clone() }
    }
}

/// The nodes of a segment by sentences.
pub(super) struct Nodes<'a> {
    nodes: &'a [Node],
    /// The sentences in which each node begins and ends, by their number.
    homes: Vec<(usize, usize)>,
    /// The nodes that begin or end in a sentence, in order.
    of: Vec<Vec<usize>>,
    /// Where a node stands among the elements of a sentence, with that sentence's number.
    places: Vec<Option<(usize, usize)>>,
}

impl<'a> Nodes<'a> {
    /// There must be a sentence.
    pub(super) fn new(nodes: &'a [Node], sentences: &[Range<usize>]) -> Self {
        let last = sentences.len().saturating_sub(1);
        let home = |node: &Node| {
            let begins = sentences.partition_point(|s| s.end <= node.range.start).min(last);
            let ends = sentences.partition_point(|s| s.start < node.range.end).saturating_sub(1);
            (begins, ends.max(begins))
        };
        let homes: Vec<_> = nodes.iter().map(home).collect();
        let mut of = vec![Vec::new(); sentences.len()];
        for (node, &(begins, ends)) in homes.iter().enumerate() {
            of[begins].push(node);
            if ends != begins {
                of[ends].push(node);
            }
        }
        Nodes { nodes, homes, of, places: vec![None; nodes.len()] }
    }

    /// The element of a sentence that a node lies in. One that neither begins nor ends there is around all
    /// of it: what lies in it lies in what it lies in.
    fn parent(&self, node: usize, sentence: usize) -> Option<usize> {
        let mut parent = self.nodes[node].parent;
        while let Some(node) = parent {
            match self.places[node] {
                Some((number, element)) if number == sentence => return Some(element),
                _ => parent = self.nodes[node].parent,
            }
        }
        None
    }
}

/// A node as far as it concerns one sentence.
#[derive(Debug)]
struct Element {
    /// What it is around, in bytes of the sentence.
    range: Range<usize>,
    open: Vec<Piece>,
    close: String,
    /// It begins in an earlier sentence.
    from_before: bool,
    /// It ends in a later sentence.
    goes_on: bool,
    parent: Option<usize>,
}

/// The tags of a sentence.
#[derive(Debug)]
pub(crate) struct Markup {
    elements: Vec<Element>,
    /// What is not translated, in bytes of the sentence.
    opaque: Vec<Opaque>,
    pub(crate) entities: Arc<Entities>,
}

/// What an element is around: the target words from..to that it may take, and the source words it covers.
#[derive(Clone, Debug)]
struct Frame {
    target: Range<usize>,
    source: Range<usize>,
}

impl Markup {
    /// The tags of sentence `number`, which lies at `range` in its segment.
    pub(super) fn new(
        nodes: &mut Nodes<'_>,
        (number, range): (usize, &Range<usize>),
        opaque: Vec<Opaque>,
        entities: Arc<Entities>,
    ) -> Self {
        let clip = |at: usize| at.clamp(range.start, range.end) - range.start;
        let mut elements = Vec::new();
        for i in std::mem::take(&mut nodes.of[number]) {
            let (node, (begins, ends)) = (&nodes.nodes[i], nodes.homes[i]);
            let parent = nodes.parent(i, number);
            nodes.places[i] = Some((number, elements.len()));
            elements.push(Element {
                range: clip(node.range.start)..clip(node.range.end),
                open: if number == begins { node.open.clone() } else { Vec::new() },
                close: if number == ends { node.close.clone() } else { String::new() },
                from_before: number != begins,
                goes_on: number != ends,
                parent,
            });
        }
        Markup { elements, opaque, entities }
    }

    /// The tags of text that has none.
    pub(super) fn none(entities: Entities) -> Self {
        Markup { elements: Vec::new(), opaque: Vec::new(), entities: Arc::new(entities) }
    }

    /// The translation with the tags in it; `text_of` writes a tag.
    pub(crate) fn render(
        &self,
        source: &str,
        translation: &Translation,
        text_of: &dyn Fn(&[Piece]) -> String,
    ) -> String {
        let ranges = word_ranges(source);
        let (words, lost) = self.words(source, &ranges, translation);
        let frame = Frame { target: 0..words.len(), source: 0..ranges.len() };
        let layout = Layout {
            markup: self,
            source,
            ranges: &ranges,
            translation: &translation.0,
            words: &words,
            gaps: gaps(source, &ranges, translation, &self.entities),
            text_of,
        };
        let mut text = layout.join(&layout.chunks(None, &frame));
        // What did not come through stands at the end rather than nowhere.
        for raw in lost {
            text.push(' ');
            text.push_str(raw);
        }
        text
    }

    /// The words as HTML, with the elements in them whose content is not translated, and those that did not
    /// come through.
    fn words(
        &self,
        source: &str,
        ranges: &[Range<usize>],
        translation: &Translation,
    ) -> (Vec<String>, Vec<&str>) {
        let mut finder = Finder::new(&translation.0);
        let mut found: Vec<(usize, Range<usize>, &str)> = Vec::new();
        let mut lost = Vec::new();
        for opaque in &self.opaque {
            match finder.take(&Span::new(source, ranges, &opaque.range), true) {
                Some(place) if place.words.start() == place.words.end() => {
                    found.push((*place.words.start(), place.start..place.end, &opaque.raw));
                }
                _ => lost.push(opaque.raw.as_str()),
            }
        }
        found.sort_by_key(|(word, place, _)| (*word, place.start));
        let mut found = found.into_iter().peekable();
        let as_html = |(number, word): (usize, &Word)| {
            let (mut out, mut at) = (String::new(), 0);
            while let Some((_, place, raw)) = found.next_if(|(word, ..)| *word == number) {
                out.push_str(&escape_with(&word.text[at..place.start], &self.entities));
                out.push_str(raw);
                at = place.end;
            }
            out + &escape_with(&word.text[at..], &self.entities)
        };
        (translation.0.iter().enumerate().map(as_html).collect(), lost)
    }
}

/// One sentence and its translation while tags are put in.
struct Layout<'a> {
    markup: &'a Markup,
    source: &'a str,
    ranges: &'a [Range<usize>],
    translation: &'a [Word],
    words: &'a [String],
    /// What stands before each word.
    gaps: Vec<String>,
    text_of: &'a dyn Fn(&[Piece]) -> String,
}

/// A word, or an element with its words, and the number of its first word.
type Chunk = (usize, String);

impl Layout<'_> {
    /// Chunks with what stands between them.
    fn join(&self, chunks: &[Chunk]) -> String {
        let mut out = String::new();
        for (i, (first, text)) in chunks.iter().enumerate() {
            if i > 0 {
                out.push_str(self.gaps.get(*first).map_or(" ", |gap| gap));
            }
            out.push_str(text);
        }
        out
    }

    /// The words of a frame, those inside an element together with its tags as one.
    fn chunks(&self, parent: Option<usize>, frame: &Frame) -> Vec<Chunk> {
        let mut taken = vec![false; self.words.len()];
        let mut placed: Vec<(Range<usize>, usize)> = Vec::new();
        for (i, element) in self.markup.elements.iter().enumerate().filter(|(_, e)| e.parent == parent) {
            let range = self.place(element, frame, &taken);
            taken[range.clone()].fill(true);
            placed.push((range, i));
        }
        placed.sort_by_key(|(range, i)| (range.start, *i));
        let (mut chunks, mut prefix, mut at) = (Vec::new(), String::new(), frame.target.start);
        for (range, i) in placed {
            while at < range.start {
                chunks.push((at, std::mem::take(&mut prefix) + &self.words[at]));
                at += 1;
            }
            let element = self.element(i, &range);
            if range.is_empty() {
                prefix.push_str(&element);
            } else {
                chunks.push((range.start, std::mem::take(&mut prefix) + &element));
                at = range.end;
            }
        }
        for at in at..frame.target.end.max(at) {
            chunks.push((at, std::mem::take(&mut prefix) + &self.words[at]));
        }
        match chunks.last_mut() {
            Some((_, last)) => last.push_str(&prefix),
            None => chunks.push((at, prefix)),
        }
        chunks
    }

    /// An element with what is in it.
    fn element(&self, i: usize, range: &Range<usize>) -> String {
        let element = &self.markup.elements[i];
        let frame = Frame { target: range.clone(), source: self.own(element) };
        let inner = self.join(&self.chunks(Some(i), &frame));
        // A full stop that stood behind the element does so again.
        let marks = ['.', ',', '!', '?', ':'];
        let inside = self.source.get(element.range.clone()).unwrap_or_default().trim_end().ends_with(marks);
        let kept = match inside || element.goes_on || element.close.is_empty() {
            true => inner.len(),
            false => inner.trim_end_matches(marks).len(),
        };
        let kept = if kept == 0 { inner.len() } else { kept };
        let open = (self.text_of)(&element.open);
        format!("{open}{}{}{}", &inner[..kept], element.close, &inner[kept..])
    }

    /// The source words that an element is around.
    fn own(&self, element: &Element) -> Range<usize> {
        let first = self.ranges.iter().position(|word| word.end > element.range.start);
        let first = first.unwrap_or(self.ranges.len());
        let count = self.ranges[first..].iter().take_while(|word| word.start < element.range.end).count();
        first..first + count
    }

    /// The target words that an element goes around, within a frame; none of them is taken.
    fn place(&self, element: &Element, frame: &Frame, taken: &[bool]) -> Range<usize> {
        let own = self.own(element);
        let is_point = element.range.is_empty() && !element.from_before && !element.goes_on;
        let belongs =
            |&t: &usize| !taken[t] && self.translation[t].from.is_some_and(|from| own.contains(&from));
        if is_point {
            let next = |&t: &usize| self.translation[t].from == Some(own.start);
            let at = match own.start >= frame.source.end {
                true => frame.target.end,
                false => frame.target.clone().find(next).unwrap_or_else(|| in_proportion(own.start, frame)),
            };
            return behind(at, frame, taken);
        }
        let free = frame.target.clone().all(|t| !taken[t]);
        if free && own.start <= frame.source.start && own.end >= frame.source.end {
            return frame.target.clone();
        }
        let last_taken = frame.target.clone().rev().find(|&t| taken[t]).map_or(frame.target.start, |t| t + 1);
        if element.goes_on {
            let first = frame.target.clone().find(belongs).unwrap_or(frame.target.end);
            return first.max(last_taken)..frame.target.end;
        }
        if element.from_before {
            let first = frame.target.clone().find(|&t| taken[t]).unwrap_or(frame.target.end);
            let last = frame.target.clone().rev().find(belongs).map_or(frame.target.start, |t| t + 1);
            return frame.target.start..last.min(first);
        }
        longest_run(frame.target.clone(), belongs, taken).unwrap_or_else(|| {
            let at = in_proportion(own.start, frame);
            if at < frame.target.end && !taken[at] { at..at + 1 } else { behind(at, frame, taken) }
        })
    }
}

/// What stands before each target word: a space, or what holds the words together that it and the word
/// before it were translated from.
fn gaps(source: &str, words: &[Range<usize>], translation: &Translation, entities: &Entities) -> Vec<String> {
    let no_break = |c: char| matches!(c, '\u{a0}' | '\u{202f}' | '\u{2007}');
    let mut between: Vec<Option<&str>> = words
        .windows(2)
        .map(|pair| {
            Some(&source[pair[0].end..pair[1].start])
                .filter(|gap| gap.contains(no_break) && gap.trim().is_empty())
        })
        .collect();
    let as_many = translation.0.len() == words.len();
    let mut gaps = vec![" ".to_owned(); translation.0.len()];
    for (t, pair) in translation.0.windows(2).enumerate() {
        let first = match (pair[0].from, pair[1].from) {
            (Some(a), Some(b)) if a.abs_diff(b) == 1 => a.min(b),
            // No word is known to belong to another.
            (None, None) if as_many => t,
            _ => continue,
        };
        if let Some(gap) = between.get_mut(first).and_then(Option::take) {
            gaps[t + 1] = escape_with(gap, entities);
        }
    }
    gaps
}

/// The target word as far into the frame as `word` is into its source.
fn in_proportion(word: usize, frame: &Frame) -> usize {
    let (before, all) = (word.saturating_sub(frame.source.start), frame.source.len().max(1));
    (frame.target.start + before * frame.target.len() / all).min(frame.target.end)
}

/// An empty range at `at`, or behind the elements that lie there.
fn behind(at: usize, frame: &Frame, taken: &[bool]) -> Range<usize> {
    let inside = |at: usize| at > frame.target.start && at < frame.target.end && taken[at - 1] && taken[at];
    let at = (at..frame.target.end).find(|&at| !inside(at)).unwrap_or(frame.target.end);
    at..at
}

/// The longest run of words that belong; a single other word does not interrupt it.
fn longest_run(
    words: Range<usize>,
    belongs: impl Fn(&usize) -> bool,
    taken: &[bool],
) -> Option<Range<usize>> {
    let mut best: Option<Range<usize>> = None;
    let mut run: Option<Range<usize>> = None;
    for t in words.filter(|t| belongs(t)) {
        run = match run {
            Some(open) if t <= open.end + 1 && !taken[open.end..t].contains(&true) => Some(open.start..t + 1),
            _ => Some(t..t + 1),
        };
        if run.as_ref().map(Range::len) > best.as_ref().map(Range::len) {
            best.clone_from(&run);
        }
    }
    best
}
