//! Small models made of the tape's operations, for tasks that are not translation: their layers, and their training over all
//! cores.

mod fit;

pub(crate) use fit::{Fitted, Recipe, fit, over_examples};

use regard_core::model::{Activation, HeadShape, Initial, Location, Parameters, RelativePositions, Role};
use regard_kernels::{Attention, Mask, Mat, MatMut, Scratch, attention_forward};
use regard_train::autograd::ops::{AddNorm, CrossAttention, Linear, SelfAttention};
use regard_train::autograd::{Op, Param, Tape, Var};
use std::sync::Arc;

const EPSILON: f32 = 1e-5;

/// `W [out, in]`, `b [out]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense {
    weight: Param,
    bias: Param,
}

/// γ and β.
#[derive(Clone, Copy, Debug)]
struct Norm {
    gamma: Param,
    beta: Param,
}

#[derive(Clone, Copy, Debug)]
struct FeedForward {
    up: Dense,
    down: Dense,
    norm: Norm,
}

/// A layer whose tokens look at each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfLayer {
    qkv: Dense,
    out: Dense,
    norm: Norm,
    mask: Mask,
    relative: Option<RelativePositions>,
    feed_forward: FeedForward,
}

/// A layer whose tokens look at those of another text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossLayer {
    q: Dense,
    kv: Dense,
    out: Dense,
    norm: Norm,
    feed_forward: FeedForward,
}

/// Lays out the parameters of a model whose layers are all `d` wide.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) parameters: Parameters,
    d: usize,
    heads: HeadShape,
}

impl Builder {
    /// A model of this width with this many heads, which must divide it.
    pub(crate) fn new(d: usize, heads: usize) -> Self {
        let even = d / heads;
        Builder { parameters: Parameters::default(), d, heads: HeadShape { heads, d_k: even, d_v: even } }
    }

    pub(crate) fn heads(&self) -> HeadShape {
        self.heads
    }

    fn add(&mut self, name: String, shape: [usize; 2], initial: Initial, role: Role) -> Param {
        self.parameters.add(name, shape, initial, role, Location::default())
    }

    pub(crate) fn dense(&mut self, name: &str, out: usize, input: usize) -> Dense {
        let initial = Initial::Glorot { fan_out: out };
        Dense {
            weight: self.add(format!("{name}.weight"), [out, input], initial, Role::Matrix),
            bias: self.add(format!("{name}.bias"), [1, out], Initial::Zero, Role::Vector),
        }
    }

    /// Rows of `d` random numbers.
    pub(crate) fn vectors(&mut self, name: &str, rows: usize, deviation: f32) -> Param {
        let initial = Initial::Normal { deviation, pad: false };
        self.add(name.to_owned(), [rows, self.d], initial, Role::Positions)
    }

    fn norm(&mut self, name: &str) -> Norm {
        Norm {
            gamma: self.add(format!("{name}.weight"), [1, self.d], Initial::One, Role::Vector),
            beta: self.add(format!("{name}.bias"), [1, self.d], Initial::Zero, Role::Vector),
        }
    }

    fn feed_forward(&mut self, name: &str) -> FeedForward {
        FeedForward {
            up: self.dense(&format!("{name}.up"), 2 * self.d, self.d),
            down: self.dense(&format!("{name}.down"), self.d, 2 * self.d),
            norm: self.norm(&format!("{name}_norm")),
        }
    }

    /// With a `window`, tokens see no further than that to each side; with `reach`, distances up to it have learned vectors.
    pub(crate) fn self_layer(
        &mut self,
        name: &str,
        window: Option<usize>,
        reach: Option<usize>,
    ) -> SelfLayer {
        let relative = |reach: usize| {
            let rows = 2 * reach + 1;
            let initial = Initial::Glorot { fan_out: rows };
            let shape = [rows, self.heads.d_k];
            let table = self.add(format!("{name}.relative"), shape, initial, Role::Positions);
            RelativePositions { table, reach }
        };
        SelfLayer {
            mask: Mask { causal: false, window },
            relative: reach.map(relative),
            qkv: self.dense(&format!("{name}.qkv"), 3 * self.d, self.d),
            out: self.dense(&format!("{name}.out"), self.d, self.d),
            norm: self.norm(&format!("{name}.norm")),
            feed_forward: self.feed_forward(&format!("{name}.ffn")),
        }
    }

    pub(crate) fn cross_layer(&mut self, name: &str) -> CrossLayer {
        CrossLayer {
            q: self.dense(&format!("{name}.q"), self.d, self.d),
            kv: self.dense(&format!("{name}.kv"), 2 * self.d, self.d),
            out: self.dense(&format!("{name}.out"), self.d, self.d),
            norm: self.norm(&format!("{name}.norm")),
            feed_forward: self.feed_forward(&format!("{name}.ffn")),
        }
    }
}

/// Where texts begin, and where the last one ends.
pub(crate) type Offsets = Arc<[usize]>;

/// Offsets of `count` texts of one length.
pub(crate) fn even_offsets(count: usize, length: usize) -> Offsets {
    (0..=count).map(|i| i * length).collect()
}

/// One forward pass over some examples.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    pub(crate) tape: &'a mut Tape,
    weights: &'a [f32],
    gradients: Option<&'a mut [f32]>,
    heads: HeadShape,
    /// One over the number of losses of the whole batch.
    pub(crate) scale: f32,
}

impl Pass<'_> {
    pub(crate) fn push(&mut self, op: impl Op + 'static) -> Var {
        self.tape.push(self.weights, self.gradients.as_deref_mut(), op)
    }

    pub(crate) fn dense(&mut self, x: Var, layer: Dense) -> Var {
        self.activated(x, layer, Activation::Identity)
    }

    fn activated(&mut self, x: Var, Dense { weight, bias }: Dense, activation: Activation) -> Var {
        self.push(Linear { x, weight, bias, activation, dropout: None })
    }

    fn add_norm(&mut self, x: Var, branch: Var, Norm { gamma, beta }: Norm) -> Var {
        self.push(AddNorm { x, branch: Some(branch), dropout: None, gamma, beta, epsilon: EPSILON })
    }

    fn feed_forward(&mut self, x: Var, layer: FeedForward) -> Var {
        let hidden = self.activated(x, layer.up, Activation::Relu);
        let branch = self.dense(hidden, layer.down);
        self.add_norm(x, branch, layer.norm)
    }

    /// The tokens of each text look at each other.
    pub(crate) fn self_layer(&mut self, x: Var, layer: &SelfLayer, offsets: &Offsets) -> Var {
        let qkv = self.dense(x, layer.qkv);
        let (shape, offsets) = (self.heads, offsets.clone());
        let SelfLayer { mask, relative, .. } = *layer;
        let seen = self.push(SelfAttention { qkv, shape, mask, offsets, dropout: None, relative });
        let branch = self.dense(seen, layer.out);
        let x = self.add_norm(x, branch, layer.norm);
        self.feed_forward(x, layer.feed_forward)
    }

    /// The tokens of `x` look at those of `memory`.
    pub(crate) fn cross_layer(
        &mut self,
        (x, queries): (Var, &Offsets),
        (memory, keys): (Var, &Offsets),
        layer: &CrossLayer,
    ) -> Crossed {
        let (q, kv) = (self.dense(x, layer.q), self.dense(memory, layer.kv));
        let (shape, queries, keys) = (self.heads, queries.clone(), keys.clone());
        let seen = self.push(CrossAttention { q, kv, shape, queries, keys, dropout: None });
        let branch = self.dense(seen, layer.out);
        let x = self.add_norm(x, branch, layer.norm);
        Crossed { x: self.feed_forward(x, layer.feed_forward), q, kv }
    }

    /// The weights of a cross-attention on average over the heads: a row of keys for each query, text by text. The operation itself
    /// never holds them.
    pub(crate) fn weights_of(&self, seen: &Crossed, queries: &Offsets, keys: &Offsets) -> Vec<Vec<f32>> {
        let HeadShape { heads, d_k, d_v } = self.heads;
        let (q, kv) = (self.tape.value(seen.q), self.tape.value(seen.kv));
        let (k, v) = (kv.columns(0, heads * d_k), kv.columns(heads * d_k, heads * d_v));
        let sizes: Vec<(usize, usize)> =
            queries.windows(2).zip(keys.windows(2)).map(|(m, n)| (m[1] - m[0], n[1] - n[0])).collect();
        let mut weights = vec![0.0; sizes.iter().map(|(m, n)| heads * m * n).sum()];
        let (mut out, mut sums) = (vec![0.0; q.rows() * heads * d_v], vec![0.0; q.rows() * heads]);
        let shape = Attention {
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
        let to = MatMut::new(&mut out, q.rows(), heads * d_v);
        let scratch = &mut Scratch::default();
        attention_forward(self.tape.isa(), &shape, (q, k, v), to, &mut sums, Some(&mut weights), scratch);
        let mut rows = Vec::with_capacity(q.rows());
        let mut rest = &weights[..];
        for (m, n) in sizes {
            let (text, others) = rest.split_at(heads * m * n);
            rest = others;
            let mean = |i: usize, j: usize| {
                (0..heads).map(|h| text[(h * m + i) * n + j]).sum::<f32>() / heads as f32
            };
            rows.extend((0..m).map(|i| (0..n).map(|j| mean(i, j)).collect::<Vec<f32>>()));
        }
        rows
    }

    /// The value of `x`.
    pub(crate) fn value(&self, x: Var) -> Mat<'_> {
        self.tape.value(x)
    }

    /// A parameter.
    pub(crate) fn weight(&self, param: Param) -> &[f32] {
        &self.weights[param.range()]
    }
}

/// What a cross-attention layer gives, and what it looked with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossed {
    pub(crate) x: Var,
    q: Var,
    kv: Var,
}

/// The index of the greatest number.
pub(crate) fn greatest(x: &[f32]) -> usize {
    (0..x.len()).reduce(|a, b| if x[b] > x[a] { b } else { a }).unwrap_or(0)
}
