//! The Transformer: its configuration, where its weights lie, and the wiring of its layers.
//!
//! [`Transformer`] holds no numbers. It says which parameters there are and in which order the operations come; an
//! [`Executor`] carries them out: the training tape here, cached kernels in decoding. So there is one definition of
//! encoder and decoder.

mod builder;
mod config;
mod heads;
mod layers;
mod parameters;
pub mod positions;
mod taped;

pub use config::{Combine, Direction, EncoderKind, ModelConfig, NormPlace, Positions, Preset, Tying};
pub use heads::{HeadHint, HeadPattern, describe_head, remove_head};
pub use layers::{
    ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, NormLayer, RecurrentLayer,
    SelfAttentionLayer, Side, Transformer,
};
pub use parameters::{Initial, Parameter, Parameters, Parts};
pub use regard_kernels::Activation;
pub use taped::{
    AttentionKind, AttentionMap, Dropouts, LayerOutputs, LossSettings, Taped, attention_maps, layer_outputs,
    loss, sharpest, token_losses,
};
