//! A lexicon of words that are translations of each other, learned from a corpus.
//!
//! It has translation probabilities in both directions, by IBM model 1 (Brown et al.). In a pair of
//! sentences, two words are aligned if each is the likeliest translation of the other and both
//! probabilities are high enough.

use super::words::Words;
use regard_core::Result;
use regard_core::decode::word_translations;
use regard_core::random::Rng;
use regard_core::text::{TokenizerPair, fold, share_stem};
use std::ops::Range;

/// The maximum number of pairs to learn from: an even sample.
const MAX_PAIRS: usize = 200_000;
/// The minimum probability of a translation, in both directions.
const MIN_PROBABILITY: f32 = 0.1;
const MIN_PROBABILITY_BACKWARD: f32 = 0.02;
/// The minimum number of occurrences of a word.
const SEEN: u32 = 2;

/// Pairs of ids: their number, and a function that reads one.
pub(crate) struct Pairs<'a> {
    pub(crate) len: usize,
    pub(crate) read: &'a dyn Fn(usize) -> Result<(Vec<u32>, Vec<u32>)>,
}

/// The translations of the words of two languages.
#[derive(Debug)]
pub(super) struct Lexicon {
    source: Words,
    target: Words,
    /// The translations of each word, likeliest first.
    forward: Vec<Vec<(u32, f32)>>,
    backward: Vec<Vec<(u32, f32)>>,
    /// For each source word, the sum of the weights up to and including it: a word is drawn to
    /// stand in place of another in proportion to the square root of its count.
    cumulative_weights: Vec<f64>,
}

/// The number of attempts to draw a word that can stand in place of another.
const DRAWS: usize = 16;

/// A source word aligned with its translation in a pair of sentences.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aligned {
    /// The range of the word's ids in the source.
    pub(super) source: Range<usize>,
    /// The word.
    word: u32,
    /// The range of the translation's ids in the target.
    target: Range<usize>,
    /// The translation.
    pub(super) translation: u32,
    /// The weight with which it is sampled.
    pub(super) weight: f64,
}

impl Aligned {
    /// Whether both the word and its translation directly follow those of `other`.
    pub(super) fn follows(&self, other: &Aligned) -> bool {
        other.source.end == self.source.start && other.target.end == self.target.start
    }
}

impl Lexicon {
    pub(super) fn learn(tokenizers: &TokenizerPair, pairs: Pairs<'_>) -> Result<Self> {
        let (mut source, mut target) = (Words::new(tokenizers.source()), Words::new(tokenizers.target()));
        let step = pairs.len.div_ceil(MAX_PAIRS).max(1);
        let mut sentences = Vec::with_capacity(pairs.len / step + 1);
        for i in (0..pairs.len).step_by(step) {
            let (from, to) = (pairs.read)(i)?;
            sentences.push((source.add(&from), target.add(&to)));
        }
        let forward: Vec<(&[u32], &[u32])> = sentences.iter().map(|(s, t)| (&s[..], &t[..])).collect();
        let backward: Vec<(&[u32], &[u32])> = sentences.iter().map(|(s, t)| (&t[..], &s[..])).collect();
        let (forward, backward) = (
            word_translations(&forward, source.len(), MIN_PROBABILITY),
            word_translations(&backward, target.len(), MIN_PROBABILITY_BACKWARD),
        );
        let mut sum = 0.0;
        let cumulative_weights = (0..)
            .zip(&forward)
            .map(|(word, list)| {
                let count = source.get(word).count;
                sum += if list.is_empty() || count < SEEN { 0.0 } else { f64::from(count).sqrt() };
                sum
            })
            .collect();
        Ok(Lexicon { source, target, forward, backward, cumulative_weights })
    }

    /// The number of source words with a known translation.
    pub(super) fn translated_words(&self) -> usize {
        let known = |(word, list): &(u32, &Vec<_>)| !list.is_empty() && self.source.get(*word).count >= SEEN;
        (0..).zip(&self.forward).filter(known).count()
    }

    /// The aligned words of a pair of sentences, in source order.
    pub(super) fn align(&self, source: &[u32], target: &[u32]) -> Vec<Aligned> {
        let (from, to) = (self.source.find(source), self.target.find(target));
        let probability = |table: &[Vec<(u32, f32)>], a: u32, b: u32| {
            table[a as usize].iter().find(|(word, _)| *word == b).map_or(0.0, |(_, p)| *p)
        };
        // Of equally likely ones take the first, for example if a word occurs twice.
        let best = |scores: Vec<f32>| {
            let most = scores.iter().copied().fold(0.0, f32::max);
            scores.into_iter().position(|p| p > 0.0 && p == most)
        };
        let forward = from
            .iter()
            .map(|(_, s)| best(to.iter().map(|(_, t)| probability(&self.forward, *s, *t)).collect()));
        let backward: Vec<Option<usize>> = to
            .iter()
            .map(|(_, t)| best(from.iter().map(|(_, s)| probability(&self.backward, *t, *s)).collect()))
            .collect();
        let mut found = Vec::new();
        for (i, j) in forward.enumerate() {
            let Some(j) = j.filter(|&j| backward[j] == Some(i)) else { continue };
            let ((source, word), (target, translation)) = (from[i].clone(), to[j].clone());
            let seen = self.source.get(word).count;
            if seen.min(self.target.get(translation).count) >= SEEN {
                let weight = 1.0 / f64::from(seen).sqrt();
                found.push(Aligned { source, word, target, translation, weight });
            }
        }
        found
    }

    /// Other inflected forms of a translation that the word, or its singular, also has as
    /// translations.
    pub(super) fn other_forms(&self, aligned: &Aligned) -> Vec<u32> {
        let word = &self.source.get(aligned.word).word;
        // Glossaries find plurals in the same way.
        let singular = ["s", "es"].iter().filter_map(|ending| self.source.number(word.strip_suffix(ending)?));
        let own = fold(&self.target.get(aligned.translation).word);
        let mut forms = Vec::new();
        for &(form, _) in [aligned.word].into_iter().chain(singular).flat_map(|w| &self.forward[w as usize]) {
            let is_form = form != aligned.translation && share_stem(&fold(&self.target.get(form).word), &own);
            if is_form && !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms
    }

    /// A random source word that is no translation of the same target word, and is a plural if the
    /// word is one; `None` for a word without a space before it, and if no draw finds any.
    pub(super) fn other_word(&self, aligned: &Aligned, source: &[u32], random: &mut Rng) -> Option<&str> {
        if !self.source.begins_word(*source.get(aligned.source.start)?) {
            return None;
        }
        let total = *self.cumulative_weights.last()?;
        let is_plural = |word: u32| self.source.get(word).word.ends_with('s');
        for _ in 0..DRAWS {
            let at = random.uniform() * total;
            let word = self.cumulative_weights.partition_point(|sum| *sum <= at);
            let translations = self.forward.get(word)?;
            let word = word as u32;
            let same = translations.iter().any(|(translation, _)| *translation == aligned.translation);
            if word != aligned.word && !same && is_plural(word) == is_plural(aligned.word) {
                return Some(self.source.get(word).spelling());
            }
        }
        None
    }

    /// The most frequent spelling of a target word.
    pub(super) fn spelling(&self, word: u32) -> &str {
        self.target.get(word).spelling()
    }
}
