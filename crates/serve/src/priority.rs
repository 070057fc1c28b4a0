//! Threads that compute run at a lower priority than threads that serve connections.
//!
//! Translation keeps every core busy. A thread that serves connections works for microseconds and
//! then sleeps; when it wakes up, it must not queue behind computing threads, or even `/health`
//! becomes slow under load.

/// The niceness of a computing thread: next to a thread with normal priority, it gets a quarter of
/// a core.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Lowers the priority of this thread, once, and of the threads that it starts afterwards. Linux
/// has a priority per thread; on other systems this does nothing.
pub(crate) fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        thread_local!(static DONE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
        if !DONE.replace(true) {
            // If the system does not permit it, the priority stays unchanged.
            let _ = rustix::process::nice(NICE);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn the_priority_is_lowered_once_and_inherited() {
        let before = getpriority_process(None).unwrap();
        let lowered = std::thread::spawn(|| {
            (0..3).for_each(|_| lower_priority());
            let own = std::thread::spawn(|| getpriority_process(None).unwrap());
            (getpriority_process(None).unwrap(), own.join().unwrap())
        });
        let after = (before + NICE).min(19);
        assert_eq!(lowered.join().unwrap(), (after, after));
        assert_eq!(getpriority_process(None).unwrap(), before, "the others keep theirs");
    }
}
