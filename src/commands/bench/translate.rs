//! `regard bench translate`: decoding on the workload of `tools/peers/ct2_translate.py`.

use super::peak_rss_mb;
use crate::commands::dtypes::{DECODING, one_of};
use crate::commands::numbers::{BEAM, SECONDS, THREADS, decimal, whole};
use crate::commands::{CommandResult, cores, presets, print_line};
use clap::Args;
use regard::decode::{Engine, SearchOptions, Values, search_ensemble};
use regard::formats::{Model, resolve};
use regard::model::{Initial, ModelConfig, Parameter, Preset, Transformer};
use regard::{DType, Isa, Key};
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of tokens of every output of the comparison.
const LENGTH: usize = 25;
/// The end token, which is never generated.
const END: u32 = 0;
/// The presets to measure.
const PRESETS: &[Preset] = &[Preset::Tiny, Preset::Small, Preset::Base, Preset::Big, Preset::Student];

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Model size; its weights are random
    #[arg(long, value_parser = presets::one_of(PRESETS), required_unless_present = "model")]
    preset: Option<Preset>,
    /// Model folder to measure instead, with the time and memory that loading it takes
    #[arg(long, value_name = "DIR", conflicts_with = "preset")]
    model: Option<PathBuf>,
    /// Number format of matrix multiplications [default: f32, or that of --model]
    #[arg(long, value_parser = one_of(DECODING))]
    precision: Option<DType>,
    /// Beam size (1 = greedy)
    #[arg(long, default_value_t = 4, value_parser = whole(BEAM))]
    beam: usize,
    /// Sentences per batch
    #[arg(long, default_value_t = 32, value_parser = whole(1..=100_000))]
    batch: usize,
    /// Number of sentences
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = whole(1..=10_000_000))]
    sentences: usize,
    /// Tokens of every sentence and of every translation [default: 10 to 29 in, 25 out]
    #[arg(long, value_name = "N", value_parser = whole(1..=100_000))]
    tokens: Option<usize>,
    /// Words of the vocabulary of random weights [default: 10,000, or 32,000 from base on]
    #[arg(long, value_name = "N", value_parser = whole(2..=10_000_000), conflicts_with = "model")]
    vocabulary: Option<usize>,
    /// Repeat the workload for at least N seconds
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS", value_parser = decimal(SECONDS))]
    seconds: f64,
    /// Number of cores to use [default: all]
    #[arg(long, value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// One line of the comparison; the fields that the peer also prints come first.
#[derive(Debug, Serialize)]
struct Report {
    peer: &'static str,
    version: &'static str,
    preset: String,
    weights: DType,
    beam: usize,
    batch: usize,
    threads: usize,
    target_tokens_per_s: f64,
    peak_rss_mb: u64,
    sentences: usize,
    /// The tokens of every translation.
    tokens: usize,
    /// The number of words that are scored.
    vocabulary: usize,
    /// Multiply-adds with weights per second, in billions.
    gmacs: f64,
    /// The same for a small GEMM that stays in the L1 cache, on all cores.
    peak_gmacs: f64,
    isa: &'static str,
    /// For a model folder: the loading time, and the peak memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_peak_mb: Option<u64>,
}

/// The model to measure.
struct Subject {
    name: String,
    engine: Engine,
    /// The ids from which sentences are drawn.
    words: Range<u32>,
    /// The end token, which is never generated.
    end: u32,
    load_s: Option<f64>,
}

impl Subject {
    /// A model with random weights.
    fn random(preset: Preset, words: Option<usize>, precision: DType, isa: Isa) -> regard::Result<Self> {
        let words = words.unwrap_or(match preset {
            Preset::Tiny | Preset::Small => 10_000,
            Preset::Base | Preset::Big | Preset::Student => 32_000,
        });
        // Our padding token is one more word.
        let model = Transformer::new(preset.config(words + 1))?;
        let mut number = 0;
        let engine = Engine::build(&model, precision, isa, |parameter| {
            number += 1;
            Ok(Values::F32(like_the_peer(parameter).initialise(Key::new(1).child(number)).into()))
        })?;
        let name = preset.name().to_owned();
        Ok(Subject { name, engine, words: END + 1..words as u32, end: END, load_s: None })
    }

    /// The model of a folder.
    fn load(folder: &Path, precision: Option<DType>, isa: Isa) -> regard::Result<Self> {
        let start = Instant::now();
        let (model, engine) = Model::load_engine(&resolve(folder)?, precision, isa)?;
        let load_s = Some((1e3 * start.elapsed().as_secs_f64()).round() / 1e3);
        let end = model.tokenizers.target().eos();
        let words = end + 1..engine.model().config().output_words() as u32;
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Subject { name, engine, words, end, load_s })
    }
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let isa = Isa::from_env()?;
    let threads = arguments.threads.unwrap_or_else(cores).max(1);
    let subject = match (&arguments.model, arguments.preset) {
        (Some(folder), _) => Subject::load(folder, arguments.precision, isa)?,
        (None, preset) => {
            let preset = preset.unwrap_or(Preset::Base);
            Subject::random(preset, arguments.vocabulary, arguments.precision.unwrap_or(DType::F32), isa)?
        }
    };
    let Subject { name, engine, words, end, load_s } = subject;
    let load_peak_mb = load_s.map(|_| peak_rss_mb());
    let length = arguments.tokens.unwrap_or(LENGTH);
    let sources = sources(words, arguments.sentences.max(1), arguments.tokens);
    let options = SearchOptions {
        beam: arguments.beam,
        batch: arguments.batch,
        end,
        banned: vec![end],
        max_length: Some(length),
        forced_end: false,
        ..SearchOptions::default()
    };
    let go = |sources: &[Vec<u32>]| -> regard::Result<usize> {
        let per_call = if arguments.batch == 1 { 1 } else { sources.len().max(1) };
        let mut tokens = 0;
        for part in sources.chunks(per_call) {
            let found = search_ensemble(&[&engine], part, &options, threads)?;
            tokens += found.iter().map(|h| h[0].ids.len()).sum::<usize>();
        }
        Ok(tokens)
    };
    go(&sources[..sources.len().min(32)])?;
    let (mut tokens, mut rounds) = (0, 0u32);
    let start = Instant::now();
    while rounds == 0 || start.elapsed().as_secs_f64() < arguments.seconds {
        tokens += go(&sources)?;
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let per_round = sources.len() * length;
    if tokens != per_round * rounds as usize {
        return Err(format!("{tokens} tokens came out, not {length} for each sentence").into());
    }
    let macs = f64::from(rounds) * multiplications(engine.model().config(), &sources, length, arguments.beam);
    let round = |x: f64| (10.0 * x).round() / 10.0;
    let report = Report {
        peer: "regard",
        version: env!("CARGO_PKG_VERSION"),
        preset: name,
        weights: engine.dtype(),
        beam: arguments.beam,
        batch: arguments.batch,
        threads,
        target_tokens_per_s: (tokens as f64 / seconds).round(),
        peak_rss_mb: peak_rss_mb(),
        sentences: sources.len(),
        tokens: length,
        vocabulary: engine.model().config().output_words(),
        gmacs: round(macs / seconds / 1e9),
        peak_gmacs: round(regard::decode::peak_speed(engine.dtype(), isa, threads) / 1e9),
        isa: isa.name(),
        load_s,
        load_peak_mb,
    };
    print(&report, arguments.json)
}

fn print(report: &Report, json: bool) -> CommandResult {
    if json {
        return print_line(serde_json::to_string(report)?);
    }
    print_line(format_args!(
        "{} {} beam {} batch {} on {} threads ({}): {} target tokens/s, {} GMAC/s, \
         {:.0} % of the peak of {} GMAC/s, peak memory {} MB",
        report.preset,
        report.weights,
        report.beam,
        report.batch,
        report.threads,
        report.isa,
        report.target_tokens_per_s,
        report.gmacs,
        100.0 * report.gmacs / report.peak_gmacs,
        report.peak_gmacs,
        report.peak_rss_mb
    ))?;
    match (report.load_s, report.load_peak_mb) {
        (Some(seconds), Some(mb)) => print_line(format_args!("loaded in {seconds} s, at most {mb} MB")),
        _ => Ok(()),
    }
}

/// Initialises every matrix with a normal distribution that preserves the variance of its input.
fn like_the_peer(parameter: &Parameter) -> Parameter {
    let mut parameter = parameter.clone();
    if let Initial::Glorot { .. } = parameter.initial {
        let deviation = (parameter.shape[1] as f32).powf(-0.5);
        parameter.initial = Initial::Normal { deviation, pad: false };
    }
    parameter
}

/// Sentences of random words, each of `tokens` words, or of 10 to 29.
fn sources(words: Range<u32>, count: usize, tokens: Option<usize>) -> Vec<Vec<u32>> {
    let key = Key::new(2);
    let sentence = |i: usize| {
        let key = key.child(i as u64);
        let length = tokens.map_or(10 + key.bits(0) % 20, |tokens| tokens as u32);
        (1..=length).map(|j| words.start + key.bits(j) % (words.end - words.start)).collect()
    };
    (0..count).map(sentence).collect()
}

/// The number of multiply-adds with weights that it takes to translate these sentences into `length`
/// tokens each.
fn multiplications(config: &ModelConfig, sources: &[Vec<u32>], length: usize, beam: usize) -> f64 {
    let (d, ff, words) = (config.d_model, config.d_ff, config.output_words());
    let source = config.encoder_layers * (4 * d * d + 2 * d * ff) + config.decoder_layers * 2 * d * d;
    let target = config.decoder_layers * (6 * d * d + 2 * d * ff) + words * d;
    let tokens: usize = sources.iter().map(Vec::len).sum();
    // The first step has one hypothesis per sentence.
    let rows = sources.len() * (1 + (length - 1) * beam);
    (tokens * source + rows * target) as f64
}
