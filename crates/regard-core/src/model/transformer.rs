//! The wiring of encoder and decoder, defined once for all executors.

use super::builder::LayerBuilder;
use super::config::{ModelConfig, NormPlace};
use super::executor::Executor;
use super::layers::{
    ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, FeedForwardLayer, LinearLayer, NormLayer,
    RecurrentLayer, SelfAttentionLayer, Side, SsruLayer,
};
use super::parameters::{Param, Parameters, Role};
use super::tied_embeddings::vocabulary_matrices;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// How source tokens exchange information: the only difference between encoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMixer {
    /// Every token attends to others.
    Attention(SelfAttentionLayer),
    /// A recurrent unit reads the tokens in order.
    Recurrent(RecurrentLayer),
    /// A convolution over adjacent tokens.
    Convolution(ConvolutionLayer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EncoderLayer {
    mixer: TokenMixer,
    feed_forward: FeedForwardLayer,
}

/// How a target token sees those before it.
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

/// The Transformer's layers and the layout of their weights.
#[derive(Clone, Debug)]
pub struct Transformer {
    config: ModelConfig,
    parameters: Parameters,
    source: EmbeddingLayer,
    target: EmbeddingLayer,
    encoder: Vec<EncoderLayer>,
    decoder: Vec<DecoderLayer>,
    /// The final norms of encoder and decoder, in a pre-norm model.
    final_norms: Option<(NormLayer, NormLayer)>,
    output: Param,
    /// The bias of the logits; not trained.
    output_bias: Option<Arc<[f32]>>,
}

impl Transformer {
    /// The model of a configuration, if it is valid.
    pub fn new(config: ModelConfig) -> Result<Self> {
        config.validate()?;
        let mut b = LayerBuilder::new(&config);
        let (source_table, target_table, output) = vocabulary_matrices(&mut b, &config);
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

    /// Its configuration.
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

    /// The matrices that training multiplies by, each at the beginning of its parameter: those of
    /// the linear layers, and the output matrix without the padding token, which is never
    /// generated.
    pub fn matrices(&self) -> impl Iterator<Item = (Param, [usize; 2])> + '_ {
        let output = [self.config.output_words(), self.config.d_model];
        self.linear_matrices().chain([(self.output, output)])
    }

    /// The matrices of the linear layers.
    pub fn linear_matrices(&self) -> impl Iterator<Item = (Param, [usize; 2])> + '_ {
        self.parameters.iter().filter(|p| p.role == Role::Matrix).map(|p| (p.param, p.shape))
    }

    /// The mark after which the backward pass on a tape no longer changes the gradients in this
    /// range of the weights. There is a mark after each embedding and each layer. Parameters
    /// outside the layers are only final at the end, and have none.
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

    /// Adds a bias of the logits, with one value per word of the vocabulary. Published models have
    /// one; training does not change it.
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

    /// The same, shared.
    pub fn shared_output_bias(&self) -> Option<Arc<[f32]>> {
        self.output_bias.clone()
    }

    /// The bias of the logits, if any.
    pub fn output_bias(&self) -> Option<&[f32]> {
        self.output_bias.as_deref()
    }

    /// The token mixers of the encoder, one for each layer.
    pub fn token_mixers(&self) -> impl Iterator<Item = &TokenMixer> {
        self.encoder.iter().map(|layer| &layer.mixer)
    }

    /// The decoder's cross-attentions, whose keys and values can be computed once per source
    /// sentence.
    pub fn cross_attention_layers(&self) -> impl Iterator<Item = &CrossAttentionLayer> {
        self.decoder.iter().map(|layer| &layer.cross_attention)
    }

    /// The output projections of the sub-layers, back to the width of the model. An SSRU has none.
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
        let mut x = self.source.run(e);
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

    /// Runs the decoder over the encoder's output: `[m, d]`, to be multiplied by the output matrix
    /// for logits.
    pub fn decode<E: Executor>(&self, e: &mut E, memory: E::Tensor) -> E::Tensor {
        let mut x = self.target.run(e);
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
