//! Helpers for several tests.

use std::time::Duration;

/// The CPU time of this thread, which other programs do not affect; `None` if the system does not
/// report it.
pub(crate) fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
