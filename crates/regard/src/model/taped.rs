//! The layers carried out on the tape: training, and anything else that sees whole sentences at once.

use super::config::{Combine, ModelConfig, Positions};
use super::layers::{
    ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, NormLayer, RecurrentLayer,
    SelfAttentionLayer, Side,
};
use super::{Transformer, positions};
use crate::autograd::ops::{
    AddNorm, Agreement, CrossAttention, CrossEntropy, Embedding, HeadShape, Linear, Neighbours,
    PositionVectors, Recurrent, RecurrentCell, RelativePositions, Residual, SelfAttention,
};
use crate::autograd::{Op, Tape, Var, Weights};
use crate::batch::{Batch, Packed};
use crate::{Error, Result};
use regard_kernels::{
    Activation, Attention, Dropout, Key, Mask, Mat, MatMut, Relative, Scratch, attention_forward,
};
use std::sync::Arc;

/// Which attention a map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionKind {
    /// Source over source.
    Encoder,
    /// Target over target.
    Decoder,
    /// Target over source.
    Cross,
}

/// The weights of all heads of one attention for one sentence: `[heads, rows, columns]`, each row summing to one.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMap {
    /// Which attention.
    pub kind: AttentionKind,
    /// Counted through the stack, from 0.
    pub layer: usize,
    /// How many heads.
    pub heads: usize,
    /// Tokens that attend.
    pub rows: usize,
    /// Tokens attended to.
    pub columns: usize,
    /// The weights.
    pub weights: Vec<f32>,
}

impl AttentionMap {
    /// The weights of one head, `[rows, columns]`.
    ///
    /// # Panics
    /// If there is no such head.
    pub fn head(&self, head: usize) -> &[f32] {
        &self.weights[head * self.rows * self.columns..][..self.rows * self.columns]
    }

    /// All heads on average.
    pub fn mean(&self) -> Vec<f32> {
        let size = self.rows * self.columns;
        let share = 1.0 / self.heads as f32;
        (0..size).map(|i| (0..self.heads).map(|h| self.weights[h * size + i]).sum::<f32>() * share).collect()
    }

    /// How clearly its rows point at different tokens, all heads on average, in nats: the mutual information of rows and columns.
    /// 0 if every row looks the same, be it at everything or at one token; ln(n) if each of n rows looks at a token of its own.
    pub fn sharpness(&self) -> f64 {
        let weights = self.mean();
        let entropy = |p: &[f64]| -p.iter().filter(|&&x| x > 0.0).map(|x| x * x.ln()).sum::<f64>();
        let mut all = vec![0.0; self.columns];
        let mut of_rows = 0.0;
        for row in weights.chunks(self.columns.max(1)) {
            let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            all.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x / self.rows as f64);
            of_rows += entropy(&row) / self.rows as f64;
        }
        entropy(&all) - of_rows
    }
}

/// The map of one kind whose rows point most clearly at different tokens: the layer to show first. `None` if there is none of
/// that kind.
///
/// ```
/// use regard::model::{AttentionKind::Cross, AttentionMap, sharpest};
/// let map = |layer, weights: [f32; 4]| AttentionMap {
///     kind: Cross, layer, heads: 1, rows: 2, columns: 2, weights: weights.to_vec(),
/// };
/// let maps = [
///     map(0, [0.6, 0.4, 0.4, 0.6]), // diffuse
///     map(1, [0.1, 0.9, 0.9, 0.1]), // each row at a token of its own
///     map(2, [0.0, 1.0, 0.0, 1.0]), // both at the same token
/// ];
/// assert_eq!(sharpest(&maps, Cross).unwrap().layer, 1);
/// ```
pub fn sharpest(maps: &[AttentionMap], kind: AttentionKind) -> Option<&AttentionMap> {
    let of_kind = maps.iter().filter(|map| map.kind == kind);
    of_kind.max_by(|a, b| a.sharpness().total_cmp(&b.sharpness()))
}

/// Every attention of the model while it reads `source` (with its end) and says `target` (with its end).
pub fn attention_maps(
    tape: &mut Tape,
    model: &Transformer,
    weights: &[f32],
    source: &[u32],
    target: &[u32],
) -> Result<Vec<AttentionMap>> {
    tape.clear();
    let batch = Batch::new([(source, target)], model.config().target_pad())?;
    let mut e = Taped::new(tape, model, weights, None, (&batch.source, &batch.input), None)?;
    e.maps = Some(Vec::new());
    let memory = model.encode(&mut e);
    model.decode(&mut e, memory);
    Ok(e.maps.unwrap_or_default())
}

/// What the two halves of a model hold after their embedding and after each of their layers, `[tokens, d]` each. In a pre-norm
/// model the last norm is not included.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerOutputs {
    /// Of the source tokens: `encoder_layers + 1` matrices.
    pub encoder: Vec<Vec<f32>>,
    /// Of the target tokens: `decoder_layers + 1` matrices.
    pub decoder: Vec<Vec<f32>>,
}

/// The vectors between the layers while the model reads a batch, without dropout.
pub fn layer_outputs(
    tape: &mut Tape,
    model: &Transformer,
    weights: &[f32],
    batch: &Batch,
) -> Result<LayerOutputs> {
    tape.clear();
    let mut e = Taped::new(tape, model, weights, None, (&batch.source, &batch.input), None)?;
    let memory = model.encode(&mut e);
    let of_encoder = e.settled.len();
    model.decode(&mut e, memory);
    let value = |x: &Var| e.value(*x).to_vec();
    let (encoder, decoder) = e.settled.split_at(of_encoder);
    Ok(LayerOutputs {
        encoder: encoder.iter().map(value).collect(),
        decoder: decoder.iter().map(value).collect(),
    })
}

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
    weights: Weights<'a>,
    gradients: Option<&'a mut [f32]>,
    source: &'a Packed,
    target: &'a Packed,
    sinusoids: Arc<[f32]>,
    dropouts: Option<Dropouts>,
    /// Which side the layers at hand belong to: its rows are what random numbers are counted by.
    side: Side,
    /// How many operations with dropout there have been: each has a stream of its own.
    streams: u64,
    /// The attention weights seen, if they are wanted.
    maps: Option<Vec<AttentionMap>>,
    /// What came out of the embeddings and the layers.
    settled: Vec<Var>,
}

impl<'a> Taped<'a> {
    /// Runs on `tape` with `weights`. With `dropouts` it is training; with `gradients`, the loss adds to them.
    ///
    /// Refuses ids that the vocabulary lacks, and sentences longer than a learned position table.
    pub fn new(
        tape: &'a mut Tape,
        model: &'a Transformer,
        weights: impl Into<Weights<'a>>,
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
            weights: weights.into(),
            gradients,
            source,
            target,
            sinusoids: sinusoids.into(),
            dropouts,
            side: Side::Source,
            streams: 0,
            maps: None,
            settled: Vec::new(),
        })
    }

    /// The weights of an attention over one sentence, computed once more: the operation itself never holds them.
    fn observe(
        &mut self,
        kind: AttentionKind,
        layer: usize,
        (q, k, v): (Mat<'_>, Mat<'_>, Mat<'_>),
        mask: Mask,
        relative: Option<RelativePositions>,
    ) {
        let side = if kind == AttentionKind::Encoder { Side::Source } else { Side::Target };
        let HeadShape { heads, d_k, d_v } = self.model.config().head_shape(side);
        let (m, n) = (q.rows(), k.rows());
        let mut weights = vec![0.0; heads * m * n];
        let (mut out, mut sums) = (vec![0.0; m * heads * d_v], vec![0.0; m * heads]);
        let shape = Attention {
            heads,
            d_k,
            d_v,
            scale: (d_k as f32).sqrt().recip(),
            mask,
            queries: &[0, m],
            keys: &[0, n],
            dropout: None,
            relative: relative
                .map(|r| Relative { table: &self.weights.flat[r.table.range()], reach: r.reach }),
        };
        let to = MatMut::new(&mut out, m, heads * d_v);
        attention_forward(
            self.tape.isa(),
            &shape,
            (q, k, v),
            to,
            &mut sums,
            Some(&mut weights),
            &mut Scratch::default(),
        );
        if let Some(maps) = &mut self.maps {
            maps.push(AttentionMap { kind, layer, heads, rows: m, columns: n, weights });
        }
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

    fn copy(&self, x: Var) -> (Vec<f32>, usize, usize) {
        let x = self.tape.value(x);
        (x.data().to_vec(), x.rows(), x.cols())
    }

    /// Runs an operation and records it: for what an [`Executor`] around this one does in another way.
    pub fn push(&mut self, op: impl Op + 'static) -> Var {
        self.tape.push(self.weights, self.gradients.as_deref_mut(), op)
    }

    /// The value of a tensor, row by row.
    pub fn value(&self, x: Var) -> &[f32] {
        self.tape.value(x).data()
    }

    /// The loss of each target token against what should have come, and on the way the gradient of `scale` times their sum.
    pub fn loss(&mut self, x: Var, targets: Arc<[u32]>, settings: LossSettings) -> Var {
        // The padding token is the last word: it takes no part.
        let words = self.model.config().target_vocabulary - 1;
        let (table, bias) = (self.model.output(), self.model.output_bias.clone());
        let LossSettings { smoothing, scale, agreement } = settings;
        let loss = CrossEntropy { x, table, bias, words, targets, smoothing, scale };
        match agreement {
            Some(weight) => self.push(Agreement { loss, weight }),
            None => self.push(loss),
        }
    }
}

/// What the loss is, besides the model and the tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossSettings {
    /// ε of the label smoothing.
    pub smoothing: f32,
    /// What the sum of the losses is multiplied by before its gradient is taken.
    pub scale: f32,
    /// R-Drop: the batch has every pair twice, [`Batch::twice`], and this times their divergence is added.
    pub agreement: Option<f32>,
}

impl LossSettings {
    /// The cross-entropy itself.
    pub const PLAIN: LossSettings = LossSettings { smoothing: 0.0, scale: 1.0, agreement: None };
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
        let shape = config.head_shape(self.side);
        if self.maps.is_some() {
            let kind = match self.side {
                Side::Source => AttentionKind::Encoder,
                Side::Target => AttentionKind::Decoder,
            };
            let (keys, values) = (shape.keys(), shape.values());
            let (x, rows, cols) = self.copy(qkv);
            let x = Mat::new(&x, rows, cols);
            let parts = (x.columns(0, keys), x.columns(keys, keys), x.columns(2 * keys, values));
            self.observe(kind, layer.layer, parts, mask, relative);
        }
        self.push(SelfAttention { qkv, shape, mask, offsets, dropout, relative })
    }

    fn recurrent(&mut self, gates: Var, layer: &RecurrentLayer) -> Var {
        let cell = |layer: LinearLayer| RecurrentCell { weight: layer.weight, bias: layer.bias };
        let (forward, backward) = (cell(layer.forward), layer.backward.map(cell));
        let offsets = self.packed(self.side).offsets().clone();
        self.push(Recurrent { x: gates, forward, backward, offsets })
    }

    fn neighbours(&mut self, x: Var, layer: &ConvolutionLayer) -> Var {
        let ConvolutionLayer { width, dilation, .. } = *layer;
        let offsets = self.packed(self.side).offsets().clone();
        self.push(Neighbours { x, width, dilation, offsets })
    }

    fn memory(&mut self, memory: Var, layer: &CrossAttentionLayer) -> Var {
        self.linear(memory, &layer.kv)
    }

    fn cross_attention(&mut self, q: Var, kv: Var, layer: &CrossAttentionLayer) -> Var {
        let config = self.model.config();
        let shape = config.head_shape(Side::Target);
        if self.maps.is_some() {
            let (keys, values) = (shape.keys(), shape.values());
            let ((q, m, q_cols), (kv, n, kv_cols)) = (self.copy(q), self.copy(kv));
            let kv = Mat::new(&kv, n, kv_cols);
            let parts = (Mat::new(&q, m, q_cols), kv.columns(0, keys), kv.columns(keys, values));
            self.observe(AttentionKind::Cross, layer.layer, parts, Mask::NONE, None);
        }
        let dropout = self.dropout(config.attention_dropout);
        let (queries, keys) = (self.target.offsets().clone(), self.source.offsets().clone());
        self.push(CrossAttention { q, kv, shape, queries, keys, dropout })
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

    fn settle(&mut self, x: Var) -> Var {
        self.settled.push(x);
        self.tape.mark();
        x
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
    let losses = forward(tape, model, weights.into(), None, batch, LossSettings::PLAIN, None)?;
    Ok(tape.value(losses).data().to_vec())
}

/// The sum of the losses of a batch's target tokens, each with label smoothing.
///
/// With `gradients`, those of `settings.scale` times that sum are added to them; with `dropouts`, the model drops as in training.
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
        tape.clear_slopes();
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
    let words = model.config().target_vocabulary - 1;
    if let Some(id) = batch.output.iter().find(|&&id| id as usize >= words) {
        let message = format!("target token {id} is not a word: the vocabulary has {words} and padding");
        return Err(Error::Input { operation: "loss", message });
    }
    let sides = (&batch.source, &batch.input);
    let mut e = Taped::new(tape, model, weights, gradients, sides, dropouts)?;
    let memory = model.encode(&mut e);
    let x = model.decode(&mut e, memory);
    Ok(e.loss(x, batch.output.clone(), settings))
}
