//! The text of a paragraph with the tags inside it, before and after translation.
//!
//! A tag is written as `<7>`, `</7>` or `<7/>` in the text of a unit; what it stands for is in
//! [`Tag`]. So the tags follow the alignment as those of HTML do, by the same code.

use super::xml::{attribute_range, qualified};
use crate::Document;
use crate::document::Piece;
use crate::html::{StandIns, decode};
use crate::segment::{DEPTH, Segment, Spelling, TAGS};
use htmlize::Context;
use std::collections::HashMap;
use std::ops::Range;

/// What a number stands for. Ranges are bytes of the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An element around text: its start and its end.
    Element { open: Range<usize>, close: Range<usize> },
    /// An element around runs: its start, its end, and the properties of most of its text.
    Container { open: Range<usize>, close: Range<usize>, properties: String },
    /// Runs with these properties.
    Run { properties: String },
    /// Something that stands at a place.
    Point { range: Range<usize> },
    /// Something inside of a run of these properties.
    RunPoint { properties: String, range: Range<usize> },
}

#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    /// Its text begins with a space.
    pub(super) leading: bool,
    /// Its text ends with a space.
    pub(super) trailing: bool,
}

/// An element that is open.
#[derive(Debug)]
struct Open {
    kind: Kind,
    /// Its number, once there is text in it since the last break.
    number: Option<usize>,
    /// There was text in it, or a break.
    used: bool,
}

/// Makes the document of a paragraph.
pub(super) struct Builder<'a> {
    document: Document,
    segment: Segment,
    stand_ins: &'a mut StandIns,
    tags: Vec<Tag>,
    open: Vec<Open>,
    /// Tags since the last break.
    count: usize,
    /// Elements that have no text yet.
    fresh: Vec<usize>,
    /// The last text ends with a space.
    after_space: bool,
}

impl<'a> Builder<'a> {
    /// For text in the language of this code.
    pub(super) fn new(stand_ins: &'a mut StandIns, language: Option<&str>) -> Self {
        Builder {
            document: Document::in_language(language),
            segment: Segment::new(Spelling::xml()),
            stand_ins,
            tags: Vec::new(),
            open: Vec::new(),
            count: 0,
            fresh: Vec::new(),
            after_space: false,
        }
    }

    /// Adds text with its entities.
    pub(super) fn text(&mut self, raw: &str) {
        if raw.is_empty() {
            return;
        }
        self.flush();
        for number in self.fresh.drain(..) {
            self.tags[number].leading = raw.starts_with(char::is_whitespace);
        }
        self.after_space = raw.ends_with(char::is_whitespace);
        let stand_ins = &mut *self.stand_ins;
        self.segment.decoded(raw, |text, spelling| {
            decode(raw, Context::General, text, stand_ins, (spelling, true));
        });
    }

    /// Begins an element, a container or a run.
    pub(super) fn open(&mut self, kind: Kind) {
        self.open.push(Open { kind, number: None, used: false });
    }

    /// Ends what was begun last.
    pub(super) fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        match open.number {
            Some(number) => self.add_close(number),
            None if open.used => {}
            // An element without text marks a place.
            None => match open.kind {
                Kind::Element { open, close } | Kind::Container { open, close, .. } => {
                    self.point(Kind::Point { range: open.start..close.end });
                }
                _ => {}
            },
        }
    }

    /// What is open last.
    pub(super) fn innermost(&self) -> Option<&Kind> {
        self.open.last().map(|open| &open.kind)
    }

    /// Adds something that stands at a place.
    pub(super) fn point(&mut self, kind: Kind) {
        self.flush();
        self.fresh.clear();
        self.after_space = false;
        let raw = format!("<{}/>", self.number(kind));
        self.segment.point(vec![Piece::Keep(raw)]);
    }

    /// Adds something whose text is shown, but not translated; `shown` is written as in XML.
    pub(super) fn opaque(&mut self, kind: Kind, shown: &str) {
        self.flush();
        self.fresh.clear();
        self.after_space = false;
        let raw = format!("<{}/>", self.number(kind));
        let mut text = String::new();
        decode(shown, Context::General, &mut text, self.stand_ins, (&mut self.segment.spelling, false));
        self.segment.opaque(vec![Piece::Keep(raw)], &text);
    }

    /// Adds something that parts the text, such as a tab.
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

    /// The document and its tags, if there is anything to translate.
    pub(super) fn finish(mut self) -> Option<(Document, Vec<Tag>)> {
        self.cut();
        (!self.document.sentences.is_empty()).then_some((self.document, self.tags))
    }

    /// Ends the segment. What is open goes on in the next one, where there is text for it.
    fn cut(&mut self) {
        let numbers: Vec<usize> = self.open.iter_mut().rev().filter_map(|open| open.number.take()).collect();
        for number in numbers {
            self.add_close(number);
        }
        self.open.iter_mut().for_each(|open| open.used = true);
        self.count = 0;
        self.fresh.clear();
        self.after_space = false;
        let segment = std::mem::replace(&mut self.segment, Segment::new(Spelling::xml()));
        let pieces = segment.finish(&mut self.document);
        self.document.add(pieces);
    }

    /// Begins what has been opened, because something comes that lies in it.
    fn flush(&mut self) {
        // Deeper elements than these are left out: their text has the formatting of what is around.
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

/// A piece of a translated paragraph.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Text as it is written in XML.
    Text(&'a str),
    Open(usize),
    Close(usize),
    Point(usize),
}

/// The pieces of a translated text, properly nested whatever the text is. Spaces go back into the
/// elements that they stood in, and of each of `pairs` the first comes first.
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

/// The tags that mark the start and the end of something, such as a bookmark; `text` is that of the
/// part.
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

/// The pieces as they are written.
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
    // Backwards, so that a space passes several ends.
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

/// Adds a tag, and behind it the spaces of the text before it, if there are any; `rest` is what
/// remains of that text.
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

/// The steps with every end where it must be: elements that overlap are closed and opened again.
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
