//! Parses the entries of a po file.

use crate::files::encoding::at;
use crate::files::{FileError, Format};
use std::ops::Range;

/// A string, which may continue over several lines.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// From the first quotation mark to the last.
    pub(super) range: Range<usize>,
    pub(super) value: String,
    /// The column width of the keyword before it.
    pub(super) keyword: usize,
}

/// A message and its translations.
#[derive(Debug)]
pub(super) struct Entry {
    /// The byte offset of its first keyword.
    pub(super) start: usize,
    /// The byte offset after `#,` of its flags.
    pub(super) flags: Option<usize>,
    pub(super) is_fuzzy: bool,
    pub(super) id: Text,
    pub(super) plural: Option<Text>,
    pub(super) translations: Vec<Text>,
}

impl Entry {
    pub(super) fn is_plural(&self) -> bool {
        self.plural.is_some()
    }
}

/// An entry that is being parsed.
#[derive(Default)]
struct PartialEntry {
    start: Option<usize>,
    flags: Option<usize>,
    is_fuzzy: bool,
    /// A context or a domain, which is kept.
    other: Option<Text>,
    id: Option<Text>,
    plural: Option<Text>,
    translations: Vec<Text>,
}

impl PartialEntry {
    fn end(&mut self, entries: &mut Vec<Entry>) -> Result<(), String> {
        let PartialEntry { start, flags, is_fuzzy, id, plural, translations, .. } = std::mem::take(self);
        match (start, id) {
            (Some(start), Some(id)) if !translations.is_empty() => {
                entries.push(Entry { start, flags, is_fuzzy, id, plural, translations });
                Ok(())
            }
            (Some(_), Some(_)) => Err("`msgid` has no `msgstr`".to_owned()),
            (Some(_), None) => Err("`msgid` is missing".to_owned()),
            (None, _) => Ok(()),
        }
    }
}

/// The entries of a file that are not obsolete.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, FileError> {
    let (mut entries, mut begun) = (Vec::new(), PartialEntry::default());
    let (mut open, mut start) = (Open::Nothing, 0);
    for line in text.split_inclusive('\n') {
        let problem = |problem: String| at(Format::Po, text, start, problem);
        let content = line.trim();
        let offset = start + line.len() - line.trim_start().len();
        if content.starts_with('#') || content.is_empty() {
            // Comments precede an entry, so one after a translation belongs to the next entry.
            if !begun.translations.is_empty() {
                begun.end(&mut entries).map_err(problem)?;
            }
            // Flags before an obsolete entry do not apply to the next one.
            if content.starts_with("#~") && begun.start.is_none() {
                begun = PartialEntry::default();
            }
            if let Some(flags) = content.strip_prefix("#,") {
                begun.flags = Some(offset + 2);
                begun.is_fuzzy |= flags.split(',').any(|flag| flag.trim() == "fuzzy");
            }
            open = Open::Nothing;
        } else if content.starts_with('"') {
            open.text(&mut begun).map_err(problem)?.extend(content, offset).map_err(problem)?;
        } else {
            let length = content.find([' ', '\t', '"']).unwrap_or(content.len());
            let (keyword, rest) = content.split_at(length);
            if matches!(keyword, "msgid" | "msgctxt") && !begun.translations.is_empty() {
                begun.end(&mut entries).map_err(problem)?;
            }
            let place = offset + content.len() - rest.trim_start().len();
            let mut string = Text { range: place..place, value: String::new(), keyword: place - offset };
            string.extend(rest.trim_start(), place).map_err(problem)?;
            begun.start.get_or_insert(offset);
            open = begin(keyword, string, &mut begun).map_err(problem)?;
        }
        start += line.len();
    }
    begun.end(&mut entries).map_err(|problem| at(Format::Po, text, text.len().saturating_sub(1), problem))?;
    Ok(entries)
}

/// The string that a line in quotation marks continues.
enum Open {
    Nothing,
    Other,
    Id,
    Plural,
    Translation,
}

impl Open {
    fn text<'a>(&self, begun: &'a mut PartialEntry) -> Result<&'a mut Text, String> {
        let text = match self {
            Open::Nothing => None,
            Open::Other => begun.other.as_mut(),
            Open::Id => begun.id.as_mut(),
            Open::Plural => begun.plural.as_mut(),
            Open::Translation => begun.translations.last_mut(),
        };
        text.ok_or_else(|| "a string stands here without `msgid` or `msgstr` before it".to_owned())
    }
}

/// Starts a string after its keyword.
fn begin(keyword: &str, string: Text, begun: &mut PartialEntry) -> Result<Open, String> {
    let index = keyword.strip_prefix("msgstr[").and_then(|rest| rest.strip_suffix(']'));
    match keyword {
        "msgctxt" | "domain" => {
            begun.other = Some(string);
            return Ok(Open::Other);
        }
        "msgid" if begun.id.is_some() => return Err("a second `msgid` before `msgstr`".to_owned()),
        "msgid" => {
            begun.id = Some(string);
            return Ok(Open::Id);
        }
        _ if begun.id.is_none() => return Err(format!("`{keyword}` stands here without `msgid` before it")),
        "msgid_plural" => {
            begun.plural = Some(string);
            return Ok(Open::Plural);
        }
        "msgstr" if begun.translations.is_empty() => begun.translations.push(string),
        _ if index.and_then(|index| index.parse().ok()) == Some(begun.translations.len()) => {
            begun.translations.push(string);
        }
        "msgstr" => return Err("a second `msgstr` for one `msgid`".to_owned()),
        _ if index.is_some() => {
            let wanted = begun.translations.len();
            return Err(format!("`{keyword}` stands where `msgstr[{wanted}]` belongs"));
        }
        _ => return Err(format!("`{keyword}` is no keyword of po files")),
    }
    Ok(Open::Translation)
}

impl Text {
    /// Appends a part in quotation marks, which begins at `offset`.
    fn extend(&mut self, part: &str, offset: usize) -> Result<(), String> {
        let inner = part.strip_prefix('"').ok_or("a string in quotation marks is missing")?;
        let mut characters = inner.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' if at + 1 == inner.len() => {
                    self.range.end = offset + part.len();
                    return Ok(());
                }
                '"' => return Err("something follows the end of a string".to_owned()),
                '\\' => {
                    let Some((_, c)) = characters.next() else { break };
                    self.value.push(escaped(c, &mut characters)?);
                }
                c => self.value.push(c),
            }
        }
        Err("a string has no end on its line".to_owned())
    }
}

/// Decodes the escape of a backslash and `c`.
fn escaped(c: char, rest: &mut std::str::CharIndices<'_>) -> Result<char, String> {
    let number = |digits: &str, radix: u32| u8::from_str_radix(digits, radix).ok().map(char::from);
    let digits = |rest: &mut std::str::CharIndices<'_>, most: usize, radix: u32| {
        let text = rest.as_str();
        let count = text.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        rest.by_ref().take(count).for_each(|_| {});
        text[..count].to_owned()
    };
    let found = match c {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'v' => Some('\u{b}'),
        '\\' | '"' | '\'' | '?' => Some(c),
        'x' => number(&digits(rest, 2, 16), 16),
        '0'..='7' => number(&format!("{c}{}", digits(rest, 2, 8)), 8),
        _ => None,
    };
    found.ok_or_else(|| format!("`\\{c}` stands for no character"))
}

/// Escapes a text for use between quotation marks.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            c => out.push(c),
        }
    }
    out
}
