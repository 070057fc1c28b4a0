//! The record of a run: `log.jsonl`, a line for an event, and the same numbers for TensorBoard.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tensorboard::EventWriter;
use regard_core::{Error, Result};

/// The mean over the steps since the last such line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step, from 1.
    pub step: u64,
    /// Passes over the corpus, with their fraction.
    pub epoch: f64,
    /// The loss of a target token, with label smoothing.
    pub loss: f64,
    /// The same without label smoothing, as validation measures it but with dropout; logs of older
    /// versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nll: Option<f64>,
    /// The learning rate of the step.
    pub rate: f64,
    /// The length of the gradient before clipping.
    pub gradient_norm: f64,
    /// Target tokens in a second.
    pub tokens_per_second: f64,
    /// Seconds of training, validation not counted.
    pub seconds: f64,
}

/// What a validation found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationRecord {
    /// The step after which it was made.
    pub step: u64,
    /// The loss of a target token, without label smoothing and dropout.
    pub loss: f64,
    /// `exp(loss)`
    pub perplexity: f64,
    /// BLEU of the translations.
    pub bleu: f64,
    /// chrF of the translations.
    pub chrf: f64,
    /// Seconds of training before it.
    pub seconds: f64,
    /// Whose weights: those of the step, or an average.
    pub weights: String,
    /// Source, translation, reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<(String, String, String)>,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Record {
    /// Some steps.
    Step(StepRecord),
    /// A validation.
    Validation(ValidationRecord),
}

/// Writes both records.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    length: u64,
    events: EventWriter,
}

impl Log {
    /// Goes on in `folder` behind the first `length` bytes, which were written up to `step`; what came later is cut off.
    pub(super) fn open(folder: &Path, length: u64, step: u64) -> Result<Self> {
        let path = folder.join("log.jsonl");
        let error = |e| Error::io(&path, e);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(error)?;
        // A log that someone shortened is continued where it ends.
        let length = length.min(file.metadata().map_err(error)?.len());
        file.set_len(length).map_err(error)?;
        file.seek(SeekFrom::Start(length)).map_err(error)?;
        let events =
            if step == 0 { EventWriter::create(folder)? } else { EventWriter::resume(folder, step)? };
        Ok(Log { path, file, length, events })
    }

    /// How many bytes the log has.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn write(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_string(record).map_err(|e| Error::file(&self.path, e.to_string()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|e| Error::io(&self.path, e))?;
        self.length += line.len() as u64;
        match record {
            Record::Step(r) => {
                let mut numbers = vec![
                    ("train/loss", r.loss as f32),
                    ("train/learning_rate", r.rate as f32),
                    ("train/gradient_norm", r.gradient_norm as f32),
                    ("train/tokens_per_second", r.tokens_per_second as f32),
                    ("train/epoch", r.epoch as f32),
                ];
                numbers.extend(r.nll.map(|nll| ("train/nll", nll as f32)));
                self.events.scalars(r.step, &numbers)?;
            }
            Record::Validation(r) => {
                let numbers = [
                    ("validation/loss", r.loss as f32),
                    ("validation/perplexity", r.perplexity as f32),
                    ("validation/BLEU", r.bleu as f32),
                    ("validation/chrF", r.chrf as f32),
                ];
                self.events.scalars(r.step, &numbers)?;
                let lines =
                    r.samples.iter().map(|(s, t, reference)| format!("{s}  \n→ {t}  \n({reference})"));
                let text = lines.collect::<Vec<_>>().join("\n\n");
                if !text.is_empty() {
                    self.events.text("validation/translations", r.step, &text)?;
                }
            }
        }
        self.events.flush()
    }

    pub(super) fn text(&mut self, tag: &str, step: u64, text: &str) -> Result<()> {
        self.events.text(tag, step, text)?;
        self.events.flush()
    }

    /// Before a checkpoint says how long the log is, it must be that long on the disk.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.path, e))
    }
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
