//! Where the tags of a sentence go in its translation: around the words that attended to the words they were around.

use super::{Entities, escape_with};
use crate::words::{Translation, Word, word_ranges};
use std::ops::Range;
use std::sync::Arc;

/// An element inside a line, or, with an empty range, something that stands at a place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// What it is around, in bytes of the segment.
    pub(super) range: Range<usize>,
    pub(super) open: String,
    /// Empty if it is not closed in the segment.
    pub(super) close: String,
    /// The element it lies in.
    pub(super) parent: Option<usize>,
}

/// The sentences in which a node begins and ends, by their number.
pub(super) type Home = (usize, usize);

/// The home of each node. There must be a sentence.
pub(super) fn homes(nodes: &[Node], sentences: &[Range<usize>]) -> Vec<Home> {
    let home = |node: &Node| {
        let begins = sentences.iter().position(|s| s.end > node.range.start);
        let begins = begins.unwrap_or(sentences.len().saturating_sub(1));
        let ends = sentences.iter().rposition(|s| s.start < node.range.end).unwrap_or(0);
        (begins, ends.max(begins))
    };
    nodes.iter().map(home).collect()
}

/// A node as far as it concerns one sentence.
#[derive(Debug)]
struct Element {
    /// What it is around, in bytes of the sentence.
    range: Range<usize>,
    open: String,
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
    /// Text that is not translated, and the element that it is shown for.
    opaque: Vec<(String, String)>,
    entities: Arc<Entities>,
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
        nodes: &[Node],
        homes: &[Home],
        (number, range): (usize, &Range<usize>),
        opaque: Vec<(String, String)>,
        entities: Arc<Entities>,
    ) -> Self {
        let mut elements = Vec::new();
        let mut places: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
        for (node, &(begins, ends)) in nodes.iter().zip(homes) {
            if number != begins && number != ends {
                // It is around all of the sentence, or not in it: what lies in it lies in what it lies in.
                places.push(node.parent.and_then(|parent| places[parent]));
                continue;
            }
            let clip = |at: usize| at.clamp(range.start, range.end) - range.start;
            places.push(Some(elements.len()));
            elements.push(Element {
                range: clip(node.range.start)..clip(node.range.end),
                open: if number == begins { node.open.clone() } else { String::new() },
                close: if number == ends { node.close.clone() } else { String::new() },
                from_before: number != begins,
                goes_on: number != ends,
                parent: node.parent.and_then(|parent| places[parent]),
            });
        }
        Markup { elements, opaque, entities }
    }

    /// The translation with the tags in it.
    pub(crate) fn render(&self, source: &str, translation: &Translation) -> String {
        let ranges = word_ranges(source);
        let mut opaque = self.opaque.clone();
        let words: Vec<String> =
            translation.0.iter().map(|word| self.word(&word.text, &mut opaque)).collect();
        let frame = Frame { target: 0..words.len(), source: 0..ranges.len() };
        let layout =
            Layout { markup: self, source, ranges: &ranges, translation: &translation.0, words: &words };
        let mut text = layout.chunks(None, &frame).join(" ");
        // What did not come through stands at the end rather than nowhere.
        for (_, raw) in opaque {
            text.push(' ');
            text.push_str(&raw);
        }
        text
    }

    /// A word as HTML; what is shown for an element becomes the element.
    fn word(&self, text: &str, opaque: &mut Vec<(String, String)>) -> String {
        for i in 0..opaque.len() {
            if let Some(at) = text.find(opaque[i].0.as_str()) {
                let (shown, raw) = opaque.remove(i);
                let before = escape_with(&text[..at], &self.entities);
                return format!("{before}{raw}{}", self.word(&text[at + shown.len()..], opaque));
            }
        }
        escape_with(text, &self.entities)
    }
}

/// One sentence and its translation while tags are put in.
struct Layout<'a> {
    markup: &'a Markup,
    source: &'a str,
    ranges: &'a [Range<usize>],
    translation: &'a [Word],
    words: &'a [String],
}

impl Layout<'_> {
    /// The words of a frame, those inside an element together with its tags as one.
    fn chunks(&self, parent: Option<usize>, frame: &Frame) -> Vec<String> {
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
                chunks.push(std::mem::take(&mut prefix) + &self.words[at]);
                at += 1;
            }
            let element = self.element(i, &range);
            if range.is_empty() {
                prefix.push_str(&element);
            } else {
                chunks.push(std::mem::take(&mut prefix) + &element);
                at = range.end;
            }
        }
        for word in &self.words[at..frame.target.end.max(at)] {
            chunks.push(std::mem::take(&mut prefix) + word);
        }
        match chunks.last_mut() {
            Some(last) => last.push_str(&prefix),
            None => chunks.push(prefix),
        }
        chunks
    }

    /// An element with what is in it.
    fn element(&self, i: usize, range: &Range<usize>) -> String {
        let element = &self.markup.elements[i];
        let frame = Frame { target: range.clone(), source: self.own(element) };
        let inner = self.chunks(Some(i), &frame).join(" ");
        // A full stop that stood behind the element does so again.
        let marks = ['.', ',', '!', '?', ':'];
        let inside = self.source.get(element.range.clone()).unwrap_or_default().trim_end().ends_with(marks);
        let kept = match inside || element.goes_on || element.close.is_empty() {
            true => inner.len(),
            false => inner.trim_end_matches(marks).len(),
        };
        let kept = if kept == 0 { inner.len() } else { kept };
        format!("{}{}{}{}", element.open, &inner[..kept], element.close, &inner[kept..])
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
