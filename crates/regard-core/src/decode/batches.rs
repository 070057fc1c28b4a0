//! Batches of sentences of like length, shared out over the cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Gives each core one batch of at most `most` sentences after the other; what `work` makes of a
/// batch comes to the places of its sentences. `worker` makes what a core keeps between batches,
/// for this many threads inside the matrix multiplications.
pub(super) fn in_batches<W, T: Send>(
    lengths: &[usize],
    most: usize,
    threads: usize,
    results: &mut [T],
    worker: impl Fn(usize) -> W + Sync,
    work: impl Fn(&mut W, &[usize]) -> Vec<T> + Sync,
) {
    // Sentences of like length step together; the longest first, so that no core is left with them
    // at the end.
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lengths[i]), i));
    let per_batch = most.min(lengths.len().div_ceil(threads.max(1))).max(1);
    let batches = batches(&order, lengths, per_batch);
    let workers = threads.clamp(1, batches.len().max(1));
    // With fewer batches than cores, the others help inside the matrix multiplications.
    let inside = (threads / workers).max(1);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(results);
    let take = || {
        let mut worker = worker(inside);
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = work(&mut worker, batch);
            let mut results = results.lock().unwrap_or_else(|e| e.into_inner());
            for (&i, found) in batch.iter().zip(found) {
                results[i] = found;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(take);
        }
        take();
    });
}

/// Tokens of a batch at most: what it needs of memory does not depend on how long sentences are.
const TOKENS: usize = 4_096;

/// Batches of at most `most` sentences and [`TOKENS`] tokens; a longer sentence is a batch of its
/// own.
fn batches<'a>(order: &'a [usize], lengths: &[usize], most: usize) -> Vec<&'a [usize]> {
    let mut found = Vec::new();
    let mut rest = order;
    while !rest.is_empty() {
        let mut tokens = 0;
        let fits = |&&i: &&usize| {
            tokens += lengths[i];
            tokens <= TOKENS
        };
        let count = rest.iter().take(most).take_while(fits).count().max(1);
        let (batch, others) = rest.split_at(count);
        found.push(batch);
        rest = others;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_few_sentences_and_few_tokens() {
        let lengths = [5_000, 4_000, 90, 6, 5, 4, 3];
        let order: Vec<usize> = (0..lengths.len()).collect();
        assert_eq!(batches(&order, &lengths, 3), [&[0][..], &[1, 2, 3], &[4, 5, 6]]);
        assert_eq!(batches(&order[..2], &lengths, 3), [&[0][..], &[1]]);
        assert!(batches(&[], &lengths, 3).is_empty());
    }
}
