//! `Localizable.strings` of iOS and macOS: `"key" = "value";`.

use super::encoding::{at, decode};
use super::splice::{Place, messages};
use super::{FileDocument, FileError, FileOptions, Format};
use std::ops::Range;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    if bytes.starts_with(b"bplist") {
        let found =
            "it is a binary property list; convert it with `plutil -convert xml1`, or use the text file";
        return Err(FileError::OtherFormat { format: Format::IosStrings, found: found.to_owned() });
    }
    let (text, encoding) = decode(Format::IosStrings, bytes)?;
    let places = places(&text)?;
    Ok(messages(text, encoding, places, options))
}

fn places(text: &str) -> Result<Vec<Place>, FileError> {
    let mut scanner = Scanner { text, at: 0 };
    let mut places = Vec::new();
    while scanner.skip_space()? {
        scanner.word("a key")?;
        scanner.skip_space()?;
        // `"key";` is short for a value that equals its key.
        if scanner.take('=') {
            scanner.skip_space()?;
            let quoted = scanner.rest().starts_with(['"', '\'']);
            let (range, source) = scanner.word("a value")?;
            if quoted {
                places.push(Place { range, source, encode: Box::new(quote) });
            }
            scanner.skip_space()?;
        }
        if !scanner.take(';') {
            return Err(scanner.problem("`;` is missing after a value"));
        }
    }
    Ok(places)
}

/// Quotes and escapes a value.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out + "\""
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn problem(&self, problem: &str) -> FileError {
        at(Format::IosStrings, self.text, self.at, problem)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, c: char) -> bool {
        let there = self.rest().starts_with(c);
        self.at += if there { c.len_utf8() } else { 0 };
        there
    }

    /// Skips white space and comments, and returns whether anything follows.
    fn skip_space(&mut self) -> Result<bool, FileError> {
        loop {
            self.at = self.text.len() - self.rest().trim_start().len();
            let rest = self.rest();
            if let Some(comment) = rest.strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    return Err(self.problem("a comment has no `*/`"));
                };
                self.at += length + 4;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return Ok(!rest.is_empty());
            }
        }
    }

    /// A quoted string, or a word without quotation marks.
    fn word(&mut self, what: &str) -> Result<(Range<usize>, String), FileError> {
        let start = self.at;
        let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote else {
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '$' | ':');
            let length = self.rest().find(|c| !is_word(c)).unwrap_or(self.rest().len());
            if length == 0 {
                return Err(self.problem(&format!("{what} in quotation marks is missing")));
            }
            self.at += length;
            return Ok((start..self.at, self.text[start..self.at].to_owned()));
        };
        self.at += 1;
        let mut value = String::new();
        loop {
            let rest = self.rest();
            let Some(length) = rest.find([quote, '\\']) else {
                self.at = start;
                return Err(self.problem("a string has no end"));
            };
            value.push_str(&rest[..length]);
            self.at += length;
            if self.take(quote) {
                return Ok((start..self.at, value));
            }
            self.at += 1;
            self.escape(&mut value);
        }
    }

    /// Decodes the escape after a backslash.
    fn escape(&mut self, value: &mut String) {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return };
        let (c, length) = match c {
            'n' => ('\n', 1),
            'r' => ('\r', 1),
            't' => ('\t', 1),
            'U' | 'u' => {
                let unit = |at: usize| u16::from_str_radix(rest.get(at..at + 4)?, 16).ok();
                let next = rest.get(5..7).filter(|next| matches!(*next, "\\U" | "\\u")).and_then(|_| unit(7));
                let decoded = char::decode_utf16([unit(1), next].into_iter().flatten()).next();
                match decoded {
                    Some(Ok(c)) => (c, 5 + 6 * (c.len_utf16() - 1)),
                    _ => (c, 1),
                }
            }
            c => (c, c.len_utf8()),
        };
        value.push(c);
        self.at += length;
    }
}
