//! The log of a training run, `logs/log.jsonl` in a model folder: one JSON object per line.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The mean over the steps since the previous record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step, from 1.
    pub step: u64,
    /// The number of passes over the corpus, with a fraction.
    pub epoch: f64,
    /// The loss per target token, with label smoothing.
    pub loss: f64,
    /// The same without label smoothing, as measured in validation but with dropout; missing in
    /// logs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nll: Option<f64>,
    /// The learning rate of the step.
    pub rate: f64,
    /// The norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Target tokens per second.
    pub tokens_per_second: f64,
    /// The training time in seconds, without validation.
    pub seconds: f64,
}

/// The result of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationRecord {
    /// The step after which it was run.
    pub step: u64,
    /// The loss per target token, without label smoothing and dropout.
    pub loss: f64,
    /// `exp(loss)`
    pub perplexity: f64,
    /// BLEU of the translations.
    pub bleu: f64,
    /// chrF of the translations.
    pub chrf: f64,
    /// The training time before it in seconds.
    pub seconds: f64,
    /// Which weights: those of the step, or an average.
    pub weights: String,
    /// Source, translation, reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<(String, String, String)>,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Record {
    /// The mean of some steps.
    Step(StepRecord),
    /// A validation.
    Validation(ValidationRecord),
}

/// The lines of a `log.jsonl`.
pub fn read_log(path: &Path) -> Result<Vec<Record>> {
    let mut text = String::new();
    File::open(path).and_then(|mut f| f.read_to_string(&mut text)).map_err(|e| Error::io(path, e))?;
    let records = text.lines().enumerate().map(|(i, line)| {
        serde_json::from_str(line).map_err(|e| Error::Line {
            path: path.to_owned(),
            line: i + 1,
            message: format!("not a line of this log: {e}"),
        })
    });
    records.collect()
}
