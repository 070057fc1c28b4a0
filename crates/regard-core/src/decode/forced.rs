//! Forced decoding: the log-probabilities of given translations.

use super::Engine;
use super::decoder::Decoder;
use super::full_rows::FullRows;
use super::hypotheses::Beam;
use crate::batch::Packed;
use regard_kernels::Key;

/// Scores batch after batch of pairs with the same memory. No processor changes what is given.
#[derive(Debug)]
pub(super) struct ForcedScorer<'a> {
    decoder: Decoder<'a>,
    rows: FullRows,
}

impl<'a> ForcedScorer<'a> {
    pub(super) fn new(engines: &[&'a Engine], threads: usize) -> Self {
        let words = engines[0].model().config().output_words();
        ForcedScorer { decoder: Decoder::new(engines, threads), rows: FullRows::of_words(words) }
    }

    /// The log-probability of each token of the targets.
    pub(super) fn score(&mut self, batch: &[usize], pairs: &[(Vec<u32>, Vec<u32>)]) -> Vec<Vec<f32>> {
        let source = Packed::new(batch.iter().map(|&i| pairs[i].0.as_slice()));
        let targets: Vec<&[u32]> = batch.iter().map(|&i| pairs[i].1.as_slice()).collect();
        let beam = |(w, target): (&[usize], &&[u32])| {
            Beam::new(w[0]..w[1], target.len(), [Key::default()].into_iter())
        };
        let mut beams: Vec<Beam> = source.offsets().windows(2).zip(&targets).map(beam).collect();
        self.decoder.encode(&source);
        loop {
            for (beam, target) in beams.iter_mut().zip(&targets) {
                beam.done = beam.running[0].tokens.len() == target.len();
            }
            if beams.iter().all(|beam| beam.done) {
                return beams
                    .into_iter()
                    .map(|mut beam| std::mem::take(&mut beam.running[0].log_p))
                    .collect();
            }
            self.decoder.begin_step(&mut beams);
            self.rows.score(&mut self.decoder);
            let running = beams.iter_mut().zip(&targets).filter(|(beam, _)| !beam.done);
            for ((beam, target), log_p) in running.zip(self.rows.rows()) {
                let hypothesis = &mut beam.running[0];
                let token = target[hypothesis.tokens.len()];
                hypothesis.log_p.push(log_p.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY));
                hypothesis.tokens.push(token);
            }
        }
    }
}
