//! Runs the layers for decoding: the encoder over whole sentences, the decoder one step at a time
//! with a cache.

use super::kv_cache::ModelCache;
use super::ragged_vec::RaggedVec;
use super::workspace::{Tensor, Workspace};
use super::{Engine, LayerInputs};
use crate::batch::Packed;
use crate::model::{
    Combine, ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, ModelConfig,
    NormLayer, Positions, RecurrentLayer, SelfAttentionLayer, Side, SsruLayer,
};
use regard_kernels::{
    Activation, Epilogue, Mat, MatMut, Norm, NormSaved, RowScratch, Team, activate_in_place, add, add_norm,
    add_scaled, multiply,
};
use std::collections::HashMap;

/// The number of tokens encoded together, unless a sentence is longer.
const ENCODED_TOGETHER: usize = 256;

/// The input of one decoder step: a token for each hypothesis, or all tokens of a sentence at once.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) ids: Vec<u32>,
    /// The position of each token in its sentence.
    pub(super) positions: Vec<usize>,
    /// The cache row assigned to each token.
    pub(super) rows: Vec<u32>,
    /// The cache rows that each token attends to, its own last.
    pub(super) past: RaggedVec<u32>,
    /// The source rows that each token attends to.
    pub(super) source: RaggedVec<u32>,
}

impl Step {
    /// All tokens of one sentence over `n` source tokens: each attends to itself and those before
    /// it.
    pub(super) fn whole(ids: &[u32], n: usize) -> Self {
        let mut step = Step::default();
        for (row, &id) in (0..).zip(ids) {
            step.push(id, row as usize, row, 0..=row, 0..n as u32);
        }
        step
    }

    /// Removes all tokens but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.positions.clear();
        self.rows.clear();
        self.past.clear();
        self.source.clear();
    }

    /// Adds a token.
    pub(super) fn push(
        &mut self,
        id: u32,
        position: usize,
        row: u32,
        past: impl IntoIterator<Item = u32>,
        source: impl IntoIterator<Item = u32>,
    ) {
        self.ids.push(id);
        self.positions.push(position);
        self.rows.push(row);
        self.past.push(past);
        self.source.push(source);
    }
}

/// The attention weights of one pass, layer by layer; `None` where not recorded.
#[derive(Debug, Default)]
pub(super) struct AttentionWeights {
    /// `[h, n, n]` for a whole sentence of the encoder, `[h, past]` for a row of a step.
    pub(super) own: Option<Vec<Vec<f32>>>,
    /// `[h, n]` for a row of a step.
    pub(super) cross: Option<Vec<Vec<f32>>>,
}

/// Tables of relative position biases, keyed by their offset in the flat weight vector, with a
/// column for each distance: `[h, 2 · reach + 1]`.
pub(super) type DistanceTables = HashMap<usize, Vec<f32>>;

/// Runs the layers of one model.
#[derive(Debug)]
pub(super) struct Inference<'a> {
    pub(super) engine: &'a Engine,
    workspace: Workspace,
    /// Sinusoidal position vectors, as many as were needed so far.
    sinusoids: Vec<f32>,
    distances: DistanceTables,
    pub(super) weights: AttentionWeights,
    /// The inputs of each matmul, if recorded.
    pub(super) inputs: Option<Vec<LayerInputs>>,
}

/// The input of a pass.
#[derive(Debug)]
pub(super) enum Input<'p> {
    /// Whole source sentences, for the encoder.
    Source(&'p Packed),
    /// One step of the decoder, with its cache.
    Step(&'p Step, &'p mut ModelCache),
}

/// One pass through a stack.
pub(super) struct Pass<'p> {
    pub(super) engine: &'p Engine,
    pub(super) team: &'p mut Team,
    pub(super) workspace: &'p mut Workspace,
    pub(super) weights: &'p mut AttentionWeights,
    sinusoids: &'p mut Vec<f32>,
    pub(super) distances: &'p mut DistanceTables,
    inputs: &'p mut Option<Vec<LayerInputs>>,
    pub(super) input: Input<'p>,
}

impl<'a> Inference<'a> {
    pub(super) fn new(engine: &'a Engine) -> Self {
        Inference {
            engine,
            workspace: Workspace::default(),
            sinusoids: Vec::new(),
            distances: DistanceTables::new(),
            weights: AttentionWeights::default(),
            inputs: None,
        }
    }

    pub(super) fn pass<'p>(&'p mut self, team: &'p mut Team, input: Input<'p>) -> Pass<'p> {
        self.workspace.clear();
        Pass {
            engine: self.engine,
            team,
            workspace: &mut self.workspace,
            weights: &mut self.weights,
            sinusoids: &mut self.sinusoids,
            distances: &mut self.distances,
            inputs: &mut self.inputs,
            input,
        }
    }

    /// The encoder's output, `[n, d]`.
    pub(super) fn encoder_output(&mut self, team: &mut Team, source: &Packed) -> Vec<f32> {
        let model = self.engine.model();
        let mut pass = self.pass(team, Input::Source(source));
        let encoded = model.encode(&mut pass);
        pass.workspace.data(encoded).to_vec()
    }

    /// Encodes the sentences, `[n, d]`, and fills the cache with their keys and values: a few
    /// sentences at a time, so that the activations between two layers stay in the CPU cache.
    pub(super) fn encode(&mut self, team: &mut Team, source: &Packed, cache: &mut ModelCache) {
        let model = self.engine.model();
        self.prepare(source, cache);
        let mut first = 0;
        while first < source.sentences() {
            let start = source.offsets()[first];
            let fits = |&end: &usize| source.offsets()[end] <= start + ENCODED_TOGETHER;
            let end = (first + 2..=source.sentences()).take_while(fits).last().unwrap_or(first + 1);
            let part = source.part(first..end);
            team.admit();
            let mut pass = self.pass(team, Input::Source(&part));
            let encoded = model.encode(&mut pass);
            pass.keep_source(encoded, cache, start, part.tokens());
            first = end;
        }
    }

    /// Clears a cache and reserves memory for the keys and values of these sentences.
    pub(super) fn prepare(&self, source: &Packed, cache: &mut ModelCache) {
        let model = self.engine.model();
        cache.clear(model.config().decoder_layers);
        for layer in model.cross_attention_layers() {
            cache.source(layer.layer).replace(source.tokens(), layer.kv.outputs);
        }
    }

    /// One step of the decoder. Returns its output `[r, d]` for the step's `r` tokens, and the
    /// workspace for a matmul with it.
    pub(super) fn decode(
        &mut self,
        team: &mut Team,
        step: &Step,
        cache: &mut ModelCache,
    ) -> (Mat<'_>, &mut RowScratch) {
        for weights in [&mut self.weights.own, &mut self.weights.cross].into_iter().flatten() {
            weights.clear();
        }
        let model = self.engine.model();
        let x = model.decode(&mut self.pass(team, Input::Step(step, cache)), Tensor::Source);
        self.workspace.operand(x)
    }
}

impl Pass<'_> {
    /// The number of rows of a value.
    fn rows(&self, x: Tensor) -> usize {
        self.workspace.mat(x).rows()
    }

    /// Fills the cache with the keys and values of the encoder's output for the `tokens` rows from
    /// `start` on.
    pub(super) fn keep_source(
        &mut self,
        encoded: Tensor,
        cache: &mut ModelCache,
        start: usize,
        tokens: usize,
    ) {
        for layer in self.engine.model().cross_attention_layers() {
            self.record_input(encoded, &layer.kv);
            let to = cache.source(layer.layer).mat_mut().rows_from(start, tokens);
            let x = self.workspace.operand(encoded);
            linear(self.engine, self.team, x, &layer.kv, false, to);
        }
    }

    /// The scaled embedding of a token: `[d]`.
    pub(super) fn word_vector(&self, layer: &EmbeddingLayer, id: u32) -> Vec<f32> {
        let config = self.engine.model().config();
        let mut word = vec![0.0; config.d_model];
        if Some(id) != padding(config, layer.side) {
            self.engine.matrix(layer.table).read_row(id as usize, &mut word);
            word.iter_mut().for_each(|x| *x *= config.embedding_scale());
        }
        word
    }

    /// The vector of a position, if the model adds or concatenates one.
    pub(super) fn position_vector(&mut self, layer: &EmbeddingLayer, position: usize) -> Option<Vec<f32>> {
        let mut embedder = Embedder { engine: self.engine, layer, sinusoids: self.sinusoids };
        embedder.position_vector(position).map(<[f32]>::to_vec)
    }

    /// Records the inputs of a matmul, if enabled.
    fn record_input(&mut self, x: Tensor, layer: &LinearLayer) {
        if let Some(inputs) = self.inputs {
            let (values, columns) = (self.workspace.data(x).to_vec(), self.workspace.mat(x).cols());
            inputs.push(LayerInputs { weight: layer.weight.offset, values, columns });
        }
    }

    fn affine(&mut self, x: Tensor, layer: &LinearLayer, activation: Activation) -> Tensor {
        self.record_input(x, layer);
        let Pass { engine, team, workspace, .. } = self;
        let rows = workspace.mat(x).rows();
        let relu = activation == Activation::Relu;
        workspace.make(rows, layer.outputs, |w, y| {
            let to = MatMut::new(y, rows, layer.outputs);
            linear(engine, team, w.operand(x), layer, relu, to);
            if !relu {
                activate_in_place(engine.isa(), y, activation);
            }
        })
    }

    /// A layer norm or an RMS norm.
    fn normalise(&mut self, x: Tensor, branch: Option<Tensor>, norm: &NormLayer) -> Tensor {
        let engine = self.engine;
        let (gamma, beta) = (engine.vector(norm.gamma), norm.beta.map(|beta| engine.vector(beta)));
        let norm = Norm { gamma, beta, epsilon: engine.model().config().norm_epsilon };
        let (rows, cols) = (self.rows(x), self.workspace.mat(x).cols());
        self.workspace.make(rows, cols, |w, y| {
            let mut scratch = std::mem::take(&mut w.scratch);
            scratch.resize(rows * (cols + 1), 0.0);
            let (normalised, scale) = scratch.split_at_mut(rows * cols);
            let saved = NormSaved { normalised, scale };
            add_norm(engine.isa(), w.data(x), branch.map(|f| w.data(f)), None, norm, y, saved);
            w.scratch = scratch;
        })
    }
}

/// `to = x·Wᵀ + b`, followed by a ReLU if `relu`.
fn linear(
    engine: &Engine,
    team: &mut Team,
    (x, quantized): (Mat<'_>, &mut RowScratch),
    layer: &LinearLayer,
    relu: bool,
    to: MatMut<'_>,
) {
    let matrix = engine.matrix(layer.weight);
    let bias = layer.bias.filter(|_| !matrix.has_own_bias()).map(|bias| engine.vector(bias));
    matrix.matmul_with(team, matrix.rows(x, quantized), Epilogue { bias, relu }, to);
}

/// The token whose vector is zero, if there is one.
fn padding(config: &ModelConfig, side: Side) -> Option<u32> {
    match side {
        Side::Source => config.source_pad(),
        Side::Target => config.target_pad(),
    }
}

/// Writes the vectors of tokens and their positions.
struct Embedder<'p> {
    engine: &'p Engine,
    layer: &'p EmbeddingLayer,
    sinusoids: &'p mut Vec<f32>,
}

impl Embedder<'_> {
    /// Writes the vector of one token to `y`; `word` is scratch memory for its embedding.
    fn write(&mut self, id: u32, position: usize, y: &mut [f32], word: &mut [f32]) {
        let config = self.engine.model().config();
        let (d, scale) = (config.d_model, config.embedding_scale());
        let pad = padding(config, self.layer.side);
        let columns = if config.combine == Combine::Concatenate { d..2 * d } else { 0..d };
        y.fill(0.0);
        if let Some(vector) = self.position_vector(position) {
            y[columns].copy_from_slice(vector);
        }
        if Some(id) != pad {
            self.engine.matrix(self.layer.table).read_row(id as usize, word);
            add_scaled(self.engine.isa(), &mut y[..d], word, scale);
        }
    }

    /// The vector of `position`, if the model adds or concatenates one.
    fn position_vector(&mut self, position: usize) -> Option<&[f32]> {
        let config = self.engine.model().config();
        let d = config.d_model;
        match (config.positions, self.layer.positions) {
            (Positions::Sinusoidal, _) => {
                if self.sinusoids.len() < (position + 1) * d {
                    *self.sinusoids = config.sinusoids((position + 1).next_multiple_of(64));
                }
                Some(&self.sinusoids[position * d..][..d])
            }
            (Positions::Learned, Some(table)) => {
                Some(&self.engine.vector(table)[(position + config.position_offset) * d..][..d])
            }
            _ => None,
        }
    }
}

impl Executor for Pass<'_> {
    type Tensor = Tensor;

    fn embed(&mut self, layer: &EmbeddingLayer) -> Tensor {
        let Pass { engine, workspace, sinusoids, input, .. } = self;
        let config = engine.model().config();
        let d = config.d_model;
        let cols = if config.combine == Combine::Concatenate { 2 * d } else { d };
        let mut embedder = Embedder { engine, layer, sinusoids };
        let tokens = match input {
            Input::Source(source) => source.tokens(),
            Input::Step(step, _) => step.ids.len(),
        };
        workspace.make(tokens, cols, |w, y| {
            w.scratch.resize(d, 0.0);
            let word = &mut w.scratch[..];
            let rows = y.chunks_exact_mut(cols);
            match input {
                Input::Source(source) => rows
                    .zip(source.ids().iter().zip(source.positions()))
                    .for_each(|(y, (&id, position))| embedder.write(id, position, y, word)),
                Input::Step(step, _) => rows
                    .zip(step.ids.iter().zip(&step.positions))
                    .for_each(|(y, (&id, &position))| embedder.write(id, position, y, word)),
            }
        })
    }

    fn linear(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        self.affine(x, layer, Activation::Identity)
    }

    fn activated(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        self.affine(x, layer, self.engine.model().config().activation)
    }

    fn self_attention(&mut self, qkv: Tensor, layer: &SelfAttentionLayer) -> Tensor {
        match self.input {
            Input::Source(source) => self.encoder_attention(qkv, layer, source),
            Input::Step(step, _) => self.decoder_attention(qkv, layer, step),
        }
    }

    fn recurrent(&mut self, gates: Tensor, layer: &RecurrentLayer) -> Tensor {
        self.gru(gates, layer)
    }

    fn ssru(&mut self, candidates: Tensor, forget: Tensor, layer: &SsruLayer) -> Tensor {
        self.ssru_states(candidates, forget, layer)
    }

    fn unfold(&mut self, x: Tensor, layer: &ConvolutionLayer) -> Tensor {
        self.unfold_tokens(x, layer)
    }

    fn memory(&mut self, source: Tensor, _: &CrossAttentionLayer) -> Tensor {
        source
    }

    fn cross_attention(&mut self, q: Tensor, _: Tensor, layer: &CrossAttentionLayer) -> Tensor {
        self.source_attention(q, layer)
    }

    fn add_norm(&mut self, x: Tensor, branch: Tensor, norm: &NormLayer) -> Tensor {
        self.normalise(x, Some(branch), norm)
    }

    fn norm(&mut self, x: Tensor, norm: &NormLayer) -> Tensor {
        self.normalise(x, None, norm)
    }

    fn add(&mut self, x: Tensor, branch: Tensor) -> Tensor {
        let isa = self.engine.isa();
        let (rows, cols) = (self.rows(x), self.workspace.mat(x).cols());
        self.workspace.make(rows, cols, |w, y| {
            y.copy_from_slice(w.data(x));
            add(isa, y, w.data(branch));
        })
    }

    fn multiply(&mut self, gate: Tensor, x: Tensor) -> Tensor {
        let isa = self.engine.isa();
        let (rows, cols) = (self.rows(x), self.workspace.mat(x).cols());
        self.workspace.make(rows, cols, |w, y| {
            y.copy_from_slice(w.data(gate));
            multiply(isa, y, w.data(x));
        })
    }

    fn scale(&mut self, x: Tensor, factor: f32) -> Tensor {
        let isa = self.engine.isa();
        let (rows, cols) = (self.rows(x), self.workspace.mat(x).cols());
        self.workspace.make(rows, cols, |w, y| {
            y.fill(0.0);
            add_scaled(isa, y, w.data(x), factor);
        })
    }

    fn end_layer(&mut self, x: Tensor) -> Tensor {
        self.workspace.keep(x)
    }
}
