//! Beam search over a batch, with the rules of `transformers`; greedy search and sampling are the
//! special case of one beam.
//!
//! Shapes in comments: b sentences, k hypotheses per beam, r ≤ b·k running hypotheses of all beams,
//! n source tokens, d model width, v vocabulary words.

use super::constraints::{Constraint, Constraints};
use super::decoder::Decoder;
use super::hypotheses::{Beam, Extension};
use super::logits_processors::LogitsProcessors;
use super::normalization::Normalization;
use super::scorer::{Scorer, Words, choose_scorer};
use super::{Engine, Hypothesis, SearchObserver, SearchOptions};
use crate::batch::Packed;
use crate::model::Positions;
use regard_kernels::{Key, Team};

/// Searches batch after batch, reusing memory.
#[derive(Debug)]
pub(super) struct BatchSearch<'a> {
    options: &'a SearchOptions,
    decoder: Decoder<'a>,
    processors: LogitsProcessors,
    scorer: Box<dyn Scorer>,
    words: Words,
    extensions: Vec<Extension>,
}

impl<'a> BatchSearch<'a> {
    pub(super) fn new(
        engines: &[&'a Engine],
        options: &'a SearchOptions,
        constrained: bool,
        team: Team,
    ) -> Self {
        let mut decoder = Decoder::new(engines, team);
        if options.attention {
            decoder.record_cross_attention();
        }
        let config = engines[0].model().config();
        let normalization = Normalization::new(options, engines.len(), config.target_pad());
        let processors = LogitsProcessors::new(options, normalization, config.start(), config.target_pad());
        let scorer = choose_scorer(options, &decoder, normalization, constrained);
        BatchSearch { options, decoder, processors, scorer, words: Words::default(), extensions: Vec::new() }
    }

    /// The hypotheses of each sentence of the batch, best first.
    pub(super) fn run(
        &mut self,
        batch: &[usize],
        sources: &[Vec<u32>],
        constraints: &[Vec<Constraint>],
        observer: &dyn SearchObserver,
    ) -> Vec<Vec<Hypothesis>> {
        let sources: Vec<&[u32]> = batch.iter().map(|&i| sources[i].as_slice()).collect();
        let packed = Packed::new(sources.iter().copied());
        let mut beams = self.beams(batch, &packed, constraints);
        cancel(batch, &mut beams, observer);
        if beams.iter().any(|beam| !beam.done) {
            // [n, d] → keys and values of every decoder layer
            self.decoder.encode(&packed);
            self.scorer.begin(self.decoder.engine(0), &sources);
        }
        while beams.iter().any(|beam| !beam.done) {
            // r tokens, each with a row of the cache
            self.decoder.begin_step(&mut beams);
            // r lists of banned words
            self.processors.begin_step(&beams);
            // [r, d] → [r, v] → the best 2k words of each hypothesis
            self.scorer.score(&mut self.decoder, &self.processors, &beams, &mut self.words);
            // k·2k words → k hypotheses, in each of the b beams
            self.extend(&mut beams);
            report(batch, &beams, self.options, observer);
            cancel(batch, &mut beams, observer);
        }
        beams.into_iter().map(|beam| beam.into_ranked(self.options)).collect()
    }

    /// The beams of a batch before their first step.
    fn beams(&self, batch: &[usize], source: &Packed, constraints: &[Vec<Constraint>]) -> Vec<Beam> {
        let rows = source.offsets().windows(2).map(|w| w[0]..w[1]);
        batch
            .iter()
            .zip(rows)
            .map(|(&sentence, rows)| {
                let limit = self.limit(rows.len());
                // Each sentence has its own random stream, independent of what else is translated.
                let count = self.options.sampling.map_or(1, |_| self.options.nbest);
                let seed = Key::new(self.options.sampling.map_or(0, |s| s.seed)).child(sentence as u64);
                let mut beam = Beam::new(rows, limit, (0..count).map(|n| seed.child(n as u64)));
                beam.constraints = Constraints::new(constraints.get(sentence).map_or(&[], Vec::as_slice));
                beam
            })
            .collect()
    }

    /// The maximum number of tokens, including the end, for a source of `n` tokens.
    fn limit(&self, n: usize) -> usize {
        let config = self.decoder.engine(0).model().config();
        let limit = self.options.limit(n);
        if config.positions == Positions::Learned { limit.min(config.max_positions) } else { limit }
    }

    /// Extends the hypotheses of each beam by the words that the scorer found.
    fn extend(&mut self, beams: &mut [Beam]) {
        let mut row = 0;
        for beam in beams.iter_mut().filter(|beam| !beam.done) {
            let rows = row..row + beam.running.len();
            row = rows.end;
            if self.options.attention {
                self.decoder.add_attention(beam, rows.start, self.options.attention_layer);
            }
            beam.extend(self.options, rows.map(|row| self.words.row(row)), &mut self.extensions);
        }
    }
}

/// Drops cancelled sentences.
fn cancel(batch: &[usize], beams: &mut [Beam], observer: &dyn SearchObserver) {
    for (beam, &sentence) in beams.iter_mut().zip(batch) {
        beam.done |= !observer.is_active(sentence);
    }
}

/// Reports the best running hypothesis of each sentence to `observer`, and all of them if it
/// follows beams.
fn report(batch: &[usize], beams: &[Beam], options: &SearchOptions, observer: &dyn SearchObserver) {
    if observer.follows_beams() {
        let beams = batch.iter().zip(beams);
        beams.for_each(|(&sentence, beam)| observer.on_beam(sentence, beam.entries(options)));
    }
    for (beam, &sentence) in beams.iter().zip(batch).filter(|(beam, _)| !beam.done) {
        observer.on_progress(sentence, &beam.running[0].tokens);
    }
}
