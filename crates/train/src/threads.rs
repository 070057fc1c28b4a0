//! Deterministic distribution of work over threads.

use std::thread::ScopedJoinHandle;

/// The number of floats in a piece, which one thread processes at a time: four of them fit the L2
/// cache.
pub(crate) const PIECE: usize = 1 << 15;

/// The result of a thread; propagates its panic.
pub(crate) fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Processes pieces of work on this many threads, in turn; returns the results in the order of the
/// pieces.
pub(crate) fn over_threads<T: Send, R: Send>(
    threads: usize,
    work: impl Iterator<Item = T>,
    f: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let mut shares: Vec<Vec<T>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, piece) in work.enumerate() {
        shares[i % threads].push(piece);
    }
    let do_share = |share: Vec<T>| share.into_iter().map(&f).collect::<Vec<R>>();
    let mut results: Vec<_> = std::thread::scope(|scope| {
        let mut shares = shares.into_iter();
        let first = shares.next().unwrap_or_default();
        let handles: Vec<_> = shares.map(|share| scope.spawn(|| do_share(share))).collect();
        std::iter::once(do_share(first)).chain(handles.into_iter().map(joined)).map(Vec::into_iter).collect()
    });
    let longest = results.first().map_or(0, ExactSizeIterator::len);
    let mut in_order = Vec::with_capacity(longest * threads);
    for _ in 0..longest {
        in_order.extend(results.iter_mut().filter_map(Iterator::next));
    }
    in_order
}
