//! The ranks of a job other than the first: they execute the commands of rank 0.

use super::Communicator;
use super::consistency::{check_consistency, corpus_check};
use super::workers::{BatchPlace, Command, WorkerSetup, receive, tokenizers_of};
use crate::batches::plan_epoch;
use crate::config::{TrainConfig, choose_dtype};
use crate::run::{Data, dropout_seed};
use crate::step::Trainer;
use regard_core::model::Transformer;
use regard_core::{Isa, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Trains with rank 0, which runs [`Start`](crate::Start) in the same group, until it ends. `local`
/// replaces what is specific to this rank in the settings of rank 0: files and cores. `out` is
/// where it may keep a cache of its corpus; `stop` asks all ranks to stop.
pub fn run_worker(
    communicator: Arc<dyn Communicator>,
    out: &Path,
    isa: Isa,
    stop: &AtomicBool,
    local: impl FnOnce(&mut TrainConfig) -> Result<()>,
) -> Result<()> {
    let WorkerSetup { mut config, tokenizers, bias } = receive(&*communicator)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Use rank 0's number of threads, limited to the cores of this machine.
    config.threads = config.threads.map(|threads| threads.min(cores)).or(Some(cores));
    let prepared =
        local(&mut config).and_then(|()| prepare(&mut config, out, &tokenizers, communicator.rank()));
    check_consistency(&*communicator, prepared.as_ref().map(|(data, _)| corpus_check(data)))?;
    let (data, threads) = prepared?;
    let transformer = Transformer::new(config.model.clone())?.with_output_bias(bias)?;
    let weights = vec![0.0; transformer.parameters().len()];
    let seed = dropout_seed(&config);
    let gemm = choose_dtype(config.precision, isa)?.gemm;
    let mut trainer =
        Trainer::new(transformer, weights, config.optimizer.step, isa, threads, seed)?.with_gemm(gemm);
    trainer.join(communicator, config.optimizer.wire, config.optimizer.overlap)?;
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
    let own = rank.to_string();
    let tokenizers = tokenizers_of(tokenizers, &cache.join(format!("tokenizers-{own}")))?;
    Ok((Data::prepare_with(config, (&cache, &own), tokenizers, threads)?, threads))
}

fn run_commands(trainer: &mut Trainer, config: &TrainConfig, data: &Data, stop: &AtomicBool) -> Result<()> {
    let communicator = Arc::clone(trainer.communicator());
    let (mut planned, mut plan) = (None, Vec::new());
    loop {
        match receive(&*communicator)? {
            Command::Step { place: BatchPlace { epoch, position }, batches, rate_bits } => {
                if planned != Some(epoch) {
                    plan = plan_epoch(&data.lengths, &config.batch.plan, config.seed, epoch);
                    planned = Some(epoch);
                }
                let pairs = plan.iter().skip(position as usize).take(batches);
                let batches = pairs.map(|p| data.batch(config, epoch, p)).collect::<Result<Vec<_>>>()?;
                if stop.load(Ordering::Relaxed) {
                    trainer.ask_to_stop();
                }
                trainer.set_r_drop(config.optimizer.r_drop_in(epoch));
                trainer.step(&batches, f32::from_bits(rate_bits))?;
            }
            Command::Moments => trainer.collect_moments(),
            Command::End => return Ok(()),
        }
    }
}
