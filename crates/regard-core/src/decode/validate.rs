//! Checks before a search begins.

use super::{Engine, SearchOptions};
use crate::model::{Positions, Transformer};
use crate::{Error, Result};

/// Checks that sentences and their translations are within the vocabularies and the length limits
/// of the models.
pub(super) fn check_pairs(
    engines: &[&Engine],
    pairs: &[(Vec<u32>, Vec<u32>)],
    options: &SearchOptions,
) -> Result<()> {
    let sources: Vec<Vec<u32>> = pairs.iter().map(|(source, _)| source.clone()).collect();
    check(engines, &sources, options)?;
    let config = engines[0].model().config();
    for (i, (_, target)) in pairs.iter().enumerate() {
        let refuse = |message| Err(Error::Input { operation: "scoring", message });
        if let Some(id) = target.iter().find(|&&id| id as usize >= config.target_vocabulary) {
            let most = config.target_vocabulary;
            return refuse(format!("translation {i}: token {id} is not in the vocabulary of {most}"));
        }
        if config.positions == Positions::Learned && target.len() > config.max_positions {
            let (has, most) = (target.len(), config.max_positions);
            return refuse(format!("translation {i} has {has} tokens, the model has {most} positions"));
        }
    }
    Ok(())
}

/// Checks the number of weights.
pub(super) fn check_weights(model: &Transformer, weights: &[f32]) -> Result<()> {
    let (has, needs) = (weights.len(), model.parameters().len());
    if has == needs {
        return Ok(());
    }
    Err(Error::Input { operation: "search", message: format!("{has} weights for a model of {needs}") })
}

/// Checks that models, sentences and options are compatible.
pub(super) fn check(engines: &[&Engine], sources: &[Vec<u32>], options: &SearchOptions) -> Result<()> {
    options.validate()?;
    let refuse = |message| Err(Error::Input { operation: "search", message });
    let Some(first) = engines.first().map(|e| e.model()) else { return refuse("there is no model".into()) };
    let words = first.config().target_vocabulary;
    for engine in engines {
        let config = engine.model().config();
        if config.target_vocabulary != words || config.source_vocabulary != first.config().source_vocabulary {
            return refuse(format!(
                "models of different vocabularies: {} and {words} words; an ensemble needs one",
                config.target_vocabulary
            ));
        }
        for (i, source) in sources.iter().enumerate() {
            if let Some(id) = source.iter().find(|&&id| id as usize >= config.source_vocabulary) {
                let most = config.source_vocabulary;
                return refuse(format!("sentence {i}: token {id} is not in the vocabulary of {most}"));
            }
            if config.positions == Positions::Learned && source.len() > config.max_positions {
                let most = config.max_positions;
                return refuse(format!(
                    "sentence {i} has {} tokens, the model has {most} positions",
                    source.len()
                ));
            }
        }
    }
    if let Some(list) = &options.shortlist {
        let (source, target) = (first.config().source_vocabulary, words);
        if list.vocabularies() != (source, target) {
            let (s, t) = list.vocabularies();
            return refuse(format!(
                "the shortlist is for vocabularies of {s} and {t} words, the model has {source} and {target}"
            ));
        }
    }
    let sequences = options.banned_sequences.iter().flatten();
    for id in options.prefix.iter().chain(&options.forced_first).chain(&options.banned).chain(sequences) {
        if *id as usize >= words {
            return refuse(format!(
                "token {id} of the prefix or of the banned ones is not in the vocabulary of {words}"
            ));
        }
    }
    Ok(())
}
