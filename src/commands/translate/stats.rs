//! The statistics of `regard translate`.

use serde::Serialize;
use std::time::{Duration, Instant};

/// Counts what has been translated since the model was loaded.
pub(super) struct Stats {
    wanted: bool,
    load: Duration,
    start: Instant,
    lines: usize,
    words: usize,
}

/// The printed report.
#[derive(Serialize)]
struct Report {
    load_seconds: f64,
    seconds: f64,
    lines: usize,
    source_words: usize,
    lines_per_second: f64,
    source_words_per_second: f64,
}

impl Stats {
    /// Starts counting after loading, which began at `before`; counts nothing unless `wanted`.
    pub(super) fn after_loading(before: Instant, wanted: bool) -> Self {
        Stats { wanted, load: before.elapsed(), start: Instant::now(), lines: 0, words: 0 }
    }

    /// Counts these translated lines.
    pub(super) fn add<T: AsRef<str>>(&mut self, lines: &[T]) {
        if self.wanted {
            self.lines += lines.len();
            self.words += lines.iter().map(|line| line.as_ref().split_whitespace().count()).sum::<usize>();
        }
    }

    /// Prints the report as one line of JSON to standard error.
    pub(super) fn print(&self) -> Result<(), serde_json::Error> {
        if self.wanted {
            let (seconds, lines, source_words) = (self.start.elapsed().as_secs_f64(), self.lines, self.words);
            let report = Report {
                load_seconds: self.load.as_secs_f64(),
                seconds,
                lines,
                source_words,
                lines_per_second: lines as f64 / seconds,
                source_words_per_second: source_words as f64 / seconds,
            };
            note!("{}", serde_json::to_string(&report)?);
        }
        Ok(())
    }
}
