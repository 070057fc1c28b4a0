//! Writes the log of a run: `log.jsonl`, one line per event, and the same numbers for TensorBoard.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::tensorboard::EventWriter;
use regard_core::formats::Record;
use regard_core::{Error, Result};

/// Writes both logs.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    length: u64,
    events: EventWriter,
}

impl Log {
    /// Continues in `folder` after the first `length` bytes, which were written up to `step`;
    /// truncates the rest.
    pub(crate) fn open(folder: &Path, length: u64, step: u64) -> Result<Self> {
        let path = folder.join("log.jsonl");
        let error = |e| Error::io(&path, e);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(error)?;
        // The name of a new file is durable only once its folder is synced too. Only Unix can open
        // a folder.
        if cfg!(unix) {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(error)?;
        }
        // A log that was shortened is continued at its end.
        let length = length.min(file.metadata().map_err(error)?.len());
        file.set_len(length).map_err(error)?;
        file.seek(SeekFrom::Start(length)).map_err(error)?;
        let events =
            if step == 0 { EventWriter::create(folder)? } else { EventWriter::resume(folder, step)? };
        Ok(Log { path, file, length, events })
    }

    /// The length of the log in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn write(&mut self, record: &Record) -> Result<()> {
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

    pub(crate) fn text(&mut self, tag: &str, step: u64, text: &str) -> Result<()> {
        self.events.text(tag, step, text)?;
        self.events.flush()
    }

    /// The log must be on disk before a checkpoint records its length.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.path, e))
    }
}
