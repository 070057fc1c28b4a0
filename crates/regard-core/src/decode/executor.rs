//! The layers carried out for decoding: the encoder over whole sentences, the decoder one step at a time over caches.

use super::Engine;
use crate::batch::Packed;
use crate::model::{
    Combine, ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, Executor, HeadShape, LinearLayer,
    NormLayer, Positions, RecurrentLayer, SelfAttentionLayer, Side, positions,
};
use regard_kernels::{
    Activation, Attention, Mat, MatMut, Norm, NormSaved, Paged, Relative, RowScratch, Scratch, Team,
    activate, add, add_norm, add_scaled, attention_forward, paged_attention,
};

/// A value of this pass, or keys and values that a cache holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tensor {
    Slot(usize),
    Memory(usize),
}

/// Rows that live until their layer is over; the buffers are kept for the next one.
#[derive(Debug, Default)]
struct Slot {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

/// The keys and values of all layers, each row as wide as both together.
#[derive(Debug, Default)]
struct Caches {
    /// Of the encoder's output: computed once, shared by all hypotheses.
    memory: Vec<Vec<f32>>,
    memory_rows: usize,
    /// Of the target tokens so far; which row belongs to whom is the search's affair.
    steps: Vec<Vec<f32>>,
}

/// Lists of cache rows, one a hypothesis.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub(super) offsets: Vec<usize>,
    pub(super) rows: Vec<u32>,
}

impl Lists {
    /// List `i`.
    pub(super) fn of(&self, i: usize) -> &[u32] {
        &self.rows[self.offsets[i]..self.offsets[i + 1]]
    }

    /// Makes them anew in the same memory.
    pub(super) fn fill<'a>(&mut self, lists: impl Iterator<Item = &'a [u32]>) {
        self.offsets.clear();
        self.rows.clear();
        self.offsets.push(0);
        for list in lists {
            self.rows.extend_from_slice(list);
            self.offsets.push(self.rows.len());
        }
    }
}

/// What one step of the decoder reads: a token for each hypothesis, or all tokens of a sentence at once.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) ids: Vec<u32>,
    /// The cache row that each token gets.
    pub(super) rows: Vec<u32>,
    /// The cache rows that each token attends to, its own last.
    pub(super) past: Lists,
    /// The source rows that each token attends to.
    pub(super) source: Lists,
}

impl Step {
    /// All tokens of one sentence over `n` source tokens: each attends to those before it and to itself.
    pub(super) fn whole(ids: Vec<u32>, n: usize) -> Self {
        let rows: Vec<u32> = (0..ids.len() as u32).collect();
        let source: Vec<u32> = (0..n as u32).collect();
        let mut step = Step { ids, ..Step::default() };
        step.past.fill((0..rows.len()).map(|i| &rows[..=i]));
        step.source.fill(rows.iter().map(|_| &source[..]));
        step.rows = rows;
        step
    }

    /// Each token's place in its sentence: as many tokens come before it as it attends to beside itself.
    fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.past.offsets.windows(2).map(|w| (w[1] - w[0]).saturating_sub(1))
    }
}

/// What decoding needs beside the model, over one batch of sentences after the other.
#[derive(Debug)]
pub(super) struct Inference<'a> {
    pub(super) engine: &'a Engine,
    pub(super) team: Team,
    slots: Vec<Slot>,
    used: usize,
    caches: Caches,
    pub(super) source: Packed,
    sinusoids: Vec<f32>,
    attention: Scratch,
    scores: Vec<f32>,
    /// Of recurrent layers: the states, and for each step what it leaves behind.
    pub(super) states: (Vec<f32>, Vec<f32>),
    quantized: RowScratch,
    windowed: Lists,
    /// Where cross-attention weights go, if they are wanted: `[h, n]` a hypothesis, layer by layer.
    pub(super) cross_weights: Option<Vec<Vec<f32>>>,
    /// The same for self-attention: `[h, n, n]` for a whole sentence of the encoder, `[h, past]` a row of a step.
    pub(super) self_weights: Option<Vec<Vec<f32>>>,
}

/// One pass through a stack: of the encoder, or a step of the decoder.
struct Pass<'p, 'a> {
    on: &'p mut Inference<'a>,
    step: Option<&'p Step>,
}

impl<'a> Inference<'a> {
    pub(super) fn new(engine: &'a Engine, threads: usize) -> Self {
        Inference {
            engine,
            team: Team::new(threads),
            slots: Vec::new(),
            used: 0,
            caches: Caches::default(),
            source: Packed::new([]),
            sinusoids: Vec::new(),
            attention: Scratch::default(),
            scores: Vec::new(),
            states: (Vec::new(), Vec::new()),
            quantized: RowScratch::default(),
            windowed: Lists::default(),
            cross_weights: None,
            self_weights: None,
        }
    }

    /// Encodes the sentences and fills the cache of their keys and values.
    pub(super) fn encode(&mut self, source: Packed) {
        let model = self.engine.model();
        let layers = model.config().decoder_layers;
        self.caches.memory.resize_with(layers, Vec::new);
        self.caches.steps.resize_with(layers, Vec::new);
        self.caches.steps.iter_mut().for_each(Vec::clear);
        self.caches.memory_rows = source.tokens();
        self.source = source;
        self.used = 0;
        let encoded = model.encode(&mut Pass { on: self, step: None });
        for layer in model.cross_attention_layers() {
            let mut to = std::mem::take(&mut self.caches.memory[layer.layer]);
            to.resize(self.caches.memory_rows * layer.kv.bias.len, 0.0);
            self.project(encoded, &layer.kv, Activation::Identity, &mut to);
            self.caches.memory[layer.layer] = to;
        }
    }

    /// One step for all hypotheses. Returns `[hypotheses, d]`.
    pub(super) fn advance(&mut self, step: &Step) -> (Mat<'_>, &mut RowScratch, &mut Team) {
        self.used = 0;
        for weights in [&mut self.cross_weights, &mut self.self_weights].into_iter().flatten() {
            weights.clear();
        }
        let model = self.engine.model();
        let x = model.decode(&mut Pass { on: self, step: Some(step) }, Tensor::Memory(0));
        let Tensor::Slot(i) = x else { unreachable!("a decoder makes a value of its own") };
        let slot = &self.slots[i];
        let values = Mat::new(&slot.data[..slot.rows * slot.cols], slot.rows, slot.cols);
        (values, &mut self.quantized, &mut self.team)
    }

    pub(super) fn get(&self, x: Tensor) -> (&[f32], usize, usize) {
        value(&self.slots, &self.caches, x)
    }

    /// A value beside what products with it need.
    pub(super) fn with_tools(&mut self, x: Tensor) -> (Mat<'_>, &mut Team, &mut RowScratch) {
        let (data, rows, cols) = value(&self.slots, &self.caches, x);
        (Mat::new(data, rows, cols), &mut self.team, &mut self.quantized)
    }

    pub(super) fn mat(&self, x: Tensor) -> Mat<'_> {
        let (data, rows, cols) = self.get(x);
        Mat::new(data, rows, cols)
    }

    /// A new value, filled by `fill`, which sees the others.
    pub(super) fn make(
        &mut self,
        rows: usize,
        cols: usize,
        fill: impl FnOnce(&mut Self, &mut [f32]),
    ) -> Tensor {
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

    /// `y = activation(x·Wᵀ + b)`
    fn project(&mut self, x: Tensor, layer: &LinearLayer, activation: Activation, y: &mut [f32]) {
        let engine = self.engine;
        let (matrix, bias) = (engine.matrix(layer.weight), engine.vector(layer.bias));
        let (x, team, quantized) = self.with_tools(x);
        let identity = activation == Activation::Identity;
        let to = MatMut::new(y, x.rows(), matrix.outputs());
        matrix.product_by(team, matrix.rows(x, quantized), identity.then_some(bias), to);
        if !identity {
            activate(engine.isa(), y, bias, activation, None, None);
        }
    }

    fn affine(&mut self, x: Tensor, layer: &LinearLayer, activation: Activation) -> Tensor {
        let (_, rows, _) = self.get(x);
        self.make(rows, layer.bias.len, |e, y| e.project(x, layer, activation, y))
    }

    fn normalise(&mut self, x: Tensor, branch: Option<Tensor>, norm: &NormLayer) -> Tensor {
        let (_, rows, cols) = self.get(x);
        let engine = self.engine;
        let (gamma, beta) = (engine.vector(norm.gamma), engine.vector(norm.beta));
        let norm = Norm { gamma, beta, epsilon: engine.model().config().norm_epsilon };
        self.make(rows, cols, |e, y| {
            let mut scratch = std::mem::take(&mut e.scores);
            scratch.resize(rows * (cols + 1), 0.0);
            let (normalised, scale) = scratch.split_at_mut(rows * cols);
            let saved = NormSaved { normalised, scale };
            add_norm(engine.isa(), e.get(x).0, branch.map(|f| e.get(f).0), None, norm, y, saved);
            e.scores = scratch;
        })
    }

    /// The position vector of `position`, if the model adds or appends one.
    fn position_vector(&mut self, layer: &EmbeddingLayer, position: usize) -> Option<&[f32]> {
        let config = self.engine.model().config();
        let d = config.d_model;
        match (config.positions, layer.positions) {
            (Positions::Sinusoidal, _) => {
                if self.sinusoids.len() < (position + 1) * d {
                    self.sinusoids = positions::sinusoidal((position + 1).next_multiple_of(64), d);
                }
                Some(&self.sinusoids[position * d..][..d])
            }
            (Positions::Learned, Some(table)) => Some(&self.engine.vector(table)[position * d..][..d]),
            _ => None,
        }
    }

    /// Writes the vector of one token to `y`; `word` is memory for its embedding.
    fn embed_one(
        &mut self,
        layer: &EmbeddingLayer,
        id: u32,
        position: usize,
        y: &mut [f32],
        word: &mut [f32],
    ) {
        let config = self.engine.model().config();
        let (d, scale) = (config.d_model, config.embedding_scale());
        let pad = if layer.side == Side::Source { config.source_pad() } else { config.target_pad() };
        let place = if config.combine == Combine::Concatenate { d..2 * d } else { 0..d };
        y.fill(0.0);
        if let Some(vector) = self.position_vector(layer, position) {
            y[place].copy_from_slice(vector);
        }
        if id != pad {
            self.engine.matrix(layer.table).read_row(id as usize, word);
            add_scaled(self.engine.isa(), &mut y[..d], word, scale);
        }
    }

    /// Attention of whole sentences over themselves: the encoder's.
    fn whole_attention(
        &mut self,
        qkv: Tensor,
        layer: &SelfAttentionLayer,
        relative: Option<Relative<'_>>,
    ) -> Tensor {
        let engine = self.engine;
        let HeadShape { heads, d_k, d_v } = engine.model().config().head_shape(Side::Source);
        let (keys, values) = (heads * d_k, heads * d_v);
        let (_, rows, _) = self.get(qkv);
        self.make(rows, values, |e, y| {
            let mut scratch = std::mem::take(&mut e.attention);
            let mut sums = std::mem::take(&mut e.scores);
            sums.resize(rows * heads, 0.0);
            let offsets = e.source.offsets();
            let shape = Attention {
                heads,
                d_k,
                d_v,
                scale: (d_k as f32).sqrt().recip(),
                mask: layer.mask,
                queries: offsets,
                keys: offsets,
                dropout: None,
                relative,
            };
            let x = e.mat(qkv);
            let parts = (x.columns(0, keys), x.columns(keys, keys), x.columns(2 * keys, values));
            let to = MatMut::new(y, rows, values);
            // Weights are wanted of one sentence at a time.
            let mut weights = e.self_weights.as_ref().map(|_| vec![0.0; heads * rows * rows]);
            attention_forward(
                engine.isa(),
                &shape,
                parts,
                to,
                &mut sums,
                weights.as_deref_mut(),
                &mut scratch,
            );
            if let (Some(all), Some(weights)) = (&mut e.self_weights, weights) {
                all.push(weights);
            }
            (e.attention, e.scores) = (scratch, sums);
        })
    }

    /// Attention of the new tokens over their own past: their keys and values go into the cache first.
    fn step_attention(
        &mut self,
        qkv: Tensor,
        layer: &SelfAttentionLayer,
        relative: Option<Relative<'_>>,
        step: &Step,
    ) -> Tensor {
        let engine = self.engine;
        let heads = engine.model().config().head_shape(Side::Target);
        let (keys, values) = (heads.keys(), heads.values());
        let width = keys + values;
        let (_, rows, _) = self.get(qkv);
        let mut cache = std::mem::take(&mut self.caches.steps[layer.layer]);
        let most = step.rows.iter().max().map_or(0, |&row| row as usize + 1);
        cache.resize(cache.len().max(most * width), 0.0);
        for (row, &to) in self.get(qkv).0.chunks_exact(keys + width).zip(&step.rows) {
            cache[to as usize * width..][..width].copy_from_slice(&row[keys..]);
        }
        let mut windowed = std::mem::take(&mut self.windowed);
        let lists = match layer.mask.window {
            Some(reach) => {
                let past = &step.past;
                let last = |w: &[usize]| w[0].max(w[1].saturating_sub(reach + 1))..w[1];
                windowed.fill(past.offsets.windows(2).map(|w| &past.rows[last(w)]));
                &windowed
            }
            None => &step.past,
        };
        let tensor = self.make(rows, values, |e, y| {
            let mut scratch = std::mem::take(&mut e.scores);
            let kv = Mat::new(&cache, cache.len() / width, width);
            let q = e.mat(qkv).columns(0, keys);
            let to = MatMut::new(y, rows, values);
            let mut weights = e.self_weights.as_ref().map(|_| vec![0.0; heads.heads * lists.rows.len()]);
            let shape = paged(heads, lists, relative);
            paged_attention(engine.isa(), &shape, q, kv, to, weights.as_deref_mut(), &mut scratch);
            e.scores = scratch;
            if let (Some(all), Some(weights)) = (&mut e.self_weights, weights) {
                all.push(weights);
            }
        });
        self.windowed = windowed;
        self.caches.steps[layer.layer] = cache;
        tensor
    }
}

impl Executor for Pass<'_, '_> {
    type Tensor = Tensor;

    fn embed(&mut self, layer: &EmbeddingLayer) -> Tensor {
        let config = self.on.engine.model().config();
        let d = config.d_model;
        let cols = if config.combine == Combine::Concatenate { 2 * d } else { d };
        let step = self.step;
        let tokens = step.map_or(self.on.source.tokens(), |step| step.ids.len());
        self.on.make(tokens, cols, |e, y| {
            let mut word = std::mem::take(&mut e.scores);
            word.resize(d, 0.0);
            let rows = y.chunks_exact_mut(cols);
            match step {
                Some(step) => rows
                    .zip(step.ids.iter().zip(step.positions()))
                    .for_each(|(y, (&id, position))| e.embed_one(layer, id, position, y, &mut word)),
                None => {
                    let source = e.source.clone();
                    rows.zip(source.ids().iter().zip(source.positions()))
                        .for_each(|(y, (&id, position))| e.embed_one(layer, id, position, y, &mut word));
                }
            }
            e.scores = word;
        })
    }

    fn linear(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        self.on.affine(x, layer, Activation::Identity)
    }

    fn activated(&mut self, x: Tensor, layer: &LinearLayer) -> Tensor {
        self.on.affine(x, layer, self.on.engine.model().config().activation)
    }

    fn self_attention(&mut self, qkv: Tensor, layer: &SelfAttentionLayer) -> Tensor {
        let engine = self.on.engine;
        let relative = layer.relative.map(|r| Relative { table: engine.vector(r.table), reach: r.reach });
        match self.step {
            None => self.on.whole_attention(qkv, layer, relative),
            Some(step) => self.on.step_attention(qkv, layer, relative, step),
        }
    }

    fn recurrent(&mut self, gates: Tensor, layer: &RecurrentLayer) -> Tensor {
        self.on.states(gates, layer)
    }

    fn unfold(&mut self, x: Tensor, layer: &ConvolutionLayer) -> Tensor {
        self.on.around(x, layer)
    }

    fn memory(&mut self, _: Tensor, layer: &CrossAttentionLayer) -> Tensor {
        Tensor::Memory(layer.layer)
    }

    fn cross_attention(&mut self, q: Tensor, kv: Tensor, _: &CrossAttentionLayer) -> Tensor {
        let engine = self.on.engine;
        let heads = engine.model().config().head_shape(Side::Target);
        let (_, rows, _) = self.on.get(q);
        let none = Lists::default();
        let source = self.step.map_or(&none, |step| &step.source);
        self.on.make(rows, heads.values(), |e, y| {
            let mut scratch = std::mem::take(&mut e.scores);
            let mut wanted = e.cross_weights.take();
            let mut weights = wanted.as_ref().map(|_| vec![0.0; heads.heads * source.rows.len()]);
            let to = MatMut::new(y, rows, heads.values());
            let shape = paged(heads, source, None);
            paged_attention(
                engine.isa(),
                &shape,
                e.mat(q),
                e.mat(kv),
                to,
                weights.as_deref_mut(),
                &mut scratch,
            );
            if let (Some(wanted), Some(weights)) = (&mut wanted, weights) {
                wanted.push(weights);
            }
            (e.scores, e.cross_weights) = (scratch, wanted);
        })
    }

    fn add_norm(&mut self, x: Tensor, branch: Tensor, norm: &NormLayer) -> Tensor {
        self.on.normalise(x, Some(branch), norm)
    }

    fn norm(&mut self, x: Tensor, norm: &NormLayer) -> Tensor {
        self.on.normalise(x, None, norm)
    }

    fn add(&mut self, x: Tensor, branch: Tensor) -> Tensor {
        let (_, rows, cols) = self.on.get(x);
        self.on.make(rows, cols, |e, y| {
            y.copy_from_slice(e.get(x).0);
            add(e.engine.isa(), y, e.get(branch).0);
        })
    }

    fn end_layer(&mut self, x: Tensor) -> Tensor {
        let Tensor::Slot(i) = x else { return x };
        self.on.slots.swap(0, i);
        self.on.used = 1;
        Tensor::Slot(0)
    }
}

/// The numbers of a value, its rows and its columns.
fn value<'a>(slots: &'a [Slot], caches: &'a Caches, x: Tensor) -> (&'a [f32], usize, usize) {
    match x {
        Tensor::Slot(i) => {
            let slot = &slots[i];
            (&slot.data[..slot.rows * slot.cols], slot.rows, slot.cols)
        }
        Tensor::Memory(layer) => {
            let data = &caches.memory[layer];
            (data, caches.memory_rows, data.len() / caches.memory_rows.max(1))
        }
    }
}

fn paged<'a>(shape: HeadShape, lists: &'a Lists, relative: Option<Relative<'a>>) -> Paged<'a> {
    let HeadShape { heads, d_k, d_v } = shape;
    let (offsets, rows) = (&lists.offsets[..], &lists.rows[..]);
    Paged { heads, d_k, d_v, scale: (d_k as f32).sqrt().recip(), offsets, rows, relative }
}
