//! A thread pool for parallel regions of microseconds, which puts all cores to work on one
//! sentence.
//!
//! A decoding step has some forty matmuls of a few hundred microseconds each. Waking a sleeping
//! thread costs a good part of that, so the threads of a team spin for a while before they go to
//! sleep.
//!
//! No piece of work is assigned to a thread: the first free thread takes it. A thread whose core
//! runs another program, or that has not woken up yet, does not delay the others, because the owner
//! takes its piece.
//!
//! A thread that has run out of work of its own can join another thread's team through an
//! [`Invitation`], for as long as that team exists.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sync::thread::{self, JoinHandle, Thread};
use sync::{Arc, Mutex, UnsafeCell};

/// The synchronization primitives: those of the standard library or, with `--cfg loom`, those of
/// loom, which explores every interleaving of the threads.
mod sync {
    #[cfg(loom)]
    pub(super) use loom::{
        cell::UnsafeCell, hint, sync::Arc, sync::Mutex, sync::MutexGuard, sync::atomic, thread,
    };
    #[cfg(not(loom))]
    pub(super) use std::{hint, sync::Arc, sync::Mutex, sync::MutexGuard, sync::atomic, thread};

    /// The standard library's cell with the interface of loom's.
    #[cfg(not(loom))]
    pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    #[cfg(not(loom))]
    impl<T> UnsafeCell<T> {
        pub(super) fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        /// Passes a pointer for reading.
        pub(super) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Passes a pointer for writing.
        pub(super) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

/// The maximum number of threads of a team.
const MAX_THREADS: usize = 16;

/// How often a thread polls for work before it sleeps: about fifty microseconds. Under loom every
/// poll is a separate state, so there a thread sleeps at once.
const SPINS: u32 = if cfg!(loom) { 0 } else { 2_000 };

type Work<'a> = dyn Fn(usize) + Sync + 'a;

struct Shared {
    /// The function to run; valid while `pending` is not 0.
    work: UnsafeCell<Option<*const Work<'static>>>,
    /// A sequence number of the work and, in the lowest byte, the number of pieces not yet taken;
    /// the last pieces are taken first.
    unclaimed: AtomicUsize,
    /// The number of unfinished pieces of the current work, not counting the owner's.
    pending: AtomicUsize,
    panicked: AtomicBool,
    stop: AtomicBool,
    /// Threads that have joined through an [`Invitation`] and do not count as members yet.
    joined: Mutex<Vec<Thread>>,
    /// The number of all threads that have ever joined.
    guests: AtomicUsize,
}

/// The bits of [`Shared::unclaimed`] that count pieces.
const PIECES: usize = 0xff;

// SAFETY: the owner of the team writes `work` only while no thread reads it: `pending` is 0, and
// all pieces have been taken. A thread reads it only after it has taken a piece of the new work,
// which `unclaimed` announces after `work` is written. The pointee is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    /// Takes a piece for this thread and returns its number; `None` if none is left.
    fn take(&self) -> Option<usize> {
        let mut free = self.unclaimed.load(Ordering::Acquire);
        while free & PIECES > 0 {
            match self.unclaimed.compare_exchange_weak(free, free - 1, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(free & PIECES),
                Err(now) => free = now,
            }
        }
        None
    }

    /// Runs a piece that this thread has taken.
    fn finish(&self, piece: usize) {
        // SAFETY: this piece has been taken and is not finished, so the work exists and nobody
        // writes it.
        let work = self.work.with(|work| unsafe { *work });
        if let Some(work) = work {
            // SAFETY: as above.
            let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*work)(piece) }));
            if done.is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
        }
        self.pending.fetch_sub(1, Ordering::Release);
    }
}

/// A thread and its helper threads.
pub struct Team {
    shared: Arc<Shared>,
    others: Vec<JoinHandle<()>>,
    /// Threads that have joined and count as members.
    guests: Vec<Thread>,
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("size", &self.size()).finish()
    }
}

impl Team {
    /// A team of `size` threads, including the calling one; at most 16, and fewer if the system
    /// does not provide them.
    pub fn new(size: usize) -> Self {
        let shared = Arc::new(Shared {
            work: UnsafeCell::new(None),
            unclaimed: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            joined: Mutex::new(Vec::new()),
            guests: AtomicUsize::new(0),
        });
        let others = (1..size.min(MAX_THREADS))
            .map_while(|_| {
                let shared = Arc::clone(&shared);
                thread::Builder::new().name("regard team".into()).spawn(move || worker_loop(&shared)).ok()
            })
            .collect();
        Team { shared, others, guests: Vec::new() }
    }

    /// Lets other threads join this team.
    pub fn invitation(&self) -> Invitation {
        Invitation(Arc::clone(&self.shared))
    }

    /// Counts threads that have joined since the last call as members, so that the next work has
    /// pieces for them.
    pub fn admit(&mut self) {
        // Their threads take pieces even if they are not admitted, so a late look does no harm.
        if self.shared.guests.load(Ordering::Relaxed) > self.guests.len() {
            let mut joined = lock(&self.shared.joined);
            let free = MAX_THREADS.saturating_sub(self.size()).min(joined.len());
            self.guests.extend(joined.drain(..free));
        }
    }

    /// The number of threads.
    pub fn size(&self) -> usize {
        1 + self.others.len() + self.guests.len()
    }

    /// Calls `work` once for each number below the size of the team, on as many threads as are
    /// free, and waits for all calls.
    ///
    /// # Panics
    /// If one of the calls panics.
    pub fn run(&mut self, work: &Work<'_>) {
        if self.size() == 1 {
            return work(0);
        }
        // SAFETY: the lifetime is erased, but nobody holds the pointer when this function returns:
        // it waits until `pending` is 0, even if the call below panics.
        let erased = unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(work) };
        // SAFETY: `pending` is 0 and all pieces of the previous work have been taken, so no thread
        // reads it.
        self.shared.work.with_mut(|work| unsafe { *work = Some(erased) });
        // Piece 0 belongs to this thread.
        let others = self.size() - 1;
        self.shared.pending.store(others, Ordering::Relaxed);
        let before = self.shared.unclaimed.load(Ordering::Relaxed);
        self.shared.unclaimed.store(before.wrapping_add(PIECES + 1) | others, Ordering::Release);
        self.unpark();
        let own = catch_unwind(AssertUnwindSafe(|| work(0)));
        // Run the pieces that the others have not taken.
        while let Some(piece) = self.shared.take() {
            self.shared.finish(piece);
        }
        let mut spins = 0;
        while self.shared.pending.load(Ordering::Acquire) > 0 {
            wait(&mut spins);
        }
        let panicked = self.shared.panicked.swap(false, Ordering::Relaxed);
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert!(!panicked, "a thread of the team panicked");
    }

    /// Calls `work` for each item, distributing the items over the threads in turn.
    ///
    /// # Panics
    /// If there are more than 16 items and more than one thread, or `work` panics.
    pub fn each<T: Send>(&mut self, items: impl Iterator<Item = T>, work: impl Fn(T) + Sync) {
        if self.size() == 1 {
            return items.for_each(work);
        }
        let slots: [Mutex<Option<T>>; MAX_THREADS] = std::array::from_fn(|_| Mutex::new(None));
        let mut count = 0;
        for item in items {
            assert!(count < MAX_THREADS, "more than {MAX_THREADS} items");
            *lock(&slots[count]) = Some(item);
            count += 1;
        }
        let (slots, size) = (&slots[..count], self.size());
        self.run(&|number| {
            for slot in slots.iter().skip(number).step_by(size) {
                let item = lock(slot).take();
                item.into_iter().for_each(&work);
            }
        });
    }

    /// Wakes the members that sleep.
    fn unpark(&self) {
        self.others.iter().for_each(|other| other.thread().unpark());
        self.guests.iter().for_each(Thread::unpark);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Later guests see `stop` when they get the lock.
        self.guests.append(&mut lock(&self.shared.joined));
        self.unpark();
        for other in self.others.drain(..) {
            other.thread().unpark();
            // `run` has already reported any panic.
            let _ = other.join();
        }
    }
}

/// Lets a thread that has run out of work join a team.
#[derive(Clone)]
pub struct Invitation(Arc<Shared>);

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invitation").field("open", &self.is_open()).field("guests", &self.guests()).finish()
    }
}

impl Invitation {
    /// Whether the team still exists.
    pub fn is_open(&self) -> bool {
        !self.0.stop.load(Ordering::Acquire)
    }

    /// The number of threads that have accepted.
    pub fn guests(&self) -> usize {
        self.0.guests.load(Ordering::Relaxed)
    }

    /// Joins the team and works for it until it is dropped. The thread that owns the team, or one
    /// inside its work, would wait forever.
    pub fn accept(&self) {
        {
            let mut joined = lock(&self.0.joined);
            if !self.is_open() {
                return;
            }
            joined.push(thread::current());
            self.0.guests.fetch_add(1, Ordering::Relaxed);
        }
        worker_loop(&self.0);
    }
}

/// Locks a mutex, whether or not a thread panicked while it held it.
fn lock<T>(mutex: &Mutex<T>) -> sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The loop of the helper threads: wait for a piece of work and run it.
fn worker_loop(shared: &Shared) {
    loop {
        let mut spins = 0;
        let piece = loop {
            if let Some(piece) = shared.take() {
                break piece;
            }
            if shared.stop.load(Ordering::Acquire) {
                return;
            }
            if spins < SPINS {
                wait(&mut spins);
            } else {
                // The owner calls `unpark` after announcing new work, so this thread cannot miss
                // it.
                thread::park();
            }
        };
        shared.finish(piece);
    }
}

/// Spins at first, and yields after many polls so that a descheduled thread can get the core.
fn wait(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    if *spins < SPINS {
        sync::hint::spin_loop();
    } else {
        thread::yield_now();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Gives a team work 200 times: each member must have its piece each time.
    fn every_member_works(team: &mut Team) {
        let counts: Vec<AtomicUsize> = (0..team.size()).map(|_| AtomicUsize::new(0)).collect();
        for round in 0..200 {
            if round == 100 {
                // Long enough for the others to have gone to sleep.
                thread::sleep(std::time::Duration::from_millis(20));
            }
            team.run(&|number| {
                counts[number].fetch_add(1, Ordering::Relaxed);
            });
        }
        assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 200));
    }

    #[test]
    fn every_thread_gets_each_piece_of_work_once() {
        for size in [1, 2, 3, 5] {
            let mut team = Team::new(size);
            assert_eq!(team.size(), size);
            every_member_works(&mut team);
        }
    }

    #[test]
    fn items_are_shared_out() {
        for size in [1, 2, 4] {
            let mut data = [0; 7];
            Team::new(size).each(data.iter_mut().enumerate(), |(i, x)| *x = i + 1);
            assert_eq!(data, [1, 2, 3, 4, 5, 6, 7]);
        }
    }

    #[test]
    fn threads_join_and_leave_with_the_team() {
        let mut team = Team::new(1);
        let (invitation, late) = (team.invitation(), team.invitation());
        thread::scope(|scope| {
            let guests = [0, 1].map(|_| scope.spawn(|| invitation.accept()));
            while team.size() < 3 {
                team.admit();
            }
            assert_eq!((invitation.guests(), invitation.is_open()), (2, true));
            every_member_works(&mut team);
            drop(team);
            guests.into_iter().for_each(|guest| guest.join().unwrap());
        });
        assert!(!late.is_open());
        late.accept();
    }

    #[test]
    fn a_panic_reaches_the_owner_and_the_team_goes_on() {
        let mut team = Team::new(3);
        for bad in [&[0][..], &[2], &[0, 1, 2]] {
            let caught =
                catch_unwind(AssertUnwindSafe(|| team.run(&|number| assert!(!bad.contains(&number)))));
            assert!(caught.is_err());
        }
        let sum = AtomicUsize::new(0);
        team.run(&|number| {
            sum.fetch_add(number, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 3);
    }
}

/// Explores every interleaving of the threads of a small team:
///
///     RUSTFLAGS="--cfg loom" cargo test --release -p regard-kernels --lib team::model
#[cfg(all(test, loom))]
mod model {
    use super::*;

    /// Runs `rounds` pieces of work on a team of `size`. Each piece writes its own cell, which the
    /// owner reads after the round: loom reports unsynchronized access to a cell, a piece that runs
    /// twice or not at all, and threads that wait forever.
    fn rounds_of_work(size: usize, rounds: usize, preemptions: Option<usize>) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.check(move || {
            let mut team = Team::new(size);
            assert_eq!(team.size(), size);
            for round in 1..=rounds {
                let done: Vec<Once> = (0..size).map(|_| Once(UnsafeCell::new(0))).collect();
                team.run(&|piece| {
                    // SAFETY: each piece has a cell of its own; loom checks it.
                    done[piece].0.with_mut(|count| unsafe { *count += round });
                });
                // SAFETY: the pieces are done; loom checks it.
                assert!(done.iter().all(|cell| cell.0.with(|count| unsafe { *count }) == round));
            }
        });
    }

    #[test]
    fn a_guest_comes_at_any_time_and_leaves_with_the_team() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let mut team = Team::new(1);
            let invitation = team.invitation();
            let guest = thread::spawn(move || invitation.accept());
            for round in 1..=2 {
                team.admit();
                let done: Vec<Once> = (0..team.size()).map(|_| Once(UnsafeCell::new(0))).collect();
                team.run(&|piece| {
                    // SAFETY: each piece has a cell of its own; loom checks it.
                    done[piece].0.with_mut(|count| unsafe { *count += round });
                });
                // SAFETY: the pieces are done; loom checks it.
                assert!(done.iter().all(|cell| cell.0.with(|count| unsafe { *count }) == round));
            }
            drop(team);
            guest.join().unwrap();
        });
    }

    struct Once(UnsafeCell<usize>);

    // SAFETY: loom checks every access.
    unsafe impl Sync for Once {}

    #[test]
    fn two_threads_do_every_piece_once() {
        rounds_of_work(2, 2, None);
    }

    #[test]
    fn three_threads_do_every_piece_once() {
        rounds_of_work(3, 1, Some(3));
    }
}
