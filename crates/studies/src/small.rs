//! A small translation model on the built-in corpus, trained like `regard quickstart`, so that a
//! study can train several within minutes.

use crate::{Scale, Setup};
use regard_core::batch::Batch;
use regard_core::decode::{SearchOptions, search};
use regard_core::model::{ModelConfig, Preset, Transformer};
use regard_core::text::{TextSample, Tokenizer, TokenizerSettings};
use regard_core::{Error, Result};
use regard_metrics::{Bleu, Metric};
use regard_sample_corpus as builtin;
use regard_train::{BatchSettings, plan_epoch};
use regard_train::{Schedule, ScheduleKind, StepReport, StepSettings, Trainer};
use std::time::Instant;

/// Pairs of id sequences, each with its end token.
pub type Pairs = Vec<(Vec<u32>, Vec<u32>)>;

/// The maximum number of target tokens in a batch.
const BATCH: usize = 1024;
/// The peak learning rate.
const PEAK: f64 = 0.003;

/// The built-in corpus as token ids, and its held-out part.
#[derive(Debug)]
pub struct Task {
    /// The tokenizer, shared by both languages.
    pub tokenizer: Tokenizer,
    /// The training pairs.
    pub train: Pairs,
    /// Held-out sentences, with word combinations that occur in no training pair, and their
    /// translations.
    pub held_out: Vec<(String, String)>,
}

impl Task {
    /// The corpus of `regard quickstart`; a few hundred pairs at smoke scale.
    pub fn new(setup: &Setup<'_>) -> Result<Self> {
        setup.progress("making the built-in corpus and its vocabulary");
        let corpus = builtin::corpus(builtin::DEFAULT_SEED, setup.choose(360, 30_000, 30_000));
        let mut sample = TextSample::default();
        sample.extend(corpus.train.iter().flat_map(|(source, target)| [source, target]));
        let settings =
            TokenizerSettings { size: Some(setup.choose(400, 1200, 1200)), ..TokenizerSettings::default() };
        let tokenizer = Tokenizer::train(&[&sample], &settings)?;
        let train = encode(&tokenizer, &corpus.train, setup.threads)?;
        Ok(Task { tokenizer, train, held_out: corpus.held_out })
    }

    /// The model of `regard quickstart`, half as deep as `tiny`; a much smaller one at smoke scale.
    /// Studies modify it to compare variants.
    pub fn config(&self, scale: Scale) -> ModelConfig {
        let mut config = Preset::Tiny.config(self.tokenizer.size());
        (config.encoder_layers, config.decoder_layers) = (2, 2);
        if scale == Scale::Smoke {
            (config.d_model, config.d_ff) = (16, 32);
        }
        config
    }

    /// Trains a model on the training pairs; see [`fit`].
    pub fn fit(&self, setup: &Setup<'_>, label: &str, config: ModelConfig, steps: u64) -> Result<Trained> {
        fit(setup, label, config, &self.train, steps)
    }

    /// The token ids of sentence pairs.
    pub fn encode(&self, pairs: &[(String, String)], threads: usize) -> Result<Pairs> {
        encode(&self.tokenizer, pairs, threads)
    }

    /// Translates sentences with a model.
    pub fn translate(&self, setup: &Setup<'_>, trained: &Trained, texts: &[&str]) -> Result<Vec<String>> {
        let sources = self.tokenizer.encode_batch(texts, setup.threads)?;
        let (model, weights) = (&trained.model, &trained.weights);
        let found = search(model, weights, &sources, &SearchOptions::default(), setup.isa, setup.threads)?;
        let text = |best: &Vec<_>| {
            best.first()
                .map_or_else(String::new, |h: &regard_core::decode::Hypothesis| self.tokenizer.decode(&h.ids))
        };
        Ok(found.iter().map(text).collect())
    }

    /// BLEU of a model on sentence pairs, such as [`held_out`](Self::held_out).
    pub fn bleu(&self, setup: &Setup<'_>, trained: &Trained, pairs: &[(String, String)]) -> Result<f64> {
        let sources: Vec<&str> = pairs.iter().map(|(source, _)| source.as_str()).collect();
        let references: Vec<String> = pairs.iter().map(|(_, target)| target.clone()).collect();
        let translations = self.translate(setup, trained, &sources)?;
        Ok(Bleu::default().corpus(&translations, &[references]).map_err(Error::other)?.score)
    }
}

fn encode(tokenizer: &Tokenizer, pairs: &[(String, String)], threads: usize) -> Result<Pairs> {
    let side = |side: fn(&(String, String)) -> &str| {
        tokenizer.encode_batch(&pairs.iter().map(side).collect::<Vec<_>>(), threads)
    };
    Ok(side(|pair| &pair.0)?.into_iter().zip(side(|pair| &pair.1)?).collect())
}

/// A trained model.
#[derive(Debug)]
pub struct Trained {
    /// Its layers.
    pub model: Transformer,
    /// Its weights.
    pub weights: Vec<f32>,
    /// The loss per target token at each step, with label smoothing, in nats.
    pub losses: Vec<f64>,
    /// The number of target tokens trained on.
    pub tokens: usize,
    /// The training time in seconds.
    pub seconds: f64,
}

impl Trained {
    /// The training speed in target tokens per second.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// Trains a model on pairs of ids for this many steps, with batches of about a thousand tokens and
/// a learning rate that rises over the first eighth and then falls linearly to 0. `label` names the
/// model in progress messages.
pub fn fit(
    setup: &Setup<'_>,
    label: &str,
    config: ModelConfig,
    pairs: &[(Vec<u32>, Vec<u32>)],
    steps: u64,
) -> Result<Trained> {
    let model = Transformer::new(config)?;
    let weights = model.parameters().initialise(setup.seed);
    let settings = StepSettings::default();
    let mut trainer = Trainer::new(model, weights, settings, setup.isa, setup.threads, setup.seed)?;
    let mut batches = Batches::new(pairs, trainer.model().config().start(), setup.seed)?;
    let schedule =
        Schedule { kind: ScheduleKind::Linear, peak: Some(PEAK), warmup: (steps / 8).max(1), max_sum: None };
    let (mut losses, mut tokens) = (Vec::new(), 0);
    let start = Instant::now();
    let after = |step: u64, report: &StepReport| {
        losses.push(report.loss);
        tokens += report.target_tokens;
        if step.is_multiple_of((steps / 4).max(1)) {
            setup.progress(format!("{label}: step {step} of {steps}, loss {:.2}", report.loss));
        }
    };
    trainer.fit(schedule, steps, || batches.next_batch(), after)?;
    let seconds = start.elapsed().as_secs_f64();
    let (model, weights) = (trainer.model().clone(), trainer.weights().to_vec());
    Ok(Trained { model, weights, losses, tokens, seconds })
}

/// An endless sequence of training batches, epoch after epoch.
#[derive(Debug)]
pub struct Batches<'a> {
    pairs: &'a [(Vec<u32>, Vec<u32>)],
    lengths: Vec<(u32, u32)>,
    start: u32,
    seed: u64,
    epoch: u64,
    /// The remaining batches of the epoch in reverse order.
    plan: Vec<Vec<u32>>,
}

impl<'a> Batches<'a> {
    /// Batches of these pairs; `start` is the decoder's first input token.
    pub fn new(pairs: &'a [(Vec<u32>, Vec<u32>)], start: u32, seed: u64) -> Result<Self> {
        if pairs.is_empty() {
            let message = "there are no pairs to train on".into();
            return Err(Error::Input { operation: "batches of a study", message });
        }
        let lengths = pairs.iter().map(|(s, t)| (s.len() as u32, t.len() as u32)).collect();
        Ok(Batches { pairs, lengths, start, seed, epoch: 0, plan: Vec::new() })
    }

    /// The next batch.
    pub fn next_batch(&mut self) -> Result<Batch> {
        let batch = loop {
            if let Some(batch) = self.plan.pop() {
                break batch;
            }
            let settings = BatchSettings { max_tokens: BATCH, ..BatchSettings::default() };
            self.plan = plan_epoch(&self.lengths, &settings, self.seed, self.epoch);
            self.epoch += 1;
        };
        let pair = |i: u32| {
            let (source, target) = &self.pairs[i as usize];
            (&source[..], &target[..])
        };
        Batch::new(batch.into_iter().map(pair), self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_model_learns_and_translates() {
        let setup = Setup::new(Scale::Smoke);
        let task = Task::new(&setup).unwrap();
        assert!(!task.held_out.is_empty());
        let trained = task.fit(&setup, "small", task.config(setup.scale), 12).unwrap();
        assert_eq!(trained.losses.len(), 12);
        assert!(trained.losses[11] < trained.losses[0], "{:?}", trained.losses);
        assert!(trained.tokens > 0 && trained.tokens_per_second() > 0.0);
        let bleu = task.bleu(&setup, &trained, &task.held_out).unwrap();
        assert!((0.0..=100.0).contains(&bleu), "{bleu}");
        // The same seed gives the same model.
        let again = task.fit(&setup, "small", task.config(setup.scale), 12).unwrap();
        assert_eq!(trained.weights, again.weights);
    }

    #[test]
    fn batches_go_on_and_nothing_is_an_error() {
        let pairs: Pairs = (0..5).map(|i| (vec![i + 1, 0], vec![i + 2, 0])).collect();
        let mut batches = Batches::new(&pairs, 9, 1).unwrap();
        for _ in 0..3 {
            assert_eq!(batches.next_batch().unwrap().pairs(), 5);
        }
        assert!(Batches::new(&[], 9, 1).is_err());
    }
}
