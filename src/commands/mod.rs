//! One file per command, and what they share: standard output, text input, the ways to end.

pub(crate) mod average;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod evaluate;
pub(crate) mod info;
mod input;
pub(crate) mod look;
pub(crate) mod man;
mod numbers;
pub(crate) mod quantize;
pub(crate) mod quickstart;
pub(crate) mod score;
mod search;
pub(crate) mod serve;
pub(crate) mod shortlist;
pub(crate) mod study;
pub(crate) mod tokenize;
pub(crate) mod train;
pub(crate) mod translate;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use regard::group::{Group, join};

/// What a command ends with: nothing, or the one message that the user sees.
pub(crate) type CommandResult = Result<(), Box<dyn Error>>;

/// Arguments that do not go together, found after clap has read them; exit status 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

/// Whoever read standard output has gone, as `head` does: no failure, and nothing more to say.
#[derive(Debug)]
pub(crate) struct ClosedPipe;

/// Rank 0 has said what there is to say.
#[derive(Debug)]
pub(crate) struct SaidElsewhere;

impl Error for SaidElsewhere {}
impl Error for Usage {}
impl Error for ClosedPipe {}

impl Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Display for SaidElsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rank 0 has said why")
    }
}

impl Display for ClosedPipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

/// Runs `work` as one of the ranks that an MPI launcher started, or as the only one. What stops one rank ends all of them, with a
/// message that names it; what all ranks know to be wrong, rank 0 says.
pub(crate) fn together(command: &str, work: impl FnOnce(&Arc<dyn Group>) -> CommandResult) -> CommandResult {
    let group = join(command)?;
    let Err(error) = work(&group) else { return Ok(()) };
    if group.size() == 1 {
        return Err(error);
    }
    if let Some(regard::Error::Apart(_)) = error.downcast_ref() {
        if group.rank() == 0 {
            eprintln!("regard: {error}");
        }
        // The launcher ends all ranks when the first has left: nobody leaves before rank 0 has said why.
        group.gather(&[]);
        return Err(Box::new(SaidElsewhere));
    }
    eprintln!("regard: rank {} on {}: {error}", group.rank(), group.host());
    group.abort(if error.is::<Usage>() { 2 } else { 1 })
}

/// Standard output, buffered. `println!` panics where the pipe is closed or the disk is full; this returns an error that
/// `main` knows. [`Output::flush`] before the end, or what could not be written is lost in silence.
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

/// How many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A flag that SIGINT and SIGTERM set: the work at hand is finished first. A second signal ends the program at once.
pub(crate) fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
