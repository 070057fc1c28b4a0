//! `regard translate` on several ranks: rank 0 reads and writes, and rank r of n translates lines
//! r, r + n, r + 2n, …

use super::super::input::Lines;
use super::route::Route;
use super::summary::Summary;
use super::{
    Arguments, CommandResult, Output, PART, Stats, inputs, progress, render, stop_on_signals, warn,
    warn_of_language,
};
use regard::train::distributed::{Communicator, check_consistency, program_check};
use regard_documents::{Guarded, Match, TermReport, TranslatedLine};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(super) fn run(arguments: &Arguments, communicator: &dyn Communicator) -> CommandResult {
    let alone = [
        ("--score-target", arguments.score_target.is_some()),
        ("--jsonl", arguments.jsonl),
        ("--out", arguments.out.is_some()),
        ("--format", arguments.format.is_some()),
    ];
    if let Some((flag, _)) = alone.iter().find(|(_, given)| *given) {
        let message = format!("{flag} runs in one process; start it without the launcher");
        return Err(regard::Error::Inconsistent(message).into());
    }
    // One rank downloads a model from the hub before the others look for it.
    if communicator.rank() > 0 {
        communicator.broadcast(&mut Vec::new());
    }
    let check =
        arguments.model.consistency_check().map(|of_model| program_check().into_iter().chain(of_model));
    if communicator.rank() == 0 {
        communicator.broadcast(&mut Vec::new());
    }
    check_consistency(communicator, check.map(Iterator::collect))?;
    let start = Instant::now();
    let route = Route::load(arguments)?;
    let stats = Stats::after_loading(start, arguments.stats);
    let search = arguments.settings(&route);
    check_consistency(communicator, Ok::<_, regard::Error>(vec![("the search".into(), search)]))?;
    if communicator.rank() == 0 {
        return run_rank0(arguments, communicator, &route, stats);
    }
    loop {
        let mut bytes = Vec::new();
        communicator.broadcast(&mut bytes);
        let lines: Vec<String> = read(&bytes)?;
        if lines.is_empty() {
            return Ok(());
        }
        translate_shard(arguments, communicator, &route, &lines)?;
    }
}

fn run_rank0(
    arguments: &Arguments,
    communicator: &dyn Communicator,
    route: &Route,
    mut stats: Stats,
) -> CommandResult {
    let stop = stop_on_signals()?;
    let inputs = inputs::of(arguments)?;
    let progress = progress(&inputs);
    let mut output = Output::new();
    let mut summary = Summary::default();
    for input in &inputs {
        let mut lines = input.open()?;
        loop {
            let before = lines.count();
            if stop.load(Ordering::Relaxed) {
                return Err(format!("stopped after {before} lines, which are complete").into());
            }
            let batch = next_lines(&mut lines, PART * communicator.size())?;
            if batch.is_empty() {
                break;
            }
            let (texts, whole): (Vec<String>, Vec<bool>) = batch.into_iter().unzip();
            communicator.broadcast(&mut serde_json::to_vec(&texts)?);
            let first: Vec<&str> = texts.iter().map(String::as_str).collect();
            warn_of_language(route, &first, lines.path(), &progress);
            let translated = translate_shard(arguments, communicator, route, &texts)?;
            for (i, (shard, whole)) in translated.into_iter().zip(whole).enumerate() {
                let (text, line) = shard.into_line();
                warn(lines.path(), before + i + 1, &line, whole, &progress);
                summary.add(&line);
                output.bytes(text.as_bytes())?;
            }
            output.flush()?;
            stats.add(&texts);
            progress.inc(texts.len() as u64);
        }
    }
    progress.finish_and_clear();
    // An empty batch marks the end.
    communicator.broadcast(&mut serde_json::to_vec::<[String; 0]>(&[])?);
    output.flush()?;
    summary.print();
    Ok(stats.print()?)
}

/// A translated line as sent between ranks: its output and its notes.
#[derive(Debug, Deserialize, Serialize)]
struct ShardLine {
    text: String,
    cut: usize,
    guarded: Vec<Guarded>,
    memory: Option<Match>,
    terms: TermReport,
}

impl ShardLine {
    fn new(text: String, line: TranslatedLine) -> Self {
        let cut = line.line.cut;
        let TranslatedLine { guarded, memory, terms, .. } = line;
        ShardLine { text, cut, guarded, memory, terms }
    }

    fn into_line(self) -> (String, TranslatedLine) {
        let ShardLine { text, cut, guarded, memory, terms } = self;
        let mut line = TranslatedLine { guarded, memory, terms, ..TranslatedLine::default() };
        line.line.cut = cut;
        (text, line)
    }
}

/// At least `least` lines, or all that are left.
fn next_lines(lines: &mut Lines, least: usize) -> Result<Vec<(String, bool)>, regard::Error> {
    let mut all = Vec::new();
    while all.len() < least {
        let batch = lines.next_batch_lossy()?;
        if batch.is_empty() {
            break;
        }
        all.extend(batch);
    }
    Ok(all)
}

/// Translates this rank's lines and returns those of all ranks.
fn translate_shard(
    arguments: &Arguments,
    communicator: &dyn Communicator,
    route: &Route,
    lines: &[String],
) -> Result<Vec<ShardLine>, Box<dyn std::error::Error>> {
    let mine: Vec<&String> = lines.iter().skip(communicator.rank()).step_by(communicator.size()).collect();
    let translated = route.translate(&mine)?;
    let rendered = translated.into_iter().map(|line| Ok(ShardLine::new(render(arguments, &line)?, line)));
    let rendered = rendered.collect::<Result<Vec<_>, serde_json::Error>>()?;
    let mut of_ranks = Vec::with_capacity(communicator.size());
    for bytes in communicator.all_gather_bytes(&serde_json::to_vec(&rendered)?) {
        of_ranks.push(read::<Vec<ShardLine>>(&bytes)?.into_iter());
    }
    let in_order: Vec<_> = (0..lines.len()).map_while(|i| of_ranks[i % communicator.size()].next()).collect();
    match in_order.len() == lines.len() {
        true => Ok(in_order),
        false => Err("some ranks have translated too few lines".into()),
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Box<dyn std::error::Error>> {
    serde_json::from_slice(bytes).map_err(|e| format!("what another rank sent cannot be read: {e}").into())
}
