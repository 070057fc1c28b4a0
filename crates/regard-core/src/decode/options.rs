//! The settings of the search, with the paper's defaults.

use super::{LengthPenalty, Shortlist};
use crate::{Error, Result};
use std::sync::Arc;

/// When a beam search stops looking for better hypotheses, with the three values and rules of
/// `transformers`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStopping {
    /// When the best running hypothesis, at its current length, cannot beat the worst finished one.
    #[default]
    No,
    /// As soon as there are as many finished hypotheses as beams.
    Yes,
    /// When no running hypothesis can beat the worst finished one at any length up to the limit:
    /// exact except for the pruning of the beam.
    Never,
}

impl serde::Serialize for EarlyStopping {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            EarlyStopping::No => to.serialize_bool(false),
            EarlyStopping::Yes => to.serialize_bool(true),
            EarlyStopping::Never => to.serialize_str("never"),
        }
    }
}

impl<'de> serde::Deserialize<'de> for EarlyStopping {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged, expecting = "expected true, false or \"never\"")]
        enum Value {
            Plain(bool),
            Word(Never),
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Never {
            Never,
        }
        Ok(match Value::deserialize(from)? {
            Value::Plain(false) => EarlyStopping::No,
            Value::Plain(true) => EarlyStopping::Yes,
            Value::Word(Never::Never) => EarlyStopping::Never,
        })
    }
}

/// How finished hypotheses affect the beam.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BeamRule {
    /// As in `transformers`: `k` hypotheses keep running until enough have ended.
    #[default]
    Transformers,
    /// As in CTranslate2: like `transformers`, but padding is not a word, and after a forced first
    /// token only the best candidate may be the end.
    Ctranslate2,
    /// As in Marian: a hypothesis that ends leaves its slot empty, and the search continues until
    /// none runs.
    Marian,
}

/// Sampling from the model's distribution instead of searching for the most probable translation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Below 1 sharpens the distribution, above 1 flattens it.
    pub temperature: f32,
    /// Sample from the `top_k` most likely tokens; 0 for all.
    pub top_k: usize,
    /// Sample from the most likely tokens whose probabilities sum to this; 1 for all.
    pub top_p: f32,
    /// The random seed.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 1 }
    }
}

/// All settings of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// The number of hypotheses per sentence; 1 is greedy search.
    pub beam: usize,
    /// The number of translations to return, at most `beam`; with sampling, the number to draw.
    pub nbest: usize,
    /// α of the length penalty.
    pub length_penalty: f32,
    /// The form of the length penalty.
    pub penalty: LengthPenalty,
    /// How finished hypotheses affect the beam.
    pub rule: BeamRule,
    /// When to stop; [`BeamRule::Marian`] ignores it.
    pub early_stopping: EarlyStopping,
    /// The maximum number of tokens beyond the length of the source.
    pub extra_length: usize,
    /// The maximum number of tokens, including the end, as a multiple of the source's, rounded up;
    /// overrides `extra_length`.
    pub length_factor: Option<f32>,
    /// The maximum number of tokens, including the end; if not set, only `extra_length` limits it.
    pub max_length: Option<usize>,
    /// The minimum number of tokens before the end.
    pub min_length: usize,
    /// Whether to force the end token at the length limit with log-probability 0, as Marian models
    /// do; otherwise the sentence is truncated.
    pub forced_end: bool,
    /// No n-gram of this order occurs twice; 0 allows all.
    pub no_repeat_ngram: usize,
    /// The factor applied to the log-probabilities of tokens that have already occurred; 1 changes
    /// nothing. Without a beam it applies to their logits, as in `transformers`.
    pub repetition_penalty: f32,
    /// Tokens that every translation begins with.
    pub prefix: Vec<u32>,
    /// The first token, forced with log-probability 0, unless there is a prefix.
    pub forced_first: Option<u32>,
    /// Tokens that are never generated; always includes padding.
    pub banned: Vec<u32>,
    /// Token sequences that are never generated: after all tokens but the last, the last is banned.
    pub banned_sequences: Vec<Vec<u32>>,
    /// Whether to renormalise the remaining probabilities after bans.
    pub renormalize: bool,
    /// The words allowed for a source sentence; all, if there is none. The softmax only includes
    /// these.
    pub shortlist: Option<Arc<Shortlist>>,
    /// Sample instead of searching.
    pub sampling: Option<Sampling>,
    /// Whether to record the attention of hypotheses over the source.
    pub attention: bool,
    /// The decoder layer whose attention to record; by default all, each from the step that matches
    /// it.
    pub attention_layer: Option<usize>,
    /// Whether to replace characters that the vocabulary lacks by similar ones that it has, such as
    /// `“` by `"`.
    pub substitute: bool,
    /// The number of sentences per batch.
    pub batch: usize,
    /// The end token.
    pub end: u32,
}

impl Default for SearchOptions {
    fn default() -> Self {
        SearchOptions {
            beam: 4,
            nbest: 1,
            length_penalty: 0.6,
            penalty: LengthPenalty::Power,
            rule: BeamRule::default(),
            early_stopping: EarlyStopping::No,
            extra_length: 50,
            length_factor: None,
            max_length: None,
            min_length: 0,
            forced_end: true,
            no_repeat_ngram: 0,
            repetition_penalty: 1.0,
            prefix: Vec::new(),
            forced_first: None,
            banned: Vec::new(),
            banned_sequences: Vec::new(),
            renormalize: true,
            shortlist: None,
            sampling: None,
            attention: false,
            attention_layer: None,
            substitute: false,
            batch: 32,
            end: 0,
        }
    }
}

impl SearchOptions {
    /// Rejects invalid settings, by name.
    pub fn validate(&self) -> Result<()> {
        let refuse = |field: &str, message: String| Err(Error::config(field, message));
        for (field, value) in [("beam", self.beam), ("nbest", self.nbest), ("batch", self.batch)] {
            if value == 0 {
                return refuse(field, "0 is too few, at least 1 is needed".into());
            }
        }
        if self.max_length == Some(0) {
            return refuse(
                "max_length",
                "0 leaves no room even for the end of the sentence; at least 1 is needed".into(),
            );
        }
        if self.sampling.is_none() && self.nbest > self.beam {
            return refuse("nbest", format!("{} is more than the beam size of {}", self.nbest, self.beam));
        }
        if let Some(most) = self.max_length {
            if self.min_length >= most {
                return refuse(
                    "min_length",
                    format!("{} leaves no room for the end token within max_length {most}", self.min_length),
                );
            }
            if self.prefix.len() >= most {
                let n = self.prefix.len();
                return refuse(
                    "prefix",
                    format!("{n} tokens leave no room for the end within max_length {most}"),
                );
            }
        }
        if !self.length_penalty.is_finite() {
            return refuse("length_penalty", format!("{} is not a number", self.length_penalty));
        }
        if let Some(factor) = self.length_factor.filter(|factor| !(*factor > 0.0 && factor.is_finite())) {
            return refuse("length_factor", format!("{factor} is not a positive number"));
        }
        if !(self.repetition_penalty > 0.0 && self.repetition_penalty.is_finite()) {
            return refuse(
                "repetition_penalty",
                format!("{} is not a positive number", self.repetition_penalty),
            );
        }
        if let Some(s) = self.sampling {
            if !(s.temperature > 0.0 && s.temperature.is_finite()) {
                return refuse("temperature", format!("{} is not a positive number", s.temperature));
            }
            if !(s.top_p > 0.0 && s.top_p <= 1.0) {
                return refuse("top_p", format!("{} is not above 0 and at most 1", s.top_p));
            }
        }
        Ok(())
    }

    /// The maximum number of tokens, including the end, for a source of `n` tokens including its
    /// end.
    pub fn limit(&self, n: usize) -> usize {
        let by_source = match self.length_factor {
            Some(factor) => (factor * n as f32).ceil().max(1.0) as usize,
            None => n + self.extra_length,
        };
        let limit = self.max_length.unwrap_or(usize::MAX).min(by_source);
        limit.max(self.min_length + 1).max(self.prefix.len() + 1)
    }
}
