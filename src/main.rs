//! The `regard` command: arguments here, one file per command in `commands`.

mod commands;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The Transformer, from raw parallel text to a served translator.
#[derive(Debug, Parser)]
#[command(name = "regard", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Average the weights of several models of the same shape
    Average(commands::average::Arguments),
    /// Show what a model folder holds: sizes, languages, vocabulary, search settings
    Info(commands::info::Arguments),
    /// Measure speed on a fixed workload, comparable with the scripts in tools/peers
    Bench(commands::bench::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Average(arguments) => commands::average::run(arguments),
        Command::Info(arguments) => commands::info::run(arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regard: {error}");
            ExitCode::FAILURE
        }
    }
}
