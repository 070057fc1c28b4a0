//! What must come through a translation unharmed: addresses, placeholders, numbers, emoji.
//!
//! A sentence that holds nothing else is not translated at all. In other sentences the model sees these things in their place; afterwards
//! each is looked for in the translation, and put back where the model lost or changed it: at the word that attended to it,
//! or, where there is none, behind the word that attended to what stands before it. A number counts as unharmed if its digits are
//! there: 1,000.5 may become 1.000,5.

use crate::words::{Translation, Word, word_ranges};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Emoji with their joiners, flags and skin colours.
const EMOJI: &str = r"(?:[\p{Extended_Pictographic}\x{1F1E6}-\x{1F1FF}][\x{FE0F}\x{200D}\x{20E3}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*)+";

/// In the order in which they are tried at a place.
static PROTECTED: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = [
        r"(?i:https?|ftp)://[^\s<>\x{22}]*[^\s<>\x{22}.,;:!?)'’”»]",
        r"(?i:www)\.[^\s<>\x{22}]*[^\s<>\x{22}.,;:!?)'’”»]",
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
        r"</?[A-Za-z][^<>]*>",
        r"\{\{[^{}\n]*\}\}",
        r"\$?\{[^{}\n]{0,80}\}",
        r"%\(\w+\)[a-zA-Z]\b",
        r"%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?l{0,2}(?:[sdiufxXcgeE]\b|@)",
        r"\d+(?:[.,:/'’\x{A0}\x{202F}]\d+)*",
        // Stand-ins for entities that are not known.
        r"[\x{E000}-\x{F8FF}]",
        EMOJI,
    ];
    Regex::new(&kinds.join("|")).expect("the patterns above are valid")
});

static EMOJI_AT_START: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"^(?:{EMOJI}|\s)+")).expect("the pattern above is valid"));
static EMOJI_AT_END: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?:{EMOJI}|\s)+$")).expect("the pattern above is valid"));

/// The places in a sentence, in bytes.
pub(crate) fn protected(text: &str) -> Vec<Range<usize>> {
    let letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    PROTECTED
        .find_iter(text)
        .filter(|found| {
            // A number that is part of a word (3rd, MP3) is the model's.
            let number = found.as_str().starts_with(|c: char| c.is_ascii_digit());
            let before = text[..found.start()].chars().next_back();
            !(number && (letter(before) || letter(text[found.end()..].chars().next())))
        })
        .map(|found| found.range())
        .collect()
}

/// Those of `ranges`, which are in order, that lie inside of `outer`, counted from its start.
pub(crate) fn within(ranges: &[Range<usize>], outer: &Range<usize>) -> Vec<Range<usize>> {
    let first = ranges.partition_point(|range| range.start < outer.start);
    let inside = ranges[first..].iter().take_while(|range| range.start < outer.end && range.end <= outer.end);
    inside.map(|range| range.start - outer.start..range.end - outer.start).collect()
}

/// Whether there is anything to translate beside what is protected.
pub(crate) fn is_translatable(text: &str, protected: &[Range<usize>]) -> bool {
    let mut at = 0;
    for range in protected {
        if text[at..range.start].contains(char::is_alphabetic) {
            return true;
        }
        at = range.end;
    }
    text[at..].contains(char::is_alphabetic)
}

/// The text without the emoji and spaces at its ends: they stay where they are, whatever the model would do with them.
pub(crate) fn without_outer_emoji(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = EMOJI_AT_START.find(inside).map_or(0, |found| found.end());
    let end = EMOJI_AT_END.find(&inside[start..]).map_or(inside.len(), |found| start + found.start());
    range.start + start..range.start + end
}

/// Puts back what of `protected` the translation of `source` lacks, and holds each of them together as one word.
pub(crate) fn restore(source: &str, protected: &[Range<usize>], translation: &mut Translation) {
    let words = word_ranges(source);
    // What is found is put aside, so that it is neither found nor overwritten a second time.
    let mut settled: Vec<bool> = vec![false; translation.0.len()];
    let mut missing = Vec::new();
    for range in protected {
        let span = &source[range.clone()];
        if !settle(span, translation, &mut settled) {
            missing.push(range);
        }
    }
    for range in missing {
        let span = &source[range.clone()];
        let of = |word: usize| words[word].start < range.end && range.start < words[word].end;
        let own: Vec<usize> = (0..words.len()).filter(|&word| of(word)).collect();
        put_back(span, &own, translation, &mut settled);
    }
}

/// Finds the span among the words that are not settled; if it is there in another spacing or case, it is written as it should be.
fn settle(span: &str, translation: &mut Translation, settled: &mut Vec<bool>) -> bool {
    for first in 0..translation.0.len() {
        if settled[first] {
            continue;
        }
        let Some((last, before, after)) = spelt(span, &translation.0[first..], &settled[first..]) else {
            continue;
        };
        let last = first + last;
        let exact = match span.starts_with(|c: char| c.is_ascii_digit()) {
            // Separators may be the target language's.
            true => {
                let text: Vec<&str> = translation.0[first..=last].iter().map(|w| w.text.as_str()).collect();
                text.join(" ")
            }
            false => format!("{before}{span}{after}"),
        };
        translation.0[first].text = exact;
        translation.0.drain(first + 1..=last);
        settled[first] = true;
        settled.drain(first + 1..=last);
        return true;
    }
    false
}

/// How the span is spelt by the first words: the last of them, what precedes it in the first and what follows it in the last. Spaces
/// inside do not count, and neither does case; of a number, only the digits do.
fn spelt(span: &str, words: &[Word], settled: &[bool]) -> Option<(usize, String, String)> {
    let number = span.starts_with(|c: char| c.is_ascii_digit());
    let counts = |c: &char| if number { c.is_ascii_digit() } else { !c.is_whitespace() };
    let wanted: Vec<char> = span.chars().filter(counts).flat_map(char::to_lowercase).collect();
    let first = &words.first()?.text;
    for (start, c) in first.char_indices() {
        if c.to_lowercase().next() != wanted.first().copied() {
            continue;
        }
        let inside_number = number && first[..start].ends_with(|c: char| c.is_ascii_digit());
        if inside_number {
            continue;
        }
        let mut matched = 0;
        let mut from = start;
        for (i, word) in words.iter().enumerate() {
            if settled[i] {
                break;
            }
            for (at, c) in word.text[from..].char_indices() {
                if !counts(&c) {
                    let separator = number && matches!(c, '.' | ',' | ':' | '/' | '\'' | '’');
                    if !number || separator { continue } else { break }
                }
                let mut lower = c.to_lowercase();
                let same = lower.all(|l| {
                    matched += 1;
                    wanted.get(matched - 1) == Some(&l)
                });
                if !same {
                    break;
                }
                let end = from + at + c.len_utf8();
                if matched == wanted.len() {
                    let rest = &word.text[end..];
                    if number && rest.starts_with(|c: char| c.is_ascii_digit()) {
                        break;
                    }
                    return Some((i, first[..start].to_owned(), rest.to_owned()));
                }
            }
            // The word must have been used up for the next one to go on.
            if matched == 0 || !used_up(&word.text[from..], &wanted, matched, &counts) {
                break;
            }
            from = 0;
        }
    }
    None
}

/// Whether all that counts of `text` is the end of the `matched` characters of `wanted`.
fn used_up(text: &str, wanted: &[char], matched: usize, counts: &impl Fn(&char) -> bool) -> bool {
    let letters: Vec<char> = text.chars().filter(counts).flat_map(char::to_lowercase).collect();
    matched <= wanted.len() && wanted[..matched].ends_with(&letters)
}

/// Puts a span that is not there at the word that attended to its words, or behind one that attended to what precedes them.
fn put_back(span: &str, own: &[usize], translation: &mut Translation, settled: &mut Vec<bool>) {
    let from = own.first().copied();
    let attends = |word: &Word| word.from.is_some_and(|from| own.contains(&from));
    // A word much longer than the span is no failed copy of it: in a language without spaces it is the whole sentence.
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let most = 12.max(2 * letters(span));
    let mut places = translation.0.iter().enumerate().filter(|(i, w)| attends(w) && !settled[*i]);
    if let Some((at, word)) = places.find(|(_, w)| letters(&w.text) <= most) {
        let kept = word.text.trim_end_matches(['.', ',', '!', '?', ';', ':', ')', '"', '”', '»']).len();
        let mark = word.text[kept..].to_owned();
        translation.0[at] = Word::new(format!("{span}{mark}"), from);
        settled[at] = true;
        return;
    }
    let before = |word: &Word| word.from.is_some_and(|w| from.is_some_and(|from| w <= from));
    let nearest = (0..translation.0.len())
        .filter(|&i| before(&translation.0[i]))
        .max_by_key(|&i| (translation.0[i].from, i));
    // Everything attended to what comes later: before the first of it.
    let next = (0..translation.0.len())
        .filter(|&i| translation.0[i].from.is_some())
        .min_by_key(|&i| translation.0[i].from);
    let at = nearest.map(|i| i + 1).or(next).unwrap_or(translation.0.len());
    translation.0.insert(at, Word::new(span, from));
    settled.insert(at, true);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Vec<&str> {
        protected(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn what_is_protected() {
        for (text, wanted) in [
            (
                "See https://a.example/b?c=1&d=2), or www.b.example.",
                vec!["https://a.example/b?c=1&d=2", "www.b.example"],
            ),
            ("Mail me@some.example!", vec!["me@some.example"]),
            (
                "Hi {name}, {{count}} of ${all} %s %1$d %(who)s %@",
                vec!["{name}", "{{count}}", "${all}", "%s", "%1$d", "%(who)s", "%@"],
            ),
            ("100% sure, 5 %", vec!["100", "5"]),
            ("Click <x id=1/> or <b>this</b> if a < b", vec!["<x id=1/>", "<b>", "</b>"]),
            ("3rd of MP3, 1,000.50 at 12:30", vec!["1,000.50", "12:30"]),
            ("Hi 👩🏽‍🚀🇩🇪 you ❤️", vec!["👩🏽‍🚀🇩🇪", "❤️"]),
            ("nothing here", vec![]),
        ] {
            assert_eq!(spans(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_worth_translating() {
        for text in ["", " ", "🙂", "12.5 %", "https://a.example/path", "{name}: %s", "— … !"] {
            assert!(!is_translatable(text, &protected(text)), "{text}");
        }
        for text in ["a", "12 dogs", "{name} runs", "日本"] {
            assert!(is_translatable(text, &protected(text)), "{text}");
        }
    }

    #[test]
    fn emoji_at_the_ends_stay_there() {
        let text = "🙂 Hello 👍 you! ❤️🙂";
        assert_eq!(&text[without_outer_emoji(text, 0..text.len())], "Hello 👍 you!");
        assert!(without_outer_emoji("🙂", 0..4).is_empty());
    }

    fn restored(source: &str, words: &[(&str, usize)]) -> String {
        let mut translation =
            Translation(words.iter().map(|(text, from)| Word::new(*text, Some(*from))).collect());
        restore(source, &protected(source), &mut translation);
        translation.text()
    }

    #[test]
    fn what_is_unharmed_stays() {
        let words = [("{name}", 1), ("dit", 0), ("1.000,5.", 2)];
        assert_eq!(restored("says {name} 1,000.5.", &words), "{name} dit 1.000,5.");
    }

    #[test]
    fn what_is_spelt_otherwise_is_spelt_again() {
        let words = [("Salut", 0), ("{", 1), ("Name", 1), ("},", 1), ("va", 2)];
        assert_eq!(restored("Hi {name}, go", &words), "Salut {name}, va");
        let words = [("Voir", 0), ("(HTTPS:", 1), ("//a.example)", 1)];
        assert_eq!(restored("See (https://a.example)", &words), "Voir (https://a.example)");
    }

    #[test]
    fn what_is_lost_comes_back_at_its_word() {
        let words = [("Salut", 0), ("nom,", 1), ("va", 2)];
        assert_eq!(restored("Hi {name}, go", &words), "Salut {name}, va");
        // No word attended to it.
        assert_eq!(restored("Hi {name} go", &[("Salut", 0), ("va", 2)]), "Salut {name} va");
        assert_eq!(restored("{name} goes", &[("va", 1)]), "{name} va");
        assert_eq!(restored("To {name} it goes", &[("va", 3), ("il", 2)]), "va {name} il");
        // Twice in the source, once in the translation.
        let words = [("%s", 0), ("et", 1), ("x", 2)];
        assert_eq!(restored("%s and %s", &words), "%s et %s");
        // Without spaces the word is the sentence.
        assert_eq!(
            restored("Hi {n}", &[("こんにちは世界こんにちは世界", 1)]),
            "こんにちは世界こんにちは世界 {n}"
        );
    }

    #[test]
    fn numbers_are_told_apart() {
        // 12 is not 120, and 1 is not in 12.
        let words = [("120", 0), ("chiens", 1)];
        assert_eq!(restored("12 dogs", &words), "12 chiens");
        let words = [("12", 0), ("et", 1), ("un", 2)];
        assert_eq!(restored("12 and 1", &words), "12 et 1");
    }

    #[test]
    fn every_span_is_there_whatever_the_words_are() {
        let source = "Dear {name}, pay 3.50 at https://pay.example/x before 12:30 🙂 or %s!";
        for shift in 0..10 {
            let words: Vec<(&str, usize)> = (0..7)
                .map(|i| (["la", "le", "{", "3", "und", "https", "x"][i], (i * 5 + shift) % 11))
                .collect();
            let text = restored(source, &words);
            for span in spans(source) {
                assert!(text.contains(span), "{span} is not in {text}");
            }
        }
    }
}
