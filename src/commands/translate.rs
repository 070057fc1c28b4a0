//! `regard translate`: translates standard input or files to standard output, one output line per
//! input line; or files and documents into other files.

mod bulk;
mod caller;
mod documents;
mod inputs;
mod jsonl;
mod route;
mod ranks;
mod stats;
mod summary;

use super::input::Lines;
use super::numbers::{BEAM, whole};
use super::search::{ModelFlags, SearchFlags};
use super::{CommandResult, Output, stop_on_signals};
pub(crate) use caller::Caller;
use clap::{Args, ValueEnum};
use documents::Task;
use indicatif::{ProgressBar, ProgressStyle};
use inputs::{Input, for_each_part};
use regard::decode::SearchOptions;
use regard::translator::{Candidate, Translator};
use regard_documents::files::Format;
use regard_documents::{Glossary, GlossaryMethod, Guarded, Match, Memory, TermReport, TranslatedLine};
pub(crate) use route::LoadedModels;
use route::Route;
use serde::Serialize;
use stats::Stats;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use summary::Summary;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard translate --model model \"A dog runs.\"\n  \
    regard translate --model model < input.en > output.de\n  \
    echo 'A dog runs.' | regard translate --model model --nbest 4 --scores\n  \
    regard translate --model model --alignment --json input.en.gz\n  \
    regard translate --model model --score-target output.de input.en\n  \
    regard translate --model model --jsonl records.jsonl --out translated.jsonl\n  \
    regard translate --model model report.docx --out report.de.docx\n  \
    regard translate --model model big.en --out big.de --resume\n  \
    regard translate --model model --glossary terms.tsv --memory known.tmx < input.en\n  \
    regard translate --model model --glossary terms.tsv --glossary-method constrain < input.en\n  \
    regard translate --model de-en --model en-fr --source-lang de --target-lang fr < input.de\n\n\
    One line in is one line out, with --nbest N lines out; an empty line stays empty. Each line is translated sentence by\n\
    sentence. Addresses, placeholders ({name}, %s), numbers and emoji are kept, and so are the spaces between sentences. With\n\
    several sentences on a line, translation n of the line has translation n of each sentence, and its score is their mean.\n\
    A translation that is empty, repeats itself or is far too short or long is tried again with safer settings.\n\
    --no-split passes each line to the model whole; only a line that is longer than the model can read is still split.\n\n\
    With --out, files become files: a document (docx, odt, pptx, xlsx, epub, srt, po, xliff, json, html, md, ...) keeps its\n\
    format, any other file is translated line by line.")]
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
    /// splitting, no protected text, no second attempt at degenerate translations
    #[arg(long)]
    no_split: bool,
    /// Write the translation of the input file to FILE, which appears when it is complete; with
    /// several input files, a folder
    #[arg(long, short, value_name = "FILE", conflicts_with = "score_target")]
    out: Option<PathBuf>,
    /// Continue a translation with --out that was interrupted
    #[arg(long, requires = "out")]
    resume: bool,
    /// Format of the documents
    /// [default: by the ending of their names; other files are lines of text]
    #[arg(long, value_name = "NAME", conflicts_with = "score_target")]
    format: Option<Format>,
    /// Translate only the messages that have no translation yet (po, xliff)
    #[arg(long)]
    only_empty: bool,
    /// Terms and how they are translated: lines of a term, a tab and its translation, or = for a
    /// term that stays as it is. A sentence whose translation lacks one is searched again for
    /// translations that have it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_split", "score_target"])]
    glossary: Option<PathBuf>,
    /// How the terms of the glossary come into the translations
    #[arg(long, value_enum, default_value = "auto", value_name = "METHOD")]
    glossary_method: Method,
    /// Translation memory (TMX; plain, .gz or .zst): lines, paragraphs, messages and sentences that
    /// it has are taken from it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_split", "score_target"])]
    memory: Option<PathBuf>,
    /// Language of the input, where several models are given or a model does not name its own
    #[arg(long, value_name = "CODE")]
    source_lang: Option<String>,
    /// Language to translate into, where several models are given or a model does not name its own
    #[arg(long, value_name = "CODE")]
    target_lang: Option<String>,
    /// Print to standard error, as a line of JSON, how long loading and translating took, and how
    /// many lines and source words there were
    #[arg(long, conflicts_with = "score_target")]
    stats: bool,
    /// Score the translations in FILE instead of searching, one per input line: prints score, tab,
    /// translation
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nbest", "alignment"])]
    score_target: Option<PathBuf>,
    /// Read one JSON object per line, translate its field `text` or `source`, and write it with the
    /// field `translation`; with --nbest, --scores and --alignment also `alternatives`, `score` and
    /// `alignment`
    #[arg(long, conflicts_with_all = ["json", "score_target", "format"])]
    jsonl: bool,
    /// Text to translate; may be repeated
    #[arg(long, value_name = "TEXT")]
    text: Vec<String>,
    /// Files to translate: plain, .gz or .zst; - is standard input. An argument with white space
    /// that names no file is the text itself
    #[arg(value_name = "FILE|TEXT")]
    files: Vec<PathBuf>,
}

/// How terms come into translations.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    /// Constrain; a model of `regard train --terms` also reads the missing terms as with annotate
    Auto,
    /// Search a sentence whose translation lacks a term again for translations that have it
    Constrain,
    /// Translate a sentence whose translation lacks a term again, with the term and its translation
    /// in the source; needs a model of `regard train --terms`
    Annotate,
}

impl From<Method> for GlossaryMethod {
    fn from(method: Method) -> Self {
        match method {
            Method::Auto => GlossaryMethod::Auto,
            Method::Constrain => GlossaryMethod::Constrain,
            Method::Annotate => GlossaryMethod::Annotate,
        }
    }
}

#[derive(Serialize)]
struct JsonLine<'a> {
    source_tokens: &'a [String],
    translations: Vec<JsonCandidate<'a>>,
    /// The estimated quality of the best translation, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f32>,
    /// How the translation memory contributed.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Match>,
    /// Sentences whose first translation was degenerate.
    #[serde(skip_serializing_if = "is_empty")]
    guarded: &'a [Guarded],
    /// Glossary terms in the source, and those that the translation lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    terms: Option<&'a TermReport>,
}

fn is_empty(guarded: &&[Guarded]) -> bool {
    guarded.is_empty()
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
        _ => ranks::run(&arguments, &**communicator),
    })
}

fn run_alone(arguments: &Arguments) -> CommandResult {
    let inputs = inputs::of(arguments)?;
    let tasks = documents::tasks(arguments, &inputs)?;
    let start = Instant::now();
    let route = Route::load(arguments)?;
    let mut stats = Stats::after_loading(start, arguments.stats);
    if let Some(target) = &arguments.score_target {
        return score(arguments, &route, &inputs, target);
    }
    if tasks.iter().all(|task| *task == Task::Print) {
        print_lines(arguments, &route, &inputs, &mut stats)?;
        return Ok(stats.print()?);
    }
    for (input, task) in inputs.iter().zip(&tasks) {
        match task {
            Task::Print => print_lines(arguments, &route, std::slice::from_ref(input), &mut stats)?,
            Task::Lines { out } => bulk::run(arguments, &route, input, out, &mut stats)?,
            Task::Document { file, format, out } => {
                documents::run(arguments, &route, file, *format, out.as_deref(), &mut stats)?;
            }
        }
    }
    Ok(stats.print()?)
}

/// Translates the lines of files to standard output.
fn print_lines(arguments: &Arguments, route: &Route, inputs: &[Input], stats: &mut Stats) -> CommandResult {
    let stop = stop_on_signals()?;
    let idle = end_when_idle()?;
    let progress = progress(inputs);
    if arguments.jsonl {
        return jsonl::run(arguments, route, inputs, (&stop, &idle));
    }
    let mut summary = Summary::default();
    let signals = (&*stop, &*idle);
    for_each_part(inputs, signals, route.part(), Lines::next_batch_lossy, |path, before, part, output| {
        let texts: Vec<&str> = part.iter().map(|(text, _)| text.as_str()).collect();
        warn_of_language(route, &texts, path, &progress);
        for (i, (line, (_, whole))) in route.translate(&texts)?.iter().zip(part).enumerate() {
            warn(path, before + i + 1, line, *whole, &progress);
            summary.add(line);
            output.bytes(render(arguments, line)?.as_bytes())?;
        }
        output.flush()?;
        stats.add(&texts);
        progress.inc(texts.len() as u64);
        Ok(())
    })?;
    progress.finish_and_clear();
    summary.print();
    Ok(())
}

/// Warns once if the text looks like another language than the model's source language.
fn warn_of_language(route: &Route, lines: &[&str], path: &Path, progress: &ProgressBar) {
    let text = lines.iter().take(64).copied().collect::<Vec<_>>().join("\n");
    if let Some(warning) = route.check_language(&text) {
        progress.suspend(|| note!("regard: {}: {warning}", path.display()));
    }
}

/// The resources besides the models.
type Resources = (Option<Arc<Glossary>>, Option<Arc<Memory>>);

impl Arguments {
    /// Loads each model separately.
    fn load_models(&self) -> Result<Vec<Translator>, Box<dyn std::error::Error>> {
        self.model.load_each()
    }

    fn wanted_languages(&self) -> (Option<&str>, Option<&str>) {
        (self.source_lang.as_deref(), self.target_lang.as_deref())
    }

    /// The glossary and the memory for these models, applied in sequence.
    fn known(&self, models: &[Arc<Translator>]) -> Result<Resources, Box<dyn std::error::Error>> {
        let glossary = self.glossary.as_deref().map(Glossary::load).transpose()?.map(Arc::new);
        let Some(file) = &self.memory else { return Ok((glossary, None)) };
        let of = |model: Option<&Arc<Translator>>| model.map(|model| model.model().languages.clone());
        let source = of(models.first()).and_then(|languages| languages.source);
        let target = of(models.last()).and_then(|languages| languages.target);
        let languages = (self.source_lang.clone().or(source), self.target_lang.clone().or(target));
        let (Some(source), Some(target)) = languages else {
            let message = "the model does not name its languages; give --source-lang and --target-lang";
            return Err(format!("--memory {}: {message}", file.display()).into());
        };
        Ok((glossary, Some(Arc::new(Memory::load(file, &source, &target)?))))
    }

    /// Everything that determines the output, as text.
    fn settings(&self, route: &Route) -> String {
        let options: Vec<_> = route.models().iter().map(|model| &model.options).collect();
        let Arguments { nbest, scores, alignment, json, jsonl, no_split, .. } = self;
        let models = self.model.names();
        let method = match self.glossary_method {
            Method::Auto => String::new(),
            method => format!(", terms {method:?}"),
        };
        format!(
            "{models}, {options:?}, nbest {nbest}, scores {scores}, alignment {alignment}, json {json}, jsonl {jsonl}, no_split {no_split}{method}{}",
            route.resource_fingerprints()
        )
    }
}

/// The search settings of a model of a route; only the last model determines what is printed.
fn route_options(
    arguments: &Arguments,
    translator: &Translator,
    last: bool,
) -> Result<SearchOptions, regard::Error> {
    let mut options = arguments.search.options(translator)?;
    if last {
        options.nbest = arguments.nbest;
        options.beam = options.beam.max(options.nbest);
        options.attention = arguments.alignment;
    } else {
        options.prefix.clear();
    }
    options.validate()?;
    Ok(options)
}

/// Forced decoding of the lines of all files with the lines of `target`.
fn score(arguments: &Arguments, route: &Route, inputs: &[Input], target: &Path) -> CommandResult {
    let [model] = route.models() else {
        return Err("--score-target needs one model, or several of one pair of languages".into());
    };
    let (translator, options) = (&model.translator, &model.options);
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
                let confidence = regard_documents::confidence(&candidate.token_scores);
                let source_tokens = &source_tokens;
                let (memory, guarded, terms) = (None, &[][..], None);
                let line = JsonLine { source_tokens, translations, confidence, memory, guarded, terms };
                output.line(serde_json::to_string(&line)?)?;
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

/// A flag that is true while the command waits for input: everything has been printed then, and a
/// signal may end the program at once.
fn end_when_idle() -> std::io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let idle = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&idle))?;
    }
    Ok(idle)
}

/// The number of pairs scored together.
const PART: usize = 512;

fn progress(inputs: &[Input]) -> ProgressBar {
    let from_terminal = inputs.iter().any(Input::is_stdin) && std::io::stdin().is_terminal();
    spinner(!std::io::stdout().is_terminal() && !from_terminal && std::io::stderr().is_terminal())
}

/// A line counter, if it is visible.
fn spinner(seen: bool) -> ProgressBar {
    if !seen {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {pos} lines, {per_sec}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar
}

fn warn(path: &Path, number: usize, line: &TranslatedLine, whole: bool, progress: &ProgressBar) {
    let say = |message: &str| progress.suspend(|| note!("regard: {}:{number}: {message}", path.display()));
    if !whole {
        say("not UTF-8; invalid bytes are replaced by U+FFFD");
    }
    if line.line.cut > 0 {
        say("a sentence is longer than the model can read and was cut into pieces");
    }
    for fault in line.guarded.iter().filter_map(|guarded| guarded.left) {
        say(&format!(
            "the translation of a sentence is degenerate, even with safer settings: {}",
            fault.describe()
        ));
    }
    for (source, target) in &line.terms.missing {
        say(&format!("the translation lacks {target:?}, which the glossary has for {source:?}"));
    }
}

/// A text as one column of a tab-separated line.
fn without_tabs(text: &str) -> String {
    text.replace('\t', " ")
}

/// A line's translations as printed.
fn render(arguments: &Arguments, translated: &TranslatedLine) -> Result<String, serde_json::Error> {
    let line = &translated.line;
    if arguments.json {
        let translations =
            line.candidates.iter().map(|c| JsonCandidate::new(c, arguments.alignment)).collect();
        let TranslatedLine { confidence, memory, guarded, terms, .. } = translated;
        let line = JsonLine {
            source_tokens: &line.source,
            translations,
            confidence: *confidence,
            memory: *memory,
            guarded,
            terms: Some(terms).filter(|terms| terms.wanted > 0),
        };
        return Ok(serde_json::to_string(&line)? + "\n");
    }
    // An empty line has no candidates: print as many empty lines as other lines have translations.
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
