//! How often the pairs of each file occur in an epoch.

use regard_core::random::Rng;
use std::collections::BTreeMap;

/// Samples the pairs of an epoch so that a file with a share p of the pairs is sampled in
/// proportion to p^(1/temperature). Each pair of the largest file occurs once; each pair of another
/// file occurs as often as the integer part of its factor says, and a random part of them, drawn
/// with the seed, once more. `files` gives the file of each pair.
pub(super) fn by_temperature(pairs: &[u32], files: &[usize], temperature: f32, seed: u64) -> Vec<u32> {
    let mut by_file: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (&pair, &file) in pairs.iter().zip(files) {
        by_file.entry(file).or_default().push(pair);
    }
    let largest = by_file.values().map(Vec::len).max().unwrap_or(0) as f64;
    // A stream that neither an epoch nor the held-out pairs use.
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
        // p^(1/2): a share of 1/10 becomes √(1/10).
        assert_eq!(small(2.0), 316);
        assert_eq!(small(f32::INFINITY), 1_000);
        assert_eq!(by_temperature(&pairs, &files, 5.0, 7), by_temperature(&pairs, &files, 5.0, 7));
        assert_ne!(by_temperature(&pairs, &files, 5.0, 7), by_temperature(&pairs, &files, 5.0, 8));
        assert!(by_temperature(&[], &[], 5.0, 7).is_empty());
    }
}
