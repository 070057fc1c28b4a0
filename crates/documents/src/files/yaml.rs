//! YAML: string values are translated, keys are not. Everything else stays as written, and a string
//! keeps its style if that style can represent the translation.

use super::encoding::{at, decode};
use super::json;
use super::splice::{Place, messages};
use super::{FileDocument, FileError, FileOptions, Format};
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::ops::Range;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(Format::Yaml, bytes)?;
    let places = places(&text)?;
    Ok(messages(text, encoding, places, options))
}

/// A sequence or mapping that is open around the current value.
enum Level {
    Sequence,
    Mapping { key_next: bool },
}

fn places(text: &str) -> Result<Vec<Place>, FileError> {
    // The parser reports positions in characters.
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let byte = |character: usize| bytes.get(character).copied().unwrap_or(text.len());
    let (mut places, mut levels, mut flow) = (Vec::new(), Vec::new(), Vec::new());
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            at(
                Format::Yaml,
                text,
                byte(error.marker().index()),
                format!("the YAML is damaged: {}", error.info()),
            )
        })?;
        let range = byte(span.start.index())..byte(span.end.index());
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                value_begins(&mut levels);
                flow.push(text[range.start.min(text.len())..].starts_with(['[', '{']));
                levels.push(match event {
                    Event::SequenceStart(..) => Level::Sequence,
                    _ => Level::Mapping { key_next: true },
                });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                levels.pop();
                flow.pop();
            }
            Event::Alias(_) => {
                value_begins(&mut levels);
            }
            Event::Scalar(value, style, _, tag) => {
                let is_key = value_begins(&mut levels);
                let is_text = tag.is_none_or(|tag| tag.suffix == "str");
                let in_flow = flow.contains(&true);
                if !is_key && is_text && !(style == ScalarStyle::Plain && is_other(&value)) {
                    places.extend(place(text, range, &value, style, in_flow)?);
                }
            }
            _ => {}
        }
    }
    Ok(places)
}

/// Records that a key or a value begins, and returns whether it is a key.
fn value_begins(levels: &mut [Level]) -> bool {
    match levels.last_mut() {
        Some(Level::Mapping { key_next }) => std::mem::replace(key_next, !*key_next),
        _ => false,
    }
}

/// Whether a plain scalar is not a string: a number, a date, a boolean or null.
fn is_other(value: &str) -> bool {
    let word = value.to_ascii_lowercase();
    let words =
        ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".nan", ".inf", "-.inf"];
    let number = |c: char| {
        c.is_ascii_hexdigit() || matches!(c, '.' | '_' | '-' | '+' | ':' | 'x' | 'o' | 't' | 'z' | ' ')
    };
    words.contains(&word.as_str())
        || (word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
            && word.chars().all(number))
}

/// The place of a string in the file and how to write it back.
fn place(
    text: &str,
    range: Range<usize>,
    value: &str,
    style: ScalarStyle,
    in_flow: bool,
) -> Result<Option<Place>, FileError> {
    let start = match style {
        ScalarStyle::Literal | ScalarStyle::Folded => header_start(text, range.start),
        _ => value_start(text, range.start),
    };
    let rest = text.get(start..).unwrap_or_default();
    let length = match style {
        ScalarStyle::Plain => {
            let raw = text.get(start..range.end).unwrap_or_default().trim_end();
            raw.split_whitespace().eq(value.split_whitespace()).then_some(raw.len())
        }
        ScalarStyle::SingleQuoted => quoted_length(rest, '\''),
        ScalarStyle::DoubleQuoted => quoted_length(rest, '"'),
        ScalarStyle::Literal | ScalarStyle::Folded => rest.starts_with(['|', '>']).then_some(1),
    };
    let Some(length) = length else {
        let problem = "this way of writing a string is not supported; put the string in quotation marks";
        return Err(at(Format::Yaml, text, range.start, problem));
    };
    let range = start..start + length;
    let source = value.to_owned();
    let place = |range: Range<usize>, encode: Box<dyn Fn(&str) -> String + Send + Sync>| Place {
        range,
        source,
        encode,
    };
    Ok(match style {
        ScalarStyle::Plain => Some(place(range, Box::new(move |text| plain(text, in_flow)))),
        ScalarStyle::SingleQuoted => Some(place(range, Box::new(single_quoted))),
        ScalarStyle::DoubleQuoted => Some(place(range, Box::new(|text| json::quoted(text, false, false)))),
        ScalarStyle::Literal | ScalarStyle::Folded => block(text, range.start).map(|block| {
            let range = range.start..block.end;
            place(range, Box::new(move |text| block.written(text)))
        }),
    })
}

/// The start of a value after its tag and its anchor.
fn value_start(text: &str, start: usize) -> usize {
    let mut rest = text.get(start..).unwrap_or_default().trim_start();
    while rest.starts_with(['&', '!']) {
        rest = rest.find(char::is_whitespace).map_or("", |end| rest[end..].trim_start());
    }
    text.len() - rest.len()
}

/// The position of the `|` or `>` of a block: at its start, or on the last non-blank line before
/// it.
fn header_start(text: &str, start: usize) -> usize {
    let at = value_start(text, start);
    if text.get(at..).is_some_and(|rest| rest.starts_with(['|', '>'])) {
        return at;
    }
    let before = text.get(..start).unwrap_or_default().trim_end();
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let header = before[line..].split(" #").next().unwrap_or_default();
    line + header.rfind(['|', '>']).unwrap_or(header.len())
}

/// The length of a quoted string, including its quotation marks.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().skip(1).peekable();
    if !text.starts_with(quote) {
        return None;
    }
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if quote == '"' => {
                characters.next();
            }
            c if c == quote && quote == '\'' && characters.next_if(|(_, next)| *next == quote).is_some() => {}
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Writes a plain scalar, or a quoted one if the plain form would be read differently.
fn plain(text: &str, in_flow: bool) -> String {
    let safe = !is_other(text)
        && text.trim() == text
        && !text.contains(|c: char| c.is_control() || c == '\u{feff}')
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !text.starts_with(|c: char| "-?:,[]{}#&*!|>'\"%@`".contains(c))
        && !text.starts_with("...")
        && !(in_flow && text.contains([',', '[', ']', '{', '}']));
    if safe { text.to_owned() } else { json::quoted(text, false, false) }
}

fn single_quoted(text: &str) -> String {
    match text.contains(|c: char| c.is_control() || c == '\u{feff}') {
        true => json::quoted(text, false, false),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

/// A block scalar.
#[derive(Debug)]
struct Block {
    /// Its first line: `|` or `>`, the rest of the line, and the line break.
    header: String,
    indentation: String,
    folded: bool,
    line_end: &'static str,
    /// The end of its last non-blank line.
    end: usize,
}

/// The block that begins at `start`; `None` if it has no text.
fn block(text: &str, start: usize) -> Option<Block> {
    let first = start + text[start..].find('\n')? + 1;
    let header = &text[start..first];
    let (mut indentation, mut end, mut at) = (None, first, first);
    for line in text[first..].split_inclusive('\n') {
        let content = line.trim_end_matches(['\r', '\n']);
        let spaces = content.len() - content.trim_start_matches(' ').len();
        if !content.trim().is_empty() {
            if spaces < *indentation.get_or_insert(spaces) || spaces == 0 {
                break;
            }
            end = at + content.len();
        }
        at += line.len();
    }
    // Explicit indentation indicators are rare; such blocks are written as quoted strings.
    let explicit = header.split('#').next().unwrap_or_default().contains(|c: char| c.is_ascii_digit());
    Some(Block {
        header: if explicit { String::new() } else { header.to_owned() },
        indentation: " ".repeat(indentation?),
        folded: header.starts_with('>'),
        line_end: if header.ends_with("\r\n") { "\r\n" } else { "\n" },
        end,
    })
}

impl Block {
    fn written(&self, text: &str) -> String {
        let text = text.trim_end_matches('\n');
        let indented = text.lines().any(|line| line.starts_with([' ', '\t']));
        let first = text.starts_with([' ', '\t', '\n']);
        let odd = text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{feff}');
        if self.header.is_empty() || first || (self.folded && indented) || text.is_empty() || odd {
            return json::quoted(text, false, false);
        }
        let lines = text.lines().map(|line| match line.is_empty() {
            true => String::new(),
            false => format!("{}{line}", self.indentation),
        });
        let between = if self.folded { self.line_end.repeat(2) } else { self.line_end.to_owned() };
        format!("{}{}", self.header, lines.collect::<Vec<_>>().join(&between))
    }
}

#[cfg(test)]
mod tests {
    use crate::files::testing::{capitals, identity, translated};
    use crate::files::{FileDocument, FileOptions, Format};

    fn capital(text: &str) -> String {
        assert_eq!(identity(Format::Yaml, text.as_bytes()), text.as_bytes());
        translated(Format::Yaml, text, &FileOptions::default(), capitals)
    }

    #[test]
    fn strings_are_translated_and_keys_are_kept() {
        for (text, wanted) in [
            (
                "en:\n  hello: open it # why\n  n: 12\n  yes: true\n",
                "en:\n  hello: OPEN IT # why\n  n: 12\n  yes: true\n",
            ),
            ("- one\n- 'it''s'\n- \"a \\\"b\\\" \\u00e9\"\n", "- ONE\n- 'IT''S'\n- \"A \\\"B\\\" É\"\n"),
            ("a: {b: one, c: [two, 3]}\r\n", "a: {b: ONE, c: [TWO, 3]}\r\n"),
            (
                "a: |\n  one\n  two\n\nb: >-\n    three\n    four\n\n    five\n",
                "a: |\n  ONE\n  TWO\n\nb: >-\n    THREE FOUR\n\n    FIVE\n",
            ),
            (
                "a: &x one\nb: *x\nc: !!str two\nd: !ruby/object x\n",
                "a: &x ONE\nb: *x\nc: !!str TWO\nd: !ruby/object x\n",
            ),
            ("a: one\n  two\n", "a: ONE TWO\n"),
            ("é: hi %{name}\n", "é: HI %{name}\n"),
        ] {
            assert_eq!(capital(text), wanted);
        }
        // A translation that would be read as another type.
        let written = |text: &str, translation: &'static str| {
            let same = |_: &crate::Sentence| crate::Translation::same(translation);
            translated(Format::Yaml, text, &FileOptions::default(), same)
        };
        assert_eq!(written("a: nay\n", "No"), "a: \"No\"\n");
        assert_eq!(written("a: x\n", "b: c"), "a: \"b: c\"\n");
        assert_eq!(written("a: [x]\n", "b, c"), "a: [\"b, c\"]\n");
    }

    #[test]
    fn damaged_files_are_named_by_their_line() {
        let error = FileDocument::open(Format::Yaml, b"a: b\nc: \"d\n", &FileOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("of the yaml file: the YAML is damaged"), "{error}");
    }
}
