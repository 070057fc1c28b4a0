//! Convolutions over adjacent tokens.

use super::residual_norm::sub_layer;
use super::{LinearLayer, NormLayer};
use crate::model::{Executor, NormPlace};

/// A convolution over adjacent tokens, with its activation and projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvolutionLayer {
    /// The kernel width in tokens, centred on the token itself.
    pub width: usize,
    /// The distance between these tokens.
    pub dilation: usize,
    /// Applied to the concatenated tokens.
    pub kernel: LinearLayer,
    /// The projection back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

impl ConvolutionLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let hidden = self.features(e, x);
            e.linear(hidden, &self.out)
        })
    }

    /// The convolution around each token, without the output projection.
    pub fn features<E: Executor>(&self, e: &mut E, x: E::Tensor) -> E::Tensor {
        let around = e.unfold(x, self);
        e.activated(around, &self.kernel)
    }
}
