//! The next words of every running hypothesis and their log-probabilities, by one of several
//! strategies.
//!
//! | strategy | when |
//! |---|---|
//! | [`BestWordsScorer`] | one model: the best words chunk by chunk, never all logits |
//! | [`ShortlistScorer`] | one model and a shortlist: the best words among those of the sentence |
//! | [`FullRowScorer`] | whole rows: an ensemble, constraints, or a processor that does more than ban |
//! | [`SamplingScorer`] | draws from whole rows |
//! | [`ForcedScorer`](super::forced::ForcedScorer) | the given tokens of whole rows |
//!
//! The first two fall back to whole rows in steps where a processor does more than ban.

use super::decoder::Decoder;
use super::full_rows::FullRows;
use super::hypotheses::{Beam, running};
use super::logits_processors::LogitsProcessors;
use super::normalization::Normalization;
use super::ragged_vec::RaggedVec;
use super::sampling::{draw, top_k};
use super::{Engine, Sampling, SearchOptions};
use regard_kernels::{Bans, BestWords, ChosenRows, RowLists, Vocabulary, log_probabilities};
use std::fmt::Debug;

/// For each running hypothesis, candidate words with their log-probabilities, best first.
pub(super) type Words = RaggedVec<(u32, f32)>;

/// Finds candidate words to extend hypotheses with.
pub(super) trait Scorer: Debug {
    /// Begins a batch of these source sentences.
    fn begin(&mut self, _: &Engine, _sources: &[&[u32]]) {}

    /// Runs a step and fills `words`: for each of the `r` running hypotheses of all beams, its best
    /// `2k` words.
    fn score(
        &mut self,
        decoder: &mut Decoder<'_>,
        processors: &LogitsProcessors,
        beams: &[Beam],
        words: &mut Words,
    );
}

/// Chooses the strategy of a search; `constrained` if any sentence has constraints.
pub(super) fn choose_scorer(
    options: &SearchOptions,
    decoder: &Decoder<'_>,
    normalization: Normalization,
    constrained: bool,
) -> Box<dyn Scorer> {
    let config = decoder.engine(0).model().config();
    let rows = FullRows::new(options, config, normalization);
    // Even if half of the candidates are ends, the beam stays full.
    let full = FullRowScorer { rows, count: 2 * options.beam, found: Vec::new() };
    if let Some(sampling) = options.sampling {
        return Box::new(SamplingScorer { rows: full.rows, sampling, end: options.end });
    }
    let always_full = decoder.models() > 1 || options.repetition_penalty != 1.0 || constrained;
    match &options.shortlist {
        _ if always_full => Box::new(full),
        Some(_) => {
            Box::new(ShortlistScorer { full, table: None, places: RaggedVec::default(), log_p: Vec::new() })
        }
        None => Box::new(BestWordsScorer { full, best: BestWords::default() }),
    }
}

/// One model with its whole vocabulary.
#[derive(Debug)]
struct BestWordsScorer {
    full: FullRowScorer,
    best: BestWords,
}

impl Scorer for BestWordsScorer {
    fn score(
        &mut self,
        decoder: &mut Decoder<'_>,
        processors: &LogitsProcessors,
        beams: &[Beam],
        words: &mut Words,
    ) {
        if !processors.all_only_ban() {
            return self.full.score(decoder, processors, beams, words);
        }
        let (engine, rows) = (decoder.engine(0), decoder.rows());
        let table = engine.matrix(engine.model().output());
        let vocabulary = Vocabulary { table, words: self.full.rows.words(), bias: engine.bias() };
        let banned = processors.bans();
        let renormalise = self.full.rows.normalization().after_bans;
        let bans = Bans { offsets: banned.offsets(), words: banned.items(), renormalise };
        let (x, scratch, team) = decoder.decode(0);
        self.best.find(team, vocabulary, table.rows(x, scratch), bans, self.full.count);
        words.clear();
        (0..rows).for_each(|row| words.push(self.best.row(row).iter().copied()));
    }
}

/// One model with a shortlist.
#[derive(Debug)]
struct ShortlistScorer {
    full: FullRowScorer,
    /// The rows of the output matrix for the words of the batch, and their bias.
    table: Option<(ChosenRows, Option<Vec<f32>>)>,
    /// For each hypothesis, the words of its sentence, as indices into the words of the batch.
    places: RaggedVec<u32>,
    /// Their logits, then their log-probabilities.
    log_p: Vec<f32>,
}

impl Scorer for ShortlistScorer {
    fn begin(&mut self, engine: &Engine, sources: &[&[u32]]) {
        self.full.begin(engine, sources);
        let reuse = self.table.take().map(|(table, _)| table);
        self.table = self.full.rows.shortlist().map(|list| {
            let table = engine.matrix(engine.model().output()).choose(list.words(), reuse);
            let bias = engine.bias().map(|bias| list.words().iter().map(|&w| bias[w as usize]).collect());
            (table, bias)
        });
    }

    fn score(
        &mut self,
        decoder: &mut Decoder<'_>,
        processors: &LogitsProcessors,
        beams: &[Beam],
        words: &mut Words,
    ) {
        let Self { full, table, places, log_p } = self;
        let (true, Some((table, bias)), Some(list)) =
            (processors.all_only_ban(), table, full.rows.shortlist())
        else {
            return full.score(decoder, processors, beams, words);
        };
        places.clear();
        running(beams).for_each(|(sentence, ..)| {
            places.push_with(|places| places.extend_from_slice(list.of(sentence)));
        });
        log_p.resize(places.items().len(), 0.0);
        let (x, scratch, _) = decoder.decode(0);
        let lists = RowLists { offsets: places.offsets(), rows: places.items() };
        table.matmul(table.rows(x, scratch), lists, bias.as_deref(), log_p);
        words.clear();
        let mut rest = &mut log_p[..];
        for (row, (sentence, ..)) in running(beams).enumerate() {
            let places = list.of(sentence);
            let log_p;
            (log_p, rest) = rest.split_at_mut(places.len());
            let banned = processors.bans().row(row).iter().filter_map(|&word| list.find(sentence, word));
            if full.rows.normalization().after_bans {
                banned.for_each(|i| log_p[i] = f32::NEG_INFINITY);
                log_probabilities(table.isa(), log_p, places.len());
            } else {
                log_probabilities(table.isa(), log_p, places.len());
                banned.for_each(|i| log_p[i] = f32::NEG_INFINITY);
            }
            top_k(log_p, full.count, &mut full.found);
            words.push(full.found.iter().map(|&(i, p)| (list.words()[places[i as usize] as usize], p)));
        }
    }
}

/// The best words of whole rows.
#[derive(Debug)]
struct FullRowScorer {
    rows: FullRows,
    /// The number of words for each hypothesis.
    count: usize,
    found: Vec<(u32, f32)>,
}

impl Scorer for FullRowScorer {
    fn begin(&mut self, _: &Engine, sources: &[&[u32]]) {
        self.rows.begin(sources);
    }

    fn score(
        &mut self,
        decoder: &mut Decoder<'_>,
        processors: &LogitsProcessors,
        beams: &[Beam],
        words: &mut Words,
    ) {
        words.clear();
        let rows = self.rows.process(decoder, processors, beams);
        for (log_p, (_, beam, hypothesis)) in rows.zip(running(beams)) {
            top_k(log_p, self.count, &mut self.found);
            if !beam.constraints.is_empty() {
                // A token that continues a phrase is a candidate however unlikely it is, unless
                // banned.
                for token in beam.constraints.next_tokens(hypothesis.progress, &hypothesis.tokens) {
                    let p = log_p.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
                    if p > f32::NEG_INFINITY && self.found.iter().all(|&(found, _)| found != token) {
                        self.found.push((token, p));
                    }
                }
            }
            words.push(self.found.iter().copied());
        }
    }
}

/// Samples one word from each whole row.
#[derive(Debug)]
struct SamplingScorer {
    rows: FullRows,
    sampling: Sampling,
    /// Used if no other word is possible.
    end: u32,
}

impl Scorer for SamplingScorer {
    fn begin(&mut self, _: &Engine, sources: &[&[u32]]) {
        self.rows.begin(sources);
    }

    fn score(
        &mut self,
        decoder: &mut Decoder<'_>,
        processors: &LogitsProcessors,
        beams: &[Beam],
        words: &mut Words,
    ) {
        words.clear();
        let rows = self.rows.process(decoder, processors, beams);
        for (log_p, (_, _, hypothesis)) in rows.zip(running(beams)) {
            let length = hypothesis.tokens.len() + 1;
            let token = draw(&self.sampling, hypothesis.key, length, log_p).unwrap_or(self.end);
            words.push([(token, log_p[token as usize])]);
        }
    }
}
