//! Batches of sentences of similar length, distributed over the cores.

use super::Engine;
use regard_kernels::{Invitation, Team};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The cores that batches are distributed over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cores {
    /// Their number.
    pub(super) threads: usize,
    /// How many of them work on a batch together.
    pub(super) together: usize,
}

impl Cores {
    /// For these models. A core on its own is faster by a tenth; but with wide models a batch of 32
    /// sentences has 150 MB of keys and values, so that pairs of cores share one.
    pub(super) fn new(threads: usize, engines: &[&Engine]) -> Self {
        let is_wide = engines.iter().any(|engine| engine.model().config().d_model >= 1024);
        Cores { threads, together: if is_wide { 2 } else { 1 } }
    }
}

/// Processes batches of at most `most` sentences, each on one or a few cores, and returns the
/// results of `work` in the order of the sentences. `worker` creates the state that these cores keep
/// between batches, given the threads of its matmuls.
///
/// A core that finds no batch left joins the team of one that is still working.
pub(super) fn in_batches<W, T: Send>(
    lengths: &[usize],
    most: usize,
    Cores { threads, together }: Cores,
    results: &mut [T],
    worker: impl Fn(Team) -> W + Sync,
    work: impl Fn(&mut W, &[usize]) -> Vec<T> + Sync,
) {
    // Batch sentences of similar length; the longest first, so that the last batches are short.
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lengths[i]), i));
    let teams = threads / together;
    let batches = batches(&order, lengths, most, batch_count(lengths.len(), most, teams));
    let workers = teams.clamp(1, batches.len().max(1));
    let next = AtomicUsize::new(0);
    let (results, invitations) = (Mutex::new(results), Mutex::new(Vec::new()));
    let help = || {
        let invitations = lock(&invitations).clone();
        let smallest = || {
            invitations.iter().filter(|team: &&Invitation| team.is_open()).min_by_key(|team| team.guests())
        };
        while let Some(team) = smallest() {
            team.accept();
        }
    };
    let take = |number: usize| {
        // With fewer batches than cores, the remaining cores help from the beginning.
        let size = (threads / workers + usize::from(number < threads % workers)).max(1);
        let team = Team::new(size);
        // Fewer, if the system does not provide them.
        let size = team.size();
        lock(&invitations).push(team.invitation());
        let mut worker = worker(team);
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = work(&mut worker, batch);
            let mut results = lock(&results);
            for (&i, found) in batch.iter().zip(found) {
                results[i] = found;
            }
        }
        // Its team ends with it; all of its threads help the others.
        drop(worker);
        if !lock(&invitations).iter().any(Invitation::is_open) {
            return;
        }
        std::thread::scope(|scope| {
            for _ in 1..size {
                // Without another thread, this one helps alone.
                let _ = std::thread::Builder::new().name("regard team".into()).spawn_scoped(scope, help);
            }
            help();
        });
    };
    std::thread::scope(|scope| {
        for number in 1..workers {
            scope.spawn(move || take(number));
        }
        take(0);
    });
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The maximum number of tokens per batch, which bounds its memory whatever the length of the
/// sentences.
const MAX_TOKENS: usize = 4_096;

/// The number of batches of at most `most` sentences with which every team gets the same number.
fn batch_count(sentences: usize, most: usize, teams: usize) -> usize {
    sentences.div_ceil(most.max(1)).next_multiple_of(teams.max(1))
}

/// `count` batches of about the same number of sentences, or more if a batch would have more than
/// `most` sentences or [`MAX_TOKENS`] tokens; a longer sentence is a batch of its own.
fn batches<'a>(order: &'a [usize], lengths: &[usize], most: usize, count: usize) -> Vec<&'a [usize]> {
    let mut found = Vec::new();
    let mut rest = order;
    while !rest.is_empty() {
        let left = count.saturating_sub(found.len()).max(1);
        let size = rest.len().div_ceil(left).min(most.max(1));
        let tokens = rest.iter().take(size).scan(0, |sum, &i| {
            *sum += lengths[i];
            Some(*sum)
        });
        let fitting = tokens.take_while(|&tokens| tokens <= MAX_TOKENS).count();
        let (batch, others) = rest.split_at(fitting.max(1));
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
        assert_eq!(batches(&order, &lengths, 3, 3), [&[0][..], &[1, 2, 3], &[4, 5, 6]]);
        assert_eq!(batches(&order[..2], &lengths, 3, 1), [&[0][..], &[1]]);
        assert!(batches(&[], &[], 3, 0).is_empty());
    }

    #[test]
    fn every_team_gets_the_same_number_of_batches() {
        for (sentences, most, teams) in [
            (256, 32, 2),
            (200, 64, 1),
            (200, 64, 3),
            (9, 9, 4),
            (33, 32, 16),
            (17, 64, 16),
            (3, 32, 2),
            (1, 32, 1),
        ] {
            let order: Vec<usize> = (0..sentences).collect();
            let found = batches(&order, &vec![9; sentences], most, batch_count(sentences, most, teams));
            let what = format!("{sentences} sentences, at most {most} in a batch, {teams} teams");
            assert_eq!(found.len() % teams, 0, "{what}");
            let sizes = || found.iter().map(|batch| batch.len());
            assert!(sizes().max() <= sizes().min().map(|least| (least + 1).min(most)), "{what}");
            assert_eq!(found.concat(), order, "{what}");
        }
        assert_eq!((batch_count(0, 32, 2), batch_count(5, 0, 0)), (0, 5));
    }

    #[test]
    fn a_core_without_a_batch_helps_the_others() {
        // One batch takes long: the team that works on it gets the other threads.
        let lengths = [10, 9, 8, 7];
        let mut found = [0; 4];
        in_batches(
            &lengths,
            1,
            Cores { threads: 3, together: 1 },
            &mut found,
            |team| team,
            |team, batch| {
                if batch == [0] {
                    while team.size() < 3 {
                        team.admit();
                    }
                }
                batch.iter().map(|&i| lengths[i] + 1).collect()
            },
        );
        assert_eq!(found, [11, 10, 9, 8]);
    }

    #[test]
    fn all_cores_work_whatever_their_number() {
        for (threads, together) in [(1, 2), (3, 2), (5, 2), (7, 3), (4, 1)] {
            let lengths = vec![1; 40];
            let mut found = vec![0; 40];
            let working = Mutex::new(Vec::new());
            let worker = |team: Team| {
                lock(&working).push(team.size());
                team
            };
            // The first batch ends when its team has all threads.
            let work = |team: &mut Team, batch: &[usize]| {
                while batch.contains(&0) && team.size() < threads {
                    team.admit();
                }
                vec![1; batch.len()]
            };
            in_batches(&lengths, 4, Cores { threads, together }, &mut found, worker, work);
            assert_eq!(found, vec![1; 40]);
            assert_eq!(lock(&working).iter().sum::<usize>(), threads, "{threads} threads");
        }
    }
}
