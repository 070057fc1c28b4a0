//! Forced decoding: the log-probabilities of given translations.

use super::Engine;
use super::decoder::Decoder;
use super::full_rows::FullRows;
use super::hypotheses::{Beam, running};
use super::logits_processors::LogitsProcessors;
use super::scorer::{Scorer, Words};
use crate::batch::Packed;
use regard_kernels::{Key, Team};

/// Scores the next token of each given translation, from whole rows.
#[derive(Debug)]
pub(super) struct ForcedScorer {
    rows: FullRows,
    /// The translations of the batch, one per sentence.
    targets: Vec<Vec<u32>>,
}

impl Scorer for ForcedScorer {
    fn score(
        &mut self,
        decoder: &mut Decoder<'_>,
        processors: &LogitsProcessors,
        beams: &[Beam],
        words: &mut Words,
    ) {
        words.clear();
        let rows = self.rows.process(decoder, processors, beams);
        for (log_p, (sentence, _, hypothesis)) in rows.zip(running(beams)) {
            let token = self.targets[sentence][hypothesis.tokens.len()];
            words.push([(token, log_p.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY))]);
        }
    }
}

/// Scores batch after batch of pairs, reusing memory. No logits processor applies.
#[derive(Debug)]
pub(super) struct ForcedDecoding<'a> {
    decoder: Decoder<'a>,
    processors: LogitsProcessors,
    scorer: ForcedScorer,
    words: Words,
}

impl<'a> ForcedDecoding<'a> {
    pub(super) fn new(engines: &[&'a Engine], team: Team) -> Self {
        let rows = FullRows::of_words(engines[0].model().config().output_words());
        ForcedDecoding {
            decoder: Decoder::new(engines, team),
            processors: LogitsProcessors::default(),
            scorer: ForcedScorer { rows, targets: Vec::new() },
            words: Words::default(),
        }
    }

    /// The log-probability of each token of the targets.
    pub(super) fn run(&mut self, batch: &[usize], pairs: &[(Vec<u32>, Vec<u32>)]) -> Vec<Vec<f32>> {
        let source = Packed::new(batch.iter().map(|&i| pairs[i].0.as_slice()));
        self.scorer.targets = batch.iter().map(|&i| pairs[i].1.clone()).collect();
        let mut beams = self.beams(&source);
        self.decoder.encode(&source);
        while beams.iter().any(|beam| !beam.done) {
            self.decoder.begin_step(&mut beams);
            self.processors.begin_step(&beams);
            self.scorer.score(&mut self.decoder, &self.processors, &beams, &mut self.words);
            let open = beams.iter_mut().filter(|beam| !beam.done);
            open.zip(self.words.iter()).for_each(|(beam, word)| beam.force([word].into_iter()));
        }
        beams.into_iter().map(|mut beam| std::mem::take(&mut beam.running[0].log_p)).collect()
    }

    /// One hypothesis for each sentence, with the length of its translation as limit.
    fn beams(&self, source: &Packed) -> Vec<Beam> {
        let beam = |(rows, target): (&[usize], &Vec<u32>)| {
            let mut beam = Beam::new(rows[0]..rows[1], target.len(), [Key::default()].into_iter());
            beam.done = target.is_empty();
            beam
        };
        source.offsets().windows(2).zip(&self.scorer.targets).map(beam).collect()
    }
}
