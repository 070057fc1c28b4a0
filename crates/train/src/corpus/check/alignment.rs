//! Whether line i of one side matches line i of the other, or an adjacent line.
//!
//! Long sentences have long translations: over some hundred pairs, the lengths of the two sides are
//! correlated. If one side has an additional or a missing line, the correlation vanishes from there
//! on, but the lengths of each line and its neighbour on the other side are correlated. The same is
//! true for numbers and names, which occur on both sides.

use super::{Pair, Problem, Side};
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64;

/// The number of pairs examined together.
const WINDOW: usize = 400;
/// The minimum number of pairs for a verdict.
const MIN_PAIRS: usize = 60;

/// Examines the pairs in windows.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    window: Window,
    found: Vec<Misalignment>,
    last_file: usize,
}

/// A part of a file whose sides do not match line by line.
#[derive(Clone, Debug)]
pub(super) struct Misalignment {
    file: usize,
    first: usize,
    last: usize,
    /// The number of pairs.
    pub(super) pairs: u64,
    /// The number of lines by which the target lags the source; `None` if no shift explains it.
    shift: Option<i64>,
}

/// One side of a line: its length, and hashes of the numbers and names in it.
#[derive(Clone, Debug, Default)]
struct Line {
    length: f64,
    anchors: HashSet<u64>,
}

#[derive(Debug, Default)]
struct Window {
    lines: Vec<(Line, Line)>,
    places: Vec<(usize, usize)>,
}

impl Line {
    fn new(text: &str) -> Self {
        let words = text.split(|c: char| c.is_whitespace() || (c.is_ascii_punctuation() && c != '.'));
        let words = words.map(|word| word.trim_matches('.'));
        // The first word of a sentence is capitalised without being a name.
        let anchors = words.enumerate().filter(|(i, word)| {
            word.chars().any(char::is_numeric)
                || (*i > 0 && word.len() > 3 && word.starts_with(char::is_uppercase))
        });
        // The final punctuation mark is an anchor too.
        let end = text.chars().next_back().filter(|c| "?!:？！：".contains(*c));
        let anchors = anchors.map(|(_, word)| xxh3_64(word.as_bytes()));
        let anchors = anchors.chain(end.map(|c| u64::from(u32::from(c))));
        Line { length: (1.0 + text.chars().count() as f64).ln(), anchors: anchors.collect() }
    }
}

impl Alignment {
    pub(super) fn add(&mut self, pair: &Pair, source: &str, target: &str) {
        if pair.file != self.last_file {
            self.end_window();
            self.last_file = pair.file;
        }
        self.window.lines.push((Line::new(source), Line::new(target)));
        self.window.places.push((pair.file, pair.line));
        if self.window.lines.len() >= WINDOW {
            self.end_window();
        }
    }

    /// Skips a pair with an empty side: the lines around it stay adjacent.
    pub(super) fn skip(&mut self) {
        if let Some(place) = self.window.places.last().copied() {
            self.window.lines.push(Default::default());
            self.window.places.push(place);
        }
    }

    fn end_window(&mut self) {
        let window = std::mem::take(&mut self.window);
        let Some(shift) = window.verdict() else { return };
        let ((file, first), (_, last)) = (window.places[0], window.places[window.places.len() - 1]);
        let pairs = window.lines.len() as u64;
        match self.found.last_mut() {
            Some(before) if before.file == file && before.shift == shift && before.last + WINDOW >= first => {
                before.last = last;
                before.pairs += pairs;
            }
            _ => self.found.push(Misalignment { file, first, last, pairs, shift }),
        }
    }

    /// The parts that do not match.
    pub(super) fn finish(mut self) -> Vec<Misalignment> {
        self.end_window();
        self.found
    }
}

impl Misalignment {
    /// The problem and its first pair.
    pub(super) fn problem(&self) -> (Problem, Pair) {
        let problem = if self.shift.is_some() { Problem::Shifted } else { Problem::Unrelated };
        let side = Side::Text(String::new());
        (
            problem,
            Pair { source: side.clone(), target: side, line: self.first, file: self.file, document: None },
        )
    }

    pub(super) fn text(&self) -> String {
        let Misalignment { first, last, shift, .. } = self;
        match shift {
            Some(shift) => format!(
                "lines {first} to {last}: the translation of a source line stands {} {} on the target side",
                if shift.abs() == 1 { "one line".to_owned() } else { format!("{} lines", shift.abs()) },
                if *shift > 0 { "later" } else { "earlier" }
            ),
            None => format!(
                "lines {first} to {last}: the lengths of the two sides have nothing to do with each other"
            ),
        }
    }
}

/// How well the sides match if the target is shifted.
#[derive(Clone, Copy, Debug)]
struct Fit {
    /// Correlation of the logarithms of the lengths.
    correlation: f64,
    /// The share of the numbers and names of the source that also occur in the target.
    anchors: f64,
    /// The number of numbers and names in the source.
    count: usize,
}

impl Fit {
    /// Both combined.
    fn score(self) -> f64 {
        // Weigh anchors by their number: a few are weak evidence.
        let weight = self.count as f64 / (self.count as f64 + 20.0);
        self.correlation + weight * self.anchors
    }
}

impl Window {
    fn fit(&self, shift: i64) -> Fit {
        let n = self.lines.len() as i64;
        let pairs = (0..n).filter_map(|i| {
            let other = usize::try_from(i + shift).ok().filter(|j| *j < n as usize)?;
            let (source, target) = (&self.lines[i as usize].0, &self.lines[other].1);
            (source.length > 0.0 && target.length > 0.0).then_some((source, target))
        });
        let pairs: Vec<_> = pairs.collect();
        let (mut both, mut count) = (0, 0);
        for (source, target) in &pairs {
            count += source.anchors.len();
            both += source.anchors.intersection(&target.anchors).count();
        }
        let lengths: Vec<(f64, f64)> = pairs.iter().map(|(s, t)| (s.length, t.length)).collect();
        Fit { correlation: correlation(&lengths), anchors: both as f64 / count.max(1) as f64, count }
    }

    /// `None` if the sides match or there is too little evidence; else the shift that explains the
    /// mismatch, if one does.
    fn verdict(&self) -> Option<Option<i64>> {
        if self.lines.len() < MIN_PAIRS {
            return None;
        }
        let fit = self.fit(0);
        let aligned = fit.score();
        let shifts = [-1, 1, -2, 2].map(|shift| (shift, self.fit(shift).score()));
        let (shift, best) = shifts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        if best > aligned + 0.2 && best > 0.4 {
            return Some(Some(shift));
        }
        // Require some spread: lengths that are all equal have no correlation.
        let lengths = self.lines.iter().map(|(source, _)| source.length).filter(|length| *length > 0.0);
        let (least, most) = lengths.fold((f64::MAX, 0f64), |(a, b), x| (a.min(x), b.max(x)));
        let spread = most - least > 1.0 && self.lines.len() >= WINDOW / 2;
        (spread && fit.correlation < 0.3 && aligned < best + 0.1).then_some(None)
    }
}

/// Pearson correlation.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len().max(1) as f64;
    let mean = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / n, sum.1 + pair.1 / n));
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (x, y) = (x - mean.0, y - mean.1);
        (xy, xx, yy) = (xy + x * y, xx + x * x, yy + y * y);
    }
    if xx * yy > 1e-12 { xy / (xx * yy).sqrt() } else { 0.0 }
}
