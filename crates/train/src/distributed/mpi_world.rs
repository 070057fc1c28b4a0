//! All ranks of an MPI job. Only this file calls MPI.

use super::Communicator;
use mpi::collective::{CommunicatorCollectives, Root};
use mpi::datatype::{Equivalence, Partition, PartitionMut};
use mpi::environment::Universe;
use mpi::request::{Request, Scope};
use mpi::topology::{Communicator as _, SimpleCommunicator};
use mpi::{Count, Threading};
use regard_core::{Error, Result};
use std::fmt::{self, Debug, Formatter};
use std::time::{Duration, Instant};

/// The ranks that a launcher started. Dropping it finalizes MPI.
pub struct MpiWorld {
    rank: usize,
    size: usize,
    // Held because dropping it finalizes MPI.
    _universe: Universe,
}

impl Drop for MpiWorld {
    fn drop(&mut self) {
        // Finalizing would wait for all ranks, and those wait for the rank that has failed.
        if std::thread::panicking() {
            self.abort(101);
        }
    }
}

impl Debug for MpiWorld {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank, self.size)
    }
}

/// The time after which a waiting thread begins to sleep between polls.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long it sleeps at a time. MPI makes progress only inside its calls: during a nap, it
/// transfers at most what the system's buffers hold.
const NAP: Duration = Duration::from_micros(100);
/// The maximum number of bytes per broadcast; MPI counts in 32 bits.
const MAX_BROADCAST_BYTES: usize = 1 << 30;

impl MpiWorld {
    /// Initialises MPI; `launched` is the number of processes according to the launcher.
    pub fn join(launched: usize) -> Result<Self> {
        let refuse = |message: String| Err(Error::Input { operation: "mpi", message });
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized) else {
            return refuse("it was started twice in one process".into());
        };
        if threading < Threading::Serialized {
            return refuse(format!(
                "this MPI library has no more than {threading:?} threads, Serialized is needed"
            ));
        }
        let world = SimpleCommunicator::world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        if size != launched {
            // A launcher of a different MPI: every process would consider itself the only one.
            return refuse(format!(
                "the launcher says that it started {launched} processes, MPI knows of {size}; use the launcher of the MPI library \
                 that this program was built with"
            ));
        }
        Ok(MpiWorld { rank, size, _universe: universe })
    }

    fn world(&self) -> SimpleCommunicator {
        SimpleCommunicator::world()
    }

    /// Waits for all ranks, and yields the core in between after a few milliseconds.
    fn wait(&self) {
        finish(self.world().immediate_barrier());
    }

    fn all_to_all<T: Equivalence>(&self, out: &[T], counts: &[usize], into: &mut [T]) {
        let mine = counts.get(self.rank).copied().unwrap_or(0);
        let (sent, received) = (Layout::new(counts), Layout::new(&vec![mine; self.size]));
        let out = Partition::new(out, sent.counts, sent.starts);
        let mut into = PartitionMut::new(into, received.counts, received.starts);
        // Replicas may be working meanwhile: this thread must not take their cores.
        mpi::request::scope(|scope| {
            finish(self.world().immediate_all_to_all_varcount_into(scope, &out, &mut into));
        });
    }

    fn all_gather<T: Equivalence>(&self, mine: &[T], counts: &[usize], all: &mut [T]) {
        let layout = Layout::new(counts);
        self.world()
            .all_gather_varcount_into(mine, &mut PartitionMut::new(all, layout.counts, layout.starts));
    }
}

/// Waits for a request, and yields the core in between after a few milliseconds.
fn finish<'a, D: ?Sized, S: Scope<'a>>(mut request: Request<'a, D, S>) {
    let start = Instant::now();
    while let Err(pending) = request.test() {
        request = pending;
        if start.elapsed() > PATIENCE {
            std::thread::sleep(NAP);
        } else {
            std::thread::yield_now();
        }
    }
}

/// Counts and displacements of contiguous pieces, in MPI's types.
struct Layout {
    counts: Vec<Count>,
    starts: Vec<Count>,
}

impl Layout {
    fn new(counts: &[usize]) -> Self {
        let counts: Vec<Count> = counts.iter().map(|&n| n as Count).collect();
        let starts = counts
            .iter()
            .scan(0, |at, &n| {
                *at += n;
                Some(*at - n)
            })
            .collect();
        Layout { counts, starts }
    }
}

impl Communicator for MpiWorld {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn host(&self) -> String {
        mpi::environment::processor_name().unwrap_or_else(|_| "a machine without a name".into())
    }

    fn all_gather_bytes(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let mut lengths = vec![0u64; self.size];
        self.world().all_gather_into(&(mine.len() as u64), &mut lengths[..]);
        let counts: Vec<usize> = lengths.iter().map(|&n| n as usize).collect();
        let mut all = vec![0; counts.iter().sum()];
        self.all_gather(mine, &counts, &mut all);
        let mut rest = &all[..];
        let take = |n: &usize| {
            let (first, after) = rest.split_at(*n);
            rest = after;
            first.to_vec()
        };
        counts.iter().map(take).collect()
    }

    fn broadcast(&self, data: &mut Vec<u8>) {
        self.wait();
        let (world, mut length) = (self.world(), data.len() as u64);
        let root = world.process_at_rank(0);
        root.broadcast_into(&mut length);
        data.resize(length as usize, 0);
        data.chunks_mut(MAX_BROADCAST_BYTES).for_each(|part| root.broadcast_into(part));
    }

    fn broadcast_f32(&self, data: &mut [f32]) {
        let world = self.world();
        let root = world.process_at_rank(0);
        data.chunks_mut(MAX_BROADCAST_BYTES / 4).for_each(|part| root.broadcast_into(part));
    }

    fn all_to_all_f32(&self, out: &[f32], counts: &[usize], into: &mut [f32]) {
        self.all_to_all(out, counts, into);
    }

    fn all_to_all_u16(&self, out: &[u16], counts: &[usize], into: &mut [u16]) {
        self.all_to_all(out, counts, into);
    }

    fn all_gather_f32(&self, mine: &[f32], counts: &[usize], all: &mut [f32]) {
        self.all_gather(mine, counts, all);
    }

    fn all_gather_u16(&self, mine: &[u16], counts: &[usize], all: &mut [u16]) {
        self.all_gather(mine, counts, all);
    }

    fn abort(&self, status: i32) -> ! {
        self.world().abort(status)
    }
}
