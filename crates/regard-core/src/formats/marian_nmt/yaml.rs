//! The part of YAML that Marian's files use: mappings and lists in blocks, `[a, b]`, plain and
//! quoted scalars, comments; and JSON.
//!
//! This is our own reader for what `yaml-cpp` writes, rather than a crate: the files are flat,
//! aliases and tags (which a crate would have to bound) do not occur, and no dependency is needed
//! for three kinds of files. Unsupported syntax is rejected with its line number.

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Yaml {
    /// A scalar, without its quotes.
    Scalar(String),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Yaml::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The value as shown in a message.
    pub(super) fn shown(&self) -> String {
        match self {
            Yaml::Scalar(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
            Yaml::List(values) => {
                let shown: Vec<String> = values.iter().take(4).map(Yaml::shown).collect();
                format!("[{}{}]", shown.join(", "), if values.len() > 4 { ", …" } else { "" })
            }
            Yaml::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// The maximum nesting depth.
const DEEPEST: usize = 8;

type Result<T> = std::result::Result<T, String>;

/// The mapping that a file holds.
pub(super) fn parse(text: &str) -> Result<Vec<(String, Yaml)>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        let json = serde_json::from_str(text).map_err(|e| format!("not JSON, although it begins so: {e}"))?;
        let Yaml::Map(map) = from_json(json) else { return Err("a mapping is expected".into()) };
        return Ok(map);
    }
    let mut parser = Parser { lines: lines(text)?, at: 0 };
    if parser.lines.is_empty() {
        return Ok(Vec::new());
    }
    let map = parser.map(parser.lines[0].indent, 0)?;
    match parser.lines.get(parser.at) {
        None => Ok(map),
        Some(line) => Err(line.wrong("is indented in a way that is not understood")),
    }
}

fn from_json(value: serde_json::Value) -> Yaml {
    use serde_json::Value;
    match value {
        Value::String(text) => Yaml::Scalar(text),
        Value::Array(values) => Yaml::List(values.into_iter().map(from_json).collect()),
        Value::Object(map) => {
            Yaml::Map(map.into_iter().map(|(key, value)| (key, from_json(value))).collect())
        }
        other => Yaml::Scalar(other.to_string()),
    }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    indent: usize,
    /// Without indentation and trailing spaces.
    text: &'a str,
}

impl Line<'_> {
    fn wrong(&self, problem: &str) -> String {
        let shown: String = self.text.chars().take(60).collect();
        format!("line {}: {shown:?} {problem}", self.number)
    }
}

/// The non-empty lines.
fn lines(text: &str) -> Result<Vec<Line<'_>>> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let text = line.trim_start_matches(' ');
        let line =
            Line { number, indent: line.len() - text.len(), text: text.trim_end_matches([' ', '\t', '\r']) };
        match line.text {
            "" => {}
            text if text.starts_with('#') => {}
            "---" if found.is_empty() => {}
            "---" | "..." => return Err(line.wrong("begins another document; one is expected")),
            text if text.starts_with('\t') => return Err(line.wrong("is indented with a tab")),
            _ => found.push(line),
        }
    }
    Ok(found)
}

struct Parser<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn line(&self) -> Option<Line<'a>> {
        self.lines.get(self.at).copied()
    }

    /// The pairs in the lines with this indentation.
    fn map(&mut self, indent: usize, depth: usize) -> Result<Vec<(String, Yaml)>> {
        let mut pairs = Vec::new();
        while let Some(line) = self.line().filter(|line| line.indent == indent) {
            let (key, rest) = key(line)?;
            self.at += 1;
            let value = if rest.is_empty() { self.block(indent, depth, line)? } else { inline(rest, line)? };
            pairs.push((key, value));
        }
        Ok(pairs)
    }

    /// The value of a key that is alone on its line.
    fn block(&mut self, indent: usize, depth: usize, of: Line<'a>) -> Result<Yaml> {
        let empty = || Yaml::Scalar(String::new());
        let Some(line) = self.line() else { return Ok(empty()) };
        let is_list = line.text == "-" || line.text.starts_with("- ");
        // The items of a list may have the same indentation as its key.
        if line.indent < indent || (line.indent == indent && !is_list) {
            return Ok(empty());
        }
        if depth >= DEEPEST {
            return Err(of.wrong("holds more levels than are read"));
        }
        if is_list {
            return self.list(line.indent);
        }
        if line.text.starts_with('[') || key(line).is_err() {
            self.at += 1;
            return inline(line.text, line);
        }
        Ok(Yaml::Map(self.map(line.indent, depth + 1)?))
    }

    fn list(&mut self, indent: usize) -> Result<Yaml> {
        let mut values = Vec::new();
        while let Some(line) = self.line().filter(|line| line.indent == indent) {
            let Some(rest) =
                line.text.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' '))
            else {
                break;
            };
            self.at += 1;
            values.push(inline(rest.trim_start(), line)?);
        }
        Ok(Yaml::List(values))
    }
}

/// The key of a line and what follows its colon.
fn key(line: Line<'_>) -> Result<(String, &str)> {
    let no_key = || line.wrong("has no key with a colon");
    if line.text.starts_with(['"', '\'']) {
        let (key, rest) = quoted(line.text, line)?;
        let rest = rest.trim_start().strip_prefix(':').ok_or_else(no_key)?;
        if !rest.is_empty() && !rest.starts_with(' ') {
            return Err(no_key());
        }
        return Ok((key, without_comment(rest.trim_start())));
    }
    // A colon within a plain scalar has no space after it.
    let at = line.text.find(": ").or_else(|| line.text.ends_with(':').then(|| line.text.len() - 1));
    let (key, rest) = at.map(|at| (&line.text[..at], &line.text[at + 1..])).ok_or_else(no_key)?;
    let key = plain(key.trim_end(), line)?;
    Ok((key, without_comment(rest.trim_start())))
}

/// Empty, if there is only a comment.
fn without_comment(rest: &str) -> &str {
    if rest.starts_with('#') { "" } else { rest }
}

/// A value that is complete on its line.
fn inline(text: &str, line: Line<'_>) -> Result<Yaml> {
    let (value, rest) = if text.starts_with('[') {
        flow_list(text, line)?
    } else if text.starts_with(['"', '\'']) {
        let (value, rest) = quoted(text, line)?;
        (Yaml::Scalar(value), rest)
    } else {
        let end = text.find(" #").unwrap_or(text.len());
        (Yaml::Scalar(plain(text[..end].trim_end(), line)?), "")
    };
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(line.wrong("goes on behind its value"));
    }
    Ok(value)
}

/// An unquoted scalar, which may not begin with a character that has another meaning.
fn plain(text: &str, line: Line<'_>) -> Result<String> {
    if text.starts_with(['&', '*', '!', '|', '>', '%', '@', '`', '{', '?']) && text != "?" {
        return Err(
            line.wrong("uses a part of YAML that is not read (anchors, tags, block scalars, complex keys)")
        );
    }
    Ok(text.to_owned())
}

/// `[a, "b", 3]` and what follows it.
fn flow_list<'a>(text: &'a str, line: Line<'_>) -> Result<(Yaml, &'a str)> {
    let mut values = Vec::new();
    let mut rest = text[1..].trim_start();
    loop {
        if let Some(rest) = rest.strip_prefix(']') {
            return Ok((Yaml::List(values), rest));
        }
        let value;
        (value, rest) = if rest.starts_with(['"', '\'']) {
            quoted(rest, line)?
        } else {
            let end = rest.find([',', ']']).ok_or_else(|| line.wrong("has a list without its end"))?;
            (plain(rest[..end].trim_end(), line)?, &rest[end..])
        };
        values.push(Yaml::Scalar(value));
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if rest.starts_with(']') => {}
            None => return Err(line.wrong("has a list without its end")),
        }
    }
}

/// A quoted scalar and what follows it.
fn quoted<'a>(text: &'a str, line: Line<'_>) -> Result<(String, &'a str)> {
    let no_end = || line.wrong("has a quote without its end");
    let mut value = String::new();
    let mut chars = text.chars();
    let quote = chars.next().ok_or_else(no_end)?;
    loop {
        match chars.next().ok_or_else(no_end)? {
            '\'' if quote == '\'' => match chars.as_str().strip_prefix('\'') {
                Some(rest) => {
                    value.push('\'');
                    chars = rest.chars();
                }
                None => return Ok((value, chars.as_str())),
            },
            '"' if quote == '"' => return Ok((value, chars.as_str())),
            '\\' if quote == '"' => {
                let code = chars.next().ok_or_else(no_end)?;
                let digits = match code {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => {
                        value.push(escape(code).ok_or_else(|| line.wrong("has an unknown escape"))?);
                        continue;
                    }
                };
                let hex = chars.as_str().get(..digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                let decoded =
                    hex.and_then(char::from_u32).ok_or_else(|| line.wrong("has a damaged escape"))?;
                value.push(decoded);
                chars = chars.as_str()[digits..].chars();
            }
            other => value.push(other),
        }
    }
}

fn escape(code: char) -> Option<char> {
    Some(match code {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        '"' | '/' | '\\' | ' ' => code,
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(text: &str) -> Yaml {
        Yaml::Scalar(text.to_owned())
    }

    #[test]
    fn the_files_that_marian_writes_are_read() {
        let text = "---\n# made by hand\ntype: transformer\ndim-vocabs:\n  - 32\n  - 16 # target\ninput-types:\n  []\n\
                    left:\n- a\n- \"b\"\nnone:\nempty: \"\"\nlist: [1, 'it''s', \"c\"]  # rest\nversion: v1.2; a:b 2020-01-01 10:20:30 +0100\n\
                    outer:\n  inner: 1\n  more:\n    - x\n";
        let map = parse(text).unwrap();
        let want = [
            ("type", scalar("transformer")),
            ("dim-vocabs", Yaml::List(vec![scalar("32"), scalar("16")])),
            ("input-types", Yaml::List(vec![])),
            ("left", Yaml::List(vec![scalar("a"), scalar("b")])),
            ("none", scalar("")),
            ("empty", scalar("")),
            ("list", Yaml::List(vec![scalar("1"), scalar("it's"), scalar("c")])),
            ("version", scalar("v1.2; a:b 2020-01-01 10:20:30 +0100")),
            (
                "outer",
                Yaml::Map(vec![
                    ("inner".into(), scalar("1")),
                    ("more".into(), Yaml::List(vec![scalar("x")])),
                ]),
            ),
        ];
        assert_eq!(map, want.map(|(key, value)| (key.to_owned(), value)));
        assert_eq!(parse("").unwrap(), []);
        assert_eq!(
            parse(" {\"a\": [1, \"b\"]}").unwrap(),
            [("a".to_owned(), Yaml::List(vec![scalar("1"), scalar("b")]))]
        );
    }

    #[test]
    fn keys_of_vocabularies_are_read() {
        let text = "\"</s>\": 0\n▁the: 1\n\"\\\"\": 2\n'#': 3\nC#: 4\na:b: 5\n\"\\x41\\u00e9\\U0001f600\\\\\": 6\n\"▁:\": 7\n-: 8\n--: 9\n";
        let map = parse(text).unwrap();
        let keys: Vec<&str> = map.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["</s>", "▁the", "\"", "#", "C#", "a:b", "Aé😀\\", "▁:", "-", "--"]);
        assert!(map.iter().zip(0..).all(|((_, value), i)| value.text() == Some(&format!("{i}"))));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_line() {
        for (text, want) in [
            ("a: 1\n b: 2\n", "line 2: \"b: 2\" is indented"),
            ("a: &x 1\n", "line 1: \"a: &x 1\" uses a part of YAML that is not read"),
            ("a: |\n  b\n", "uses a part of YAML that is not read"),
            ("? a\n: 1\n", "line 1"),
            ("a: \"b\n", "has a quote without its end"),
            ("a: \"\\q\"\n", "has an unknown escape"),
            ("a: \"\\ud800\"\n", "has a damaged escape"),
            ("a: \"b\" c\n", "goes on behind its value"),
            ("a: [1, 2\n", "has a list without its end"),
            ("a: [1 2", "has a list without its end"),
            ("a: 1\n---\nb: 2\n", "line 2: \"---\" begins another document"),
            ("words alone\n", "has no key with a colon"),
            ("\ta: 1\n", "is indented with a tab"),
            ("{\"a\": }", "not JSON"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(want), "{text:?}: {message}");
        }
        let deep: String = (0..20).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert!(parse(&deep).unwrap_err().contains("more levels than are read"));
    }
}
