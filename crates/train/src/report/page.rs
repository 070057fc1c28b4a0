//! The report of a run as an HTML page.

use std::path::Path;

use super::verdict::{Verdict, verdict};
use crate::config::TrainConfig;
use crate::run::write_text;
use regard_core::Result;
use regard_core::formats::{Record, StepRecord, ValidationRecord, read_log};
use regard_plot::html::{Page, Table};
use regard_plot::{LineChart, Series, smooth};

/// What a report says besides the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStatus {
    /// A summary in a sentence or two.
    pub summary: String,
    /// Whether the run is still going: the page then reloads itself periodically.
    pub running: bool,
    /// The remaining time in seconds, if known.
    pub remaining: Option<f64>,
    /// The current and the peak memory of the process in bytes.
    pub memory: Option<(u64, u64)>,
}

/// The interval in seconds at which the page of a running training reloads itself.
const REFRESH: u32 = 20;

/// Writes `report.html` beside the log in `folder`; returns the verdict on the run.
pub(crate) fn write(folder: &Path, config: &TrainConfig, status: &RunStatus) -> Result<Verdict> {
    let records = read_log(&folder.join("log.jsonl"))?;
    write_text(&folder.join("report.html"), &render(&records, config, status))?;
    Ok(verdict(&records))
}

/// With more points than this, the loss is drawn faintly under its running mean.
const MANY: usize = 200;

/// Adds the training loss, where every point is already the mean of some steps. The points before
/// the first regular one are a few steps apart and fall fast: they are excluded from the running
/// mean.
fn training_curves(chart: LineChart, loss: &[(f64, f64)], log_every: u64) -> LineChart {
    if loss.len() <= MANY {
        return chart.series(Series::new("training", loss.to_vec()).colour(0));
    }
    let (first, regular) = loss.split_at(loss.partition_point(|(step, _)| *step < log_every as f64));
    let mean = [first, &smooth(regular, 5)].concat();
    let faint = Series::new("training", loss.to_vec()).faint();
    chart.series(faint).series(Series::new("training, running mean", mean).colour(0))
}

/// Renders the lines of a log as a page.
pub fn render(records: &[Record], config: &TrainConfig, status: &RunStatus) -> String {
    let (mut steps, mut validations): (Vec<&StepRecord>, Vec<&ValidationRecord>) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            Record::Step(r) => steps.push(r),
            Record::Validation(r) => validations.push(r),
        }
    }
    let mut page = Page::new("Training report").paragraph(&status.summary);
    if status.running {
        page = page.refresh(REFRESH);
    }
    let judgement = verdict(records);
    page = page.lead(format!("{} {}", judgement.text, judgement.advice).trim_end());
    let facts = facts(status);
    if !facts.is_empty() {
        page = page.paragraph(facts);
    }
    page = add_charts(page, config, &steps, &validations);
    page = page.heading("Validations").table(validation_table(&validations));
    if let Some(samples) = sample_table(&validations) {
        page = page.heading("Sample translations").table(samples);
    }
    page.heading("Settings").preformatted(config.to_toml()).render()
}

/// Remaining time and memory.
fn facts(status: &RunStatus) -> String {
    let mut facts = Vec::new();
    if let Some(seconds) = status.remaining.filter(|_| status.running) {
        facts.push(format!("About {} are left.", duration(seconds)));
    }
    if let Some((now, most)) = status.memory {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        facts.push(format!("Memory: {:.0} MB, at most {:.0} MB.", megabytes(now), megabytes(most)));
    }
    if status.running {
        facts.push(format!("This page loads itself again every {REFRESH} seconds."));
    }
    facts.join(" ")
}

/// A human-readable duration.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

fn add_charts(
    page: Page,
    config: &TrainConfig,
    steps: &[&StepRecord],
    validations: &[&ValidationRecord],
) -> Page {
    let of_steps = |f: fn(&StepRecord) -> f64| -> Vec<(f64, f64)> {
        steps.iter().map(|r| (r.step as f64, f(r))).collect()
    };
    let of_validations = |f: fn(&ValidationRecord) -> f64| -> Vec<(f64, f64)> {
        let own = validations.iter().filter(|r| r.weights == "step");
        own.map(|r| (r.step as f64, f(r))).collect()
    };
    // Without label smoothing, like validation; the log of an older version only has the smoothed
    // loss.
    let plain = steps.iter().all(|r| r.nll.is_some());
    let loss = of_steps(|r| r.nll.unwrap_or(r.loss));
    let chart = |title: &str, y: &str| LineChart::new(title, "step", y);
    page.figure(
        training_curves(chart("Loss", "cross-entropy, nats per target token"), &loss, config.log_every)
            .series(Series::new("validation", of_validations(|r| r.loss)).markers().colour(1))
            .to_svg(),
        if plain {
            "The negative log-likelihood of a target token, without label smoothing. Training is measured \
             with dropout and validation without, so that validation may be lower."
        } else {
            "Training with label smoothing and dropout, validation without either: \
             the two curves cannot be compared."
        },
    )
    .figure(
        chart("Quality of the validation translations", "score")
            .series(Series::new("BLEU", of_validations(|r| r.bleu)).markers())
            .series(Series::new("chrF", of_validations(|r| r.chrf)).markers())
            .to_svg(),
        "",
    )
    .figure(chart("Learning rate", "rate").series(Series::new("rate", of_steps(|r| r.rate))).to_svg(), "")
    .figure(
        chart("Speed", "target tokens per second")
            .series(Series::new("tokens/s", of_steps(|r| r.tokens_per_second)))
            .to_svg(),
        "",
    )
}

/// All validations, each with the difference from the previous one.
fn validation_table(validations: &[&ValidationRecord]) -> Table {
    let head =
        ["step", "weights", "minutes", "loss", "Δ loss", "perplexity", "BLEU", "Δ BLEU", "chrF", "Δ chrF"];
    let mut table = Table::new(&head);
    let mut before: Option<&ValidationRecord> = None;
    for r in validations {
        let delta = |f: fn(&ValidationRecord) -> f64, digits: usize| {
            before.map_or(String::new(), |b| signed(f(r) - f(b), digits))
        };
        table = table.row(&[
            r.step.to_string(),
            r.weights.clone(),
            format!("{:.1}", r.seconds / 60.0),
            format!("{:.4}", r.loss),
            delta(|r| r.loss, 4),
            format!("{:.2}", r.perplexity),
            format!("{:.2}", r.bleu),
            delta(|r| r.bleu, 2),
            format!("{:.2}", r.chrf),
            delta(|r| r.chrf, 2),
        ]);
        before = Some(r);
    }
    table
}

/// A difference with its sign.
fn signed(difference: f64, digits: usize) -> String {
    format!("{difference:+.digits$}").replace('-', "−")
}

/// The number of validations whose translations are shown side by side.
const COMPARED: usize = 3;

/// The same sentences after the last validations; `None` if no validation has samples.
fn sample_table(validations: &[&ValidationRecord]) -> Option<Table> {
    let with: Vec<_> = validations.iter().filter(|r| !r.samples.is_empty()).collect();
    let last = with.last()?;
    let shown = &with[with.len().saturating_sub(COMPARED)..];
    let mut head = vec!["source".to_owned()];
    head.extend(shown.iter().map(|r| match r.weights.as_str() {
        "step" => format!("step {}", r.step),
        name => name.to_owned(),
    }));
    head.push("reference".into());
    let mut table = Table::new(&head);
    for (source, _, reference) in &last.samples {
        let mut row = vec![source.clone()];
        row.extend(shown.iter().map(|r| {
            let same = r.samples.iter().find(|(s, _, _)| s == source);
            same.map_or(String::new(), |(_, translation, _)| translation.clone())
        }));
        row.push(reference.clone());
        table = table.row(&row);
    }
    Some(table)
}
