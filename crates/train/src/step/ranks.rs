//! A trainer as one of the ranks of a job. The communication is in
//! [`distributed`](crate::distributed).

use super::Trainer;
use crate::config::TRAINABLE;
use crate::distributed::shared_step::SharedStep;
use crate::distributed::{BUCKET, Communicator, Overlap};
use regard_core::{DType, Error, Result};
use std::sync::Arc;

impl Trainer {
    /// Trains together with the other ranks of a communicator: a step spans the replicas of all
    /// ranks. Every rank must have created its trainer with the same model and settings, and
    /// receives the steps, weights and moments of rank 0.
    pub fn join(&mut self, communicator: Arc<dyn Communicator>, wire: DType, overlap: Overlap) -> Result<()> {
        self.join_in_buckets(communicator, wire, overlap, BUCKET)
    }

    /// The same with buckets of this many pieces.
    pub(crate) fn join_in_buckets(
        &mut self,
        communicator: Arc<dyn Communicator>,
        wire: DType,
        overlap: Overlap,
        pieces: usize,
    ) -> Result<()> {
        if !TRAINABLE.contains(&wire) {
            return Err(Error::config("wire", format!("{wire} is not possible; use f32 or bf16")));
        }
        let (how, replicas) = ((wire, overlap, pieces), self.replicas.len());
        self.shared = SharedStep::join(communicator, how, &self.model, replicas, &mut self.optimizer);
        Ok(())
    }

    /// The communicator of this job.
    pub(crate) fn communicator(&self) -> &Arc<dyn Communicator> {
        self.shared.communicator()
    }

    /// The number of replicas of all processes.
    pub fn replicas(&self) -> usize {
        self.shared.parts()
    }

    /// The number of bytes that this process sends in a step.
    pub fn wire_bytes(&self) -> usize {
        self.shared.bytes(&self.optimizer)
    }

    /// The number of buckets that can be sent before the backward pass ends.
    #[cfg(test)]
    pub(crate) fn early_buckets(&self) -> usize {
        self.shared.early_buckets()
    }

    /// Makes the next step's report tell all processes that this one was asked to stop.
    pub(crate) fn ask_to_stop(&mut self) {
        self.shared.ask_to_stop();
    }

    /// Gathers [`moments`](Self::moments), of which each process only updates its own shard. All
    /// processes must call it.
    pub(crate) fn collect_moments(&mut self) {
        self.shared.collect_moments(&mut self.optimizer);
    }
}
