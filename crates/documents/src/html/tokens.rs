//! Splits HTML into tags and text. No input is rejected: anything that is not a tag is text, and
//! the tokens together are the input.

use super::Kind;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};
use std::collections::HashMap;
use std::ops::Range;

/// A piece of HTML.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text that may contain entities.
    Text(&'a str),
    /// A tag that splits the text, or a comment or script between such tags.
    Break(Tag<'a>),
    /// The start of an inline element.
    Open { name: String, tag: Tag<'a> },
    /// Its end.
    Close { name: String, raw: &'a str },
    /// Inline content without text: an image, a comment.
    Point(Tag<'a>),
    /// A whole inline element whose text is not translated.
    Opaque { raw: &'a str, text: &'a str },
}

/// A tag, or a whole element that begins with one, as written in the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub(super) raw: &'a str,
    /// The attributes to translate.
    pub(super) attributes: Vec<Attribute>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    /// Its byte range in the tag, without quotation marks.
    pub(super) range: Range<usize>,
    /// The quotation mark around it, if any.
    pub(super) quote: Option<char>,
}

/// Inline elements.
pub(crate) const INLINE: [&str; 36] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "math", "q", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "svg", "time", "tt", "u", "var", "wbr",
];
/// Inline elements that have no content.
const EMPTY: [&str; 2] = ["img", "wbr"];
/// Elements whose text is shown but not translated.
pub(crate) const OPAQUE: [&str; 4] = ["code", "kbd", "samp", "var"];
/// Elements whose content is not text, or not translated.
pub(crate) const HIDDEN: [&str; 10] =
    ["script", "style", "svg", "math", "template", "textarea", "pre", "xmp", "iframe", "noembed"];
/// Attributes whose values are visible to users.
pub(crate) const TRANSLATED: [&str; 4] = ["title", "alt", "placeholder", "aria-label"];

/// Elements that split the text of a message. All other elements in a message can be inline.
const BLOCKS: [&str; 22] = [
    "p",
    "div",
    "br",
    "hr",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "tr",
    "td",
    "th",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "pre",
];

/// Whether the tags of a plain line are markup: there is at least one, and each has its counterpart
/// in the line, closes itself, or is an HTML tag. Otherwise they may be names, as in
/// `cp <source> <target>`.
pub(crate) fn is_marked_up(line: &str) -> bool {
    if !line.contains('<') || !line.contains('>') {
        return false;
    }
    let is_known = |name: &str| INLINE.contains(&name) || BLOCKS.contains(&name);
    let items = items(line);
    // The number of open elements by name.
    let mut open: HashMap<&str, usize> = HashMap::new();
    for item in &items {
        match &item.kind {
            ItemKind::Start { name, .. } if HIDDEN.contains(&name.as_str()) => return false,
            ItemKind::Start { closed: true, .. } => {}
            ItemKind::Start { name, .. } if is_known(name) => {}
            ItemKind::Start { name, .. } => *open.entry(name).or_default() += 1,
            ItemKind::End { name } if is_known(name) => {}
            ItemKind::End { name } => match open.get_mut(name.as_str()) {
                Some(count) if *count > 0 => *count -= 1,
                _ => return false,
            },
            ItemKind::Comment | ItemKind::Other => return false,
        }
    }
    !items.is_empty() && open.values().all(|count| *count == 0)
}

fn is_inline(name: &str, kind: Kind) -> bool {
    INLINE.contains(&name) || (kind == Kind::Message && !BLOCKS.contains(&name) && !HIDDEN.contains(&name))
}

/// The tokens of a text.
pub(super) fn tokens(html: &str, kind: Kind) -> Vec<Token<'_>> {
    let items = if html.contains('<') { items(html) } else { Vec::new() };
    let mut found = Vec::new();
    let (mut at, mut next) = (0, 0);
    while let Some(item) = items.get(next) {
        if at < item.range.start {
            found.push(Token::Text(&html[at..item.range.start]));
        }
        let (token, last) = token(html, kind, &items, next);
        found.push(token);
        (at, next) = (items.get(last).map_or(html.len(), |item| item.range.end), last + 1);
    }
    if at < html.len() {
        found.push(Token::Text(&html[at..]));
    }
    found
}

/// The name of an attribute, and the byte range of its value.
type AttributeSpan = (String, Range<usize>);

/// A tag, comment or declaration, as reported by the tokenizer.
struct Item {
    range: Range<usize>,
    kind: ItemKind,
}

enum ItemKind {
    Start {
        name: String,
        closed: bool,
        attributes: Vec<AttributeSpan>,
    },
    End {
        name: String,
    },
    Comment,
    /// A declaration, or markup that a browser treats as a comment.
    Other,
}

/// All items that are not text, in order.
fn items(html: &str) -> Vec<Item> {
    let mut found: Vec<Item> = Vec::new();
    // The tag that has been opened, and its attributes.
    let mut open: Option<(String, usize, Vec<AttributeSpan>)> = None;
    let mut tokenizer = Tokenizer::new_with_emitter(html, CallbackEmitter::new(event));
    while let Some(Ok(event)) = tokenizer.next() {
        let (range, kind) = match event {
            Event::Open(name, start) => {
                open = Some((name, start, Vec::new()));
                continue;
            }
            Event::Name(name) => {
                if let Some((_, _, attributes)) = &mut open {
                    attributes.push((name, 0..0));
                }
                continue;
            }
            Event::Value(range) => {
                if let Some((_, _, attributes)) = &mut open
                    && let Some(last) = attributes.last_mut()
                {
                    last.1 = range;
                }
                continue;
            }
            Event::Shut(closed, end) => {
                let Some((name, start, attributes)) = open.take() else { continue };
                // The content of these elements is not markup; `<script/>` in XHTML has no content.
                let state = match name.as_str() {
                    "title" | "textarea" => Some(State::RcData),
                    "script" => Some(State::ScriptData),
                    "style" | "xmp" | "iframe" | "noembed" => Some(State::RawText),
                    _ => None,
                };
                if let Some(state) = state.filter(|_| !closed) {
                    tokenizer.set_state(state);
                }
                (start..end, ItemKind::Start { name, closed, attributes })
            }
            Event::End(name, range) => (range, ItemKind::End { name }),
            Event::Comment(range) => {
                let raw = &html[range.clone()];
                let comment = raw.starts_with("<!--") && is_closed(raw);
                (range, if comment { ItemKind::Comment } else { ItemKind::Other })
            }
            Event::Other(range) => (range, ItemKind::Other),
        };
        open = None;
        found.push(Item { range, kind });
    }
    found
}

/// Whether a comment is terminated.
fn is_closed(comment: &str) -> bool {
    comment.ends_with("-->") || comment.ends_with("--!>") || comment == "<!-->"
}

/// An event of the tokenizer.
enum Event {
    Open(String, usize),
    Name(String),
    Value(Range<usize>),
    Shut(bool, usize),
    End(String, Range<usize>),
    Comment(Range<usize>),
    Other(Range<usize>),
}

fn event(event: CallbackEvent<'_>, span: Span<usize>) -> Option<Event> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let range = span.start..span.end;
    Some(match event {
        CallbackEvent::OpenStartTag { name } => Event::Open(text(name), span.start),
        CallbackEvent::AttributeName { name } => Event::Name(text(name)),
        CallbackEvent::AttributeValue { .. } => Event::Value(range),
        CallbackEvent::CloseStartTag { self_closing } => Event::Shut(self_closing, span.end),
        CallbackEvent::EndTag { name } => Event::End(text(name), range),
        CallbackEvent::Comment { .. } => Event::Comment(range),
        CallbackEvent::Doctype { .. } => Event::Other(range),
        CallbackEvent::String { .. } | CallbackEvent::Error(_) => return None,
    })
}

/// The token that begins with an item, and the index of the last item that belongs to it.
fn token<'a>(html: &'a str, kind: Kind, items: &[Item], first: usize) -> (Token<'a>, usize) {
    let item = &items[first];
    let raw = &html[item.range.clone()];
    let plain = Tag { raw, attributes: Vec::new() };
    let (name, closed, attributes) = match &item.kind {
        ItemKind::Comment => return (Token::Point(plain), first),
        // `</0>` closes `<0>`, which no browser recognises as a tag.
        ItemKind::Other if kind == Kind::Message && numbered_end(raw).is_some() => {
            return (Token::Close { name: numbered_end(raw).unwrap_or_default().to_owned(), raw }, first);
        }
        ItemKind::Other => return (Token::Break(plain), first),
        ItemKind::End { name } if is_inline(name, kind) => {
            return (Token::Close { name: name.clone(), raw }, first);
        }
        ItemKind::End { .. } => return (Token::Break(plain), first),
        ItemKind::Start { name, closed, attributes } => (name, *closed, attributes),
    };
    let inline = is_inline(name, kind);
    let marked = is_marked(html, attributes);
    let tag = |raw: &'a str| Tag {
        raw,
        attributes: match marked {
            true => Vec::new(),
            false => translated(html, item.range.start, attributes),
        },
    };
    let single = |tag: Tag<'a>| if inline { Token::Point(tag) } else { Token::Break(tag) };
    if closed || EMPTY.contains(&name.as_str()) {
        return (single(tag(raw)), first);
    }
    let untouched = OPAQUE.contains(&name.as_str()) || marked;
    if untouched || HIDDEN.contains(&name.as_str()) {
        let last = element_end(items, first, name);
        let end = last.map_or(html.len(), |last| items[last].range.end);
        let raw = &html[item.range.start..end];
        let token = match last.filter(|_| inline) {
            Some(last) if untouched => {
                Token::Opaque { raw, text: &html[item.range.end..items[last].range.start] }
            }
            Some(_) => Token::Point(tag(raw)),
            None => Token::Break(tag(raw)),
        };
        return (token, last.unwrap_or(items.len()));
    }
    let tag = tag(raw);
    (if inline { Token::Open { name: name.clone(), tag } } else { Token::Break(tag) }, first)
}

/// Whether a text is a single inline element whose text is not translated.
pub(super) fn is_untouched(element: &str) -> bool {
    matches!(tokens(element, Kind::Page).as_slice(), [Token::Opaque { .. }])
}

/// The number of `</0>`.
fn numbered_end(raw: &str) -> Option<&str> {
    let number = raw.strip_prefix("</")?.strip_suffix('>')?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
}

/// Whether a tag marks its content as not translatable.
fn is_marked(html: &str, attributes: &[AttributeSpan]) -> bool {
    attributes.iter().any(|(name, range)| {
        let value = &html[range.clone()];
        match name.as_str() {
            "translate" => value.trim().eq_ignore_ascii_case("no"),
            "class" => value.split_ascii_whitespace().any(|class| class.eq_ignore_ascii_case("notranslate")),
            _ => false,
        }
    })
}

/// The translatable attributes of a tag that begins at `start`.
fn translated(html: &str, start: usize, attributes: &[AttributeSpan]) -> Vec<Attribute> {
    let read =
        attributes.iter().filter(|(name, range)| !range.is_empty() && TRANSLATED.contains(&name.as_str()));
    read.map(|(_, range)| Attribute {
        range: range.start - start..range.end - start,
        quote: html[..range.start].chars().next_back().filter(|c| matches!(c, '"' | '\'')),
    })
    .collect()
}

/// The index of the end tag of the element that begins with item `first`. Elements with the same
/// name may be nested in it.
fn element_end(items: &[Item], first: usize, name: &str) -> Option<usize> {
    let mut depth = 1;
    for (number, item) in items.iter().enumerate().skip(first + 1) {
        match &item.kind {
            ItemKind::Start { name: other, closed: false, .. } if other == name => depth += 1,
            ItemKind::End { name: other } if other == name => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(number);
        }
    }
    None
}
