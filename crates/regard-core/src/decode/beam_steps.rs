//! A recorded beam search: the hypotheses after each step.

use super::{Engine, Hypothesis, SearchObserver, SearchOptions, search_observed};
use crate::Result;
use std::sync::{Mutex, PoisonError};

/// A hypothesis of a beam after a step.
#[derive(Clone, Debug, PartialEq)]
pub struct BeamEntry {
    /// Its tokens, including the end token if reached.
    pub tokens: Vec<u32>,
    /// The sum of their log-probabilities.
    pub log_probability: f32,
    /// The log-probability divided by the length penalty, by which finished hypotheses are ranked.
    pub score: f32,
    /// Whether it is finished.
    pub ended: bool,
}

/// A search, step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BeamSteps {
    /// The running and finished hypotheses after each step.
    pub steps: Vec<Vec<BeamEntry>>,
    /// The translations, best first.
    pub found: Vec<Hypothesis>,
}

/// Translates one sentence, given as ids with the end token, and records every step. Stops as soon
/// as `wanted` returns false.
pub fn beam_steps(
    engines: &[&Engine],
    source: &[u32],
    options: &SearchOptions,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<BeamSteps> {
    let recorder = Recorder { wanted, steps: Mutex::default() };
    let found = search_observed(engines, &[source.to_vec()], options, 1, &recorder)?;
    let steps = recorder.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(BeamSteps { steps, found: found.into_iter().flatten().collect() })
}

struct Recorder<'w> {
    wanted: &'w (dyn Fn() -> bool + Sync),
    steps: Mutex<Vec<Vec<BeamEntry>>>,
}

impl SearchObserver for Recorder<'_> {
    fn is_active(&self, _: usize) -> bool {
        (self.wanted)()
    }

    fn on_progress(&self, _: usize, _: &[u32]) {}

    fn follows_beams(&self) -> bool {
        true
    }

    fn on_beam(&self, _: usize, hypotheses: Vec<BeamEntry>) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(hypotheses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::decode::search_ensemble;
    use crate::model::{ModelConfig, Transformer};
    use regard_kernels::Isa;

    #[test]
    fn steps_grow_from_each_other_to_what_is_found() {
        let config = ModelConfig {
            d_model: 16,
            heads: 2,
            d_ff: 24,
            encoder_layers: 1,
            decoder_layers: 1,
            source_vocabulary: 23,
            target_vocabulary: 23,
            ..ModelConfig::default()
        };
        let model = Transformer::new(config).unwrap();
        let engine = Engine::new(&model, &model.parameters().initialise(3), DType::F32, Isa::best());
        let options = SearchOptions { beam: 3, nbest: 3, max_length: Some(7), ..SearchOptions::default() };
        let source = vec![4, 9, 2, 0];
        let followed = beam_steps(&[&engine], &source, &options, &|| true).unwrap();
        let plain = search_ensemble(&[&engine], std::slice::from_ref(&source), &options, 1).unwrap();
        assert_eq!(followed.found, plain[0]);
        assert!(followed.steps.len() > 1);
        for (t, step) in followed.steps.iter().enumerate() {
            let running: Vec<_> = step.iter().filter(|entry| !entry.ended).collect();
            assert!(running.len() <= 3);
            for entry in running.iter().filter(|entry| entry.tokens.len() == t + 1 && t > 0) {
                let parent = |e: &&BeamEntry| e.tokens == entry.tokens[..t];
                let parent = followed.steps[t - 1].iter().find(parent).expect("it grew from something");
                assert!(entry.log_probability <= parent.log_probability);
                let penalty = options.length_penalty_of(t + 1);
                assert_eq!(entry.score, entry.log_probability / penalty);
            }
        }
        let none = beam_steps(&[&engine], &source, &options, &|| false).unwrap();
        assert_eq!(none.steps, Vec::<Vec<BeamEntry>>::new());
    }
}
