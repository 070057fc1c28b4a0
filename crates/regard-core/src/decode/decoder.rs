//! The models of a search: their executors, and the state of their decoders.

use super::Engine;
use super::executor::{Inference, Step};
use super::hypotheses::{Beam, running};
use super::kv_cache::KvCache;
use crate::batch::Packed;
use crate::model::{DecoderKind, Side};
use regard_kernels::{Mat, RowScratch, Team};

/// One model, or several whose probabilities are averaged.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    models: Vec<Inference<'a>>,
    team: Team,
    cache: KvCache,
    step: Step,
}

impl<'a> Decoder<'a> {
    /// Creates the executors. All models use the same threads.
    pub(super) fn new(engines: &[&'a Engine], team: Team) -> Self {
        let models: Vec<_> = engines.iter().map(|engine| Inference::new(engine)).collect();
        Decoder { cache: KvCache::new(models.len()), models, team, step: Step::default() }
    }

    /// The number of models.
    pub(super) fn models(&self) -> usize {
        self.models.len()
    }

    /// Model `i`.
    pub(super) fn engine(&self, i: usize) -> &'a Engine {
        self.models[i].engine
    }

    /// Encodes a new batch: `n` source tokens of `b` sentences.
    pub(super) fn encode(&mut self, source: &Packed) {
        self.cache.clear();
        for (i, model) in self.models.iter_mut().enumerate() {
            model.encode(&mut self.team, source, self.cache.model(i));
        }
    }

    /// Begins a step, in which each running hypothesis reads its last token and is assigned a row
    /// of the cache.
    pub(super) fn begin_step(&mut self, beams: &mut [Beam]) {
        self.team.admit();
        let start = self.engine(0).model().config().start();
        // A recurrent decoder only reads the row of the last token.
        if self.models.iter().all(|model| model.engine.model().config().decoder == DecoderKind::Ssru) {
            for hypothesis in beams.iter_mut().flat_map(|beam| &mut beam.running) {
                let past = hypothesis.rows.len().saturating_sub(1);
                hypothesis.rows.drain(..past);
            }
        }
        self.cache.retain(running(beams).map(|(_, _, hypothesis)| hypothesis.rows.as_slice()));
        self.step.clear();
        for beam in beams.iter_mut().filter(|beam| !beam.done) {
            for hypothesis in &mut beam.running {
                let id = hypothesis.tokens.last().copied().unwrap_or(start);
                let row = self.cache.take();
                hypothesis.rows.push(row);
                let past = hypothesis.rows.iter().copied();
                let source = beam.source.start as u32..beam.source.end as u32;
                self.step.push(id, hypothesis.tokens.len(), row, past, source);
            }
        }
    }

    /// r: the number of running hypotheses in this step, at most `b·k`.
    pub(super) fn rows(&self) -> usize {
        self.step.ids.len()
    }

    /// Runs the step in model `i`. Returns `[r, d]`, and the workspace for a matmul with it.
    pub(super) fn decode(&mut self, i: usize) -> (Mat<'_>, &mut RowScratch, &mut Team) {
        let (x, scratch) = self.models[i].decode(&mut self.team, &self.step, self.cache.model(i));
        (x, scratch, &mut self.team)
    }

    /// Records the cross-attention of the first model from now on.
    pub(super) fn record_cross_attention(&mut self) {
        self.models[0].weights.cross = Some(Vec::new());
    }

    /// Adds the attention of this step to each hypothesis of a beam, whose first hypothesis is row
    /// `row` of the step: the sum over all heads of the first model.
    ///
    /// The upper layers attend to what the next token translates, the lower ones to what the
    /// previous token, their input, translates. So the attention of a token comes from its own step
    /// in the upper half of the layers, and from the next step in the lower half.
    pub(super) fn add_attention(&self, beam: &mut Beam, row: usize, layer: Option<usize>) {
        let Some(layers) = self.models[0].weights.cross.as_ref().filter(|l| !l.is_empty()) else { return };
        let (lower, upper) = match layer {
            Some(layer) => (&layers[..0], &layers[layer.min(layers.len() - 1)..][..1]),
            None => layers.split_at(layers.len() / 2),
        };
        let heads = self.engine(0).model().config().head_shape(Side::Target).heads;
        // The weights of other beams come first, each as long as its source.
        let n = beam.source.len();
        let begin = self.step.source.offsets()[row];
        for (i, hypothesis) in beam.running.iter_mut().enumerate() {
            let add = |layers: &[Vec<f32>], row: &mut [f32]| {
                let weights = layers.iter().map(|layer| &layer[(begin + i * n) * heads..][..n * heads]);
                for head in weights.flat_map(|weights| weights.chunks_exact(n)) {
                    row.iter_mut().zip(head).for_each(|(x, weight)| *x += weight);
                }
            };
            let at = hypothesis.attention.len();
            hypothesis.attention.resize(at + n, 0.0);
            let (before, row) = hypothesis.attention.split_at_mut(at);
            add(upper, row);
            if let Some(start) = before.len().checked_sub(n) {
                add(lower, &mut before[start..]);
            }
        }
    }
}
