//! How logits become log-probabilities: over which words, and before or after bans.

use super::{BeamRule, SearchOptions};

/// The softmax of a search. It applies to the rows that a scorer computes; the processors modify
/// those rows afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Normalization {
    /// Whether the processors get logits: in greedy search and sampling, `transformers` applies the
    /// repetition penalty before the softmax.
    pub(super) on_logits: bool,
    /// Whether padding takes part in the softmax and is banned afterwards. This matters only if the
    /// rows are not renormalised, or if something else modifies them in between.
    pub(super) with_padding: bool,
    /// Whether to renormalise the remaining probabilities after bans.
    pub(super) after_bans: bool,
}

impl Normalization {
    /// The normalization of a search with this many models, whose vocabulary ends with `pad` if it
    /// has padding.
    pub(super) fn new(options: &SearchOptions, models: usize, pad: Option<u32>) -> Self {
        let penalised = options.repetition_penalty != 1.0;
        Normalization {
            on_logits: penalised && models == 1 && (options.beam == 1 || options.sampling.is_some()),
            // Marian's vocabularies have no padding.
            with_padding: pad.is_some()
                && (penalised || !options.renormalize)
                && options.rule == BeamRule::Transformers,
            after_bans: options.renormalize,
        }
    }
}

/// Turns logits, or partly masked log-probabilities, into log-probabilities. Does nothing if all
/// are masked.
pub(super) fn renormalize(row: &mut [f32]) {
    let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !top.is_finite() {
        return;
    }
    // Most words are masked if there is a shortlist.
    let allowed = row.iter().filter(|&&x| x > f32::NEG_INFINITY);
    let sum: f64 = allowed.map(|x| f64::from(x - top).exp()).sum();
    let shift = top + sum.ln() as f32;
    row.iter_mut().for_each(|x| *x -= shift);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Sampling;

    #[test]
    fn padding_takes_part_only_where_it_makes_a_difference() {
        let normalization = |options: &SearchOptions, models| {
            let found = Normalization::new(options, models, Some(9));
            (found.with_padding, found.on_logits)
        };
        let d = SearchOptions::default;
        assert_eq!(normalization(&d(), 1), (false, false));
        assert_eq!(normalization(&SearchOptions { renormalize: false, ..d() }, 1), (true, false));
        assert_eq!(normalization(&SearchOptions { repetition_penalty: 1.5, ..d() }, 1), (true, false));
        let greedy = SearchOptions { repetition_penalty: 1.5, beam: 1, ..d() };
        assert_eq!(normalization(&greedy, 1), (true, true));
        assert_eq!(normalization(&greedy, 2), (true, false));
        assert!(!Normalization::new(&greedy, 1, None).with_padding);
        let sampled = SearchOptions { repetition_penalty: 1.5, sampling: Some(Sampling::default()), ..d() };
        assert_eq!(normalization(&sampled, 1), (true, true));
    }
}
