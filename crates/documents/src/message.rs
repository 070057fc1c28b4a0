//! A program message: text with placeholders, possibly with tags, possibly in ICU message format.
//!
//! Each line is translated separately. Placeholders are kept, tags move with their words, and the
//! texts inside `{count, plural, one {# file} other {# files}}` are translated.

use crate::document::{Document, Piece, keep};
use crate::html::{self, EntityPlaceholders};
use crate::protect::is_private_use;
use crate::segment::{Escaping, Segment};
use htmlize::Context;
use regex::Regex;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

/// The maximum nesting depth of ICU arguments; deeper ones are kept untranslated.
const DEPTH: usize = 6;

/// Placeholders that do not occur in plain text: `%{name}`, `%<n>d`, `%1`, `%L1`, `%n`, `%%`,
/// `$t(key)`, `@:key`, `$NAME$`, `<0>`, and conversions that `protect` does not recognise: `%'d`,
/// `%*d`, `%hd`.
const PLACEHOLDERS: [&str; 11] = [
    r"%\{[^{}\n ]{1,40}\}",
    r"%<[0-9A-Za-z_.]{1,40}>[-+#0-9.]{0,9}[a-zA-Z]",
    r"%\([0-9A-Za-z_.]{1,40}\)[-+#0-9.]{0,9}[a-zA-Z]",
    r"%(?:[0-9]{1,3}\$)?[-+#0']{0,3}(?:[0-9]{1,3}|\*)?(?:\.(?:[0-9]{1,3}|\*))?(?:hh|h|ll|l|q|j|z|t|L)?(?:[diouxXeEfFgGcsp](?-u:\b)|@)",
    r"%L?[0-9]{1,2}(?-u:\b)",
    r"%n(?-u:\b)",
    r"%%",
    r"\$t\([^()\n]{1,60}\)",
    r"@:(?:\{[0-9A-Za-z_.']{1,40}\}|\([0-9A-Za-z_.]{1,40}\)|[0-9A-Za-z_.]{1,40})",
    r"\$[A-Z][A-Z0-9_]{0,40}\$",
    r"</?[0-9]{1,3}/?>",
];

static PLACEHOLDER_HERE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!("^(?:{})", PLACEHOLDERS.join("|"))).expect("the patterns above are valid")
});

/// The start of an ICU argument that contains texts.
static ARGUMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\{[ \t\r\n]*[0-9A-Za-z_.]{1,40}[ \t\r\n]*,[ \t\r\n]*(?:plural|selectordinal|select)[ \t\r\n]*,",
    )
    .expect("a valid pattern")
});

/// The sorted placeholders of a message, so that two messages have the same ones if the lists are
/// equal.
pub(crate) fn placeholders(text: &str) -> Vec<&str> {
    static ALL: LazyLock<Regex> = LazyLock::new(|| {
        let braces = r"\{\{[^{}\n]{0,80}\}\}|\$?\{[^{}\n]{0,80}\}";
        Regex::new(&format!("{}|{braces}", PLACEHOLDERS.join("|"))).expect("the patterns above are valid")
    });
    let mut found: Vec<&str> = ALL.find_iter(text).map(|found| found.as_str()).collect();
    found.sort_unstable();
    found
}

/// Parses a message.
pub(crate) fn document(text: &str, language: Option<&str>) -> Document {
    let mut document = Document::in_language(language);
    add(text, &mut document);
    document
}

/// Adds a message to a document.
pub(crate) fn add(text: &str, document: &mut Document) {
    let mut message = Message {
        entities: EntityPlaceholders::new(text),
        reserved: text.chars().filter(|c| is_private_use(*c)).collect(),
        arguments: HashMap::new(),
        plural: false,
        depth: 0,
    };
    let pieces = message.pieces(text, document);
    document.add(pieces);
}

struct Message {
    entities: EntityPlaceholders,
    /// Private-use characters that occur in the text.
    reserved: HashSet<char>,
    /// The ICU arguments of a line, by the private-use character that replaces each while tags are
    /// parsed.
    arguments: HashMap<char, (Vec<Piece>, String)>,
    /// Whether `#` stands for a number.
    plural: bool,
    depth: usize,
}

impl Message {
    /// The pieces of a text, line by line.
    fn pieces(&mut self, text: &str, document: &mut Document) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for line in lines(text) {
            let content = line.trim_end_matches(['\r', '\n']);
            let found = if self.depth < DEPTH { arguments(content) } else { Vec::new() };
            let sentences = document.sentences.len();
            let masked = self.mask(content, &found, document);
            let mut own = html::pieces(&masked, html::Kind::Message, document, self);
            if !self.arguments.is_empty() {
                // An argument is in a place that is not translated.
                self.arguments.clear();
                document.sentences.truncate(sentences);
                own = html::pieces(content, html::Kind::Message, document, self);
            }
            pieces.extend(own);
            keep(&mut pieces, &line[content.len()..]);
        }
        pieces
    }

    /// Replaces each argument with a private-use character.
    fn mask<'a>(&mut self, text: &'a str, found: &[Argument], document: &mut Document) -> Cow<'a, str> {
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masks = ('\u{100000}'..='\u{10fffd}').rev();
        let (mut out, mut at, mut own) = (String::new(), 0, HashMap::new());
        for argument in found {
            let Some(mask) = masks.find(|c| !self.reserved.contains(c)) else { break };
            let pieces = self.argument(text, argument, document);
            let name = text[argument.range.start + 1..].split(',').next().unwrap_or_default().trim();
            own.insert(mask, (pieces, format!("{{{name}}}")));
            out.push_str(&text[at..argument.range.start]);
            out.push(mask);
            at = argument.range.end;
        }
        self.arguments = own;
        out.push_str(&text[at..]);
        Cow::Owned(out)
    }

    /// Adds text, which may contain placeholders and arguments, to a segment.
    fn add(&mut self, text: &str, segment: &mut Segment) {
        let mut at = 0;
        if !self.arguments.is_empty() {
            for (place, c) in text.char_indices() {
                if let Some((pieces, shown)) = self.arguments.remove(&c) {
                    self.add_placeholders(&text[at..place], segment);
                    segment.opaque(pieces, &shown);
                    at = place + c.len_utf8();
                }
            }
        }
        self.add_placeholders(&text[at..], segment);
    }

    fn add_placeholders(&mut self, text: &str, segment: &mut Segment) {
        let mut at = 0;
        for range in special(text, self.plural) {
            self.add_plain(&text[at..range.start], segment);
            let raw = &text[range.clone()];
            let kept = vec![Piece::Keep(raw.to_owned())];
            match raw.strip_prefix('<') {
                Some(name) if name.ends_with("/>") => segment.point(kept),
                Some(name) => segment.open(name.trim_end_matches('>'), kept),
                None => segment.opaque(kept, raw),
            }
            at = range.end;
        }
        self.add_plain(&text[at..], segment);
    }

    fn add_plain(&mut self, raw: &str, segment: &mut Segment) {
        // `Context::Attribute`, in which `a&copy=b` is not an entity, because many messages are not
        // HTML.
        segment.decoded(raw, |text, escaping| {
            html::decode(raw, Context::Attribute, text, &mut self.entities, (escaping, true));
        });
    }

    /// The pieces of an argument; its texts are messages.
    fn argument(&mut self, text: &str, argument: &Argument, document: &mut Document) -> Vec<Piece> {
        let kind = text[argument.range.clone()].split(',').nth(1).map(str::trim);
        let outer = (self.plural, std::mem::take(&mut self.arguments));
        self.plural |= kind != Some("select");
        self.depth += 1;
        let (mut pieces, mut at) = (Vec::new(), argument.range.start);
        for place in &argument.texts {
            keep(&mut pieces, &text[at..place.start]);
            pieces.extend(self.pieces(&text[place.clone()], document));
            at = place.end;
        }
        keep(&mut pieces, &text[at..argument.range.end]);
        self.depth -= 1;
        (self.plural, self.arguments) = outer;
        pieces
    }
}

impl html::AddText for Message {
    fn add_text(&mut self, raw: &str, segment: &mut Segment, _: &mut Document) {
        self.add(raw, segment);
    }

    fn entities(&mut self) -> &mut EntityPlaceholders {
        &mut self.entities
    }

    fn escaping(&self) -> Escaping {
        Escaping::default()
    }
}

/// The lines of a text with their line ends; ICU arguments are not split.
fn lines(text: &str) -> Vec<&str> {
    if !text.contains("plural") && !text.contains("select") {
        return text.split_inclusive('\n').collect();
    }
    let braces = Braces::new(text);
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(step) = text[at..].find(['\n', '{']) {
        at += step;
        if text[at..].starts_with('\n') {
            at += 1;
            found.push(&text[start..at]);
            start = at;
        } else {
            at = braces.close(at).filter(|_| ARGUMENT.is_match(&text[at..])).unwrap_or(at) + 1;
        }
    }
    if start < text.len() {
        found.push(&text[start..]);
    }
    found
}

/// The placeholders in a text that do not occur in plain text, in order.
pub(crate) fn special(text: &str, plural: bool) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(step) = text[at..].find(['%', '$', '@', '#', '<']) {
        at += step;
        let rest = &text[at..];
        let length = match plural && rest.starts_with('#') {
            true => Some(1),
            false => PLACEHOLDER_HERE.find(rest).map(|place| place.end()),
        };
        found.extend(length.map(|length| at..at + length));
        at += length.unwrap_or(1);
    }
    found
}

/// An ICU argument that contains texts.
struct Argument {
    range: Range<usize>,
    texts: Vec<Range<usize>>,
}

/// The outermost arguments of a text that contain texts.
fn arguments(text: &str) -> Vec<Argument> {
    let mut found = Vec::new();
    if !text.contains("plural") && !text.contains("select") {
        return found;
    }
    let (braces, mut at) = (Braces::new(text), 0);
    while let Some(step) = text[at..].find('{') {
        at += step;
        let argument = argument(text, at, &braces);
        at = argument.as_ref().map_or(at + 1, |argument| argument.range.end);
        found.extend(argument);
    }
    found
}

/// The ICU argument at `start`, if there is one.
fn argument(text: &str, start: usize, braces: &Braces) -> Option<Argument> {
    let head = ARGUMENT.find(&text[start..])?;
    let end = braces.close(start)?;
    let (mut texts, mut at) = (Vec::new(), start + head.end());
    loop {
        let open = at + text.get(at..end)?.find('{')?;
        let selector = text[at..open].split_whitespace().next_back()?;
        if selector.contains(['}', ',']) {
            return None;
        }
        let close = braces.close(open).filter(|close| *close < end)?;
        texts.push(open + 1..close);
        at = close + 1;
        if text[at..end].trim().is_empty() {
            return Some(Argument { range: start..end + 1, texts });
        }
    }
}

/// Pairs of matching braces.
struct Braces(Vec<(usize, usize)>);

impl Braces {
    fn new(text: &str) -> Self {
        let (mut pairs, mut open) = (Vec::new(), Vec::new());
        let mut characters = text.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            match c {
                // Quoted braces are literal characters.
                '\'' if characters.peek().is_some_and(|(_, c)| matches!(c, '{' | '}')) => {
                    let end = text[at + 1..].find('\'').map_or(text.len(), |length| at + 1 + length);
                    while characters.next_if(|(at, _)| *at <= end).is_some() {}
                }
                '{' => open.push(at),
                '}' => pairs.extend(open.pop().map(|open| (open, at))),
                _ => {}
            }
        }
        pairs.sort_unstable();
        Braces(pairs)
    }

    fn close(&self, open: usize) -> Option<usize> {
        let at = self.0.binary_search_by_key(&open, |(open, _)| *open).ok()?;
        Some(self.0[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Translation, Word};

    /// The message in capitals, without any placeholder.
    fn capitals(text: &str) -> String {
        let document = document(text, None);
        let translate = |sentence: &crate::Sentence| {
            let words = sentence.text.split_whitespace().enumerate();
            let words = words.filter(|(_, word)| !word.contains(['%', '{', '}', '$', '@', '#']));
            let words = words.map(|(i, word)| Word::new(word.to_uppercase(), Some(i)));
            let mut translation = Translation(words.collect());
            sentence.restore(&mut translation);
            translation
        };
        let translations: Vec<Translation> = document.sentences.iter().map(translate).collect();
        let same: Vec<Translation> = document.sentences.iter().map(|s| Translation::same(&s.text)).collect();
        assert_eq!(document.render(text, &same).text, text);
        assert_eq!(document.render_normalised(text, &same).text, text);
        document.render(text, &translations).text
    }

    #[test]
    fn placeholders_come_through() {
        for (text, wanted) in [
            ("open %{name} now", "OPEN %{name} NOW"),
            ("%1 of %L2 files", "%1 OF %L2 FILES"),
            ("see $t(common.help) or @:menu.help", "SEE $t(common.help) OR @:menu.help"),
            ("%d done", "%d DONE"),
            ("hello $NAME$ you", "HELLO $NAME$ YOU"),
            ("one\ntwo\r\n\nthree %s", "ONE\nTWO\r\n\nTHREE %s"),
            ("read <0>the rules</0> of <name/> now", "READ <0>THE RULES</0> OF <name/> NOW"),
            ("of <name/>", "OF <name/>"),
            ("see <i>page %d of <a/></i>", "SEE <i>PAGE %d OF <a/></i>"),
            ("of <a/> <b/> ", "OF <a/> <b/> "),
            ("go <b></b>", "GO <b></b>"),
            ("a <b>bold</b> &amp; word<br>more", "A <b>BOLD</b> &amp; WORD<br>MORE"),
            ("<p>one</p><p>two</p>", "<p>ONE</p><p>TWO</p>"),
            ("fish & chips", "FISH & CHIPS"),
        ] {
            assert_eq!(capitals(text), wanted);
        }
    }

    #[test]
    fn the_texts_of_icu_arguments_are_translated() {
        for (text, wanted) in [
            (
                "You have {count, plural, =0 {no mail} one {# letter} other {# letters}} today",
                "YOU HAVE {count, plural, =0 {NO MAIL} one {# LETTER} other {# LETTERS}} TODAY",
            ),
            (
                "{sex, select,\n  male {he said}\n  other {{n, plural, one {# cat} other {# cats}} ran}\n}",
                "{sex, select,\n  male {HE SAID}\n  other {{n, plural, one {# CAT} other {# CATS}} RAN}\n}",
            ),
            (
                "{n, plural, one {<b>#</b> cat} other {<b>#</b> cats}} & <i>more</i>",
                "{n, plural, one {<b>#</b> CAT} other {<b>#</b> CATS}} & <i>MORE</i>",
            ),
            ("{n, plural, one {broken", "{n, plural, one {broken"),
        ] {
            if text.ends_with("broken") {
                capitals(text);
            } else {
                assert_eq!(capitals(text), wanted);
            }
        }
    }

    #[test]
    fn placeholders_are_compared() {
        assert_eq!(placeholders("%s and {0} 100%"), placeholders("{0} und %s 100%"));
        assert_ne!(placeholders("%s and %d"), placeholders("%d"));
        assert_eq!(placeholders("%(name)s %1$d ${x} {{y}} 50% dogs"), ["${x}", "%(name)s", "%1$d", "{{y}}"]);
    }
}
