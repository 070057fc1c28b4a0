//! Bootstrap resampling: confidence intervals for a score, and significance tests between systems.

use serde::Serialize;

use super::resample::Draws;
use super::{Interval, Metric, Score, aggregate, input};
use crate::{Error, Result};

/// Bootstrap settings; the default is sacreBLEU's.
///
/// The draws are NumPy's for this seed, as in sacreBLEU. sacreBLEU sums and divides in 32-bit
/// floats and this module in 64 bits, so means and intervals agree to about six digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// The number of resampled corpora.
    pub samples: usize,
    /// The random seed; the same seed gives the same result.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Bootstrap { samples: 1000, seed: 12345 }
    }
}

/// A comparison of a system with a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline's score and interval.
    pub baseline: Score,
    /// The system's score and interval.
    pub system: Score,
    /// The probability of a difference of this size if the systems are equally good.
    pub p_value: f64,
}

impl Bootstrap {
    /// The score of each resampled corpus, which has as many segments as the original, drawn with
    /// replacement.
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

/// Tests whether two systems differ by paired bootstrap resampling (Koehn, 2004), as sacreBLEU
/// does.
///
/// Both systems are scored on the same resampled corpora. The p-value is (c + 1) / (samples + 1),
/// where c is the number of corpora on which the absolute difference exceeds its own mean by more
/// than the difference on the real corpus: two-sided, and never 0.
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
