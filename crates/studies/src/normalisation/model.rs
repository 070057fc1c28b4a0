//! A Transformer with another normalisation in place of its layer norms: an executor that wraps
//! that of the tape.

use super::batch_norm::{BatchNorm, Source, Statistics};
use crate::Setup;
use crate::small::Pairs;
use regard_core::batch::{Batch, Packed};
use regard_core::model::{
    ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, ModelConfig, NormLayer,
    RecurrentLayer, SelfAttentionLayer, SsruLayer, Transformer,
};
use regard_core::{Key, Result};
use regard_train::autograd::{Tape, Var};
use regard_train::{AdamSettings, Dropouts, FitSettings, LossSettings, StepSettings, Taped, fit};
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Norm {
    /// Each token over its own components.
    Layer,
    /// Each column over the tokens of the batch.
    Batch,
    /// Each column over the tokens of the batch and the padding that would make all sentences
    /// equally long.
    Padded,
}

impl Norm {
    /// All kinds.
    pub(super) const ALL: [Norm; 3] = [Norm::Layer, Norm::Batch, Norm::Padded];

    /// The name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Norm::Layer => "layer norm",
            Norm::Batch => "batch norm",
            Norm::Padded => "batch norm, padding counted",
        }
    }
}

/// The statistics that a batch norm uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatisticsKind {
    /// Those of the batch, as in training.
    Batch,
    /// Those kept from training, as in inference.
    Running,
}

/// The weight of a new batch in the running statistics.
const MOMENTUM: f32 = 0.1;

/// The peak learning rate.
const PEAK: f64 = 0.002;

/// The tape with batch norms.
struct BatchNormExecutor<'a> {
    inner: Taped<'a>,
    norm: Norm,
    epsilon: f32,
    width: usize,
    /// The number of padding rows of the source and of the target.
    zeros: [usize; 2],
    /// The number of sides embedded so far.
    sides: usize,
    /// At inference, the running statistics of each norm, in execution order.
    running: Option<&'a [Arc<Statistics>]>,
    /// The batch statistics of each norm.
    batch_statistics: Vec<Statistics>,
}

/// The number of padding rows that a padded batch would have.
fn padding(tokens: &Packed) -> usize {
    let longest = (0..tokens.sentences()).map(|i| tokens.length(i)).max().unwrap_or(0);
    longest * tokens.sentences() - tokens.tokens()
}

/// The fraction of a padded batch that is padding.
pub(super) fn padding_share(tokens: &Packed) -> f64 {
    let zeros = padding(tokens);
    zeros as f64 / (zeros + tokens.tokens()).max(1) as f64
}

impl BatchNormExecutor<'_> {
    fn batch_norm(&mut self, x: Var, norm: &NormLayer) -> Var {
        let zeros = match self.norm {
            Norm::Padded => self.zeros[self.sides.clamp(1, 2) - 1],
            _ => 0,
        };
        let source = match self.running.and_then(|running| running.get(self.batch_statistics.len())) {
            Some(running) => Source::Running(running.clone()),
            None => Source::Batch { zeros },
        };
        self.batch_statistics.push(Statistics::of(self.inner.value(x), self.width, zeros));
        let beta = norm.beta.expect("the models of this study have layer norms");
        let (gamma, epsilon) = (norm.gamma, self.epsilon);
        self.inner.push(BatchNorm { x, gamma, beta, epsilon, source })
    }
}

impl Executor for BatchNormExecutor<'_> {
    type Tensor = Var;

    fn embed(&mut self, layer: &EmbeddingLayer) -> Var {
        self.sides += 1;
        self.inner.embed(layer)
    }

    fn linear(&mut self, x: Var, layer: &LinearLayer) -> Var {
        self.inner.linear(x, layer)
    }

    fn activated(&mut self, x: Var, layer: &LinearLayer) -> Var {
        self.inner.activated(x, layer)
    }

    fn self_attention(&mut self, qkv: Var, layer: &SelfAttentionLayer) -> Var {
        self.inner.self_attention(qkv, layer)
    }

    fn recurrent(&mut self, gates: Var, layer: &RecurrentLayer) -> Var {
        self.inner.recurrent(gates, layer)
    }

    fn ssru(&mut self, candidates: Var, forget: Var, layer: &SsruLayer) -> Var {
        self.inner.ssru(candidates, forget, layer)
    }

    fn unfold(&mut self, x: Var, layer: &ConvolutionLayer) -> Var {
        self.inner.unfold(x, layer)
    }

    fn memory(&mut self, memory: Var, layer: &CrossAttentionLayer) -> Var {
        self.inner.memory(memory, layer)
    }

    fn cross_attention(&mut self, q: Var, kv: Var, layer: &CrossAttentionLayer) -> Var {
        self.inner.cross_attention(q, kv, layer)
    }

    fn add_norm(&mut self, x: Var, branch: Var, norm: &NormLayer) -> Var {
        if self.norm == Norm::Layer {
            return self.inner.add_norm(x, branch, norm);
        }
        let sum = self.inner.add(x, branch);
        self.batch_norm(sum, norm)
    }

    fn norm(&mut self, x: Var, norm: &NormLayer) -> Var {
        if self.norm == Norm::Layer {
            return self.inner.norm(x, norm);
        }
        self.batch_norm(x, norm)
    }

    fn add(&mut self, x: Var, branch: Var) -> Var {
        self.inner.add(x, branch)
    }

    fn multiply(&mut self, gate: Var, x: Var) -> Var {
        self.inner.multiply(gate, x)
    }

    fn scale(&mut self, x: Var, factor: f32) -> Var {
        self.inner.scale(x, factor)
    }
}

/// A model with one kind of normalisation.
pub(super) struct Model {
    pub(super) norm: Norm,
    transformer: Transformer,
    weights: Vec<f32>,
    running: Vec<Arc<Statistics>>,
    /// The loss per target token at each training step.
    pub(super) losses: Vec<f64>,
}

/// The results of a pass over a batch.
struct Pass {
    /// The output of the decoder `[m, d]`.
    out: Vec<f32>,
    /// The loss of each target token.
    losses: Vec<f32>,
    batch_statistics: Vec<Statistics>,
}

/// The inputs of a training pass: gradients, and the random numbers for dropout.
struct Training<'a> {
    gradients: &'a mut [f32],
    key: Key,
}

impl Model {
    fn new(setup: &Setup<'_>, norm: Norm, config: ModelConfig) -> Result<Self> {
        let transformer = Transformer::new(config)?;
        let weights = transformer.parameters().initialise(setup.seed);
        Ok(Model { norm, transformer, weights, running: Vec::new(), losses: Vec::new() })
    }

    fn pass(
        &self,
        (tape, weights): (&mut Tape, &[f32]),
        batch: &Batch,
        kind: StatisticsKind,
        training: Option<Training<'_>>,
    ) -> Result<Pass> {
        let settings = match &training {
            Some(_) => {
                let smoothing = StepSettings::default().label_smoothing;
                LossSettings { smoothing, scale: 1.0 / batch.target_tokens() as f32, r_drop: None }
            }
            None => LossSettings::PLAIN,
        };
        let dropouts = training.as_ref().map(|t| Dropouts { key: t.key });
        let mut gradients = training.map(|t| t.gradients);
        tape.clear();
        let sides = (&batch.source, &batch.input);
        let inner = Taped::new(tape, &self.transformer, weights, gradients.as_deref_mut(), sides, dropouts)?;
        let config = self.transformer.config();
        let mut e = BatchNormExecutor {
            inner,
            norm: self.norm,
            epsilon: config.norm_epsilon,
            width: config.d_model,
            zeros: [padding(&batch.source), padding(&batch.input)],
            sides: 0,
            running: (kind == StatisticsKind::Running).then_some(&self.running),
            batch_statistics: Vec::new(),
        };
        let memory = self.transformer.encode(&mut e);
        let x = self.transformer.decode(&mut e, memory);
        let out = e.inner.value(x).to_vec();
        let losses = e.inner.loss(&self.transformer, x, batch.output.clone(), settings);
        let batch_statistics = e.batch_statistics;
        let pass = Pass { out, losses: tape.value(losses).data().to_vec(), batch_statistics };
        if let Some(gradients) = gradients {
            tape.backward(weights, gradients, losses, &[]);
            tape.clear_grads();
        }
        Ok(pass)
    }

    /// The loss of each target token of a batch.
    pub(super) fn token_losses(
        &self,
        setup: &Setup<'_>,
        batch: &Batch,
        kind: StatisticsKind,
    ) -> Result<Vec<f32>> {
        let mut tape = Tape::new(setup.isa, setup.threads);
        Ok(self.pass((&mut tape, &self.weights), batch, kind, None)?.losses)
    }

    /// The batch statistics of each batch norm, in execution order.
    pub(super) fn batch_statistics(&self, setup: &Setup<'_>, batch: &Batch) -> Result<Vec<Statistics>> {
        let mut tape = Tape::new(setup.isa, setup.threads);
        Ok(self.pass((&mut tape, &self.weights), batch, StatisticsKind::Batch, None)?.batch_statistics)
    }

    /// The number of encoder layers.
    pub(super) fn encoder_layers(&self) -> usize {
        self.transformer.config().encoder_layers
    }

    /// The running statistics of each batch norm.
    pub(super) fn running(&self) -> &[Arc<Statistics>] {
        &self.running
    }

    /// Trains a model with this normalisation on batches of `sentences` random pairs.
    pub(super) fn train(
        setup: &Setup<'_>,
        norm: Norm,
        config: ModelConfig,
        pairs: &Pairs,
        (steps, sentences): (u64, usize),
    ) -> Result<Self> {
        let mut model = Model::new(setup, norm, config)?;
        // The statistics must cover the whole batch, so there is only one replica.
        let settings = FitSettings {
            steps,
            peak: PEAK,
            warmup: (steps / 8).max(1),
            adam: AdamSettings::default(),
            replicas: 1,
            cores: setup.threads,
        };
        let batch_statistics = Mutex::new(Vec::new());
        let loss = |pass: regard_train::Pass<'_>| {
            let key = Key::new(setup.seed).child(pass.step);
            let batch = ragged(key, pairs, sentences, model.transformer.config().start())?;
            let training = Training { gradients: pass.gradients, key: key.child(1) };
            let found =
                model.pass((pass.tape, pass.weights), &batch, StatisticsKind::Batch, Some(training))?;
            *batch_statistics.lock().unwrap_or_else(PoisonError::into_inner) = found.batch_statistics;
            Ok(mean(&found.losses))
        };
        let (mut running, mut losses) = (Vec::new(), Vec::new());
        let after = |step: u64, loss: f64, _: &[f32]| {
            update_running(
                &mut running,
                std::mem::take(&mut *batch_statistics.lock().unwrap_or_else(PoisonError::into_inner)),
            );
            losses.push(loss);
            if step.is_multiple_of((steps / 4).max(1)) {
                setup.progress(format!("{}: step {step} of {steps}", norm.name()));
            }
            Ok(())
        };
        let weights = fit(&settings, setup.isa, model.weights.clone(), loss, after)?;
        (model.weights, model.running, model.losses) = (weights, running, losses);
        Ok(model)
    }

    /// Greedy decoding with the running statistics; returns ids without the end token.
    pub(super) fn greedy(&self, setup: &Setup<'_>, sources: &[Vec<u32>], end: u32) -> Result<Vec<Vec<u32>>> {
        let mut tape = Tape::new(setup.isa, setup.threads);
        let start = self.transformer.config().start();
        let mut found: Vec<Vec<u32>> = vec![Vec::new(); sources.len()];
        let mut open: Vec<usize> = (0..sources.len()).collect();
        let longest = sources.iter().map(Vec::len).max().unwrap_or(0) * 2 + 10;
        for _ in 0..longest {
            if open.is_empty() {
                break;
            }
            // The last target token is a dummy, because the decoder does not read it.
            let targets: Vec<Vec<u32>> = open.iter().map(|&i| [&found[i][..], &[end]].concat()).collect();
            let pairs = open.iter().zip(&targets).map(|(&i, target)| (&sources[i][..], &target[..]));
            let batch = Batch::new(pairs, start)?;
            let out = self.pass((&mut tape, &self.weights), &batch, StatisticsKind::Running, None)?.out;
            let next: Vec<u32> =
                batch.input.offsets()[1..].iter().map(|end| self.best_word(&out, end - 1)).collect();
            for (&i, &word) in open.iter().zip(&next) {
                if word != end {
                    found[i].push(word);
                }
            }
            let mut next = next.iter();
            open.retain(|_| next.next() != Some(&end));
        }
        Ok(found)
    }

    /// The token whose row of the output matrix fits a row of the decoder's output best; padding is
    /// excluded.
    fn best_word(&self, out: &[f32], row: usize) -> u32 {
        let d = self.transformer.config().d_model;
        let x = &out[row * d..(row + 1) * d];
        let table = &self.weights[self.transformer.output().range()];
        let score = |word: &[f32]| word.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
        let words = table.chunks_exact(d).take(self.transformer.config().output_words());
        let scores: Vec<f32> = words.map(score).collect();
        (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0) as u32
    }
}

/// Updates the running statistics with those of a batch.
fn update_running(running: &mut Vec<Arc<Statistics>>, batch_statistics: Vec<Statistics>) {
    if running.is_empty() {
        *running = batch_statistics.into_iter().map(Arc::new).collect();
        return;
    }
    let mix = |old: &[f32], new: &[f32]| -> Vec<f32> {
        old.iter().zip(new).map(|(old, new)| old + MOMENTUM * (new - old)).collect()
    };
    for (running, batch_statistics) in running.iter_mut().zip(&batch_statistics) {
        let mean = mix(&running.mean, &batch_statistics.mean);
        *running =
            Arc::new(Statistics { mean, variance: mix(&running.variance, &batch_statistics.variance) });
    }
}

/// The mean of losses.
pub(super) fn mean(losses: &[f32]) -> f64 {
    losses.iter().map(|x| f64::from(*x)).sum::<f64>() / losses.len().max(1) as f64
}

/// A batch of random pairs, regardless of their lengths.
pub(super) fn ragged(key: Key, pairs: &Pairs, sentences: usize, start: u32) -> Result<Batch> {
    let pick = |i: usize| (key.uniform(i as u32) * pairs.len() as f32) as usize % pairs.len().max(1);
    let picked = (0..sentences).filter_map(|i| pairs.get(pick(i)));
    Batch::new(picked.map(|(s, t)| (&s[..], &t[..])), start)
}
