//! The embeddings: tokens and positions to vectors.

use super::{LinearLayer, NormLayer, Side};
use crate::model::{Executor, Param};

/// The embedding of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddingLayer {
    /// The side whose tokens it embeds.
    pub side: Side,
    /// `[v, d]`
    pub table: Param,
    /// Learned positions.
    pub positions: Option<Param>,
    /// The projection from concatenated token and position vectors back to the width of the model.
    pub joined: Option<LinearLayer>,
    /// The norm after it, if any.
    pub norm: Option<NormLayer>,
}

impl EmbeddingLayer {
    /// The vectors of the tokens, `[n, d]`.
    pub(in crate::model) fn run<E: Executor>(&self, e: &mut E) -> E::Tensor {
        let x = e.embed(self);
        let x = match &self.joined {
            Some(joined) => e.linear(x, joined),
            None => x,
        };
        let x = match &self.norm {
            Some(norm) => e.norm(x, norm),
            None => x,
        };
        e.end_layer(x)
    }
}
