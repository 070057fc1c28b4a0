//! Bootstrap resampling: how certain a score is, and whether two systems really differ.

use serde::Serialize;

use super::resample::Draws;
use super::{Interval, Metric, Score, aggregate, input};
use crate::{Error, Result};

/// How to resample; the default is sacreBLEU's.
///
/// The draws are NumPy's for this seed, and so are those that sacreBLEU makes. It sums and divides
/// in 32-bit floats where this module has 64 bits: means and intervals agree to about six digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How many corpora are drawn.
    pub samples: usize,
    /// Where the draws start; the same seed gives the same result.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Bootstrap { samples: 1000, seed: 12345 }
    }
}

/// A system against a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline's score and interval.
    pub baseline: Score,
    /// The system's score and interval.
    pub system: Score,
    /// How probable a difference of this size is if the systems are equally good.
    pub p_value: f64,
}

impl Bootstrap {
    /// The score of every drawn corpus: as many segments as there are, drawn with replacement.
    pub(super) fn scores(&self, segments: &[Vec<f64>], score: &dyn Fn(&[f64]) -> f64) -> Result<Vec<f64>> {
        if self.samples < 2 {
            let message = format!("{} drawn corpora make no interval; at least 2 are needed", self.samples);
            return Err(Error::config("bootstrap samples", message));
        }
        let n = u32::try_from(segments.len())
            .map_err(|_| input(format!("{} sentences are too many to draw from", segments.len())))?;
        let mut draws = Draws::new(self.seed);
        let drawn = (0..self.samples).map(|_| {
            let mut counts = vec![0.0; segments[0].len()];
            for _ in 0..n {
                counts.iter_mut().zip(&segments[draws.index(n)]).for_each(|(sum, c)| *sum += c);
            }
            score(&counts)
        });
        Ok(drawn.collect())
    }
}

/// Tests whether two systems differ, by paired bootstrap resampling (Koehn, 2004) as sacreBLEU does
/// it.
///
/// Both are scored on the same drawn corpora. The p-value is the share of corpora on which the
/// absolute difference exceeds its own mean by more than the difference on the real corpus, (c + 1)
/// / (samples + 1): two-sided, and never 0.
pub fn paired_bootstrap(
    metric: &dyn Metric,
    baseline: &[String],
    system: &[String],
    references: &[Vec<String>],
    bootstrap: &Bootstrap,
) -> Result<Comparison> {
    let score = |hypotheses: &[String]| -> Result<(Score, Vec<f64>)> {
        let segments = metric.statistics(hypotheses, references)?;
        let scores = bootstrap.scores(&segments, &|counts| metric.compute(counts).0)?;
        let interval = Some(Interval::of(scores.clone()));
        let signature = metric.signature(references.len(), Some(bootstrap));
        Ok((Score { interval, signature, ..aggregate(metric, &segments, references.len()) }, scores))
    };
    let (baseline, baseline_scores) = score(baseline)?;
    let (system, system_scores) = score(system)?;

    let difference = (baseline.score - system.score).abs();
    let differences: Vec<f64> =
        system_scores.iter().zip(&baseline_scores).map(|(s, b)| (s - b).abs()).collect();
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let exceeding = differences.iter().filter(|&&d| d - mean > difference).count();
    let p_value = (exceeding + 1) as f64 / (differences.len() + 1) as f64;
    Ok(Comparison { baseline, system, p_value })
}
