//! Splits a translation into cues and lines in proportion to the original ones.

/// The maximum line length of subtitles by common guidelines, in characters.
const LONGEST: usize = 42;

/// A word with the tags attached to it, or a tag on its own.
#[derive(Clone, Debug)]
struct Chunk<'a> {
    text: &'a str,
    /// Whether a space precedes it.
    spaced: bool,
    width: usize,
}

/// The text without its tags.
pub(super) fn without_tags(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        match rest[at..].find('>') {
            Some(end) => rest = &rest[at + end + 1..],
            None => {
                out.push_str(&rest[at..]);
                return out;
            }
        }
    }
    out + rest
}

/// The number of visible characters of a text.
pub(super) fn width(text: &str) -> usize {
    without_tags(text).chars().count()
}

/// Splits a text into the lines of each cue; `cues` are the lengths of the original lines.
pub(super) fn split(text: &str, cues: &[&[usize]]) -> Vec<Vec<String>> {
    let chunks = chunks(text);
    let sums: Vec<usize> = cues.iter().map(|lines| lines.iter().sum()).collect();
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for (part, lines) in parts(&chunks, &sums).into_iter().zip(cues) {
        let limit = lines.iter().copied().max().unwrap_or(0).max(LONGEST);
        let needed = total(part).div_ceil(limit);
        let even = vec![1; needed.max(1)];
        let weights = if needed > lines.len() { even.as_slice() } else { lines };
        let mut written: Vec<String> = parts(part, weights).into_iter().map(written).collect();
        written.retain(|line| !line.is_empty());
        reopen(&mut written, &mut open, part);
        found.push(written);
    }
    found
}

/// Closes the tags that are open at the end of a cue, and opens them again at the start of the
/// next.
fn reopen<'a>(lines: &mut [String], open: &mut Vec<&'a str>, part: &[Chunk<'a>]) {
    let before: String = open.concat();
    for tag in part.iter().flat_map(|chunk| tags(chunk.text)) {
        let name = name_of(tag);
        if tag.starts_with("</") {
            if let Some(place) = open.iter().rposition(|open| name_of(open) == name) {
                open.remove(place);
            }
        } else if !tag.ends_with("/>") && name.starts_with(|c: char| c.is_alphabetic()) {
            open.push(tag);
        }
    }
    // A WebVTT voice tag needs no end tag.
    let closing = open.iter().rev().map(|tag| name_of(tag)).filter(|name| *name != "v");
    let after: String = closing.map(|name| format!("</{name}>")).collect();
    if let Some(first) = lines.first_mut() {
        first.insert_str(0, &before);
    }
    if let Some(last) = lines.last_mut() {
        last.push_str(&after);
    }
}

/// The name in a tag.
fn name_of(tag: &str) -> &str {
    let inner = tag.trim_start_matches(['<', '/']);
    &inner[..inner.find(|c: char| !c.is_alphanumeric()).unwrap_or(inner.len())]
}

/// The tags of a chunk.
fn tags(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('<') {
        let Some(length) = rest[at..].find('>') else { break };
        found.push(&rest[at..at + length + 1]);
        rest = &rest[at + length + 1..];
    }
    found
}

/// Splits a text into words, or into characters for scripts without spaces. Tags are not split.
fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let (mut found, mut start, mut spaced, mut in_tag) = (Vec::new(), None, false, false);
    let mut push = |start: &mut Option<usize>, end: usize, spaced: &mut bool| {
        if let Some(start) = start.take() {
            let text = &text[start..end];
            found.push(Chunk { text, spaced: std::mem::take(spaced), width: width(text) });
        }
    };
    let mut wide_before = false;
    let last_end = text.rfind('>').unwrap_or(0);
    for (at, c) in text.char_indices() {
        match c {
            '<' if at < last_end => in_tag = true,
            '>' => in_tag = false,
            _ => {}
        }
        if in_tag || c == '>' {
            start.get_or_insert(at);
            continue;
        }
        if c.is_whitespace() {
            push(&mut start, at, &mut spaced);
            spaced = true;
            wide_before = false;
            continue;
        }
        if wide_before && is_wide(c) {
            push(&mut start, at, &mut spaced);
        }
        wide_before = is_wide(c);
        start.get_or_insert(at);
    }
    push(&mut start, text.len(), &mut spaced);
    found
}

/// Whether a character belongs to a script without spaces, in which a line can break anywhere.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{3000}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

fn total(chunks: &[Chunk<'_>]) -> usize {
    chunks.iter().map(|chunk| chunk.width + usize::from(chunk.spaced)).sum()
}

/// Splits chunks into one part per weight, in proportion to the weights, and preferably after a
/// punctuation mark.
fn parts<'a, 'b>(chunks: &'b [Chunk<'a>], weights: &[usize]) -> Vec<&'b [Chunk<'a>]> {
    let all: usize = weights.iter().sum::<usize>().max(1);
    let length = total(chunks);
    let ends: Vec<usize> = chunks
        .iter()
        .scan(0, |end, chunk| {
            *end += chunk.width + usize::from(chunk.spaced);
            Some(*end)
        })
        .collect();
    let (mut found, mut start, mut weight) = (Vec::new(), 0, 0);
    for (i, own) in weights.iter().enumerate() {
        weight += own;
        let later = weights.len() - i - 1;
        let end = match later {
            0 => chunks.len(),
            later => {
                let wanted = length * weight / all;
                // Leaves one chunk for each remaining part, if there are enough.
                let most = chunks.len().saturating_sub(later).max((start + 1).min(chunks.len()));
                let least = (start + 1).min(most);
                let cost = |end: usize| {
                    let off = ends.get(end.wrapping_sub(1)).copied().unwrap_or(0).abs_diff(wanted);
                    let marked = end > 0 && ends_phrase(chunks[end - 1].text);
                    off.saturating_sub(if marked { 6 } else { 0 }) * 2 + usize::from(!marked)
                };
                let near = ends.partition_point(|end| *end < wanted) + 1;
                let (low, high) = (near.saturating_sub(8).max(least), (near + 8).min(most));
                (low..=high.max(low)).filter(|end| *end <= most).min_by_key(|end| cost(*end)).unwrap_or(most)
            }
        };
        found.push(&chunks[start..end]);
        start = end;
    }
    found
}

fn ends_phrase(text: &str) -> bool {
    without_tags(text).ends_with([',', ';', ':', '.', '!', '?', '…', '。', '、', '，', '！', '？'])
}

/// Joins chunks into a line.
fn written(chunks: &[Chunk<'_>]) -> String {
    let mut out = String::new();
    for (i, chunk) in chunks.iter().enumerate() {
        if i > 0 && chunk.spaced {
            out.push(' ');
        }
        out.push_str(chunk.text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_they_were() {
        assert_eq!(split("one two three four", &[&[7, 10]]), [["one two", "three four"]]);
        assert_eq!(split("one two, three", &[&[14]]), [["one two, three"]]);
        let long = "word ".repeat(20);
        let lines = &split(long.trim_end(), &[&[40]])[0];
        assert!(lines.len() == 3 && lines.iter().all(|line| line.len() <= LONGEST), "{lines:?}");
    }

    #[test]
    fn cues_get_their_share() {
        let found = split("a b c d e f g h", &[&[4], &[12]]);
        assert_eq!(found, [["a b"], ["c d e f g h"]]);
        assert_eq!(split("a", &[&[4], &[4]]), [vec!["a".to_owned()], vec![]]);
        assert_eq!(split("", &[&[4], &[4]]), [Vec::<String>::new(), vec![]]);
        assert_eq!(split("日本語の字幕", &[&[3], &[3]]), [["日本語"], ["の字幕"]]);
    }

    #[test]
    fn tags_are_closed_and_opened_again() {
        let found = split("<i>one two three four</i>", &[&[7], &[10]]);
        assert_eq!(found, [["<i>one two</i>"], ["<i>three four</i>"]]);
        let found = split("<font color=\"a b\">x</font> y", &[&[1], &[1]]);
        assert_eq!(found, [["<font color=\"a b\">x</font>"], ["y"]]);
    }
}
