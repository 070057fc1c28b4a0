//! `regard bench`: speed on the workloads of `tools/peers`.

mod train;
mod translate;

use super::CommandResult;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  regard bench train --preset tiny --seconds 5")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A training step: forward, loss, backward, clipping and Adam on random tokens
    #[command(after_help = "Examples:\n  regard bench train --preset tiny --json\n  \
        regard bench train --preset tiny --sentences 4 --tokens 1000\n\n\
        Without other sizes, the workload is that of tools/peers/torch_train.py; tools/bench_train.py alternates the two.")]
    Train(train::Arguments),
    /// Decoding: random weights, 256 sentences of 10 to 29 tokens, exactly 25 tokens out
    #[command(
        after_help = "Examples:\n  regard bench translate --preset base --precision int8 --beam 4 --json\n  \
        regard bench translate --preset base --precision int8 --beam 1 --batch 1\n  \
        regard bench translate --preset tiny --tokens 1000 --sentences 8\n\n\
        Without other sizes, the workload is that of tools/peers/ct2_translate.py; tools/bench_translate.py alternates the two. With --batch 1 the\n\
        calls are sequential, one sentence in flight, all cores inside it."
    )]
    Translate(translate::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    match arguments.what {
        What::Train(arguments) => train::run(&arguments),
        What::Translate(arguments) => translate::run(&arguments),
    }
}

/// The peak memory of this process in MiB; 0 if the system does not report it.
fn peak_rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
