//! `regard translate --out FILE`: translates lines into a file that appears when it is complete,
//! and can be resumed.
//!
//! The translations accumulate in `FILE.part`; after each part, `FILE.part.json` records the
//! position and the fingerprint of the input read so far. A call with `--resume` reads the input up
//! to there, compares the fingerprint, and continues.

use super::super::input::Lines;
use super::inputs::Input;
use super::route::Route;
use super::summary::Summary;
use super::{Arguments, CommandResult, Stats, jsonl, render, spinner, stop_on_signals, warn};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The progress of a translation.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct State {
    /// The number of input lines that are done.
    lines: usize,
    /// The size of their translations in the part file in bytes.
    bytes: u64,
    /// The fingerprint of these lines.
    input: String,
    /// The fingerprint of the settings.
    settings: String,
}

/// The files of a translation in progress.
struct PartFiles {
    out: PathBuf,
    part: PathBuf,
    state: PathBuf,
}

impl PartFiles {
    fn new(out: &Path) -> Self {
        let beside = |ending: &str| {
            let mut name = out.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        PartFiles { out: out.to_owned(), part: beside(".part"), state: beside(".part.json") }
    }

    fn read(&self) -> Result<Option<State>, Box<dyn Error>> {
        let text = match std::fs::read(&self.state) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(format!("{}: {e}", self.state.display()).into()),
        };
        let state = serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", self.state.display()))?;
        Ok(Some(state))
    }

    /// Opens the part file at the point of resumption, or empty.
    fn open(&self, state: Option<&State>) -> Result<BufWriter<File>, Box<dyn Error>> {
        let named = |e: std::io::Error| format!("{}: {e}", self.part.display());
        let mut file = OpenOptions::new();
        let mut file =
            file.create(true).write(true).truncate(state.is_none()).open(&self.part).map_err(named)?;
        if let Some(state) = state {
            let there = file.metadata().map_err(named)?.len();
            if there < state.bytes {
                let (part, wanted) = (self.part.display(), state.bytes);
                return Err(format!(
                    "{part} has {there} bytes, but {wanted} were written; start without --resume"
                )
                .into());
            }
            // What was written after the last state is translated again.
            file.set_len(state.bytes).map_err(named)?;
            file.seek(SeekFrom::End(0)).map_err(named)?;
        }
        Ok(BufWriter::with_capacity(1 << 18, file))
    }

    fn save(&self, to: &mut BufWriter<File>, state: &State) -> Result<(), Box<dyn Error>> {
        to.flush()
            .and_then(|()| to.get_ref().sync_data())
            .map_err(|e| format!("{}: {e}", self.part.display()))?;
        let text = serde_json::to_vec(state)?;
        regard::replace(&self.state, |file| file.write_all(&text))?;
        Ok(())
    }

    fn finish(&self, to: BufWriter<File>) -> Result<(), Box<dyn Error>> {
        let named = |e: std::io::Error| format!("{}: {e}", self.out.display());
        let file = to.into_inner().map_err(|e| named(e.into_error()))?;
        file.sync_all().map_err(named)?;
        drop(file);
        std::fs::rename(&self.part, &self.out).map_err(named)?;
        let _ = std::fs::remove_file(&self.state);
        Ok(())
    }
}

/// Translates the lines of a file into another file.
pub(super) fn run(
    arguments: &Arguments,
    route: &Route,
    input: &Input,
    out: &Path,
    stats: &mut Stats,
) -> CommandResult {
    let stop = stop_on_signals()?;
    let unfinished = PartFiles::new(out);
    let settings = format!("{:016x}", xxh3_64(arguments.settings(route).as_bytes()));
    let mut lines = input.open()?;
    let mut hash = Xxh3::new();
    let before = unfinished.read()?;
    let state = match (arguments.resume, before) {
        (true, Some(state)) => {
            skip(&mut lines, &mut hash, &state, &settings, &unfinished)?;
            note!("regard: {}: going on after {} lines", out.display(), state.lines);
            Some(state)
        }
        (false, Some(state)) if state.lines > 0 => {
            let (out, lines) = (out.display(), state.lines);
            note!("regard: {out}: starting over; --resume would have gone on after {lines} lines");
            None
        }
        _ => None,
    };
    let mut to = unfinished.open(state.as_ref())?;
    let mut bytes = state.map_or(0, |state| state.bytes);
    let progress = spinner(std::io::stderr().is_terminal());
    progress.set_position(lines.count() as u64);
    let mut summary = Summary::default();
    let mut done = lines.count();
    loop {
        let batch = lines.next_batch_lossy()?;
        if batch.is_empty() {
            break;
        }
        for part in batch.chunks(route.part()) {
            if stop.load(Ordering::Relaxed) {
                return Err(format!("stopped after {done} lines; continue with --resume").into());
            }
            let texts: Vec<&str> = part.iter().map(|(text, _)| text.as_str()).collect();
            let rendered = match arguments.jsonl {
                true => records(arguments, route, lines.path(), done, part)?,
                false => {
                    if done == 0 {
                        super::warn_of_language(route, &texts, lines.path(), &progress);
                    }
                    let translated = route.translate(&texts)?;
                    for (i, (line, (_, whole))) in translated.iter().zip(part).enumerate() {
                        warn(lines.path(), done + i + 1, line, *whole, &progress);
                        summary.add(line);
                    }
                    translated.iter().map(|line| render(arguments, line)).collect::<Result<_, _>>()?
                }
            };
            for (rendered, text) in rendered.iter().zip(&texts) {
                to.write_all(rendered.as_bytes())
                    .map_err(|e| format!("{}: {e}", unfinished.part.display()))?;
                bytes += rendered.len() as u64;
                feed(&mut hash, text);
            }
            done += part.len();
            let input = format!("{:016x}", hash.digest());
            unfinished.save(&mut to, &State { lines: done, bytes, input, settings: settings.clone() })?;
            stats.add(&texts);
            progress.inc(part.len() as u64);
        }
    }
    progress.finish_and_clear();
    unfinished.finish(to)?;
    summary.print();
    Ok(())
}

/// The translations of lines that are JSON objects; `before` lines precede them.
fn records(
    arguments: &Arguments,
    route: &Route,
    path: &Path,
    before: usize,
    part: &[(String, bool)],
) -> Result<Vec<String>, Box<dyn Error>> {
    if let Some(i) = part.iter().position(|(_, whole)| !whole) {
        return Err(format!("{}:{}: not UTF-8", path.display(), before + i + 1).into());
    }
    let texts: Vec<&str> = part.iter().map(|(text, _)| text.as_str()).collect();
    let lines = jsonl::translate(arguments, route, path, before, &texts)?;
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

fn feed(hash: &mut Xxh3, line: &str) {
    hash.update(line.as_bytes());
    hash.update(b"\n");
}

/// Reads the completed lines, and checks that they are the ones that were translated.
fn skip(
    lines: &mut Lines,
    hash: &mut Xxh3,
    state: &State,
    settings: &str,
    unfinished: &PartFiles,
) -> Result<(), Box<dyn Error>> {
    let part = unfinished.part.display();
    if state.settings != settings {
        return Err(format!("{part} was made with other models or settings; start without --resume").into());
    }
    for _ in 0..state.lines {
        let Some((line, _)) = lines.next_lossy()? else { break };
        feed(hash, &line);
    }
    let (count, name) = (lines.count(), lines.path().display().to_string());
    if count < state.lines || format!("{:016x}", hash.digest()) != state.input {
        let wanted = state.lines;
        return Err(format!("{part} was made from another input: the first {wanted} lines of {name} have changed; start without --resume").into());
    }
    Ok(())
}
