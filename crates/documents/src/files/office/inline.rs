//! The text of a paragraph with its inline tags, before and after translation.
//!
//! In the text of a unit, a tag is written as `<7>`, `</7>` or `<7/>`; [`Tag`] records what the
//! number stands for. The code that places HTML tags by alignment thus handles these tags, too.

use super::xml::{attribute_range, qualified};
use crate::Document;
use crate::document::Piece;
use crate::html::{EntityPlaceholders, decode};
use crate::segment::{DEPTH, Escaping, Segment, TAGS};
use htmlize::Context;
use std::collections::HashMap;
use std::ops::Range;

/// The content that a numbered tag stands for. Ranges are byte ranges of the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An element around text: its start tag and its end tag.
    Element { open: Range<usize>, close: Range<usize> },
    /// An element around runs: its start tag, its end tag, and the properties of most of its text.
    Container { open: Range<usize>, close: Range<usize>, properties: String },
    /// Runs with these properties.
    Run { properties: String },
    /// Content at a single point.
    Point { range: Range<usize> },
    /// Content at a single point inside a run with these properties.
    RunPoint { properties: String, range: Range<usize> },
}

#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    /// Whether its text begins with a space.
    pub(super) leading: bool,
    /// Whether its text ends with a space.
    pub(super) trailing: bool,
}

/// An open element.
#[derive(Debug)]
struct Open {
    kind: Kind,
    /// Its tag number, once it contains text since the last break.
    number: Option<usize>,
    /// Whether it has contained text or a break.
    used: bool,
}

/// Builds the document of a paragraph.
pub(super) struct Builder<'a> {
    document: Document,
    segment: Segment,
    entities: &'a mut EntityPlaceholders,
    tags: Vec<Tag>,
    open: Vec<Open>,
    /// The number of tags since the last break.
    count: usize,
    /// Elements that contain no text yet.
    fresh: Vec<usize>,
    /// Whether the last text ends with a space.
    after_space: bool,
}

impl<'a> Builder<'a> {
    /// A builder for text in the language with this code.
    pub(super) fn new(entities: &'a mut EntityPlaceholders, language: Option<&str>) -> Self {
        Builder {
            document: Document::in_language(language),
            segment: Segment::new(Escaping::xml()),
            entities,
            tags: Vec::new(),
            open: Vec::new(),
            count: 0,
            fresh: Vec::new(),
            after_space: false,
        }
    }

    /// Adds text that may contain entities.
    pub(super) fn text(&mut self, raw: &str) {
        if raw.is_empty() {
            return;
        }
        self.flush();
        for number in self.fresh.drain(..) {
            self.tags[number].leading = raw.starts_with(char::is_whitespace);
        }
        self.after_space = raw.ends_with(char::is_whitespace);
        let entities = &mut *self.entities;
        self.segment.decoded(raw, |text, escaping| {
            decode(raw, Context::General, text, entities, (escaping, true));
        });
    }

    /// Opens an element, a container or a run.
    pub(super) fn open(&mut self, kind: Kind) {
        self.open.push(Open { kind, number: None, used: false });
    }

    /// Closes the innermost open element, container or run.
    pub(super) fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        match open.number {
            Some(number) => self.add_close(number),
            None if open.used => {}
            // An element without text becomes a point.
            None => match open.kind {
                Kind::Element { open, close } | Kind::Container { open, close, .. } => {
                    self.point(Kind::Point { range: open.start..close.end });
                }
                _ => {}
            },
        }
    }

    /// The innermost open element, container or run.
    pub(super) fn innermost(&self) -> Option<&Kind> {
        self.open.last().map(|open| &open.kind)
    }

    /// Adds content at a single point.
    pub(super) fn point(&mut self, kind: Kind) {
        self.flush();
        self.fresh.clear();
        self.after_space = false;
        let raw = format!("<{}/>", self.number(kind));
        self.segment.point(vec![Piece::Keep(raw)]);
    }

    /// Adds content whose text is shown but not translated; `shown` is escaped as XML.
    pub(super) fn opaque(&mut self, kind: Kind, shown: &str) {
        self.flush();
        self.fresh.clear();
        self.after_space = false;
        let raw = format!("<{}/>", self.number(kind));
        let mut text = String::new();
        decode(shown, Context::General, &mut text, self.entities, (&mut self.segment.escaping, false));
        self.segment.opaque(vec![Piece::Keep(raw)], &text);
    }

    /// Adds a separator that ends the segment, such as a tab.
    pub(super) fn separator(&mut self, kind: Kind) {
        self.cut();
        let around: Vec<Kind> = self.open.iter().take(DEPTH / 2).map(|open| open.kind.clone()).collect();
        let around: Vec<usize> = around
            .into_iter()
            .filter(|kind| matches!(kind, Kind::Element { .. } | Kind::Container { .. }))
            .map(|kind| self.number(kind))
            .collect();
        let number = self.number(kind);
        let opens: String = around.iter().map(|number| format!("<{number}>")).collect();
        let closes: String = around.iter().rev().map(|number| format!("</{number}>")).collect();
        self.document.keep(&format!("{opens}<{number}/>{closes}"));
    }

    /// The document and its tags; `None` if there is nothing to translate.
    pub(super) fn finish(mut self) -> Option<(Document, Vec<Tag>)> {
        self.cut();
        (!self.document.sentences.is_empty()).then_some((self.document, self.tags))
    }

    /// Ends the segment. Open elements continue in the next segment when it has text for them.
    fn cut(&mut self) {
        let numbers: Vec<usize> = self.open.iter_mut().rev().filter_map(|open| open.number.take()).collect();
        for number in numbers {
            self.add_close(number);
        }
        self.open.iter_mut().for_each(|open| open.used = true);
        self.count = 0;
        self.fresh.clear();
        self.after_space = false;
        let segment = std::mem::replace(&mut self.segment, Segment::new(Escaping::xml()));
        let pieces = segment.finish(&mut self.document);
        self.document.add(pieces);
    }

    /// Writes the start tags of open elements before content is added to them.
    fn flush(&mut self) {
        // Elements nested more deeply than this are dropped: their text gets the formatting of the
        // element around it.
        let deepest = self.open.len().min(DEPTH / 2);
        if self.count + deepest + 2 >= TAGS {
            self.cut();
        }
        for place in 0..self.open.len() {
            self.open[place].used = true;
            if place < deepest && self.open[place].number.is_none() {
                let number = self.number(self.open[place].kind.clone());
                self.open[place].number = Some(number);
                self.fresh.push(number);
                let raw = format!("<{number}>");
                self.segment.open(&number.to_string(), vec![Piece::Keep(raw)]);
            }
        }
    }

    fn add_close(&mut self, number: usize) {
        self.tags[number].trailing = self.after_space;
        self.fresh.retain(|fresh| *fresh != number);
        let raw = format!("</{number}>");
        self.segment.close(&number.to_string(), &raw);
    }

    fn number(&mut self, kind: Kind) -> usize {
        self.count += 1;
        self.tags.push(Tag { kind, leading: false, trailing: false });
        self.tags.len() - 1
    }
}

/// A step of writing a translated paragraph.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Text, escaped as XML.
    Text(&'a str),
    Open(usize),
    Close(usize),
    Point(usize),
}

/// The steps to write a translated text, properly nested for any input. Spaces move back into the
/// elements that contained them, and the start of each of `pairs` comes before its end.
pub(super) fn steps<'a>(text: &'a str, tags: &[Tag], pairs: &[(usize, usize)]) -> Vec<Step<'a>> {
    let mut steps = with_spaces(written(text, tags.len()), tags);
    let mut places: HashMap<usize, usize> = HashMap::new();
    if !pairs.is_empty() {
        places = (0..).zip(&steps).filter_map(|(place, step)| Some((step.point()?, place))).collect();
    }
    for (start, end) in pairs {
        if let (Some(&first), Some(&last)) = (places.get(start), places.get(end))
            && last < first
        {
            steps.swap(first, last);
        }
    }
    nested(steps)
}

impl Step<'_> {
    fn point(&self) -> Option<usize> {
        if let Step::Point(number) = self { Some(*number) } else { None }
    }
}

/// The tags that mark the start and the end of a range, such as a bookmark; `text` is the text of
/// the part.
pub(super) fn pairs(tags: &[Tag], text: &str) -> Vec<(usize, usize)> {
    let mut starts: HashMap<(&str, &str), usize> = HashMap::new();
    let mut found = Vec::new();
    for (number, tag) in tags.iter().enumerate() {
        let Kind::Point { range } = &tag.kind else { continue };
        let raw = &text[range.clone()];
        let name = qualified(raw);
        let id = attribute_range(raw, "id").or_else(|| attribute_range(raw, "name"));
        let Some(id) = id.map(|range| &raw[range]) else { continue };
        let without = |ends: [&str; 2]| ends.into_iter().find_map(|end| name.strip_suffix(end));
        if let Some(name) = without(["Start", "-start"]) {
            starts.insert((name, id), number);
        } else if let Some(name) = without(["End", "-end"])
            && let Some(start) = starts.remove(&(name, id))
        {
            found.push((start, number));
        }
    }
    found
}

/// Splits the text at its numbered tags.
fn written(text: &str, tags: usize) -> Vec<Step<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        if at > 0 {
            found.push(Step::Text(&rest[..at]));
        }
        let Some(end) = rest[at..].find('>').map(|length| at + length) else {
            rest = &rest[at + 1..];
            continue;
        };
        let name = &rest[at + 1..end];
        let number = |name: &str| name.parse().ok().filter(|number| *number < tags);
        let step = match (name.strip_prefix('/'), name.strip_suffix('/')) {
            (Some(name), _) => number(name).map(Step::Close),
            (_, Some(name)) => number(name).map(Step::Point),
            _ => number(name).map(Step::Open),
        };
        found.extend(step);
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        found.push(Step::Text(rest));
    }
    found
}

fn with_spaces<'a>(steps: Vec<Step<'a>>, tags: &[Tag]) -> Vec<Step<'a>> {
    // Goes backwards so that a space can move past several end tags.
    let mut backwards: Vec<Step<'a>> = Vec::with_capacity(steps.len());
    for step in steps.into_iter().rev() {
        let spaces = match (&step, backwards.last()) {
            (Step::Close(number), Some(Step::Text(text))) if tags[*number].trailing => {
                text.split_at(text.len() - text.trim_start().len())
            }
            _ => ("", ""),
        };
        move_spaces(&mut backwards, step, spaces);
    }
    let mut forwards: Vec<Step<'a>> = Vec::with_capacity(backwards.len());
    for step in backwards.into_iter().rev() {
        let spaces = match (&step, forwards.last()) {
            (Step::Open(number), Some(Step::Text(text))) if tags[*number].leading => {
                let (rest, spaces) = text.split_at(text.trim_end().len());
                (spaces, rest)
            }
            _ => ("", ""),
        };
        move_spaces(&mut forwards, step, spaces);
    }
    forwards
}

/// Adds a tag and moves the spaces next to it to its other side; `rest` is the remaining text.
fn move_spaces<'a>(steps: &mut Vec<Step<'a>>, tag: Step<'a>, (spaces, rest): (&'a str, &'a str)) {
    if spaces.is_empty() {
        steps.push(tag);
        return;
    }
    steps.pop();
    if !rest.is_empty() {
        steps.push(Step::Text(rest));
    }
    steps.push(tag);
    steps.push(Step::Text(spaces));
}

/// Fixes the nesting: overlapping elements are closed and opened again.
fn nested(steps: Vec<Step<'_>>) -> Vec<Step<'_>> {
    let mut out = Vec::with_capacity(steps.len());
    let mut open: Vec<usize> = Vec::new();
    for step in steps {
        match step {
            Step::Open(number) => {
                open.push(number);
                out.push(step);
            }
            Step::Close(number) => {
                let Some(place) = open.iter().rposition(|other| *other == number) else { continue };
                out.extend(open[place..].iter().rev().map(|number| Step::Close(*number)));
                open.remove(place);
                out.extend(open[place..].iter().map(|number| Step::Open(*number)));
            }
            step => out.push(step),
        }
    }
    out.extend(open.iter().rev().map(|number| Step::Close(*number)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(leading: bool, trailing: bool) -> Tag {
        Tag { kind: Kind::Run { properties: String::new() }, leading, trailing }
    }

    #[test]
    fn spaces_go_back_to_where_they_stood() {
        let tags = [tag(false, true), tag(true, true)];
        let steps = steps("<0>a</0> b <1>c</1> d", &tags, &[]);
        let wanted = [
            Step::Open(0),
            Step::Text("a"),
            Step::Text(" "),
            Step::Close(0),
            Step::Text("b"),
            Step::Open(1),
            Step::Text(" "),
            Step::Text("c"),
            Step::Text(" "),
            Step::Close(1),
            Step::Text("d"),
        ];
        assert_eq!(steps, wanted);
    }

    #[test]
    fn whatever_comes_is_nested() {
        let tags = [tag(false, false), tag(false, false)];
        let steps = steps("<0>a<1>b</0>c</1>d</0><7><0", &tags, &[]);
        use Step::{Close, Open, Text};
        let wanted = [
            Open(0),
            Text("a"),
            Open(1),
            Text("b"),
            Close(1),
            Close(0),
            Open(1),
            Text("c"),
            Close(1),
            Text("d"),
            Text("0"),
        ];
        assert_eq!(steps, wanted);
    }

    #[test]
    fn a_start_comes_before_its_end() {
        let text = "<w:bookmarkStart w:id='1'/><w:bookmarkEnd w:id='2'/><w:bookmarkEnd w:id='1'/>";
        let point = |range: Range<usize>| Tag { kind: Kind::Point { range }, ..tag(false, false) };
        let tags = [point(0..27), point(27..52), point(52..text.len())];
        assert_eq!(pairs(&tags, text), [(0, 2)]);
        let found = steps("<2/>a<1/><0/>", &tags, &[(0, 2)]);
        assert_eq!(found, [Step::Point(0), Step::Text("a"), Step::Point(1), Step::Point(2)]);
    }
}
