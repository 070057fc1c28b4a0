//! The `regard` command: arguments here, one file per command in `commands`.

mod commands;

use clap::{CommandFactory, Parser, Subcommand};
use commands::{ClosedPipe, Interrupted, SaidElsewhere, Usage};
use regard::train::group::refuse_copies;
use std::process::ExitCode;

/// The threads of a training step ask for their packing buffers anew, in bf16 at each product; the system's allocator gives such large
/// ones back to the kernel each time, and both cores wait for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The Transformer, from raw parallel text to a served translator.
#[derive(Debug, Parser)]
#[command(name = "regard", version, arg_required_else_help = true)]
#[command(after_help = "Example:\n  regard score --hyp output.de --ref reference.de\n\n\
    `regard COMMAND --help` explains a command and shows examples of it.\n\
    REGARD_ISA=portable|avx2|avx512|neon forces an instruction set.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Average the weights of several models of the same shape
    Average(commands::average::Arguments),
    /// Store a model in 8 bits: a quarter of the size, the fastest decoding
    Quantize(commands::quantize::Arguments),
    /// List the target words that each source word makes likely, for faster decoding
    Shortlist(commands::shortlist::Arguments),
    /// Show what a model folder holds: sizes, languages, vocabulary, search settings
    Info(commands::info::Arguments),
    /// A first translator in a minute or two, trained on a corpus built into the program
    Quickstart(commands::quickstart::Arguments),
    /// Train a translator on parallel text
    Train(Box<commands::train::Arguments>),
    /// Measure speed on a fixed workload, comparable with the scripts in tools/peers
    Bench(commands::bench::Arguments),
    /// Translate text, a line for a line
    Translate(commands::translate::Arguments),
    /// Translate a test set and score the result: BLEU, chrF, TER and speed
    Evaluate(commands::evaluate::Arguments),
    /// Answer translation requests over HTTP, with LibreTranslate's API and a page to look inside
    #[cfg(feature = "serve")]
    Serve(Box<commands::serve::Arguments>),
    /// Look at the attention of a sentence and its translation
    Look(commands::look::Arguments),
    /// BLEU, chrF and TER of translations, number for number as sacreBLEU
    Score(commands::score::Arguments),
    /// Show and count the pieces of text, decode them, or train a tokenizer alone
    Tokenize(commands::tokenize::Arguments),
    /// Run a comparison: encoders, positions, scale, heads, … with tables, pictures and a page
    #[cfg(feature = "studies")]
    Study(commands::study::Arguments),
    /// Print the completions of a shell
    Completions(commands::completions::Arguments),
    /// Print the manual page, or write one for each command
    Man(commands::man::Arguments),
}

/// All commands and flags, which the completions and the manual are made of too.
fn definitions() -> clap::Command {
    Arguments::command()
}

impl Command {
    /// Its name, if it is for one process: several copies would write to one folder or answer at one address.
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
        eprintln!("regard: {error}");
        return ExitCode::FAILURE;
    }
    let result = match command {
        Command::Average(arguments) => commands::average::run(arguments),
        Command::Quantize(arguments) => commands::quantize::run(arguments),
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
            eprintln!("regard: {error}");
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
