//! Attention in decoding: in the encoder over whole sentences, in the decoder over rows of the
//! cache.

use super::Engine;
use super::executor::{DistanceTables, Input, Pass, Step};
use super::ragged_vec::RaggedVec;
use super::workspace::Tensor;
use crate::batch::Packed;
use crate::model::{CrossAttentionLayer, HeadShape, RelativePositions, SelfAttentionLayer, Side};
use regard_kernels::{
    Attention, Isa, Mat, MatMut, Paged, Relative, Team, attention_forward, paged_attention,
};

impl Pass<'_> {
    /// Self-attention of whole source sentences.
    pub(super) fn encoder_attention(
        &mut self,
        qkv: Tensor,
        layer: &SelfAttentionLayer,
        source: &Packed,
    ) -> Tensor {
        let Pass { engine, workspace, distances, weights: recorded, .. } = self;
        let HeadShape { heads, d_k, d_v } = engine.model().config().head_shape(Side::Source);
        let (keys, values) = (heads * d_k, heads * d_v);
        let rows = workspace.mat(qkv).rows();
        let shape = Attention {
            heads,
            d_k,
            d_v,
            scale: engine.model().config().score_scale(Side::Source),
            mask: layer.mask,
            queries: source.offsets(),
            keys: source.offsets(),
            dropout: None,
            relative: relative(engine, distances, layer, heads),
        };
        workspace.make(rows, values, |w, y| {
            let (mut scratch, mut sums) = (std::mem::take(&mut w.attention), std::mem::take(&mut w.scratch));
            sums.resize(rows * heads, 0.0);
            let x = w.mat(qkv);
            let qkv = (x.columns(0, keys), x.columns(keys, keys), x.columns(2 * keys, values));
            let to = MatMut::new(y, rows, values);
            // Weights are only recorded for one sentence at a time.
            let weights = record(&mut recorded.own, heads * rows * rows);
            attention_forward(engine.isa(), &shape, qkv, to, &mut sums, weights, &mut scratch);
            (w.attention, w.scratch) = (scratch, sums);
        })
    }

    /// Self-attention of the new tokens over their past: stores their keys and values in the cache
    /// first.
    pub(super) fn decoder_attention(
        &mut self,
        qkv: Tensor,
        layer: &SelfAttentionLayer,
        step: &Step,
    ) -> Tensor {
        let Pass {
            engine, team, workspace, distances, weights: recorded, input: Input::Step(_, cache), ..
        } = self
        else {
            unreachable!("a step has a cache")
        };
        let config = engine.model().config();
        let heads = config.head_shape(Side::Target);
        let (keys, values) = (heads.keys(), heads.values());
        let cache = cache.steps(layer.layer);
        let new = workspace.data(qkv).chunks_exact(2 * keys + values).map(|row| &row[keys..]);
        cache.write(&step.rows, keys + values, new);
        if let Some(reach) = layer.mask.window {
            workspace.windowed.clear();
            let inside = |past: &[u32]| past.len().saturating_sub(reach + 1)..;
            step.past.iter().for_each(|past| workspace.windowed.push(past[inside(past)].iter().copied()));
        }
        let relative = relative(engine, distances, layer, heads.heads);
        let rows = step.rows.len();
        workspace.make(rows, values, |w, y| {
            let mut scratch = std::mem::take(&mut w.scores);
            let past = if layer.mask.window.is_some() { &w.windowed } else { &step.past };
            let q = w.mat(qkv).columns(0, keys);
            let to = MatMut::new(y, rows, values);
            let weights = record(&mut recorded.own, heads.heads * past.items().len());
            let shape = paged(heads, config.score_scale(Side::Target), past, relative);
            attend(engine.isa(), team, &shape, (q, cache.mat()), to, weights, &mut scratch);
            w.scores = scratch;
        })
    }

    /// Cross-attention of the new tokens over the source, whose keys and values are in the cache.
    pub(super) fn source_attention(&mut self, q: Tensor, layer: &CrossAttentionLayer) -> Tensor {
        let Pass { engine, team, workspace, weights: recorded, input: Input::Step(step, cache), .. } = self
        else {
            unreachable!("an encoder has no cross-attention")
        };
        let config = engine.model().config();
        let heads = config.head_shape(Side::Target);
        let rows = step.rows.len();
        workspace.make(rows, heads.values(), |w, y| {
            let mut scratch = std::mem::take(&mut w.scores);
            let to = MatMut::new(y, rows, heads.values());
            let weights = record(&mut recorded.cross, heads.heads * step.source.items().len());
            let shape = paged(heads, config.score_scale(Side::Target), &step.source, None);
            let kv = cache.source(layer.layer).mat();
            attend(engine.isa(), team, &shape, (w.mat(q), kv), to, weights, &mut scratch);
            w.scores = scratch;
        })
    }
}

/// The minimum number of elements of keys and values that are worth another thread.
const ELEMENTS_PER_THREAD: usize = 1 << 18;

/// Attention of single queries `[r, h·d_k]` over cache rows, on the threads of a team: each takes
/// some of the queries, and scratch memory of its own. With `weights`, one thread takes all.
fn attend(
    isa: Isa,
    team: &mut Team,
    shape: &Paged<'_>,
    (q, kv): (Mat<'_>, Mat<'_>),
    to: MatMut<'_>,
    weights: Option<&mut [f32]>,
    scratch: &mut Vec<Vec<f32>>,
) {
    let threads = if weights.is_some() {
        1
    } else {
        team.size().min(1 + shape.rows.len() * kv.cols() / ELEMENTS_PER_THREAD)
    };
    scratch.resize_with(threads.max(scratch.len()), Vec::new);
    let share = q.rows().div_ceil(threads).max(1);
    if share >= q.rows() {
        return paged_attention(isa, shape, q, kv, to, weights, &mut scratch[0]);
    }
    let mut rest = Some(to);
    let parts = (0..q.rows()).step_by(share).zip(scratch).map(|(start, scratch)| {
        let rows = share.min(q.rows() - start);
        let to = rest.take().map(|to| {
            let (part, others) = to.split_rows(rows);
            rest = Some(others);
            part
        });
        (start, rows, to, scratch)
    });
    team.each(parts, |(start, rows, to, scratch)| {
        if let Some(to) = to {
            let shape = Paged { offsets: &shape.offsets[start..=start + rows], ..*shape };
            paged_attention(isa, &shape, q.rows_from(start, rows), kv, to, None, scratch);
        }
    });
}

/// A buffer for the weights of one more layer, if they are recorded.
fn record(layers: &mut Option<Vec<Vec<f32>>>, len: usize) -> Option<&mut [f32]> {
    let layers = layers.as_mut()?;
    layers.push(vec![0.0; len]);
    layers.last_mut().map(Vec::as_mut_slice)
}

/// The relative positions of an attention.
fn relative<'a>(
    engine: &'a Engine,
    tables: &'a mut DistanceTables,
    layer: &SelfAttentionLayer,
    heads: usize,
) -> Option<Relative<'a>> {
    Some(match layer.relative? {
        RelativePositions::Vectors { table, reach } => {
            Relative::Vectors { table: engine.vector(table), reach }
        }
        RelativePositions::Bias { table, buckets } => {
            let expanded = || buckets.expand(engine.vector(table), heads);
            let table = tables.entry(table.offset).or_insert_with(expanded);
            Relative::Bias { table, reach: buckets.reach }
        }
    })
}

fn paged<'a>(
    shape: HeadShape,
    scale: f32,
    lists: &'a RaggedVec<u32>,
    relative: Option<Relative<'a>>,
) -> Paged<'a> {
    let HeadShape { heads, d_k, d_v } = shape;
    let (offsets, rows) = (lists.offsets(), lists.items());
    Paged { heads, d_k, d_v, scale, offsets, rows, relative }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_team_change_no_bit_of_attention() {
        let (heads, d, n) = (2, 16, 4_096);
        assert!(n * 2 * heads * d >= ELEMENTS_PER_THREAD, "one query is enough for another thread");
        let numbers = |count: usize| -> Vec<f32> {
            (0..count).map(|i| ((i * 7_919 % 1_009) as f32 - 500.0) / 500.0).collect()
        };
        let (q, kv) = (numbers(17 * heads * d), numbers(n * 2 * heads * d));
        for queries in [1, 2, 5, 16, 17] {
            let offsets: Vec<usize> = (0..=queries).map(|i| i * n).collect();
            let rows: Vec<u32> = (0..queries).flat_map(|_| 0..n as u32).collect();
            let shape =
                Paged { heads, d_k: d, d_v: d, scale: 0.25, offsets: &offsets, rows: &rows, relative: None };
            let of = |threads| {
                let mut out = vec![f32::NAN; queries * heads * d];
                let q = Mat::new(&q[..queries * heads * d], queries, heads * d);
                let to = MatMut::new(&mut out, queries, heads * d);
                let kv = Mat::new(&kv, n, 2 * heads * d);
                attend(Isa::best(), &mut Team::new(threads), &shape, (q, kv), to, None, &mut Vec::new());
                out
            };
            let alone = of(1);
            assert!(alone.iter().all(|x| x.is_finite()));
            for threads in [2, 3, 5, 16] {
                assert!(of(threads) == alone, "{queries} queries on {threads} threads");
            }
        }
    }
}
