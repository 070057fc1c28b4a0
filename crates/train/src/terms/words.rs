//! Splits a sentence of ids into words as in glossaries: letters without the punctuation around
//! them.

use regard_core::text::{Tokenizer, is_spaced};
use std::collections::HashMap;
use std::ops::Range;

/// The minimum number of letters of a word: shorter ones are rarely terms.
const LETTERS: usize = 3;
/// The same for scripts without spaces between words, where each piece of the vocabulary is a word.
const CHARACTERS: usize = 2;

/// The kind of characters in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Letters,
    /// Of a script without spaces between words.
    Characters,
    /// A byte of a character that the vocabulary lacks.
    Byte,
    Other,
}

#[derive(Debug)]
struct Piece {
    text: String,
    /// Whether a space precedes it.
    begins: bool,
    kind: Kind,
}

/// The pieces of a vocabulary, and the words that occur in a language.
#[derive(Debug, Default)]
pub(super) struct Words {
    pieces: Vec<Piece>,
    /// The index of each word, lowercased.
    numbers: HashMap<String, u32>,
    list: Vec<WordCount>,
}

/// A word that has occurred.
#[derive(Debug, Default)]
pub(super) struct WordCount {
    /// Lowercased.
    pub(super) word: String,
    pub(super) count: u32,
    /// Its spellings, in order of first occurrence, with their counts.
    spellings: Vec<(String, u32)>,
}

impl Piece {
    fn new(piece: &str) -> Self {
        let text = piece.strip_prefix('▁').unwrap_or(piece);
        let hex = piece.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
        let byte = hex.filter(|hex| hex.len() == 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let kind = match text.chars().next() {
            // Punctuation is not part of a word, however it is encoded.
            _ if byte.is_some_and(|byte| byte.is_ascii() && !byte.is_ascii_alphabetic()) => Kind::Other,
            _ if byte.is_some() => Kind::Byte,
            // A space by itself belongs to what follows.
            None => Kind::Letters,
            Some(first) if text.chars().all(|c| c.is_alphabetic() || is_mark(c)) => {
                if is_spaced(first) {
                    Kind::Letters
                } else {
                    Kind::Characters
                }
            }
            Some(_) => Kind::Other,
        };
        Piece { text: text.to_owned(), begins: text.len() < piece.len(), kind }
    }
}

/// Whether a character belongs to the letter before it: combining marks, joiners.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200c}' | '\u{200d}')
}

impl Words {
    pub(super) fn new(tokenizer: &Tokenizer) -> Self {
        let piece = |id| Piece::new(&tokenizer.piece(id).unwrap_or_default());
        let pieces = (0..tokenizer.size() as u32).map(piece).collect();
        Words { pieces, ..Words::default() }
    }

    /// Whether a piece has a space before it.
    pub(super) fn begins_word(&self, id: u32) -> bool {
        self.pieces.get(id as usize).is_some_and(|piece| piece.begins)
    }

    /// Calls `action` for each word of a sentence that is long enough, with the range of its ids.
    fn for_each(&self, ids: &[u32], mut action: impl FnMut(Range<usize>, &str)) {
        let (mut start, mut text, mut sound) = (0, String::new(), false);
        let mut kind_before = Kind::Other;
        let mut close = |range: Range<usize>, text: &str, sound: bool, kind: Kind| {
            let least = if kind == Kind::Characters { CHARACTERS } else { LETTERS };
            if sound && text.chars().count() >= least {
                action(range, text);
            }
        };
        for (i, &id) in ids.iter().enumerate() {
            let piece = self.pieces.get(id as usize);
            let kind = piece.map_or(Kind::Other, |piece| piece.kind);
            let begins = piece.is_none_or(|piece| piece.begins);
            // A byte belongs to the surrounding word, which is then incomplete.
            let goes_on = !begins
                && kind != Kind::Characters
                && (kind == kind_before || kind == Kind::Byte || kind_before == Kind::Byte);
            if !goes_on {
                close(start..i, &text, sound, kind_before);
                (start, sound) = (i, kind != Kind::Other);
                text.clear();
            }
            sound &= kind != Kind::Byte;
            text.push_str(piece.map_or("", |piece| &piece.text));
            kind_before = kind;
        }
        close(start..ids.len(), &text, sound, kind_before);
    }

    /// Counts the words of a sentence, and returns their indices.
    pub(super) fn add(&mut self, ids: &[u32]) -> Vec<u32> {
        let mut found = Vec::new();
        self.for_each(ids, |range, word| found.push((word.to_owned(), range.start == 0)));
        found.into_iter().map(|(word, first)| self.add_word(word, first)).collect()
    }

    /// The `first` word of a sentence may be capitalised for that reason, so it is no evidence for
    /// the spelling.
    fn add_word(&mut self, written: String, first: bool) -> u32 {
        let word = written.to_lowercase();
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(word.clone()).or_insert(next);
        if number == next {
            self.list.push(WordCount { word, ..WordCount::default() });
        }
        let entry = &mut self.list[number as usize];
        entry.count += 1;
        let counts = u32::from(!first);
        match entry.spellings.iter_mut().find(|(spelling, _)| *spelling == written) {
            Some((_, count)) => *count += counts,
            None => entry.spellings.push((written, counts)),
        }
        number
    }

    /// The known words of a sentence, and the ranges of their ids.
    pub(super) fn find(&self, ids: &[u32]) -> Vec<(Range<usize>, u32)> {
        let mut found = Vec::new();
        self.for_each(ids, |range, word| {
            found.extend(self.number(&word.to_lowercase()).map(|number| (range, number)));
        });
        found
    }

    /// The index of a lowercased word.
    pub(super) fn number(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, number: u32) -> &WordCount {
        &self.list[number as usize]
    }
}

impl WordCount {
    /// The most frequent spelling inside a sentence.
    pub(super) fn spelling(&self) -> &str {
        let most = self.spellings.iter().map(|(_, count)| *count).max();
        let usual = self.spellings.iter().find(|(_, count)| Some(*count) == most);
        usual.map_or(&self.word, |(spelling, _)| spelling)
    }
}
