//! Words cut where tags stand inside of them, in the source and, where it says the same, in the translation.

use crate::words::Word;
use std::ops::Range;

/// The words of a sentence, cut where tags stand inside of them.
pub(super) struct Pieces {
    pub(super) ranges: Vec<Range<usize>>,
    /// The word of each piece.
    pub(super) words: Vec<usize>,
    /// The first piece of each word, and their number.
    pub(super) first: Vec<usize>,
}

impl Pieces {
    pub(super) fn new(words: &[Range<usize>], cuts: Vec<usize>) -> Self {
        let mut pieces = Pieces { ranges: Vec::new(), words: Vec::new(), first: Vec::new() };
        let mut cuts = cuts.into_iter().peekable();
        for (number, word) in words.iter().enumerate() {
            pieces.first.push(pieces.ranges.len());
            let mut start = word.start;
            while cuts.next_if(|at| *at <= start).is_some() {}
            while let Some(at) = cuts.next_if(|at| *at < word.end) {
                pieces.ranges.push(start..at);
                start = at;
            }
            pieces.ranges.push(start..word.end);
            pieces.words.resize(pieces.ranges.len(), number);
        }
        pieces.first.push(pieces.ranges.len());
        pieces
    }

    /// A target word cut as its source word is: where its parts end, and the pieces that they belong to.
    pub(super) fn split(&self, source: &str, word: &Word) -> Vec<(usize, Option<usize>)> {
        let text = word.text.as_str();
        let Some(own) = word.from.filter(|&from| from + 1 < self.first.len()) else {
            return vec![(text.len(), None)];
        };
        let own = self.first[own]..self.first[own + 1];
        if own.len() == 1 && !text.contains(char::is_whitespace) {
            return vec![(text.len(), Some(own.start))];
        }
        self.same_letters(source, &own, text).unwrap_or_else(|| self.marks(source, own, text))
    }

    /// The cuts of a word that came through as it was, if only for its case.
    fn same_letters(
        &self,
        source: &str,
        own: &Range<usize>,
        text: &str,
    ) -> Option<Vec<(usize, Option<usize>)>> {
        let start = self.ranges[own.start].start;
        let mut cuts = Vec::new();
        let mut piece = own.start;
        let mut letters = source[start..].char_indices();
        for (at, c) in text.char_indices() {
            let (place, letter) = letters.next()?;
            if c != letter && !c.to_lowercase().eq(letter.to_lowercase()) {
                return None;
            }
            if self.ranges.get(piece + 1).is_some_and(|next| next.start <= start + place) {
                cuts.push((at, Some(piece)));
                piece += 1;
            }
        }
        cuts.push((text.len(), Some(piece)));
        (piece + 1 >= own.end).then_some(cuts)
    }

    /// The cuts of a word that was translated: what is no letter and stands at its ends as in the source,
    /// and in between what belongs to the piece of most letters.
    fn marks(&self, source: &str, mut own: Range<usize>, text: &str) -> Vec<(usize, Option<usize>)> {
        let written = |piece: usize| &source[self.ranges[piece].clone()];
        let is_mark = |piece: usize| !written(piece).contains(char::is_alphabetic);
        let (mut start, mut end) = (0, text.len());
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        while own.len() > 1 && is_mark(own.start) && text[start..end].starts_with(written(own.start)) {
            start += written(own.start).len();
            before.push((start, Some(own.start)));
            own.start += 1;
        }
        while own.len() > 1 && is_mark(own.end - 1) && text[start..end].ends_with(written(own.end - 1)) {
            own.end -= 1;
            behind.push((end, Some(own.end)));
            end -= written(own.end).len();
        }
        if start < end || before.len() + behind.len() == 0 {
            let letters = |piece: &usize| written(*piece).chars().filter(|c| c.is_alphabetic()).count();
            // Of several, the first.
            before.push((end, own.rev().max_by_key(letters)));
        }
        before.extend(behind.into_iter().rev());
        before
    }
}
