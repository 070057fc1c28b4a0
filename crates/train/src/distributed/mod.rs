//! Distributed training: a single process, or the ranks of an MPI job.
//!
//! The rest of the library only sees [`Communicator`]. [`SingleProcess`] is the default;
//! `MpiWorld`, behind the cargo feature `mpi`, covers all ranks that `mpirun` started.

mod consistency;
mod exchange;
#[cfg(feature = "mpi")]
mod mpi_world;
pub(crate) mod overlap;
pub(crate) mod shared_step;
mod worker;
mod workers;

pub use consistency::{ConsistencyCheck, check_consistency, config_check, model_check, program_check};
pub(crate) use exchange::BUCKET;
#[cfg(feature = "mpi")]
pub use mpi_world::MpiWorld;
pub use overlap::Overlap;
pub use worker::run_worker;
pub(crate) use workers::{BatchPlace, Workers};

use regard_core::{Error, Result};
use std::fmt::Debug;
use std::sync::Arc;

/// A group of processes, numbered from 0. All of them must call every method in the same order,
/// except [`rank`](Self::rank), [`size`](Self::size), [`host`](Self::host) and
/// [`abort`](Self::abort).
pub trait Communicator: Debug + Send + Sync {
    /// The rank of this process.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// The machine that this process runs on.
    fn host(&self) -> String;

    /// The data of all ranks, in rank order.
    fn all_gather_bytes(&self, mine: &[u8]) -> Vec<Vec<u8>>;

    /// Replaces `data` by that of rank 0. The other ranks may wait long for it, and yield their
    /// cores while they do.
    fn broadcast(&self, data: &mut Vec<u8>);

    /// Replaces `data`, of equal length on all ranks, by that of rank 0.
    fn broadcast_f32(&self, data: &mut [f32]);

    /// Splits `out` into pieces of `counts[r]` elements and sends the r-th to rank r; `into`
    /// receives the pieces for this rank, in rank order.
    fn all_to_all_f32(&self, out: &[f32], counts: &[usize], into: &mut [f32]);

    /// The same for 16-bit elements.
    fn all_to_all_u16(&self, out: &[u16], counts: &[usize], into: &mut [u16]);

    /// Fills `all` with the data of all ranks, `counts[r]` elements from rank r.
    fn all_gather_f32(&self, mine: &[f32], counts: &[usize], all: &mut [f32]);

    /// The same for 16-bit elements.
    fn all_gather_u16(&self, mine: &[u16], counts: &[usize], all: &mut [u16]);

    /// Terminates all processes immediately.
    fn abort(&self, status: i32) -> !;
}

/// A communicator for a single process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleProcess;

impl Communicator for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn host(&self) -> String {
        "this machine".into()
    }

    fn all_gather_bytes(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        vec![mine.to_vec()]
    }

    fn broadcast(&self, _: &mut Vec<u8>) {}

    fn broadcast_f32(&self, _: &mut [f32]) {}

    fn all_to_all_f32(&self, out: &[f32], _: &[usize], into: &mut [f32]) {
        into.copy_from_slice(out);
    }

    fn all_to_all_u16(&self, out: &[u16], _: &[usize], into: &mut [u16]) {
        into.copy_from_slice(out);
    }

    fn all_gather_f32(&self, mine: &[f32], _: &[usize], all: &mut [f32]) {
        all.copy_from_slice(mine);
    }

    fn all_gather_u16(&self, mine: &[u16], _: &[usize], all: &mut [u16]) {
        all.copy_from_slice(mine);
    }

    fn abort(&self, status: i32) -> ! {
        std::process::exit(status)
    }
}

/// The number of processes according to the launcher: `mpirun` of Open MPI and MPICH, or Slurm's
/// `srun`.
pub fn launched() -> usize {
    launched_by(|name| std::env::var(name).ok())
}

fn launched_by(variable: impl Fn(&str) -> Option<String>) -> usize {
    let number = |name: &str| variable(name).and_then(|text| text.parse().ok());
    // Slurm sets its task variables in every job; only with PMIx is it an MPI launcher.
    let slurm = || variable("PMIX_RANK").and_then(|_| number("SLURM_STEP_NUM_TASKS"));
    number("OMPI_COMM_WORLD_SIZE").or_else(|| number("PMI_SIZE")).or_else(slurm).unwrap_or(1).max(1)
}

/// Joins the group of processes that this one was started in; an error names `command`.
pub fn join(command: &str) -> Result<Arc<dyn Communicator>> {
    let size = launched();
    if size == 1 {
        return Ok(Arc::new(SingleProcess));
    }
    #[cfg(feature = "mpi")]
    {
        let _ = command;
        Ok(Arc::new(MpiWorld::join(size)?))
    }
    #[cfg(not(feature = "mpi"))]
    {
        let message = format!(
            "started {size} times by an MPI launcher, but this program was built without MPI: each copy would {command} by itself. \
             Start it once, or build it with the feature `mpi`"
        );
        Err(Error::Input { operation: "mpi", message })
    }
}

/// Rejects `command`, which needs a single process, if a launcher started several copies of it.
pub fn refuse_copies(command: &str) -> Result<()> {
    match launched() {
        1 => Ok(()),
        size => {
            let message = format!(
                "started {size} times by an MPI launcher, but `{command}` is for one process; start it without the launcher"
            );
            Err(Error::Input { operation: "mpi", message })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_variables() {
        let size = |set: &[(&str, &str)]| {
            launched_by(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(size(&[]), 1);
        assert_eq!(size(&[("OMPI_COMM_WORLD_SIZE", "4")]), 4);
        assert_eq!(size(&[("PMI_SIZE", "3")]), 3);
        assert_eq!(size(&[("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "8")]), 8);
        assert_eq!(size(&[("SLURM_STEP_NUM_TASKS", "8")]), 1);
        assert_eq!(size(&[("OMPI_COMM_WORLD_SIZE", "many")]), 1);
    }

    #[test]
    fn one_process_has_what_it_gave() {
        let mut into = [0.0; 2];
        SingleProcess.all_to_all_f32(&[1.0, 2.0], &[2], &mut into);
        assert_eq!(into, [1.0, 2.0]);
        assert_eq!(SingleProcess.all_gather_bytes(b"x"), [b"x"]);
    }
}
