//! Annotates words of source sentences with their translations, from which a model learns to use
//! the terms of a glossary.
//!
//! In a share of the sentences, drawn anew in each epoch, up to a few words are annotated with
//! their translations, `<term> dog <is> Hund </term>`: words of the target sentence that the
//! [`lexicon`](Lexicon) aligns with them. The annotations depend only on the pair, the seed and the
//! epoch.
//!
//! Some of the annotated words are replaced by others, `<term> cat <is> Hund </term>`, so that the
//! translation can only come from the annotation.

mod lexicon;
mod words;

pub(crate) use lexicon::Pairs;

use crate::config::TermsConfig;
use lexicon::{Aligned, Lexicon};
use regard_core::Result;
use regard_core::random::Rng;
use regard_core::text::{TermIds, TermTokens, TokenizerPair};
use std::ops::Range;

/// The random stream that chooses the terms of a pair; BPE-dropout uses stream 0.
const STREAM: u64 = 1;

/// How often a word takes its neighbour along if their translations are adjacent too: glossaries
/// have terms of several words.
const TWO_WORDS: f64 = 0.25;

/// Annotates source sentences.
#[derive(Debug)]
pub(crate) struct Terms {
    settings: TermsConfig,
    tokens: TermTokens,
    tokenizers: TokenizerPair,
    lexicon: Lexicon,
    /// The maximum number of tokens of a sentence.
    max_tokens: usize,
}

impl Terms {
    /// Learns from pairs of ids which words are translations of each other; uses an even sample of
    /// a large corpus.
    pub(crate) fn learn(
        settings: TermsConfig,
        tokens: TermTokens,
        tokenizers: &TokenizerPair,
        max_tokens: usize,
        pairs: Pairs<'_>,
    ) -> Result<Self> {
        let lexicon = Lexicon::learn(tokenizers, pairs)?;
        Ok(Terms { settings, tokens, tokenizers: tokenizers.clone(), lexicon, max_tokens })
    }

    /// The number of source words with a known translation.
    pub(crate) fn words(&self) -> usize {
        self.lexicon.translated_words()
    }

    /// Annotates a source sentence; `None` if it is not in the share or has no aligned words.
    pub(crate) fn annotate(&self, source: &[u32], target: &[u32], seed: u64) -> Result<Option<Vec<u32>>> {
        let mut random = Rng::stream(seed, STREAM);
        if random.uniform() >= f64::from(self.settings.share) {
            return Ok(None);
        }
        let aligned = self.lexicon.align(source, target);
        let count = 1 + random.below(self.settings.max_words);
        let mut terms: Vec<TermIds> = Vec::new();
        let mut replacements: Vec<(Range<usize>, Vec<u32>)> = Vec::new();
        for i in draw(&aligned, count, &mut random) {
            let (first, second) = (&aligned[i], aligned.get(i + 1));
            let together = second.filter(|next| next.follows(first) && random.uniform() < TWO_WORDS);
            let range = first.source.start..together.unwrap_or(first).source.end;
            if terms.iter().any(|term| term.range.start < range.end && range.start < term.range.end) {
                continue;
            }
            let text = match together {
                Some(next) => format!(
                    "{} {}",
                    self.spelt(first, false, &mut random),
                    self.spelt(next, false, &mut random)
                ),
                None => self.spelt(first, true, &mut random).to_owned(),
            };
            if together.is_none() && random.uniform() < f64::from(self.settings.other_words) {
                let other = self.other_word(first, source, &mut random)?;
                replacements.extend(other.map(|ids| (range.clone(), ids)));
            }
            terms.push(TermIds { range, target: self.tokenizers.source().text_ids(&text)? });
        }
        if terms.is_empty() {
            return Ok(None);
        }
        terms.sort_by_key(|term| term.range.start);
        let source = replace(source, &mut terms, &replacements);
        let annotated = self.tokens.annotate(&source, &terms).ids;
        Ok((annotated.len() <= self.max_tokens).then_some(annotated))
    }

    /// The ids of a random word to put in place of a word of `source`; `None` for a word without a
    /// space before it.
    fn other_word(&self, word: &Aligned, source: &[u32], random: &mut Rng) -> Result<Option<Vec<u32>>> {
        let Some(other) = self.lexicon.other_word(word, source, random) else { return Ok(None) };
        let tokenizer = self.tokenizers.source();
        let capital = tokenizer.decode(&source[word.source.clone()]).starts_with(char::is_uppercase);
        let mut letters = other.chars();
        let text: String = match letters.next().filter(|_| capital) {
            Some(first) => first.to_uppercase().chain(letters).collect(),
            None => other.to_owned(),
        };
        tokenizer.text_ids(&text).map(Some)
    }

    /// The translation of a word as a glossary might spell it: as in the sentence, or in another
    /// form.
    fn spelt(&self, word: &Aligned, inflect: bool, random: &mut Rng) -> &str {
        let other = inflect && random.uniform() < f64::from(self.settings.other_forms);
        let forms = if other { self.lexicon.other_forms(word) } else { Vec::new() };
        let chosen = if forms.is_empty() { word.translation } else { random.pick(&forms) };
        self.lexicon.spelling(chosen)
    }
}

/// A sentence with `replacements` in place of the words at these ranges; the ranges of `terms`, which
/// are in the order of the sentence, then point into the result.
fn replace(source: &[u32], terms: &mut [TermIds], replacements: &[(Range<usize>, Vec<u32>)]) -> Vec<u32> {
    let mut replaced = Vec::with_capacity(source.len());
    let mut done = 0;
    for term in terms {
        replaced.extend(&source[done..term.range.start]);
        let start = replaced.len();
        match replacements.iter().find(|(range, _)| *range == term.range) {
            Some((_, ids)) => replaced.extend(ids),
            None => replaced.extend(&source[term.range.clone()]),
        }
        done = term.range.end;
        term.range = start..replaced.len();
    }
    replaced.extend(&source[done..]);
    replaced
}

/// Samples up to `count` of the words, preferring rare ones; returns them in the order in which
/// they were drawn.
fn draw(words: &[Aligned], count: usize, random: &mut Rng) -> Vec<usize> {
    let mut left: Vec<usize> = (0..words.len()).collect();
    let mut drawn = Vec::new();
    while drawn.len() < count && !left.is_empty() {
        let total: f64 = left.iter().map(|&i| words[i].weight).sum();
        let mut at = random.uniform() * total;
        let passed = |&i: &usize| {
            at -= words[i].weight;
            at < 0.0
        };
        let place = left.iter().position(passed).unwrap_or(left.len() - 1);
        drawn.push(left.remove(place));
    }
    drawn
}

#[cfg(test)]
mod tests;
