//! The Transformer: its configuration, the layout of its weights, and the wiring of its layers.
//!
//! [`Transformer`] holds no weights. It defines the parameters and the order of the operations; an
//! [`Executor`] runs them: the training tape, or kernels with caches in decoding. So there is one
//! definition of encoder and decoder.

mod attention_map;
mod builder;
mod config;
mod encoder_kind;
mod executor;
mod heads;
mod layers;
mod parameters;
pub mod positions;
mod tied_embeddings;
mod transformer;

pub use attention_map::{AttentionKind, AttentionMap, sharpest};
pub use builder::LayerBuilder;
pub use config::{Combine, DecoderKind, Frequencies, ModelConfig, NormKind, NormPlace, Positions, Preset};
pub use encoder_kind::{Direction, EncoderKind};
pub use executor::Executor;
pub use heads::{HeadHint, HeadPattern, describe_head, remove_head};
pub use layers::{
    ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, FeedForwardLayer, HeadShape, LinearLayer,
    NormLayer, RecurrentCell, RecurrentLayer, RelativePositions, SelfAttentionLayer, Side, SsruLayer,
};
pub use parameters::{Initial, Location, Param, Parameter, Parameters, Parts, Role};
pub use regard_kernels::Activation;
pub use tied_embeddings::Tying;
pub use transformer::{TokenMixer, Transformer};
