//! `regard translate report.docx --out report.de.docx`: translates documents and keeps their
//! format.

use super::inputs::Input;
use super::route::Route;
use super::summary::print_report;
use super::{Arguments, CommandResult, Stats, stop_on_signals};
use indicatif::{ProgressBar, ProgressStyle};
use regard_documents::files::{FileDocument, FileError, FileOptions, Format};
use std::error::Error;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// What to do with an input file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Task {
    /// Print the translations of its lines.
    Print,
    /// Write the translations of its lines to another file.
    Lines { out: PathBuf },
    /// Translate it as a document; without a file, print the bytes.
    Document { file: PathBuf, format: Format, out: Option<PathBuf> },
}

/// What to do with each input of a call.
pub(super) fn tasks(arguments: &Arguments, inputs: &[Input]) -> Result<Vec<Task>, Box<dyn Error>> {
    let mut files = Vec::with_capacity(inputs.len());
    for input in inputs {
        match input {
            Input::File(file) => files.push(file),
            // Text on the command line is printed.
            Input::Text(_) if arguments.out.is_some() || arguments.format.is_some() => {
                return Err("--out and --format need files, not text on the command line".into());
            }
            Input::Text(_) => return Ok(vec![Task::Print; inputs.len()]),
        }
    }
    let folder = arguments
        .out
        .as_ref()
        .filter(|out| files.len() > 1 || out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/'));
    let mut tasks: Vec<Task> = Vec::new();
    for file in files {
        let out = match (folder, &arguments.out) {
            (Some(folder), _) => {
                let name = file.file_name().filter(|_| !is_stdin(file));
                Some(folder.join(name.ok_or("--out: a folder needs input files with names")?))
            }
            (None, out) => out.clone(),
        };
        tasks.push(task(arguments, file, out)?);
    }
    let outs: Vec<&PathBuf> = tasks.iter().filter_map(Task::out).collect();
    for (i, out) in outs.iter().enumerate() {
        if outs[..i].contains(out) {
            return Err(format!("--out: two inputs would become {}", out.display()).into());
        }
    }
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    Ok(tasks)
}

impl Task {
    fn out(&self) -> Option<&PathBuf> {
        match self {
            Task::Print => None,
            Task::Lines { out } => Some(out),
            Task::Document { out, .. } => out.as_ref(),
        }
    }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn task(arguments: &Arguments, file: &Path, out: Option<PathBuf>) -> Result<Task, Box<dyn Error>> {
    let same =
        |out: &PathBuf| out.canonicalize().is_ok_and(|out| file.canonicalize().is_ok_and(|f| f == out));
    if out.as_ref().is_some_and(same) {
        return Err(format!("--out {}: this is the input; choose another name", file.display()).into());
    }
    let by_name = format_of(file);
    let format = match (&arguments.format, by_name) {
        (Some(format), _) => Some(*format),
        // The flag decides what the file is, unless that is impossible.
        (None, Some(format)) if arguments.jsonl && !format.is_package() => None,
        (None, Some(format)) if out.is_some() || format.is_package() => Some(format),
        _ => None,
    };
    let Some(format) = format else {
        if arguments.only_empty {
            let message =
                "is read as lines of text; --only-empty is for documents with translations (po, xliff)";
            return Err(format!("{} {message}", file.display()).into());
        }
        return Ok(out.map_or(Task::Print, |out| Task::Lines { out }));
    };
    if arguments.json || arguments.scores || arguments.alignment || arguments.nbest > 1 || arguments.no_split
    {
        let flags = "--json, --scores, --alignment, --nbest and --no-split are for lines of text";
        return Err(format!("{}: a {format} document; {flags}", file.display()).into());
    }
    if out.is_none() && format.is_package() && (std::io::stdout().is_terminal() || arguments.format.is_none())
    {
        let name = file.display();
        return Err(format!(
            "{name}: a {format} document is not printed; name the translated file with --out"
        )
        .into());
    }
    if arguments.jsonl {
        return Err(format!("{}: a {format} document; --jsonl is for JSON lines", file.display()).into());
    }
    Ok(Task::Document { file: file.to_owned(), format, out })
}

/// The format of a document by file extension; plain text has none.
pub(super) fn format_of(file: &Path) -> Option<Format> {
    let mut start = [0; 4096];
    let read = std::fs::File::open(file).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    Format::of_name(file, &start[..read]).filter(|format| *format != Format::Text)
}

/// Parses a document with the settings of the flags.
pub(super) fn open(
    arguments: &Arguments,
    route: &Route,
    bytes: &[u8],
    format: Format,
) -> Result<FileDocument, FileError> {
    let options = FileOptions {
        only_empty: arguments.only_empty,
        source_language: route.source_language().map(str::to_owned),
        target_language: route.target_language().map(str::to_owned),
    };
    FileDocument::open(format, bytes, &options)
}

/// Translates a document.
pub(super) fn run(
    arguments: &Arguments,
    route: &Route,
    file: &Path,
    format: Format,
    out: Option<&Path>,
    stats: &mut Stats,
) -> CommandResult {
    let stop = stop_on_signals()?;
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let mut bytes = Vec::new();
    match is_stdin(file) {
        true => std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        false => std::fs::File::open(file).and_then(|mut f| f.read_to_end(&mut bytes)).map(|_| ()),
    }
    .map_err(|e| named(&e))?;
    let mut document = open(arguments, route, &bytes, format).map_err(|e| named(&e))?;
    let words = document.words();
    if let Some(warning) = route.check_language(&words) {
        note!("regard: {}: {warning}", file.display());
    }
    let bar = bar(document.sentences().count(), file);
    let translated = route.pipeline().file(&mut document, &mut |done| {
        bar.set_position(done as u64);
        !stop.load(Ordering::Relaxed)
    });
    let translated = translated.map_err(|e| named(&e))?;
    bar.finish_and_clear();
    let Some((bytes, report)) = translated else { return Err(format!("{}: stopped", file.display()).into()) };
    match out {
        Some(out) => regard::replace(out, |to| to.write_all(&bytes))?,
        None => std::io::stdout().lock().write_all(&bytes)?,
    }
    stats.add(&[words]);
    print_report(&report);
    Ok(())
}

fn bar(sentences: usize, file: &Path) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(sentences as u64);
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} sentences, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(file.file_name().unwrap_or_default().to_string_lossy().into_owned());
    bar
}
