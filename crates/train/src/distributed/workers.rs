//! The commands of rank 0 to the other ranks of a job.
//!
//! Rank 0 runs the training loop, with its clock, validations and files. Before each collective
//! operation it broadcasts a [`Command`], so the other ranks have nothing to decide.

use super::consistency::{check_consistency, corpus_check};
use super::{Communicator, SingleProcess};
use crate::config::TrainConfig;
use crate::run::{Data, Folder};
use crate::step::{StepReport, Trainer};
use regard_core::batch::Batch;
use regard_core::formats::{load_tokenizers, save_tokenizers};
use regard_core::text::TokenizerPair;
use regard_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// What all ranks do next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Command {
    /// A step on some batches of an epoch's plan.
    Step { place: BatchPlace, batches: usize, rate_bits: u32 },
    /// Send Adam's moments to rank 0.
    Moments,
    /// End the run.
    End,
}

/// The position of a batch: the epoch, and the index in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchPlace {
    pub(crate) epoch: u64,
    pub(crate) position: u64,
}

/// What a worker needs to start.
#[derive(Serialize, Deserialize)]
pub(super) struct WorkerSetup {
    pub(super) config: TrainConfig,
    /// The files of the tokenizers.
    pub(super) tokenizers: Vec<(String, Vec<u8>)>,
    pub(super) bias: Option<Vec<f32>>,
}

/// Receives the next broadcast of rank 0.
pub(super) fn receive<T: for<'a> Deserialize<'a>>(communicator: &dyn Communicator) -> Result<T> {
    let mut bytes = Vec::new();
    communicator.broadcast(&mut bytes);
    serde_json::from_slice(&bytes).map_err(|e| Error::Input {
        operation: "following rank 0",
        message: format!("what it said cannot be read: {e}"),
    })
}

/// The other ranks of this run. There may be none; then nothing is sent.
#[derive(Debug)]
pub(crate) struct Workers {
    communicator: Arc<dyn Communicator>,
}

impl Workers {
    /// The other ranks of a group.
    pub(crate) fn new(communicator: Arc<dyn Communicator>) -> Self {
        Workers { communicator }
    }

    /// No workers.
    pub(crate) fn none() -> Self {
        Workers { communicator: Arc::new(SingleProcess) }
    }

    fn broadcast(&self, message: &impl Serialize) {
        if self.communicator.size() > 1 {
            self.communicator.broadcast(&mut serde_json::to_vec(message).unwrap_or_default());
        }
    }

    /// Sends the setup to the workers, and rejects those with a different corpus.
    pub(crate) fn start(
        &self,
        config: TrainConfig,
        data: &Data,
        folder: &Folder,
        bias: &Option<Vec<f32>>,
    ) -> Result<()> {
        if self.communicator.size() == 1 {
            return Ok(());
        }
        let tokenizers = files_of(&data.tokenizers, &folder.cache.join("tokenizers"))?;
        self.broadcast(&WorkerSetup { config, tokenizers, bias: bias.clone() });
        check_consistency(&*self.communicator, Ok::<_, Error>(corpus_check(data)))
    }

    /// Makes the trainer take its steps together with the workers. Returns a message for the user,
    /// if there are any workers.
    pub(crate) fn join(&self, trainer: &mut Trainer, config: &TrainConfig) -> Result<Option<String>> {
        trainer.join(Arc::clone(&self.communicator), config.optimizer.wire, config.optimizer.overlap)?;
        let (ranks, replicas) = (self.communicator.size(), trainer.replicas());
        Ok((ranks > 1).then(|| format!("{ranks} ranks, which split each batch into {replicas} parts")))
    }

    /// A step on `batches`, which begin at `place`; the workers read their own copies of them.
    pub(crate) fn step(
        &self,
        trainer: &mut Trainer,
        place: BatchPlace,
        batches: &[Batch],
        rate: f32,
    ) -> Result<StepReport> {
        self.broadcast(&Command::Step { place, batches: batches.len(), rate_bits: rate.to_bits() });
        trainer.step(batches, rate)
    }

    /// Gathers the trainer's moments from all ranks.
    pub(crate) fn collect_moments(&self, trainer: &mut Trainer) {
        self.broadcast(&Command::Moments);
        trainer.collect_moments();
    }

    /// Ends the workers.
    pub(crate) fn end(&self) {
        self.broadcast(&Command::End);
    }
}

/// The files of a pair of tokenizers, via a temporary folder.
fn files_of(tokenizers: &TokenizerPair, folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let error = |e| Error::io(folder, e);
    std::fs::create_dir_all(folder).map_err(error)?;
    save_tokenizers(tokenizers, folder)?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, std::fs::read(entry.path()).map_err(error)?));
    }
    std::fs::remove_dir_all(folder).map_err(error)?;
    Ok(files)
}

/// The tokenizers from such files, via a temporary folder.
pub(super) fn tokenizers_of(files: &[(String, Vec<u8>)], folder: &Path) -> Result<TokenizerPair> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|e| Error::io(&path, e))?;
    }
    let tokenizers = load_tokenizers(folder)?;
    std::fs::remove_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    Ok(tokenizers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ranks_get_the_tokens_of_languages() {
        let families = Path::new(env!("CARGO_MANIFEST_DIR")).join("../regard-core/tests/goldens/families");
        for (family, source) in [("m2m100", Some("zh")), ("nllb", Some("zho_Hant")), ("madlad", None)] {
            let tokenizers = load_tokenizers(&families.join(family)).unwrap();
            let target = if family == "nllb" { "ace_Arab" } else { "de" };
            let (told, _) = tokenizers.for_languages(source, Some(target)).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("sent");
            let received = tokenizers_of(&files_of(&told, &place).unwrap(), &place).unwrap();
            assert_eq!(received.languages(), told.languages(), "{family}");
            let ids = |pair: &TokenizerPair| {
                [pair.source(), pair.target()].map(|side| side.encode("kano tinser").unwrap())
            };
            assert_eq!(ids(&received), ids(&told), "{family}");
            assert_ne!(ids(&received), ids(&tokenizers), "{family}");
        }
    }
}
