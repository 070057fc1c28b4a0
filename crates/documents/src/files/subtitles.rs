//! SubRip (srt) and WebVTT (vtt) subtitles: the timing is kept, a sentence that spans several cues
//! is translated as a whole, and the lines of a cue keep approximately their length.

mod split;

use super::encoding::{Encoding, at, decode};
use super::{FileDocument, FileError, FileOptions, Format, Unit, WriteFile};
use crate::document::Document;
use crate::html::{self, AddText, EntityPlaceholders};
use crate::segment::{Escaping, Segment};
use regex::Regex;
use split::split;
use std::ops::Range;
use std::sync::LazyLock;

/// The maximum number of cues that are translated together.
const CUES: usize = 8;
/// The longest pause within a sentence, in milliseconds.
const PAUSE: u64 = 3_000;

pub(super) fn open(format: Format, bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (text, encoding) = decode(format, bytes)?;
    if format == Format::Vtt && !text.starts_with("WEBVTT") {
        return Err(at(format, &text, 0, "the first line of a vtt file must begin with WEBVTT"));
    }
    let groups = groups(&text, cues(format, &text)?);
    let language = options.source_language.as_deref();
    let is_xml = format == Format::Vtt;
    let unit = |group: &Group| {
        let mut document = Document::in_language(language);
        let mut reader = CueText { entities: EntityPlaceholders::new(&group.source), is_xml };
        let pieces = html::pieces(&group.source, html::Kind::Message, &mut document, &mut reader);
        document.add(pieces);
        Unit::new(&*group.source, document)
    };
    let units = groups.iter().map(unit).collect();
    Ok(FileDocument::new(units, Subtitles { text, encoding, groups }))
}

/// The text of a cue: vtt has entities, srt does not.
struct CueText {
    entities: EntityPlaceholders,
    is_xml: bool,
}

impl AddText for CueText {
    fn add_text(&mut self, raw: &str, segment: &mut Segment, _: &mut Document) {
        let entities = &mut self.entities;
        match self.is_xml {
            true => segment.decoded(raw, |text, escaping| {
                html::decode(raw, htmlize::Context::General, text, entities, (escaping, true));
            }),
            false => segment.text(raw),
        }
    }

    fn entities(&mut self) -> &mut EntityPlaceholders {
        &mut self.entities
    }

    fn escaping(&self) -> Escaping {
        if self.is_xml { Escaping::xml() } else { Escaping::default() }
    }
}

/// A cue: its start and end in milliseconds, and the byte ranges of its lines.
#[derive(Debug)]
struct Cue {
    start: u64,
    end: u64,
    lines: Vec<Range<usize>>,
}

/// The cues of a file. Everything except the text of cues is kept.
fn cues(format: Format, text: &str) -> Result<Vec<Cue>, FileError> {
    let mut cues: Vec<Cue> = Vec::new();
    let mut open = false;
    let mut start = 0;
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let content = line.trim_end_matches(['\r', '\n']);
        let is_number =
            !content.trim().is_empty() && content.trim().bytes().all(|byte| byte.is_ascii_digit());
        if content.contains("-->") {
            let Some((from, to)) = timing(content) else {
                let wanted = if format == Format::Vtt {
                    "00:01.000 --> 00:02.500"
                } else {
                    "00:00:01,000 --> 00:00:02,500"
                };
                return Err(at(format, text, start, format!("this is no timing; one looks like {wanted}")));
            };
            cues.push(Cue { start: from, end: to, lines: Vec::new() });
            open = true;
        } else if content.trim().is_empty()
            || (is_number && lines.peek().is_some_and(|next| next.contains("-->")))
        {
            open = false;
        } else if let Some(cue) = cues.last_mut().filter(|_| open) {
            cue.lines.push(start..start + content.len());
        }
        start += line.len();
    }
    if cues.is_empty() && format == Format::Srt && !text.trim().is_empty() {
        return Err(at(
            format,
            text,
            0,
            "there is no timing such as 00:00:01,000 --> 00:00:02,500 in the file",
        ));
    }
    Ok(cues)
}

/// Start and end in milliseconds of a line such as `00:00:01,000 --> 00:00:02,500`; hours are
/// optional.
fn timing(line: &str) -> Option<(u64, u64)> {
    static TIMING: LazyLock<Regex> = LazyLock::new(|| {
        let time = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})";
        Regex::new(&format!(r"^\s*{time}\s*-->\s*{time}(?:\s|$)")).expect("the pattern above is valid")
    });
    let found = TIMING.captures(line)?;
    let number =
        |group: usize| found.get(group).map_or(Some(0), |digits| digits.as_str().parse::<u64>().ok());
    let time = |first: usize| {
        Some(
            ((number(first)? * 60 + number(first + 1)?) * 60 + number(first + 2)?) * 1000
                + number(first + 3)?,
        )
    };
    Some((time(1)?, time(5)?))
}

/// The place in the file for a part of a translation.
#[derive(Debug)]
struct Slot {
    range: Range<usize>,
    /// The number of characters in each of its lines.
    lines: Vec<usize>,
}

/// Text that is translated together.
#[derive(Debug)]
struct Group {
    source: String,
    slots: Vec<Slot>,
}

/// Groups the text of the cues by sentence, as far as sentence ends can be found.
fn groups(text: &str, cues: Vec<Cue>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut last: Option<Cue> = None;
    for cue in cues {
        if cue.lines.is_empty() {
            continue;
        }
        let speech: Vec<&Range<usize>> =
            cue.lines.iter().filter(|line| dash(&text[(*line).clone()]) > 0).collect();
        if !speech.is_empty() {
            // Lines of different speakers are translated separately.
            let starts =
                cue.lines.iter().enumerate().filter(|(i, line)| *i == 0 || dash(&text[(*line).clone()]) > 0);
            let starts: Vec<usize> = starts.map(|(i, _)| i).collect();
            for (n, first) in starts.iter().enumerate() {
                let end = starts.get(n + 1).copied().unwrap_or(cue.lines.len());
                groups.push(group(text, &cue.lines[*first..end]));
            }
            last = None;
            continue;
        }
        let next = group(text, &cue.lines);
        match groups.last_mut() {
            Some(group)
                if group.slots.len() < CUES
                    && last.as_ref().is_some_and(|last| cue.start.saturating_sub(last.end) <= PAUSE)
                    && goes_on(&group.source, &next.source) =>
            {
                group.source = format!("{} {}", group.source, next.source);
                group.slots.extend(next.slots);
            }
            _ => groups.push(next),
        }
        last = Some(cue);
    }
    groups
}

/// The length of the dash and the spaces at the start of a speaker's line.
fn dash(line: &str) -> usize {
    let rest = line.trim_start();
    let after = rest.strip_prefix(['-', '–', '—', '‐']).map(str::trim_start);
    after.filter(|after| !after.is_empty()).map_or(0, |after| line.len() - after.len())
}

/// Groups lines that are translated together.
fn group(text: &str, lines: &[Range<usize>]) -> Group {
    static POSITION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\s*(?:\{\\[^{}]*\}\s*)+").expect("the pattern above is valid"));
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        return Group { source: String::new(), slots: Vec::new() };
    };
    let head = &text[first.clone()];
    // `{\an8}` sets the position of the cue on screen.
    let position = POSITION.find(head).map_or(0, |found| found.end());
    let start = first.start + position + dash(&head[position..]);
    let texts: Vec<&str> = (lines.iter().enumerate())
        .map(|(i, line)| text[if i == 0 { start } else { line.start }..line.end].trim())
        .collect();
    let slot = Slot { range: start..last.end, lines: texts.iter().map(|line| split::width(line)).collect() };
    Group { source: texts.join(" "), slots: vec![slot] }
}

/// Whether an unfinished sentence in `text` continues in `next`.
fn goes_on(text: &str, next: &str) -> bool {
    if next.starts_with("<v") {
        return false;
    }
    let (text, next) = (split::without_tags(text), split::without_tags(next));
    let last = text.trim_end().chars().next_back();
    let dots = text.trim_end().ends_with("...") || text.trim_end().ends_with('…');
    let first = next.trim_start_matches(['.', '…', ' ']).chars().next();
    let begins_small = first.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit());
    match last {
        Some(',' | '，' | '、') => true,
        Some(c) => begins_small && (dots || c.is_alphanumeric() || matches!(c, ';' | '-' | '–' | '—' | '\'')),
        None => false,
    }
}

#[derive(Debug)]
struct Subtitles {
    text: String,
    encoding: Encoding,
    groups: Vec<Group>,
}

impl WriteFile for Subtitles {
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError> {
        let line_end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let (mut out, mut at) = (String::with_capacity(self.text.len()), 0);
        for (group, text) in self.groups.iter().zip(texts) {
            if text == group.source {
                continue;
            }
            let lines: Vec<&[usize]> = group.slots.iter().map(|slot| slot.lines.as_slice()).collect();
            for (slot, lines) in group.slots.iter().zip(split(&text, &lines)) {
                out.push_str(&self.text[at..slot.range.start]);
                out.push_str(&lines.join(line_end));
                at = slot.range.end;
            }
        }
        out.push_str(&self.text[at..]);
        Ok(self.encoding.encode(&out))
    }
}

#[cfg(test)]
mod tests {
    use crate::files::testing::{capitals, identity, translated};
    use crate::files::{FileDocument, FileOptions, Format};

    fn capital(format: Format, text: &str) -> String {
        assert_eq!(identity(format, text.as_bytes()), text.as_bytes());
        translated(format, text, &FileOptions::default(), capitals)
    }

    #[test]
    fn a_sentence_that_goes_on_is_translated_as_one() {
        let text = "1\n00:00:01,000 --> 00:00:02,000\nThe old dog of our\nneighbour runs\n\n2\n00:00:02,100 --> 00:00:03,000\n\
                    over the wide field.\n\n3\n00:00:04,000 --> 00:00:05,000\nIt rains.\n";
        let document = FileDocument::open(Format::Srt, text.as_bytes(), &FileOptions::default()).unwrap();
        let sentences: Vec<&str> = document.sentences().map(|sentence| sentence.text.as_str()).collect();
        assert_eq!(sentences, ["The old dog of our neighbour runs over the wide field.", "It rains."]);
        assert_eq!(capital(Format::Srt, text), text.to_uppercase());
    }

    #[test]
    fn speakers_and_pauses_part_the_text() {
        let text = "1\r\n00:00:01,000 --> 00:00:02,000\r\n- Where is he\r\n- at home\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\n{\\an8}he said\r\n\r\n\
                    3\r\n00:00:30,000 --> 00:00:31,000\r\nlater\r\n";
        let document = FileDocument::open(Format::Srt, text.as_bytes(), &FileOptions::default()).unwrap();
        let sentences: Vec<&str> = document.sentences().map(|sentence| sentence.text.as_str()).collect();
        assert_eq!(sentences, ["Where is he", "at home", "he said", "later"]);
        let wanted = text.replace("Where is he", "WHERE IS HE").replace("at home", "AT HOME");
        let wanted = wanted.replace("he said", "HE SAID").replace("later", "LATER");
        assert_eq!(capital(Format::Srt, text), wanted);
    }

    #[test]
    fn settings_notes_and_tags_of_vtt_are_kept() {
        let text = "WEBVTT - a title\n\nNOTE\nnot this\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:02.000 align:start line:0\n\
                    <v Ann>fish &amp; <i>chips</i></v>\n\n00:03.000 --> 00:04.000\n<c.yellow>Go</c>\n";
        let wanted =
            text.replace("fish &amp; <i>chips</i>", "FISH &amp; <i>CHIPS</i>").replace(">Go<", ">GO<");
        assert_eq!(capital(Format::Vtt, text), wanted);
    }

    #[test]
    fn damaged_files_are_named_by_their_line() {
        let open = |format: Format, text: &str| {
            FileDocument::open(format, text.as_bytes(), &FileOptions::default()).unwrap_err().to_string()
        };
        assert_eq!(
            open(Format::Srt, "1\n00:00:01 --> 00:00:02,000\nHi\n"),
            "line 2 of the srt file: this is no timing; one looks like 00:00:01,000 --> 00:00:02,500"
        );
        assert!(open(Format::Srt, "hello\n").starts_with("line 1 of the srt file: there is no timing"));
        assert!(open(Format::Vtt, "1\n").contains("WEBVTT"));
    }
}
