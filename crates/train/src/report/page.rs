//! The page that shows how a run went.

use std::path::Path;

use crate::config::TrainConfig;
use crate::run::write_text;
use regard_core::Result;
use regard_core::formats::{Record, StepRecord, ValidationRecord, read_log};
use regard_plot::html::{Page, Table};
use regard_plot::{LineChart, Series, smooth};

/// Writes `report.html` beside the log in `folder`.
pub(crate) fn write(folder: &Path, config: &TrainConfig, summary: &str) -> Result<()> {
    let records = read_log(&folder.join("log.jsonl"))?;
    write_text(&folder.join("report.html"), &render(&records, config, summary))
}

/// With more points than this, the loss is drawn faintly and its running mean over it.
const MANY: usize = 200;

/// Adds the training loss, every point of which is already the mean of some steps. The lines before
/// the first regular one are a few steps apart and fall fast: they take no part in a running mean.
fn training_curves(chart: LineChart, loss: &[(f64, f64)], log_every: u64) -> LineChart {
    if loss.len() <= MANY {
        return chart.series(Series::new("training", loss.to_vec()).colour(0));
    }
    let (first, regular) = loss.split_at(loss.partition_point(|(step, _)| *step < log_every as f64));
    let mean = [first, &smooth(regular, 5)].concat();
    let faint = Series::new("training", loss.to_vec()).faint();
    chart.series(faint).series(Series::new("training, running mean", mean).colour(0))
}

/// The page of the lines of a log.
pub fn render(records: &[Record], config: &TrainConfig, summary: &str) -> String {
    let (mut steps, mut validations): (Vec<&StepRecord>, Vec<&ValidationRecord>) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            Record::Step(r) => steps.push(r),
            Record::Validation(r) => validations.push(r),
        }
    }
    let of_steps = |f: fn(&StepRecord) -> f64| -> Vec<(f64, f64)> {
        steps.iter().map(|r| (r.step as f64, f(r))).collect()
    };
    let of_validations = |f: fn(&ValidationRecord) -> f64| -> Vec<(f64, f64)> {
        let own = validations.iter().filter(|r| r.weights == "step");
        own.map(|r| (r.step as f64, f(r))).collect()
    };
    // Without label smoothing, as validation is; a log of an older version has only the smoothed loss.
    let plain = steps.iter().all(|r| r.nll.is_some());
    let loss = of_steps(|r| r.nll.unwrap_or(r.loss));
    let chart = |title: &str, y: &str| LineChart::new(title, "step", y);
    let mut page = Page::new("Training report")
        .paragraph(summary)
        .figure(
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
        );
    let mut table = Table::new(&["step", "weights", "minutes", "loss", "perplexity", "BLEU", "chrF"]);
    for r in &validations {
        table = table.row(&[
            r.step.to_string(),
            r.weights.clone(),
            format!("{:.1}", r.seconds / 60.0),
            format!("{:.4}", r.loss),
            format!("{:.2}", r.perplexity),
            format!("{:.2}", r.bleu),
            format!("{:.2}", r.chrf),
        ]);
    }
    page = page.heading("Validations").table(table);
    if let Some(last) = validations.iter().rev().find(|r| !r.samples.is_empty()) {
        let mut table = Table::new(&["source", "translation", "reference"]);
        for (source, translation, reference) in &last.samples {
            table = table.row(&[source, translation, reference]);
        }
        page = page.heading("Sample translations").table(table);
    }
    page.heading("Settings").preformatted(config.to_toml()).render()
}
