//! Restores protected spans that a translation lost.
//!
//! Each span of the source is searched for in the translation, ignoring spacing and case. A number
//! counts as intact if its digits are there, so 1,000.5 may become 1.000,5. Of several matches, one
//! with the exact spelling is preferred, then one whose word attended to the span. A missing span
//! is inserted at the word that attended to it or, if there is none, after the word that attended
//! to the text before it.

use crate::words::{Translation, Word, word_ranges};
use std::collections::HashMap;
use std::ops::Range;

/// Restores the spans of `protected` that the translation of `source` lacks, and makes each span
/// part of a single word.
pub(crate) fn restore(source: &str, protected: &[Range<usize>], translation: &mut Translation) {
    let words = word_ranges(source);
    let mut edits = Vec::new();
    let mut missing = Vec::new();
    let mut finder = Finder::new(&translation.0);
    for range in protected {
        let span = Span::new(source, &words, range);
        match finder.claim(&span, false) {
            Some(place) => {
                // A number may use the separators of the target language.
                let text =
                    if span.is_number { number(&span, finder.written(&place)) } else { span.text.to_owned() };
                edits.push((place, text));
            }
            None => missing.push(span),
        }
    }
    let mut occupied = apply(edits, translation);
    for span in missing {
        insert_missing(&span, translation, &mut occupied);
    }
}

/// A number as the translation writes it, with the non-breaking spaces of the source between its
/// digits.
fn number(span: &Span<'_>, written: String) -> String {
    match span.text.chars().find(|c| matches!(c, '\u{a0}' | '\u{202f}')) {
        Some(space) => written.replace(' ', space.encode_utf8(&mut [0; 4])),
        None => written,
    }
}

/// A span of the source to find in the translation.
pub(crate) struct Span<'a> {
    text: &'a str,
    /// The source words that it overlaps.
    own: Range<usize>,
    /// The characters next to it in its words.
    before: Option<char>,
    after: Option<char>,
    is_number: bool,
}

impl<'a> Span<'a> {
    /// The span at `range` of a source with these words.
    pub(crate) fn new(source: &'a str, words: &[Range<usize>], range: &Range<usize>) -> Self {
        let text = &source[range.clone()];
        let first = words.partition_point(|word| word.end <= range.start);
        let last = first + words[first..].partition_point(|word| word.start < range.end);
        let in_word = |c: &char| !c.is_whitespace();
        Span {
            text,
            own: first..last,
            before: source[..range.start].chars().next_back().filter(in_word),
            after: source[range.end..].chars().next().filter(in_word),
            is_number: is_number(text),
        }
    }
}

/// Whether a character may separate the digits of a number.
fn is_separator(c: char) -> bool {
    matches!(c, '.' | ',' | ':' | '/' | '\'' | '’' | '\u{a0}' | '\u{202f}')
}

/// Whether a span is a number, whose separators depend on the language. A URL or an email address
/// may begin with a digit, too.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || is_separator(c))
}

/// A match in a translation: from a byte of its first word to a byte of its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) words: std::ops::RangeInclusive<usize>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A character of the translation, in lower case.
struct Letter {
    c: char,
    word: usize,
    /// Its byte range in the word; several letters share a range if lower case expands a character.
    bytes: Range<usize>,
    taken: bool,
}

/// Finds spans in a translation, assigning each place to one span only.
pub(crate) struct Finder<'a> {
    words: &'a [Word],
    letters: Vec<Letter>,
    /// Where a match can begin, by its first letter.
    starts: HashMap<char, Vec<usize>>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(words: &'a [Word]) -> Self {
        let mut letters = Vec::new();
        let mut starts: HashMap<char, Vec<usize>> = HashMap::new();
        for (word, text) in words.iter().map(|word| word.text.as_str()).enumerate() {
            for (at, c) in text.char_indices() {
                let place = letters.len();
                let lower = c.to_lowercase();
                letters.extend(lower.map(|l| Letter {
                    c: l,
                    word,
                    bytes: at..at + c.len_utf8(),
                    taken: false,
                }));
                starts.entry(letters[place].c).or_default().push(place);
            }
        }
        Finder { words, letters, starts }
    }

    /// Finds and claims the best match of a span; if `exactly` is set, only a match with the same
    /// spelling.
    pub(crate) fn claim(&mut self, span: &Span<'_>, exactly: bool) -> Option<Occurrence> {
        let counts = |c: &char| if span.is_number { c.is_ascii_digit() } else { !c.is_whitespace() };
        let wanted: Vec<char> = span.text.chars().filter(counts).flat_map(char::to_lowercase).collect();
        let mut best: Option<(usize, Range<usize>)> = None;
        for &start in self.starts.get(wanted.first()?)? {
            let Some(letters) = self.matched(start, &wanted, span) else { continue };
            let rank = self.rank(&letters, span);
            if (!exactly || rank >= EXACT) && best.as_ref().is_none_or(|(other, _)| rank > *other) {
                best = Some((rank, letters));
            }
            if rank == BEST {
                break;
            }
        }
        let (_, letters) = best?;
        self.letters[letters.clone()].iter_mut().for_each(|letter| letter.taken = true);
        Some(self.place(&letters))
    }

    /// The letters from `start` on, if they spell `wanted`. Spaces are ignored, and for numbers
    /// separators, too.
    fn matched(&self, start: usize, wanted: &[char], span: &Span<'_>) -> Option<Range<usize>> {
        let between = |c: char| if span.is_number { is_separator(c) } else { c.is_whitespace() };
        let (mut end, mut found) = (start, 0);
        while found < wanted.len() {
            let letter = self.letters.get(end).filter(|letter| !letter.taken)?;
            match letter.c == wanted[found] {
                true => found += 1,
                false if between(letter.c) => {}
                false => return None,
            }
            end += 1;
        }
        let (first, last) = (&self.letters[start], &self.letters[end - 1]);
        let inside = |letter: Option<&Letter>, of: &Letter| {
            letter.is_some_and(|l| l.word == of.word && l.bytes == of.bytes)
        };
        let cut =
            inside(self.letters.get(end), last) || (start > 0 && inside(self.letters.get(start - 1), first));
        // A span that is a separate word in the source must not match inside a word.
        let joins = |a: Option<char>, b: Option<char>| match (a, b) {
            (Some(a), Some(b)) if span.is_number => a.is_ascii_digit() && b.is_ascii_digit(),
            (Some(a), Some(b)) => [a, b].iter().all(|c| c.is_alphanumeric() && *c < '\u{590}'),
            _ => false,
        };
        let (head, tail) = (span.text.chars().next(), span.text.chars().next_back());
        let (before, after) = (self.before(start), self.after(end));
        let within = (joins(before, head) && !joins(span.before, head))
            || (joins(tail, after) && !joins(tail, span.after));
        (!cut && !within).then_some(start..end)
    }

    /// The character before a letter in the same word.
    fn before(&self, letter: usize) -> Option<char> {
        let letter = &self.letters[letter];
        let before = self.words[letter.word].text[..letter.bytes.start].chars().next_back();
        before.filter(|c| !c.is_whitespace())
    }

    /// The character after the letters that end at `end`, in the word of the last letter.
    fn after(&self, end: usize) -> Option<char> {
        let letter = &self.letters[end - 1];
        let after = self.words[letter.word].text[letter.bytes.end..].chars().next();
        after.filter(|c| !c.is_whitespace())
    }

    /// How good a match is.
    fn rank(&self, letters: &Range<usize>, span: &Span<'_>) -> usize {
        let exact = self.written(&self.place(letters)) == span.text;
        let own =
            self.words[self.letters[letters.start].word].from.is_some_and(|from| span.own.contains(&from));
        let before = self.before(letters.start) == span.before;
        let after = self.after(letters.end) == span.after;
        EXACT * usize::from(exact) + 4 * usize::from(own) + usize::from(before) + usize::from(after)
    }

    fn place(&self, letters: &Range<usize>) -> Occurrence {
        let (first, last) = (&self.letters[letters.start], &self.letters[letters.end - 1]);
        Occurrence { words: first.word..=last.word, start: first.bytes.start, end: last.bytes.end }
    }

    /// The text of a match.
    fn written(&self, place: &Occurrence) -> String {
        let (first, last) = (*place.words.start(), *place.words.end());
        let part = |word: usize| {
            let text = &self.words[word].text;
            let start = if word == first { place.start } else { 0 };
            &text[start..if word == last { place.end } else { text.len() }]
        };
        place.words.clone().map(part).collect::<Vec<_>>().join(" ")
    }
}

/// The minimum rank of a match with the exact spelling.
const EXACT: usize = 8;
/// The highest possible rank.
const BEST: usize = EXACT + 4 + 2;

/// Replaces non-overlapping matches in a translation, and returns for each resulting word whether
/// it contains one. Words that share a match are merged.
fn apply(mut edits: Vec<(Occurrence, String)>, translation: &mut Translation) -> Vec<bool> {
    edits.sort_by_key(|(place, _)| (*place.words.start(), place.start));
    let mut edits = edits.into_iter().peekable();
    let mut out: Vec<Word> = Vec::with_capacity(translation.0.len());
    let mut occupied = Vec::with_capacity(translation.0.len());
    // A match that began in an earlier word and has not ended.
    let mut open: Option<Occurrence> = None;
    for (number, word) in std::mem::take(&mut translation.0).into_iter().enumerate() {
        let mut at = 0;
        match open.take() {
            Some(place) if *place.words.end() > number => {
                open = Some(place);
                continue;
            }
            Some(place) => at = place.end,
            None => {
                out.push(Word::new(String::new(), word.from));
                occupied.push(false);
            }
        }
        let (Some(to), Some(holds)) = (out.last_mut(), occupied.last_mut()) else { continue };
        while let Some((place, text)) = edits.next_if(|(place, _)| *place.words.start() == number) {
            to.text.push_str(&word.text[at..place.start]);
            to.text.push_str(&text);
            *holds = true;
            if *place.words.end() > number {
                at = word.text.len();
                open = Some(place);
            } else {
                at = place.end;
            }
        }
        to.text.push_str(&word.text[at..]);
    }
    translation.0 = out;
    occupied
}

/// Inserts a missing span at the word that attended to its words, or after one that attended to the
/// words before them.
fn insert_missing(span: &Span<'_>, translation: &mut Translation, occupied: &mut Vec<bool>) {
    let from = Some(span.own.start).filter(|_| !span.own.is_empty());
    let attends = |word: &Word| word.from.is_some_and(|from| span.own.contains(&from));
    // A word much longer than the span is not a failed copy of it: in a language without spaces it
    // is the whole sentence.
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let most = 12.max(2 * letters(span.text));
    let mut places = translation.0.iter().enumerate().filter(|(i, w)| attends(w) && !occupied[*i]);
    if let Some((at, word)) = places.find(|(_, w)| letters(&w.text) <= most) {
        let kept = word.text.trim_end_matches(['.', ',', '!', '?', ';', ':', ')', '"', '”', '»']).len();
        let mark = word.text[kept..].to_owned();
        translation.0[at] = Word::new(format!("{}{mark}", span.text), from);
        occupied[at] = true;
        return;
    }
    let before = |word: &Word| word.from.is_some_and(|w| from.is_some_and(|from| w <= from));
    let nearest = (0..translation.0.len())
        .filter(|&i| before(&translation.0[i]))
        .max_by_key(|&i| (translation.0[i].from, i));
    // All words attended to later words, so the span goes before the first of those.
    let next = (0..translation.0.len())
        .filter(|&i| translation.0[i].from.is_some())
        .min_by_key(|&i| translation.0[i].from);
    let at = nearest.map(|i| i + 1).or(next).unwrap_or(translation.0.len());
    translation.0.insert(at, Word::new(span.text, from));
    occupied.insert(at, true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protect::protected;

    fn spans(text: &str) -> Vec<&str> {
        protected(text).into_iter().map(|range| &text[range]).collect()
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
        // Without spaces, the word is the whole sentence.
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

    #[test]
    fn spans_of_one_word_are_all_found_in_it() {
        for text in ["5-10 dogs", "{a}{b} runs", "%s%s it", "pay €5/€10, 1+1=2"] {
            let words: Vec<(&str, usize)> = text.split(' ').enumerate().map(|(i, word)| (word, i)).collect();
            assert_eq!(restored(text, &words), text);
        }
        // The spans may be spread over several words that share them.
        let words = [("x{", 0), ("A", 0), ("}{", 0), ("b}!", 0)];
        assert_eq!(restored("x{a}{b}!", &words), "x{a}{b}!");
    }

    #[test]
    fn the_exact_spelling_is_taken_before_others() {
        for text in ["% s and %s", "%S%s is", "HTTP://A.example/x or http://a.example/x"] {
            let words: Vec<(&str, usize)> = text.split(' ').enumerate().map(|(i, word)| (word, i)).collect();
            assert_eq!(restored(text, &words), text);
        }
    }

    #[test]
    fn what_begins_with_a_digit_need_not_be_a_number() {
        assert_eq!(
            restored("ask 1a@b.example now", &[("fragt", 0), ("1", 1), ("jetzt", 2)]),
            "fragt 1a@b.example jetzt"
        );
        let text = "or -:3𝟙0 dogs";
        let words: Vec<(&str, usize)> = text.split(' ').enumerate().map(|(i, word)| (word, i)).collect();
        assert_eq!(restored(text, &words), text);
    }

    #[test]
    fn a_span_is_not_found_inside_of_a_word() {
        let source = "call a man";
        let mut translation = Translation(vec![Word::new("appelle", Some(0)), Word::new("homme", Some(2))]);
        restore(source, std::slice::from_ref(&(5..6)), &mut translation);
        assert_eq!(translation.text(), "appelle a homme");
    }
}
