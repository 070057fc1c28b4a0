//! Whole rows of log-probabilities, for scorers that need more than the best words.

use super::decoder::Decoder;
use super::hypotheses::{Beam, running};
use super::logits_processors::{LogitsProcessors, mask};
use super::normalization::Normalization;
use super::shortlist::BatchShortlist;
use super::{SearchOptions, Shortlist};
use crate::model::ModelConfig;
use regard_kernels::{MatMut, log_add_exp, log_probabilities};
use std::sync::Arc;

/// Computes rows of log-probabilities, one for each running hypothesis.
#[derive(Debug)]
pub(super) struct FullRows {
    /// v: excludes padding, the last word, unless it takes part in the softmax.
    words: usize,
    normalization: Normalization,
    /// `[r, v]`
    log_p: Vec<f32>,
    /// The same for another model of an ensemble.
    other: Vec<f32>,
    shortlist: Option<Arc<Shortlist>>,
    /// Words that are on the shortlist of every sentence.
    always: Vec<u32>,
    batch_shortlist: Option<BatchShortlist>,
}

impl FullRows {
    pub(super) fn new(options: &SearchOptions, config: &ModelConfig, normalization: Normalization) -> Self {
        // Words that must stay possible, and padding if it takes part in the softmax.
        let padding = config.target_pad().filter(|_| normalization.with_padding);
        let always = options.prefix.iter().chain(&options.forced_first).chain([&options.end]).chain(&padding);
        FullRows {
            always: always.copied().collect(),
            shortlist: options.shortlist.clone(),
            normalization,
            ..FullRows::of_words(config.output_words() + usize::from(normalization.with_padding))
        }
    }

    /// Over the first `words` words, without a shortlist; bans do not renormalise the
    /// probabilities.
    pub(super) fn of_words(words: usize) -> Self {
        FullRows {
            words,
            normalization: Normalization::default(),
            log_p: Vec::new(),
            other: Vec::new(),
            shortlist: None,
            always: Vec::new(),
            batch_shortlist: None,
        }
    }

    /// Begins a batch of these source sentences.
    pub(super) fn begin(&mut self, sources: &[&[u32]]) {
        let FullRows { shortlist, always, .. } = self;
        self.batch_shortlist = shortlist.as_ref().map(|list| BatchShortlist::new(list, sources, always));
    }

    /// v: the number of words in the softmax.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// How rows are turned into log-probabilities.
    pub(super) fn normalization(&self) -> Normalization {
        self.normalization
    }

    /// The shortlist of the batch.
    pub(super) fn shortlist(&self) -> Option<&BatchShortlist> {
        self.batch_shortlist.as_ref()
    }

    /// Runs a step and applies the processors to the rows: `[r, v]`.
    pub(super) fn process(
        &mut self,
        decoder: &mut Decoder<'_>,
        processors: &LogitsProcessors,
        beams: &[Beam],
    ) -> impl Iterator<Item = &[f32]> {
        let (single, isa) = (decoder.models() == 1, decoder.engine(0).isa());
        match single {
            true => self.score_one(decoder, processors),
            false => self.score_ensemble(decoder),
        }
        for (row, (sentence, beam, hypothesis)) in running(beams).enumerate() {
            let log_p = &mut self.log_p[row * self.words..][..self.words];
            if let Some(list) = &self.batch_shortlist {
                list.mask_others(sentence, log_p);
                if !self.normalization.on_logits && log_p.iter().any(|&p| p > f32::NEG_INFINITY) {
                    log_probabilities(isa, log_p, self.words);
                }
            }
            // The probabilities of an ensemble were averaged before any ban.
            match single && processors.only_ban(row) {
                true => mask(processors.bans().row(row), log_p),
                false => processors.process(row, &hypothesis.tokens, beam.limit, log_p),
            }
        }
        self.log_p.chunks_exact(self.words)
    }

    /// Rows of one model; logits, if the processors start with those. If words are only banned, the
    /// remaining words get bitwise the same values as from
    /// [`BestWords`](regard_kernels::BestWords).
    fn score_one(&mut self, decoder: &mut Decoder<'_>, processors: &LogitsProcessors) {
        logits(decoder, 0, self.words, &mut self.log_p);
        if self.normalization.after_bans {
            let rows = self.log_p.chunks_exact_mut(self.words).enumerate();
            let only_ban = rows.filter(|(row, _)| processors.only_ban(*row));
            only_ban.for_each(|(row, logits)| mask(processors.bans().row(row), logits));
        }
        if !self.normalization.on_logits {
            log_probabilities(decoder.engine(0).isa(), &mut self.log_p, self.words);
        }
    }

    /// Rows averaged over the models of an ensemble.
    fn score_ensemble(&mut self, decoder: &mut Decoder<'_>) {
        let models = decoder.models();
        for model in 0..models {
            let to = if model == 0 { &mut self.log_p } else { &mut self.other };
            logits(decoder, model, self.words, to);
            log_probabilities(decoder.engine(model).isa(), to, self.words);
            if model > 0 {
                log_add_exp(decoder.engine(0).isa(), &mut self.log_p, &self.other);
            }
        }
        if models > 1 {
            let shift = (models as f32).ln();
            self.log_p.iter_mut().for_each(|x| *x -= shift);
        }
    }
}

/// The logits of one model: `[r, words]`.
fn logits(decoder: &mut Decoder<'_>, model: usize, words: usize, to: &mut Vec<f32>) {
    let (engine, rows) = (decoder.engine(model), decoder.rows());
    let table = engine.matrix(engine.model().output());
    let all = table.outputs();
    to.resize(rows * all, 0.0);
    let (x, scratch, team) = decoder.decode(model);
    table.matmul_with(team, table.rows(x, scratch), engine.bias(), MatMut::new(to, rows, all));
    // Remove the excluded padding at the end of each row.
    for row in 1..rows {
        to.copy_within(row * all..row * all + words, row * words);
    }
    to.truncate(rows * words);
}
