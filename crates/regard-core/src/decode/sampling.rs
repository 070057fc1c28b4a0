//! Selection from a row of log-probabilities: the best words, or a random draw.

use super::Sampling;
use regard_kernels::Key;

/// The best `count` of `scores`, as (index, score), best first; ties go to the lower index. −∞ and
/// NaN are never returned.
pub(super) fn top_k(scores: &[f32], count: usize, found: &mut Vec<(u32, f32)>) {
    found.clear();
    found.reserve(count + 1);
    let mut least = f32::NEG_INFINITY;
    for (i, &score) in scores.iter().enumerate() {
        if score > least {
            let at = found.partition_point(|&(_, s)| s >= score);
            found.insert(at, (i as u32, score));
            if found.len() > count {
                found.pop();
            }
            if found.len() == count {
                least = found[count - 1].1;
            }
        }
    }
}

/// Draws a token from the distribution that temperature, top-k and top-p define.
pub(super) fn draw(sampling: &Sampling, key: Key, step: usize, log_p: &[f32]) -> Option<u32> {
    let most = if sampling.top_k == 0 { log_p.len() } else { sampling.top_k };
    let mut words: Vec<(u32, f32)> = Vec::new();
    if most < log_p.len() {
        top_k(log_p, most, &mut words);
    } else {
        words.extend((0..).zip(log_p.iter().copied()).filter(|(_, p)| *p > f32::NEG_INFINITY));
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    }
    let top = words.first()?.1;
    for (_, p) in &mut words {
        *p = ((*p - top) / sampling.temperature).exp();
    }
    let total: f32 = words.iter().map(|(_, p)| p).sum();
    let mut kept = 0.0;
    let mut count = 0;
    for (_, p) in &words {
        kept += p;
        count += 1;
        if kept >= sampling.top_p * total {
            break;
        }
    }
    words.truncate(count);
    let mut goal = key.uniform(step as u32) * kept;
    for &(id, p) in &words {
        goal -= p;
        if goal < 0.0 {
            return Some(id);
        }
    }
    words.last().map(|&(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: f32 = f32::NEG_INFINITY;

    #[test]
    fn the_best_come_first_and_equal_ones_by_index() {
        let top_k = |scores: &[f32], count| {
            let mut found = vec![(9, 9.0)];
            super::top_k(scores, count, &mut found);
            found
        };
        assert_eq!(top_k(&[0.5, 2.0, NONE, 2.0, 1.0, f32::NAN], 3), [(1, 2.0), (3, 2.0), (4, 1.0)]);
        assert_eq!(top_k(&[1.0, 3.0], 8), [(1, 3.0), (0, 1.0)]);
        assert_eq!(top_k(&[NONE, NONE], 2), []);
        assert_eq!(top_k(&[], 2), []);
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let log_p: Vec<f32> = [0.5f32, 0.3, 0.15, 0.05].iter().map(|p| p.ln()).collect();
        let share = |sampling: Sampling| -> Vec<f32> {
            let mut counts = vec![0.0; 4];
            for i in 0..20_000 {
                counts[draw(&sampling, Key::new(i), 3, &log_p).unwrap() as usize] += 1.0 / 20_000.0;
            }
            counts
        };
        let close = |got: Vec<f32>, want: [f32; 4]| {
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.015), "{got:?} {want:?}");
        };
        close(share(Sampling::default()), [0.5, 0.3, 0.15, 0.05]);
        close(share(Sampling { top_k: 2, ..Sampling::default() }), [0.625, 0.375, 0.0, 0.0]);
        close(share(Sampling { top_k: 100, ..Sampling::default() }), [0.5, 0.3, 0.15, 0.05]);
        close(share(Sampling { top_p: 0.6, ..Sampling::default() }), [0.625, 0.375, 0.0, 0.0]);
        close(share(Sampling { temperature: 0.01, ..Sampling::default() }), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(draw(&Sampling::default(), Key::new(1), 0, &[NONE, NONE]), None);
    }
}
