//! Finds the parts of a text that must survive translation unchanged: URLs, email addresses,
//! placeholders, numbers, emoji.
//!
//! A sentence that consists of such spans only is not translated. In other sentences the model sees
//! the spans in place, and [`restore`](crate::restore) puts back those that it lost or changed.
//!
//! The text is scanned once, from left to right. Failed lookaheads (a `<` without its `>`, a run of
//! letters without an `@`) examine each character a bounded number of times, so the scan takes
//! linear time.

use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Emoji with their joiners, flags and skin tones.
const EMOJI: &str = r"(?:[\p{Extended_Pictographic}\x{1F1E6}-\x{1F1FF}][\x{FE0F}\x{200D}\x{20E3}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*)+";

static EMOJI_HERE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("^{EMOJI}")).expect("the pattern above is valid"));
static EMOJI_AT_START: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"^(?:{EMOJI}|\s)+")).expect("the pattern above is valid"));
static EMOJI_AT_END: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?:{EMOJI}|\s)+$")).expect("the pattern above is valid"));

/// The protected spans of a text as sorted byte ranges.
pub(crate) fn protected(text: &str) -> Vec<Range<usize>> {
    let letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let mut emails = Emails { text, run_end: 0, address_end: None };
    let mut found = Vec::new();
    let mut before = None;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let Some(end) = span_end(text, at, c, &mut emails) else {
            (before, at) = (Some(c), at + c.len_utf8());
            continue;
        };
        // A number that is part of a word (3rd, MP3) is left to the model.
        let part_of_word = c.is_ascii_digit() && (letter(before) || letter(text[end..].chars().next()));
        if !part_of_word {
            found.push(at..end);
        }
        (before, at) = (text[..end].chars().next_back(), end);
    }
    found
}

/// The end of the protected span that begins at `at` with the character `c`, if there is one.
fn span_end(text: &str, at: usize, c: char, emails: &mut Emails<'_>) -> Option<usize> {
    let rest = &text[at..];
    let here = |length: Option<usize>| length.map(|length| at + length);
    match c {
        'h' | 'H' | 'f' | 'F' | 'w' | 'W' => here(web_address(rest)).or_else(|| emails.end_at(at)),
        '<' => here(tag(rest)),
        '{' => here(braces(rest)),
        '$' => here(rest.strip_prefix('$').and_then(single_braces).map(|length| 1 + length)),
        '%' => here(named_conversion(rest).or_else(|| conversion(rest))),
        _ if is_private_use(c) => Some(at + c.len_utf8()),
        _ => {
            let email = if in_local_part(c) { emails.end_at(at) } else { None };
            email.or_else(|| here(number(rest))).or_else(|| here(emoji(rest, c)))
        }
    }
}

/// An ASCII word character, as `\w` in regular expressions.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || c == '_'
        || (!c.is_ascii()
            && (c.is_alphabetic()
                || matches!(c, '\u{200c}' | '\u{200d}')
                || c.general_category_group() == GeneralCategoryGroup::Mark
                || matches!(
                    c.general_category(),
                    GeneralCategory::DecimalNumber | GeneralCategory::ConnectorPunctuation
                )))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.general_category() == GeneralCategory::DecimalNumber)
}

/// Whether a character is in a private-use area. In HTML such characters stand for unknown
/// entities.
pub(crate) fn is_private_use(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

/// The length of the longest prefix whose characters are all of a kind.
fn run(text: &str, of_kind: impl Fn(char) -> bool) -> usize {
    text.find(|c| !of_kind(c)).unwrap_or(text.len())
}

/// `https://…`, `ftp://…` or `www.…`, without trailing punctuation.
fn web_address(text: &str) -> Option<usize> {
    let begins = |prefix: &&&str| text.get(..prefix.len()).is_some_and(|t| t.eq_ignore_ascii_case(prefix));
    let prefix = ["https://", "http://", "ftp://", "www."].iter().find(begins)?.len();
    let end = prefix + run(&text[prefix..], |c| !c.is_whitespace() && !matches!(c, '<' | '>' | '"'));
    let end = text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'', '’', '”', '»']).len();
    (end > prefix).then_some(end)
}

/// Finds email addresses. The local part may begin anywhere in a run of letters, so each run is
/// examined once, and the result is reused for all positions in it.
struct Emails<'a> {
    text: &'a str,
    /// The end of the last run that was examined.
    run_end: usize,
    /// The end of the address that follows that run.
    address_end: Option<usize>,
}

fn in_local_part(c: char) -> bool {
    matches!(c, '.' | '+' | '-') || is_word(c)
}

impl Emails<'_> {
    /// The end of the address that begins at `at`, where there must be a character of a local part.
    fn end_at(&mut self, at: usize) -> Option<usize> {
        if at >= self.run_end {
            self.run_end = at + run(&self.text[at..], in_local_part);
            let domain = self.text[self.run_end..].strip_prefix('@').and_then(domain);
            self.address_end = domain.map(|length| self.run_end + 1 + length);
        }
        self.address_end
    }
}

/// A domain: at least two labels separated by dots.
fn domain(text: &str) -> Option<usize> {
    let (mut labels, mut end, mut at) = (0, 0, 0);
    loop {
        let length = run(&text[at..], |c| c == '-' || is_word(c));
        if length == 0 {
            break;
        }
        (labels, end) = (labels + 1, at + length);
        if !text[end..].starts_with('.') {
            break;
        }
        at = end + 1;
    }
    (labels > 1).then_some(end)
}

/// `<b>`, `</b>`, `<x id=1/>`
fn tag(text: &str) -> Option<usize> {
    let name = text.strip_prefix("</").or_else(|| text.strip_prefix('<'))?;
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let end = 1 + text[1..].find(['<', '>'])?;
    text[end..].starts_with('>').then_some(end + 1)
}

/// `{{name}}` or `{name}`
fn braces(text: &str) -> Option<usize> {
    let double = text.strip_prefix("{{").and_then(|inner| {
        let length = inner.find(['{', '}', '\n'])?;
        inner[length..].starts_with("}}").then_some(length + 4)
    });
    double.or_else(|| single_braces(text))
}

/// The maximum number of characters inside `{…}`.
const LONGEST_NAME: usize = 80;

fn single_braces(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('{')?;
    let (length, c) =
        inner.char_indices().take(LONGEST_NAME + 1).find(|(_, c)| matches!(c, '{' | '}' | '\n'))?;
    (c == '}').then_some(length + 2)
}

/// Whether the text continues with a word character.
fn goes_on(text: &str) -> bool {
    text.starts_with(is_word)
}

/// `%(name)s`
fn named_conversion(text: &str) -> Option<usize> {
    let name = text.strip_prefix("%(")?;
    let length = run(name, is_word);
    let letter = name[length..].strip_prefix(')')?;
    let whole = length > 0 && letter.starts_with(|c: char| c.is_ascii_alphabetic()) && !goes_on(&letter[1..]);
    whole.then_some(length + 4)
}

/// `%s`, `%1$d`, `%-08.3lf`, `%@`
fn conversion(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('%')?;
    let digits = run(rest, is_digit);
    if let Some(after) = rest[digits..].strip_prefix('$').filter(|_| digits > 0) {
        rest = after;
    }
    rest = rest.trim_start_matches(['-', '+', '#', '0']).trim_start_matches(is_digit);
    if let Some(fraction) = rest.strip_prefix('.').filter(|fraction| fraction.starts_with(is_digit)) {
        rest = fraction.trim_start_matches(is_digit);
    }
    for _ in 0..2 {
        rest = rest.strip_prefix('l').unwrap_or(rest);
    }
    let letter = rest.strip_prefix(['s', 'd', 'i', 'u', 'f', 'x', 'X', 'c', 'g', 'e', 'E']);
    let after = letter.filter(|after| !goes_on(after)).or_else(|| rest.strip_prefix('@'))?;
    Some(text.len() - after.len())
}

/// `12`, `1,000.5`, `12:30`
fn number(text: &str) -> Option<usize> {
    let mut end = run(text, is_digit);
    if end == 0 {
        return None;
    }
    while let Some(more) = text[end..].strip_prefix(['.', ',', ':', '/', '\'', '’', '\u{a0}', '\u{202f}']) {
        let digits = run(more, is_digit);
        if digits == 0 {
            break;
        }
        end = text.len() - more.len() + digits;
    }
    Some(end)
}

fn emoji(text: &str, first: char) -> Option<usize> {
    // Emoji lie in these ranges, so most text needs no pattern match.
    let possible = matches!(first, '©' | '®' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1fffd}');
    possible.then(|| EMOJI_HERE.find(text)).flatten().map(|found| found.end())
}

/// The ranges of `ranges`, which are sorted, that lie inside `outer`, relative to its start.
pub(crate) fn within(ranges: &[Range<usize>], outer: &Range<usize>) -> Vec<Range<usize>> {
    let first = ranges.partition_point(|range| range.start < outer.start);
    let inside = ranges[first..].iter().take_while(|range| range.start < outer.end && range.end <= outer.end);
    inside.map(|range| range.start - outer.start..range.end - outer.start).collect()
}

/// Whether a text contains anything to translate besides its protected spans.
pub(crate) fn is_translatable(text: &str, protected: &[Range<usize>]) -> bool {
    let mut at = 0;
    for range in protected {
        if text[at..range.start].contains(char::is_alphabetic) {
            return true;
        }
        at = range.end;
    }
    text[at..].contains(char::is_alphabetic)
}

/// The range without leading and trailing emoji and spaces: they keep their place, whatever the
/// model would do with them.
pub(crate) fn without_outer_emoji(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = EMOJI_AT_START.find(inside).map_or(0, |found| found.end());
    let end = EMOJI_AT_END.find(&inside[start..]).map_or(inside.len(), |found| start + found.start());
    range.start + start..range.start + end
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_core::random::Rng;

    fn spans(text: &str) -> Vec<&str> {
        protected(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn what_is_protected() {
        for (text, wanted) in [
            (
                "See https://a.example/b?c=1&d=2), or www.b.example.",
                vec!["https://a.example/b?c=1&d=2", "www.b.example"],
            ),
            ("Mail me@some.example!", vec!["me@some.example"]),
            (
                "Hi {name}, {{count}} of ${all} %s %1$d %(who)s %@",
                vec!["{name}", "{{count}}", "${all}", "%s", "%1$d", "%(who)s", "%@"],
            ),
            ("100% sure, 5 %", vec!["100", "5"]),
            ("Click <x id=1/> or <b>this</b> if a < b", vec!["<x id=1/>", "<b>", "</b>"]),
            ("3rd of MP3, 1,000.50 at 12:30", vec!["1,000.50", "12:30"]),
            ("Hi 👩🏽‍🚀🇩🇪 you ❤️", vec!["👩🏽‍🚀🇩🇪", "❤️"]),
            ("nothing here", vec![]),
        ] {
            assert_eq!(spans(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_worth_translating() {
        for text in ["", " ", "🙂", "12.5 %", "https://a.example/path", "{name}: %s", "— … !"] {
            assert!(!is_translatable(text, &protected(text)), "{text}");
        }
        for text in ["a", "12 dogs", "{name} runs", "日本"] {
            assert!(is_translatable(text, &protected(text)), "{text}");
        }
    }

    #[test]
    fn emoji_at_the_ends_stay_there() {
        let text = "🙂 Hello 👍 you! ❤️🙂";
        assert_eq!(&text[without_outer_emoji(text, 0..text.len())], "Hello 👍 you!");
        assert!(without_outer_emoji("🙂", 0..4).is_empty());
    }

    /// The patterns that the scanner implements, in the order in which they are tried at a
    /// position.
    static PATTERNS: LazyLock<Regex> = LazyLock::new(|| {
        let kinds = [
            r"(?i:https?|ftp)://[^\s<>\x{22}]*[^\s<>\x{22}.,;:!?)'’”»]",
            r"(?i:www)\.[^\s<>\x{22}]*[^\s<>\x{22}.,;:!?)'’”»]",
            r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            r"</?[A-Za-z][^<>]*>",
            r"\{\{[^{}\n]*\}\}",
            r"\$?\{[^{}\n]{0,80}\}",
            r"%\(\w+\)[a-zA-Z]\b",
            r"%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?l{0,2}(?:[sdiufxXcgeE]\b|@)",
            r"\d+(?:[.,:/'’\x{A0}\x{202F}]\d+)*",
            r"[\x{E000}-\x{F8FF}\x{F0000}-\x{FFFFD}\x{100000}-\x{10FFFD}]",
            EMOJI,
        ];
        Regex::new(&kinds.join("|")).unwrap()
    });

    fn by_patterns(text: &str) -> Vec<Range<usize>> {
        let letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
        let whole = |found: &regex::Match<'_>| {
            let number = found.as_str().starts_with(|c: char| c.is_ascii_digit());
            let before = text[..found.start()].chars().next_back();
            !(number && (letter(before) || letter(text[found.end()..].chars().next())))
        };
        PATTERNS.find_iter(text).filter(whole).map(|found| found.range()).collect()
    }

    #[test]
    fn the_scanner_finds_what_the_patterns_match() {
        const UNITS: [&str; 62] = [
            "a",
            "B",
            "é",
            "日",
            "1",
            "20",
            "٣",
            "𝟙",
            "²",
            "_",
            "-",
            "+",
            ".",
            ",",
            ":",
            "/",
            "'",
            "’",
            "@",
            "%",
            "%(",
            ")",
            "(",
            "s",
            "d",
            "ld",
            "f",
            "$",
            "{",
            "}",
            "{{",
            "}}",
            "<",
            "</",
            ">",
            "\"",
            "!",
            "?",
            ";",
            "»",
            " ",
            "\n",
            "\u{a0}",
            "\u{202f}",
            "http://",
            "HTTPS://",
            "ftp://",
            "www.",
            "WwW.",
            "🙂",
            "\u{200d}",
            "\u{fe0f}",
            "🇩",
            "©",
            "ℹ",
            "\u{301}",
            "\u{e000}",
            "\u{10fffd}",
            "#",
            "0",
            "x",
            "e\u{301}",
        ];
        let mut random = Rng::new(11);
        for _ in 0..30_000 {
            let text: String = (0..1 + random.below(14)).map(|_| UNITS[random.below(UNITS.len())]).collect();
            assert_eq!(protected(&text), by_patterns(&text), "{text:?}");
        }
    }
}
