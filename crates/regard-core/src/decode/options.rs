//! Every setting of the search, with the paper's defaults.

use super::{LengthPenalty, Shortlist};
use crate::{Error, Result};
use std::sync::Arc;

/// When a beam search stops looking for better hypotheses; the three values and rules of
/// `transformers`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStopping {
    /// When the best running hypothesis, at its present length, can't beat the worst finished one.
    #[default]
    No,
    /// As soon as there are as many finished hypotheses as beams.
    Yes,
    /// When no running hypothesis can beat the worst finished one at any length up to the limit:
    /// exact but for the pruning of the beam.
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

/// How a beam is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BeamRule {
    /// As `transformers` does: `k` hypotheses run until enough of them have ended.
    #[default]
    Transformers,
    /// As CTranslate2 does: as `transformers`, but padding is no word, and behind a forced first
    /// token only the best candidate may be the end.
    Ctranslate2,
    /// As Marian does: a hypothesis that ends leaves its place empty, and the search goes on until
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
    /// The same seed draws the same tokens.
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
    /// Hypotheses per sentence; 1 is greedy search.
    pub beam: usize,
    /// Translations to return, at most `beam`; with sampling, translations to draw.
    pub nbest: usize,
    /// α of the length penalty.
    pub length_penalty: f32,
    /// The form of the length penalty.
    pub penalty: LengthPenalty,
    /// How the beam is kept.
    pub rule: BeamRule,
    /// When to stop; [`BeamRule::Marian`] does not look at it.
    pub early_stopping: EarlyStopping,
    /// The largest number of tokens more than the source has.
    pub extra_length: usize,
    /// The largest number of tokens, the end included, is this times the source's, rounded up; with
    /// it, `extra_length` does not count.
    pub length_factor: Option<f32>,
    /// The largest number of tokens, the end included; without a value only `extra_length` limits
    /// it.
    pub max_length: Option<usize>,
    /// The smallest number of tokens before the end.
    pub min_length: usize,
    /// Whether the last possible token is the end, at no cost, as Marian models have it; otherwise
    /// the sentence is just cut.
    pub forced_end: bool,
    /// No n-gram of this length occurs twice; 0 allows all.
    pub no_repeat_ngram: usize,
    /// What the log-probability of tokens already there is multiplied by, 1 changes nothing;
    /// without a beam, what their logits are made smaller by, as in `transformers`.
    pub repetition_penalty: f32,
    /// Tokens that every translation begins with.
    pub prefix: Vec<u32>,
    /// The token that comes first, at no cost, unless there is a prefix.
    pub forced_first: Option<u32>,
    /// Tokens that never come; padding is always among them.
    pub banned: Vec<u32>,
    /// Sequences of tokens that never come: where all but the last have come, that one is banned.
    pub banned_sequences: Vec<Vec<u32>>,
    /// Whether the probabilities of what is left are made to sum to one again where tokens are
    /// banned.
    pub renormalize: bool,
    /// The words that may come for a source sentence; all, if there is none. The softmax is over
    /// those alone.
    pub shortlist: Option<Arc<Shortlist>>,
    /// Sample instead of searching.
    pub sampling: Option<Sampling>,
    /// Whether hypotheses carry their attention over the source.
    pub attention: bool,
    /// The decoder layer whose attention that is; all of them if not given, each as of the step
    /// that fits it.
    pub attention_layer: Option<usize>,
    /// Whether characters that the vocabulary lacks are read as similar ones that it has, such as
    /// `"` for `“`.
    pub substitute: bool,
    /// Sentences that take their steps together.
    pub batch: usize,
    /// The end of a sentence.
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

    /// The most tokens, the end included, for a source of `n` tokens with its end.
    pub fn limit(&self, n: usize) -> usize {
        let by_source = match self.length_factor {
            Some(factor) => (factor * n as f32).ceil().max(1.0) as usize,
            None => n + self.extra_length,
        };
        let limit = self.max_length.unwrap_or(usize::MAX).min(by_source);
        limit.max(self.min_length + 1).max(self.prefix.len() + 1)
    }
}
