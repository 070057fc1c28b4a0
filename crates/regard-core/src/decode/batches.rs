//! Batches of sentences of similar length, distributed over the cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Processes batches of at most `most` sentences, one at a time per core, and returns the results
/// of `work` in the order of the sentences. `worker` creates the state that a core keeps between
/// batches, given the number of threads per matmul.
pub(super) fn in_batches<W, T: Send>(
    lengths: &[usize],
    most: usize,
    threads: usize,
    results: &mut [T],
    worker: impl Fn(usize) -> W + Sync,
    work: impl Fn(&mut W, &[usize]) -> Vec<T> + Sync,
) {
    // Batch sentences of similar length; the longest first, so that no core is left with them at
    // the end.
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lengths[i]), i));
    let per_batch = most.min(lengths.len().div_ceil(threads.max(1))).max(1);
    let batches = batches(&order, lengths, per_batch, threads);
    let workers = threads.clamp(1, batches.len().max(1));
    // With fewer batches than cores, the remaining cores help inside the matmuls.
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

/// The maximum number of tokens per batch, which bounds its memory whatever the length of the
/// sentences.
const MAX_TOKENS: usize = 4_096;

/// The minimum number of sentences that are worth a batch.
const MIN_BATCH: usize = 8;

/// Batches of at most `most` sentences and [`MAX_TOKENS`] tokens; a longer sentence is a batch of
/// its own. Towards the end they become smaller, down to [`MIN_BATCH`] sentences, so that all cores
/// finish at about the same time: each batch takes half of a core's share of the remaining tokens.
fn batches<'a>(order: &'a [usize], lengths: &[usize], most: usize, threads: usize) -> Vec<&'a [usize]> {
    let mut found = Vec::new();
    let mut rest = order;
    let mut left: usize = lengths.iter().sum();
    while !rest.is_empty() {
        let share = if threads > 1 { left.div_ceil(2 * threads) } else { left };
        let (mut sentences, mut tokens) = (0, 0);
        for &i in rest.iter().take(most) {
            let with = tokens + lengths[i];
            if sentences > 0 && (with > MAX_TOKENS || (with > share && sentences >= MIN_BATCH)) {
                break;
            }
            (sentences, tokens) = (sentences + 1, with);
        }
        let (batch, others) = rest.split_at(sentences.max(1));
        found.push(batch);
        rest = others;
        left -= tokens;
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
        assert_eq!(batches(&order, &lengths, 3, 1), [&[0][..], &[1, 2, 3], &[4, 5, 6]]);
        assert_eq!(batches(&order[..2], &lengths, 3, 1), [&[0][..], &[1]]);
        assert!(batches(&[], &[], 3, 1).is_empty());
    }

    #[test]
    fn with_several_cores_the_last_batches_are_small() {
        let lengths = [10; 200];
        let order: Vec<usize> = (0..lengths.len()).collect();
        let sizes =
            |threads| batches(&order, &lengths, 64, threads).iter().map(|b| b.len()).collect::<Vec<_>>();
        assert_eq!(sizes(1), [64, 64, 64, 8]);
        let sizes = sizes(2);
        assert_eq!(sizes.iter().sum::<usize>(), lengths.len());
        assert_eq!(sizes[0], 50);
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        assert!(
            sizes.iter().rev().skip(1).all(|&n| n >= MIN_BATCH) && sizes[sizes.len() - 2] == MIN_BATCH,
            "{sizes:?}"
        );
    }
}
