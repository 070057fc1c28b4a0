//! The operations from which the layers are built.

use super::layers::{
    ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, LinearLayer, NormLayer, RecurrentLayer,
    SelfAttentionLayer, SsruLayer,
};

/// Runs the layers: on the training tape, or with caches in decoding.
///
/// The executor applies dropout, because it knows whether this is training.
pub trait Executor {
    /// A handle to the vectors of some tokens.
    type Tensor: Copy;

    /// Token vectors with their positions.
    fn embed(&mut self, layer: &EmbeddingLayer) -> Self::Tensor;
    /// `x·Wᵀ + b`
    fn linear(&mut self, x: Self::Tensor, layer: &LinearLayer) -> Self::Tensor;
    /// `activation(x·Wᵀ + b)`
    fn activated(&mut self, x: Self::Tensor, layer: &LinearLayer) -> Self::Tensor;
    /// Self-attention of the tokens of one side; `qkv` side by side.
    fn self_attention(&mut self, qkv: Self::Tensor, layer: &SelfAttentionLayer) -> Self::Tensor;
    /// The states of a recurrent layer, given the input projections of its gates.
    fn recurrent(&mut self, gates: Self::Tensor, layer: &RecurrentLayer) -> Self::Tensor;
    /// The outputs of an SSRU, given the projections of the tokens: candidates, and forget gates
    /// before the sigmoid.
    fn ssru(&mut self, candidates: Self::Tensor, forget: Self::Tensor, layer: &SsruLayer) -> Self::Tensor;
    /// The tokens around each token of the same sentence, concatenated, with zeros beyond its ends.
    fn unfold(&mut self, x: Self::Tensor, layer: &ConvolutionLayer) -> Self::Tensor;
    /// The keys and values of the encoder's output for one decoder layer, which may already be in a
    /// cache.
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
    /// `gate ∘ x`, elementwise, for gated feed-forward layers.
    fn multiply(&mut self, gate: Self::Tensor, x: Self::Tensor) -> Self::Tensor;
    /// `factor · x`
    fn scale(&mut self, x: Self::Tensor, factor: f32) -> Self::Tensor;
    /// Ends an embedding or a layer: of all values of this pass, only `x` is still needed.
    fn end_layer(&mut self, x: Self::Tensor) -> Self::Tensor {
        x
    }
}
