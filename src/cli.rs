//! The command line `regard` as functions: the program calls [`main`]; other programs that offer
//! the command (the Python package) call [`run`]. Programs with their own error handling, progress
//! display or server shutdown use [`call`], [`TranslateSettings`], [`train`] and [`serve`].

use crate::commands::{self, AlreadyReported, ClosedPipe, CommandResult, Interrupted, Usage};
use crate::decode::SearchOptions;
use crate::train::distributed::refuse_copies;
use crate::train::{Outcome, Progress};
use crate::translator::Translator;
use crate::{DType, Isa};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use regard_documents::{Glossary, Report, TranslatedLine};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The Transformer, from raw parallel text to a served translator.
#[derive(Debug, Parser)]
#[command(name = "regard", version, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    regard translate --model model \"A dog runs.\"\n  \
    regard quickstart\n  \
    regard serve --model model\n\n\
    `regard COMMAND --help` explains a command and shows examples.\n\
    REGARD_ISA=portable|avx2|avx512|neon forces an instruction set.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a first translator in a minute or two on a built-in corpus
    Quickstart(commands::quickstart::Arguments),
    /// Train a translator on parallel text
    Train(Box<commands::train::Arguments>),
    /// Translate text, one output line per input line
    Translate(commands::translate::Arguments),
    /// List, download and remove models
    Models(commands::models::Arguments),
    /// Serve translations over HTTP, with LibreTranslate's API and a web page
    #[cfg(feature = "serve")]
    Serve(Box<commands::serve::Arguments>),
    /// Add, list and revoke the API keys of a server
    #[cfg(feature = "serve")]
    Keys(commands::keys::Arguments),
    /// Translate a test set and score the result: BLEU, chrF, TER and speed
    Evaluate(commands::evaluate::Arguments),
    /// Show the attention between a sentence and its translation
    Look(commands::look::Arguments),
    /// Describe a model: sizes, languages, vocabulary, search settings
    Info(commands::info::Arguments),
    /// Convert a model to int8: a quarter of the size, the fastest decoding
    Quantize(commands::quantize::Arguments),
    /// Write a model for Marian or for Firefox's engine (Bergamot)
    Export(commands::export::Arguments),
    /// Check parallel text: wrong languages, shifted lines, duplicates, damage
    Check(commands::check::Arguments),
    /// Train a small fast model on the translations of larger ones, or by back-translation
    Distill(Box<commands::distill::Arguments>),
    /// Average the weights of several models of the same shape
    Average(commands::average::Arguments),
    /// Build a lexical shortlist: the likely target tokens of each source token, for faster
    /// decoding
    Shortlist(commands::shortlist::Arguments),
    /// Score translations with BLEU, chrF and TER; the numbers equal sacreBLEU's
    Score(commands::score::Arguments),
    /// Split text into tokens, count or decode them, or train a tokenizer
    Tokenize(commands::tokenize::Arguments),
    /// Run a measured comparison (encoders, positions, scale, heads, …) and write a report
    #[cfg(feature = "studies")]
    Study(commands::study::Arguments),
    /// Measure speed on a fixed workload, comparable with the scripts in tools/peers
    Bench(commands::bench::Arguments),
    /// Print a shell completion script
    Completions(commands::completions::Arguments),
    /// Print a manual page, or write one for each command
    Man(commands::man::Arguments),
}

/// All commands and flags; completions and manual pages are generated from them too.
pub(crate) fn definitions() -> clap::Command {
    Arguments::command()
}

impl Command {
    /// The name of a command that must run in one process: several would write to one folder or
    /// listen on one address.
    fn for_one_process(&self) -> Option<&'static str> {
        match self {
            Command::Average(_) => Some("average"),
            Command::Quantize(_) => Some("quantize"),
            Command::Quickstart(_) => Some("quickstart"),
            Command::Check(_) => Some("check"),
            Command::Distill(_) => Some("distill"),
            Command::Evaluate(_) => Some("evaluate"),
            #[cfg(feature = "serve")]
            Command::Serve(_) => Some("serve"),
            #[cfg(feature = "serve")]
            Command::Keys(_) => Some("keys"),
            Command::Models(_) => Some("models"),
            Command::Tokenize(_) => Some("tokenize"),
            _ => None,
        }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Arguments that are wrong or contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A signal, or the caller's flag, ended the work; everything is saved.
    #[error("interrupted")]
    Interrupted,
    /// An error of the library.
    #[error(transparent)]
    Library(#[from] crate::Error),
    /// Any other message.
    #[error("{0}")]
    Other(String),
}

impl From<Box<dyn std::error::Error>> for Failure {
    fn from(error: Box<dyn std::error::Error>) -> Self {
        if error.is::<Usage>() {
            return Failure::Usage(error.to_string());
        }
        if error.is::<Interrupted>() {
            return Failure::Interrupted;
        }
        match error.downcast::<crate::Error>() {
            Ok(error) => Failure::Library(*error),
            Err(error) => Failure::Other(error.to_string()),
        }
    }
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    run(std::env::args_os().skip(1)).into()
}

/// Runs a command with these arguments, as the program does, and returns its exit status: settings
/// also come from the environment. Only a second signal or the abort of an MPI job ends the
/// process.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let variable = |name: &str| std::env::var(name).ok();
    let definitions = match commands::settings::with_settings(definitions(), &arguments, variable) {
        Ok(definitions) => definitions,
        Err(error) => {
            note!("regard: {error}");
            return 2;
        }
    };
    let command = match parse(definitions, arguments) {
        Ok(arguments) => arguments.command,
        Err(error) => {
            // Help goes to standard output, which may be closed.
            let _ = error.print();
            return error.exit_code().try_into().unwrap_or(2);
        }
    };
    if let Some(Err(error)) = command.for_one_process().map(refuse_copies) {
        note!("regard: {error}");
        return 1;
    }
    match carry_out(command) {
        Ok(()) => 0,
        Err(error) if error.is::<ClosedPipe>() => 0,
        Err(error) if error.is::<AlreadyReported>() => 1,
        Err(error) => {
            if let Some(Interrupted(status)) = error.downcast_ref() {
                return *status;
            }
            note!("regard: {error}");
            if error.is::<Usage>() { 2 } else { 1 }
        }
    }
}

/// Runs a command with these arguments like [`run`], but returns the error instead of printing it.
pub fn call(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<(), Failure> {
    let command = parse_for_caller(arguments)?;
    Ok(carry_out(command)?)
}

/// Models that are loaded once and used with different settings: one, several with the same
/// language pair as an ensemble, or two in sequence (pivot translation).
#[derive(Debug)]
pub struct LoadedModels(commands::translate::LoadedModels);

impl LoadedModels {
    /// Loads models from folders or by name.
    pub fn load(models: &[PathBuf], precision: Option<DType>, threads: Option<usize>) -> crate::Result<Self> {
        let isa = Isa::from_env().map_err(crate::Error::other)?;
        let threads = threads.unwrap_or_else(commands::cores);
        let load = |model: &PathBuf| {
            Translator::load_as(&[crate::formats::resolve(model)?], precision, isa, threads)
        };
        let models = models.iter().map(load).collect::<crate::Result<Vec<_>>>()?;
        if models.is_empty() {
            return Err(crate::Error::config("model", "at least one is needed"));
        }
        Ok(LoadedModels(commands::translate::LoadedModels::new(models)?))
    }

    /// The model that was named first.
    pub fn first(&self) -> Option<&Arc<Translator>> {
        self.0.first()
    }
}

/// `regard translate` for lines and files, for programs that have loaded the models themselves.
#[derive(Debug)]
pub struct TranslateSettings(commands::translate::Caller);

/// The flags of one command only, which are cheap to parse.
#[derive(Parser)]
#[command(name = "translate", disable_help_flag = true)]
struct TranslateFlags {
    #[command(flatten)]
    arguments: commands::translate::Arguments,
}

impl TranslateSettings {
    /// Parses the flags of `regard translate`, except the one for the model.
    pub fn parse(
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        models: &LoadedModels,
    ) -> Result<Self, Failure> {
        let all = ["translate", "--model=."].map(OsString::from).into_iter();
        let all = all.chain(arguments.into_iter().map(Into::into));
        let TranslateFlags { arguments } = TranslateFlags::try_parse_from(all).map_err(usage)?;
        Ok(TranslateSettings(commands::translate::Caller::new(arguments, &models.0)?))
    }

    /// Replaces the glossary of the flags by these terms and their translations.
    pub fn with_glossary(self, glossary: Option<Arc<Glossary>>) -> Self {
        TranslateSettings(self.0.with_glossary(glossary))
    }

    /// The model and its search settings; an error if there are two in sequence.
    pub fn single(&self) -> crate::Result<(&Arc<Translator>, &SearchOptions)> {
        self.0.single()
    }

    /// How many lines to translate between two checks for signals.
    pub fn part(&self) -> usize {
        self.0.part()
    }

    /// Translates each line; returns one result per line.
    pub fn translate<T: AsRef<str> + Sync>(&self, lines: &[T]) -> crate::Result<Vec<TranslatedLine>> {
        self.0.translate(lines)
    }

    /// Translates a file in its format, and returns a report. `progress` receives the number of
    /// sentences or lines done and may stop the work; the result is then `None`.
    pub fn file(
        &self,
        file: &Path,
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> crate::Result<Option<(Vec<u8>, Report)>> {
        self.0.file(file, progress)
    }
}

/// `regard train` with these arguments in one process; reports to `progress` and ends when `stop`
/// is set.
pub fn train(
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    match parse_command("train", arguments)? {
        Command::Train(arguments) => Ok(commands::train::run_with(*arguments, progress, stop)?),
        _ => Err(Failure::Usage("train: another command was given".into())),
    }
}

/// `regard serve` with these arguments until `stop` is ready. Calls `ready` with the address that
/// it listens on once it accepts requests.
#[cfg(feature = "serve")]
pub fn serve(
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ready: impl FnOnce(std::net::SocketAddr),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    match parse_command("serve", arguments)? {
        Command::Serve(arguments) => Ok(commands::serve::run_with(*arguments, ready, stop)?),
        _ => Err(Failure::Usage("serve: another command was given".into())),
    }
}

fn parse(
    definitions: clap::Command,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<Arguments, clap::Error> {
    let name = OsString::from("regard");
    let line = [name].into_iter().chain(arguments.into_iter().map(Into::into));
    Arguments::from_arg_matches(&definitions.try_get_matches_from(line)?)
}

/// The same for a caller that does not see what clap prints.
fn parse_for_caller(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Command, Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    // A caller has keywords instead of the environment, but may name a file.
    let definitions = commands::settings::with_settings(definitions(), &arguments, |_| None);
    let definitions = definitions.map_err(|Usage(message)| Failure::Usage(message))?;
    let command = parse(definitions, arguments).map_err(usage)?.command;
    command.for_one_process().map_or(Ok(()), refuse_copies)?;
    Ok(command)
}

/// The arguments of the command `name`.
fn parse_command(
    name: &str,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<Command, Failure> {
    parse_for_caller([OsString::from(name)].into_iter().chain(arguments.into_iter().map(Into::into)))
}

fn usage(error: clap::Error) -> Failure {
    Failure::Usage(first_paragraph(&error.to_string()))
}

/// clap's error message without its prefix, the usage and the pointer to the help.
pub(crate) fn first_paragraph(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let end = message.find("\n\nUsage:").or_else(|| message.find("\n\nFor more information"));
    message[..end.unwrap_or(message.len())].trim_end().to_owned()
}

fn carry_out(command: Command) -> CommandResult {
    match command {
        Command::Average(arguments) => commands::average::run(arguments),
        Command::Quantize(arguments) => commands::quantize::run(arguments),
        Command::Export(arguments) => commands::export::run(arguments),
        Command::Shortlist(arguments) => commands::shortlist::run(arguments),
        Command::Info(arguments) => commands::info::run(arguments),
        Command::Quickstart(arguments) => commands::quickstart::run(arguments),
        Command::Train(arguments) => commands::train::run(*arguments),
        Command::Check(arguments) => commands::check::run(arguments),
        Command::Distill(arguments) => commands::distill::run(*arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Translate(arguments) => commands::translate::run(arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(arguments),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => commands::serve::run(*arguments),
        #[cfg(feature = "serve")]
        Command::Keys(arguments) => commands::keys::run(arguments),
        Command::Models(arguments) => commands::models::run(arguments),
        Command::Look(arguments) => commands::look::run(arguments),
        Command::Score(arguments) => commands::score::run(arguments),
        Command::Tokenize(arguments) => commands::tokenize::run(arguments),
        #[cfg(feature = "studies")]
        Command::Study(arguments) => commands::study::run(arguments),
        Command::Completions(arguments) => commands::completions::run(arguments),
        Command::Man(arguments) => commands::man::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_gets_what_is_wrong_and_no_usage() {
        let wrong = call(["score", "--hyp", "a"]).unwrap_err();
        let Failure::Usage(message) = &wrong else { panic!("{wrong:?}") };
        assert!(message.contains("--ref <FILE>") && !message.contains("Usage"), "{message}");
        assert!(!message.starts_with("error"), "{message}");
        let missing = call(["score", "--hyp", "no-such-file", "--ref", "no-such-file"]).unwrap_err();
        assert!(matches!(missing, Failure::Library(crate::Error::Io { .. })), "{missing:?}");
        assert_eq!(run(["score"]), 2);
        assert_eq!(run(["score", "--hyp", "no-such-file", "--ref", "no-such-file"]), 1);
    }
}
