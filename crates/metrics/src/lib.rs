//! Translation quality: BLEU, chrF and TER, with the same scores and signatures as sacreBLEU 2.6.
//!
//! A [`Metric`] reduces each segment to a few counts, sums them over the corpus and computes the
//! score from the sums. Bootstrap resampling ([`Bootstrap`], [`paired_bootstrap`]) sums random
//! draws of the same segments.
//!
//! ```
//! use regard_metrics::{Bleu, Metric};
//!
//! let hypotheses = ["The cat sat on the red mat.".to_owned()];
//! let references = [vec!["The cat sat on the mat.".to_owned()]];
//! let score = Bleu::default().corpus(&hypotheses, &references)?;
//! assert_eq!(format!("{:.2}", score.score), "59.46");
//! assert_eq!(score.signature, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
//! # Ok::<(), regard_metrics::Error>(())
//! ```
//!
//! Characters newer than Unicode 14 may be lowercased differently than by an older Python: Regard
//! follows the Unicode tables of its Rust compiler.

mod bleu;
mod chrf;
mod error;
mod ngram;
mod resample;
mod score;
mod significance;
mod ter;
mod tokenize;

pub use bleu::{Bleu, Smoothing};
pub use chrf::Chrf;
pub use error::{Error, Result};
pub use score::{Details, Interval, Score, Scores};
pub use significance::{Bootstrap, Comparison, paired_bootstrap};
pub use ter::Ter;
pub use tokenize::{Tokenizer, is_unspaced};

/// The sacreBLEU release that these scores and signatures match; it is the last part of every
/// signature.
pub const VERSION: &str = "2.6.0";

/// The maximum accepted n-gram order, so that a typo such as 10^9 is an error and not a long wait.
const MAX_ORDER: usize = 64;

/// A metric of translations against references.
///
/// References come as documents: `references[r][i]` is the `r`-th reference of hypothesis `i`.
pub trait Metric {
    /// The name in JSON and on the command line: `bleu`, `chrf`, `chrf++` or `ter`.
    fn key(&self) -> &'static str;

    /// The name as sacreBLEU prints it: `BLEU`, `chrF2++`, `TER`.
    fn name(&self) -> String;

    /// Rejects invalid settings.
    fn check(&self) -> Result<()>;

    /// The counts of one segment from which the score is computed; every segment has the same
    /// number of counts. There must be at least one reference.
    fn segment(&self, hypothesis: &str, references: &[&str]) -> Vec<f64>;

    /// The score for summed counts, and its components.
    fn compute(&self, counts: &[f64]) -> (f64, Details);

    /// The metric's own part of the signature: from `case` on, without the version.
    fn settings(&self) -> String;

    /// The full signature, as sacreBLEU writes it.
    fn signature(&self, references: usize, bootstrap: Option<&Bootstrap>) -> String {
        let resampling = bootstrap.map(|b| format!("|bs:{}|seed:{}", b.samples, b.seed)).unwrap_or_default();
        format!("nrefs:{references}{resampling}|{}|version:{VERSION}", self.settings())
    }

    /// The counts of every segment. Checks that hypotheses and references have the same number of
    /// lines.
    fn statistics(&self, hypotheses: &[String], references: &[Vec<String>]) -> Result<Vec<Vec<f64>>> {
        self.check()?;
        check_lines(hypotheses, references)?;
        let segments = hypotheses.iter().enumerate().map(|(i, hypothesis)| {
            let references: Vec<&str> = references.iter().map(|document| document[i].as_str()).collect();
            self.segment(hypothesis, &references)
        });
        Ok(segments.collect())
    }

    /// The score of a corpus.
    fn corpus(&self, hypotheses: &[String], references: &[Vec<String>]) -> Result<Score> {
        let segments = self.statistics(hypotheses, references)?;
        Ok(aggregate(self, &segments, references.len()))
    }

    /// The score of one sentence. sacreBLEU's `sentence_bleu` is BLEU with
    /// [`Bleu::effective_order`].
    fn sentence(&self, hypothesis: &str, references: &[&str]) -> Result<Score> {
        self.check()?;
        if references.is_empty() {
            return Err(no_reference());
        }
        Ok(aggregate(self, &[self.segment(hypothesis, references)], references.len()))
    }

    /// The score of a corpus with a 95 % bootstrap confidence interval.
    fn corpus_with_interval(
        &self,
        hypotheses: &[String],
        references: &[Vec<String>],
        bootstrap: &Bootstrap,
    ) -> Result<Score> {
        let segments = self.statistics(hypotheses, references)?;
        let mut score = aggregate(self, &segments, references.len());
        let scores = bootstrap.scores(&segments, &|counts| self.compute(counts).0)?;
        score.interval = Some(Interval::of(scores));
        score.signature = self.signature(references.len(), Some(bootstrap));
        Ok(score)
    }
}

/// The score from the counts of at least one segment.
fn aggregate(metric: &(impl Metric + ?Sized), segments: &[Vec<f64>], references: usize) -> Score {
    let (score, details) = metric.compute(&sum(segments));
    let signature = metric.signature(references, None);
    Score { score, signature, interval: None, name: metric.name(), details }
}

/// The metrics in a comma-separated list such as `bleu,chrf,ter`. `tokenizer` and `lowercase` apply
/// to BLEU, like sacreBLEU's `--tokenize` and `--lowercase`.
pub fn select(names: &str, tokenizer: Tokenizer, lowercase: bool) -> Result<Vec<Box<dyn Metric>>> {
    let mut metrics: Vec<Box<dyn Metric>> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let metric: Box<dyn Metric> = match name {
            "bleu" => Box::new(Bleu { tokenizer, lowercase, ..Bleu::default() }),
            "chrf" => Box::new(Chrf::default()),
            "chrf++" => Box::new(Chrf::plus_plus()),
            "ter" => Box::new(Ter::default()),
            _ => {
                let message = format!("unknown metric {name:?}; accepted: bleu, chrf, chrf++, ter");
                return Err(Error::config("metric", message));
            }
        };
        if metrics.iter().any(|m| m.key() == metric.key()) {
            return Err(Error::config("metric", format!("{name:?} is given twice")));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

/// The corpus scores of several metrics, in their order.
pub fn score_all(
    metrics: &[Box<dyn Metric>],
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Result<Scores> {
    let scores = metrics.iter().map(|metric| Ok((metric.key(), metric.corpus(hypotheses, references)?)));
    scores.collect::<Result<_>>().map(Scores)
}

/// The lines of a text as sacreBLEU's command reads them: split at `\n` only, with trailing white
/// space removed.
pub fn lines(text: &str) -> Vec<String> {
    text.split_terminator('\n').map(|line| tokenize::trim_end(line).to_owned()).collect()
}

fn check_lines(hypotheses: &[String], references: &[Vec<String>]) -> Result<()> {
    if references.is_empty() {
        return Err(no_reference());
    }
    for (number, document) in references.iter().enumerate() {
        if document.len() != hypotheses.len() {
            return Err(input(format!(
                "the hypotheses have {} lines and reference {} has {}; a reference needs one line for each hypothesis",
                hypotheses.len(),
                number + 1,
                document.len()
            )));
        }
    }
    if hypotheses.is_empty() {
        return Err(input("no sentence to score: hypotheses and references are empty".into()));
    }
    Ok(())
}

fn no_reference() -> Error {
    input("no reference; at least one is needed".into())
}

fn input(message: String) -> Error {
    Error::Input { operation: "score", message }
}

/// The column sums of segment counts.
fn sum<'a>(segments: impl IntoIterator<Item = &'a Vec<f64>>) -> Vec<f64> {
    let mut total = Vec::new();
    for counts in segments {
        total.resize(counts.len(), 0.0);
        total.iter_mut().zip(counts).for_each(|(t, c)| *t += c);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_line_feeds_only() {
        assert_eq!(lines(""), Vec::<String>::new());
        assert_eq!(lines("\n"), [""]);
        assert_eq!(lines("one \r\n\n two\u{2028}x\rb\u{3000}\t"), ["one", "", " two\u{2028}x\rb"]);
    }
}
