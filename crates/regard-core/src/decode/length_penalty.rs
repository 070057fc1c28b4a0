//! The length penalty of beam search (section 6.1 of the paper).

use super::SearchOptions;

/// The divisor of a log-probability, where `n` is the number of tokens including the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthPenalty {
    /// `n^α`, as in `transformers` and CTranslate2.
    #[default]
    Power,
    /// `((5 + n) / 6)^α`, the paper's (Wu et al., 2016, equation 14).
    Paper,
}

impl SearchOptions {
    /// The length penalty for `n` tokens, including the end: the divisor of their log-probability.
    pub fn length_penalty_of(&self, n: usize) -> f32 {
        match self.penalty {
            LengthPenalty::Power => (n as f32).powf(self.length_penalty),
            LengthPenalty::Paper => ((5.0 + n as f32) / 6.0).powf(self.length_penalty),
        }
    }
}
