//! Sanitises, measures and shortens labels.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Removes everything that could break a line, a terminal or an XML file: control characters become
/// their symbols (␀ … ␡), a leading combining mark gets a dotted circle as its base, and text
/// direction controls become �.
pub(super) fn clean(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        out.push(match c {
            '\u{0}'..='\u{1F}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{FFFD}'),
            '\u{7F}' => '\u{2421}',
            '\u{80}'..='\u{9F}' | '\u{FFFE}' | '\u{FFFF}' | '\u{2028}' | '\u{2029}' => '\u{FFFD}',
            '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                '\u{FFFD}'
            }
            c => c,
        });
    }
    if out.chars().next().is_some_and(|c| c.width().unwrap_or(0) == 0) {
        out.insert(0, '\u{25CC}');
    }
    out
}

/// The number of terminal columns that a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens a text to at most `most` columns, with … where something was omitted.
pub(super) fn truncate(text: &str, most: usize) -> String {
    // A label may be a whole file, so only the part that could fit is measured, including
    // zero-width marks.
    let bounded = text.char_indices().nth(most * 4 + 16).map_or(text, |(at, _)| &text[..at]);
    if bounded.len() == text.len() && columns(text) <= most {
        return text.to_string();
    }
    if most == 0 {
        return String::new();
    }
    let mut out = String::new();
    for c in bounded.chars() {
        out.push(c);
        if columns(&out) >= most {
            break;
        }
    }
    while columns(&out) > most - 1 {
        out.pop();
    }
    out.push('…');
    out
}

/// The characters of a text, each with the zero-width marks that follow it; joiners, which would
/// bind it to a neighbour, are removed.
pub(super) fn clusters(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in text.chars().filter(|c| !matches!(c, '\u{200D}' | '\u{FE0F}')) {
        match out.last_mut() {
            Some(last) if c.width().unwrap_or(0) == 0 => last.push(c),
            _ => out.push(c.to_string()),
        }
    }
    out
}

/// The width of a text in a monospaced font of this size; exact up to the reader's choice of font.
pub(super) fn mono_width(text: &str, size: f64) -> f64 {
    columns(text) as f64 * size * 0.6
}

/// The width of a text in a proportional system font, overestimated rather than underestimated.
pub(super) fn sans_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.34,
            'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | '·' => 0.42,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
            'A'..='Z' => 0.7,
            c if c.is_ascii() => 0.59,
            c => 0.62 * c.width().unwrap_or(0) as f64,
        })
        .sum();
    em * size
}

/// Shortens a text to at most `most` units of length in a proportional font.
pub(super) fn fit(text: &str, size: f64, most: f64) -> String {
    let full = columns(text);
    let fitting = (0..=full).rev().map(|n| truncate(text, n)).find(|t| sans_width(t, size) <= most);
    fitting.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_harmless() {
        assert_eq!(clean("a\tb\n\u{1b}[31m"), "a␉b␊␛[31m");
        assert_eq!(clean("\u{301}x"), "◌\u{301}x");
        assert_eq!(clean("a\u{202E}b\u{FFFF}"), "a\u{FFFD}b\u{FFFD}");
        assert_eq!(clean("Grüße 你好"), "Grüße 你好");
        assert_eq!(clean(""), "");
    }

    #[test]
    fn truncation_counts_columns_and_not_characters() {
        assert_eq!(truncate("hello", 5), "hello");
        assert_eq!(truncate("hello!", 5), "hell…");
        assert_eq!(truncate("你好世界", 8), "你好世界");
        assert_eq!(truncate("你好世界", 7), "你好世…");
        assert_eq!(truncate("你好世界", 6), "你好…");
        assert_eq!(truncate("e\u{301}e\u{301}", 2), "e\u{301}e\u{301}");
        assert_eq!(truncate("abc", 1), "…");
        assert_eq!(truncate("abc", 0), "");
        let long = "x".repeat(1_000_000);
        assert_eq!(truncate(&long, 4), "xxx…");
        for most in 0..12 {
            assert!(columns(&truncate("❤️👩‍👩‍👧 a你\u{301}", most)) <= most);
        }
    }

    #[test]
    fn clusters_keep_marks_with_their_letter() {
        assert_eq!(clusters("e\u{301}a"), ["e\u{301}", "a"]);
        assert!(clusters("").is_empty());
    }
}
