//! The result of a metric: the score, its signature and its components.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A score with its signature. Its JSON form is `{"score":…,"signature":…}`, plus the two numbers
/// of the interval if there is one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The score, from 0 to 100; TER may exceed 100.
    pub score: f64,
    /// How it was computed, as sacreBLEU writes it.
    pub signature: String,
    /// The confidence interval, if a bootstrap was run.
    #[serde(flatten)]
    pub interval: Option<Interval>,
    /// The metric's name as sacreBLEU prints it.
    #[serde(skip)]
    pub name: String,
    /// The components of the score.
    #[serde(skip)]
    pub details: Details,
}

/// The components of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Details {
    /// Components of BLEU.
    Bleu {
        /// Matching n-grams of each order, before smoothing.
        counts: Vec<u64>,
        /// The hypotheses' n-grams of each order, before smoothing.
        totals: Vec<u64>,
        /// Precision of each order in percent, smoothed.
        precisions: Vec<f64>,
        /// The penalty factor for hypotheses that are shorter than their references.
        brevity_penalty: f64,
        /// The total length of the hypotheses in tokens.
        hyp_len: u64,
        /// The total length, in tokens, of the references closest in length.
        ref_len: u64,
    },
    /// Components of chrF: none besides the score.
    Chrf {},
    /// Components of TER.
    Ter {
        /// Insertions, deletions, substitutions and shifts.
        edits: u64,
        /// The number of reference tokens, averaged over the references of a sentence.
        ref_len: f64,
    },
}

/// The mean of the bootstrap scores and the half width of their 95 % interval, with sacreBLEU's
/// definitions and names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Mean of the resampled scores.
    #[serde(rename = "confidence_mean")]
    pub mean: f64,
    /// Half the distance from the 1/40 to the 39/40 quantile.
    #[serde(rename = "confidence_var")]
    pub half_width: f64,
}

impl Interval {
    /// The interval of resampled scores: sorts them and cuts off a fortieth at each end.
    pub(super) fn of(mut scores: Vec<f64>) -> Self {
        scores.sort_unstable_by(f64::total_cmp);
        let n = scores.len();
        let cut = n / 40;
        let half_width = 0.5 * (scores[n - cut - 1] - scores[cut]);
        Interval { mean: scores.iter().sum::<f64>() / n as f64, half_width }
    }
}

/// The line that sacreBLEU prints in its text format, with two decimals or the given precision
/// (`{:.1}`).
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = f.precision().unwrap_or(2);
        write!(f, "{}|{} = {:.width$}", self.name, self.signature, self.score)?;
        if let Some(Interval { mean, half_width }) = self.interval {
            write!(f, " (μ = {mean:.width$} ± {half_width:.width$})")?;
        }
        if let Details::Bleu { precisions, brevity_penalty, hyp_len, ref_len, .. } = &self.details {
            let precisions: Vec<String> = precisions.iter().map(|p| format!("{p:.1}")).collect();
            let ratio = if *ref_len == 0 { 0.0 } else { *hyp_len as f64 / *ref_len as f64 };
            write!(f, " {} (BP = {brevity_penalty:.3} ratio = {ratio:.3} ", precisions.join("/"))?;
            write!(f, "hyp_len = {hyp_len} ref_len = {ref_len})")?;
        }
        Ok(())
    }
}

/// The scores of several metrics by key. The JSON form is one object,
/// `{"bleu":{…},"chrf":{…},"ter":{…}}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores(pub Vec<(&'static str, Score)>);

impl Scores {
    /// The score of one metric.
    pub fn get(&self, key: &str) -> Option<&Score> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, score)| score)
    }
}

impl Serialize for Scores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, score) in &self.0 {
            map.serialize_entry(key, score)?;
        }
        map.end()
    }
}
