//! Reads messages and their translations from a gettext catalogue as parallel text.

use std::collections::VecDeque;

use super::Side;
use super::lines::{Line, Lines};
use super::readers::{PairReader, one_line, side};
use regard_core::{Error, Result};

/// Reads a catalogue line by line; an entry is complete when the next one begins.
pub(super) struct PoReader {
    lines: Lines,
    max_bytes: usize,
    entry: Entry,
    /// Pairs of complete entries.
    ready: VecDeque<(Side, Side, usize)>,
    ended: bool,
}

/// The entry being read.
#[derive(Default)]
struct Entry {
    /// The line of its `msgid`.
    line: usize,
    fuzzy: bool,
    id: Option<Text>,
    plural: Option<Text>,
    translations: Vec<Text>,
    /// The field that a line with only a string continues.
    current_field: CurrentField,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CurrentField {
    #[default]
    Nothing,
    /// A context or a domain.
    Other,
    Id,
    Plural,
    Translation,
}

#[derive(Default)]
struct Text {
    value: String,
    /// Set if a line of it is too long or not UTF-8.
    unusable: Option<Unusable>,
}

#[derive(Clone, Copy)]
enum Unusable {
    TooLong,
    InvalidUtf8,
}

impl PoReader {
    pub(super) fn new(lines: Lines, max_bytes: usize) -> Self {
        PoReader { lines, max_bytes, entry: Entry::default(), ready: VecDeque::new(), ended: false }
    }

    /// Ends the current entry.
    fn end_entry(&mut self) {
        let Entry { line, fuzzy, id, plural, translations, .. } = std::mem::take(&mut self.entry);
        // The entry with an empty message is the header of the file.
        let Some(id) = id.filter(|id| !id.value.is_empty() || id.unusable.is_some()) else { return };
        let mut forms = translations.into_iter();
        let (first, last) = (forms.next().unwrap_or_default(), forms.next_back());
        let pairs = match (plural, last) {
            (Some(plural), Some(last)) => vec![(id, first), (plural, last)],
            // A language with one form for all numbers.
            (Some(plural), None) => vec![(plural, first)],
            (None, _) => vec![(id, first)],
        };
        for (source, target) in pairs {
            let translated = !fuzzy && (target.unusable.is_some() || !target.value.trim().is_empty());
            let (source, target) = match translated {
                true => (source.side(self.max_bytes), target.side(self.max_bytes)),
                false => (Side::Untranslated, Side::Untranslated),
            };
            self.ready.push_back((source, target, line));
        }
    }

    fn read_line(&mut self, line: Line) -> Result<()> {
        let text = match line {
            Line::Text(text) => text,
            // Such a line may be a comment: only strings matter.
            Line::TooLong => {
                self.entry.spoil(Unusable::TooLong);
                return Ok(());
            }
            Line::InvalidUtf8 => {
                self.entry.spoil(Unusable::InvalidUtf8);
                return Ok(());
            }
        };
        let content = text.trim();
        if content.is_empty() || content.starts_with('#') {
            // Comments and flags precede the entry that they belong to.
            if !self.entry.translations.is_empty() {
                self.end_entry();
            }
            self.entry.current_field = CurrentField::Nothing;
            if let Some(flags) = content.strip_prefix("#,") {
                self.entry.fuzzy |= flags.split(',').any(|flag| flag.trim() == "fuzzy");
            }
            if content.starts_with("#~") && self.entry.id.is_none() {
                self.entry.fuzzy = false;
            }
            return Ok(());
        }
        let (keyword, string) = match content.find('"') {
            Some(at) => (content[..at].trim(), &content[at..]),
            None => return Err(self.broken(format!("{content:?} is neither a comment nor a string"))),
        };
        let string = unescape(string).map_err(|why| self.broken(why.into()))?;
        if matches!(keyword, "msgid" | "msgctxt" | "domain") && !self.entry.translations.is_empty() {
            self.end_entry();
        }
        self.put(keyword, &string)
    }

    /// Stores a string under its keyword, or appends it to the previous one.
    fn put(&mut self, keyword: &str, string: &str) -> Result<()> {
        let line = self.lines.count();
        let index = keyword.strip_prefix("msgstr[").and_then(|rest| rest.strip_suffix(']'));
        let entry = &mut self.entry;
        match keyword {
            "" => {}
            "msgctxt" | "domain" => entry.current_field = CurrentField::Other,
            "msgid" if entry.id.is_some() => return Err(self.broken("a second msgid before msgstr".into())),
            "msgid" => {
                entry.line = line;
                (entry.id, entry.current_field) = (Some(Text::default()), CurrentField::Id);
            }
            _ if entry.id.is_none() => {
                return Err(self.broken(format!("{keyword} without msgid before it")));
            }
            "msgid_plural" => {
                (entry.plural, entry.current_field) = (Some(Text::default()), CurrentField::Plural)
            }
            "msgstr" if entry.translations.is_empty() => {
                entry.translations.push(Text::default());
                entry.current_field = CurrentField::Translation;
            }
            _ if index.and_then(|index| index.parse().ok()) == Some(entry.translations.len()) => {
                entry.translations.push(Text::default());
                entry.current_field = CurrentField::Translation;
            }
            _ => return Err(self.broken(format!("{keyword} cannot stand here"))),
        }
        let (most, kept) = (self.max_bytes, self.entry.current_field != CurrentField::Other);
        match self.entry.text() {
            Some(text) if text.value.len() + string.len() > most => text.unusable = Some(Unusable::TooLong),
            Some(text) => text.value.push_str(string),
            None if !kept => {}
            None => return Err(self.broken("a string without msgid or msgstr before it".into())),
        }
        Ok(())
    }

    fn broken(&self, message: String) -> Error {
        Error::Line { path: self.lines.path().to_owned(), line: self.lines.count(), message }
    }
}

impl PairReader for PoReader {
    fn next(&mut self) -> Result<Option<(Side, Side, usize)>> {
        while self.ready.is_empty() && !self.ended {
            match self.lines.next()? {
                Some(line) => self.read_line(line)?,
                None => {
                    self.end_entry();
                    self.ended = true;
                }
            }
        }
        Ok(self.ready.pop_front())
    }

    fn document(&self) -> Option<u64> {
        Some(0)
    }
}

impl Entry {
    /// The string that is being read.
    fn text(&mut self) -> Option<&mut Text> {
        match self.current_field {
            CurrentField::Nothing | CurrentField::Other => None,
            CurrentField::Id => self.id.as_mut(),
            CurrentField::Plural => self.plural.as_mut(),
            CurrentField::Translation => self.translations.last_mut(),
        }
    }

    fn spoil(&mut self, why: Unusable) {
        if let Some(text) = self.text() {
            text.unusable = Some(why);
        }
    }
}

impl Text {
    fn side(self, max_bytes: usize) -> Side {
        match self.unusable {
            Some(Unusable::TooLong) => Side::TooLong,
            Some(Unusable::InvalidUtf8) => Side::InvalidUtf8,
            None => side(one_line(&self.value), max_bytes),
        }
    }
}

/// Resolves the escapes of a quoted string.
fn unescape(string: &str) -> std::result::Result<String, &'static str> {
    let inner = string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.ok_or("a string has no end on its line")?;
    let mut value = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => return Err("something follows the end of a string"),
            '\\' => value.push(match characters.next().ok_or("a string has no end on its line")? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                // Control characters such as bell are not text.
                'a' | 'b' | 'f' | 'v' => ' ',
                other => other,
            }),
            c => value.push(c),
        }
    }
    Ok(value)
}
