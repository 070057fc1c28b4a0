//! `regard translate`: standard input or files to standard output, one output line per input line.

mod inputs;
mod jsonl;
mod spread;
mod stats;

use super::numbers::{BEAM, whole};
use super::search::{ModelFlags, SearchFlags};
use super::{CommandResult, Output, stop_on_signals};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use inputs::Input;
use regard::decode::SearchOptions;
use regard::translator::{Candidate, Line, Translator};
use regard_documents::translate_lines;
use serde::Serialize;
use stats::Stats;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard translate --model model \"A dog runs.\"\n  \
    regard translate --model model < input.en > output.de\n  \
    echo 'A dog runs.' | regard translate --model model --nbest 4 --scores\n  \
    regard translate --model model --alignment --json input.en.gz\n  \
    regard translate --model model --score-target output.de input.en\n  \
    regard translate --model model --jsonl records.jsonl > translated.jsonl\n\n\
    One line in is one line out, with --nbest N lines out; an empty line stays empty. Each line is translated sentence by\n\
    sentence. Addresses, placeholders ({name}, %s), numbers and emoji are kept, and so are the spaces between sentences. With\n\
    several sentences on a line, translation n of the line has translation n of each sentence, and its score is their mean.\n\
    --no-split passes each line to the model whole; only a line that is longer than the model can read is still split.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    search: SearchFlags,
    /// Number of translations to print for each line; the beam is at least as wide
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(BEAM))]
    nbest: usize,
    /// Print the score and a tab before each translation
    #[arg(long)]
    scores: bool,
    /// Print a tab and the word alignment after each translation: pairs `source-target` of word
    /// numbers, from 0
    #[arg(long)]
    alignment: bool,
    /// Print one JSON object per line: text, score, tokens, alignment
    #[arg(long)]
    json: bool,
    /// Translate each line as a whole and print the model's output unchanged: no sentence
    /// splitting, no protected text
    #[arg(long)]
    no_split: bool,
    /// Print to standard error, as a line of JSON, how long loading and translating took, and how
    /// many lines and source words there were
    #[arg(long, conflicts_with = "score_target")]
    stats: bool,
    /// Score the translations in FILE instead of searching, one per input line: prints score, tab,
    /// translation
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nbest", "alignment"])]
    score_target: Option<PathBuf>,
    /// Read one JSON object per line, translate its field `text` or `source`, and print it with the
    /// field `translation`; with --nbest, --scores and --alignment also `alternatives`, `score` and
    /// `alignment`
    #[arg(long, conflicts_with_all = ["json", "score_target"])]
    jsonl: bool,
    /// Text to translate; may be repeated
    #[arg(long, value_name = "TEXT")]
    text: Vec<String>,
    /// Files to translate: plain, .gz or .zst; - is standard input. An argument with white space that
    /// names no file is the text itself
    #[arg(value_name = "FILE|TEXT")]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    source_tokens: &'a [String],
    translations: Vec<JsonCandidate<'a>>,
}

#[derive(Serialize)]
struct JsonCandidate<'a> {
    text: &'a str,
    score: f32,
    tokens: &'a [String],
    token_scores: &'a [f32],
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<&'a [(usize, usize)]>,
}

impl<'a> JsonCandidate<'a> {
    fn new(candidate: &'a Candidate, alignment: bool) -> Self {
        let Candidate { text, score, tokens, token_scores, .. } = candidate;
        let alignment = alignment.then_some(&candidate.alignment[..]);
        JsonCandidate { text, score: *score, tokens, token_scores, alignment }
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    super::together("translate", |communicator| match communicator.size() {
        1 => run_alone(&arguments),
        _ => spread::run(&arguments, &**communicator),
    })
}

fn run_alone(arguments: &Arguments) -> CommandResult {
    let start = Instant::now();
    let translator = arguments.model.load()?;
    let mut stats = Stats::after_loading(start, arguments.stats);
    let options = options(arguments, &translator)?;
    let inputs = inputs::of(arguments)?;
    if let Some(target) = &arguments.score_target {
        return score(arguments, &translator, &options, &inputs, target);
    }
    let stop = stop_on_signals()?;
    let idle = end_when_idle()?;
    let progress = progress(&inputs);
    if arguments.jsonl {
        return jsonl::run(arguments, &translator, &options, &inputs, (&stop, &idle));
    }
    let mut output = Output::new();
    for input in &inputs {
        let mut lines = input.open()?;
        loop {
            let before = lines.count();
            idle.store(true, Ordering::SeqCst);
            // A signal from now on ends the program; one that came before has left its mark.
            if stop.load(Ordering::SeqCst) {
                return Err(format!("stopped after {before} lines, which are complete").into());
            }
            let batch = lines.next_batch_lossy();
            idle.store(false, Ordering::SeqCst);
            let batch = batch?;
            if batch.is_empty() {
                break;
            }
            let texts: Vec<&str> = batch.iter().map(|(text, _)| text.as_str()).collect();
            // Large enough for batches of similar lengths, small enough to show progress.
            for (start, part) in texts.chunks(PART).enumerate().map(|(i, part)| (i * PART, part)) {
                if stop.load(Ordering::Relaxed) {
                    output.flush()?;
                    return Err(format!("stopped after {} lines, which are complete", before + start).into());
                }
                let translated = translate(arguments, &translator, part, &options)?;
                for (i, (line, (_, whole))) in translated.iter().zip(&batch[start..]).enumerate() {
                    let number = before + start + i + 1;
                    warn(lines.path(), number, line.cut > 0, *whole, &progress);
                    output.bytes(render(arguments, line)?.as_bytes())?;
                }
                output.flush()?;
                stats.add(part);
                progress.inc(part.len() as u64);
            }
        }
    }
    progress.finish_and_clear();
    output.flush()?;
    Ok(stats.print()?)
}

/// Sentence by sentence as the server does, or line by line.
pub(crate) fn translate<T: AsRef<str> + Sync>(
    arguments: &Arguments,
    translator: &Translator,
    lines: &[T],
    options: &SearchOptions,
) -> regard::Result<Vec<Line>> {
    match arguments.no_split {
        true => translator.translate(lines, options),
        false => translate_lines(translator, lines, options),
    }
}

pub(crate) fn options(
    arguments: &Arguments,
    translator: &Translator,
) -> Result<SearchOptions, regard::Error> {
    let mut options = arguments.search.options(translator)?;
    options.nbest = arguments.nbest;
    options.beam = options.beam.max(options.nbest);
    options.attention = arguments.alignment;
    options.validate()?;
    Ok(options)
}

/// Forced decoding of the lines of all files with the lines of `target`.
fn score(
    arguments: &Arguments,
    translator: &Translator,
    options: &SearchOptions,
    inputs: &[Input],
    target: &Path,
) -> CommandResult {
    let mut sources = Vec::new();
    for input in inputs {
        sources.extend(read_all(input)?);
    }
    let targets = read_all(&Input::File(target.to_owned()))?;
    if sources.len() != targets.len() {
        let (s, t) = (sources.len(), targets.len());
        return Err(format!("{}: {t} lines, but the input has {s}; each needs one", target.display()).into());
    }
    let pairs: Vec<(String, String)> = sources.into_iter().zip(targets).collect();
    let mut output = Output::new();
    for part in pairs.chunks(PART) {
        for ((source, _), candidate) in part.iter().zip(translator.score(part, options)?) {
            if arguments.json {
                let source_tokens = translator.source().pieces(source)?;
                let translations = vec![JsonCandidate::new(&candidate, false)];
                output.line(serde_json::to_string(&JsonLine {
                    source_tokens: &source_tokens,
                    translations,
                })?)?;
            } else {
                output.line(format!("{:.4}\t{}", candidate.score, without_tabs(&candidate.text)))?;
            }
        }
        output.flush()?;
    }
    Ok(())
}

fn read_all(input: &Input) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let (mut lines, mut all) = (input.open()?, Vec::new());
    loop {
        let batch = lines.next_batch_lossy()?;
        if batch.is_empty() {
            return Ok(all);
        }
        all.extend(batch.into_iter().map(|(text, _)| text));
    }
}

/// A flag that is true while the command waits for input: everything is printed then, and a signal
/// may end the program at once.
fn end_when_idle() -> std::io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let idle = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&idle))?;
    }
    Ok(idle)
}

/// Number of lines translated between two checks for signals.
const PART: usize = 512;

fn progress(inputs: &[Input]) -> ProgressBar {
    let from_terminal = inputs.iter().any(Input::is_stdin) && std::io::stdin().is_terminal();
    if std::io::stdout().is_terminal() || from_terminal || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {pos} lines, {per_sec}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar
}

fn warn(path: &Path, number: usize, cut: bool, whole: bool, progress: &ProgressBar) {
    let say = |message: &str| progress.suspend(|| note!("regard: {}:{number}: {message}", path.display()));
    if !whole {
        say("not UTF-8; invalid bytes are replaced by U+FFFD");
    }
    if cut {
        say("a sentence is longer than the model can read and was cut into pieces");
    }
}

/// A text as one column of a tab-separated line.
fn without_tabs(text: &str) -> String {
    text.replace('\t', " ")
}

/// A line's translations as they are printed.
fn render(arguments: &Arguments, line: &Line) -> Result<String, serde_json::Error> {
    if arguments.json {
        let translations =
            line.candidates.iter().map(|c| JsonCandidate::new(c, arguments.alignment)).collect();
        let line = serde_json::to_string(&JsonLine { source_tokens: &line.source, translations })?;
        return Ok(line + "\n");
    }
    // An empty line has no candidates, and is as many empty lines as others have translations.
    let empty = [line.best()];
    let candidates: Vec<&Candidate> = match line.candidates.is_empty() {
        true => empty.iter().cycle().take(arguments.nbest).collect(),
        false => line.candidates.iter().collect(),
    };
    let mut text = String::new();
    for candidate in candidates {
        if arguments.scores {
            text.push_str(&format!("{:.4}\t", candidate.score));
        }
        match arguments.scores || arguments.alignment {
            true => text.push_str(&without_tabs(&candidate.text)),
            false => text.push_str(&candidate.text),
        }
        if arguments.alignment {
            let pairs: Vec<String> = candidate.alignment.iter().map(|(s, t)| format!("{s}-{t}")).collect();
            text.push('\t');
            text.push_str(&pairs.join(" "));
        }
        text.push('\n');
    }
    Ok(text)
}
