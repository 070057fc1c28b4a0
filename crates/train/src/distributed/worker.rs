//! The other ranks of a job: they do what rank 0 tells them.
//!
//! Rank 0 runs the loop of `run/training_loop.rs`, with its clock, validations and files. Before each thing that needs everyone it sends an
//! [`Command`], so that no other rank has anything to decide.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::{Communicator, check_consistency};
use crate::batches::plan_epoch;
use crate::config::TrainConfig;
use crate::run::{Data, Folder, dropout_seed};
use crate::step::Trainer;
use regard_core::model::Transformer;
use regard_core::text::TokenizerPair;
use regard_core::{Error, Isa, Result};

/// What all ranks do next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// A step on some batches of an epoch's plan.
    Step { epoch: u64, position: u64, batches: usize, rate_bits: u32 },
    /// Give rank 0 Adam's moments.
    Moments,
    /// There is no more to do.
    End,
}

impl Command {
    pub(crate) fn step(epoch: u64, position: u64, batches: usize, rate: f32) -> Self {
        Command::Step { epoch, position, batches, rate_bits: rate.to_bits() }
    }

    /// Rank 0 tells the others.
    pub(crate) fn broadcast(self, group: &dyn Communicator) {
        if group.size() > 1 {
            group.broadcast(&mut serde_json::to_vec(&self).unwrap_or_default());
        }
    }

    fn receive(group: &dyn Communicator) -> Result<Self> {
        receive(group)
    }
}

/// What another rank needs to know before it can begin.
#[derive(Serialize, Deserialize)]
struct Opening {
    config: TrainConfig,
    /// The files of the tokenizers.
    tokenizers: Vec<(String, Vec<u8>)>,
    bias: Option<Vec<f32>>,
}

fn receive<T: for<'a> Deserialize<'a>>(group: &dyn Communicator) -> Result<T> {
    let mut bytes = Vec::new();
    group.broadcast(&mut bytes);
    serde_json::from_slice(&bytes).map_err(|e| Error::Input {
        operation: "following rank 0",
        message: format!("what it said cannot be read: {e}"),
    })
}

/// On rank 0: tells the others what the run is, and refuses those that have another corpus.
pub(crate) fn open(
    group: &dyn Communicator,
    config: TrainConfig,
    data: &Data,
    folder: &Folder,
    bias: &Option<Vec<f32>>,
) -> Result<()> {
    if group.size() == 1 {
        return Ok(());
    }
    let tokenizers = files_of(&data.tokenizers, &folder.cache.join("tokenizers"))?;
    let opening = Opening { config, tokenizers, bias: bias.clone() };
    group.broadcast(&mut serde_json::to_vec(&opening).unwrap_or_default());
    check_consistency(group, Ok::<_, Error>(data.facts()))
}

/// The files of a pair of tokenizers, by way of a folder that is removed again.
fn files_of(tokenizers: &TokenizerPair, folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let error = |e| Error::io(folder, e);
    std::fs::create_dir_all(folder).map_err(error)?;
    tokenizers.save(folder)?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, std::fs::read(entry.path()).map_err(error)?));
    }
    std::fs::remove_dir_all(folder).map_err(error)?;
    Ok(files)
}

fn tokenizers_of(files: &[(String, Vec<u8>)], folder: &Path) -> Result<TokenizerPair> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|e| Error::io(&path, e))?;
    }
    let tokenizers = TokenizerPair::load(folder)?;
    std::fs::remove_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    Ok(tokenizers)
}

/// Trains with rank 0, which runs [`run_rank0`](crate::run_rank0), as long as it does. `local` puts into the settings of rank 0 what is this
/// rank's own: its files and cores. `out` is where it may keep a cache of its corpus; `stop` asks all ranks to stop.
pub fn run_worker(
    group: Arc<dyn Communicator>,
    out: &Path,
    isa: Isa,
    stop: &AtomicBool,
    local: impl FnOnce(&mut TrainConfig) -> Result<()>,
) -> Result<()> {
    let Opening { mut config, tokenizers, bias } = receive(&*group)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // What a resumed run had on rank 0, if there are as many here.
    config.threads = config.threads.map(|threads| threads.min(cores)).or(Some(cores));
    let prepared = local(&mut config).and_then(|()| prepare(&mut config, out, &tokenizers, group.rank()));
    check_consistency(&*group, prepared.as_ref().map(|(data, _)| data.facts()))?;
    let (data, threads) = prepared?;
    let transformer = Transformer::new(config.model.clone())?.with_output_bias(bias)?;
    let weights = vec![0.0; transformer.parameters().len()];
    let seed = dropout_seed(&config);
    let products = config.precision.choose(isa)?.products;
    let mut trainer = Trainer::new(transformer, weights, config.step_settings(), isa, threads, seed)?
        .with_products(products);
    trainer.join(group, config.optimizer.wire, config.optimizer.overlap)?;
    run_commands(&mut trainer, &config, &data, stop)
}

fn prepare(
    config: &mut TrainConfig,
    out: &Path,
    tokenizers: &[(String, Vec<u8>)],
    rank: usize,
) -> Result<(Data, usize)> {
    config.absolute_paths()?;
    let threads = config.threads.unwrap_or(1);
    let cache = out.join("cache");
    let tokenizers = tokenizers_of(tokenizers, &cache.join(format!("tokenizers-{rank}")))?;
    Ok((Data::prepare_on_rank(config, (&cache, rank), tokenizers, threads)?, threads))
}

fn run_commands(trainer: &mut Trainer, config: &TrainConfig, data: &Data, stop: &AtomicBool) -> Result<()> {
    let group = Arc::clone(trainer.group());
    let (mut planned, mut plan) = (None, Vec::new());
    loop {
        match Command::receive(&*group)? {
            Command::Step { epoch, position, batches, rate_bits } => {
                if planned != Some(epoch) {
                    plan = plan_epoch(&data.lengths, &config.batches(), config.seed, epoch);
                    planned = Some(epoch);
                }
                let pairs = plan.iter().skip(position as usize).take(batches);
                let batches = pairs.map(|p| data.batch(config, epoch, p)).collect::<Result<Vec<_>>>()?;
                if stop.load(Ordering::Relaxed) {
                    trainer.ask_to_stop();
                }
                trainer.step(&batches, f32::from_bits(rate_bits))?;
            }
            Command::Moments => trainer.collect_moments(),
            Command::End => return Ok(()),
        }
    }
}
