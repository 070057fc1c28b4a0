//! Multi-head scaled dot-product attention (section 3.2), without its projections.

use crate::autograd::{Backward, Forward, Op, Var};
use regard_core::model::{HeadShape, RelativePositions};
use regard_kernels::{
    Attention, Dropout, Mask, Mat, MatMut, Relative, attention_backward, attention_forward,
};
use std::sync::Arc;

/// Self-attention over `qkv [rows, h·(2·d_k + d_v)]`: queries, keys and values of the same tokens,
/// side by side.
#[derive(Debug)]
pub struct SelfAttention {
    /// Queries, keys and values.
    pub qkv: Var,
    /// The heads.
    pub shape: HeadShape,
    /// The factor applied to the scores.
    pub scale: f32,
    /// Which keys a query sees.
    pub mask: Mask,
    /// Where the sentences begin and end.
    pub offsets: Arc<[usize]>,
    /// Dropout of the attention weights.
    pub dropout: Option<Dropout>,
    /// Relative positions.
    pub relative: Option<RelativePositions>,
}

/// Cross-attention of `q [m, h·d_k]` over `kv [n, h·(d_k + d_v)]`: the decoder's queries, the
/// encoder's keys and values.
#[derive(Debug)]
pub struct CrossAttention {
    /// Queries.
    pub q: Var,
    /// Keys and values.
    pub kv: Var,
    /// The heads.
    pub shape: HeadShape,
    /// The factor applied to the scores.
    pub scale: f32,
    /// Where the sentences of the queries begin and end.
    pub queries: Arc<[usize]>,
    /// Where the sentences of the keys begin and end.
    pub keys: Arc<[usize]>,
    /// Dropout of the attention weights.
    pub dropout: Option<Dropout>,
}

impl SelfAttention {
    /// The table of relative position biases, with a column for each distance.
    fn bias(&self, weights: &[f32]) -> Vec<f32> {
        match self.relative {
            Some(RelativePositions::Bias { table, buckets }) => {
                buckets.expand(&weights[table.range()], self.shape.heads)
            }
            _ => Vec::new(),
        }
    }

    /// The settings of the kernel; `bias` comes from [`bias`](Self::bias).
    fn kernel<'a>(&'a self, weights: &'a [f32], bias: &'a [f32]) -> Attention<'a> {
        Attention {
            heads: self.shape.heads,
            d_k: self.shape.d_k,
            d_v: self.shape.d_v,
            scale: self.scale,
            mask: self.mask,
            queries: &self.offsets,
            keys: &self.offsets,
            dropout: self.dropout,
            relative: self.relative.map(|relative| match relative {
                RelativePositions::Vectors { table, reach } => {
                    Relative::Vectors { table: &weights[table.range()], reach }
                }
                RelativePositions::Bias { buckets, .. } => {
                    Relative::Bias { table: bias, reach: buckets.reach }
                }
            }),
        }
    }

    fn split<'a>(&self, qkv: Mat<'a>) -> (Mat<'a>, Mat<'a>, Mat<'a>) {
        let (k, v) = (self.shape.keys(), self.shape.values());
        (qkv.columns(0, k), qkv.columns(k, k), qkv.columns(2 * k, v))
    }
}

impl Op for SelfAttention {
    fn name(&self) -> &'static str {
        "self_attention"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        (cx.value(self.qkv).rows(), self.shape.values())
    }

    /// The logarithm of each row's sum, for each head.
    fn saves(&self, cx: &Forward<'_>) -> usize {
        cx.value(self.qkv).rows() * self.shape.heads
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let qkv = cx.value(self.qkv);
        let to = MatMut::new(y, qkv.rows(), self.shape.values());
        let bias = self.bias(cx.weights.flat);
        let shape = self.kernel(cx.weights.flat, &bias);
        attention_forward(cx.isa, &shape, self.split(qkv), to, saved, None, &mut cx.scratch.attention);
    }

    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]) {
        let qkv = cx.value(self.qkv);
        let mut grad = cx.take_zeroed(self.qkv);
        let (dq, rest) = MatMut::new(&mut grad, qkv.rows(), qkv.cols()).split_columns(self.shape.keys());
        let (dk, dv) = rest.split_columns(self.shape.keys());
        let (rows, cols) = (qkv.rows(), self.shape.values());
        let outputs = (Mat::new(y, rows, cols), Mat::new(dy, rows, cols), saved);
        let bias = self.bias(cx.weights.flat);
        let shape = self.kernel(cx.weights.flat, &bias);
        let mut d_bias = vec![0.0; bias.len()];
        let d_table = match self.relative {
            Some(RelativePositions::Vectors { table, .. }) => Some(&mut cx.gradients[table.range()]),
            Some(RelativePositions::Bias { .. }) => Some(&mut d_bias[..]),
            None => None,
        };
        let scratch = &mut cx.scratch.attention;
        attention_backward(cx.isa, &shape, self.split(qkv), outputs, (dq, dk, dv), d_table, scratch);
        if let Some(RelativePositions::Bias { table, buckets }) = self.relative {
            buckets.add_gradients(&d_bias, self.shape.heads, cx.gradient(table));
        }
        cx.put(self.qkv, grad);
    }
}

impl CrossAttention {
    fn kernel(&self) -> Attention<'_> {
        Attention {
            heads: self.shape.heads,
            d_k: self.shape.d_k,
            d_v: self.shape.d_v,
            scale: self.scale,
            mask: Mask::NONE,
            queries: &self.queries,
            keys: &self.keys,
            dropout: self.dropout,
            relative: None,
        }
    }
}

impl Op for CrossAttention {
    fn name(&self) -> &'static str {
        "cross_attention"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        (cx.value(self.q).rows(), self.shape.values())
    }

    /// The logarithm of each row's sum, for each head.
    fn saves(&self, cx: &Forward<'_>) -> usize {
        cx.value(self.q).rows() * self.shape.heads
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let (q, kv) = (cx.value(self.q), cx.value(self.kv));
        let (k, v) = (kv.columns(0, self.shape.keys()), kv.columns(self.shape.keys(), self.shape.values()));
        let to = MatMut::new(y, q.rows(), self.shape.values());
        attention_forward(cx.isa, &self.kernel(), (q, k, v), to, saved, None, &mut cx.scratch.attention);
    }

    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]) {
        let (q, kv) = (cx.value(self.q), cx.value(self.kv));
        let (k, v) = (kv.columns(0, self.shape.keys()), kv.columns(self.shape.keys(), self.shape.values()));
        let (mut grad_q, mut grad_kv) = (cx.take_zeroed(self.q), cx.take_zeroed(self.kv));
        let dq = MatMut::new(&mut grad_q, q.rows(), q.cols());
        let (dk, dv) = MatMut::new(&mut grad_kv, kv.rows(), kv.cols()).split_columns(self.shape.keys());
        let (rows, cols) = (q.rows(), self.shape.values());
        let outputs = (Mat::new(y, rows, cols), Mat::new(dy, rows, cols), saved);
        let scratch = &mut cx.scratch.attention;
        attention_backward(cx.isa, &self.kernel(), (q, k, v), outputs, (dq, dk, dv), None, scratch);
        cx.put(self.q, grad_q);
        cx.put(self.kv, grad_kv);
    }
}
