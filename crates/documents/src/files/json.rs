//! JSON: string values are translated, keys are not. Everything else stays byte for byte.

use super::encoding::{at, decode};
use super::splice::{Place, messages};
use super::{FileDocument, FileError, FileOptions, Format};
use std::ops::Range;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(Format::Json, bytes)?;
    let mut scanner = Scanner { text: &text, at: 0, found: Vec::new() };
    scanner.file()?;
    let found = scanner.found;
    // If the file uses nothing but ASCII and `\u` escapes, the output does, too.
    let ascii = text.is_ascii() && text.contains("\\u");
    let places = found.into_iter().map(|(range, source)| {
        let slashes = text[range.clone()].contains("\\/");
        Place { range, source, encode: Box::new(move |text| quoted(text, ascii, slashes)) }
    });
    let places = places.collect();
    Ok(messages(text, encoding, places, options))
}

/// Encodes a JSON string.
pub(super) fn quoted(text: &str, ascii: bool, slashes: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '/' if slashes => out.push_str("\\/"),
            c if c.is_control() || (ascii && !c.is_ascii()) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// An object or array that is open around the current value.
enum Level {
    /// An object, and whether its values are data for a program, as under an `"@type"` key.
    Object {
        data: bool,
    },
    Array {
        data: bool,
    },
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The strings found: their ranges including quotation marks, and their decoded values.
    found: Vec<(Range<usize>, String)>,
}

impl Scanner<'_> {
    fn problem(&self, problem: impl Into<String>) -> FileError {
        at(Format::Json, self.text, self.at, problem)
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at = self.text.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next character, for an error message.
    fn here(&self) -> String {
        match self.text[self.at..].chars().next() {
            Some(c) => format!("`{}`", c.escape_default()),
            None => "the end of the file".to_owned(),
        }
    }

    fn expect(&mut self, wanted: u8, after: &str) -> Result<(), FileError> {
        self.skip_space();
        if self.next() != Some(wanted) {
            let wanted = char::from(wanted);
            return Err(
                self.problem(format!("`{wanted}` is missing after {after}; there is {}", self.here()))
            );
        }
        self.at += 1;
        Ok(())
    }

    /// Parses the whole file. It does not recurse, so nesting can be arbitrarily deep.
    fn file(&mut self) -> Result<(), FileError> {
        let mut levels: Vec<Level> = Vec::new();
        let mut data = false;
        self.skip_space();
        if self.at == self.text.len() {
            return Err(self.problem("the file is empty"));
        }
        loop {
            // A value begins here.
            self.skip_space();
            match self.next() {
                Some(b'{') => {
                    self.at += 1;
                    levels.push(Level::Object { data });
                    self.skip_space();
                    if self.next() != Some(b'}') {
                        data |= self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    levels.push(Level::Array { data });
                    self.skip_space();
                    if self.next() != Some(b']') {
                        continue;
                    }
                }
                Some(b'"') => {
                    let (range, value) = self.string()?;
                    if !data {
                        self.found.push((range, value));
                    }
                }
                _ => self.word()?,
            }
            // A value has ended, and possibly the arrays and objects around it.
            loop {
                self.skip_space();
                let Some(level) = levels.last() else {
                    return match self.at == self.text.len() {
                        true => Ok(()),
                        false => {
                            Err(self.problem(format!("the file goes on after its end with {}", self.here())))
                        }
                    };
                };
                match (level, self.next()) {
                    (Level::Object { data: outer }, Some(b',')) => {
                        data = *outer;
                        self.at += 1;
                        data |= self.key()?;
                        break;
                    }
                    (Level::Array { data: outer }, Some(b',')) => {
                        data = *outer;
                        self.at += 1;
                        break;
                    }
                    (Level::Object { .. }, Some(b'}')) | (Level::Array { .. }, Some(b']')) => {
                        self.at += 1;
                        levels.pop();
                    }
                    (Level::Object { .. }, _) => {
                        return Err(self.problem(format!("`,` or `}}` is missing before {}", self.here())));
                    }
                    (Level::Array { .. }, _) => {
                        return Err(self.problem(format!("`,` or `]` is missing before {}", self.here())));
                    }
                }
            }
        }
    }

    /// Reads a key and its colon, and returns whether its value is data for a program.
    fn key(&mut self) -> Result<bool, FileError> {
        self.skip_space();
        if self.next() != Some(b'"') {
            return Err(
                self.problem(format!("a key in quotation marks is missing; there is {}", self.here()))
            );
        }
        let (_, key) = self.string()?;
        self.expect(b':', &format!("the key `{}`", key.escape_debug()))?;
        Ok(key.starts_with('@'))
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<(), FileError> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
        let word = &rest[..length.unwrap_or(rest.len())];
        let number =
            word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && word.parse::<f64>().is_ok();
        if !number && !matches!(word, "true" | "false" | "null") {
            return Err(self.problem(format!("a value is missing; there is {}", self.here())));
        }
        self.at += word.len();
        Ok(())
    }

    /// The string that begins here: its range and its decoded value.
    fn string(&mut self) -> Result<(Range<usize>, String), FileError> {
        let start = self.at;
        let mut value = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let length = rest.find(['"', '\\', '\n']).unwrap_or(rest.len());
            value.push_str(&rest[..length]);
            self.at += length;
            match self.next() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok((start..self.at, value));
                }
                Some(b'\\') => value.push(self.escape()?),
                _ => {
                    self.at = start;
                    return Err(self.problem("a string has no end on its line"));
                }
            }
        }
    }

    /// Decodes a backslash escape.
    fn escape(&mut self) -> Result<char, FileError> {
        let code = self.text[self.at + 1..].chars().next();
        let simple = match code {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode(),
            _ => return Err(self.problem("a backslash must be followed by one of \" \\ / b f n r t u")),
        };
        self.at += 2;
        Ok(simple)
    }

    /// Decodes `\u00e9`, or a surrogate pair of two such escapes.
    fn unicode(&mut self) -> Result<char, FileError> {
        let unit = |at: usize| {
            let digits = self.text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
            digits
                .chars()
                .all(|c| c.is_ascii_hexdigit())
                .then(|| u16::from_str_radix(digits, 16).ok())
                .flatten()
        };
        let Some(first) = unit(self.at) else {
            return Err(self.problem("`\\u` must be followed by four hexadecimal digits"));
        };
        let pair = [Some(first), unit(self.at + 6)];
        let mut decoded = char::decode_utf16(pair.into_iter().flatten());
        match decoded.next() {
            Some(Ok(c)) => {
                self.at += 6 * c.len_utf16();
                Ok(c)
            }
            _ => Err(self.problem("`\\u` stands for half a character; its other half is missing")),
        }
    }
}
