//! The layers carried out on the tape: training, and anything else that sees whole sentences at once.

use super::config::{Combine, ModelConfig, Positions};
use super::layers::{
    CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, NormLayer, SelfAttentionLayer, Side,
};
use super::{Transformer, positions};
use crate::autograd::ops::{
    AddNorm, CrossAttention, CrossEntropy, Embedding, Linear, PositionVectors, Residual, SelfAttention,
};
use crate::autograd::{Op, Tape, Var};
use crate::batch::{Batch, Packed};
use crate::{Error, Result};
use regard_kernels::{Activation, Dropout, Key};
use std::sync::Arc;

/// Dropout while training: the stream of random numbers of this step.
#[derive(Clone, Copy, Debug)]
pub struct Dropouts {
    /// The stream.
    pub key: Key,
}

/// The tape as an [`Executor`], over one batch.
#[derive(Debug)]
pub struct Taped<'a> {
    tape: &'a mut Tape,
    model: &'a Transformer,
    weights: &'a [f32],
    gradients: Option<&'a mut [f32]>,
    source: &'a Packed,
    target: &'a Packed,
    sinusoids: Arc<[f32]>,
    dropouts: Option<Dropouts>,
    /// Which side the layers at hand belong to: its rows are what random numbers are counted by.
    side: Side,
    /// How many operations with dropout there have been: each has a stream of its own.
    streams: u64,
}

impl<'a> Taped<'a> {
    /// Runs on `tape` with `weights`. With `dropouts` it is training; with `gradients`, the loss adds to them.
    ///
    /// Refuses ids that the vocabulary lacks, and sentences longer than a learned position table.
    pub fn new(
        tape: &'a mut Tape,
        model: &'a Transformer,
        weights: &'a [f32],
        gradients: Option<&'a mut [f32]>,
        (source, target): (&'a Packed, &'a Packed),
        dropouts: Option<Dropouts>,
    ) -> Result<Self> {
        let config = model.config();
        check(source, "source", config.source_vocabulary, config)?;
        check(target, "target", config.target_vocabulary, config)?;
        let longest = |x: &Packed| (0..x.sentences()).map(|i| x.length(i)).max().unwrap_or(0);
        let sinusoids = match config.positions {
            Positions::Sinusoidal => {
                positions::sinusoidal(longest(source).max(longest(target)), config.d_model)
            }
            _ => Vec::new(),
        };
        Ok(Taped {
            tape,
            model,
            weights,
            gradients,
            source,
            target,
            sinusoids: sinusoids.into(),
            dropouts,
            side: Side::Source,
            streams: 0,
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

    fn push(&mut self, op: impl Op + 'static) -> Var {
        self.tape.push(self.weights, self.gradients.as_deref_mut(), op)
    }

    /// The value of a tensor, row by row.
    pub fn value(&self, x: Var) -> &[f32] {
        self.tape.value(x).data()
    }

    /// The loss of each target token against what should have come, and on the way the gradient of `scale` times their sum.
    fn cross_entropy(&mut self, x: Var, targets: Arc<[u32]>, smoothing: f32, scale: f32) -> Var {
        // The padding token is the last word: it takes no part.
        let words = self.model.config().target_vocabulary - 1;
        self.push(CrossEntropy { x, table: self.model.output(), words, targets, smoothing, scale })
    }
}

/// Every id is a word of the vocabulary, and every position has a vector.
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
        let config = self.model.config();
        let (scale, width) = (config.embedding_scale(), config.d_model);
        let positions = match (config.positions, layer.positions) {
            (Positions::Sinusoidal, _) => PositionVectors::Fixed(self.sinusoids.clone()),
            (Positions::Learned, Some(table)) => PositionVectors::Learned(table),
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
        let LinearLayer { weight, bias } = *layer;
        self.push(Linear { x, weight, bias, activation: Activation::Identity, dropout: None })
    }

    fn activated(&mut self, x: Var, layer: &LinearLayer) -> Var {
        let LinearLayer { weight, bias } = *layer;
        let config = self.model.config();
        let dropout = self.dropout(config.activation_dropout);
        self.push(Linear { x, weight, bias, activation: config.activation, dropout })
    }

    fn self_attention(&mut self, qkv: Var, layer: &SelfAttentionLayer) -> Var {
        let config = self.model.config();
        let dropout = self.dropout(config.attention_dropout);
        let offsets = self.packed(self.side).offsets().clone();
        let SelfAttentionLayer { mask, relative, .. } = *layer;
        self.push(SelfAttention { qkv, shape: config.head_shape(), mask, offsets, dropout, relative })
    }

    fn memory(&mut self, memory: Var, layer: &CrossAttentionLayer) -> Var {
        self.linear(memory, &layer.kv)
    }

    fn cross_attention(&mut self, q: Var, kv: Var, _: &CrossAttentionLayer) -> Var {
        let config = self.model.config();
        let dropout = self.dropout(config.attention_dropout);
        let (queries, keys) = (self.target.offsets().clone(), self.source.offsets().clone());
        self.push(CrossAttention { q, kv, shape: config.head_shape(), queries, keys, dropout })
    }

    fn add_norm(&mut self, x: Var, branch: Var, norm: &NormLayer) -> Var {
        let config = self.model.config();
        let dropout = self.dropout(config.dropout);
        let epsilon = config.norm_epsilon;
        self.push(AddNorm { x, branch: Some(branch), dropout, gamma: norm.gamma, beta: norm.beta, epsilon })
    }

    fn norm(&mut self, x: Var, norm: &NormLayer) -> Var {
        let epsilon = self.model.config().norm_epsilon;
        self.push(AddNorm { x, branch: None, dropout: None, gamma: norm.gamma, beta: norm.beta, epsilon })
    }

    fn add(&mut self, x: Var, branch: Var) -> Var {
        let dropout = self.dropout(self.model.config().dropout);
        self.push(Residual { x, branch, dropout })
    }
}

/// The loss of each target token of a batch, without label smoothing: minus its log-probability.
pub fn token_losses(
    tape: &mut Tape,
    model: &Transformer,
    weights: &[f32],
    batch: &Batch,
) -> Result<Vec<f32>> {
    tape.clear();
    let losses = forward(tape, model, weights, None, batch, (0.0, 1.0), None)?;
    Ok(tape.value(losses).data().to_vec())
}

/// The sum of the losses of a batch's target tokens, each with label smoothing.
///
/// With `gradients`, those of `scale` times that sum are added to them; with `dropouts`, the model drops as in training.
pub fn loss(
    tape: &mut Tape,
    model: &Transformer,
    weights: &[f32],
    mut gradients: Option<&mut [f32]>,
    batch: &Batch,
    (smoothing, scale): (f32, f32),
    dropouts: Option<Dropouts>,
) -> Result<f64> {
    tape.clear();
    let losses =
        forward(tape, model, weights, gradients.as_deref_mut(), batch, (smoothing, scale), dropouts)?;
    let total = tape.value(losses).data().iter().map(|&x| f64::from(x)).sum();
    if let Some(gradients) = gradients {
        tape.backward(weights, gradients, losses, &[]);
        tape.clear_slopes();
    }
    Ok(total)
}

/// Records the whole model and its loss; the value is the loss of each target token.
fn forward(
    tape: &mut Tape,
    model: &Transformer,
    weights: &[f32],
    gradients: Option<&mut [f32]>,
    batch: &Batch,
    (smoothing, scale): (f32, f32),
    dropouts: Option<Dropouts>,
) -> Result<Var> {
    let words = model.config().target_vocabulary - 1;
    if let Some(id) = batch.output.iter().find(|&&id| id as usize >= words) {
        let message = format!("target token {id} is not a word: the vocabulary has {words} and padding");
        return Err(Error::Input { operation: "loss", message });
    }
    let sides = (&batch.source, &batch.input);
    let mut e = Taped::new(tape, model, weights, gradients, sides, dropouts)?;
    let memory = model.encode(&mut e);
    let x = model.decode(&mut e, memory);
    Ok(e.cross_entropy(x, batch.output.clone(), smoothing, scale))
}
