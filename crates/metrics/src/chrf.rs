//! chrF (Popović, 2015) and chrF++ (2017): an F-score over character n-grams; chrF++ adds word
//! n-grams.

use super::ngram::{Interner, Ngrams, overlap};
use super::tokenize::words;
use super::{Details, MAX_ORDER, Metric};
use crate::{Error, Result};

/// chrF and its settings; the default is sacreBLEU's chrF2.
#[derive(Clone, Debug, PartialEq)]
pub struct Chrf {
    /// The maximum character n-gram order.
    pub char_order: usize,
    /// The maximum word n-gram order: 0 for chrF, 2 for chrF++.
    pub word_order: usize,
    /// The weight of recall relative to precision.
    pub beta: u32,
    /// Whether case is ignored.
    pub lowercase: bool,
    /// Whether white space counts as characters.
    pub whitespace: bool,
    /// Whether orders without n-grams count as almost 0, as in chrF++.py, Moses and NLTK, instead
    /// of being skipped.
    pub eps_smoothing: bool,
}

impl Default for Chrf {
    fn default() -> Self {
        Chrf {
            char_order: 6,
            word_order: 0,
            beta: 2,
            lowercase: false,
            whitespace: false,
            eps_smoothing: false,
        }
    }
}

impl Chrf {
    /// chrF++: also counts word n-grams up to order 2.
    pub fn plus_plus() -> Self {
        Chrf { word_order: 2, ..Chrf::default() }
    }

    fn f_score(&self, counts: &[f64]) -> f64 {
        const EPS: f64 = 1e-16;
        let factor = f64::from(self.beta).powi(2);
        let (mut smoothed, mut precision, mut recall, mut effective) = (0.0, 0.0, 0.0, 0.0);
        for order in counts.chunks_exact(3) {
            let (n_hyp, n_ref, n_match) = (order[0], order[1], order[2]);
            let p = if n_hyp > 0.0 { n_match / n_hyp } else { EPS };
            let r = if n_ref > 0.0 { n_match / n_ref } else { EPS };
            let denominator = factor * p + r;
            smoothed += if denominator > 0.0 { (1.0 + factor) * p * r / denominator } else { EPS };
            if n_hyp > 0.0 && n_ref > 0.0 {
                precision += p;
                recall += r;
                effective += 1.0;
            }
        }
        if self.eps_smoothing {
            return 100.0 * smoothed / (self.char_order + self.word_order) as f64;
        }
        if precision + recall == 0.0 {
            return 0.0;
        }
        let (precision, recall) = (precision / effective, recall / effective);
        100.0 * ((1.0 + factor) * precision * recall / (factor * precision + recall))
    }
}

impl Metric for Chrf {
    fn key(&self) -> &'static str {
        if self.word_order == 0 { "chrf" } else { "chrf++" }
    }

    fn name(&self) -> String {
        format!("chrF{}{}", self.beta, "+".repeat(self.word_order))
    }

    fn check(&self) -> Result<()> {
        for (field, order) in [("char_order", self.char_order), ("word_order", self.word_order)] {
            if order > MAX_ORDER {
                let message = format!("{order} is not an n-gram order; accepted: 0 to {MAX_ORDER}");
                return Err(Error::config(field, message));
            }
        }
        if self.char_order == 0 && self.word_order == 0 {
            let message = "0 and word_order 0 leave nothing to count; one must be at least 1";
            return Err(Error::config("char_order", message));
        }
        Ok(())
    }

    /// For each order, the number of n-grams in the hypothesis, in the reference and in both, for
    /// the reference with the best score.
    fn segment(&self, hypothesis: &str, references: &[&str]) -> Vec<f64> {
        let texts: Vec<String> = std::iter::once(&hypothesis)
            .chain(references)
            .map(|text| if self.lowercase { text.to_lowercase() } else { (*text).to_owned() })
            .collect();
        let characters: Vec<Vec<u32>> = texts.iter().map(|text| self.characters(text)).collect();
        let mut counts = vec![Vec::new(); references.len()];
        match_orders(&characters, self.char_order, &mut counts);
        if self.word_order > 0 {
            let mut interner = Interner::new();
            let tokens: Vec<Vec<u32>> =
                texts.iter().map(|text| interner.sequence(words(text).flat_map(split_word))).collect();
            match_orders(&tokens, self.word_order, &mut counts);
        }
        // Take the first of equally good references, as sacreBLEU does: another one has different
        // totals.
        let mut best = (-1.0, Vec::new());
        for counts in counts {
            let score = self.f_score(&counts);
            if score > best.0 {
                best = (score, counts);
            }
        }
        best.1
    }

    fn compute(&self, counts: &[f64]) -> (f64, Details) {
        (self.f_score(counts), Details::Chrf {})
    }

    fn settings(&self) -> String {
        let yes_no = |yes: bool| if yes { "yes" } else { "no" };
        format!(
            "case:{}|eff:{}|nc:{}|nw:{}|space:{}",
            if self.lowercase { "lc" } else { "mixed" },
            yes_no(!self.eps_smoothing),
            self.char_order,
            self.word_order,
            yes_no(self.whitespace)
        )
    }
}

impl Chrf {
    fn characters(&self, text: &str) -> Vec<u32> {
        if self.whitespace {
            text.chars().map(u32::from).collect()
        } else {
            words(text).flat_map(str::chars).map(u32::from).collect()
        }
    }
}

/// Appends the counts of every order of hypothesis and reference to `counts`, reference by
/// reference.
fn match_orders(sequences: &[Vec<u32>], orders: usize, counts: &mut [Vec<f64>]) {
    let mut ngrams = Ngrams::new(sequences);
    for order in 0..orders {
        if order > 0 {
            ngrams.lengthen();
        }
        let hypothesis = ngrams.counts(0);
        for (reference, counts) in counts.iter_mut().enumerate() {
            let n_ref = ngrams.len(reference + 1);
            // A hypothesis cannot be wrong in an order that the reference does not have.
            let n_hyp = if n_ref > 0 { ngrams.len(0) } else { 0 };
            let n_match = overlap(&hypothesis, &ngrams.counts(reference + 1));
            counts.extend([n_hyp as f64, n_ref as f64, n_match as f64]);
        }
    }
}

/// Splits one ASCII punctuation mark off a word: the last character, or else the first. `(hi)`
/// becomes `(hi` and `)`, as in sacreBLEU.
fn split_word(word: &str) -> impl Iterator<Item = &str> {
    let mut chars = word.chars();
    let (first, last) = (chars.next(), chars.next_back());
    let cut = match (first, last) {
        (_, Some(last)) if last.is_ascii_punctuation() => word.len() - 1,
        (Some(first), Some(_)) if first.is_ascii_punctuation() => 1,
        _ => word.len(),
    };
    let (head, tail) = word.split_at(cut);
    [head, tail].into_iter().filter(|part| !part.is_empty())
}
