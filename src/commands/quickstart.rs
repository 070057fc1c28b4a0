//! `regard quickstart`: a translator in a minute or two, without any files.

use super::numbers::{STEPS as STEP_RANGE, THREADS, whole, whole_u64};
use super::train::{PrecisionName, View};
use super::{CommandResult, cores, stop_on_signals};
use clap::Args;
use regard::autograd::Tape;
use regard::decode::{SearchOptions, search};
use regard::formats::Model;
use regard::metrics::{Bleu, Metric};
use regard::model::{AttentionKind, Preset, attention_maps};
use regard::plot::{Matrix, terminal};
use regard::train::config::Every;
use regard::train::{End, Schedule, ScheduleKind, TrainConfig, train};
use regard::{Isa, builtin};
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  regard quickstart --out my-first-model\n\n\
    The corpus is English and French, made by a grammar inside the program; the sentences that are translated at the end\n\
    have combinations of words that the model has not seen.")]
pub(crate) struct Arguments {
    /// The folder that becomes the model
    #[arg(long, value_name = "DIR", default_value = "quickstart-model")]
    out: PathBuf,
    /// Training pairs
    #[arg(long, value_name = "N", default_value_t = PAIRS, hide = true, value_parser = whole(1..=10_000_000))]
    pairs: usize,
    /// End after so many steps
    #[arg(long, value_name = "N", default_value_t = STEPS, hide = true, value_parser = whole_u64(STEP_RANGE))]
    steps: u64,
    /// How many cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// The number format of the matrix products
    #[arg(long, value_enum, default_value = "auto")]
    precision: PrecisionName,
}

/// New sentences teach more than the same ones again: a run sees each of these about four times.
const PAIRS: usize = 30_000;
/// A minute to a minute and a half on two cores.
const STEPS: u64 = 1400;

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let isa = Isa::from_env()?;
    let threads = arguments.threads.unwrap_or_else(cores);
    let out = &arguments.out;
    if regard::train::has_run(out) {
        let out = out.display();
        return Err(format!("{out}: holds a training run already; choose another --out").into());
    }
    let corpus = builtin::corpus(builtin::DEFAULT_SEED, arguments.pairs);
    eprintln!(
        "a built-in corpus of {} English and French sentences, and {} held out with combinations that are not in it",
        corpus.train.len(),
        corpus.held_out.len()
    );
    let config = settings(&arguments, write_corpus(out, &corpus.train)?);
    let stop = stop_on_signals()?;
    let mut view = View::new();
    let outcome = train(config, out, false, isa, &stop, &mut view);
    view.close();
    let outcome = outcome?;
    if outcome.end == End::Interrupted {
        return Ok(());
    }

    let model = Model::load(out)?;
    let (sources, references): (Vec<_>, Vec<_>) = corpus.held_out.into_iter().unzip();
    let translations = translate(&model, &sources, isa, threads)?;
    let bleu = Bleu::default().corpus(&translations, &[references])?;
    println!("BLEU on {} held-out sentences: {:.1}\n", sources.len(), bleu.score);

    let showcase: Vec<String> = builtin::SHOWCASE.iter().map(|(source, _)| (*source).to_owned()).collect();
    let translations = translate(&model, &showcase, isa, threads)?;
    for ((source, reference), translation) in builtin::SHOWCASE.iter().zip(&translations) {
        let verdict = if translation == reference { "as expected" } else { reference };
        println!("{source}\n  → {translation}   ({verdict})");
    }
    println!("\nWhere each French word looked in the English sentence (cross-attention, last layer):\n");
    println!("{}", attention_map(&model, &showcase[0], &translations[0], isa)?);
    println!("{}", next_steps(out));
    Ok(())
}

/// Writes the training pairs where a run keeps what can be made again; the two files.
fn write_corpus(out: &Path, pairs: &[(String, String)]) -> Result<[PathBuf; 2], regard::Error> {
    let folder = out.join("cache");
    fs::create_dir_all(&folder).map_err(|e| regard::Error::io(&folder, e))?;
    let write = |name: &str, side: fn(&(String, String)) -> &String| {
        let path = folder.join(name);
        let text: String = pairs.iter().map(|pair| format!("{}\n", side(pair))).collect();
        fs::write(&path, text).map_err(|e| regard::Error::io(&path, e))?;
        Ok(path)
    };
    Ok([write("train.en", |pair| &pair.0)?, write("train.fr", |pair| &pair.1)?])
}

/// A model half as deep as `tiny`, and a schedule that ends when the minute does.
fn settings(arguments: &Arguments, [src, tgt]: [PathBuf; 2]) -> TrainConfig {
    let mut config = TrainConfig::new(Preset::Tiny);
    config.data.src = vec![src];
    config.data.tgt = vec![tgt];
    config.threads = arguments.threads;
    config.precision = arguments.precision.into();
    config.steps = Some(arguments.steps);
    config.log_every = 100;
    config.model.dropout = 0.1;
    (config.model.encoder_layers, config.model.decoder_layers) = (2, 2);
    config.tokenizer.size = Some(1200);
    config.batch.max_tokens = 1024;
    config.schedule =
        Schedule { kind: ScheduleKind::Linear, peak: Some(0.003), warmup: (arguments.steps / 8).max(1) };
    config.validation.every = Every::Steps(arguments.steps.div_ceil(3).max(1));
    // Pairs of the training set: the held-out ones must not choose the model that they judge.
    config.validation.max_sentences = 100;
    config.validation.samples = 1;
    config.checkpoints.every = config.validation.every;
    config.checkpoints.average = 0;
    config
}

fn translate(
    model: &Model,
    texts: &[String],
    isa: Isa,
    threads: usize,
) -> Result<Vec<String>, regard::Error> {
    let sources: Vec<Vec<u32>> =
        texts.iter().map(|text| model.tokenizers.source().encode(text)).collect::<Result<_, _>>()?;
    let found =
        search(&model.transformer, &model.weights, &sources, &SearchOptions::default(), isa, threads)?;
    let target = model.tokenizers.target();
    Ok(found.iter().map(|best| best.first().map(|h| target.decode(&h.ids)).unwrap_or_default()).collect())
}

/// The cross-attention of a sentence and its translation, for the terminal.
fn attention_map(model: &Model, source: &str, target: &str, isa: Isa) -> Result<String, regard::Error> {
    let (from, to) = (model.tokenizers.source(), model.tokenizers.target());
    let (source, target) = (from.encode(source)?, to.encode(target)?);
    let maps = attention_maps(&mut Tape::new(isa, 1), &model.transformer, &model.weights, &source, &target)?;
    let last = maps.iter().rfind(|map| map.kind == AttentionKind::Cross);
    let weights = last.map(|map| map.mean()).unwrap_or_default();
    let pieces = |tokenizer: &regard::text::Tokenizer, ids: &[u32]| -> Vec<String> {
        ids.iter().map(|&id| tokenizer.piece(id).unwrap_or_default()).collect()
    };
    let (rows, columns) = (pieces(to, &target), pieces(from, &source));
    let matrix = Matrix::new(rows.len(), columns.len(), weights)?;
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Ok(terminal::heat_map(&matrix, &rows, &columns, 100, colour))
}

fn next_steps(out: &Path) -> String {
    let out = out.display();
    format!(
        "What to run next:\n  \
         echo \"The girls will buy a red house.\" | regard translate --model {out}\n  \
         regard look --model {out} --src \"The cat sleeps.\"\n\
         With your own text, a sentence a line, its translation on the same line of the other file:\n  \
         regard train --src train.en --tgt train.de --valid-src val.en --valid-tgt val.de --out en-de"
    )
}
