//! Places the tags of a sentence in its translation: around the words that attended to the words
//! inside them in the source.

use crate::document::Piece;
use crate::restore::{Finder, Span};
use crate::segment::Escaping;
use crate::words::{Translation, Word, word_ranges};
use std::ops::Range;
use std::sync::Arc;

/// An inline element or, if its range is empty, content at a single point.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its content, as a byte range of the segment.
    pub(crate) range: Range<usize>,
    pub(crate) open: Vec<Piece>,
    /// Empty if the element is not closed in the segment.
    pub(crate) close: String,
    /// The index of the parent element.
    pub(crate) parent: Option<usize>,
}

impl Node {
    /// Whether the element begins or ends inside a range.
    pub(crate) fn has_end_in(&self, range: &Range<usize>) -> bool {
        let ends = range.start < self.range.end && self.range.end <= range.end;
        ends || (range.contains(&self.range.start) && !self.range.is_empty())
    }
}

/// An element whose content is not translated.
#[derive(Clone, Debug)]
pub(crate) struct Opaque {
    /// The place of its shown content, as a byte range of the segment or of the sentence.
    pub(crate) range: Range<usize>,
    /// How it is written.
    pub(crate) pieces: Vec<Piece>,
}

impl Opaque {
    /// The same element with its range relative to `start`.
    pub(crate) fn from(&self, start: usize) -> Self {
        Opaque { range: self.range.start - start..self.range.end - start, pieces: self.pieces.clone() }
    }
}

/// The nodes of a segment, grouped by sentence.
pub(crate) struct Nodes<'a> {
    nodes: &'a [Node],
    /// The indices of the sentences in which each node begins and ends.
    sentence_spans: Vec<(usize, usize)>,
    /// The nodes that begin or end in each sentence, in order.
    nodes_by_sentence: Vec<Vec<usize>>,
    /// For each node, the last sentence that contains it and its index among the elements of that
    /// sentence.
    element_index: Vec<Option<(usize, usize)>>,
}

impl<'a> Nodes<'a> {
    /// Assigns the nodes to sentences, of which there must be at least one.
    pub(crate) fn new(nodes: &'a [Node], sentences: &[Range<usize>]) -> Self {
        let last = sentences.len().saturating_sub(1);
        let sentence_span = |node: &Node| {
            // Content right after a sentence, such as a footnote mark, belongs to that sentence.
            let over = |s: &Range<usize>| match node.range.is_empty() {
                true => s.end < node.range.start,
                false => s.end <= node.range.start,
            };
            let begins = sentences.partition_point(over).min(last);
            let ends = sentences.partition_point(|s| s.start < node.range.end).saturating_sub(1);
            (begins, ends.max(begins))
        };
        let sentence_spans: Vec<_> = nodes.iter().map(sentence_span).collect();
        let mut nodes_by_sentence = vec![Vec::new(); sentences.len()];
        for (node, &(begins, ends)) in sentence_spans.iter().enumerate() {
            nodes_by_sentence[begins].push(node);
            if ends != begins {
                nodes_by_sentence[ends].push(node);
            }
        }
        Nodes { nodes, sentence_spans, nodes_by_sentence, element_index: vec![None; nodes.len()] }
    }

    /// The innermost element of a sentence that contains a node. Ancestors that neither begin nor
    /// end in the sentence surround all of it and are skipped.
    fn parent(&self, node: usize, sentence: usize) -> Option<usize> {
        let mut parent = self.nodes[node].parent;
        while let Some(node) = parent {
            match self.element_index[node] {
                Some((number, element)) if number == sentence => return Some(element),
                _ => parent = self.nodes[node].parent,
            }
        }
        None
    }
}

/// The part of a node that concerns one sentence.
#[derive(Debug)]
struct Element {
    /// Its content, as a byte range of the sentence.
    range: Range<usize>,
    open: Vec<Piece>,
    close: String,
    /// Whether it begins in an earlier sentence.
    from_before: bool,
    /// Whether it ends in a later sentence.
    goes_on: bool,
    parent: Option<usize>,
    /// The white space before content at a point after the last sentence.
    space: String,
}

/// The tags of a sentence.
#[derive(Debug)]
pub(crate) struct Markup {
    elements: Vec<Element>,
    /// Content that is not translated, as byte ranges of the sentence.
    opaque: Vec<Opaque>,
    pub(crate) escaping: Arc<Escaping>,
}

/// Renders the pieces of a tag.
type WriteTag<'a> = &'a dyn Fn(&[Piece]) -> String;

/// The range of target parts that an element may enclose, and the range of source pieces that it
/// covers.
#[derive(Clone, Debug)]
struct Scope {
    target: Range<usize>,
    source: Range<usize>,
}

impl Markup {
    /// Whether the sentence contains neither tags nor untranslated content.
    pub(crate) fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.opaque.is_empty()
    }

    /// The tags of sentence `number`, which lies at `range` in its segment. `behind` is the white
    /// space between the last sentence and the tags after it at the end of the segment; it is
    /// written together with those tags.
    pub(crate) fn new(
        nodes: &mut Nodes<'_>,
        (number, range): (usize, &Range<usize>),
        opaque: Vec<Opaque>,
        escaping: Arc<Escaping>,
        behind: &str,
    ) -> Self {
        let mut written = 0;
        let clip = |at: usize| at.clamp(range.start, range.end) - range.start;
        let mut elements = Vec::new();
        for i in std::mem::take(&mut nodes.nodes_by_sentence[number]) {
            let (node, (begins, ends)) = (&nodes.nodes[i], nodes.sentence_spans[i]);
            let parent = nodes.parent(i, number);
            nodes.element_index[i] = Some((number, elements.len()));
            let at = node.range.start.saturating_sub(range.end).min(behind.len());
            let space = behind.get(written..at).unwrap_or_default();
            written = written.max(at);
            elements.push(Element {
                space: escaping.write(space),
                range: clip(node.range.start)..clip(node.range.end),
                open: if number == begins { node.open.clone() } else { Vec::new() },
                close: if number == ends { node.close.clone() } else { String::new() },
                from_before: number != begins,
                goes_on: number != ends,
                parent,
            });
        }
        Markup { elements, opaque, escaping }
    }

    /// The translation with its tags; `text_of` renders a tag.
    pub(crate) fn render(&self, source: &str, translation: &Translation, text_of: WriteTag<'_>) -> String {
        let words = word_ranges(source);
        let pieces = Pieces::new(&words, self.cuts());
        let (parts, lost) = self.parts(source, &words, &pieces, (translation, text_of));
        let scope = Scope { target: 0..parts.len(), source: 0..pieces.ranges.len() };
        let layout = Layout { markup: self, source, pieces: &pieces, parts: &parts, text_of };
        let mut text = layout.join(layout.chunks(None, &scope));
        // Untranslated content that the translation lost is appended at the end.
        for raw in lost {
            text.push(' ');
            text.push_str(&raw);
        }
        text
    }

    /// The sorted byte offsets at which elements begin and end.
    fn cuts(&self) -> Vec<usize> {
        let mut cuts: Vec<usize> =
            self.elements.iter().flat_map(|element| [element.range.start, element.range.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let inside = |at: &usize| {
            let place = self.opaque.get(self.opaque.partition_point(|opaque| opaque.range.end <= *at));
            place.is_some_and(|opaque| opaque.range.start < *at)
        };
        cuts.retain(|at| !inside(at));
        cuts
    }

    /// The words as HTML, with the untranslated elements inside them, and the untranslated elements
    /// that were not found in the translation.
    fn parts(
        &self,
        source: &str,
        ranges: &[Range<usize>],
        pieces: &Pieces,
        (translation, text_of): (&Translation, WriteTag<'_>),
    ) -> (Vec<Part>, Vec<String>) {
        let mut finder = Finder::new(&translation.0);
        let mut found: Vec<(usize, Range<usize>, String)> = Vec::new();
        let mut lost = Vec::new();
        for opaque in &self.opaque {
            let raw = text_of(&opaque.pieces);
            match finder.claim(&Span::new(source, ranges, &opaque.range), true) {
                Some(place) if place.words.start() == place.words.end() => {
                    found.push((*place.words.start(), place.start..place.end, raw));
                }
                _ => lost.push(raw),
            }
        }
        found.sort_by_key(|(word, place, _)| (*word, place.start));
        let separators = separators(source, ranges, translation, &self.escaping);
        let mut parts = Vec::new();
        let mut rest = found.as_slice();
        for (number, word) in translation.0.iter().enumerate() {
            let (own, later) = rest.split_at(rest.partition_point(|(word, ..)| *word == number));
            rest = later;
            // Untranslated content is not cut.
            let cut = |at: usize| !own.iter().any(|(_, place, _)| place.start < at && at < place.end);
            let mut start = 0;
            let cuts = pieces.split(source, word).into_iter();
            for (end, from) in cuts.filter(|(end, _)| *end == word.text.len() || cut(*end)) {
                let separator = if start == 0 { separators[number].clone() } else { String::new() };
                parts.push(Part { html: self.as_html(word, start..end, own), from, separator });
                start = end;
            }
        }
        (parts, lost)
    }

    /// A byte range of a word as HTML; `opaque` are the untranslated elements in the word.
    fn as_html(&self, word: &Word, range: Range<usize>, opaque: &[(usize, Range<usize>, String)]) -> String {
        let (mut out, mut at) = (String::new(), range.start);
        let within = |place: &Range<usize>| range.start <= place.start && place.end <= range.end;
        for (_, place, raw) in opaque.iter().filter(|(_, place, _)| within(place)) {
            out.push_str(&self.escaping.write(&word.text[at..place.start]));
            out.push_str(raw);
            at = place.end;
        }
        out + &self.escaping.write(&word.text[at..range.end])
    }
}

/// The words of a sentence, split where tags stand inside them.
struct Pieces {
    ranges: Vec<Range<usize>>,
    /// The index of the word that each piece belongs to.
    words: Vec<usize>,
    /// The index of the first piece of each word, followed by the number of pieces.
    first: Vec<usize>,
}

impl Pieces {
    fn new(words: &[Range<usize>], cuts: Vec<usize>) -> Self {
        let mut pieces = Pieces { ranges: Vec::new(), words: Vec::new(), first: Vec::new() };
        let mut cuts = cuts.into_iter().peekable();
        for (number, word) in words.iter().enumerate() {
            pieces.first.push(pieces.ranges.len());
            let mut start = word.start;
            while cuts.next_if(|at| *at <= start).is_some() {}
            while let Some(at) = cuts.next_if(|at| *at < word.end) {
                pieces.ranges.push(start..at);
                start = at;
            }
            pieces.ranges.push(start..word.end);
            pieces.words.resize(pieces.ranges.len(), number);
        }
        pieces.first.push(pieces.ranges.len());
        pieces
    }

    /// Splits a target word like its source word: the end of each part and the source piece that it
    /// belongs to.
    fn split(&self, source: &str, word: &Word) -> Vec<(usize, Option<usize>)> {
        let text = word.text.as_str();
        let Some(own) = word.from.filter(|&from| from + 1 < self.first.len()) else {
            return vec![(text.len(), None)];
        };
        let own = self.first[own]..self.first[own + 1];
        if own.len() == 1 && !text.contains(char::is_whitespace) {
            return vec![(text.len(), Some(own.start))];
        }
        self.same_letters(source, &own, text).unwrap_or_else(|| self.marks(source, own, text))
    }

    /// The cuts of a word that was copied, apart from case.
    fn same_letters(
        &self,
        source: &str,
        own: &Range<usize>,
        text: &str,
    ) -> Option<Vec<(usize, Option<usize>)>> {
        let start = self.ranges[own.start].start;
        let mut cuts = Vec::new();
        let mut piece = own.start;
        let mut letters = source[start..].char_indices();
        for (at, c) in text.char_indices() {
            let (place, letter) = letters.next()?;
            if c != letter && !c.to_lowercase().eq(letter.to_lowercase()) {
                return None;
            }
            if self.ranges.get(piece + 1).is_some_and(|next| next.start <= start + place) {
                cuts.push((at, Some(piece)));
                piece += 1;
            }
        }
        cuts.push((text.len(), Some(piece)));
        (piece + 1 >= own.end).then_some(cuts)
    }

    /// The cuts of a word that was translated: punctuation at its ends that matches the source is
    /// split off, and the rest belongs to the source piece with the most letters.
    fn marks(&self, source: &str, mut own: Range<usize>, text: &str) -> Vec<(usize, Option<usize>)> {
        let written = |piece: usize| &source[self.ranges[piece].clone()];
        let is_mark = |piece: usize| !written(piece).contains(char::is_alphabetic);
        let (mut start, mut end) = (0, text.len());
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        while own.len() > 1 && is_mark(own.start) && text[start..end].starts_with(written(own.start)) {
            start += written(own.start).len();
            before.push((start, Some(own.start)));
            own.start += 1;
        }
        while own.len() > 1 && is_mark(own.end - 1) && text[start..end].ends_with(written(own.end - 1)) {
            own.end -= 1;
            behind.push((end, Some(own.end)));
            end -= written(own.end).len();
        }
        if start < end || before.len() + behind.len() == 0 {
            let letters = |piece: &usize| written(*piece).chars().filter(|c| c.is_alphabetic()).count();
            // On a tie, the first piece wins.
            before.push((end, own.rev().max_by_key(letters)));
        }
        before.extend(behind.into_iter().rev());
        before
    }
}

/// A part of the translation: a word, or a part of one.
struct Part {
    html: String,
    /// The index of the source piece that it is aligned to.
    from: Option<usize>,
    /// The text between this part and the previous one; empty if it continues the same word.
    separator: String,
}

/// The index of the first of several parts that are written as a unit, and their text with the tags
/// around it.
type Chunk = (usize, String);

/// One sentence and its translation while tags are placed.
struct Layout<'a> {
    markup: &'a Markup,
    source: &'a str,
    pieces: &'a Pieces,
    parts: &'a [Part],
    text_of: WriteTag<'a>,
}

impl Layout<'_> {
    /// Joins chunks with the separators between them.
    fn join(&self, chunks: Vec<Chunk>) -> String {
        let mut out = String::new();
        for (i, (first, text)) in chunks.iter().enumerate() {
            if i > 0 {
                out.push_str(self.parts.get(*first).map_or(" ", |part| &part.separator));
            }
            out.push_str(text);
        }
        out
    }

    /// The chunks of a scope; an element with its content forms one chunk.
    fn chunks(&self, parent: Option<usize>, scope: &Scope) -> Vec<Chunk> {
        let mut taken = vec![false; self.parts.len()];
        let mut placed: Vec<(Range<usize>, usize, bool)> = Vec::new();
        for (i, element) in self.markup.elements.iter().enumerate().filter(|(_, e)| e.parent == parent) {
            let (range, sticks) = self.place(element, scope, &taken);
            taken[range.clone()].fill(true);
            placed.push((range, i, sticks));
        }
        placed.sort_by_key(|(range, i, _)| (range.start, *i));
        let (mut chunks, mut prefix, mut at) = (Vec::<Chunk>::new(), String::new(), scope.target.start);
        for (range, i, sticks) in placed {
            while at < range.start {
                chunks.push((at, std::mem::take(&mut prefix) + &self.parts[at].html));
                at += 1;
            }
            let element = self.element(i, &range);
            match chunks.last_mut() {
                Some((_, last)) if range.is_empty() && sticks && prefix.is_empty() => last.push_str(&element),
                _ if range.is_empty() => {
                    prefix.push_str(&element);
                    if self.needs_space(i, range.start, scope) {
                        prefix.push(' ');
                    }
                }
                _ => {
                    chunks.push((range.start, std::mem::take(&mut prefix) + &element));
                    at = range.end;
                }
            }
        }
        for at in at..scope.target.end.max(at) {
            chunks.push((at, std::mem::take(&mut prefix) + &self.parts[at].html));
        }
        match chunks.last_mut() {
            Some((_, last)) => last.push_str(&prefix),
            None => chunks.push((at, prefix)),
        }
        chunks
    }

    /// Whether to add a space after point content that stands before a word and was between two
    /// spaces in the source.
    fn needs_space(&self, i: usize, word: usize, scope: &Scope) -> bool {
        let element = &self.markup.elements[i];
        // If several stand at the same point, only the last one counts.
        let next = self.markup.elements.get(i + 1);
        let last = next.is_none_or(|next| next.range != element.range);
        let word = word < scope.target.end && !self.parts[word].html.is_empty();
        word && last && self.is_apart(element)
    }

    /// Renders an element with its content.
    fn element(&self, i: usize, range: &Range<usize>) -> String {
        let element = &self.markup.elements[i];
        let scope = Scope { target: range.clone(), source: self.own(element) };
        let inner = self.join(self.chunks(Some(i), &scope));
        // Punctuation that followed the element in the source stays after it.
        let marks = ['.', ',', '!', '?', ':'];
        let inside = self.source.get(element.range.clone()).unwrap_or_default().trim_end().ends_with(marks);
        let kept = match inside || element.goes_on || element.close.is_empty() {
            true => inner.len(),
            false => inner.trim_end_matches(marks).len(),
        };
        let kept = if kept == 0 { inner.len() } else { kept };
        let (space, open) = (&element.space, (self.text_of)(&element.open));
        format!("{space}{open}{}{}{}", &inner[..kept], element.close, &inner[kept..])
    }

    /// The source pieces inside an element.
    fn own(&self, element: &Element) -> Range<usize> {
        let first = self.pieces.ranges.partition_point(|piece| piece.end <= element.range.start);
        let end = self.pieces.ranges.partition_point(|piece| piece.start < element.range.end);
        first..end.max(first)
    }

    /// The target parts that an element encloses within a scope, none of which is taken. If the
    /// range is empty, also returns whether the element attaches to the previous part.
    fn place(&self, element: &Element, scope: &Scope, taken: &[bool]) -> (Range<usize>, bool) {
        let own = self.own(element);
        if element.range.is_empty() && !element.from_before && !element.goes_on {
            let (mut at, sticks) = self.point(element.range.start, own.start, scope);
            // If there is an empty word between two spaces, it is the place of the element.
            let is_empty = |t: usize| self.parts[t].html.is_empty() && !taken[t];
            if self.is_apart(element) && at > scope.target.start && is_empty(at - 1) {
                at -= 1;
            }
            return (behind(at, scope, taken), sticks);
        }
        let belongs = |&t: &usize| !taken[t] && self.parts[t].from.is_some_and(|from| own.contains(&from));
        let free = scope.target.clone().all(|t| !taken[t]);
        if free && own.start <= scope.source.start && own.end >= scope.source.end {
            return (scope.target.clone(), false);
        }
        let last_taken = scope.target.clone().rev().find(|&t| taken[t]).map_or(scope.target.start, |t| t + 1);
        if element.goes_on {
            let first = scope.target.clone().find(belongs).unwrap_or(scope.target.end);
            return (first.max(last_taken)..scope.target.end, false);
        }
        if element.from_before {
            let first = scope.target.clone().find(|&t| taken[t]).unwrap_or(scope.target.end);
            let last = scope.target.clone().rev().find(belongs).map_or(scope.target.start, |t| t + 1);
            return (scope.target.start..last.min(first), false);
        }
        let range = longest_run(scope.target.clone(), belongs, taken).unwrap_or_else(|| {
            if let Some(at) = self.behind_rest(&own, scope) {
                return behind(at, scope, taken);
            }
            let at = in_proportion(own.start, scope);
            if at < scope.target.end && !taken[at] { at..at + 1 } else { behind(at, scope, taken) }
        });
        (range, false)
    }

    /// Whether a point is between two spaces.
    fn is_apart(&self, element: &Element) -> bool {
        let Range { start, end } = element.range;
        let space = |c: Option<char>| c.is_some_and(char::is_whitespace);
        start == end
            && space(self.source[..start].chars().next_back())
            && space(self.source[end..].chars().next())
    }

    /// The target position of a point at a byte of the source, before the piece `next`, and whether
    /// it attaches to the previous part.
    fn point(&self, byte: usize, next: usize, scope: &Scope) -> (usize, bool) {
        let piece = |number: usize| self.pieces.ranges.get(number);
        let sticks = next > scope.source.start && piece(next - 1).is_some_and(|piece| piece.end == byte);
        let touches_next = piece(next).is_some_and(|piece| piece.start == byte);
        let before_next = || match next >= scope.source.end {
            true => Some(scope.target.end),
            false => scope.target.clone().find(|&t| self.parts[t].from == Some(next)),
        };
        let behind_last = || {
            let behind = |&t: &usize| self.parts[t].from == Some(next - 1);
            scope.target.clone().rev().find(behind).map(|t| t + 1)
        };
        match sticks {
            true if touches_next => before_next().or_else(behind_last).map(|at| (at, true)),
            true => behind_last().or_else(before_next).map(|at| (at, true)),
            false => before_next().map(|at| (at, false)),
        }
        .unwrap_or_else(|| (in_proportion(next, scope), sticks))
    }

    /// The position after the translation of a word, if the element covers only a part of that
    /// word.
    fn behind_rest(&self, own: &Range<usize>, scope: &Scope) -> Option<usize> {
        let word = *self.pieces.words.get(own.start)?;
        let all = self.pieces.first[word]..self.pieces.first[word + 1];
        let is_rest = |&t: &usize| self.parts[t].from.is_some_and(|from| all.contains(&from));
        (own.len() < all.len() && own.end <= all.end).then_some(())?;
        scope.target.clone().rev().find(is_rest).map(|t| t + 1)
    }
}

/// The text before each target word: a space, or the non-breaking white space between the two
/// source words that it and the previous word are aligned to.
fn separators(
    source: &str,
    words: &[Range<usize>],
    translation: &Translation,
    escaping: &Escaping,
) -> Vec<String> {
    let no_break = |c: char| matches!(c, '\u{a0}' | '\u{202f}' | '\u{2007}');
    let mut between: Vec<Option<&str>> = words
        .windows(2)
        .map(|pair| {
            Some(&source[pair[0].end..pair[1].start])
                .filter(|separator| separator.contains(no_break) && separator.trim().is_empty())
        })
        .collect();
    let as_many = translation.0.len() == words.len();
    let mut separators = vec![" ".to_owned(); translation.0.len()];
    for (t, pair) in translation.0.windows(2).enumerate() {
        let first = match (pair[0].from, pair[1].from) {
            (Some(a), Some(b)) if a.abs_diff(b) == 1 => a.min(b),
            // No alignment is known.
            (None, None) if as_many => t,
            _ => continue,
        };
        if let Some(separator) = between.get_mut(first).and_then(Option::take) {
            separators[t + 1] = escaping.write(separator);
        }
    }
    separators
}

/// The target position that corresponds proportionally to source piece `word`.
fn in_proportion(word: usize, scope: &Scope) -> usize {
    let (before, all) = (word.saturating_sub(scope.source.start), scope.source.len().max(1));
    (scope.target.start + before * scope.target.len() / all).min(scope.target.end)
}

/// An empty range at `at`, or after the elements that already occupy that position.
fn behind(at: usize, scope: &Scope, taken: &[bool]) -> Range<usize> {
    let inside = |at: usize| at > scope.target.start && at < scope.target.end && taken[at - 1] && taken[at];
    let at = (at..scope.target.end).find(|&at| !inside(at)).unwrap_or(scope.target.end);
    at..at
}

/// The longest run of words for which `belongs` holds; a single other word does not interrupt it.
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
