//! The wiring of encoder and decoder, once, over whatever executes it.

use super::builder::LayerBuilder;
use super::config::{ModelConfig, NormPlace, Tying};
use super::parameters::{Param, Parameters, Role};
use super::positions::Buckets;
use crate::{Error, Result};
use regard_kernels::Mask;
use std::ops::Range;
use std::sync::Arc;

/// The two sides of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What the encoder reads.
    Source,
    /// What the decoder reads.
    Target,
}

/// The heads of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadShape {
    /// h
    pub heads: usize,
    /// Width of a head's queries and keys.
    pub d_k: usize,
    /// Width of a head's values.
    pub d_v: usize,
}

impl HeadShape {
    /// Width of all queries, and of all keys.
    pub fn keys(self) -> usize {
        self.heads * self.d_k
    }

    /// Width of all values.
    pub fn values(self) -> usize {
        self.heads * self.d_v
    }
}

/// What is learned about the distance between query and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelativePositions {
    /// Vectors that are added to the keys.
    Vectors {
        /// `[2 · reach + 1, d_k]`, shared by the heads.
        table: Param,
        /// The longest distance told apart.
        reach: usize,
    },
    /// Numbers that are added to the scores, the same in all layers of a stack.
    Bias {
        /// `[buckets, h]`
        table: Param,
        /// Which distances share a row.
        buckets: Buckets,
    },
}

/// A linear layer: `W [out, in]`, `b [out]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearLayer {
    /// W
    pub weight: Param,
    /// b, if it has one.
    pub bias: Option<Param>,
    /// The rows of W.
    pub outputs: usize,
}

/// γ and β; without a β it is an RMS norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormLayer {
    /// γ
    pub gamma: Param,
    /// β
    pub beta: Option<Param>,
}

/// The embedding of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddingLayer {
    /// Whose tokens it embeds.
    pub side: Side,
    /// `[v, d]`
    pub table: Param,
    /// Learned positions.
    pub positions: Option<Param>,
    /// From token and position, side by side, back to the width of the model.
    pub joined: Option<LinearLayer>,
    /// The norm behind it, if it has one.
    pub norm: Option<NormLayer>,
}

/// Self-attention with its projections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfAttentionLayer {
    /// Counted through the stack.
    pub layer: usize,
    /// Queries, keys and values side by side.
    pub qkv: LinearLayer,
    /// Back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
    /// Which keys a query sees.
    pub mask: Mask,
    /// Relative positions.
    pub relative: Option<RelativePositions>,
}

/// What the state gives to the gates of a recurrent unit: `U [3·h, h]`, `b [3·h]`, as reset, update
/// and candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentCell {
    /// U
    pub weight: Param,
    /// b
    pub bias: Param,
}

impl RecurrentCell {
    /// h
    pub fn width(self) -> usize {
        self.bias.len / 3
    }
}

/// A gated recurrent unit with its projections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentLayer {
    /// What the tokens give to the gates, of all directions side by side.
    pub input: LinearLayer,
    /// What the state gives to them, read from the beginning.
    pub forward: RecurrentCell,
    /// The same, read from the end.
    pub backward: Option<RecurrentCell>,
    /// Back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

/// A simpler simple recurrent unit (Kim et al., 2019): `f = σ(W_f·h + b_f)`,
/// `c ← f∘c + (1 − f)∘(W·h)`, and its output is `relu(c)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SsruLayer {
    /// Counted through the stack.
    pub layer: usize,
    /// W, without a bias.
    pub candidate: LinearLayer,
    /// W_f and b_f.
    pub forget: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

/// A convolution over neighbouring tokens, with its activation and projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvolutionLayer {
    /// How many tokens it sees at once, its own in their middle.
    pub width: usize,
    /// How far they are apart.
    pub dilation: usize,
    /// Over all of them side by side.
    pub kernel: LinearLayer,
    /// Back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

/// Cross-attention with its projections: queries of the decoder, keys and values of the encoder's
/// output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossAttentionLayer {
    /// Counted through the stack.
    pub layer: usize,
    /// Queries.
    pub q: LinearLayer,
    /// Keys and values side by side.
    pub kv: LinearLayer,
    /// Back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

/// The position-wise feed-forward layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedForwardLayer {
    /// To the inner width, with the activation; what comes out of `up` is multiplied by it, if
    /// there is one.
    pub gate: Option<LinearLayer>,
    /// To the inner width, with the activation unless there is a gate.
    pub up: LinearLayer,
    /// Back to the width of the model.
    pub down: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

/// How source tokens exchange information: the one thing in which encoders differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMixer {
    /// Every token looks at others.
    Attention(SelfAttentionLayer),
    /// A recurrent unit reads the tokens in their order.
    Recurrent(RecurrentLayer),
    /// A convolution over neighbours.
    Convolution(ConvolutionLayer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EncoderLayer {
    mixer: TokenMixer,
    feed_forward: FeedForwardLayer,
}

/// How a target token gets to know those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PastMixer {
    Attention(SelfAttentionLayer),
    Ssru(SsruLayer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DecoderLayer {
    mixer: PastMixer,
    cross_attention: CrossAttentionLayer,
    feed_forward: FeedForwardLayer,
}

/// What carries the layers out: on the training tape, or with caches while decoding.
///
/// The executor applies dropout: it knows whether this is training.
pub trait Executor {
    /// A handle to the vectors of some tokens.
    type Tensor: Copy;

    /// Token vectors with their positions.
    fn embed(&mut self, layer: &EmbeddingLayer) -> Self::Tensor;
    /// `x·Wᵀ + b`
    fn linear(&mut self, x: Self::Tensor, layer: &LinearLayer) -> Self::Tensor;
    /// `activation(x·Wᵀ + b)`
    fn activated(&mut self, x: Self::Tensor, layer: &LinearLayer) -> Self::Tensor;
    /// Attention of tokens over tokens of the same side; `qkv` side by side.
    fn self_attention(&mut self, qkv: Self::Tensor, layer: &SelfAttentionLayer) -> Self::Tensor;
    /// The states of a recurrent layer, given what the tokens add to its gates.
    fn recurrent(&mut self, gates: Self::Tensor, layer: &RecurrentLayer) -> Self::Tensor;
    /// The outputs of an SSRU, given the projections of the tokens: candidates, and forget gates
    /// before their sigmoid.
    fn ssru(&mut self, candidates: Self::Tensor, forget: Self::Tensor, layer: &SsruLayer) -> Self::Tensor;
    /// The tokens around each token of the same sentence side by side, zeros where there are none.
    fn unfold(&mut self, x: Self::Tensor, layer: &ConvolutionLayer) -> Self::Tensor;
    /// The keys and values of the encoder's output for one decoder layer, which a cache may hold
    /// already.
    fn memory(&mut self, memory: Self::Tensor, layer: &CrossAttentionLayer) -> Self::Tensor;
    /// Attention of target tokens over source tokens.
    fn cross_attention(
        &mut self,
        q: Self::Tensor,
        kv: Self::Tensor,
        layer: &CrossAttentionLayer,
    ) -> Self::Tensor;
    /// `LayerNorm(x + f)`, or the RMS norm of that.
    fn add_norm(&mut self, x: Self::Tensor, branch: Self::Tensor, norm: &NormLayer) -> Self::Tensor;
    /// `LayerNorm(x)`, or its RMS norm.
    fn norm(&mut self, x: Self::Tensor, norm: &NormLayer) -> Self::Tensor;
    /// `x + f`
    fn add(&mut self, x: Self::Tensor, branch: Self::Tensor) -> Self::Tensor;
    /// `gate ∘ x`, element by element: the inside of a gated feed-forward layer.
    fn multiply(&mut self, gate: Self::Tensor, x: Self::Tensor) -> Self::Tensor;
    /// `factor · x`
    fn scale(&mut self, x: Self::Tensor, factor: f32) -> Self::Tensor;
    /// An embedding or a layer is over: of all that this pass has made, only `x` is needed from
    /// here on.
    fn end_layer(&mut self, x: Self::Tensor) -> Self::Tensor {
        x
    }
}

/// The Transformer's layers and where their weights lie.
#[derive(Clone, Debug)]
pub struct Transformer {
    config: ModelConfig,
    parameters: Parameters,
    source: EmbeddingLayer,
    target: EmbeddingLayer,
    encoder: Vec<EncoderLayer>,
    decoder: Vec<DecoderLayer>,
    /// The last norm of encoder and decoder, in a pre-norm model.
    final_norms: Option<(NormLayer, NormLayer)>,
    output: Param,
    /// What is added to the logits; not trained.
    output_bias: Option<Arc<[f32]>>,
}

impl Transformer {
    /// The model of a configuration, if that makes sense.
    pub fn new(config: ModelConfig) -> Result<Self> {
        config.validate()?;
        let mut b = LayerBuilder::new(&config);
        let (source_table, target_table, output) = match config.tying {
            Tying::ThreeWay => {
                let shared = b.words("embeddings", config.target_vocabulary);
                (shared, shared, shared)
            }
            Tying::Embeddings => {
                let shared = b.words("embeddings", config.target_vocabulary);
                (shared, shared, b.words("output", config.target_vocabulary))
            }
            Tying::Decoder => {
                let source = b.words("encoder.embeddings", config.source_vocabulary);
                let target = b.words("decoder.embeddings", config.target_vocabulary);
                (source, target, target)
            }
            Tying::None => (
                b.words("encoder.embeddings", config.source_vocabulary),
                b.words("decoder.embeddings", config.target_vocabulary),
                b.words("output", config.target_vocabulary),
            ),
        };
        let source = b.embedding(Side::Source, source_table);
        let target = b.embedding(Side::Target, target_table);
        let encoder = (0..config.encoder_layers)
            .map(|i| {
                b.enter(Side::Source, Some(i));
                EncoderLayer {
                    mixer: b.token_mixer(i),
                    feed_forward: b.feed_forward(&format!("encoder.layers.{i}.ffn")),
                }
            })
            .collect();
        let decoder = (0..config.decoder_layers)
            .map(|i| {
                b.enter(Side::Target, Some(i));
                DecoderLayer {
                    mixer: b.past_mixer(i),
                    cross_attention: b.cross_attention(&format!("decoder.layers.{i}.cross_attn"), i),
                    feed_forward: b.feed_forward(&format!("decoder.layers.{i}.ffn")),
                }
            })
            .collect();
        let final_norms = (config.norm == NormPlace::Pre).then(|| {
            let mut last = |side, name| {
                b.enter(side, None);
                b.norm(name)
            };
            (last(Side::Source, "encoder.norm"), last(Side::Target, "decoder.norm"))
        });
        let parameters = b.into_parameters();
        let output_bias = None;
        Ok(Transformer {
            config,
            parameters,
            source,
            target,
            encoder,
            decoder,
            final_norms,
            output,
            output_bias,
        })
    }

    /// What it looks like.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The output matrix `[v, d]`.
    pub fn output(&self) -> Param {
        self.output
    }

    /// The matrices that tokens are multiplied by in training, each at the beginning of its
    /// parameter: those of the linear layers, and the output's without the padding token, which
    /// never comes.
    pub fn matrices(&self) -> impl Iterator<Item = (Param, [usize; 2])> + '_ {
        let output = [self.config.output_words(), self.config.d_model];
        let linear = self.parameters.iter().filter(|p| p.role == Role::Matrix);
        linear.map(|p| (p.param, p.shape)).chain([(self.output, output)])
    }

    /// The mark behind which the backward pass of a model on a tape changes no gradient in this
    /// range of the weights any more. There is a mark behind each embedding and each layer. What is
    /// outside of the layers is final at the end, and has none.
    pub fn final_after(&self, range: Range<usize>) -> Option<usize> {
        let touched = self
            .parameters
            .iter()
            .filter(|p| p.param.offset < range.end && range.start < p.param.range().end);
        let marks = touched.map(|p| {
            // The embeddings come first, in either stack.
            Some(match p.location.stack? {
                Side::Source => p.location.layer?,
                Side::Target => self.encoder.len() + 1 + p.location.layer?,
            })
        });
        marks.min().flatten()
    }

    /// The same model with a bias of the logits, one number per word of the vocabulary. Published
    /// models have one; training does not change it.
    pub fn with_output_bias(mut self, bias: Option<Vec<f32>>) -> Result<Self> {
        self.set_output_bias(bias)?;
        Ok(self)
    }

    /// Replaces the bias of the logits.
    pub fn set_output_bias(&mut self, bias: Option<Vec<f32>>) -> Result<()> {
        let words = self.config.target_vocabulary;
        if let Some(bias) = bias.as_ref().filter(|bias| bias.len() != words) {
            let message = format!("a bias of {} numbers for a vocabulary of {words}", bias.len());
            return Err(Error::Input { operation: "model", message });
        }
        self.output_bias = bias.map(Arc::from);
        Ok(())
    }

    /// The same, to be shared.
    pub fn shared_output_bias(&self) -> Option<Arc<[f32]>> {
        self.output_bias.clone()
    }

    /// What is added to the logits, if anything.
    pub fn output_bias(&self) -> Option<&[f32]> {
        self.output_bias.as_deref()
    }

    /// The token mixers of the encoder, one for each layer.
    pub fn token_mixers(&self) -> impl Iterator<Item = &TokenMixer> {
        self.encoder.iter().map(|layer| &layer.mixer)
    }

    /// The decoder's cross-attentions, whose keys and values can be computed once for a source
    /// sentence.
    pub fn cross_attention_layers(&self) -> impl Iterator<Item = &CrossAttentionLayer> {
        self.decoder.iter().map(|layer| &layer.cross_attention)
    }

    /// The projections at the end of the sub-layers, back to the width of the model. An SSRU has
    /// none.
    pub fn output_projections(&self) -> Vec<LinearLayer> {
        let encoder = self.encoder.iter().flat_map(|layer| {
            let mixer = match &layer.mixer {
                TokenMixer::Attention(attention) => attention.out,
                TokenMixer::Recurrent(recurrent) => recurrent.out,
                TokenMixer::Convolution(convolution) => convolution.out,
            };
            [mixer, layer.feed_forward.down]
        });
        let decoder = self.decoder.iter().flat_map(|layer| {
            let mixer = match &layer.mixer {
                PastMixer::Attention(attention) => Some(attention.out),
                PastMixer::Ssru(_) => None,
            };
            mixer.into_iter().chain([layer.cross_attention.out, layer.feed_forward.down])
        });
        encoder.chain(decoder).collect()
    }

    /// Runs the encoder: `[n, d]`.
    pub fn encode<E: Executor>(&self, e: &mut E) -> E::Tensor {
        let mut x = self.embed(e, &self.source);
        for layer in &self.encoder {
            x = layer.mixer.run(e, x, self.config.norm);
            x = layer.feed_forward.run(e, x, self.config.norm);
            x = e.end_layer(x);
        }
        match &self.final_norms {
            Some((norm, _)) => e.norm(x, norm),
            None => x,
        }
    }

    /// Runs the decoder over the encoder's output: `[m, d]`, of which the output matrix makes
    /// logits.
    pub fn decode<E: Executor>(&self, e: &mut E, memory: E::Tensor) -> E::Tensor {
        let mut x = self.embed(e, &self.target);
        for layer in &self.decoder {
            x = layer.mixer.run(e, x, self.config.norm);
            x = layer.cross_attention.run(e, x, memory, self.config.norm);
            x = layer.feed_forward.run(e, x, self.config.norm);
            x = e.end_layer(x);
        }
        let x = match &self.final_norms {
            Some((_, norm)) => e.norm(x, norm),
            None => x,
        };
        match self.config.scale_output {
            true => e.scale(x, self.config.output_scale()),
            false => x,
        }
    }

    fn embed<E: Executor>(&self, e: &mut E, layer: &EmbeddingLayer) -> E::Tensor {
        let x = e.embed(layer);
        let x = match &layer.joined {
            Some(joined) => e.linear(x, joined),
            None => x,
        };
        let x = match &layer.norm {
            Some(norm) => e.norm(x, norm),
            None => x,
        };
        e.end_layer(x)
    }
}

/// A sub-layer with its residual connection and its norm, before or behind.
fn sub_layer<E: Executor>(
    e: &mut E,
    x: E::Tensor,
    (place, norm): (NormPlace, &NormLayer),
    f: impl FnOnce(&mut E, E::Tensor) -> E::Tensor,
) -> E::Tensor {
    match place {
        NormPlace::Post => {
            let branch = f(e, x);
            e.add_norm(x, branch, norm)
        }
        NormPlace::Pre => {
            let normed = e.norm(x, norm);
            let branch = f(e, normed);
            e.add(x, branch)
        }
    }
}

impl SelfAttentionLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let qkv = e.linear(x, &self.qkv);
            let heads = e.self_attention(qkv, self);
            e.linear(heads, &self.out)
        })
    }
}

impl RecurrentLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let states = self.states(e, x);
            e.linear(states, &self.out)
        })
    }

    /// The states of the unit after each token, without the projection of the output.
    pub fn states<E: Executor>(&self, e: &mut E, x: E::Tensor) -> E::Tensor {
        let gates = e.linear(x, &self.input);
        e.recurrent(gates, self)
    }
}

impl SsruLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let candidates = e.linear(x, &self.candidate);
            let forget = e.linear(x, &self.forget);
            e.ssru(candidates, forget, self)
        })
    }
}

impl ConvolutionLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let hidden = self.features(e, x);
            e.linear(hidden, &self.out)
        })
    }

    /// The convolution around each token, without the projection of the output.
    pub fn features<E: Executor>(&self, e: &mut E, x: E::Tensor) -> E::Tensor {
        let around = e.unfold(x, self);
        e.activated(around, &self.kernel)
    }
}

impl CrossAttentionLayer {
    /// The sub-layer with its residual connection and its norm; `memory` is what is looked at.
    pub fn run<E: Executor>(
        &self,
        e: &mut E,
        x: E::Tensor,
        memory: E::Tensor,
        place: NormPlace,
    ) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let q = e.linear(x, &self.q);
            let kv = e.memory(memory, self);
            let heads = e.cross_attention(q, kv, self);
            e.linear(heads, &self.out)
        })
    }
}

impl FeedForwardLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let hidden = match &self.gate {
                Some(gate) => {
                    let gate = e.activated(x, gate);
                    let up = e.linear(x, &self.up);
                    e.multiply(gate, up)
                }
                None => e.activated(x, &self.up),
            };
            e.linear(hidden, &self.down)
        })
    }
}

impl TokenMixer {
    fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        match self {
            TokenMixer::Attention(layer) => layer.run(e, x, place),
            TokenMixer::Recurrent(layer) => layer.run(e, x, place),
            TokenMixer::Convolution(layer) => layer.run(e, x, place),
        }
    }
}

impl PastMixer {
    fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        match self {
            PastMixer::Attention(layer) => layer.run(e, x, place),
            PastMixer::Ssru(layer) => layer.run(e, x, place),
        }
    }
}
