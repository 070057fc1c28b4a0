//! How often the pairs of each file come in an epoch.

use regard_core::random::Rng;
use std::collections::BTreeMap;

/// The pairs of an epoch, sampled so that a file with a share p of them has one in proportion to
/// p^(1/temperature). Those of the largest file come once each; those of the others the whole
/// number of times that gives their share, and a part of them, drawn by the seed, once more.
/// `files` says which file each pair is of.
pub(super) fn by_temperature(pairs: &[u32], files: &[usize], temperature: f32, seed: u64) -> Vec<u32> {
    let mut by_file: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (&pair, &file) in pairs.iter().zip(files) {
        by_file.entry(file).or_default().push(pair);
    }
    let largest = by_file.values().map(Vec::len).max().unwrap_or(0) as f64;
    // Any number that no epoch has, and not the one that held-out pairs are drawn by.
    let mut random = Rng::stream(seed, u64::MAX - 1);
    let mut sampled = Vec::new();
    for mut pairs in by_file.into_values() {
        let share = pairs.len() as f64 / largest;
        let times = share.powf(1.0 / f64::from(temperature) - 1.0).max(1.0);
        let once_more = (times.fract() * pairs.len() as f64).round() as usize;
        (0..times as usize).for_each(|_| sampled.extend(&pairs));
        random.shuffle(&mut pairs);
        sampled.extend(&pairs[..once_more]);
    }
    sampled.sort_unstable();
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_temperature() {
        let pairs: Vec<u32> = (0..1_100).collect();
        let files: Vec<usize> = pairs.iter().map(|&i| usize::from(i >= 1_000)).collect();
        let small = |temperature: f32| {
            let all = by_temperature(&pairs, &files, temperature, 7);
            let small = all.iter().filter(|&&i| i >= 1_000).count();
            assert_eq!(all.len() - small, 1_000, "every pair of the largest comes once");
            for i in 1_000..1_100 {
                let times = all.iter().filter(|&&j| j == i).count();
                assert!((small / 100..=small.div_ceil(100)).contains(&times), "{i}: {times} times");
            }
            small
        };
        assert_eq!(small(1.0), 100);
        // p^(1/2): a share of 1/10 becomes one of √(1/10).
        assert_eq!(small(2.0), 316);
        assert_eq!(small(f32::INFINITY), 1_000);
        assert_eq!(by_temperature(&pairs, &files, 5.0, 7), by_temperature(&pairs, &files, 5.0, 7));
        assert_ne!(by_temperature(&pairs, &files, 5.0, 7), by_temperature(&pairs, &files, 5.0, 8));
        assert!(by_temperature(&[], &[], 5.0, 7).is_empty());
    }
}
