//! Work on several threads.

use std::panic::resume_unwind;
use std::thread;

/// The minimum number of items that are worth a thread.
const ITEMS: usize = 64;

/// Runs both concurrently, the first on its own thread if the system provides one.
pub(crate) fn join<A: Send, B>(first: impl Fn() -> A + Send + Sync, second: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &first);
        let second = second();
        let first = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => first(),
        };
        (first, second)
    })
}

/// Applies `f` to each item, on at most `threads` threads.
pub fn map<'a, T: Sync, R: Send>(threads: usize, items: &'a [T], f: impl Fn(&'a T) -> R + Sync) -> Vec<R> {
    map_parts(threads, items, &f)
}

fn map_parts<'a, T: Sync, R: Send, F>(threads: usize, items: &'a [T], f: &F) -> Vec<R>
where
    F: Fn(&'a T) -> R + Sync,
{
    let part = items.len().div_ceil(threads.max(1)).max(ITEMS);
    if items.len() <= part {
        return items.iter().map(f).collect();
    }
    let half = items.len().div_ceil(part) / 2;
    let (first, second) = items.split_at(half * part);
    let (mut first, second) = join(|| map_parts(half, first, f), || map_parts(threads - half, second, f));
    first.extend(second);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for (threads, items) in [(0, 3), (1, 300), (2, 64), (2, 65), (3, 500), (7, 1000), (16, 129)] {
            let numbers: Vec<usize> = (0..items).collect();
            let want: Vec<usize> = numbers.iter().map(|n| n * n).collect();
            assert_eq!(map(threads, &numbers, |n| n * n), want, "{threads} threads, {items} items");
        }
    }

    #[test]
    fn a_panic_is_passed_on() {
        let numbers: Vec<usize> = (0..1000).collect();
        let panics = || map(4, &numbers, |&n| assert!(n < 900, "too large"));
        assert!(std::panic::catch_unwind(panics).is_err());
    }
}
