//! `regard train`: two text files to a translator.

use super::numbers::{STEPS, THREADS, decimal, whole, whole_u64};
use super::{CommandResult, cores, stop_on_signals, together};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use regard::Isa;
use regard::formats::{Model, resolve};
use regard::group::{Facts, Group, agree, program_facts};
use regard::model::Preset;
use regard::train::{
    End, Outcome, Progress, StepRecord, TrainConfig, TrainPrecision, ValidationRecord, check_shape, follow,
    has_run, lead, resumed_config,
};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard train --src train.en --tgt train.de --valid-src val.en --valid-tgt val.de --out en-de\n  \
    regard train --src a.en.gz b.en.gz --tgt a.de.gz b.de.gz --out en-de --minutes 30\n  \
    regard train --tsv pairs.tsv --source-lang en --target-lang de --out en-de --set dropout=0.2 --set steps=20000\n  \
    regard train --resume --out en-de\n\n\
    DIR is a loadable model at every moment: the best so far. Checkpoints, logs (log.jsonl, report.html, TensorBoard) and the\n\
    cache lie in folders under it; DIR/logs/config.toml has every setting with its value. Ctrl-C saves and stops.")]
pub(crate) struct Arguments {
    /// Text of the source language, a sentence a line; plain, .gz or .zst
    #[arg(long, num_args = 1.., value_name = "FILE")]
    src: Vec<PathBuf>,
    /// Its translation, line by line, in as many files
    #[arg(long, num_args = 1.., value_name = "FILE")]
    tgt: Vec<PathBuf>,
    /// In place of both, one file with source, tab, target
    #[arg(long, value_name = "FILE", conflicts_with_all = ["src", "tgt"])]
    tsv: Option<PathBuf>,
    /// Text to validate on [default: one pair in fifty is held out]
    #[arg(long, value_name = "FILE")]
    valid_src: Option<PathBuf>,
    /// Its translation
    #[arg(long, value_name = "FILE")]
    valid_tgt: Option<PathBuf>,
    /// The folder that becomes the model
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The size of the model and the recipe that goes with it [default: by corpus and cores]
    #[arg(long, value_enum)]
    preset: Option<PresetName>,
    /// Settings in TOML, as DIR/logs/config.toml has them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Plan the training to take so long
    #[arg(long, value_name = "N", conflicts_with_all = ["epochs", "steps"])]
    #[arg(value_parser = decimal(0.001..=5_256_000.0))]
    minutes: Option<f64>,
    /// End after so many passes over the corpus
    #[arg(long, value_name = "N", value_parser = whole_u64(STEPS))]
    epochs: Option<u64>,
    /// End after so many steps
    #[arg(long, value_name = "N", value_parser = whole_u64(STEPS))]
    steps: Option<u64>,
    /// Go on with the run in DIR, bit for bit where it was
    #[arg(long)]
    resume: bool,
    /// Start from the weights and tokenizers of this model, a folder or a name on the Hugging Face hub
    #[arg(long, value_name = "DIR")]
    init: Option<PathBuf>,
    /// The source language, stored with the model [default: the files' extension]
    #[arg(long, value_name = "TAG")]
    source_lang: Option<String>,
    /// The target language
    #[arg(long, value_name = "TAG")]
    target_lang: Option<String>,
    /// How many cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// Everything random follows from it [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The number format of the matrix products [default: auto, bf16 where the CPU has it]
    #[arg(long, value_enum)]
    precision: Option<PrecisionName>,
    /// How the weights of the model are stored [default: f32]
    #[arg(long, value_enum)]
    store: Option<super::average::Precision>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PresetName {
    Tiny,
    Small,
    Base,
    Big,
}

/// The number format of matrix products while training.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PrecisionName {
    F32,
    Bf16,
    Auto,
}

impl From<PrecisionName> for TrainPrecision {
    fn from(name: PrecisionName) -> Self {
        match name {
            PrecisionName::F32 => TrainPrecision::F32,
            PrecisionName::Bf16 => TrainPrecision::Bf16,
            PrecisionName::Auto => TrainPrecision::Auto,
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    together("train", |group| {
        if group.size() > 1 {
            agree(&**group, facts(&arguments))?;
        }
        match group.rank() {
            0 => run_first(&arguments, Arc::clone(group)),
            _ => {
                let (stop, local) =
                    (stop_on_signals()?, |config: &mut TrainConfig| apply(&arguments, config));
                Ok(follow(Arc::clone(group), &arguments.out, Isa::from_env()?, &stop, local)?)
            }
        }
    })
}

/// What all ranks must be asked alike.
fn facts(arguments: &Arguments) -> Result<Facts, regard::Error> {
    let mut asked = TrainConfig::read(preset(arguments), |_| Preset::Base, arguments.config.as_deref(), &[])?;
    apply(arguments, &mut asked)?;
    let own = [("--resume".to_owned(), arguments.resume.to_string())];
    Ok(program_facts().into_iter().chain(own).chain(asked.facts()).collect())
}

/// Alone, or as the first of several ranks.
fn run_first(arguments: &Arguments, group: Arc<dyn Group>) -> CommandResult {
    let isa = Isa::from_env()?;
    let resume = arguments.resume && has_run(&arguments.out);
    if arguments.resume && !resume && arguments.src.is_empty() && arguments.tsv.is_none() {
        let out = arguments.out.display();
        return Err(format!("{out}: there is no run to resume; --src and --tgt start one").into());
    }
    let config = if resume {
        if arguments.config.is_some() {
            return Err("--config: a resumed run has its settings; change single ones with --set".into());
        }
        resumed_config(&arguments.out, |config| apply(arguments, config))?
    } else {
        new_config(arguments)?
    };
    let stop = stop_on_signals()?;
    let mut view = View::new();
    let outcome = lead(group, config, &arguments.out, arguments.resume, isa, &stop, &mut view);
    view.close();
    let outcome = outcome?;
    if outcome.end == End::Finished {
        println!("{}", summary(&outcome, &arguments.out));
    }
    Ok(())
}

/// What came out, in the lines that stdout gets.
pub(crate) fn summary(outcome: &Outcome, out: &Path) -> String {
    let out = out.display();
    let score = |value: Option<f64>| value.map_or("–".into(), |v| format!("{v:.2}"));
    format!(
        "{out}: BLEU {} and chrF {} on the validation sentences after {} steps, {:.1} minutes, {:.0} target tokens/s\n\
         report: {out}/logs/report.html\ntry it: regard translate --model {out}",
        score(outcome.bleu),
        score(outcome.chrf),
        outcome.steps,
        outcome.seconds / 60.0,
        outcome.target_tokens as f64 / outcome.seconds.max(1e-9)
    )
}

/// The flags that stand for settings, put into them.
fn apply(arguments: &Arguments, config: &mut TrainConfig) -> Result<(), regard::Error> {
    let Arguments { src, tgt, tsv, valid_src, valid_tgt, .. } = arguments;
    let data = &mut config.data;
    if !src.is_empty() {
        data.src.clone_from(src);
    }
    if !tgt.is_empty() {
        data.tgt.clone_from(tgt);
    }
    fn put<T: Clone>(place: &mut Option<T>, value: &Option<T>) {
        if value.is_some() {
            place.clone_from(value);
        }
    }
    put(&mut data.tsv, tsv);
    put(&mut data.valid_src, valid_src);
    put(&mut data.valid_tgt, valid_tgt);
    put(&mut data.init, &arguments.init);
    put(&mut data.source_lang, &arguments.source_lang);
    put(&mut data.target_lang, &arguments.target_lang);
    put(&mut config.threads, &arguments.threads);
    put(&mut config.minutes, &arguments.minutes);
    config.seed = arguments.seed.unwrap_or(config.seed);
    config.precision = arguments.precision.map_or(config.precision, TrainPrecision::from);
    config.checkpoints.store = arguments.store.map_or(config.checkpoints.store, Into::into);
    if arguments.steps.is_some() || arguments.epochs.is_some() {
        (config.steps, config.epochs) = (arguments.steps, arguments.epochs);
    }
    for set in &arguments.set {
        config.set(set)?;
    }
    Ok(())
}

fn preset(arguments: &Arguments) -> Option<Preset> {
    arguments.preset.map(|name| match name {
        PresetName::Tiny => Preset::Tiny,
        PresetName::Small => Preset::Small,
        PresetName::Base => Preset::Base,
        PresetName::Big => Preset::Big,
    })
}

fn new_config(arguments: &Arguments) -> Result<TrainConfig, regard::Error> {
    let choose = |written: &serde_json::Value| {
        let listed = |key: &str| -> Vec<PathBuf> {
            serde_json::from_value(written["data"][key].clone()).unwrap_or_default()
        };
        let files: Vec<PathBuf> =
            arguments.src.iter().chain(&arguments.tgt).chain(&arguments.tsv).cloned().collect();
        let files = if files.is_empty() { [listed("src"), listed("tgt")].concat() } else { files };
        let (preset, why) =
            TrainConfig::choose_preset(text_bytes(&files), arguments.threads.unwrap_or_else(cores));
        eprintln!("{why}");
        preset
    };
    let mut config = TrainConfig::read(preset(arguments), choose, arguments.config.as_deref(), &[])?;
    apply(arguments, &mut config)?;
    check_init(arguments, &config)?;
    Ok(config)
}

/// A model of another shape than the one asked for cannot be started from. A preset that is given by name is a shape, too.
fn check_init(arguments: &Arguments, config: &TrainConfig) -> Result<(), regard::Error> {
    let Some(init) = &config.data.init else { return Ok(()) };
    let has = Model::config(&resolve(init)?)?;
    // Settings that ask for nothing else leave the model as it is.
    let mut asked = TrainConfig { model: has.clone(), ..TrainConfig::new(config.preset) };
    if let Some(file) = &arguments.config {
        asked.put_file(file)?;
    }
    for set in &arguments.set {
        asked.set(set)?;
    }
    check_shape(&asked.model, &has, None, init)?;
    if arguments.preset.is_none() {
        return Ok(());
    }
    let (wanted, has) = (config.model.sizes(), has.sizes());
    if wanted == has {
        return Ok(());
    }
    let (preset, init) = (config.preset.name(), init.display());
    let message = format!("{preset} means {wanted}, but {init}, to start from, has {has}; leave this out");
    Err(regard::Error::config("--preset", message))
}

/// About how much text is in the files; compressed text is a third of it.
fn text_bytes(files: &[PathBuf]) -> u64 {
    let size = |path: &PathBuf| {
        let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
        let packed = path.extension().is_some_and(|e| e == "gz" || e == "zst");
        if packed { 3 * bytes } else { bytes }
    };
    files.iter().map(size).sum()
}

/// A bar on a terminal, lines elsewhere; all of it on stderr.
pub(crate) struct View {
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl View {
    pub(crate) fn new() -> Self {
        View { bar: None, terminal: std::io::stderr().is_terminal() }
    }

    /// Leaves the screen to others.
    pub(crate) fn close(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn bar(&mut self, total: Option<u64>) -> &ProgressBar {
        let bar = self.bar.get_or_insert_with(ProgressBar::no_length);
        if bar.length() != total {
            let template = match total {
                Some(total) => {
                    bar.set_length(total);
                    "{bar:24} {pos}/{len} {msg}, {eta} left"
                }
                None => "{spinner} {pos} {msg}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
        }
        bar
    }
}

fn describe(r: &StepRecord) -> String {
    format!(
        "epoch {:.2}, loss {:.3}, rate {:.2e}, {:.0} tokens/s",
        r.epoch, r.loss, r.rate, r.tokens_per_second
    )
}

impl Progress for View {
    fn message(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn step(&mut self, record: &StepRecord, total: Option<u64>) {
        if self.terminal {
            let text = describe(record);
            let bar = self.bar(total);
            if bar.position() == 0 {
                // So that a resumed run does not count steps of another one as its speed.
                bar.set_position(record.step);
                bar.reset_eta();
            }
            bar.set_position(record.step);
            bar.set_message(text);
        }
    }

    fn logged(&mut self, record: &StepRecord, total: Option<u64>) {
        if !self.terminal {
            let of = total.map_or(String::new(), |t| format!("/{t}"));
            let left = total.map_or(String::new(), |t| {
                let seconds = record.seconds / record.step as f64 * t.saturating_sub(record.step) as f64;
                format!(", {:.1} min left", seconds / 60.0)
            });
            eprintln!("step {}{of}: {}{left}", record.step, describe(record));
        }
    }

    fn validated(&mut self, r: &ValidationRecord, best: bool) {
        let whose = if r.weights == "step" { format!("step {}", r.step) } else { r.weights.clone() };
        let mut text = format!(
            "{whose}: validation loss {:.4}, perplexity {:.2}, BLEU {:.2}, chrF {:.2}{}",
            r.loss,
            r.perplexity,
            r.bleu,
            r.chrf,
            if best { ", the best so far" } else { "" }
        );
        for (source, translation, reference) in &r.samples {
            text += &format!("\n    {source}\n  → {translation}\n  = {reference}");
        }
        self.message(&text);
    }
}
