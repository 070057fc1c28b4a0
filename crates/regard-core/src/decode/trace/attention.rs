//! Attention in plain loops that keep everything: scores, weights, the outputs of all heads.

use super::{Matrix, TracedPass, side_of};
use crate::decode::executor::Input;
use crate::decode::workspace::Tensor;
use crate::model::{AttentionKind, CrossAttentionLayer, HeadShape, RelativePositions, SelfAttentionLayer};
use regard_kernels::Mask;
use std::ops::Range;

/// One attention with all its heads: `r` tokens attend to `c` tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttentionTrace {
    /// The number of heads.
    pub heads: usize,
    /// Queries, `[r, h·d_k]`.
    pub queries: Matrix,
    /// Keys, `[c, h·d_k]`.
    pub keys: Matrix,
    /// Values, `[c, h·d_v]`.
    pub values: Matrix,
    /// The factor applied to the scores: 1/√d_k, or 1 if the model does not scale or scaling is
    /// switched off.
    pub scale: f32,
    /// q·k before scaling, including relative positions, `[h·r, c]`, also where the mask hides
    /// them.
    pub scores: Matrix,
    /// The tokens that each token may attend to.
    pub seen: Vec<Range<usize>>,
    /// The weights, `[h·r, c]`: 0 where masked.
    pub weights: Matrix,
    /// The weighted sums of the values, all heads side by side: `[r, h·d_v]`. Zero for a head that
    /// is switched off.
    pub sums: Matrix,
    /// Multiplied by W_O: `[r, d]`.
    pub output: Matrix,
    /// After the residual connection and the norm.
    pub result: Matrix,
}

impl AttentionTrace {
    /// The columns of one head in a matrix of all heads.
    ///
    /// # Panics
    /// If the head does not exist.
    pub fn of_head(&self, all: &Matrix, head: usize) -> Matrix {
        let columns = all.columns / self.heads;
        let data = all.rows().flat_map(|row| &row[head * columns..][..columns]).copied().collect();
        Matrix { columns, data }
    }

    /// The rows of one head in `scores` or `weights`.
    ///
    /// # Panics
    /// If the head does not exist.
    pub fn rows_of_head(&self, all: &Matrix, head: usize) -> Matrix {
        let size = self.seen.len() * all.columns;
        Matrix { columns: all.columns, data: all.data[head * size..][..size].to_vec() }
    }
}

/// What determines the attention besides queries and keys.
struct Rules {
    kind: AttentionKind,
    layer: usize,
    mask: Mask,
    relative: Option<RelativePositions>,
}

impl TracedPass<'_> {
    /// Self-attention of the tokens of a side.
    pub(super) fn own_attention(&mut self, qkv: Tensor, layer: &SelfAttentionLayer) -> Tensor {
        let kind = match self.pass.input {
            Input::Source(_) => AttentionKind::Encoder,
            Input::Step(..) => AttentionKind::Decoder,
        };
        let shape = self.pass.engine.model().config().head_shape(side_of(kind));
        let all = self.pass.workspace.mat(qkv);
        let part = |from, columns| Matrix::of(all.columns(from, columns));
        let (keys, values) = (shape.keys(), shape.values());
        let qkv = [part(0, keys), part(keys, keys), part(2 * keys, values)];
        let rules = Rules { kind, layer: layer.layer, mask: layer.mask, relative: layer.relative };
        self.attend(qkv, shape, &rules)
    }

    /// Cross-attention of target tokens over the source, whose keys and values are in the cache.
    pub(super) fn attention_over_source(&mut self, q: Tensor, layer: &CrossAttentionLayer) -> Tensor {
        let kind = AttentionKind::Cross;
        let shape = self.pass.engine.model().config().head_shape(side_of(kind));
        let q = self.matrix(q);
        let Input::Step(_, cache) = &mut self.pass.input else {
            unreachable!("an encoder has no cross-attention")
        };
        let kv = cache.source(layer.layer).mat();
        let part = |from, columns| Matrix::of(kv.columns(from, columns));
        let qkv = [q, part(0, shape.keys()), part(shape.keys(), shape.values())];
        let rules = Rules { kind, layer: layer.layer, mask: Mask::NONE, relative: None };
        self.attend(qkv, shape, &rules)
    }

    /// softmax(q·kᵀ/√d_k)·v, head by head.
    fn attend(&mut self, qkv: [Matrix; 3], shape: HeadShape, rules: &Rules) -> Tensor {
        let HeadShape { heads, d_k, d_v } = shape;
        let [queries, keys, values] = qkv;
        let (r, c) = (queries.rows().len(), keys.rows().len());
        let mask = if self.ablation.mask { Mask::NONE } else { rules.mask };
        let seen: Vec<Range<usize>> = (0..r).map(|i| mask.range(i, r, c)).collect();
        let config = self.pass.engine.model().config();
        let scale = if self.ablation.scale { 1.0 } else { config.score_scale(side_of(rules.kind)) };
        let (mut vectors, mut bias) = (None, None);
        match rules.relative.filter(|_| !self.ablation.positions) {
            Some(RelativePositions::Vectors { table, reach }) => {
                vectors = Some((self.pass.engine.vector(table), reach));
            }
            Some(RelativePositions::Bias { table, buckets }) => {
                bias = Some((buckets.expand(self.pass.engine.vector(table), heads), buckets.reach));
            }
            None => {}
        }
        let row = |i: usize, j: usize, reach: usize| (j + reach).saturating_sub(i).min(2 * reach);
        let empty = || Matrix { columns: c, data: Vec::with_capacity(heads * r * c) };
        let (mut scores, mut weights) = (empty(), empty());
        let mut sums = Matrix { columns: heads * d_v, data: vec![0.0; r * heads * d_v] };
        for head in 0..heads {
            let off = self.ablation.heads.contains(&(rules.kind, rules.layer, head));
            for (i, seen) in seen.iter().enumerate() {
                let q = &queries.row(i)[head * d_k..][..d_k];
                let score = |j: usize| {
                    let by_content = dot(q, &keys.row(j)[head * d_k..][..d_k]);
                    let by_distance =
                        vectors.map_or(0.0, |(table, reach)| dot(q, &table[row(i, j, reach) * d_k..][..d_k]));
                    // The bias is added after scaling, which has not happened yet.
                    let bias = bias.as_ref().map_or(0.0, |(table, reach)| {
                        table[head * (2 * reach + 1) + row(i, j, *reach)] / scale
                    });
                    by_content + by_distance + bias
                };
                let row: Vec<f32> = (0..c).map(score).collect();
                let row_weights = softmax(&row, scale, seen.clone());
                let to = &mut sums.data[(i * heads + head) * d_v..][..d_v];
                for (j, w) in row_weights.iter().enumerate().filter(|_| !off) {
                    let v = &values.row(j)[head * d_v..][..d_v];
                    to.iter_mut().zip(v).for_each(|(sum, v)| *sum += w * v);
                }
                scores.data.extend(row);
                weights.data.extend(row_weights);
            }
        }
        let y = self.tensor(&sums);
        if self.recorded() {
            let trace = AttentionTrace {
                heads,
                queries,
                keys,
                values,
                scale,
                scores,
                seen,
                weights,
                sums,
                ..AttentionTrace::default()
            };
            match rules.kind {
                AttentionKind::Cross => self.trace.layer.cross = Some(trace),
                _ => self.trace.layer.attention = Some(trace),
            }
        }
        y
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The softmax over the visible scores, 0 for the others.
fn softmax(scores: &[f32], scale: f32, seen: Range<usize>) -> Vec<f32> {
    let inside = &scores[seen.clone()];
    let top = inside.iter().fold(f32::NEG_INFINITY, |top, x| top.max(x * scale));
    let powers: Vec<f32> = inside.iter().map(|x| (x * scale - top).exp()).collect();
    let sum: f32 = powers.iter().sum();
    let mut weights = vec![0.0; scores.len()];
    weights[seen].iter_mut().zip(powers).for_each(|(w, power)| *w = power / sum);
    weights
}
