//! The words of a sentence and of its translation, and their alignment.

use regard_core::translator::Candidate;
use std::ops::Range;

/// The byte ranges of the words of a text, split at white space, as the model's vocabulary counts
/// words.
pub(crate) fn word_ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() || c.is_control() || c == '▁' || c == '\u{feff}' {
            found.extend(start.take().map(|start| start..at));
        } else if start.is_none() {
            start = Some(at);
        }
    }
    found.extend(start.map(|start| start..text.len()));
    found
}

/// A word of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word, with its punctuation.
    pub text: String,
    /// The index of the source word that it attended to most, if known.
    pub from: Option<usize>,
}

impl Word {
    /// A word aligned to the source word `from`.
    pub fn new(text: impl Into<String>, from: Option<usize>) -> Self {
        Word { text: text.into(), from }
    }
}

/// The translation of a sentence, word by word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translation(pub(crate) Vec<Word>);

impl Translation {
    /// Takes the words and the alignment of a search result.
    pub fn new(candidate: &Candidate) -> Self {
        // A line break inside a sentence would split a line in two.
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
        let mut words: Vec<Word> =
            candidate.text.split(' ').map(|text| Word::new(plain(text), None)).collect();
        for &(source, target) in &candidate.alignment {
            if let Some(word) = words.get_mut(target) {
                word.from = Some(source);
            }
        }
        Translation(words)
    }

    /// Takes parts of a text as its own translation.
    pub(crate) fn of_parts<'a>(text: &'a str, parts: impl Iterator<Item = &'a str>) -> Self {
        let ranges = word_ranges(text);
        let word = |part: &'a str| {
            let start = part.as_ptr() as usize - text.as_ptr() as usize;
            let first = ranges.partition_point(|word| word.end <= start);
            let from = ranges.get(first).filter(|word| word.start < start + part.len());
            Word::new(part, from.map(|_| first))
        };
        Translation(parts.map(word).collect())
    }

    /// A text as its own translation.
    pub fn same(text: &str) -> Self {
        Translation::of_parts(text, text.split(' '))
    }

    /// The words joined by spaces.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.0.iter().map(|word| word.text.as_str()).collect();
        words.join(" ")
    }

    /// Composes alignments: `self` translates `first`, and the result is aligned to the source of
    /// `first`.
    pub fn after(mut self, first: &Translation) -> Self {
        for word in &mut self.0 {
            word.from = word.from.and_then(|middle| first.0.get(middle)?.from);
        }
        self
    }

    /// Pairs of aligned byte ranges in the source and in `text`, which consists of the words of the
    /// translation with any white space between them.
    pub(crate) fn pairs(&self, source: &str, text: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let ranges = word_ranges(source);
        let mut at = 0;
        let mut pairs = Vec::new();
        for word in &self.0 {
            let rest = &text[at..];
            let begins = |rest: &&str| rest.starts_with(&word.text);
            let places = [rest.strip_prefix(' '), Some(rest), Some(rest.trim_start())];
            let Some(found) = places.into_iter().flatten().find(begins) else { break };
            let start = text.len() - found.len();
            let place = start..start + word.text.len();
            at = place.end;
            if let Some(from) = word.from.and_then(|from| ranges.get(from)) {
                pairs.push((from.clone(), place));
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_between_spaces() {
        assert_eq!(word_ranges(" a\tbc\n\n d "), [1..2, 3..5, 8..9]);
        assert!(word_ranges("").is_empty());
    }

    #[test]
    fn two_translations_in_a_row_are_one() {
        // "the red house" → "la maison rouge" → "das rote Haus"
        let words = |list: &[(&str, usize)]| {
            Translation(list.iter().map(|(text, from)| Word::new(*text, Some(*from))).collect())
        };
        let first = words(&[("la", 0), ("maison", 2), ("rouge", 1)]);
        let both = words(&[("das", 0), ("rote", 2), ("Haus", 1)]).after(&first);
        assert_eq!(both, words(&[("das", 0), ("rote", 1), ("Haus", 2)]));
        assert_eq!(both.pairs("the red  house", &both.text()), [(0..3, 0..3), (4..7, 4..8), (9..14, 9..13)]);
        assert_eq!(
            both.pairs("a b c", "das \u{a0}rote\tHaus"),
            [(0..1, 0..3), (2..3, 6..10), (4..5, 11..15)]
        );
    }
}
