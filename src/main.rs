//! The `regard` command: arguments here, one file per command in `commands`.

// It panics when the reader of a pipe has gone; `commands::Output` does not.
#![warn(clippy::print_stderr, clippy::print_stdout)]

/// Prints a line to standard error. Where that is closed, as after `2>&1 | head`, the line is lost
/// and the work goes on: `eprintln!` would panic.
macro_rules! note {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}

mod commands;

use clap::{CommandFactory, Parser, Subcommand};
use commands::{ClosedPipe, Interrupted, SaidElsewhere, Usage};
use regard::train::distributed::refuse_copies;
use std::process::ExitCode;

/// The threads of a training step allocate their packing buffers anew, in bf16 for each matrix
/// product. The system's allocator returns such large blocks to the kernel each time, which stalls
/// all cores.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The Transformer, from raw parallel text to a served translator.
#[derive(Debug, Parser)]
#[command(name = "regard", version, arg_required_else_help = true)]
#[command(after_help = "Example:\n  regard score --hyp output.de --ref reference.de\n\n\
    `regard COMMAND --help` explains a command and shows examples.\n\
    REGARD_ISA=portable|avx2|avx512|neon forces an instruction set.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Average the weights of several models of the same shape
    Average(commands::average::Arguments),
    /// Convert a model to int8: a quarter of the size, the fastest decoding
    Quantize(commands::quantize::Arguments),
    /// Write a model for Marian or for Firefox's engine (Bergamot)
    Export(commands::export::Arguments),
    /// Build a lexical shortlist: the likely target tokens of each source token, for faster decoding
    Shortlist(commands::shortlist::Arguments),
    /// Describe a model: sizes, languages, vocabulary, search settings
    Info(commands::info::Arguments),
    /// Train a first translator in a minute or two on a built-in corpus
    Quickstart(commands::quickstart::Arguments),
    /// Train a translator on parallel text
    Train(Box<commands::train::Arguments>),
    /// Measure speed on a fixed workload, comparable with the scripts in tools/peers
    Bench(commands::bench::Arguments),
    /// Translate text, one output line per input line
    Translate(commands::translate::Arguments),
    /// Translate a test set and score the result: BLEU, chrF, TER and speed
    Evaluate(commands::evaluate::Arguments),
    /// Serve translations over HTTP, with LibreTranslate's API and a web page
    #[cfg(feature = "serve")]
    Serve(Box<commands::serve::Arguments>),
    /// Show the attention between a sentence and its translation
    Look(commands::look::Arguments),
    /// Score translations with BLEU, chrF and TER; the numbers equal sacreBLEU's
    Score(commands::score::Arguments),
    /// Split text into tokens, count or decode them, or train a tokenizer
    Tokenize(commands::tokenize::Arguments),
    /// Run a measured comparison (encoders, positions, scale, heads, …) and write a report
    #[cfg(feature = "studies")]
    Study(commands::study::Arguments),
    /// Print a shell completion script
    Completions(commands::completions::Arguments),
    /// Print a manual page, or write one for each command
    Man(commands::man::Arguments),
}

/// All commands and flags; completions and manual pages are generated from them too.
fn definitions() -> clap::Command {
    Arguments::command()
}

impl Command {
    /// Its name, if it must run in one process: several would write to one folder or listen on one address.
    fn for_one_process(&self) -> Option<&'static str> {
        match self {
            Command::Average(_) => Some("average"),
            Command::Quantize(_) => Some("quantize"),
            Command::Quickstart(_) => Some("quickstart"),
            Command::Evaluate(_) => Some("evaluate"),
            #[cfg(feature = "serve")]
            Command::Serve(_) => Some("serve"),
            Command::Tokenize(_) => Some("tokenize"),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    if let Some(Err(error)) = command.for_one_process().map(refuse_copies) {
        note!("regard: {error}");
        return ExitCode::FAILURE;
    }
    let result = match command {
        Command::Average(arguments) => commands::average::run(arguments),
        Command::Quantize(arguments) => commands::quantize::run(arguments),
        Command::Export(arguments) => commands::export::run(arguments),
        Command::Shortlist(arguments) => commands::shortlist::run(arguments),
        Command::Info(arguments) => commands::info::run(arguments),
        Command::Quickstart(arguments) => commands::quickstart::run(arguments),
        Command::Train(arguments) => commands::train::run(*arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Translate(arguments) => commands::translate::run(arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(arguments),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => commands::serve::run(*arguments),
        Command::Look(arguments) => commands::look::run(arguments),
        Command::Score(arguments) => commands::score::run(arguments),
        Command::Tokenize(arguments) => commands::tokenize::run(arguments),
        #[cfg(feature = "studies")]
        Command::Study(arguments) => commands::study::run(arguments),
        Command::Completions(arguments) => commands::completions::run(arguments),
        Command::Man(arguments) => commands::man::run(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<ClosedPipe>() => ExitCode::SUCCESS,
        Err(error) if error.is::<SaidElsewhere>() => ExitCode::FAILURE,
        Err(error) => {
            if let Some(Interrupted(status)) = error.downcast_ref() {
                return ExitCode::from(*status);
            }
            note!("regard: {error}");
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
