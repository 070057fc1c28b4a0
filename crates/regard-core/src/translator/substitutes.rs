//! Characters that a vocabulary lacks, and similar ones that it has.
//!
//! Small vocabularies have straight quotation marks and no typographic ones, and an unknown token
//! may become anything in a translation. So the model reads the similar character, and if its
//! translation has as many of those as the source has of the originals, they are restored.

use super::Candidate;
use crate::languages::codes;
use crate::text::Tokenizer;
use std::borrow::Cow;

/// Characters and their substitutes.
const SIMILAR: [(char, &str); 22] = [
    ('“', "\""),
    ('”', "\""),
    ('„', "\""),
    ('‟', "\""),
    ('«', "\""),
    ('»', "\""),
    ('‘', "'"),
    ('’', "'"),
    ('‚', "'"),
    ('‛', "'"),
    ('‹', "'"),
    ('›', "'"),
    ('`', "'"),
    ('´', "'"),
    ('…', "..."),
    ('–', "-"),
    ('—', "-"),
    ('―', "-"),
    ('−', "-"),
    ('‐', "-"),
    ('‑', "-"),
    ('∶', ":"),
];

/// Languages that do not use “ and ” as quotation marks.
const OTHER_QUOTES: [&str; 28] = [
    "be", "bg", "cs", "da", "de", "el", "et", "fi", "fr", "hr", "hu", "hy", "is", "ka", "lt", "lv", "mk",
    "nb", "nn", "no", "pl", "ro", "ru", "sk", "sl", "sr", "sv", "uk",
];

/// The characters that the vocabulary of a model lacks.
#[derive(Debug)]
pub(super) struct Substitutes {
    lacking: Vec<(char, &'static str)>,
    /// Whether “ and ” are right in the target language, if it is known.
    curly: bool,
}

impl Substitutes {
    pub(super) fn new(source: &Tokenizer, target_language: Option<&str>) -> Self {
        let unknown = source.unk();
        let knows =
            |text: &str| source.encode(text).is_ok_and(|ids| !ids.is_empty() && !ids.contains(&unknown));
        Self::of_known(knows, target_language)
    }

    fn of_known(knows: impl Fn(&str) -> bool, target_language: Option<&str>) -> Self {
        let lacks = |(c, similar): &(char, &str)| !knows(c.encode_utf8(&mut [0; 4])) && knows(similar);
        let other = |language: &str| codes(language).iter().any(|code| OTHER_QUOTES.contains(code));
        Substitutes {
            lacking: SIMILAR.into_iter().filter(lacks).collect(),
            curly: !target_language.is_some_and(other),
        }
    }

    /// The text with substitutes, as the model reads it.
    pub(super) fn replace<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let similar = |c: char| self.lacking.iter().find(|(lacking, _)| *lacking == c).map(|(_, text)| *text);
        if self.lacking.is_empty() || text.is_ascii() || !text.contains(|c| similar(c).is_some()) {
            return Cow::Borrowed(text);
        }
        let mut replaced = String::with_capacity(text.len());
        for c in text.chars() {
            match similar(c) {
                Some(similar) => replaced.push_str(similar),
                None => replaced.push(c),
            }
        }
        Cow::Owned(replaced)
    }

    /// Restores the original marks of the source in a translation.
    pub(super) fn restore(&self, source: &str, candidate: &mut Candidate) {
        let lacks = |c: char| self.lacking.iter().any(|(lacking, _)| *lacking == c);
        if source.is_ascii() || !source.contains(lacks) {
            return;
        }
        let text = &mut candidate.text;
        let quotes: Vec<char> = source.chars().filter(|&c| matches!(c, '“' | '”' | '"')).collect();
        let paired = quotes.chunks(2).all(|pair| pair == ['“', '”']);
        if self.curly && paired && lacks('“') && text.matches('"').count() == quotes.len() {
            *text = replace_in_order(text, "\"", quotes.into_iter());
        }
        let dots = source.matches('…').count();
        if dots > 0 && lacks('…') && !source.contains("...") && text.matches("...").count() == dots {
            *text = text.replace("...", "…");
        }
        let dash = |word: &&str| matches!(*word, "–" | "—" | "-");
        let dashes: Vec<&str> = source.split(' ').filter(dash).collect();
        let replaced = dashes.iter().all(|dash| dash.starts_with(lacks));
        if replaced && text.split(' ').filter(|word| *word == "-").count() == dashes.len() {
            let mut dashes = dashes.into_iter();
            let word = |word| if word == "-" { dashes.next().unwrap_or(word) } else { word };
            *text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
        }
    }
}

/// The text with each `from` replaced by the next of `to`.
fn replace_in_order(text: &str, from: &str, mut to: impl Iterator<Item = char>) -> String {
    let mut parts = text.split(from);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        replaced.extend(to.next());
        replaced.push_str(part);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(language: &str, source: &str, translation: &str) -> String {
        let substitutes = Substitutes::of_known(str::is_ascii, Some(language));
        let mut candidate = Candidate {
            text: translation.to_owned(),
            score: 0.0,
            tokens: Vec::new(),
            token_scores: Vec::new(),
            alignment: Vec::new(),
        };
        substitutes.restore(source, &mut candidate);
        candidate.text
    }

    #[test]
    fn unknown_marks_are_read_as_similar_ones() {
        let ascii = Substitutes::of_known(str::is_ascii, None);
        assert_eq!(ascii.replace("“It’s – well… 5∶3”, ça"), "\"It's - well... 5:3\", ça");
        assert!(matches!(ascii.replace("Ça va \"bien\""), Cow::Borrowed(_)));
        let all = Substitutes::of_known(|_| true, None);
        assert!(matches!(all.replace("“It’s”"), Cow::Borrowed(_)));
        // If the substitute is missing too, nothing is gained.
        let none = Substitutes::of_known(|text| text == "-", None);
        assert_eq!(none.replace("“a – b”"), "“a - b”");
    }

    #[test]
    fn marks_are_written_as_in_the_source() {
        let source = "The key “%s” — not “x” — is new…";
        let said = "A chave \"%s\" - não \"x\" - é nova...";
        assert_eq!(restored("pt", source, said), "A chave “%s” — não “x” — é nova…");
        assert_eq!(restored("de", source, "\"%s\" - \"x\" - neu..."), "\"%s\" — \"x\" — neu…");
    }

    #[test]
    fn what_does_not_fit_stays_as_it_is() {
        for (source, said) in [
            ("The key “%s” is “new”", "A chave \"%s\" é nova"),
            ("“a” and \"b\"", "\"a\" e \"b\""),
            ("a – b - c", "a - b - c"),
            ("wait… or ...", "espere... ou ..."),
            ("no marks", "\"sem\" - ..."),
        ] {
            assert_eq!(restored("pt", source, said), said, "{source}");
        }
    }
}
