//! Markdown: paragraphs, headings, lists, tables and quotations are translated; code, URLs, front
//! matter and everything else stay byte for byte. Emphasis and links move with their words.

use super::encoding::decode;
use super::splice::whole;
use super::{FileDocument, FileError, FileOptions, Format};
use crate::document::{Document, Piece};
use crate::html;
use crate::segment::{Escaping, Segment};
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use std::ops::Range;

pub(super) fn open(bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(Format::Markdown, bytes)?;
    let document = document(&text, options.source_language.as_deref());
    Ok(whole(text, encoding, document))
}

fn document(text: &str, language: Option<&str>) -> Document {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut walker = Walker {
        text,
        document: Document::in_language(language),
        segment: Segment::default(),
        at: 0,
        in_table: false,
        skip: 0,
        opaque: None,
    };
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        walker.event(&event, range);
    }
    walker.flush();
    walker.document.keep(&text[walker.at..]);
    walker.document
}

/// A parser over a file: everything before `at` is already in the document or in the segment.
struct Walker<'a> {
    text: &'a str,
    document: Document,
    segment: Segment,
    at: usize,
    in_table: bool,
    /// The number of open elements whose content is kept.
    skip: usize,
    /// An open HTML element whose text is not translated: its name, its start and its text so far.
    opaque: Option<(String, usize, String)>,
}

impl<'a> Walker<'a> {
    fn event(&mut self, event: &Event<'_>, range: Range<usize>) {
        if self.skip > 0 {
            match event {
                Event::Start(_) => self.skip += 1,
                Event::End(_) => self.skip -= 1,
                _ => {}
            }
            return;
        }
        if self.opaque.is_some() {
            return self.opaque_event(event, range);
        }
        match event {
            Event::Text(text) => self.words(text, range),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.code(range, text),
            Event::InlineHtml(_) => self.inline_html(range),
            Event::SoftBreak => {
                self.begin(range.start);
                let raw = self.upto(self.line_start(range.end));
                self.segment.decoded(raw, |text, _| text.push(' '));
            }
            Event::FootnoteReference(_) => self.point(range),
            Event::HardBreak | Event::Rule | Event::TaskListMarker(_) => self.flush(),
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(*tag, range),
            Event::Html(_) => {}
        }
    }

    /// The text from the end of the last event up to `end`.
    fn upto(&mut self, end: usize) -> &'a str {
        let end = end.max(self.at);
        let raw = self.text.get(self.at..end).unwrap_or_default();
        self.at += raw.len();
        raw
    }

    /// The start of the text of a line, after its indentation and quotation markers.
    fn line_start(&self, start: usize) -> usize {
        let rest = self.text.get(start..).unwrap_or_default();
        self.text.len() - rest.trim_start_matches([' ', '\t', '>']).len()
    }

    /// Prepares the segment for inline content at `start`, and keeps the text before it.
    fn begin(&mut self, start: usize) {
        if self.segment.is_full() {
            self.flush();
        }
        let raw = self.upto(start);
        match self.segment.is_empty() {
            true => {
                self.document.keep(raw);
                let mut escaping = Escaping::default();
                if self.in_table {
                    escaping.record('|', || "\\|".to_owned());
                }
                self.segment = Segment::new(escaping);
            }
            false => self.segment.decoded(raw, |_, _| {}),
        }
    }

    /// Finishes the current segment.
    fn flush(&mut self) {
        let segment = std::mem::take(&mut self.segment);
        let pieces = segment.finish(&mut self.document);
        self.document.add(pieces);
    }

    fn words(&mut self, decoded: &str, range: Range<usize>) {
        // The backslash of `\*` is part of the escaped character.
        let before = self.text.get(self.at..range.start).unwrap_or_default();
        let escape = before.ends_with('\\') && decoded.starts_with(|c: char| c.is_ascii_punctuation());
        self.begin(if escape { range.start - 1 } else { range.start });
        let raw = self.upto(range.end);
        let first = decoded.chars().next();
        self.segment.decoded(raw, |text, escaping| {
            text.push_str(decoded);
            match first {
                Some(c) if escape => escaping.record(c, || format!("\\{c}")),
                Some(c) if raw.starts_with('&') && decoded.len() == c.len_utf8() && raw != decoded => {
                    escaping.record(c, || raw.to_owned());
                }
                _ => {}
            }
        });
    }

    /// Adds inline content that is not translated.
    fn code(&mut self, range: Range<usize>, text: &str) {
        self.begin(range.start);
        let raw = self.upto(range.end);
        self.segment.opaque(vec![Piece::Keep(raw.to_owned())], text);
    }

    fn point(&mut self, range: Range<usize>) {
        self.begin(range.start);
        let raw = self.upto(range.end);
        self.segment.point(vec![Piece::Keep(raw.to_owned())]);
    }

    /// Adds an inline HTML tag.
    fn inline_html(&mut self, range: Range<usize>) {
        let raw = self.text.get(range.clone()).unwrap_or_default();
        match html::inline_tag(raw) {
            html::InlineTag::Open(name) => {
                self.begin(range.start);
                let raw = self.upto(range.end);
                self.segment.open(&name, vec![Piece::Keep(raw.to_owned())]);
            }
            html::InlineTag::Close(name) => {
                self.begin(range.start);
                let raw = self.upto(range.end);
                self.segment.close(&name, raw);
            }
            html::InlineTag::Opaque(name) => {
                self.begin(range.start);
                self.opaque = Some((name, range.start, String::new()));
            }
            html::InlineTag::Point => self.point(range),
            html::InlineTag::Break => {
                self.flush();
                let raw = self.upto(range.end);
                self.document.keep(raw);
            }
        }
    }

    /// Handles an event inside an element whose text is not translated.
    fn opaque_event(&mut self, event: &Event<'_>, range: Range<usize>) {
        let Some((name, start, content)) = &mut self.opaque else { return };
        let closes = match event {
            Event::Text(text) | Event::Code(text) => {
                content.push_str(text);
                false
            }
            Event::InlineHtml(tag) => html::inline_tag(tag) == html::InlineTag::Close(name.clone()),
            _ => false,
        };
        let block = matches!(event, Event::End(tag) if !is_inline_end(*tag));
        if closes {
            let (start, content) = (*start, std::mem::take(content));
            self.opaque = None;
            self.code(start..range.end, &content);
        } else if block {
            // The element is never closed, so its text is kept.
            self.opaque = None;
            self.flush();
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        let marker = match tag {
            Tag::Emphasis => 1,
            Tag::Strong => 2,
            Tag::Strikethrough => {
                let raw = self.text.get(range.clone()).unwrap_or_default();
                raw.len() - raw.trim_start_matches('~').len()
            }
            Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. } => {
                let address = self.text.get(range.clone()).unwrap_or_default().trim_matches(['<', '>']);
                self.code(range.clone(), address);
                self.skip = 1;
                return;
            }
            Tag::Link { .. } => 1,
            Tag::Image { .. } => 2,
            Tag::CodeBlock(_) | Tag::MetadataBlock(_) => {
                self.flush();
                self.skip = 1;
                return;
            }
            Tag::HtmlBlock => {
                self.flush();
                let raw = self.upto(range.start);
                self.document.keep(raw);
                let raw = self.upto(range.end);
                html::add_block(raw, &mut self.document);
                self.skip = 1;
                return;
            }
            tag => {
                self.flush();
                self.in_table |= matches!(tag, Tag::Table(_));
                return;
            }
        };
        self.begin(range.start);
        let raw = self.upto(range.start + marker);
        self.segment.open(name_of(tag.to_end()), vec![Piece::Keep(raw.to_owned())]);
        if let Tag::Link { link_type: LinkType::Shortcut | LinkType::Collapsed, .. } = tag {
            // In `[word]`, the text is also the link label, which must stay.
            let raw = self.text.get(range.clone()).unwrap_or_default();
            let label = raw.trim_end_matches("[]").trim_start_matches('[').trim_end_matches(']');
            self.segment.name_reference(label);
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        if is_inline_end(tag) {
            if self.segment.is_empty() {
                return;
            }
            let raw = self.upto(range.end);
            self.segment.close(name_of(tag), raw);
        } else {
            self.flush();
            self.in_table &= !matches!(tag, TagEnd::Table);
        }
    }
}

fn is_inline_end(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

fn name_of(tag: TagEnd) -> &'static str {
    match tag {
        TagEnd::Emphasis => "*",
        TagEnd::Strong => "**",
        TagEnd::Strikethrough => "~",
        TagEnd::Link => "[",
        _ => "![",
    }
}

#[cfg(test)]
mod tests {
    use crate::files::testing::{capitals, identity, translated};
    use crate::files::{FileOptions, Format};

    fn capital(text: &str) -> String {
        assert_eq!(identity(Format::Markdown, text.as_bytes()), text.as_bytes());
        translated(Format::Markdown, text, &FileOptions::default(), capitals)
    }

    #[test]
    fn text_is_translated_and_code_is_kept() {
        for (text, wanted) in [
            ("# one dog #\n\ntwo\ncats\n", "# ONE DOG #\n\nTWO CATS\n"),
            (
                "call `f(x)` now\n\n```rust\nlet a = one;\n```\n\n    indented code\n",
                "CALL `f(x)` NOW\n\n```rust\nlet a = one;\n```\n\n    indented code\n",
            ),
            ("a **big** and *old* ~~dog~~ runs", "A **BIG** AND *OLD* ~~DOG~~ RUNS"),
            (
                "see [the page](http://a.example \"t\") or <http://b.example>",
                "SEE [THE PAGE](http://a.example \"t\") OR <http://b.example>",
            ),
            ("![a dog](dog.png)\n", "![A DOG](dog.png)\n"),
            ("- one\n- [ ] two\n  three\n\n1. four\n", "- ONE\n- [ ] TWO THREE\n\n1. FOUR\n"),
            ("> one\n> two\n", "> ONE TWO\n"),
            ("| a b | c |\n|:---|---|\n| d `x\\|y` | e |\n", "| A B | C |\n|:---|---|\n| D `x\\|y` | E |\n"),
            ("---\ntitle: one\n---\n\ntwo\n", "---\ntitle: one\n---\n\nTWO\n"),
            ("a \\*star\\* &copy; b", "A \\*STAR\\* &copy; B"),
            ("one  \ntwo\\\nthree\n", "ONE  \nTWO\\\nTHREE\n"),
            ("<div align=\"left\">\n\none\n\n</div>\n", "<div align=\"left\">\n\nONE\n\n</div>\n"),
            ("<p>one <b>two</b></p>\n", "<p>ONE <b>TWO</b></p>\n"),
            ("press <kbd>enter</kbd> <b>now</b><br>go", "PRESS <kbd>enter</kbd> <b>NOW</b><br>GO"),
            ("one[^1]\n\n[^1]: a note\n", "ONE[^1]\n\n[^1]: A NOTE\n"),
            (
                "see [one][ref] here\n\n[ref]: http://a.example\n",
                "SEE [ONE][ref] HERE\n\n[ref]: http://a.example\n",
            ),
            (
                "see [ref] or [ref][] here\n\n[ref]: http://a.example\n",
                "SEE [REF][ref] OR [REF][ref] HERE\n\n[ref]: http://a.example\n",
            ),
        ] {
            assert_eq!(capital(text), wanted);
        }
    }

    #[test]
    fn any_text_comes_back() {
        for text in [
            "",
            "\n",
            "\r\n\r\n",
            "*",
            "**a",
            "[a](",
            "![](x)",
            "a\r\nb\r\n",
            "\u{feff}# é\n",
            "<b>x",
            "a <kbd>b",
            "`a",
            "- \n- a",
            "> > a\n> b\n",
            "| a |\n|--|\n| \\| b |",
            "* a\n\n      code\n  b",
            "a\tb",
            "1) a\n2) b",
            "***a** b*",
            "&amp",
            "\\",
        ] {
            assert_eq!(identity(Format::Markdown, text.as_bytes()), text.as_bytes(), "{text:?}");
        }
    }
}
