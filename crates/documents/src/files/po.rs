//! gettext message catalogues (po). Comments, contexts, flags, obsolete messages, the header and
//! everything else that is not translated stay byte for byte.

mod parse;
mod shortcut;
#[cfg(test)]
mod tests;

use super::encoding::{Encoding, decode, line_of};
use super::{FileDocument, FileError, FileOptions, Format, Unit, WriteFile};
use crate::message::{self, placeholders};
use parse::{Entry, Text};
use shortcut::Shortcut;

/// The line width that the gettext tools use.
const COLUMNS: usize = 79;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(Format::Po, bytes)?;
    let entries = parse::entries(&text)?;
    check_charset(&text, &entries)?;
    let forms = entries.iter().find(|entry| entry.id.value.is_empty()).and_then(plural_forms);
    let language = options.source_language.as_deref();
    let (mut units, mut messages) = (Vec::new(), Vec::new());
    for entry in entries {
        let empty = entry.translations.iter().all(|translation| translation.value.is_empty());
        if entry.id.value.is_empty() || entry.translations.is_empty() || (options.only_empty && !empty) {
            continue;
        }
        let mut source = |text: &Text| {
            let (plain, shortcut) = shortcut::strip(&text.value);
            units.push(Unit::new(plain.clone(), message::document(&plain, language)));
            Source { text: text.value.clone(), plain, shortcut }
        };
        let single = source(&entry.id);
        let plural = entry.plural.as_ref().map(&mut source);
        messages.push(Message { entry, single, plural });
    }
    let wrap = !text.lines().any(|line| line.starts_with('"') && line.chars().count() > COLUMNS + 3);
    Ok(FileDocument::new(units, PoFile { text, encoding, messages, forms, wrap }))
}

/// Rejects a file whose header declares an encoding other than UTF-8.
fn check_charset(text: &str, entries: &[Entry]) -> Result<(), FileError> {
    let Some(header) = entries.iter().find(|entry| entry.id.value.is_empty()) else { return Ok(()) };
    let fields = header.translations.first().map_or("", |translation| translation.value.as_str());
    let charset = fields.split("charset=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let known = |charset: &str| {
        ["utf-8", "utf8", "us-ascii", "ascii", "charset"].contains(&charset.to_ascii_lowercase().as_str())
    };
    match charset {
        Some(charset) if !known(charset) && !text.is_ascii() => Err(FileError::Line {
            format: Format::Po,
            line: line_of(text, header.id.range.start),
            problem: format!(
                "the header says that the file is in {charset}; convert it with `msgconv -t UTF-8`"
            ),
        }),
        _ => Ok(()),
    }
}

/// The number of plural forms in the target language, from the header.
fn plural_forms(header: &Entry) -> Option<usize> {
    let fields = &header.translations.first()?.value;
    let number = fields.split("nplurals").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The source text of a message.
#[derive(Debug)]
struct Source {
    text: String,
    /// The text without its shortcut mark.
    plain: String,
    shortcut: Option<Shortcut>,
}

impl Source {
    /// The translation with the shortcut mark.
    fn translated(&self, text: &str) -> String {
        match &self.shortcut {
            _ if text == self.plain => self.text.clone(),
            Some(shortcut) => shortcut.put_into(text),
            None => text.to_owned(),
        }
    }
}

#[derive(Debug)]
struct Message {
    entry: Entry,
    single: Source,
    plural: Option<Source>,
}

#[derive(Debug)]
struct PoFile {
    text: String,
    encoding: Encoding,
    messages: Vec<Message>,
    forms: Option<usize>,
    /// Whether long strings are wrapped over several lines.
    wrap: bool,
}

impl PoFile {
    /// The translations of each message, and whether they have the same placeholders as the source.
    fn translations<'a>(
        &'a self,
        texts: &'a [String],
    ) -> impl Iterator<Item = (&'a Message, Vec<String>, bool)> {
        let mut texts = texts.iter();
        self.messages.iter().map(move |message| {
            let mut next = |source: &Source| source.translated(texts.next().map_or("", String::as_str));
            let single = next(&message.single);
            let plural = message.plural.as_ref().map(|plural| (plural, next(plural)));
            let intact =
                [Some((&message.single, &single)), plural.as_ref().map(|(source, text)| (*source, text))]
                    .into_iter()
                    .flatten()
                    .all(|(source, text)| has_placeholders(&source.text, text, message.entry.is_plural()));
            let count = message.entry.translations.len();
            let texts = (0..count).map(|form| match &plural {
                // The first form is the singular, unless it is the only form.
                Some((_, plural)) if form > 0 || self.forms == Some(1) => plural.clone(),
                _ => single.clone(),
            });
            (message, texts.collect(), intact)
        })
    }

    /// Formats a string for `msgstr`.
    fn quoted(&self, text: &str, keyword: usize, line_end: &str) -> String {
        let whole = parse::escape(text);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        if lines.len() < 2 && (!self.wrap || keyword + whole.chars().count() + 3 <= COLUMNS + 1) {
            return format!("\"{whole}\"");
        }
        let mut out = "\"\"".to_owned();
        for line in lines {
            let mut rest = line;
            while !rest.is_empty() {
                let end = if self.wrap { line_length(rest) } else { rest.len() };
                out.push_str(&format!("{line_end}\"{}\"", parse::escape(&rest[..end])));
                rest = &rest[end..];
            }
        }
        out
    }
}

/// The number of bytes of a line that fit within the columns: up to a space, if possible.
fn line_length(text: &str) -> usize {
    let (mut columns, mut space) = (2, None);
    for (at, c) in text.char_indices() {
        columns += parse::escape(c.encode_utf8(&mut [0; 4])).chars().count();
        if columns > COLUMNS
            && let Some(space) = space
        {
            return space;
        }
        if c == ' ' {
            space = Some(at + 1);
        }
    }
    text.len()
}

/// Whether a translation has the same placeholders as its source. A plural message may lack one,
/// because the singular may spell out "one".
fn has_placeholders(source: &str, translation: &str, plural: bool) -> bool {
    let (wanted, found) = (placeholders(source), placeholders(translation));
    wanted == found
        || (plural && found.len() + 1 == wanted.len() && found.iter().all(|one| wanted.contains(one)))
}

impl WriteFile for PoFile {
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError> {
        let line_end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let (mut out, mut at) = (String::with_capacity(self.text.len()), 0);
        for (message, translations, intact) in self.translations(&texts) {
            let entry = &message.entry;
            if !intact && !entry.is_fuzzy {
                let (place, flag) = match entry.flags {
                    Some(flags) => (flags, " fuzzy,".to_owned()),
                    None => (entry.start, format!("#, fuzzy{line_end}")),
                };
                out.push_str(&self.text[at..place]);
                out.push_str(&flag);
                at = place;
            }
            for (place, text) in entry.translations.iter().zip(translations) {
                out.push_str(&self.text[at..place.range.start]);
                match text == place.value {
                    true => out.push_str(&self.text[place.range.clone()]),
                    false => out.push_str(&self.quoted(&text, place.keyword, line_end)),
                }
                at = place.range.end;
            }
        }
        out.push_str(&self.text[at..]);
        Ok(self.encoding.encode(&out))
    }

    fn warnings(&self, texts: &[String]) -> Vec<String> {
        let damaged = self.translations(texts).filter(|(_, _, intact)| !intact);
        damaged
            .map(|(message, ..)| {
                let line = line_of(&self.text, message.entry.id.range.start);
                let id: String = message.entry.id.value.chars().take(60).collect();
                format!(
                    "line {line}: the translation of {id:?} has other placeholders than its source and is marked fuzzy"
                )
            })
            .collect()
    }
}
