//! Java properties: `key = value` in UTF-8 or ISO 8859-1, with `\u00e9` escapes and continuation
//! lines.

use super::encoding::{Encoding, at, decode};
use super::splice::{Place, messages};
use super::{FileDocument, FileError, FileOptions, Format};
use std::ops::Range;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    // Before Java 9 the files were ISO 8859-1, in which any byte is a character.
    let (text, encoding) = decode(Format::Properties, bytes)
        .unwrap_or_else(|_| (bytes.iter().map(|byte| char::from(*byte)).collect(), Encoding::Latin1));
    // A pure ASCII file stays ASCII, which is valid in both encodings.
    let ascii = text.is_ascii();
    let mut places = Vec::new();
    for range in values(&text) {
        let source = unescape(&text, &range)?;
        // `java.text.MessageFormat` reads '' as an apostrophe and ' as a quotation mark.
        let format = is_message_format(&source);
        let source = if format { source.replace("''", "'") } else { source };
        let encode = move |text: &str| {
            let text = if format { text.replace('\'', "''") } else { text.to_owned() };
            escape(&text, encoding, ascii)
        };
        places.push(Place { range, source, encode: Box::new(encode) });
    }
    Ok(messages(text, encoding, places, options))
}

/// Whether a value has arguments such as `{0}`.
fn is_message_format(value: &str) -> bool {
    value.match_indices('{').any(|(at, _)| value[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
}

/// The byte ranges of the values, including their continuation lines.
fn values(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let start = at + rest.len() - rest.trim_start_matches([' ', '\t', '\u{c}']).len();
        let comment = text[start..].starts_with(['#', '!']);
        let end = line_end(text, start, !comment);
        if !comment && start < end {
            found.push(value_start(&text[..end], start)..end);
        }
        let after = &text[end..];
        at = end + after.len().min(if after.starts_with("\r\n") { 2 } else { 1 });
    }
    found.retain(|range| !range.is_empty());
    found
}

/// The end of a line; if `goes_on` is set, including its continuation lines.
fn line_end(text: &str, start: usize, goes_on: bool) -> usize {
    let mut at = start;
    while let Some(length) = text[at..].find(['\r', '\n', '\\']) {
        at += length;
        if !text[at..].starts_with('\\') {
            return at;
        }
        at += 1;
        let next = text[at..].chars().next();
        match next {
            _ if !goes_on => {}
            Some('\r') if text[at..].starts_with("\r\n") => at += 2,
            Some(c) => at += c.len_utf8(),
            None => {}
        }
    }
    text.len()
}

/// The start of the value in a line that begins at `start`.
fn value_start(text: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '=' | ':' | ' ' | '\t' | '\u{c}' => break,
            '\\' => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            c => at += c.len_utf8(),
        }
    }
    let space = |at: usize| text.len() - text[at..].trim_start_matches([' ', '\t', '\u{c}']).len();
    at = space(at);
    if text[at..].starts_with(['=', ':']) {
        at = space(at + 1);
    }
    at
}

/// Decodes the escapes of a value.
fn unescape(text: &str, range: &Range<usize>) -> Result<String, FileError> {
    let raw = &text[range.clone()];
    let mut units: Vec<u16> = Vec::new();
    let mut characters = raw.char_indices().peekable();
    while let Some((_, c)) = characters.next() {
        if c != '\\' {
            units.extend(c.encode_utf16(&mut [0; 2]).iter());
            continue;
        }
        let Some((place, c)) = characters.next() else { break };
        let c = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'f' => '\u{c}',
            'u' => {
                let digits =
                    raw.get(place + 1..place + 5).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let Some(unit) = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) else {
                    let problem = "`\\u` must be followed by four hexadecimal digits";
                    return Err(at(Format::Properties, text, range.start + place, problem));
                };
                units.push(unit);
                characters.nth(3);
                continue;
            }
            '\r' | '\n' => {
                if c == '\r' {
                    characters.next_if(|(_, c)| *c == '\n');
                }
                while characters.next_if(|(_, c)| matches!(c, ' ' | '\t' | '\u{c}')).is_some() {}
                continue;
            }
            c => c,
        };
        units.extend(c.encode_utf16(&mut [0; 2]).iter());
    }
    String::from_utf16(&units).map_err(|_| {
        at(
            Format::Properties,
            text,
            range.start,
            "`\\u` stands for half a character; its other half is missing",
        )
    })
}

/// Escapes a value.
fn escape(text: &str, encoding: Encoding, ascii: bool) -> String {
    let lacks = |c: char| (ascii && !c.is_ascii()) || (encoding == Encoding::Latin1 && u32::from(c) > 0xff);
    let mut out = String::with_capacity(text.len());
    for (i, c) in text.chars().enumerate() {
        match c {
            ' ' | '=' | ':' if i == 0 => out.extend(['\\', c]),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{c}' => out.push_str("\\f"),
            c if lacks(c) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out
}
