//! Runs the layers on the tape: for training, and for everything else that needs gradients.

use crate::autograd::ops::{
    AddNorm, CrossAttention, CrossEntropy, Embedding, Linear, Multiply, PositionVectors, RDrop, Recurrent,
    Residual, Scale, SelfAttention, Ssru, Unfold,
};
use crate::autograd::{Op, Tape, Var, Weights};
use regard_core::batch::{Batch, Packed};
use regard_core::model::{
    Combine, ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, ModelConfig,
    NormLayer, Param, Positions, RecurrentLayer, SelfAttentionLayer, Side, SsruLayer, Transformer,
};
use regard_core::{Error, Result};
use regard_kernels::{Activation, Dropout, Isa, Key, Mat};
use std::sync::Arc;

/// The outputs of the embedding and of each layer of encoder and decoder, `[tokens, d]` each. In a
/// pre-norm model the final norm is not included.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerOutputs {
    /// For the source tokens: `encoder_layers + 1` matrices.
    pub encoder: Vec<Vec<f32>>,
    /// For the target tokens: `decoder_layers + 1` matrices.
    pub decoder: Vec<Vec<f32>>,
}

/// The outputs of all layers for a batch, without dropout.
pub fn layer_outputs(
    tape: &mut Tape,
    model: &Transformer,
    weights: &[f32],
    batch: &Batch,
) -> Result<LayerOutputs> {
    tape.clear();
    let mut e = Taped::new(tape, model, weights, None, (&batch.source, &batch.input), None)?;
    let memory = model.encode(&mut e);
    let of_encoder = e.layer_ends.len();
    model.decode(&mut e, memory);
    let value = |x: &Var| e.value(*x).to_vec();
    let (encoder, decoder) = e.layer_ends.split_at(of_encoder);
    Ok(LayerOutputs {
        encoder: encoder.iter().map(value).collect(),
        decoder: decoder.iter().map(value).collect(),
    })
}

/// Dropout in training: the random stream of this step.
#[derive(Clone, Copy, Debug)]
pub struct Dropouts {
    /// The stream.
    pub key: Key,
}

/// The tape as an [`Executor`], over one batch.
#[derive(Debug)]
pub struct Taped<'a> {
    tape: &'a mut Tape,
    config: &'a ModelConfig,
    weights: Weights<'a>,
    gradients: Option<&'a mut [f32]>,
    source: &'a Packed,
    target: &'a Packed,
    sinusoids: Arc<[f32]>,
    dropouts: Option<Dropouts>,
    /// The side of the current layers: dropout counts its rows.
    side: Side,
    /// The number of operations with dropout so far: each has its own stream.
    streams: u64,
    /// The outputs of the embeddings and the layers.
    layer_ends: Vec<Var>,
    /// The inputs of the cross-attentions.
    crossed: Vec<(Var, Var)>,
}

impl<'a> Taped<'a> {
    /// Runs on `tape` with `weights`. With `dropouts`, applies dropout as in training; with
    /// `gradients`, the loss accumulates in them.
    ///
    /// Rejects ids outside the vocabulary, and sentences longer than a learned position table.
    pub fn new(
        tape: &'a mut Tape,
        model: &'a Transformer,
        weights: impl Into<Weights<'a>>,
        gradients: Option<&'a mut [f32]>,
        (source, target): (&'a Packed, &'a Packed),
        dropouts: Option<Dropouts>,
    ) -> Result<Self> {
        Self::with_config(tape, model.config(), weights, gradients, (source, target), dropouts)
    }

    /// The same for layers that are not a whole [`Transformer`]; `config` is the one that they were
    /// created with.
    pub fn with_config(
        tape: &'a mut Tape,
        config: &'a ModelConfig,
        weights: impl Into<Weights<'a>>,
        gradients: Option<&'a mut [f32]>,
        (source, target): (&'a Packed, &'a Packed),
        dropouts: Option<Dropouts>,
    ) -> Result<Self> {
        check(source, "source", config.source_vocabulary, config)?;
        check(target, "target", config.target_vocabulary, config)?;
        let longest = |x: &Packed| (0..x.sentences()).map(|i| x.length(i)).max().unwrap_or(0);
        let sinusoids = match config.positions {
            Positions::Sinusoidal => config.sinusoids(longest(source).max(longest(target))),
            _ => Vec::new(),
        };
        Ok(Taped {
            tape,
            config,
            weights: weights.into(),
            gradients,
            source,
            target,
            sinusoids: sinusoids.into(),
            dropouts,
            side: Side::Source,
            streams: 0,
            layer_ends: Vec::new(),
            crossed: Vec::new(),
        })
    }

    fn packed(&self, side: Side) -> &'a Packed {
        match side {
            Side::Source => self.source,
            Side::Target => self.target,
        }
    }

    fn dropout(&mut self, rate: f32) -> Option<Dropout> {
        self.streams += 1;
        let first_row = self.packed(self.side).first_row();
        self.dropouts.filter(|_| rate > 0.0).map(|d| Dropout::new(d.key.child(self.streams), rate, first_row))
    }

    /// Runs an operation and records it: for an [`Executor`] that wraps this one and replaces some
    /// operations.
    pub fn push(&mut self, op: impl Op + 'static) -> Var {
        self.tape.push(self.weights, self.gradients.as_deref_mut(), op)
    }

    /// Adds an input with this many columns, and a row for each token of a side.
    ///
    /// # Panics
    /// If the length of `data` does not match.
    pub fn input(&mut self, side: Side, data: &[f32], columns: usize) -> Var {
        self.side = side;
        self.tape.input(data, self.packed(side).tokens(), columns)
    }

    /// The value of a tensor, in row-major order.
    pub fn value(&self, x: Var) -> &[f32] {
        self.tape.value(x).data()
    }

    /// The same as a matrix.
    pub fn matrix(&self, x: Var) -> Mat<'_> {
        self.tape.value(x)
    }

    /// Where the sentences of a side begin, plus the end of the last.
    pub fn offsets(&self, side: Side) -> &'a Arc<[usize]> {
        self.packed(side).offsets()
    }

    /// The elements of a parameter.
    pub fn weight(&self, param: Param) -> &'a [f32] {
        &self.weights.flat[param.range()]
    }

    /// The inputs of each cross-attention so far: the queries, and the keys and values side by
    /// side.
    pub fn cross_attentions(&self) -> &[(Var, Var)] {
        &self.crossed
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.tape.isa()
    }

    /// The loss of each target token; also accumulates the gradient of `scale` times their sum.
    pub fn loss(&mut self, model: &Transformer, x: Var, targets: Arc<[u32]>, settings: LossSettings) -> Var {
        // Padding, the last word, is excluded.
        let words = model.config().output_words();
        let (table, bias) = (model.output(), model.shared_output_bias());
        let LossSettings { smoothing, scale, r_drop } = settings;
        let loss = CrossEntropy { x, table, bias, words, targets, smoothing, scale };
        match r_drop {
            Some(weight) => self.push(RDrop { loss, weight }),
            None => self.push(loss),
        }
    }
}

/// The settings of the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossSettings {
    /// ε of the label smoothing.
    pub smoothing: f32,
    /// The factor applied to the sum of the losses before its gradient is taken.
    pub scale: f32,
    /// R-Drop: the batch contains every pair twice, [`Batch::twice`], and this weight times their
    /// divergence is added.
    pub r_drop: Option<f32>,
}

impl LossSettings {
    /// Plain cross-entropy.
    pub const PLAIN: LossSettings = LossSettings { smoothing: 0.0, scale: 1.0, r_drop: None };
}

/// Checks that every id is in the vocabulary, and that every position has a vector.
fn check(tokens: &Packed, side: &'static str, words: usize, config: &ModelConfig) -> Result<()> {
    let refuse = |message| Err(Error::Input { operation: side, message });
    if let Some(id) = tokens.ids().iter().find(|&&id| id as usize >= words) {
        return refuse(format!("token {id} is not in the vocabulary of {words}"));
    }
    if config.positions == Positions::Learned {
        let most = config.max_positions;
        if let Some(i) = (0..tokens.sentences()).find(|&i| tokens.length(i) > most) {
            return refuse(format!(
                "sentence {i} has {} tokens, the model has {most} positions",
                tokens.length(i)
            ));
        }
    }
    Ok(())
}

impl Executor for Taped<'_> {
    type Tensor = Var;

    fn embed(&mut self, layer: &EmbeddingLayer) -> Var {
        self.side = layer.side;
        let config = self.config;
        let (scale, width) = (config.embedding_scale(), config.d_model);
        let positions = match (config.positions, layer.positions) {
            (Positions::Sinusoidal, _) => PositionVectors::Fixed(self.sinusoids.clone()),
            (Positions::Learned, Some(table)) => PositionVectors::Learned(table, config.position_offset),
            _ => PositionVectors::None,
        };
        let pad = match layer.side {
            Side::Source => config.source_pad(),
            Side::Target => config.target_pad(),
        };
        let concatenate = config.combine == Combine::Concatenate;
        let dropout = self.dropout(config.dropout);
        let tokens = self.packed(layer.side).clone();
        self.push(Embedding {
            tokens,
            table: layer.table,
            width,
            scale,
            positions,
            concatenate,
            pad,
            dropout,
        })
    }

    fn linear(&mut self, x: Var, layer: &LinearLayer) -> Var {
        let LinearLayer { weight, bias, outputs } = *layer;
        self.push(Linear { x, weight, bias, outputs, activation: Activation::Identity, dropout: None })
    }

    fn activated(&mut self, x: Var, layer: &LinearLayer) -> Var {
        let LinearLayer { weight, bias, outputs } = *layer;
        let config = self.config;
        let dropout = self.dropout(config.activation_dropout);
        self.push(Linear { x, weight, bias, outputs, activation: config.activation, dropout })
    }

    fn self_attention(&mut self, qkv: Var, layer: &SelfAttentionLayer) -> Var {
        let config = self.config;
        let dropout = self.dropout(config.attention_dropout);
        let offsets = self.packed(self.side).offsets().clone();
        let SelfAttentionLayer { mask, relative, .. } = *layer;
        let (shape, scale) = (config.head_shape(self.side), config.score_scale(self.side));
        self.push(SelfAttention { qkv, shape, scale, mask, offsets, dropout, relative })
    }

    fn recurrent(&mut self, gates: Var, layer: &RecurrentLayer) -> Var {
        let RecurrentLayer { forward, backward, .. } = *layer;
        let offsets = self.packed(self.side).offsets().clone();
        self.push(Recurrent { x: gates, forward, backward, offsets })
    }

    fn ssru(&mut self, candidates: Var, forget: Var, _: &SsruLayer) -> Var {
        let offsets = self.packed(self.side).offsets().clone();
        self.push(Ssru { candidates, forget, offsets })
    }

    fn unfold(&mut self, x: Var, layer: &ConvolutionLayer) -> Var {
        let ConvolutionLayer { width, dilation, .. } = *layer;
        let offsets = self.packed(self.side).offsets().clone();
        self.push(Unfold { x, width, dilation, offsets })
    }

    fn memory(&mut self, memory: Var, layer: &CrossAttentionLayer) -> Var {
        self.linear(memory, &layer.kv)
    }

    fn cross_attention(&mut self, q: Var, kv: Var, _: &CrossAttentionLayer) -> Var {
        let config = self.config;
        let (shape, scale) = (config.head_shape(Side::Target), config.score_scale(Side::Target));
        let dropout = self.dropout(config.attention_dropout);
        let (queries, keys) = (self.target.offsets().clone(), self.source.offsets().clone());
        self.crossed.push((q, kv));
        self.push(CrossAttention { q, kv, shape, scale, queries, keys, dropout })
    }

    fn add_norm(&mut self, x: Var, branch: Var, norm: &NormLayer) -> Var {
        let config = self.config;
        let dropout = self.dropout(config.dropout);
        let epsilon = config.norm_epsilon;
        self.push(AddNorm { x, branch: Some(branch), dropout, gamma: norm.gamma, beta: norm.beta, epsilon })
    }

    fn norm(&mut self, x: Var, norm: &NormLayer) -> Var {
        let epsilon = self.config.norm_epsilon;
        self.push(AddNorm { x, branch: None, dropout: None, gamma: norm.gamma, beta: norm.beta, epsilon })
    }

    fn add(&mut self, x: Var, branch: Var) -> Var {
        let dropout = self.dropout(self.config.dropout);
        self.push(Residual { x, branch, dropout })
    }

    fn multiply(&mut self, gate: Var, x: Var) -> Var {
        self.push(Multiply { a: gate, b: x })
    }

    fn scale(&mut self, x: Var, factor: f32) -> Var {
        self.push(Scale { x, factor })
    }

    fn end_layer(&mut self, x: Var) -> Var {
        self.layer_ends.push(x);
        self.tape.mark();
        x
    }
}

/// The negative log-likelihood of each target token of a batch, without label smoothing.
pub fn token_losses(
    tape: &mut Tape,
    model: &Transformer,
    weights: &[f32],
    batch: &Batch,
) -> Result<Vec<f32>> {
    tape.clear();
    let losses = forward(tape, model, weights.into(), None, batch, LossSettings::PLAIN, None)?;
    Ok(tape.value(losses).data().to_vec())
}

/// The sum of the losses of a batch's target tokens, with label smoothing.
///
/// With `gradients`, accumulates those of `settings.scale` times that sum; with `dropouts`, applies
/// dropout as in training.
pub fn loss<'w>(
    tape: &mut Tape,
    model: &Transformer,
    weights: impl Into<Weights<'w>>,
    mut gradients: Option<&mut [f32]>,
    batch: &Batch,
    settings: LossSettings,
    dropouts: Option<Dropouts>,
) -> Result<f64> {
    let weights = weights.into();
    tape.clear();
    let losses = forward(tape, model, weights, gradients.as_deref_mut(), batch, settings, dropouts)?;
    let total = tape.value(losses).data().iter().map(|&x| f64::from(x)).sum();
    if let Some(gradients) = gradients {
        tape.backward(weights, gradients, losses, &[]);
        tape.clear_grads();
    }
    Ok(total)
}

/// Records the whole model and its loss; the value is the loss of each target token.
fn forward(
    tape: &mut Tape,
    model: &Transformer,
    weights: Weights<'_>,
    gradients: Option<&mut [f32]>,
    batch: &Batch,
    settings: LossSettings,
    dropouts: Option<Dropouts>,
) -> Result<Var> {
    let words = model.config().output_words();
    if let Some(id) = batch.output.iter().find(|&&id| id as usize >= words) {
        let message = format!("target token {id} is not one of the {words} words that can come");
        return Err(Error::Input { operation: "loss", message });
    }
    let sides = (&batch.source, &batch.input);
    let mut e = Taped::new(tape, model, weights, gradients, sides, dropouts)?;
    let memory = model.encode(&mut e);
    let x = model.decode(&mut e, memory);
    Ok(e.loss(model, x, batch.output.clone(), settings))
}
