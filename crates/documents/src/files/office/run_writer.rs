//! Writes translated paragraphs as runs.

use super::inline::{Kind, Step, Tag};
use super::runs::{Dialect, LINE, Runs};
use std::ops::Range;

/// The state of writing runs.
struct Writer<'a> {
    runs: &'a Runs,
    out: &'a mut String,
    /// Pending text and its properties.
    text: String,
    properties: String,
}

impl Runs {
    /// Writes a translated paragraph; `copy` writes a range of the part.
    pub(super) fn write(
        &self,
        steps: Vec<Step<'_>>,
        tags: &[Tag],
        copy: impl Fn(&Range<usize>, &mut String),
        out: &mut String,
    ) {
        let mut writer = Writer { runs: self, out, text: String::new(), properties: String::new() };
        // The run properties of each open element.
        let mut around: Vec<&str> = vec![&self.properties];
        for step in steps {
            match step {
                Step::Text(text) => writer.add(text, around.last().copied().unwrap_or_default()),
                Step::Open(number) => match &tags[number].kind {
                    Kind::Run { properties } => around.push(properties),
                    Kind::Container { open, properties, .. } => {
                        copy(open, writer.flushed());
                        around.push(properties);
                    }
                    _ => around.push(&self.properties),
                },
                Step::Close(number) => {
                    around.pop();
                    if let Kind::Container { close, .. } = &tags[number].kind {
                        copy(close, writer.flushed());
                    }
                }
                Step::Point(number) => match &tags[number].kind {
                    Kind::RunPoint { properties, .. } if properties == LINE => {
                        writer.add("\n", around.last().copied().unwrap_or_default());
                    }
                    Kind::RunPoint { properties, range } => {
                        let out = writer.flushed();
                        out.push_str(&format!("<{}r>{properties}", self.prefix));
                        copy(range, out);
                        out.push_str(&format!("</{}r>", self.prefix));
                    }
                    Kind::Point { range } => copy(range, writer.flushed()),
                    _ => {}
                },
            }
        }
        writer.flushed();
    }
}

impl Writer<'_> {
    fn add(&mut self, text: &str, properties: &str) {
        if text.is_empty() {
            return;
        }
        if properties != self.properties {
            self.flushed();
            self.properties = properties.to_owned();
        }
        self.text.push_str(text);
    }

    /// Writes the pending text as a run.
    fn flushed(&mut self) -> &mut String {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            let Runs { prefix, dialect, plain, .. } = self.runs;
            let outer = text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace);
            let space = match dialect {
                Dialect::Word | Dialect::Sheet if outer => " xml:space=\"preserve\"",
                _ => "",
            };
            let element = format!("<{prefix}t{space}>{text}</{prefix}t>");
            match plain {
                true => self.out.push_str(&element),
                false => {
                    let properties = &self.properties;
                    self.out.push_str(&format!("<{prefix}r>{properties}{element}</{prefix}r>"));
                }
            }
        }
        self.out
    }
}
