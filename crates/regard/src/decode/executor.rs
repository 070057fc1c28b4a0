//! The layers carried out for decoding: the encoder over whole sentences, the decoder one step at a time over caches.

use crate::autograd::Param;
use crate::batch::Packed;
use crate::model::{
    Combine, CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, NormLayer, Positions,
    SelfAttentionLayer, Side, Transformer, positions,
};
use regard_kernels::{
    Activation, Attention, Gathered, Into, Isa, Mat, MatMut, Norm, NormSaved, Relative, Scratch, activate,
    add, add_norm, add_scaled, attention_forward, gathered_attention, matmul,
};

/// A value of this pass, or keys and values that a cache holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tensor {
    Slot(usize),
    Memory(usize),
}

/// Rows that live until the pass is over; the buffers are kept for the next one.
#[derive(Debug, Default)]
struct Slot {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

/// The keys and values of all layers.
#[derive(Debug, Default)]
struct Caches {
    /// Of the encoder's output, `[n, h·(d_k + d_v)]` a decoder layer: computed once, shared by all hypotheses.
    memory: Vec<Vec<f32>>,
    memory_rows: usize,
    /// Of the target tokens so far, one row a hypothesis and step: they only grow.
    steps: Vec<Vec<f32>>,
    step_rows: usize,
}

/// Lists of cache rows, one a hypothesis.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub(super) offsets: Vec<usize>,
    pub(super) rows: Vec<u32>,
}

impl Lists {
    pub(super) fn new<'a>(lists: impl Iterator<Item = &'a [u32]>) -> Self {
        let (mut offsets, mut rows) = (vec![0], Vec::new());
        for list in lists {
            rows.extend_from_slice(list);
            offsets.push(rows.len());
        }
        Lists { offsets, rows }
    }
}

/// What one step of the decoder reads.
#[derive(Debug)]
struct Step {
    ids: Vec<u32>,
    position: usize,
    /// The steps so far of each hypothesis, its new one last.
    past: Lists,
    /// The source rows of each hypothesis.
    source: Lists,
}

/// The executor of decoding, over one batch of sentences.
#[derive(Debug)]
pub(super) struct Inference<'a> {
    model: &'a Transformer,
    weights: &'a [f32],
    isa: Isa,
    threads: usize,
    slots: Vec<Slot>,
    used: usize,
    caches: Caches,
    source: Packed,
    step: Option<Step>,
    sinusoids: Vec<f32>,
    attention: Scratch,
    scores: Vec<f32>,
    /// Where cross-attention weights go, if they are wanted: `[h, n]` a hypothesis, layer by layer.
    pub(super) cross_weights: Option<Vec<Vec<f32>>>,
}

impl<'a> Inference<'a> {
    pub(super) fn new(model: &'a Transformer, weights: &'a [f32], isa: Isa, threads: usize) -> Self {
        Inference {
            model,
            weights,
            isa,
            threads,
            slots: Vec::new(),
            used: 0,
            caches: Caches::default(),
            source: Packed::new([]),
            step: None,
            sinusoids: Vec::new(),
            attention: Scratch::default(),
            scores: Vec::new(),
            cross_weights: None,
        }
    }

    /// Encodes the sentences and fills the cache of their keys and values.
    pub(super) fn encode(&mut self, source: Packed) {
        let model = self.model;
        self.source = source;
        self.step = None;
        self.used = 0;
        let layers = model.config().decoder_layers;
        self.caches.memory.resize_with(layers, Vec::new);
        self.caches.steps.resize_with(layers, Vec::new);
        self.caches.steps.iter_mut().for_each(Vec::clear);
        (self.caches.memory_rows, self.caches.step_rows) = (self.source.tokens(), 0);
        let encoded = model.encode(self);
        for layer in model.cross_attention_layers() {
            let kv = self.linear(encoded, &layer.kv);
            let (values, _, _) = self.get(kv);
            let values = values.to_vec();
            self.caches.memory[layer.layer] = values;
        }
    }

    /// How many rows the step cache holds: where the next step's will lie.
    pub(super) fn step_rows(&self) -> usize {
        self.caches.step_rows
    }

    /// One step for all hypotheses: their last tokens, all at `position`. Returns `[hypotheses, d]`.
    pub(super) fn advance(&mut self, ids: Vec<u32>, position: usize, past: Lists, source: Lists) -> &[f32] {
        let model = self.model;
        self.used = 0;
        let rows = ids.len();
        if let Some(weights) = &mut self.cross_weights {
            weights.clear();
        }
        self.step = Some(Step { ids, position, past, source });
        let x = model.decode(self, Tensor::Memory(0));
        self.caches.step_rows += rows;
        self.get(x).0
    }

    /// How many weights a head has before those of hypothesis `row`, in this step's cross-attention.
    pub(super) fn source_offset(&self, row: usize) -> usize {
        self.step.as_ref().map_or(0, |step| step.source.offsets[row])
    }

    fn get(&self, x: Tensor) -> (&[f32], usize, usize) {
        match x {
            Tensor::Slot(i) => {
                let slot = &self.slots[i];
                (&slot.data[..slot.rows * slot.cols], slot.rows, slot.cols)
            }
            Tensor::Memory(layer) => {
                let data = &self.caches.memory[layer];
                (data, self.caches.memory_rows, data.len() / self.caches.memory_rows.max(1))
            }
        }
    }

    fn mat(&self, x: Tensor) -> Mat<'_> {
        let (data, rows, cols) = self.get(x);
        Mat::new(data, rows, cols)
    }

    fn weight(&self, param: Param) -> &'a [f32] {
        &self.weights[param.range()]
    }

    /// A new value, filled by `fill`, which sees the others.
    fn make(&mut self, rows: usize, cols: usize, fill: impl FnOnce(&mut Self, &mut [f32])) -> Tensor {
        if self.slots.len() == self.used {
            self.slots.push(Slot::default());
        }
        let mut slot = std::mem::take(&mut self.slots[self.used]);
        let at = self.used;
        self.used += 1;
        (slot.rows, slot.cols) = (rows, cols);
        if slot.data.len() < rows * cols {
            slot.data.resize(rows * cols, 0.0);
        }
        fill(self, &mut slot.data[..rows * cols]);
        self.slots[at] = slot;
        Tensor::Slot(at)
    }

    fn affine(&mut self, x: Tensor, layer: &LinearLayer, activation: Activation) -> Tensor {
        let LinearLayer { weight, bias } = *layer;
        let (_, rows, input) = self.get(x);
        self.make(rows, bias.len, |e, y| {
            let w = Mat::new(e.weight(weight), bias.len, input);
            let to = MatMut::new(y, rows, bias.len);
            matmul(e.isa, to, e.mat(x), w.t(), Into::Overwrite, e.threads);
            activate(e.isa, y, e.weight(bias), activation, None, None);
        })
    }

    fn normalise(&mut self, x: Tensor, branch: Option<Tensor>, norm: &NormLayer) -> Tensor {
        let (_, rows, cols) = self.get(x);
        let (gamma, beta) = (self.weight(norm.gamma), self.weight(norm.beta));
        let norm = Norm { gamma, beta, epsilon: self.model.config().norm_epsilon };
        self.make(rows, cols, |e, y| {
            let mut scratch = std::mem::take(&mut e.scores);
            scratch.resize(rows * (cols + 1), 0.0);
            let (normalised, scale) = scratch.split_at_mut(rows * cols);
            let saved = NormSaved { normalised, scale };
            add_norm(e.isa, e.get(x).0, branch.map(|f| e.get(f).0), None, norm, y, saved);
            e.scores = scratch;
        })
    }

    /// The position vector of `position`, if the model adds or appends one.
    fn position_vector(&mut self, layer: &EmbeddingLayer, position: usize) -> Option<&[f32]> {
        let d = self.model.config().d_model;
        match (self.model.config().positions, layer.positions) {
            (Positions::Sinusoidal, _) => {
                if self.sinusoids.len() < (position + 1) * d {
                    self.sinusoids = positions::sinusoidal((position + 1).next_multiple_of(64), d);
                }
                Some(&self.sinusoids[position * d..][..d])
            }
            (Positions::Learned, Some(table)) => Some(&self.weight(table)[position * d..][..d]),
            _ => None,
        }
    }
}

impl Executor for Inference<'_> {
    type Tensor = Tensor;

    fn embed(&mut self, layer: &EmbeddingLayer) -> Tensor {
        let config = self.model.config();
        let (d, scale) = (config.d_model, config.embedding_scale());
        let pad = if layer.side == Side::Source { config.source_pad() } else { config.target_pad() };
        let concatenate = config.combine == Combine::Concatenate;
        let cols = if concatenate { 2 * d } else { d };
        let tokens: Vec<(u32, usize)> = match &self.step {
            None => self.source.ids().iter().copied().zip(self.source.positions()).collect(),
            Some(step) => step.ids.iter().map(|&id| (id, step.position)).collect(),
        };
        let table = self.weight(layer.table);
        self.make(tokens.len(), cols, |e, y| {
            y.fill(0.0);
            for (y, &(id, position)) in y.chunks_exact_mut(cols).zip(&tokens) {
                let place = if concatenate { d..2 * d } else { 0..d };
                if let Some(vector) = e.position_vector(layer, position) {
                    y[place].copy_from_slice(vector);
                }
                if id != pad {
                    add_scaled(e.isa, &mut y[..d], &table[id as usize * d..][..d], scale);
                }
            }
        })
    }

    fn linear(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        self.affine(x, layer, Activation::Identity)
    }

    fn activated(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        self.affine(x, layer, self.model.config().activation)
    }

    fn self_attention(&mut self, qkv: Tensor, layer: &SelfAttentionLayer) -> Tensor {
        let heads = self.model.config().head_shape();
        let (keys, values) = (heads.keys(), heads.values());
        let scale = (heads.d_k as f32).sqrt().recip();
        let relative = layer.relative.map(|r| Relative { table: self.weight(r.table), reach: r.reach });
        let (_, rows, _) = self.get(qkv);
        if self.step.is_none() {
            return self.make(rows, values, |e, y| {
                let offsets = e.source.offsets().clone();
                let shape = Attention {
                    heads: heads.heads,
                    d_k: heads.d_k,
                    d_v: heads.d_v,
                    scale,
                    mask: layer.mask,
                    queries: &offsets,
                    keys: &offsets,
                    dropout: None,
                    relative,
                };
                let mut scratch = std::mem::take(&mut e.attention);
                let mut sums = std::mem::take(&mut e.scores);
                sums.resize(rows * heads.heads, 0.0);
                let x = e.mat(qkv);
                let parts = (x.columns(0, keys), x.columns(keys, keys), x.columns(2 * keys, values));
                let to = MatMut::new(y, rows, values);
                attention_forward(
                    e.isa,
                    &shape,
                    parts,
                    to,
                    &mut sums[..rows * heads.heads],
                    None,
                    &mut scratch,
                );
                (e.attention, e.scores) = (scratch, sums);
            });
        }
        let mut cache = std::mem::take(&mut self.caches.steps[layer.layer]);
        for row in self.get(qkv).0.chunks_exact(2 * keys + values) {
            cache.extend_from_slice(&row[keys..]);
        }
        let tensor = self.make(rows, values, |e, y| {
            let step = e.step.take().expect("a step is under way");
            let windowed = layer.mask.window.map(|r| last_of_each(&step.past, r + 1));
            let lists = windowed.as_ref().unwrap_or(&step.past);
            let shape = gathered(heads, scale, lists, relative);
            let mut scratch = std::mem::take(&mut e.scores);
            let kv = Mat::new(&cache, cache.len() / (keys + values), keys + values);
            let q = e.mat(qkv).columns(0, keys);
            gathered_attention(e.isa, &shape, q, kv, MatMut::new(y, rows, values), None, &mut scratch);
            (e.scores, e.step) = (scratch, Some(step));
        });
        self.caches.steps[layer.layer] = cache;
        tensor
    }

    fn memory(&mut self, _: Tensor, layer: &CrossAttentionLayer) -> Tensor {
        Tensor::Memory(layer.layer)
    }

    fn cross_attention(&mut self, q: Tensor, kv: Tensor, _: &CrossAttentionLayer) -> Tensor {
        let heads = self.model.config().head_shape();
        let scale = (heads.d_k as f32).sqrt().recip();
        let (_, rows, _) = self.get(q);
        self.make(rows, heads.values(), |e, y| {
            let step = e.step.take().expect("a step is under way");
            let mut scratch = std::mem::take(&mut e.scores);
            let mut wanted = e.cross_weights.take();
            let mut weights = wanted.as_ref().map(|_| vec![0.0; heads.heads * step.source.rows.len()]);
            let shape = gathered(heads, scale, &step.source, None);
            let to = MatMut::new(y, rows, heads.values());
            gathered_attention(e.isa, &shape, e.mat(q), e.mat(kv), to, weights.as_deref_mut(), &mut scratch);
            if let (Some(wanted), Some(weights)) = (&mut wanted, weights) {
                wanted.push(weights);
            }
            (e.scores, e.step, e.cross_weights) = (scratch, Some(step), wanted);
        })
    }

    fn add_norm(&mut self, x: Tensor, branch: Tensor, norm: &NormLayer) -> Tensor {
        self.normalise(x, Some(branch), norm)
    }

    fn norm(&mut self, x: Tensor, norm: &NormLayer) -> Tensor {
        self.normalise(x, None, norm)
    }

    fn add(&mut self, x: Tensor, branch: Tensor) -> Tensor {
        let (_, rows, cols) = self.get(x);
        self.make(rows, cols, |e, y| {
            y.copy_from_slice(e.get(x).0);
            add(e.isa, y, e.get(branch).0);
        })
    }
}

fn gathered<'a>(
    heads: crate::autograd::ops::HeadShape,
    scale: f32,
    lists: &'a Lists,
    relative: Option<Relative<'a>>,
) -> Gathered<'a> {
    let (offsets, rows) = (&lists.offsets[..], &lists.rows[..]);
    Gathered { heads: heads.heads, d_k: heads.d_k, d_v: heads.d_v, scale, offsets, rows, relative }
}

/// The last `n` rows of each list: what a window leaves visible.
fn last_of_each(lists: &Lists, n: usize) -> Lists {
    Lists::new(lists.offsets.windows(2).map(|w| &lists.rows[w[0].max(w[1].saturating_sub(n))..w[1]]))
}
