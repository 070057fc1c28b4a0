//! Small models for tasks other than translation, built from the layers of the Transformer and
//! trained on all cores.

mod fit;

pub(crate) use fit::{Fitted, Recipe, answers, fit};

use regard_core::batch::Packed;
use regard_core::model::{
    CrossAttentionLayer, FeedForwardLayer, HeadShape, LayerBuilder, ModelConfig, NormPlace, Parameters,
    SelfAttentionLayer, Side,
};
use regard_kernels::{Attention, Mask, MatMut, Scratch, attention_forward};
use regard_train::Taped;
use regard_train::autograd::Var;

/// A model whose target tokens attend to its source tokens, with a task-specific output.
pub(crate) trait Net: Sync {
    /// An input of the task.
    type Example: Send + Sync;
    /// An output of the task.
    type Answer: Send;

    /// The configuration of its layers.
    fn config(&self) -> &ModelConfig;

    /// Its parameters.
    fn parameters(&self) -> &Parameters;

    /// The source and target tokens.
    fn tokens(&self, examples: &[Self::Example]) -> (Packed, Packed);

    /// Records the forward pass over some examples, and returns the loss of each answer. A loss
    /// that computes its own gradient computes that of `scale` times the sum.
    fn loss(&self, e: &mut Taped<'_>, examples: &[Self::Example], scale: f32) -> Var;

    /// The answers for some examples.
    fn answer(&self, e: &mut Taped<'_>, examples: &[Self::Example]) -> Vec<Self::Answer>;
}

/// A configuration with model width `d` and without dropout.
pub(crate) fn config(d: usize, heads: usize) -> ModelConfig {
    ModelConfig { d_model: d, heads, d_ff: 2 * d, dropout: 0.0, ..ModelConfig::default() }
}

/// A layer with self-attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfBlock {
    attention: SelfAttentionLayer,
    feed_forward: FeedForwardLayer,
}

impl SelfBlock {
    /// With a `window`, tokens attend at most that far to each side.
    pub(crate) fn new(b: &mut LayerBuilder<'_>, name: &str, layer: usize, window: Option<usize>) -> Self {
        let name = format!("{name}.{layer}");
        SelfBlock {
            attention: b.self_attention(&name, layer, Mask { causal: false, window }),
            feed_forward: b.feed_forward(&format!("{name}.ffn")),
        }
    }

    pub(crate) fn run(&self, e: &mut Taped<'_>, x: Var) -> Var {
        let x = self.attention.run(e, x, NormPlace::Post);
        self.feed_forward.run(e, x, NormPlace::Post)
    }
}

/// A layer with cross-attention to the source tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossBlock {
    attention: CrossAttentionLayer,
    feed_forward: FeedForwardLayer,
}

impl CrossBlock {
    pub(crate) fn new(b: &mut LayerBuilder<'_>, name: &str, layer: usize) -> Self {
        let name = format!("{name}.{layer}");
        CrossBlock {
            attention: b.cross_attention(&name, layer),
            feed_forward: b.feed_forward(&format!("{name}.ffn")),
        }
    }

    pub(crate) fn run(&self, e: &mut Taped<'_>, x: Var, memory: Var) -> Var {
        let x = self.attention.run(e, x, memory, NormPlace::Post);
        self.feed_forward.run(e, x, NormPlace::Post)
    }
}

/// The weights of the last cross-attention, averaged over its heads: a row over the source tokens
/// for each target token. They are recomputed here, because the attention operation does not store
/// them.
pub(crate) fn last_cross_attention(e: &Taped<'_>, shape: HeadShape) -> Vec<Vec<f32>> {
    let Some(&(q, kv)) = e.cross_attentions().last() else { return Vec::new() };
    let HeadShape { heads, d_k, d_v } = shape;
    let (q, kv) = (e.matrix(q), e.matrix(kv));
    let (queries, keys) = (e.offsets(Side::Target), e.offsets(Side::Source));
    let (k, v) = (kv.columns(0, shape.keys()), kv.columns(shape.keys(), shape.values()));
    let sizes: Vec<(usize, usize)> =
        queries.windows(2).zip(keys.windows(2)).map(|(m, n)| (m[1] - m[0], n[1] - n[0])).collect();
    let mut weights = vec![0.0; sizes.iter().map(|(m, n)| heads * m * n).sum()];
    let (mut out, mut sums) = (vec![0.0; q.rows() * shape.values()], vec![0.0; q.rows() * heads]);
    let attention = Attention {
        heads,
        d_k,
        d_v,
        scale: (d_k as f32).sqrt().recip(),
        mask: Mask::NONE,
        queries,
        keys,
        dropout: None,
        relative: None,
    };
    let to = MatMut::new(&mut out, q.rows(), shape.values());
    let scratch = &mut Scratch::default();
    attention_forward(e.isa(), &attention, (q, k, v), to, &mut sums, Some(&mut weights), scratch);
    let mut rows = Vec::with_capacity(q.rows());
    let mut rest = &weights[..];
    for (m, n) in sizes {
        let (text, others) = rest.split_at(heads * m * n);
        rest = others;
        let mean =
            |i: usize, j: usize| (0..heads).map(|h| text[(h * m + i) * n + j]).sum::<f32>() / heads as f32;
        rows.extend((0..m).map(|i| (0..n).map(|j| mean(i, j)).collect::<Vec<f32>>()));
    }
    rows
}

/// The index of the largest number.
pub(crate) fn argmax(x: &[f32]) -> usize {
    (0..x.len()).reduce(|a, b| if x[b] > x[a] { b } else { a }).unwrap_or(0)
}
