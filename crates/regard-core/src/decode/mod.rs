//! Search: from source sentences to the most probable target tokens.
//!
//! [`search`] sorts the sentences by length, forms batches, and assigns one at a time to each core.
//! Inside a batch, all hypotheses of all sentences take a step together; finished ones leave. The
//! translation of a sentence does not depend on the other sentences, on their order or on the
//! number of threads.
//!
//! `beam_search` has the loop over the steps of a batch. A step runs `decoder`, the models and
//! their state (`executor` for the layers, `workspace` for their buffers, `kv_cache` for their
//! state), `logits_processors`, which ban or modify tokens, and a `scorer`, which finds the likely
//! words (with log-probabilities from `normalization`), and updates `hypotheses`, the beams.
//! `constraints` keeps required phrases in a beam; `forced` scores given translations instead;
//! `trace` records what the layers compute for one of them.

mod attention;
mod attention_maps;
mod batches;
mod beam_search;
mod beam_steps;
mod constraints;
mod decoder;
mod encoders;
mod engine;
mod executor;
mod forced;
mod full_rows;
mod hypotheses;
mod kv_cache;
mod length_penalty;
mod ragged_vec;
mod logits_processors;
mod normalization;
mod options;
mod sampling;
mod scorer;
mod shortlist;
mod ssru;
mod trace;
mod validate;
mod workspace;

pub use attention_maps::{LayerInputs, attention_maps, encoder_output, layer_inputs};
pub use beam_steps::{BeamEntry, BeamSteps, beam_steps};
pub use constraints::Constraint;
pub use engine::{Engine, Values, peak_speed};
pub use length_penalty::LengthPenalty;
pub use options::{BeamRule, EarlyStopping, Sampling, SearchOptions};
pub use shortlist::{Shortlist, ShortlistSize, word_translations};
pub use trace::{
    Ablation, AttentionTrace, EmbeddingTrace, FeedForwardTrace, LayerTrace, Matrix, NextWord, SsruTrace,
    StackTrace, Tracer,
};

use crate::model::Transformer;
use crate::{DType, Result};
use batches::{Cores, in_batches};
use beam_search::BatchSearch;
use forced::ForcedDecoding;
use regard_kernels::Isa;
use validate::{check, check_pairs, check_weights};

/// One translation of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Its tokens, without start and end tokens.
    pub ids: Vec<u32>,
    /// The log-probability divided by the length penalty, by which hypotheses are ranked.
    pub score: f32,
    /// The log-probability of all its tokens, including the end.
    pub log_probability: f32,
    /// The log-probability of each token, including the end if it was reached.
    pub token_log_probabilities: Vec<f32>,
    /// Whether it ended with the end token rather than at the length limit.
    pub ended: bool,
    /// The attention of each token of `token_log_probabilities` over the source tokens, averaged
    /// over heads; empty unless [`SearchOptions::attention`] is set.
    pub attention: Vec<Vec<f32>>,
}

/// Observes a search: it can cancel sentences and sees their progress. Several threads call it
/// concurrently.
pub trait SearchObserver: Sync {
    /// Whether sentence `index` is still wanted; called before each step. If not, its search is
    /// abandoned.
    fn is_active(&self, index: usize) -> bool;

    /// Receives the best running hypothesis of sentence `index` after each step.
    fn on_progress(&self, index: usize, ids: &[u32]);

    /// Whether to call [`SearchObserver::on_beam`], for which hypotheses are copied.
    fn follows_beams(&self) -> bool {
        false
    }

    /// Receives all hypotheses of sentence `index` after a step.
    fn on_beam(&self, _index: usize, _hypotheses: Vec<BeamEntry>) {}
}

/// Never cancels and ignores progress.
impl SearchObserver for () {
    fn is_active(&self, _: usize) -> bool {
        true
    }

    fn on_progress(&self, _: usize, _: &[u32]) {}
}

/// Translates each source sentence (ids with the end token); returns the best hypotheses of each,
/// best first.
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

/// The same with several models that share a vocabulary, whose probabilities are averaged.
pub fn search_ensemble(
    engines: &[&Engine],
    sources: &[Vec<u32>],
    options: &SearchOptions,
    threads: usize,
) -> Result<Vec<Vec<Hypothesis>>> {
    search_observed(engines, sources, options, threads, &())
}

/// The same, observed by `observer`.
pub fn search_observed(
    engines: &[&Engine],
    sources: &[Vec<u32>],
    options: &SearchOptions,
    threads: usize,
    observer: &dyn SearchObserver,
) -> Result<Vec<Vec<Hypothesis>>> {
    search_constrained(engines, sources, &[], options, threads, observer)
}

/// The same with phrases that the translation of each sentence must contain; sentences beyond the
/// end of the list have none. Sampling ignores them. A sentence that reaches its length limit first
/// lacks some of them.
pub fn search_constrained(
    engines: &[&Engine],
    sources: &[Vec<u32>],
    constraints: &[Vec<Constraint>],
    options: &SearchOptions,
    threads: usize,
    observer: &dyn SearchObserver,
) -> Result<Vec<Vec<Hypothesis>>> {
    check(engines, sources, options)?;
    let mut found = vec![Vec::new(); sources.len()];
    let lengths: Vec<usize> = sources.iter().map(Vec::len).collect();
    let constrained = constraints.iter().any(|list| !list.is_empty());
    let searcher = |team| BatchSearch::new(engines, options, constrained, team);
    in_batches(
        &lengths,
        options.batch,
        Cores::new(threads, engines),
        &mut found,
        searcher,
        |search, batch| search.run(batch, sources, constraints, observer),
    );
    Ok(found)
}

/// Forced decoding: the log-probability of each token of the given translations, including the end.
pub fn score_pairs(
    engines: &[&Engine],
    pairs: &[(Vec<u32>, Vec<u32>)],
    threads: usize,
) -> Result<Vec<Vec<f32>>> {
    let options = SearchOptions::default();
    check_pairs(engines, pairs, &options)?;
    let mut scores = vec![Vec::new(); pairs.len()];
    let lengths: Vec<usize> = pairs.iter().map(|(_, target)| target.len()).collect();
    let decoding = |team| ForcedDecoding::new(engines, team);
    in_batches(
        &lengths,
        options.batch,
        Cores::new(threads, engines),
        &mut scores,
        decoding,
        |decoding, batch| decoding.run(batch, pairs),
    );
    Ok(scores)
}
