//! The start of a run: everything that is checked, read and created before the training loop.

use super::checkpoint::write_text;
use super::data::Data;
use super::folder::{Folder, config_file, has_run};
use super::init::load_init;
use super::progress::{Outcome, Progress};
use super::state::{State, Store};
use super::texts::{inputs, languages};
use super::training_loop::{Clock, Run, save_state};
use super::validate::Validator;
use crate::config::{Choice, TrainConfig, choose_dtype};
use crate::distributed::{Communicator, Workers};
use crate::optimizer::MovingAverage;
use crate::report::{CardCommands, Log, Trend};
use crate::step::Trainer;
use regard_core::decode::Shortlist;
use regard_core::formats::{GenerationConfig, Languages, Model, load_tokenizers, resolve};
use regard_core::model::{ModelConfig, Transformer, Tying};
use regard_core::random::mix;
use regard_core::text::TokenizerPair;
use regard_core::{Error, Isa, Result};
use regard_metrics::Tokenizer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A warning before the preparation, which may take long.
const UNKNOWN_LANGUAGES: &str = "Warning: the model's source or target language is unknown, and a server needs both. \
     Set data.source_lang and data.target_lang.";

/// Dropout uses a different stream than the initial weights.
pub(crate) fn dropout_seed(config: &TrainConfig) -> u64 {
    mix(config.seed ^ 0x6472_6f70)
}

/// Trains with `config` into `out`, until the run is complete or `stop` becomes true. With
/// `resume`, continues the run in `out`.
pub fn train(
    config: TrainConfig,
    out: &Path,
    resume: bool,
    isa: Isa,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    Start::new(out, resume, isa, stop, progress).run(config)
}

/// The output folder of a run, and everything else about it that is not a setting. [`train`] is a
/// start in a single process.
pub struct Start<'a> {
    pub(crate) clock: Clock,
    pub(crate) workers: Workers,
    pub(crate) out: &'a Path,
    pub(crate) resume: bool,
    pub(crate) isa: Isa,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) progress: &'a mut dyn Progress,
    pub(crate) commands: CardCommands,
}

/// What a run starts from.
enum Origin {
    /// New weights.
    New,
    /// The weights of this model.
    Init(Box<Model>),
    /// The last checkpoint of this run.
    Checkpoint,
}

impl Origin {
    fn is_checkpoint(&self) -> bool {
        matches!(self, Origin::Checkpoint)
    }

    /// Tokenizers that are known before the corpus is read.
    fn tokenizers(&self, out: &Path) -> Result<Option<TokenizerPair>> {
        Ok(match self {
            Origin::New => None,
            Origin::Init(model) => Some(model.tokenizers.clone()),
            Origin::Checkpoint => Some(load_tokenizers(out)?),
        })
    }
}

/// The contents of a model folder besides weights and tokenizers.
#[derive(Default)]
struct Extras {
    bias: Option<Vec<f32>>,
    generation: GenerationConfig,
    languages: Languages,
    shortlist: Option<Arc<Shortlist>>,
}

impl Extras {
    /// Those of the model that the run starts from; the languages of its text take precedence.
    fn of(origin: &Origin, config: &TrainConfig, out: &Path) -> Result<Self> {
        let own = languages(&config.data);
        let known = match origin {
            Origin::New => Extras::default(),
            Origin::Init(model) => Extras {
                bias: model.transformer.output_bias().map(<[f32]>::to_vec),
                generation: model.generation.clone(),
                languages: model.languages.clone(),
                shortlist: model.shortlist.clone(),
            },
            Origin::Checkpoint => Extras {
                bias: Model::output_bias(out, config.model.target_vocabulary)?,
                generation: GenerationConfig::default(),
                languages: match own.target {
                    Some(_) => Languages::default(),
                    None => Model::load(out).map(|model| model.languages).unwrap_or_default(),
                },
                // Already in the folder.
                shortlist: None,
            },
        };
        Ok(Extras { languages: own.or(known.languages), ..known })
    }
}

/// The weights of the model to start from, if a share of them is kept. A resumed run reads them
/// again.
fn initial_weights(origin: &Origin, config: &TrainConfig) -> Result<Option<Vec<f32>>> {
    if config.checkpoints.init_share == 0.0 {
        return Ok(None);
    }
    match origin {
        Origin::New => Ok(None),
        Origin::Init(model) => Ok(Some(model.weights.clone())),
        Origin::Checkpoint => Ok(load_init(config)?.map(|model| model.weights)),
    }
}

impl<'a> Start<'a> {
    /// A run into `out` in this process alone; `resume`, `stop` and `progress` as in [`train`].
    pub fn new(
        out: &'a Path,
        resume: bool,
        isa: Isa,
        stop: &'a AtomicBool,
        progress: &'a mut dyn Progress,
    ) -> Self {
        let started = Instant::now();
        let clock = Box::new(move || started.elapsed().as_secs_f64());
        let commands = CardCommands::default();
        Start { clock, workers: Workers::none(), out, resume, isa, stop, progress, commands }
    }

    /// Adds commands to show on the model card.
    pub fn with_commands(self, commands: CardCommands) -> Self {
        Start { commands, ..self }
    }

    /// Runs as rank 0 of a group, while all other ranks run [`run_worker`](crate::run_worker). Only
    /// rank 0 decides, validates, logs and saves.
    pub fn with_communicator(self, communicator: Arc<dyn Communicator>) -> Self {
        Start { workers: Workers::new(communicator), ..self }
    }

    /// Trains with `config` until the run is complete or stopped.
    pub fn run(mut self, mut config: TrainConfig) -> Result<Outcome> {
        config.check()?;
        if let Some(init) = &mut config.data.init {
            *init = resolve(&*init)?;
        }
        config.absolute_paths()?;
        let resume = self.resume && has_run(self.out);
        let threads =
            config.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let asked_threads = config.threads.replace(threads);
        let choice = self.choose_precision(&mut config)?;
        let origin = self.find_origin(&mut config, resume)?;
        let folder = Folder::open(self.out, resume)?;
        let data = self.prepare_data(&mut config, &folder, &origin, threads)?;
        let extras = Extras::of(&origin, &config, self.out)?;
        let told = TrainConfig { threads: asked_threads, ..config.clone() };
        self.workers.start(told, &data, &folder, &extras.bias)?;

        let initial = initial_weights(&origin, &config)?;
        let going_on = origin.is_checkpoint();
        let mut trainer = self.make_trainer(&config, origin, extras.bias.clone(), &choice, threads)?;
        let (mut store, mut state, ema) = if going_on {
            self.continue_from(&config, &folder, &data, &mut trainer)?
        } else {
            self.begin(&config, &folder, &data, &trainer, &extras)?
        };
        write_text(&config_file(self.out), &config.to_toml())?;
        if let Some(message) = self.workers.join(&mut trainer, &config)? {
            self.progress.message(&message);
        }
        let validator = self.make_validator(&config, &data, extras.languages.target.clone(), threads)?;
        let mut log = Log::open(&folder.logs, state.log_length, state.step)?;
        if state.step == 0 {
            log.text("settings", 0, &format!("```\n{}```", config.to_toml()))?;
            let ema = ema.as_ref().map(MovingAverage::weights);
            save_state(&mut store, &mut log, &mut state, &trainer, ema)?;
        }
        let Start { clock, workers, stop, progress, commands, .. } = self;
        let mut run = Run {
            before: state.all_seconds,
            reported_steps: state.plan.as_ref().map_or(0, |plan| plan.steps),
            config,
            folder,
            data,
            trainer,
            workers,
            ema,
            initial,
            validator,
            store,
            log,
            state,
            stop,
            progress,
            clock,
            asked_to_stop: false,
            languages: extras.languages,
            commands,
            reported_trend: Trend::Unknown,
        };
        let outcome = run.run()?;
        run.workers.end();
        Ok(outcome)
    }

    /// Chooses the number format, and reports it if it differs from the setting.
    fn choose_precision(&mut self, config: &mut TrainConfig) -> Result<Choice> {
        let choice = choose_dtype(config.precision, self.isa)?;
        config.precision = Some(choice.dtype);
        if let Some(note) = &choice.note {
            self.progress.message(note);
        }
        Ok(choice)
    }

    /// What the run starts from; a model to start from determines the shape.
    fn find_origin(&mut self, config: &mut TrainConfig, resume: bool) -> Result<Origin> {
        // Without a saved state, nothing of an earlier start is worth keeping.
        if resume && Store::any(&self.out.join("checkpoints")) {
            return Ok(Origin::Checkpoint);
        }
        let Some(model) = load_init(config)? else { return Ok(Origin::New) };
        let ModelConfig { dropout, attention_dropout, activation_dropout, .. } = config.model;
        let loaded = model.transformer.config().clone();
        config.model = ModelConfig { dropout, attention_dropout, activation_dropout, ..loaded };
        Ok(Origin::Init(Box::new(model)))
    }

    /// Prepares tokenizers, corpus and validation pairs; sets the vocabulary size of the model.
    fn prepare_data(
        &mut self,
        config: &mut TrainConfig,
        folder: &Folder,
        origin: &Origin,
        threads: usize,
    ) -> Result<Data> {
        if !origin.is_checkpoint() {
            let known = match origin {
                Origin::Init(model) => model.languages.clone(),
                _ => Languages::default(),
            };
            let Languages { source, target } = languages(&config.data).or(known);
            if source.is_none() || target.is_none() {
                self.progress.message(UNKNOWN_LANGUAGES);
            }
        }
        let known = origin.tokenizers(self.out)?;
        // Check the inputs before training the tokenizer, which may take a while.
        inputs(&config.data)?;
        let data = Data::prepare(config, folder, known, threads, self.progress)?;
        let words = (data.tokenizers.source().size(), data.tokenizers.target().size());
        // Other models have larger matrices than vocabularies.
        if config.model.start_token.is_none() || matches!(origin, Origin::New) {
            (config.model.source_vocabulary, config.model.target_vocabulary) = words;
        }
        let new = matches!(origin, Origin::New);
        if new && !data.tokenizers.is_joint() && config.model.tying == Tying::ThreeWay {
            config.model.tying = Tying::Decoder;
            let note =
                "two vocabularies: target embedding and output are tied, the source embedding is separate";
            self.progress.message(note);
        }
        Ok(data)
    }

    fn make_trainer(
        &mut self,
        config: &TrainConfig,
        origin: Origin,
        bias: Option<Vec<f32>>,
        choice: &Choice,
        threads: usize,
    ) -> Result<Trainer> {
        let transformer = Transformer::new(config.model.clone())?.with_output_bias(bias)?;
        let needs = transformer.parameters().len();
        let weights = match origin {
            Origin::Init(model) if model.weights.len() == needs => model.weights,
            Origin::Init(model) => {
                let has = model.weights.len();
                let message = format!("the model has {has} weights and its tokenizers need {needs}");
                return Err(Error::config("data.init", message));
            }
            Origin::New | Origin::Checkpoint => {
                let mut weights = transformer.parameters().initialise(config.seed);
                if let Some((encoder, decoder)) = config.optimizer.residual_factors(&config.model) {
                    transformer.parameters().scale_residual(&mut weights, encoder, decoder);
                }
                weights
            }
        };
        self.progress.message(&format!(
            "a model of {:.1} million weights on {threads} core{} ({}, {})",
            needs as f64 / 1e6,
            if threads == 1 { "" } else { "s" },
            self.isa,
            choice.gemm.name()
        ));
        let (settings, seed) = (config.optimizer.step, dropout_seed(config));
        let trainer = Trainer::new(transformer, weights, settings, self.isa, threads, seed)?;
        Ok(trainer.with_gemm(choice.gemm))
    }

    /// Starts at step 1: creates the model folder.
    fn begin(
        &mut self,
        config: &TrainConfig,
        folder: &Folder,
        data: &Data,
        trainer: &Trainer,
        extras: &Extras,
    ) -> Result<(Store, State, Option<MovingAverage>)> {
        let length = trainer.weights().len();
        let (store, _) = Store::open(&folder.checkpoints, length, &mut |text| self.progress.message(text))?;
        let model = Model {
            transformer: trainer.model().clone(),
            weights: trainer.weights().to_vec(),
            tokenizers: data.tokenizers.clone(),
            languages: extras.languages.clone(),
            generation: extras.generation.clone(),
            shortlist: extras.shortlist.clone(),
        };
        write_text(&config_file(self.out), &config.to_toml())?;
        model.save(self.out, config.checkpoints.store)?;
        let ema = config.optimizer.ema.map(|decay| MovingAverage::new(decay, trainer.weights().to_vec()));
        Ok((store, State { seed: config.seed, corpus: data.hash, ..State::default() }, ema))
    }

    /// Resumes from the newest complete checkpoint.
    fn continue_from(
        &mut self,
        config: &TrainConfig,
        folder: &Folder,
        data: &Data,
        trainer: &mut Trainer,
    ) -> Result<(Store, State, Option<MovingAverage>)> {
        let length = trainer.weights().len();
        let (store, found) =
            Store::open(&folder.checkpoints, length, &mut |text| self.progress.message(text))?;
        let Some((state, vectors)) = found else {
            let message = "no checkpoint of this run is complete; start another run";
            return Err(Error::file(&folder.checkpoints, message));
        };
        if state.corpus != data.hash {
            let message = "the corpus is not the one that this run began with; give the same files again";
            return Err(Error::file(self.out, message));
        }
        let mut vectors = vectors.into_iter();
        let mut next = || vectors.next().unwrap_or_default();
        let (weights, moments, saved_ema) = (next(), (next(), next()), next());
        let ema = config.optimizer.ema.map(|decay| {
            MovingAverage::new(decay, if saved_ema.is_empty() { weights.clone() } else { saved_ema })
        });
        trainer.restore(state.step, weights, moments)?;
        let text = format!("continuing after step {} of epoch {}", state.step, state.epoch + 1);
        self.progress.message(&text);
        Ok((store, state, ema))
    }

    /// Makes the validator, with BLEU's tokenizer for the target language, on the pairs that are
    /// short enough.
    fn make_validator(
        &mut self,
        config: &TrainConfig,
        data: &Data,
        language: Option<String>,
        threads: usize,
    ) -> Result<Validator> {
        let tokenizer = language.as_deref().map_or(Default::default(), Tokenizer::for_language);
        if let Some(code) = language.filter(|_| tokenizer != Tokenizer::default()) {
            let text = format!("validation BLEU: tokenizer {tokenizer}, chosen for target language {code}");
            self.progress.message(&text);
        }
        let (validator, dropped) = Validator::new(
            data.valid.clone(),
            &data.tokenizers,
            (config.validation.beam, config.validation.samples, config.filters.max_tokens),
            tokenizer,
            config.model.start(),
            self.isa,
            threads,
        )?;
        if dropped > 0 {
            let text = format!("{dropped} validation pairs have too many tokens and are left out");
            self.progress.message(&text);
        }
        if validator.len() == 0 {
            return Err(Error::config("filters.max_tokens", "leaves no validation pair"));
        }
        Ok(validator)
    }
}
