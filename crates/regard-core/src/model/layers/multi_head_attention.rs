//! Multi-head attention (section 3.2.2): the projections of queries, keys, values and outputs. The
//! executor computes the scaled dot products between them.

use super::residual_norm::sub_layer;
use super::{LinearLayer, NormLayer};
use crate::model::positions::Buckets;
use crate::model::{Executor, NormPlace, Param};
use regard_kernels::Mask;

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
    /// The total width of all queries, and of all keys.
    pub fn keys(self) -> usize {
        self.heads * self.d_k
    }

    /// The total width of all values.
    pub fn values(self) -> usize {
        self.heads * self.d_v
    }
}

/// Learned relative positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelativePositions {
    /// Vectors that are added to the keys.
    Vectors {
        /// `[2 · reach + 1, d_k]`, shared by the heads.
        table: Param,
        /// The longest distance with a vector of its own.
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

/// Self-attention with its projections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfAttentionLayer {
    /// The index in the stack.
    pub layer: usize,
    /// Queries, keys and values side by side.
    pub qkv: LinearLayer,
    /// The projection back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
    /// Which keys a query sees.
    pub mask: Mask,
    /// Relative positions.
    pub relative: Option<RelativePositions>,
}

/// Cross-attention with its projections: queries of the decoder, keys and values of the encoder's
/// output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossAttentionLayer {
    /// The index in the stack.
    pub layer: usize,
    /// Queries.
    pub q: LinearLayer,
    /// Keys and values side by side.
    pub kv: LinearLayer,
    /// The projection back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
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

impl CrossAttentionLayer {
    /// The sub-layer with its residual connection and its norm; `memory` is what it attends to.
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
