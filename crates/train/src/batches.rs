//! How the pairs of an epoch are grouped into batches, and in what order.
//!
//! The plan of an epoch depends only on the lengths, the settings, the seed and the number of the
//! epoch, so a resumed run finds its place again:
//!
//! 1. all pairs are shuffled (Fisher-Yates on a counter-based generator keyed by seed and epoch);
//! 2. they are cut into pools of [`BatchSettings::pool`] pairs, and each pool is sorted by length,
//!    where equal lengths keep their shuffled order; sentences of a batch are then about equally
//!    long, which balances the cores;
//! 3. each pool is cut into batches that hold at most [`BatchSettings::max_tokens`] tokens on
//!    either side;
//! 4. the batches are shuffled.

use serde::{Deserialize, Serialize};

use regard_core::random::Rng;
use regard_core::{Error, Result};

/// The size of batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchSettings {
    /// The maximum number of target tokens per batch, including `</s>`; the source side has the
    /// same limit. A pair that exceeds it forms a batch of its own.
    pub max_tokens: usize,
    /// The number of pairs that are sorted by length together. The larger it is, the more similar
    /// are the lengths in a batch, and the less random are the batches.
    pub pool: usize,
}

impl Default for BatchSettings {
    fn default() -> Self {
        BatchSettings { max_tokens: 4096, pool: 100_000 }
    }
}

impl BatchSettings {
    /// Rejects settings that allow no batch.
    pub fn check(&self) -> Result<()> {
        for (field, value) in [("max_tokens", self.max_tokens), ("pool", self.pool)] {
            if value == 0 {
                return Err(Error::config(field, "0 makes no batch; give a number of at least 1"));
            }
        }
        Ok(())
    }
}

/// The batches of one epoch as indices into `lengths` (source and target tokens of each pair), each
/// pair exactly once.
pub fn plan_epoch(lengths: &[(u32, u32)], settings: &BatchSettings, seed: u64, epoch: u64) -> Vec<Vec<u32>> {
    let count = u32::try_from(lengths.len()).expect("a corpus of fewer than 2^32 pairs");
    let mut random = Rng::stream(seed, epoch);
    let mut order: Vec<u32> = (0..count).collect();
    random.shuffle(&mut order);

    let limit = settings.max_tokens as u64;
    let mut batches = Vec::new();
    for pool in order.chunks_mut(settings.pool.max(1)) {
        pool.sort_by_key(|&i| {
            let (source, target) = lengths[i as usize];
            (target, source)
        });
        let mut batch = Vec::new();
        let (mut sources, mut targets) = (0, 0);
        for &i in pool.iter() {
            let (source, target) = lengths[i as usize];
            let (source, target) = (u64::from(source), u64::from(target));
            if !batch.is_empty() && (sources + source > limit || targets + target > limit) {
                batches.push(std::mem::take(&mut batch));
                (sources, targets) = (0, 0);
            }
            batch.push(i);
            sources += source;
            targets += target;
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
    }
    random.shuffle(&mut batches);
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_lengths(seed: u64, count: usize, longest: usize) -> Vec<(u32, u32)> {
        let mut random = Rng::stream(seed, 99);
        (0..count).map(|_| (1 + random.below(longest) as u32, 1 + random.below(longest) as u32)).collect()
    }

    fn totals(batch: &[u32], lengths: &[(u32, u32)]) -> (usize, usize) {
        batch.iter().fold((0, 0), |(s, t), &i| {
            let (source, target) = lengths[i as usize];
            (s + source as usize, t + target as usize)
        })
    }

    #[test]
    fn every_pair_once_and_no_batch_too_large() {
        for case in 0..200u64 {
            let mut random = Rng::stream(case, 1);
            let lengths = random_lengths(case, random.below(600), 1 + random.below(80));
            let settings = BatchSettings { max_tokens: 1 + random.below(300), pool: 1 + random.below(400) };
            let plan = plan_epoch(&lengths, &settings, case, 3);
            let mut seen: Vec<u32> = plan.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..lengths.len() as u32).collect::<Vec<_>>(), "case {case}");
            for batch in &plan {
                assert!(!batch.is_empty());
                let (sources, targets) = totals(batch, &lengths);
                let fits = sources.max(targets) <= settings.max_tokens;
                assert!(fits || batch.len() == 1, "case {case}: {sources} and {targets} tokens in {batch:?}");
            }
        }
    }

    #[test]
    fn seed_and_epoch_decide() {
        let lengths = random_lengths(1, 500, 30);
        let settings = BatchSettings { max_tokens: 200, pool: 100 };
        let plan = plan_epoch(&lengths, &settings, 5, 2);
        assert_eq!(plan, plan_epoch(&lengths, &settings, 5, 2));
        assert_ne!(plan, plan_epoch(&lengths, &settings, 5, 3));
        assert_ne!(plan, plan_epoch(&lengths, &settings, 6, 2));
    }

    /// A resumed run relies on the plan: it must not change between versions or machines.
    #[test]
    fn the_plan_is_frozen() {
        let lengths: Vec<_> = (0..12).map(|i| (1 + i % 4, 1 + i % 5)).collect();
        let settings = BatchSettings { max_tokens: 8, pool: 100 };
        let expected: [&[u32]; 6] = [&[4], &[6, 11], &[0, 5, 10, 1], &[8, 3], &[9], &[2, 7]];
        assert_eq!(plan_epoch(&lengths, &settings, 1, 0), expected);
    }

    #[test]
    fn batches_are_full_and_alike_in_length() {
        let lengths = random_lengths(3, 20_000, 60);
        let settings = BatchSettings { max_tokens: 2000, ..BatchSettings::default() };
        let plan = plan_epoch(&lengths, &settings, 1, 1);
        let fill: usize = plan.iter().map(|b| totals(b, &lengths)).map(|(s, t)| s.max(t)).sum();
        assert!(fill as f64 > 0.93 * (plan.len() * 2000) as f64, "{fill} tokens in {} batches", plan.len());
        let mut widest = 0;
        for batch in &plan {
            let targets = batch.iter().map(|&i| lengths[i as usize].1);
            widest = widest.max(targets.clone().max().unwrap() - targets.min().unwrap());
        }
        assert!(widest <= 2, "{widest}");
        // Not sorted by length: adjacent elements of a shuffled list differ by a third of the range
        // on average.
        let first: Vec<i64> = plan.iter().map(|b| i64::from(lengths[b[0] as usize].1)).collect();
        let jumps: i64 = first.windows(2).map(|w| (w[0] - w[1]).abs()).sum();
        assert!(jumps as f64 / first.len() as f64 > 12.0, "{jumps} over {}", first.len());
    }

    #[test]
    fn odd_inputs() {
        let settings = BatchSettings { max_tokens: 10, pool: 100 };
        assert!(plan_epoch(&[], &settings, 0, 0).is_empty());
        assert_eq!(plan_epoch(&[(99, 1)], &settings, 0, 0), [[0]]);
        assert_eq!(plan_epoch(&[(u32::MAX, u32::MAX); 3], &settings, 0, 0).len(), 3);
        assert_eq!(plan_epoch(&[(0, 0); 3], &settings, 0, 0).len(), 1);
        let error = BatchSettings { max_tokens: 0, pool: 1 }.check().unwrap_err().to_string();
        assert_eq!(error, "max_tokens: 0 makes no batch; give a number of at least 1");
    }
}
