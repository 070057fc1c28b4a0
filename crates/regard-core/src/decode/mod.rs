//! Search: from encoded sentences to the most probable target tokens.
//!
//! [`search`] sorts the sentences by length, makes batches, and gives each core one at a time. Inside a batch, all hypotheses of all
//! sentences take a step together; finished ones leave. What a sentence gets does not depend on the others, on their
//! order or on the number of threads.

mod attention;
mod beam;
mod constraints;
mod encoders;
mod engine;
mod executor;
mod hypotheses;
mod options;
mod shortlist;

pub use attention::attention_maps;
pub use engine::{Engine, Values, peak_speed};
pub use options::{EarlyStopping, LengthPenalty, Sampling, SearchOptions};
pub use shortlist::{Shortlist, ShortlistSize};

use crate::model::{Positions, Transformer};
use crate::{DType, Error, Result};
use beam::BatchSearch;
use regard_kernels::Isa;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One translation of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Its tokens, without start and end.
    pub ids: Vec<u32>,
    /// What it was ranked by: the log-probability divided by the length penalty.
    pub score: f32,
    /// The log-probability of all its tokens, the end included.
    pub log_probability: f32,
    /// The log-probability of each token, the end included if it was reached.
    pub token_log_probabilities: Vec<f32>,
    /// Whether it came to its end, rather than to the length limit.
    pub ended: bool,
    /// The attention of each token of `token_log_probabilities` over the source tokens, averaged over heads; empty unless
    /// [`SearchOptions::attention`] is set.
    pub attention: Vec<Vec<f32>>,
}

/// Follows a search: it can cancel a sentence and sees how it grows. Several threads call it at once.
pub trait Watch: Sync {
    /// Whether sentence `index` is still wanted; called before each step. A sentence that is not is left unfinished.
    fn wanted(&self, index: usize) -> bool;

    /// The best hypothesis of sentence `index` that is still growing, after each step.
    fn grown(&self, index: usize, ids: &[u32]);
}

/// Waits for everything and ignores progress.
impl Watch for () {
    fn wanted(&self, _: usize) -> bool {
        true
    }

    fn grown(&self, _: usize, _: &[u32]) {}
}

/// Translates each source sentence (ids with their end token); the best hypotheses of each, best first.
pub fn search(
    model: &Transformer,
    weights: &[f32],
    sources: &[Vec<u32>],
    options: &SearchOptions,
    isa: Isa,
    threads: usize,
) -> Result<Vec<Vec<Hypothesis>>> {
    check_weights(model, weights)?;
    let engine = Engine::new(model, weights, DType::F32, isa);
    search_ensemble(&[&engine], sources, options, threads)
}

/// The same with several models of one vocabulary, whose probabilities are averaged.
pub fn search_ensemble(
    engines: &[&Engine],
    sources: &[Vec<u32>],
    options: &SearchOptions,
    threads: usize,
) -> Result<Vec<Vec<Hypothesis>>> {
    search_watched(engines, sources, options, threads, &())
}

/// The same, followed by `watch`.
pub fn search_watched(
    engines: &[&Engine],
    sources: &[Vec<u32>],
    options: &SearchOptions,
    threads: usize,
    watch: &dyn Watch,
) -> Result<Vec<Vec<Hypothesis>>> {
    check(engines, sources, options)?;
    let mut found = vec![Vec::new(); sources.len()];
    let lengths: Vec<usize> = sources.iter().map(Vec::len).collect();
    in_batches(engines, &lengths, options, threads, &mut found, |search, batch| {
        search.run(batch, sources, watch)
    });
    Ok(found)
}

/// Gives each core one batch after the other; what `work` makes of a batch comes to the places of its sentences.
fn in_batches<T: Send>(
    engines: &[&Engine],
    lengths: &[usize],
    options: &SearchOptions,
    threads: usize,
    results: &mut [T],
    work: impl Fn(&mut BatchSearch<'_>, &[usize]) -> Vec<T> + Sync,
) {
    // Sentences of like length step together; the longest first, so that no core is left with them at the end.
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lengths[i]), i));
    let per_batch = options.batch.min(lengths.len().div_ceil(threads.max(1))).max(1);
    let batches = batches(&order, lengths, per_batch);
    let workers = threads.clamp(1, batches.len().max(1));
    // With fewer batches than cores, the others help inside the matrix products.
    let inside = (threads / workers).max(1);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(results);
    let take = || {
        let mut search = BatchSearch::new(engines, options, inside);
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = work(&mut search, batch);
            let mut results = results.lock().unwrap_or_else(|e| e.into_inner());
            for (&i, found) in batch.iter().zip(found) {
                results[i] = found;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(take);
        }
        take();
    });
}

/// Tokens of a batch at most: what it needs of memory does not depend on how long sentences are.
const TOKENS: usize = 4_096;

/// Batches of at most `most` sentences and [`TOKENS`] tokens; a longer sentence is a batch of its own.
fn batches<'a>(order: &'a [usize], lengths: &[usize], most: usize) -> Vec<&'a [usize]> {
    let mut found = Vec::new();
    let mut rest = order;
    while !rest.is_empty() {
        let mut tokens = 0;
        let fits = |&&i: &&usize| {
            tokens += lengths[i];
            tokens <= TOKENS
        };
        let count = rest.iter().take(most).take_while(fits).count().max(1);
        let (batch, others) = rest.split_at(count);
        found.push(batch);
        rest = others;
    }
    found
}

/// The log-probability of each token of the given translations, their ends included: forced decoding.
pub fn score_pairs(
    engines: &[&Engine],
    pairs: &[(Vec<u32>, Vec<u32>)],
    threads: usize,
) -> Result<Vec<Vec<f32>>> {
    let options = SearchOptions::default();
    check_pairs(engines, pairs, &options)?;
    let mut scores = vec![Vec::new(); pairs.len()];
    let lengths: Vec<usize> = pairs.iter().map(|(_, target)| target.len()).collect();
    in_batches(engines, &lengths, &options, threads, &mut scores, |search, batch| search.force(batch, pairs));
    Ok(scores)
}

/// Sentences and their translations are in the vocabularies, and no longer than the models can read.
fn check_pairs(engines: &[&Engine], pairs: &[(Vec<u32>, Vec<u32>)], options: &SearchOptions) -> Result<()> {
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

fn check_weights(model: &Transformer, weights: &[f32]) -> Result<()> {
    let (has, needs) = (weights.len(), model.parameters().len());
    if has == needs {
        return Ok(());
    }
    Err(Error::Input { operation: "search", message: format!("{has} weights for a model of {needs}") })
}

fn check(engines: &[&Engine], sources: &[Vec<u32>], options: &SearchOptions) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_few_sentences_and_few_tokens() {
        let lengths = [5_000, 4_000, 90, 6, 5, 4, 3];
        let order: Vec<usize> = (0..lengths.len()).collect();
        assert_eq!(batches(&order, &lengths, 3), [&[0][..], &[1, 2, 3], &[4, 5, 6]]);
        assert_eq!(batches(&order[..2], &lengths, 3), [&[0][..], &[1]]);
        assert!(batches(&[], &lengths, 3).is_empty());
    }
}
