//! The display of a run's progress.

use super::named_by_flags;
use indicatif::{ProgressBar, ProgressStyle};
use regard::train::{Progress, StepRecord, ValidationRecord};
use std::io::IsTerminal;

/// A bar on a terminal, lines otherwise; all on stderr.
pub(crate) struct View {
    bar: Option<ProgressBar>,
    terminal: bool,
    /// Loss, BLEU and chrF of the last validation.
    before: Option<(f64, f64, f64)>,
}

impl View {
    pub(crate) fn new() -> Self {
        View { bar: None, terminal: std::io::stderr().is_terminal(), before: None }
    }

    /// Removes the bar from the screen.
    pub(crate) fn close(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn bar(&mut self, total: Option<u64>) -> &ProgressBar {
        let bar = self.bar.get_or_insert_with(ProgressBar::no_length);
        if bar.length() != total {
            let template = match total {
                Some(total) => {
                    bar.set_length(total);
                    "{bar:24} {pos}/{len} {msg}, {eta} left"
                }
                None => "{spinner} {pos} {msg}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
        }
        bar
    }
}

fn describe(r: &StepRecord) -> String {
    format!(
        "epoch {:.2}, loss {:.3}, rate {:.2e}, {:.0} tokens/s",
        r.epoch, r.loss, r.rate, r.tokens_per_second
    )
}

impl Progress for View {
    fn message(&mut self, text: &str) {
        let text = named_by_flags(text);
        match &self.bar {
            Some(bar) => bar.suspend(|| note!("{text}")),
            None => note!("{text}"),
        }
    }

    fn step(&mut self, record: &StepRecord, total: Option<u64>) {
        if self.terminal {
            let text = describe(record);
            let bar = self.bar(total);
            if bar.position() == 0 {
                // Keeps a resumed run from counting earlier steps in its speed.
                bar.set_position(record.step);
                bar.reset_eta();
            }
            bar.set_position(record.step);
            bar.set_message(text);
        }
    }

    fn logged(&mut self, record: &StepRecord, total: Option<u64>) {
        if !self.terminal {
            let of = total.map_or(String::new(), |t| format!("/{t}"));
            let left = total.map_or(String::new(), |t| {
                let seconds = record.seconds / record.step as f64 * t.saturating_sub(record.step) as f64;
                format!(", {:.1} min left", seconds / 60.0)
            });
            note!("step {}{of}: {}{left}", record.step, describe(record));
        }
    }

    fn validated(&mut self, r: &ValidationRecord, best: bool) {
        let whose = if r.weights == "step" { format!("step {}", r.step) } else { r.weights.clone() };
        let before = self.before.replace((r.loss, r.bleu, r.chrf));
        let since = |of: fn((f64, f64, f64)) -> f64, now: f64, digits: usize| {
            before.map_or(String::new(), |before| format!(" ({:+.digits$})", now - of(before)))
        };
        let mut text = format!(
            "{whose}: validation loss {:.4}{}, perplexity {:.2}, BLEU {:.2}{}, chrF {:.2}{}{}",
            r.loss,
            since(|b| b.0, r.loss, 4),
            r.perplexity,
            r.bleu,
            since(|b| b.1, r.bleu, 2),
            r.chrf,
            since(|b| b.2, r.chrf, 2),
            if best { ", the best so far" } else { "" }
        );
        for (source, translation, reference) in &r.samples {
            text += &format!("\n    {source}\n  → {translation}\n  = {reference}");
        }
        self.message(&text);
    }
}
