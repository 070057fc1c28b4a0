//! The time that this thread has spent in GEMM, for benchmarks.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Adds the time until it is dropped to this thread's total.
#[derive(Debug)]
pub struct Timer(Instant);

impl Timer {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        Timer(Instant::now())
    }

    /// The time that this thread has spent in GEMM since the last call.
    pub fn take() -> Duration {
        SPENT.replace(Duration::ZERO)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        SPENT.set(SPENT.get() + self.0.elapsed());
    }
}
