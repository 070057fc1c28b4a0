//! One file per command, and shared code: standard output, text input, ways to exit.

pub(crate) mod average;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod completions;
mod corpus;
pub(crate) mod distill;
mod dtypes;
pub(crate) mod evaluate;
pub(crate) mod export;
pub(crate) mod info;
mod input;
#[cfg(feature = "serve")]
pub(crate) mod keys;
pub(crate) mod look;
pub(crate) mod man;
pub(crate) mod models;
mod numbers;
mod presets;
pub(crate) mod quantize;
pub(crate) mod quickstart;
pub(crate) mod score;
mod search;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod shortlist;
#[cfg(feature = "studies")]
pub(crate) mod study;
pub(crate) mod tokenize;
pub(crate) mod train;
pub(crate) mod translate;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use regard::metrics::Tokenizer;
use regard::train::distributed::{Communicator, join};

/// The result of a command: nothing, or the one error message that the user sees.
pub(crate) type CommandResult = Result<(), Box<dyn Error>>;

/// Arguments that contradict each other, found after clap has read them; exit status 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

/// The reader of standard output has closed it, as `head` does: not a failure, and nothing more to
/// print.
#[derive(Debug)]
pub(crate) struct ClosedPipe;

/// A signal ended the work early, after everything was saved; the exit status is the one that
/// shells expect.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) u8);

/// Rank 0 has printed the error message, or the findings on standard output are the message.
#[derive(Debug)]
pub(crate) struct AlreadyReported;

impl Error for AlreadyReported {}
impl Error for Usage {}
impl Error for Interrupted {}
impl Error for ClosedPipe {}

impl Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted by a signal")
    }
}

impl Display for AlreadyReported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rank 0 has printed the error message")
    }
}

impl Display for ClosedPipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

/// The folder of a model by name, with a progress bar if it is downloaded.
fn resolve(name: impl AsRef<Path>) -> regard::Result<PathBuf> {
    let mut bars = models::Bars::default();
    let folder = regard::formats::resolve_with(name.as_ref(), &mut |progress| bars.show(progress));
    bars.end();
    folder
}

/// Runs `work` as one of the ranks that an MPI launcher started, or as the only one. An error on
/// one rank ends all of them, with a message that names the rank; an error that all ranks see is
/// printed by rank 0.
pub(crate) fn together(
    command: &str,
    work: impl FnOnce(&Arc<dyn Communicator>) -> CommandResult,
) -> CommandResult {
    let communicator = join(command).map_err(with_mpi_build)?;
    let Err(error) = work(&communicator) else { return Ok(()) };
    if communicator.size() == 1 || error.is::<Interrupted>() {
        return Err(error);
    }
    if let Some(regard::Error::Inconsistent(_)) = error.downcast_ref() {
        if communicator.rank() == 0 {
            note!("regard: {error}");
        }
        // The launcher ends all ranks when the first one exits, so they wait until rank 0 has
        // printed the message.
        communicator.all_gather_bytes(&[]);
        return Err(Box::new(AlreadyReported));
    }
    note!("regard: rank {} on {}: {error}", communicator.rank(), communicator.host());
    communicator.abort(if error.is::<Usage>() { 2 } else { 1 })
}

/// Explains how to build the command with MPI, which is the only possible cause without it.
fn with_mpi_build(error: regard::Error) -> regard::Error {
    match error {
        regard::Error::Input { operation, message } if cfg!(not(feature = "mpi")) => {
            let message = format!("{message} (`cargo build --release --features mpi`)");
            regard::Error::Input { operation, message }
        }
        other => other,
    }
}

/// Standard output, buffered. `println!` panics when the pipe is closed or the disk is full; this
/// returns an error that `main` handles. Call [`Output::flush`] at the end, or write errors go
/// unnoticed.
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Self {
        Output(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    pub(crate) fn line(&mut self, text: impl Display) -> CommandResult {
        writeln!(self.0, "{text}").map_err(refused)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> CommandResult {
        self.0.write_all(bytes).map_err(refused)
    }

    pub(crate) fn flush(&mut self) -> CommandResult {
        self.0.flush().map_err(refused)
    }
}

/// The BLEU tokenizer: the one given, else the one for the target language, which is announced
/// unless it is the default.
fn bleu_tokenizer(given: Option<Tokenizer>, target_lang: Option<&str>) -> Tokenizer {
    let chosen = target_lang.map_or_else(Tokenizer::default, Tokenizer::for_language);
    if let (None, Some(code)) = (given, target_lang.filter(|_| chosen != Tokenizer::default())) {
        note!("regard: BLEU tokenizer {chosen}, chosen for target language {code}");
    }
    given.unwrap_or(chosen)
}

/// Accepts the names of sacreBLEU's tokenizers.
fn tokenizer_parser() -> impl TypedValueParser<Value = Tokenizer> {
    PossibleValuesParser::new(Tokenizer::ALL.map(Tokenizer::name)).try_map(|name| name.parse::<Tokenizer>())
}

/// Prints one line to standard output.
pub(crate) fn print_line(text: impl Display) -> CommandResult {
    let mut output = Output::new();
    output.line(text)?;
    output.flush()
}

fn refused(error: io::Error) -> Box<dyn Error> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Box::new(ClosedPipe),
        _ => format!("standard output: {error}").into(),
    }
}

/// The number of cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The last signal that [`stop_on_signals`] has caught.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The result of a command that a signal has stopped: the status is 130 after SIGINT and 143 after
/// SIGTERM.
pub(crate) fn interrupted() -> Box<dyn Error> {
    let signal = match SIGNAL.load(Ordering::Relaxed) {
        // Another rank was stopped.
        0 => signal_hook::consts::SIGTERM as usize,
        signal => signal,
    };
    Box::new(Interrupted(128 + signal as u8))
}

/// A flag that SIGINT and SIGTERM set, so that the current work can be finished. A second signal
/// ends the program at once.
pub(crate) fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Register this before the flag, so that code that sees the flag finds the signal.
        signal_hook::flag::register_usize(signal, Arc::clone(&SIGNAL), signal as usize)?;
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
