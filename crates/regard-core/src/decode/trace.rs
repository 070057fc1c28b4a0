//! Records what a model computes on the way to its next word, optionally with parts switched off.
//!
//! [`Tracer`] runs the layers with the kernels of decoding. Only attention is computed here in
//! plain loops, because the kernels do not keep scores and cannot switch parts off; a test checks
//! that both give the same weights and probabilities.

mod attention;

pub use attention::AttentionTrace;

use super::executor::{Inference, Input, Pass, Step};
use super::kv_cache::ModelCache;
use super::validate::check_pairs;
use super::workspace::Tensor;
use super::{Engine, SearchOptions};
use crate::batch::Packed;
use crate::model::{
    AttentionKind, Combine, ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer,
    NormLayer, Positions, RecurrentLayer, SelfAttentionLayer, Side, SsruLayer,
};
use crate::{Error, Result};
use regard_kernels::{Mat, MatMut, RowScratch, Team, log_probabilities};

/// Parts of a model that are switched off; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ablation {
    /// Position vectors, absolute or relative.
    pub positions: bool,
    /// The division of the scores by √d_k.
    pub scale: bool,
    /// The mask of self-attention: without it, tokens see those after them.
    pub mask: bool,
    /// Heads, by kind, layer and index: their output is zero.
    pub heads: Vec<(AttentionKind, usize, usize)>,
}

/// A matrix in row-major order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// The number of columns.
    pub columns: usize,
    /// The elements, row by row.
    pub data: Vec<f32>,
}

impl Matrix {
    /// The rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.data.chunks_exact(self.columns.max(1))
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.columns..][..self.columns]
    }

    fn of(from: Mat<'_>) -> Self {
        let data = (0..from.rows()).flat_map(|i| from.row(i)).copied().collect();
        Matrix { columns: from.cols(), data }
    }
}

/// The input vectors of the tokens of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmbeddingTrace {
    /// The embeddings, multiplied by `scale`: `[n, d]`.
    pub words: Matrix,
    /// √d, or 1 for a model that does not scale.
    pub scale: f32,
    /// The position vectors, `[n, d]`, if the model adds any.
    pub positions: Option<Matrix>,
    /// The input of the first layer.
    pub output: Matrix,
}

/// The SSRU (simpler simple recurrent unit) of a decoder, which replaces self-attention.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SsruTrace {
    /// W·x of each token: `[m, d]`.
    pub candidate: Matrix,
    /// The forget gates, between 0 and 1.
    pub forget: Matrix,
    /// The state after each token.
    pub state: Matrix,
    /// relu of the state.
    pub output: Matrix,
    /// After the residual connection and the norm.
    pub result: Matrix,
}

/// A position-wise feed-forward layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedForwardTrace {
    /// After the activation, and after its product with the gate if there is one: `[n, d_ff]`.
    pub hidden: Matrix,
    /// The output, at the width of the model.
    pub output: Matrix,
    /// After the residual connection and the norm.
    pub result: Matrix,
}

/// One layer of a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerTrace {
    /// Self-attention, if the layer has it.
    pub attention: Option<AttentionTrace>,
    /// An SSRU, in decoders that have one.
    pub ssru: Option<SsruTrace>,
    /// Attention over the source, in decoders.
    pub cross: Option<AttentionTrace>,
    /// The feed-forward layer.
    pub feed_forward: FeedForwardTrace,
}

/// The trace of one pass through a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackTrace {
    /// The embedding.
    pub embedding: EmbeddingTrace,
    /// The requested layer.
    pub layer: LayerTrace,
}

/// The distribution of the next word at one position of a translation.
#[derive(Clone, Debug, PartialEq)]
pub struct NextWord {
    /// The most probable words and their log-probabilities, best first.
    pub best: Vec<(u32, f32)>,
    /// The log-probability of the given word, if there is one.
    pub given: Option<f32>,
}

/// A sentence inside a model, parts of which may be switched off.
#[derive(Debug)]
pub struct Tracer<'a> {
    inference: Inference<'a>,
    team: Team,
    cache: ModelCache,
    ablation: Ablation,
    source: Vec<u32>,
    layer: usize,
    encoder: StackTrace,
}

impl<'a> Tracer<'a> {
    /// Encodes a source sentence with its end token; `layer` is the layer to record, in both
    /// stacks.
    pub fn new(engine: &'a Engine, source: &[u32], ablation: Ablation, layer: usize) -> Result<Self> {
        if source.is_empty() {
            let message = "a sentence without tokens".to_owned();
            return Err(Error::Input { operation: "tracing", message });
        }
        check_pairs(&[engine], &[(source.to_vec(), Vec::new())], &SearchOptions::default())?;
        let model = engine.model();
        let (mut inference, mut cache) = (Inference::new(engine), ModelCache::default());
        let mut team = Team::new(1);
        let packed = Packed::new([source]);
        inference.prepare(&packed, &mut cache);
        let mut pass =
            TracedPass::new(inference.pass(&mut team, Input::Source(&packed)), &ablation, Some(layer));
        let encoded = model.encode(&mut pass);
        pass.pass.keep_source(encoded, &mut cache, 0, packed.tokens());
        let encoder = pass.trace;
        Ok(Tracer { inference, team, cache, ablation, source: source.to_vec(), layer, encoder })
    }

    /// The trace of the encoder.
    pub fn encoder(&self) -> &StackTrace {
        &self.encoder
    }

    /// Reads a translation, or the beginning of one, without its end. Returns the trace of the
    /// decoder, and the `count` most probable words at each position, including the one after the
    /// last token, where `next` is the given word if known.
    pub fn decode(
        &mut self,
        target: &[u32],
        next: Option<u32>,
        count: usize,
    ) -> Result<(StackTrace, Vec<NextWord>)> {
        let (output, trace) = self.pass(target, Some(self.layer))?;
        let given = target.iter().map(|&id| Some(id)).chain([next]);
        let words = output.rows().zip(given).map(|(x, id)| self.next_word(x, count, id)).collect();
        Ok((trace, words))
    }

    /// Extends a translation by its most probable words until its end token, which is added, the
    /// length limit, or until `wanted` returns false. Skips banned words.
    pub fn extend(
        &mut self,
        target: &mut Vec<u32>,
        options: &SearchOptions,
        wanted: impl Fn() -> bool,
    ) -> Result<()> {
        let config = self.inference.engine.model().config();
        let learned = config.positions == Positions::Learned;
        let most = if learned { config.max_positions } else { usize::MAX };
        let limit = options.limit(self.source.len()).min(most);
        if target.is_empty() {
            target.extend(options.forced_first);
        }
        while target.len() < limit && wanted() {
            let last = target.len() + 1 == limit;
            let id = if last && options.forced_end { options.end } else { self.likeliest(target, options)? };
            target.push(id);
            if id == options.end {
                break;
            }
        }
        Ok(())
    }

    /// The most probable word after a target that is not banned.
    fn likeliest(&mut self, target: &[u32], options: &SearchOptions) -> Result<u32> {
        let (output, _) = self.pass(target, None)?;
        let last = output.rows().last().unwrap_or_default();
        // At least one of these is allowed, unless all words are banned.
        let found = self.next_word(last, 1 + options.banned.len(), None);
        let allowed = found.best.iter().find(|(id, _)| !options.banned.contains(id));
        Ok(allowed.map_or(options.end, |(id, _)| *id))
    }

    /// Runs the decoder over the start token and a target: its output is `[m + 1, d]`.
    fn pass(&mut self, target: &[u32], layer: Option<usize>) -> Result<(Matrix, StackTrace)> {
        let engine = self.inference.engine;
        let read = [&[engine.model().config().start()], target].concat();
        let pair = (self.source.clone(), read);
        check_pairs(&[engine], std::slice::from_ref(&pair), &SearchOptions::default())?;
        let step = Step::whole(&pair.1, self.source.len());
        let input = Input::Step(&step, &mut self.cache);
        let mut pass = TracedPass::new(self.inference.pass(&mut self.team, input), &self.ablation, layer);
        let x = engine.model().decode(&mut pass, Tensor::Source);
        Ok((pass.matrix(x), pass.trace))
    }

    /// The distribution for one row of the decoder's output.
    fn next_word(&self, x: &[f32], count: usize, given: Option<u32>) -> NextWord {
        let engine = self.inference.engine;
        let table = engine.matrix(engine.model().output());
        // Padding, the last word, is never generated.
        let words = engine.model().config().output_words();
        let (mut log_p, mut scratch) = (vec![0.0; table.outputs()], RowScratch::default());
        let x = table.rows(Mat::new(x, 1, x.len()), &mut scratch);
        let to = MatMut::new(&mut log_p, 1, table.outputs());
        table.matmul_with(&mut Team::new(1), x, engine.bias(), to);
        log_p.truncate(words);
        log_probabilities(engine.isa(), &mut log_p, words);
        let mut best: Vec<(u32, f32)> = (0..).zip(log_p.iter().copied()).collect();
        let by_probability = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if count < best.len() {
            best.select_nth_unstable_by(count, by_probability);
            best.truncate(count);
        }
        best.sort_unstable_by(by_probability);
        NextWord { best, given: given.and_then(|id| log_p.get(id as usize).copied()) }
    }
}

/// The current sub-layer.
#[derive(Clone, Copy, PartialEq)]
enum SubLayer {
    Attention,
    Cross,
    Ssru,
    FeedForward,
    /// Recurrent or convolutional.
    Other,
}

/// A pass being recorded.
struct TracedPass<'p> {
    pass: Pass<'p>,
    ablation: &'p Ablation,
    /// The layer to record.
    wanted: Option<usize>,
    /// The current layer; `None` during the embedding.
    layer: Option<usize>,
    sub_layer: Option<SubLayer>,
    trace: StackTrace,
}

impl<'p> TracedPass<'p> {
    fn new(pass: Pass<'p>, ablation: &'p Ablation, wanted: Option<usize>) -> Self {
        let trace = StackTrace::default();
        TracedPass { pass, ablation, wanted, layer: None, sub_layer: None, trace }
    }

    fn recorded(&self) -> bool {
        self.wanted.is_some() && self.layer == self.wanted
    }

    fn matrix(&self, x: Tensor) -> Matrix {
        Matrix::of(self.pass.workspace.mat(x))
    }

    /// A tensor with these values.
    fn tensor(&mut self, numbers: &Matrix) -> Tensor {
        let rows = numbers.rows().len();
        self.pass.workspace.make(rows, numbers.columns, |_, y| y.copy_from_slice(&numbers.data))
    }

    /// Records the result of the current sub-layer.
    fn end_sub_layer(&mut self, x: Tensor) {
        let ended = self.sub_layer.take();
        if !self.recorded() {
            return;
        }
        let result = self.matrix(x);
        let layer = &mut self.trace.layer;
        match ended {
            Some(SubLayer::Attention) => layer.attention.iter_mut().for_each(|a| a.result = result.clone()),
            Some(SubLayer::Cross) => layer.cross.iter_mut().for_each(|a| a.result = result.clone()),
            Some(SubLayer::Ssru) => layer.ssru.iter_mut().for_each(|s| s.result = result.clone()),
            Some(SubLayer::FeedForward) => layer.feed_forward.result = result,
            Some(SubLayer::Other) | None => {}
        }
    }
}

impl Executor for TracedPass<'_> {
    type Tensor = Tensor;

    fn embed(&mut self, layer: &EmbeddingLayer) -> Tensor {
        let config = self.pass.engine.model().config();
        let (d, scale) = (config.d_model, config.embedding_scale());
        let ids: Vec<u32> = match &self.pass.input {
            Input::Source(source) => source.ids().to_vec(),
            Input::Step(step, _) => step.ids.clone(),
        };
        let mut words = Matrix { columns: d, data: Vec::new() };
        let mut positions = Matrix { columns: d, data: Vec::new() };
        for (position, &id) in ids.iter().enumerate() {
            words.data.extend(self.pass.word_vector(layer, id));
            positions.data.extend(self.pass.position_vector(layer, position).unwrap_or_default());
        }
        let x = self.pass.embed(layer);
        let positions = Some(positions).filter(|p| !p.data.is_empty() && !self.ablation.positions);
        self.trace.embedding =
            EmbeddingTrace { words: words.clone(), scale, positions, output: Matrix::default() };
        if !self.ablation.positions {
            return x;
        }
        if config.combine == Combine::Concatenate {
            let wide = words.rows().flat_map(|row| row.iter().copied().chain(vec![0.0; d])).collect();
            words = Matrix { columns: 2 * d, data: wide };
        }
        self.tensor(&words)
    }

    fn linear(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        let y = self.pass.linear(x, layer);
        if self.recorded() {
            let output = self.matrix(y);
            let trace = &mut self.trace.layer;
            match self.sub_layer {
                Some(SubLayer::Attention) => {
                    trace.attention.iter_mut().for_each(|a| a.output = output.clone())
                }
                Some(SubLayer::Cross) => trace.cross.iter_mut().for_each(|a| a.output = output.clone()),
                Some(SubLayer::FeedForward) => trace.feed_forward.output = output,
                _ => {}
            }
        }
        y
    }

    fn activated(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        let y = self.pass.activated(x, layer);
        if self.sub_layer.is_none() {
            self.sub_layer = Some(SubLayer::FeedForward);
            if self.recorded() {
                self.trace.layer.feed_forward.hidden = self.matrix(y);
            }
        }
        y
    }

    fn self_attention(&mut self, qkv: Tensor, layer: &SelfAttentionLayer) -> Tensor {
        self.sub_layer = Some(SubLayer::Attention);
        self.own_attention(qkv, layer)
    }

    fn recurrent(&mut self, gates: Tensor, layer: &RecurrentLayer) -> Tensor {
        self.sub_layer = Some(SubLayer::Other);
        self.pass.recurrent(gates, layer)
    }

    fn ssru(&mut self, candidates: Tensor, forget: Tensor, layer: &SsruLayer) -> Tensor {
        self.sub_layer = Some(SubLayer::Ssru);
        let y = self.pass.ssru(candidates, forget, layer);
        if self.recorded() {
            let mut gates = self.matrix(forget);
            gates.data.iter_mut().for_each(|z| *z = 1.0 / (1.0 + (-*z).exp()));
            let (candidate, output) = (self.matrix(candidates), self.matrix(y));
            let state = match &mut self.pass.input {
                // The rows of the cache are in the order of the tokens.
                Input::Step(_, cache) => {
                    let states = cache.steps(layer.layer).mat();
                    Matrix::of(states.rows_from(0, output.rows().len()))
                }
                Input::Source(_) => Matrix::default(),
            };
            let result = Matrix::default();
            self.trace.layer.ssru = Some(SsruTrace { candidate, forget: gates, state, output, result });
        }
        y
    }

    fn unfold(&mut self, x: Tensor, layer: &ConvolutionLayer) -> Tensor {
        self.sub_layer = Some(SubLayer::Other);
        self.pass.unfold(x, layer)
    }

    fn memory(&mut self, memory: Tensor, layer: &CrossAttentionLayer) -> Tensor {
        self.pass.memory(memory, layer)
    }

    fn cross_attention(&mut self, q: Tensor, _: Tensor, layer: &CrossAttentionLayer) -> Tensor {
        self.sub_layer = Some(SubLayer::Cross);
        self.attention_over_source(q, layer)
    }

    fn add_norm(&mut self, x: Tensor, branch: Tensor, norm: &NormLayer) -> Tensor {
        let y = self.pass.add_norm(x, branch, norm);
        self.end_sub_layer(y);
        y
    }

    fn norm(&mut self, x: Tensor, norm: &NormLayer) -> Tensor {
        self.pass.norm(x, norm)
    }

    fn add(&mut self, x: Tensor, branch: Tensor) -> Tensor {
        let y = self.pass.add(x, branch);
        self.end_sub_layer(y);
        y
    }

    fn multiply(&mut self, gate: Tensor, x: Tensor) -> Tensor {
        let y = self.pass.multiply(gate, x);
        if self.recorded() && self.sub_layer == Some(SubLayer::FeedForward) {
            self.trace.layer.feed_forward.hidden = self.matrix(y);
        }
        y
    }

    fn scale(&mut self, x: Tensor, factor: f32) -> Tensor {
        self.pass.scale(x, factor)
    }

    fn end_layer(&mut self, x: Tensor) -> Tensor {
        match self.layer {
            None => {
                self.trace.embedding.output = self.matrix(x);
                self.layer = Some(0);
            }
            Some(layer) => self.layer = Some(layer + 1),
        }
        self.pass.end_layer(x)
    }
}

/// The side that provides the queries of an attention.
fn side_of(kind: AttentionKind) -> Side {
    match kind {
        AttentionKind::Encoder => Side::Source,
        AttentionKind::Decoder | AttentionKind::Cross => Side::Target,
    }
}

#[cfg(test)]
mod tests;
