//! Keyboard shortcuts (mnemonics) in menu entries: `&Open`, `E_xit`.

use crate::message::placeholders;

/// The letter of a text that is marked as its shortcut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortcut {
    /// `&` of Qt and Windows, or `_` of GTK.
    mark: char,
    letter: char,
}

/// Removes the shortcut mark from a text.
pub(super) fn strip(text: &str) -> (String, Option<Shortcut>) {
    for mark in ['&', '_'] {
        let mut places = text.match_indices(mark).map(|(at, _)| at);
        let (Some(at), None) = (places.next(), places.next()) else { continue };
        let Some(letter) = text[at + 1..].chars().next().filter(|c| c.is_alphanumeric()) else { continue };
        let is_shortcut: fn(&str, usize, char) -> bool =
            if mark == '&' { is_ampersand } else { is_underscore };
        if is_shortcut(text, at, letter) {
            return (format!("{}{}", &text[..at], &text[at + 1..]), Some(Shortcut { mark, letter }));
        }
    }
    (text.to_owned(), None)
}

/// Whether an `&` marks a shortcut: it is not part of an entity, a name such as AT&T, or a URL.
fn is_ampersand(text: &str, at: usize, letter: char) -> bool {
    let before = text[..at].chars().next_back();
    let name = before.is_some_and(|c| c.is_uppercase() || c.is_numeric()) && letter.is_uppercase();
    let word = text[at + 1..].find(|c: char| !c.is_alphanumeric()).map_or("", |end| &text[at + 1 + end..]);
    !name && !word.starts_with(';') && !word.starts_with('=') && !text.contains("://")
}

/// Whether an `_` marks a shortcut and is not part of a name such as `file_name`: it begins a word,
/// or stands inside a capitalised word, as menu entries have.
fn is_underscore(text: &str, at: usize, _: char) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '%' | '{' | '$' | '/');
    let start = text[..at]
        .rfind(|c| !is_name(c))
        .map_or(0, |place| place + text[place..].chars().next().map_or(0, char::len_utf8));
    let end = text[at + 1..].find(|c| !is_name(c)).map_or(text.len(), |end| at + 1 + end);
    let end = start + text[start..end].trim_end_matches('.').len();
    let word = format!("{}{}", &text[start..at], &text[at + 1..end]);
    let first = word.chars().next();
    word.chars().all(char::is_alphabetic)
        && (start == at
            || (first.is_some_and(char::is_uppercase) && word.chars().skip(1).all(char::is_lowercase)))
}

impl Shortcut {
    /// Marks the same letter in a translation, or another letter if the translation lacks it.
    pub(super) fn put_into(&self, text: &str) -> String {
        let kept = placeholder_places(text);
        let is_free = |at: usize| !kept.iter().any(|place| place.contains(&at));
        let same = |c: char| c.to_lowercase().eq(self.letter.to_lowercase());
        let letters: Vec<(usize, char)> =
            text.char_indices().filter(|(at, c)| c.is_alphanumeric() && is_free(*at)).collect();
        let begins = |at: usize| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let place = letters
            .iter()
            .find(|(at, c)| same(*c) && begins(*at))
            .or_else(|| letters.iter().find(|(_, c)| same(*c)))
            // In scripts without case, the original letter is appended in parentheses instead.
            .or_else(|| letters.iter().find(|(_, c)| c.is_lowercase() || c.is_uppercase()));
        match place {
            Some((at, _)) => format!("{}{}{}", &text[..*at], self.mark, &text[*at..]),
            None => {
                let end = text.trim_end_matches(['.', '…', ':', '：', ' ']).len();
                let letter = self.letter.to_uppercase();
                format!("{}({}{letter}){}", &text[..end], self.mark, &text[end..])
            }
        }
    }
}

/// The byte ranges of the placeholders of a text.
fn placeholder_places(text: &str) -> Vec<std::ops::Range<usize>> {
    let start = text.as_ptr() as usize;
    let place = |found: &str| found.as_ptr() as usize - start;
    placeholders(text).into_iter().map(|found| place(found)..place(found) + found.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_other_ampersands_and_underscores() {
        for (text, plain) in [
            ("&Open file…", "Open file…"),
            ("Save &As...", "Save As..."),
            ("E&xit", "Exit"),
            ("_File", "File"),
            ("Cu_t", "Cut"),
            ("Zoom _in", "Zoom in"),
            ("_Quit.", "Quit."),
        ] {
            let (found, shortcut) = strip(text);
            assert_eq!(found, plain);
            let shortcut = shortcut.unwrap();
            assert!(text.contains(&format!("{}{}", shortcut.mark, shortcut.letter)), "{text}");
        }
        for text in [
            "Fish & chips",
            "AT&T",
            "R&D",
            "&amp; more",
            "a&b&c",
            "file_name",
            "http://a.example/?a&b=1",
            "my_var is",
            "%(file_name)s",
            "one _ two",
            "&",
            "_",
        ] {
            assert_eq!(strip(text), (text.to_owned(), None));
        }
    }

    #[test]
    fn a_translation_has_one_mark() {
        let put = |text: &str, into: &str| strip(text).1.unwrap().put_into(into);
        assert_eq!(put("&Open", "Öffnen und offen"), "Öffnen und &offen");
        assert_eq!(put("E&xit", "Text beenden"), "Te&xt beenden");
        assert_eq!(put("&Quit", "Beenden"), "&Beenden");
        assert_eq!(put("_Save %s", "%s speichern"), "%s _speichern");
        assert_eq!(put("&File...", "ファイル..."), "ファイル(&F)...");
        assert_eq!(put("&File", ""), "(&F)");
    }
}
