//! `regard check`: finds likely problems of parallel text before a model is trained on it.

use super::corpus::CorpusArguments;
use super::train::named_by_flags;
use super::{AlreadyReported, CommandResult, Output};
use clap::Args;
use regard::train::config::DataConfig;
use regard::train::corpus::{CheckReport, CheckSettings, Finding, Inputs, Severity, check};
use regard::train::{TrainConfig, inputs, languages, validation_files};
use regard_documents::language::{name, other_than};
use regard_plot::grouped;
use serde_json::{Value, json};

#[derive(Debug, Args)]
#[command(mut_arg("valid_src", |arg| arg.help("Source text to validate on: which of it is in the training data?")))]
#[command(after_help = "Examples:\n  \
    regard check --src train.en --tgt train.de --valid-src val.en --valid-tgt val.de\n  \
    regard check --pairs de.po pairs.jsonl --source-lang en --target-lang de\n  \
    regard check --tsv pairs.tsv --source-lang en --target-lang de --json\n\n\
    Looked for: sides that are swapped, shifted by a line or two, or do not belong together; lines in another language; source equal\n\
    to target; duplicates; validation pairs in the training data; damage by a wrong encoding; lines that cannot be used; too little\n\
    text. Each finding comes with its number, the first lines and advice. Text is read once and not kept in memory.\n\
    Exit status: 0 if there is nothing but notes, 1 if there are problems, 2 for wrong arguments.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    corpus: CorpusArguments,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let json = arguments.json;
    let mut data = DataConfig::default();
    arguments.corpus.apply(&mut data);
    let mut reports = Vec::new();
    let valid = by_flags(validation_files(&data))?;
    reports.push(("training", look_at(&by_flags(inputs(&data))?, valid.as_ref(), &data, None, true)?));
    if let Some(valid) = &valid {
        reports.push(("validation", look_at(valid, None, &data, None, false)?));
    }
    let mut output = Output::new();
    let problems: usize = reports.iter().map(|(_, report)| report.problems().count()).sum();
    if json {
        output.line(as_json(&reports, problems)?)?;
    } else {
        for (name, report) in &reports {
            print(&mut output, name, report)?;
        }
    }
    output.flush()?;
    // The findings are the error message.
    if problems > 0 { Err(Box::new(AlreadyReported)) } else { Ok(()) }
}

fn by_flags<T>(result: regard::Result<T>) -> regard::Result<T> {
    result.map_err(|error| match error {
        regard::Error::Config { field, message } => {
            regard::Error::config(named_by_flags(&field), named_by_flags(&message))
        }
        other => other,
    })
}

fn look_at(
    files: &Inputs,
    valid: Option<&Inputs>,
    data: &DataConfig,
    most: Option<u64>,
    from_scratch: bool,
) -> regard::Result<CheckReport> {
    let languages = languages(data);
    let settings = CheckSettings {
        languages: (languages.source.as_deref(), languages.target.as_deref()),
        other_language: Some(&other_than),
        most,
        from_scratch,
    };
    check(files, valid, settings)
}

/// The number of pairs that the start of a training run checks.
const QUICK: u64 = 100_000;

/// The warnings of a training run before it starts: the problems of its text, one per line. The run
/// itself reports text that cannot be read.
pub(super) fn quick(config: &TrainConfig) -> Option<String> {
    let data = &config.data;
    let (files, valid) = (inputs(data).ok()?, validation_files(data).ok()?);
    // A pipe can only be read once.
    let regular = |files: &Inputs| files.paths().iter().all(|path| path.is_file());
    if !regular(&files) || !valid.as_ref().is_none_or(regular) {
        return None;
    }
    let report = look_at(&files, valid.as_ref(), data, Some(QUICK), data.init.is_none()).ok()?;
    let mut lines: Vec<String> = Vec::new();
    for finding in report.problems() {
        let place = finding.examples.first().map_or(String::new(), |e| format!(" (first: {})", e.place));
        lines.push(format!("warning: {}{place}; {}", message(finding), named_by_flags(&finding.advice)));
    }
    if !lines.is_empty() {
        lines.push("`regard check` with the same files shows examples".into());
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The message of a finding, with the name of the language.
fn message(finding: &Finding) -> String {
    match &finding.language {
        Some(code) => {
            finding.message.replace(&format!("most often {code}"), &format!("most often {}", name(code)))
        }
        None => finding.message.clone(),
    }
}

fn as_json(reports: &[(&str, CheckReport)], problems: usize) -> Result<Value, serde_json::Error> {
    let mut object = json!({ "problems": problems });
    for (name, report) in reports {
        let mut report = serde_json::to_value(report)?;
        let findings = report["findings"].as_array_mut().into_iter().flatten();
        for finding in findings {
            if let Some(advice) = finding["advice"].as_str().map(named_by_flags) {
                finding["advice"] = advice.into();
            }
        }
        object[*name] = report;
    }
    Ok(object)
}

fn print(output: &mut Output, name: &str, report: &CheckReport) -> CommandResult {
    output.line(format_args!(
        "{name} text: {} pairs, {} of them usable",
        grouped(report.pairs),
        grouped(report.usable)
    ))?;
    for finding in &report.findings {
        let severity = match finding.severity {
            Severity::Problem => "PROBLEM",
            Severity::Note => "note",
        };
        output.line(format_args!("\n{severity}: {}", message(finding)))?;
        for example in &finding.examples {
            output.line(format_args!("  {}: {}", example.place, example.text))?;
        }
        output.line(format_args!("  → {}", named_by_flags(&finding.advice)))?;
    }
    if report.findings.is_empty() {
        output.line("nothing was found")?;
    }
    output.line("")
}
