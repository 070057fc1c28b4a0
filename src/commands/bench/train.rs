//! `regard bench train`: training steps on the workload of `tools/peers/torch_train.py`.

use super::peak_rss_mb;
use crate::commands::dtypes::{TRAINING, TrainingDType, one_of, training_or_auto};
use crate::commands::numbers::{SECONDS, THREADS, decimal, whole};
use crate::commands::{CommandResult, cores, presets, print_line, together};
use clap::{Args, ValueEnum};
use regard::batch::Batch;
use regard::model::{ModelConfig, Preset, Transformer};
use regard::train::distributed::{Communicator, check_consistency, program_check};
use regard::train::{AdamSettings, Overlap, StepReport, StepSettings, Trainer, choose_dtype};
use regard::{DType, Gemm, Isa, Key};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The presets to measure.
const PRESETS: &[Preset] = &[Preset::Tiny, Preset::Small, Preset::Base, Preset::Student];

/// The maximum number of tokens of a batch on either side.
const MOST_TOKENS: usize = 10_000_000;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Model size
    #[arg(long, value_parser = presets::one_of(PRESETS))]
    preset: Preset,
    /// Number format of matrix multiplications
    #[arg(long, value_parser = training_or_auto(), default_value = "auto")]
    precision: TrainingDType,
    /// Measure for N seconds, at least two steps
    #[arg(long, default_value_t = 12.0, value_name = "SECONDS", value_parser = decimal(SECONDS))]
    seconds: f64,
    /// Number of cores to use [default: all]
    #[arg(long, value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// Number format of gradients and weights exchanged between MPI ranks
    #[arg(long, value_parser = one_of(TRAINING), default_value = "f32")]
    wire: DType,
    /// Whether MPI ranks exchange gradients during the backward pass
    #[arg(long, value_enum, default_value = "off")]
    overlap: OverlapFlag,
    /// Words drawn for the softmax of each step besides the targets of its batch [default: all
    /// words]
    #[arg(long, value_name = "N", value_parser = whole(1..=1_000_000))]
    softmax_sample: Option<usize>,
    /// Sentence pairs per batch [default: 128, or 64 from base on]
    #[arg(long, value_name = "N", value_parser = whole(1..=100_000))]
    sentences: Option<usize>,
    /// Tokens of every sentence, on either side [default: 20, or 32 from base on]
    #[arg(long, value_name = "N", value_parser = whole(1..=100_000))]
    tokens: Option<usize>,
    /// Words of the vocabulary [default: 10,000, or 32,000 from base on]
    #[arg(long, value_name = "N", value_parser = whole(2..=10_000_000))]
    vocabulary: Option<usize>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverlapFlag {
    On,
    Off,
}

/// One line of the comparison; the fields that the peers also print come first.
#[derive(Debug, Serialize)]
struct Report {
    peer: &'static str,
    version: &'static str,
    preset: &'static str,
    precision: &'static str,
    threads: usize,
    step_ms: f64,
    target_tokens_per_s: f64,
    gflops: f64,
    peak_rss_mb: u64,
    /// The size of the batch and of the vocabulary.
    sentences: usize,
    tokens: usize,
    vocabulary: usize,
    /// The share of the replicas' time spent in GEMM.
    matmul_share: f64,
    isa: &'static str,
    /// The number of processes, and the number of replicas of all processes.
    ranks: usize,
    replicas: usize,
    /// The data that one rank sends in a step, and the time of the whole exchange.
    wire_mb: f64,
    exchange_ms: f64,
}

/// The number of words, the number of sentences per batch, and the number of tokens per sentence on
/// either side.
fn workload(arguments: &Arguments) -> (usize, usize, usize) {
    let (words, sentences, tokens) = match arguments.preset {
        Preset::Tiny | Preset::Small => (10_000, 128, 20),
        Preset::Base | Preset::Big | Preset::Student => (32_000, 64, 32),
    };
    let or = |asked: Option<usize>, usual| asked.unwrap_or(usual);
    (or(arguments.vocabulary, words), or(arguments.sentences, sentences), or(arguments.tokens, tokens))
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    together("measure", |communicator| {
        let asked = vec![(
            "the workload".into(),
            format!(
                "{:?}, {:?}, wire {}, overlap {:?}, softmax sample {:?}",
                arguments.preset,
                workload(arguments),
                arguments.wire,
                arguments.overlap,
                arguments.softmax_sample
            ),
        )];
        check_consistency(
            &**communicator,
            Ok::<_, regard::Error>(program_check().into_iter().chain(asked).collect()),
        )?;
        measure(arguments, communicator)
    })
}

/// Broadcasts whether rank 0 continues.
fn go_on(communicator: &dyn Communicator, mine: bool) -> bool {
    let mut decision = vec![u8::from(mine)];
    communicator.broadcast(&mut decision);
    decision == [1]
}

/// The trainer to measure, as part of the group.
fn trainer(
    arguments: &Arguments,
    communicator: &Arc<dyn Communicator>,
    config: ModelConfig,
    gemm: Gemm,
) -> Result<Trainer, regard::Error> {
    let model = Transformer::new(config)?;
    let weights = model.parameters().initialise(1);
    let settings = StepSettings {
        adam: AdamSettings { clip: Some(1.0), ..AdamSettings::default() },
        softmax_sample: arguments.softmax_sample,
        ..StepSettings::default()
    };
    let threads = arguments.threads.unwrap_or_else(cores);
    let trainer = Trainer::new(model, weights, settings, gemm.isa(), threads, 1)?;
    let mut trainer = trainer.with_gemm(gemm);
    let overlap = match arguments.overlap {
        OverlapFlag::On => Overlap::On,
        OverlapFlag::Off => Overlap::Off,
    };
    trainer.join(Arc::clone(communicator), arguments.wire, overlap)?;
    Ok(trainer)
}

/// Floating-point operations of a step on this many target tokens: six for each weight that a token
/// is multiplied by.
fn flops(config: &ModelConfig, words: usize, tokens: usize) -> f64 {
    let layer = 12 * config.d_model * config.d_model + 4 * config.d_model * config.d_ff;
    6.0 * (config.encoder_layers as f64 * layer as f64 + (words * config.d_model) as f64) * tokens as f64
}

/// The measurements of the steps.
#[derive(Default)]
struct StepMeasurements {
    steps: u32,
    seconds: f64,
    busy: Duration,
    gemm_time: Duration,
    exchange: Duration,
}

/// Takes two warm-up steps, then measures steps for as long as the arguments say.
fn take_steps(
    arguments: &Arguments,
    communicator: &dyn Communicator,
    mut step: impl FnMut(u64) -> Result<StepReport, regard::Error>,
) -> Result<StepMeasurements, Box<dyn std::error::Error>> {
    for n in 0..2 {
        step(n)?;
    }
    let mut measured = StepMeasurements::default();
    let start = Instant::now();
    while go_on(communicator, measured.steps < 2 || start.elapsed().as_secs_f64() < arguments.seconds) {
        let report = step(2 + u64::from(measured.steps))?;
        if !report.applied {
            return Err(format!("the loss is {} after {} steps", report.loss, measured.steps).into());
        }
        measured.steps += 1;
        measured.busy += report.busy;
        measured.gemm_time += report.gemm_time;
        measured.exchange += report.exchange;
    }
    measured.seconds = start.elapsed().as_secs_f64();
    Ok(measured)
}

fn measure(arguments: &Arguments, communicator: &Arc<dyn Communicator>) -> CommandResult {
    if !(arguments.seconds >= 0.0 && arguments.seconds.is_finite()) {
        return Err(
            format!("--seconds {}: a number of seconds from 0 on is needed", arguments.seconds).into()
        );
    }
    let isa = Isa::from_env()?;
    let preset = arguments.preset;
    let (words, sentences, length) = workload(arguments);
    if sentences.saturating_mul(length) > MOST_TOKENS {
        let message =
            format!("{sentences} sentences of {length} tokens: a batch has at most {MOST_TOKENS} tokens");
        return Err(message.into());
    }
    // The peer draws from all its words and uses dropout 0.1 throughout its layers; our padding
    // token is one more word.
    let config = ModelConfig {
        attention_dropout: 0.1,
        activation_dropout: 0.1,
        dropout: 0.1,
        ..preset.config(words + 1)
    };
    let (tokens, start_token) = (sentences * length, config.start());
    // An upper bound: repeated targets count once.
    let in_softmax = arguments.softmax_sample.map_or(words, |sample| words.min(sample + tokens));
    let flops = flops(&config, in_softmax, tokens);
    let choice = choose_dtype(arguments.precision.0, isa)?;
    if let Some(note) = &choice.note {
        note!("{note}");
    }
    let mut trainer = trainer(arguments, communicator, config, choice.gemm)?;
    let measured = take_steps(arguments, &**communicator, |n| {
        let key = Key::new(2).child(n);
        let ids: Vec<u32> = (0..2 * tokens).map(|i| key.bits(i as u32) % words as u32).collect();
        let (source, target) = ids.split_at(tokens);
        let batch = Batch::new(source.chunks(length).zip(target.chunks(length)), start_token)?;
        trainer.step(&[batch], 1e-4)
    })?;
    if communicator.rank() > 0 {
        return Ok(());
    }
    let seconds = measured.seconds / f64::from(measured.steps);
    let round = |x: f64, digits: i32| (x * 10f64.powi(digits)).round() / 10f64.powi(digits);
    print_report(
        arguments,
        &Report {
            peer: "regard",
            version: env!("CARGO_PKG_VERSION"),
            preset: preset.name(),
            precision: choice.gemm.name(),
            threads: arguments.threads.unwrap_or_else(cores),
            step_ms: round(seconds * 1e3, 1),
            target_tokens_per_s: round(tokens as f64 / seconds, 0),
            gflops: round(flops / seconds / 1e9, 1),
            peak_rss_mb: peak_rss_mb(),
            sentences,
            tokens: length,
            vocabulary: words,
            matmul_share: round(measured.gemm_time.as_secs_f64() / measured.busy.as_secs_f64(), 3),
            isa: isa.name(),
            ranks: communicator.size(),
            replicas: trainer.replicas(),
            wire_mb: round(trainer.wire_bytes() as f64 / 1e6, 3),
            exchange_ms: round(measured.exchange.as_secs_f64() * 1e3 / f64::from(measured.steps), 2),
        },
    )
}

fn print_report(arguments: &Arguments, report: &Report) -> CommandResult {
    if arguments.json {
        return print_line(serde_json::to_string(report)?);
    }
    print_line(format_args!(
        "{} {} on {} threads ({}): {:.1} ms per step, {:.0} target tokens/s, {:.1} GFLOPS, {:.0} % of the time in \
             GEMM, peak memory {} MB",
        report.preset,
        report.precision,
        report.threads,
        report.isa,
        report.step_ms,
        report.target_tokens_per_s,
        report.gflops,
        100.0 * report.matmul_share,
        report.peak_rss_mb
    ))
}
