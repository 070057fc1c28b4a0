//! The layers: where their weights are, and what each computes on any executor.

mod convolution;
mod embedding;
mod feed_forward;
mod linear;
mod multi_head_attention;
mod recurrent;
mod residual_norm;

pub use convolution::ConvolutionLayer;
pub use embedding::EmbeddingLayer;
pub use feed_forward::FeedForwardLayer;
pub use linear::LinearLayer;
pub use multi_head_attention::{CrossAttentionLayer, HeadShape, RelativePositions, SelfAttentionLayer};
pub use recurrent::{RecurrentCell, RecurrentLayer, SsruLayer};
pub use residual_norm::NormLayer;

/// The two sides of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The input of the encoder.
    Source,
    /// The input of the decoder.
    Target,
}
