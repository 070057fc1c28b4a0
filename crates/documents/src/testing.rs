//! What several tests need.

use std::time::Duration;

/// The time that this thread has spent on a core, which other programs do not prolong; nothing
/// where the system does not say.
pub(crate) fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
