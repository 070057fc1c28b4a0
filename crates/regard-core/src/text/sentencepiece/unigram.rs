//! The most probable segmentation under a unigram model, with the arithmetic of the library: in
//! `f32`, where the first of equal paths wins.

use super::Vocabulary;
use super::model::{Kind, Piece};

/// How much lower than the lowest piece the score of an unknown character is.
const UNKNOWN_PENALTY: f32 = 10.0;
/// When the score of a path falls below this, scores are rebased: `f32` would be too coarse.
const LOWEST: f32 = -100_000.0;

/// The scores of a unigram model.
#[derive(Debug)]
pub(super) struct Unigram {
    /// The score of each piece.
    scores: Vec<f32>,
    unknown: f32,
    /// The length in bytes of the longest piece or character.
    longest: usize,
}

/// The best path to a position in the text: its score and where its last piece begins.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    start: usize,
    unknown: bool,
}

/// No path leads here yet.
const NOWHERE: usize = usize::MAX;

impl Unigram {
    /// `pieces` are the text, score and kind of each.
    pub(super) fn new(pieces: &[Piece<'_>]) -> Self {
        let normal = || pieces.iter().filter(|piece| piece.kind == Kind::Normal).map(|piece| piece.score);
        let lowest = normal().fold(f32::MAX, f32::min);
        let highest = normal().fold(f32::MIN_POSITIVE, f32::max);
        let score = |piece: &Piece<'_>| match piece.kind {
            // Nearly free, so that it is used wherever it occurs.
            Kind::UserDefined => piece.text.len() as f32 * highest - 0.1,
            _ => piece.score,
        };
        Unigram {
            scores: pieces.iter().map(score).collect(),
            unknown: lowest - UNKNOWN_PENALTY,
            longest: pieces.iter().map(|piece| piece.text.len()).max().unwrap_or(0).max(4),
        }
    }

    /// The ends of the pieces of normalised text, and whether each is unknown.
    pub(super) fn segment(&self, text: &str, vocabulary: &Vocabulary) -> Vec<(usize, bool)> {
        let mut best = vec![Best { score: 0.0, start: NOWHERE, unknown: false }; text.len() + 1];
        for (start, character) in text.char_indices() {
            self.rebase(&mut best[start..]);
            let before = best[start].score;
            let mut reach = |end: usize, score: f32, unknown: bool| {
                let there = &mut best[end];
                if there.start == NOWHERE || score > there.score {
                    *there = Best { score, start, unknown };
                }
            };
            let mut covered = false;
            vocabulary.for_each_prefix(&text[start..], |length, id| {
                reach(start + length, self.scores[id as usize] + before, false);
                covered |= length == character.len_utf8();
            });
            if !covered {
                reach(start + character.len_utf8(), self.unknown + before, true);
            }
        }
        let mut ends = Vec::with_capacity(text.len() / 3 + 1);
        let mut end = text.len();
        while end > 0 {
            ends.push((end, best[end].unknown));
            end = best[end].start;
        }
        ends.reverse();
        ends
    }

    /// Subtracts the score of the position at which `ahead` begins from those already reached after
    /// it.
    fn rebase(&self, ahead: &mut [Best]) {
        let here = ahead[0].score;
        if here < LOWEST {
            let reached = ahead.iter_mut().take(self.longest + 1).filter(|there| there.start != NOWHERE);
            reached.for_each(|there| there.score -= here);
        }
    }
}
