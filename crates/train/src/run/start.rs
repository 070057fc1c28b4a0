//! The start of a run: everything that is looked at, read and made before the loop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::checkpoint;
use super::prepare::{Data, Folder, config_file, has_run, inputs, languages, load_init};
use super::state::{State, Store};
use super::training_loop::{Clock, Outcome, Progress, Run, save_state};
use super::validate::Validator;
use crate::config::TrainConfig;
use crate::distributed::worker::{self, Command};
use crate::distributed::{Communicator, SingleProcess};
use crate::report::Log;
use crate::step::Trainer;
use regard_core::counter::mix;
use regard_core::formats::{GenerationConfig, Languages, Model, resolve};
use regard_core::model::{ModelConfig, Transformer, Tying};
use regard_core::text::TokenizerPair;
use regard_core::{Error, Isa, Result};
use regard_metrics::Tokenizer;

/// Settings that may change when a run is resumed: nothing that decides the model's shape or which batch comes next.
const CHANGEABLE: [&str; 12] = [
    "threads",
    "precision",
    "steps",
    "epochs",
    "log_every",
    "model.dropout",
    "model.attention_dropout",
    "model.activation_dropout",
    "optimizer.",
    "schedule.",
    "validation.",
    "checkpoints.",
];
/// Those of them that a plan for a time limit has fixed.
const PLANNED: [&str; 5] = ["steps", "epochs", "schedule.", "validation.every", "checkpoints.every"];

/// The settings of the run in `out`, with `change`s where these are possible.
pub fn resumed_config(
    out: &Path,
    change: impl FnOnce(&mut TrainConfig) -> Result<()>,
) -> Result<TrainConfig> {
    let saved = TrainConfig::load(&config_file(out))?;
    let mut config = saved.clone();
    change(&mut config)?;
    config.absolute_paths()?;
    let fits =
        |list: &[&str], key: &str| list.iter().any(|c| key == *c || (c.ends_with('.') && key.starts_with(c)));
    for key in saved.differences(&config) {
        if !fits(&CHANGEABLE, &key) {
            return Err(Error::config(
                key,
                "cannot change in the middle of a run; start another one for that",
            ));
        }
        if saved.minutes.is_some() && fits(&PLANNED, &key) {
            let message = "this run has a time limit and plans its steps itself; start another one for that";
            return Err(Error::config(key, message));
        }
    }
    Ok(config)
}

/// Said before the preparation, which may take long.
const UNKNOWN_LANGUAGES: &str = "Warning: the model's source or target language is unknown, and a server needs both. \
     Set data.source_lang and data.target_lang.";

/// Dropout draws from another stream than the first weights.
pub(crate) fn dropout_seed(config: &TrainConfig) -> u64 {
    mix(config.seed ^ 0x6472_6f70)
}

/// Trains as `config` says into `out`, until it is done or `stop` turns true. With `resume`, goes on where the run in `out` was.
pub fn train(
    config: TrainConfig,
    out: &Path,
    resume: bool,
    isa: Isa,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    run_rank0(Arc::new(SingleProcess), config, out, resume, isa, stop, progress)
}

/// The same on rank 0 of a group, while all others [`run_worker`](crate::run_worker). It alone decides, validates, logs and saves.
pub fn run_rank0(
    group: Arc<dyn Communicator>,
    config: TrainConfig,
    out: &Path,
    resume: bool,
    isa: Isa,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    let started = Instant::now();
    let clock = Box::new(move || started.elapsed().as_secs_f64());
    lead_by(clock, group, config, out, resume, isa, stop, progress)
}

/// The same by any clock.
#[expect(clippy::too_many_arguments)]
pub(super) fn lead_by(
    clock: Clock,
    group: Arc<dyn Communicator>,
    mut config: TrainConfig,
    out: &Path,
    resume: bool,
    isa: Isa,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    config.check()?;
    if let Some(init) = &mut config.data.init {
        *init = resolve(&*init)?;
    }
    config.absolute_paths()?;
    let resume = resume && has_run(out);
    // Before there is a state, nothing of an earlier start is worth keeping.
    let going_on = resume && Store::any(&out.join("checkpoints"));
    let threads =
        config.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let asked_threads = config.threads.replace(threads);
    let choice = config.precision.choose(isa)?;
    config.precision = choice.precision;
    if let Some(note) = &choice.note {
        progress.message(note);
    }
    let init = if going_on { None } else { load_init(&config)? };
    if let Some(model) = &init {
        let ModelConfig { dropout, attention_dropout, activation_dropout, .. } = config.model;
        let loaded = model.transformer.config().clone();
        config.model = ModelConfig { dropout, attention_dropout, activation_dropout, ..loaded };
    }
    let folder = Folder::open(out, resume)?;
    if !going_on {
        let known = init.as_ref().map(|model| model.languages.clone()).unwrap_or_default();
        let Languages { source, target } = languages(&config.data).or(known);
        if source.is_none() || target.is_none() {
            progress.message(UNKNOWN_LANGUAGES);
        }
    }
    let known = match (&init, going_on) {
        (_, true) => Some(TokenizerPair::load(out)?),
        (Some(model), false) => Some(model.tokenizers.clone()),
        (None, false) => None,
    };
    // Looked at before the tokenizer is trained, which may take a while.
    inputs(&config.data)?;
    let data = Data::prepare(&config, &folder, known, threads, progress)?;

    let words = (data.tokenizers.source().size(), data.tokenizers.target().size());
    (config.model.source_vocabulary, config.model.target_vocabulary) = words;
    if !data.tokenizers.is_joint() && config.model.tying == Tying::ThreeWay {
        config.model.tying = Tying::Decoder;
        progress.message("two vocabularies: target embedding and output are tied, the source's stands alone");
    }
    let (bias, generation, known_languages) = match &init {
        _ if going_on => {
            let named = languages(&config.data).target.is_some();
            let of_model = || Model::load(out).map(|model| model.languages).unwrap_or_default();
            let known = if named { Languages::default() } else { of_model() };
            (Model::output_bias(out, words.1)?, GenerationConfig::default(), known)
        }
        Some(model) => (
            model.transformer.output_bias().map(<[f32]>::to_vec),
            model.generation.clone(),
            model.languages.clone(),
        ),
        None => Default::default(),
    };
    let all_languages = languages(&config.data).or(known_languages);
    let told = TrainConfig { threads: asked_threads, ..config.clone() };
    worker::open(&*group, told, &data, &folder, &bias)?;
    let transformer = Transformer::new(config.model.clone())?.with_output_bias(bias)?;
    let weights = match init {
        Some(model) if model.weights.len() == transformer.parameters().len() => model.weights,
        Some(model) => {
            let (has, needs) = (model.weights.len(), transformer.parameters().len());
            let message = format!("the model has {has} weights and its tokenizers ask for {needs}");
            return Err(Error::config("data.init", message));
        }
        None => transformer.parameters().initialise(config.seed),
    };
    let length = weights.len();
    progress.message(&format!(
        "a model of {:.1} million weights on {threads} core{} ({isa}, {})",
        length as f64 / 1e6,
        if threads == 1 { "" } else { "s" },
        choice.products.name()
    ));
    let seed = dropout_seed(&config);
    let mut trainer = Trainer::new(transformer, weights, config.step_settings(), isa, threads, seed)?
        .with_products(choice.products);
    let (mut store, found) = Store::open(&folder.checkpoints, length, &mut |text| progress.message(text))?;
    let mut ema = config.optimizer.ema.map(|_| trainer.weights().to_vec());
    let mut state = State { seed: config.seed, corpus: data.hash, ..State::default() };
    match found {
        Some((saved, vectors)) if going_on => {
            if saved.corpus != data.hash {
                let message = "the corpus is not the one that this run began with; give the same files again";
                return Err(Error::file(out, message));
            }
            let mut vectors = vectors.into_iter();
            let mut next = || vectors.next().unwrap_or_default();
            let (weights, moments) = (next(), (next(), next()));
            let saved_ema = next();
            ema = ema.map(|_| if saved_ema.is_empty() { weights.clone() } else { saved_ema });
            trainer.restore(saved.step, weights, moments)?;
            state = saved;
            progress.message(&format!("continuing after step {} of epoch {}", state.step, state.epoch + 1));
        }
        None if going_on => {
            let message = "no checkpoint of this run is whole; start another one";
            return Err(Error::file(&folder.checkpoints, message));
        }
        _ => {
            let model = Model {
                transformer: trainer.model().clone(),
                weights: trainer.weights().to_vec(),
                tokenizers: data.tokenizers.clone(),
                languages: all_languages.clone(),
                generation,
            };
            checkpoint::write_text(&config_file(out), &config.to_toml())?;
            model.save(out, config.checkpoints.store)?;
        }
    }
    checkpoint::write_text(&config_file(out), &config.to_toml())?;
    trainer.join(group, config.optimizer.wire, config.optimizer.overlap)?;
    let (ranks, replicas) = (trainer.group().size(), trainer.replicas());
    if ranks > 1 {
        progress.message(&format!("{ranks} ranks, which split each batch into {replicas} parts"));
    }
    let tokenizer = all_languages.target.as_deref().map_or(Default::default(), Tokenizer::for_language);
    if let Some(code) = all_languages.target.filter(|_| tokenizer != Tokenizer::default()) {
        progress
            .message(&format!("validation BLEU: tokenizer {tokenizer}, chosen for target language {code}"));
    }
    let (validator, dropped) = Validator::new(
        data.valid.clone(),
        &data.tokenizers,
        (config.validation.beam, config.validation.samples, config.filters.max_tokens),
        tokenizer,
        config.model.target_pad(),
        isa,
        threads,
    )?;
    if dropped > 0 {
        progress.message(&format!("{dropped} validation pairs have too many tokens and are left out"));
    }
    if validator.len() == 0 {
        return Err(Error::config("filters.max_tokens", "leaves no validation pair"));
    }
    let mut log = Log::open(&folder.logs, state.log_length, state.step)?;
    if state.step == 0 {
        log.text("settings", 0, &format!("```\n{}```", config.to_toml()))?;
        save_state(&mut store, &mut log, &mut state, &trainer, ema.as_deref())?;
    }
    let before = state.all_seconds;
    let told_steps = state.plan.as_ref().map_or(0, |plan| plan.steps);
    let mut run = Run {
        config,
        folder,
        data,
        trainer,
        ema,
        validator,
        store,
        log,
        state,
        stop,
        progress,
        clock,
        before,
        asked_to_stop: false,
        told_steps,
    };
    let outcome = run.go()?;
    Command::End.broadcast(&**run.trainer.group());
    Ok(outcome)
}
