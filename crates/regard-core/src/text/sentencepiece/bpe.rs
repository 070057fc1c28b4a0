//! Byte-pair encoding: of all adjacent pairs that form a piece, the one with the highest score is
//! merged first; ties go to the leftmost.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use super::Vocabulary;
use super::model::{Kind, Piece};

/// The scores of a BPE model: pieces learned earlier have higher scores.
#[derive(Debug)]
pub(super) struct Bpe {
    scores: Vec<f32>,
}

/// A range of the text that is no longer split. Symbols that were merged into the previous one are
/// empty.
struct Symbol {
    text: Range<usize>,
    before: usize,
    after: usize,
    /// Must not be merged: a user-defined piece.
    frozen: bool,
}

/// No symbol.
const NONE: usize = usize::MAX;

/// Two adjacent symbols that would form a piece.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// The total length, to detect whether they have changed.
    length: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |pair: &Pair| Reverse(pair.left);
        self.score.total_cmp(&other.score).then_with(|| order(self).cmp(&order(other)))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pair {}

impl Bpe {
    pub(super) fn new(pieces: &[Piece<'_>]) -> Self {
        Bpe { scores: pieces.iter().map(|piece| piece.score).collect() }
    }

    /// The ends of the pieces of normalised text, and whether each is unknown.
    pub(super) fn segment(&self, text: &str, vocabulary: &Vocabulary) -> Vec<(usize, bool)> {
        let mut merging = Merging {
            model: self,
            text,
            vocabulary,
            symbols: symbols(text, vocabulary),
            pairs: BinaryHeap::new(),
            parts: HashMap::new(),
        };
        (1..merging.symbols.len()).for_each(|right| merging.consider(right - 1, right));
        merging.join_all();
        merging.ends()
    }
}

/// The characters of a text and the user-defined pieces in it.
fn symbols(text: &str, vocabulary: &Vocabulary) -> Vec<Symbol> {
    let mut symbols = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let defined = vocabulary.user_defined().longest(&text.as_bytes()[at..]);
        let end = at + defined.unwrap_or(character.len_utf8());
        let before = symbols.len().checked_sub(1).unwrap_or(NONE);
        let after = if end == text.len() { NONE } else { symbols.len() + 1 };
        symbols.push(Symbol { text: at..end, before, after, frozen: defined.is_some() });
        at = end;
    }
    symbols
}

/// A text being merged.
struct Merging<'a> {
    model: &'a Bpe,
    text: &'a str,
    vocabulary: &'a Vocabulary,
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Pair>,
    /// Where to split an unused piece again.
    parts: HashMap<&'a str, usize>,
}

impl Merging<'_> {
    /// Adds a pair of adjacent symbols if they form a piece.
    fn consider(&mut self, left: usize, right: usize) {
        let (Some(a), Some(b)) = (self.symbols.get(left), self.symbols.get(right)) else { return };
        if a.frozen || b.frozen {
            return;
        }
        let text = &self.text[a.text.start..b.text.end];
        let Some((id, kind)) = self.vocabulary.find(text).filter(|(_, kind)| kind.is_text()) else { return };
        if kind == Kind::Unused {
            self.parts.insert(text, a.text.len());
        }
        let score = self.model.scores[id as usize];
        self.pairs.push(Pair { score, left, right, length: text.len() });
    }

    fn join_all(&mut self) {
        while let Some(Pair { left, right, length, .. }) = self.pairs.pop() {
            let (a, b) = (self.symbols[left].text.clone(), self.symbols[right].text.clone());
            if a.is_empty() || b.is_empty() || a.len() + b.len() != length {
                continue;
            }
            let after = self.symbols[right].after;
            self.symbols[left].text.end = b.end;
            self.symbols[left].after = after;
            self.symbols[right].text = b.end..b.end;
            if let Some(next) = self.symbols.get_mut(after) {
                next.before = left;
            }
            self.consider(self.symbols[left].before, left);
            self.consider(left, after);
        }
    }

    /// The ends of the remaining symbols, with unused pieces split again, and whether each is
    /// unknown.
    fn ends(&self) -> Vec<(usize, bool)> {
        let mut ends = Vec::with_capacity(self.symbols.len());
        let mut waiting = Vec::new();
        for symbol in self.symbols.iter().filter(|symbol| !symbol.text.is_empty()) {
            waiting.push(symbol.text.clone());
            while let Some(range) = waiting.pop() {
                let piece = &self.text[range.clone()];
                let kind = self.vocabulary.find(piece).map_or(Kind::Unknown, |(_, kind)| kind);
                match self.parts.get(piece).filter(|_| kind == Kind::Unused) {
                    Some(&left) => {
                        let middle = range.start + left;
                        waiting.push(middle..range.end);
                        waiting.push(range.start..middle);
                    }
                    None => ends.push((range.end, kind == Kind::Unknown)),
                }
            }
        }
        ends
    }
}
