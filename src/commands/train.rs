//! `regard train`: from two text files to a translator.

mod tmx;
mod view;

pub(crate) use view::View;

use super::corpus::{CorpusArguments, put};
use super::dtypes::{STORED, TrainingDType, one_of, training_or_auto};
use super::numbers::{STEPS, THREADS, decimal, whole, whole_u64};
use super::{
    CommandResult, Usage, check, cores, interrupted, presets, print_line, resolve, stop_on_signals, together,
};
use clap::Args;
use regard::DType;
use regard::Isa;
use regard::formats::Model;
use regard::model::Preset;
use regard::train::config::DataConfig;
use regard::train::corpus::count_pairs;
use regard::train::distributed::{
    Communicator, ConsistencyCheck, check_consistency, config_check, join, program_check,
};
use regard::train::{
    CardCommands, End, Outcome, Progress, Start, TrainConfig, check_shape, has_run, inputs, resumed_config,
    run_worker,
};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const TSV: &str = "One file with source and target separated by a tab, instead of --src and --tgt; or a \
    translation memory (.tmx, with --source-lang and --target-lang). Plain, .gz or .zst";

const VALID_SRC: &str = "Source text to validate on \
    [default: one pair in fifty of the corpus, which is then not trained on]";

fn lang_help(side: &str) -> String {
    format!("{side} language, stored with the model [default: from the names of the files]")
}

const HELP: &str = "Examples:\n  \
    regard train --src train.en --tgt train.de --valid-src val.en --valid-tgt val.de --out en-de\n  \
    regard train --src a.en.gz b.en.gz --tgt a.de.gz b.de.gz --out en-de --minutes 30\n  \
    regard train --tsv pairs.tsv --source-lang en --target-lang de --out en-de --set dropout=0.2 --set steps=20000\n  \
    regard train --tsv memory.tmx --source-lang en --target-lang de --out en-de\n  \
    regard train --src a.en b.en --tgt a.de b.pt --target-langs de pt --set temperature=5 --out en-de-pt\n  \
    regard train --src train.en --tgt train.de --terms --out en-de-terms\n  \
    regard train --pairs de.po pairs.jsonl --source-lang en --target-lang de --out en-de\n  \
    regard train --resume --out en-de\n\n\
    From the first training step on, DIR is a model that can be loaded at any time: the best so far. Checkpoints, logs (log.jsonl,\n\
    report.html, TensorBoard) and the cache are in folders under it; DIR/logs/config.toml has every setting with its value.\n\
    Ctrl-C (SIGINT) and SIGTERM save everything and stop with exit status 130 or 143; a second signal stops at once.";

/// The help with all settings, generated from their definitions.
fn long_help() -> String {
    let mut sections: Vec<(String, Vec<String>)> = vec![(String::new(), Vec::new())];
    for key in TrainConfig::new(Preset::Tiny).keys() {
        let (section, name) = key.split_once('.').unwrap_or(("", &key));
        match sections.iter_mut().find(|(of, _)| of == section) {
            Some((_, names)) => names.push(name.to_owned()),
            None => sections.push((section.to_owned(), vec![name.to_owned()])),
        }
    }
    let mut text = format!("{HELP}\n\nSettings for --set and --config, by section:\n");
    for (section, names) in sections {
        let mut line = if section.is_empty() { "  ".to_owned() } else { format!("  [{section}] ") };
        for name in names {
            if line.len() + name.len() > 100 {
                text += line.trim_end();
                text.push('\n');
                line = "      ".to_owned();
            }
            line += &format!("{name} ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text + "The full name is SECTION.NAME, as in --set model.dropout=0.2; the section may be left out where\n\
            only one has a setting of that name."
}

#[derive(Debug, Args)]
#[command(mut_arg("tsv", |arg| arg.help(TSV)), mut_arg("valid_src", |arg| arg.help(VALID_SRC)))]
#[command(mut_arg("source_lang", |arg| arg.help(lang_help("Source"))))]
#[command(mut_arg("target_lang", |arg| arg.help(lang_help("Target"))))]
#[command(after_help = HELP, after_long_help = long_help())]
pub(crate) struct Arguments {
    #[command(flatten)]
    corpus: CorpusArguments,
    /// Folder of the new model
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Size of the model and its training recipe
    /// [default: chosen by corpus size and number of cores]
    #[arg(long, value_parser = presets::one_of(&Preset::ALL))]
    preset: Option<Preset>,
    /// Settings file in TOML, in the format of DIR/logs/config.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change one setting; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Train for about N minutes, preparation and validation included
    #[arg(long, value_name = "N", conflicts_with_all = ["epochs", "steps"])]
    #[arg(value_parser = decimal(0.001..=5_256_000.0))]
    minutes: Option<f64>,
    /// Stop after N passes over the corpus
    #[arg(long, value_name = "N", value_parser = whole_u64(STEPS))]
    epochs: Option<u64>,
    /// Stop after N training steps
    #[arg(long, value_name = "N", value_parser = whole_u64(STEPS))]
    steps: Option<u64>,
    /// Continue an interrupted run exactly where it stopped
    #[arg(long)]
    resume: bool,
    /// Start from the weights and tokenizers of this model: a folder or a name on the Hugging Face
    /// hub
    #[arg(long, value_name = "DIR")]
    init: Option<PathBuf>,
    /// Target language of each pair of files, to train one multilingual model
    #[arg(long, num_args = 1.., value_name = "TAG", conflicts_with = "tsv")]
    target_langs: Vec<String>,
    /// Train the model to use the terms of a glossary: in this share of the source sentences, some
    /// words have their translations behind them, which are found by word alignment [default
    /// SHARE: 0.3]
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "0.3")]
    #[arg(value_parser = decimal(0.0..=1.0))]
    terms: Option<f64>,
    /// Number of cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// Random seed [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number format of matrix multiplications [default: auto, which is bf16 on AMD CPUs with AVX-512 BF16, else f32]
    #[arg(long, value_parser = training_or_auto())]
    precision: Option<TrainingDType>,
    /// Number format in which the model's weights are stored [default: f32]
    #[arg(long, value_parser = one_of(STORED))]
    store: Option<DType>,
}

pub(crate) fn run(mut arguments: Arguments) -> CommandResult {
    let conversion = tmx::plan(&mut arguments);
    together("train", |communicator| {
        if let Some(conversion) = conversion.as_ref().filter(|_| communicator.rank() == 0) {
            conversion.run(&arguments)?;
        }
        if communicator.size() > 1 {
            check_consistency(&**communicator, consistency_check(&arguments))?;
        }
        match communicator.rank() {
            0 => run_first(&arguments, Arc::clone(communicator)),
            _ => {
                let (stop, local) =
                    (stop_on_signals()?, |config: &mut TrainConfig| apply(&arguments, config));
                Ok(run_worker(Arc::clone(communicator), &arguments.out, Isa::from_env()?, &stop, local)?)
            }
        }
    })
}

/// The settings that must be equal on all ranks.
fn consistency_check(arguments: &Arguments) -> Result<ConsistencyCheck, regard::Error> {
    let mut asked = TrainConfig::read(arguments.preset, |_| Preset::Base, arguments.config.as_deref(), &[])?;
    apply(arguments, &mut asked)?;
    let own = [("--resume".to_owned(), arguments.resume.to_string())];
    Ok(program_check().into_iter().chain(own).chain(config_check(&asked)).collect())
}

/// Runs as the only process, or as rank 0 of several.
fn run_first(arguments: &Arguments, communicator: Arc<dyn Communicator>) -> CommandResult {
    let stop = stop_on_signals()?;
    let mut view = View::new();
    let outcome = start(arguments, communicator, &mut view, &stop);
    view.close();
    let outcome = outcome?;
    match outcome.end {
        End::Finished => print_line(summary(&outcome, &arguments.out)),
        End::Interrupted => {
            note!("to continue:\n  regard train --resume --out {}", arguments.out.display());
            Err(interrupted())
        }
    }
}

/// For a caller with its own progress display and its own way to stop.
pub(crate) fn run_with(
    mut arguments: Arguments,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, Box<dyn Error>> {
    if let Some(conversion) = tmx::plan(&mut arguments) {
        conversion.run(&arguments)?;
    }
    start(&arguments, join("train")?, progress, stop)
}

fn start(
    arguments: &Arguments,
    communicator: Arc<dyn Communicator>,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, Box<dyn Error>> {
    let isa = Isa::from_env()?;
    let resume = arguments.resume && has_run(&arguments.out);
    if arguments.resume && !resume && arguments.corpus.is_empty() {
        let out = arguments.out.display();
        return Err(format!("{out}: there is no run to resume; start one with --src and --tgt").into());
    }
    if !arguments.resume && has_run(&arguments.out) {
        let out = arguments.out.display();
        let message = "already holds a training run: --resume continues it, another --out starts a new one";
        return Err(format!("{out}: {message}").into());
    }
    if !resume && arguments.config.is_none() {
        check_text(arguments)?;
    }
    let config = if resume {
        if arguments.config.is_some() {
            return Err("--config: a resumed run keeps its settings; change single ones with --set".into());
        }
        resumed_config(&arguments.out, |config| apply(arguments, config))?
    } else {
        new_config(arguments)?
    };
    if !resume && let Some(warnings) = check::quick(&config) {
        progress.message(&warnings);
    }
    let start = Start::new(&arguments.out, arguments.resume, isa, stop, progress);
    let commands = card_commands(&arguments.out);
    let outcome = start.with_communicator(communicator).with_commands(commands).run(config);
    Ok(outcome.map_err(|error| in_flags(error, &arguments.out))?)
}

/// The commands to show on the card of the model in `out`: the one that started this process, if it
/// is ours, and how to translate.
pub(super) fn card_commands(out: &Path) -> CardCommands {
    let quoted = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words: Vec<String> = std::env::args().skip(1).map(|word| quoted(&word)).collect();
    let name = out.file_name().map_or("model".into(), |name| name.to_string_lossy().into_owned());
    CardCommands {
        train: words
            .first()
            .is_some_and(|word| word == "train")
            .then(|| format!("regard {}", words.join(" "))),
        translate: Some(format!("regard translate --model {} < input.txt > output.txt", quoted(&name))),
    }
}

/// The library's names of settings, and how to set them on the command line.
const FLAGS: [(&str, &str); 14] = [
    ("data.target_langs", "--target-langs"),
    ("data.source_lang", "--source-lang"),
    ("data.target_lang", "--target-lang"),
    ("data.valid_src", "--valid-src"),
    ("data.valid_tgt", "--valid-tgt"),
    ("data.src", "--src"),
    ("data.tgt", "--tgt"),
    ("data.tsv", "--tsv"),
    ("data.pairs", "--pairs"),
    ("data.valid_pairs", "--valid-pairs"),
    ("schedule.warmup=", "--set schedule.warmup="),
    ("filters.drop_", "--set filters.drop_"),
    ("data.init", "--init"),
    ("terms.share", "--terms"),
];

/// A message of the library with settings replaced by command-line flags.
pub(super) fn named_by_flags(text: &str) -> String {
    FLAGS.iter().fold(text.to_owned(), |text, (setting, flag)| text.replace(setting, flag))
}

/// An error of the run in `out`, with command-line flags.
fn in_flags(error: regard::Error, out: &Path) -> regard::Error {
    match error {
        regard::Error::Config { field, message } => {
            regard::Error::config(named_by_flags(&field), named_by_flags(&message))
        }
        regard::Error::Diverged { message, settings, resumable } => {
            let settings: String = settings.iter().map(|setting| format!(" --set {setting}")).collect();
            let message = match resumable {
                true => format!("{message}:\n  regard train --resume --out {}{settings}", out.display()),
                // `--resume` refuses these settings.
                false => format!(
                    "{message}. A run with --minutes plans its learning rate itself; start another one with\n {settings}"
                ),
            };
            regard::Error::Input { operation: "training", message }
        }
        other => other,
    }
}

/// Rejects calls without any text, or with only one side of it.
fn check_text(arguments: &Arguments) -> Result<(), Usage> {
    let CorpusArguments { src, tgt, tsv, pairs, .. } = &arguments.corpus;
    let missing = match (src.is_empty(), tgt.is_empty()) {
        _ if tsv.is_some() || !pairs.is_empty() => return Ok(()),
        (false, false) => return Ok(()),
        (false, true) => "--src needs --tgt: the files with the translations, line by line",
        (true, false) => "--tgt needs --src: the files with the text that it translates, line by line",
        (true, true) => "there is no text to train on: give --src and --tgt, or --pairs",
    };
    Err(Usage(missing.to_owned()))
}

/// The outcome as printed on stdout.
pub(crate) fn summary(outcome: &Outcome, out: &Path) -> String {
    let out = out.display();
    let score = |value: Option<f64>| value.map_or("–".into(), |v| format!("{v:.2}"));
    format!(
        "{out}: BLEU {} and chrF {} on the validation sentences after {} steps in {:.1} minutes \
         (training: {:.1} minutes, {:.0} target tokens/s)\n\
         report: {out}/logs/report.html\ntry it: regard translate --model {out}",
        score(outcome.bleu),
        score(outcome.chrf),
        outcome.steps,
        outcome.all_seconds / 60.0,
        outcome.seconds / 60.0,
        outcome.target_tokens as f64 / outcome.seconds.max(1e-9)
    )
}

/// Applies the flags to the settings.
fn apply(arguments: &Arguments, config: &mut TrainConfig) -> Result<(), regard::Error> {
    let data = &mut config.data;
    arguments.corpus.apply(data);
    put(&mut data.init, &arguments.init);
    if !arguments.target_langs.is_empty() {
        data.target_langs.clone_from(&arguments.target_langs);
    }
    put(&mut config.threads, &arguments.threads);
    put(&mut config.minutes, &arguments.minutes);
    config.terms.share = arguments.terms.map_or(config.terms.share, |share| share as f32);
    config.seed = arguments.seed.unwrap_or(config.seed);
    config.precision = arguments.precision.map_or(config.precision, |dtype| dtype.0);
    config.checkpoints.store = arguments.store.map_or(config.checkpoints.store, Into::into);
    if arguments.steps.is_some() || arguments.epochs.is_some() {
        (config.steps, config.epochs) = (arguments.steps, arguments.epochs);
    }
    for set in &arguments.set {
        config.set(set).map_err(with_list)?;
    }
    Ok(())
}

/// Adds a pointer to the list of all settings, if the setting is unknown.
fn with_list(error: regard::Error) -> regard::Error {
    match error {
        regard::Error::Config { field, message } if message.starts_with("there is no such setting") => {
            regard::Error::config(field, format!("{message} (`regard train --help` lists all settings)"))
        }
        other => other,
    }
}

fn new_config(arguments: &Arguments) -> Result<TrainConfig, regard::Error> {
    let corpus = &arguments.corpus;
    let choose = |written: &serde_json::Value| {
        let listed = |key: &str, flag: &[PathBuf]| -> Vec<PathBuf> {
            let written = || serde_json::from_value(written["data"][key].clone()).unwrap_or_default();
            if flag.is_empty() { written() } else { flag.to_vec() }
        };
        let tsv = serde_json::from_value(written["data"]["tsv"].clone()).ok();
        let data = DataConfig {
            src: listed("src", &corpus.src),
            tgt: listed("tgt", &corpus.tgt),
            tsv: corpus.tsv.clone().or(tsv).filter(|_| corpus.src.is_empty()),
            pairs: listed("pairs", &corpus.pairs),
            ..DataConfig::default()
        };
        let pairs = inputs(&data).ok().and_then(|inputs| count_pairs(&inputs));
        let cores = arguments.threads.unwrap_or_else(cores);
        let preset = TrainConfig::choose_preset(pairs.map(|count| count.pairs), cores);
        // Omit an unknown number.
        let pairs = pairs.map_or(String::new(), |count| format!("{count}, "));
        let cores = format!("{cores} core{}", if cores == 1 { "" } else { "s" });
        note!("Preset: {} ({pairs}{cores}). Change with --preset", preset.name());
        preset
    };
    let mut config = match (&arguments.init, &arguments.preset, &arguments.config) {
        (Some(_), None, None) => TrainConfig::new(Preset::Tiny).fine_tuning(),
        (_, _, file) => {
            TrainConfig::read(arguments.preset, choose, file.as_deref(), &[]).map_err(with_list)?
        }
    };
    apply(arguments, &mut config)?;
    check_init(arguments, &config)?;
    Ok(config)
}

/// Rejects a model whose shape differs from the requested one. A preset given by name also requests
/// a shape.
fn check_init(arguments: &Arguments, config: &TrainConfig) -> Result<(), regard::Error> {
    let Some(init) = &config.data.init else { return Ok(()) };
    let has = Model::config(&resolve(init)?)?;
    // Without model settings, the shape is that of the initial model.
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
    let message =
        format!("{preset} means {wanted}, but the model to start from, {init}, has {has}; leave this out");
    Err(regard::Error::config("--preset", message))
}
