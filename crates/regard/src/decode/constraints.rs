//! What changes the log-probabilities of the next token before the search looks at them.

use super::SearchOptions;
use regard_kernels::Key;

/// Applies bans, penalties and forced tokens to `log_p`, the log-probabilities after `tokens`, of which `limit` are allowed.
pub(super) fn constrain(options: &SearchOptions, tokens: &[u32], limit: usize, log_p: &mut [f32]) {
    let n = tokens.len();
    if options.repetition_penalty != 1.0 {
        let mut seen = tokens.to_vec();
        seen.sort_unstable();
        seen.dedup();
        for id in seen {
            if let Some(p) = log_p.get_mut(id as usize) {
                // Log-probabilities are negative: a factor above 1 makes them smaller.
                *p = if *p < 0.0 { *p * options.repetition_penalty } else { *p / options.repetition_penalty };
            }
        }
    }
    for_each_ban(options, tokens, |id| ban(log_p, id));
    if let Some(&forced) = options.prefix.get(n) {
        let p = log_p.get(forced as usize).copied().unwrap_or(f32::NEG_INFINITY);
        only(log_p, forced, p);
    } else if options.forced_end && n + 1 == limit {
        only(log_p, options.end, 0.0);
    }
}

/// Adds the words that must not come after `tokens` to `words`; false if more is asked than to leave them out.
pub(super) fn bans(options: &SearchOptions, tokens: &[u32], limit: usize, words: &mut Vec<u32>) -> bool {
    for_each_ban(options, tokens, |id| words.push(id));
    let forced = tokens.len() < options.prefix.len() || options.forced_end && tokens.len() + 1 == limit;
    options.repetition_penalty == 1.0 && !forced
}

fn for_each_ban(options: &SearchOptions, tokens: &[u32], mut ban: impl FnMut(u32)) {
    let n = tokens.len();
    if options.no_repeat_ngram > 0 && n + 1 >= options.no_repeat_ngram {
        let size = options.no_repeat_ngram;
        let last = &tokens[n + 1 - size..];
        for window in tokens.windows(size) {
            if window[..size - 1] == *last {
                ban(window[size - 1]);
            }
        }
    }
    options.banned.iter().for_each(|&id| ban(id));
    if n < options.min_length {
        ban(options.end);
    }
}

fn ban(log_p: &mut [f32], id: u32) {
    if let Some(p) = log_p.get_mut(id as usize) {
        *p = f32::NEG_INFINITY;
    }
}

fn only(log_p: &mut [f32], id: u32, value: f32) {
    log_p.fill(f32::NEG_INFINITY);
    if let Some(p) = log_p.get_mut(id as usize) {
        *p = value;
    }
}

/// The best `count` of `scores`, as (index, score), best first; of equal ones the lower index. −∞ and NaN never come.
pub(super) fn best(scores: &[f32], count: usize) -> Vec<(u32, f32)> {
    let mut found: Vec<(u32, f32)> = Vec::with_capacity(count + 1);
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
    found
}

/// Draws a token by its probability among those that temperature, top-k and top-p leave.
pub(super) fn draw(sampling: &super::Sampling, key: Key, step: usize, log_p: &[f32]) -> Option<u32> {
    let most = if sampling.top_k == 0 { log_p.len() } else { sampling.top_k };
    let mut words: Vec<(u32, f32)> = if most < log_p.len() {
        best(log_p, most)
    } else {
        let mut all: Vec<(u32, f32)> = log_p
            .iter()
            .enumerate()
            .filter(|(_, p)| **p > f32::NEG_INFINITY)
            .map(|(i, p)| (i as u32, *p))
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all
    };
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
    use crate::decode::Sampling;

    const NONE: f32 = f32::NEG_INFINITY;

    #[test]
    fn the_best_come_first_and_equal_ones_by_index() {
        assert_eq!(best(&[0.5, 2.0, NONE, 2.0, 1.0, f32::NAN], 3), [(1, 2.0), (3, 2.0), (4, 1.0)]);
        assert_eq!(best(&[1.0, 3.0], 8), [(1, 3.0), (0, 1.0)]);
        assert_eq!(best(&[NONE, NONE], 2), []);
        assert_eq!(best(&[], 2), []);
    }

    fn constrained(options: SearchOptions, tokens: &[u32], limit: usize) -> Vec<f32> {
        let mut log_p = vec![-1.0, -2.0, -3.0, -4.0];
        constrain(&options, tokens, limit, &mut log_p);
        log_p
    }

    #[test]
    fn bans_penalties_and_forced_tokens() {
        let d = SearchOptions::default;
        assert_eq!(constrained(d(), &[1], 9), [-1.0, -2.0, -3.0, -4.0]);
        assert_eq!(constrained(d(), &[1, 1], 3), [0.0, NONE, NONE, NONE]);
        assert_eq!(
            constrained(SearchOptions { forced_end: false, ..d() }, &[1, 1], 3),
            [-1.0, -2.0, -3.0, -4.0]
        );
        assert_eq!(constrained(SearchOptions { min_length: 2, ..d() }, &[1], 9), [NONE, -2.0, -3.0, -4.0]);
        assert_eq!(
            constrained(SearchOptions { banned: vec![2, 99], ..d() }, &[], 9),
            [-1.0, -2.0, NONE, -4.0]
        );
        assert_eq!(
            constrained(SearchOptions { prefix: vec![3, 1], ..d() }, &[3], 9),
            [NONE, -2.0, NONE, NONE]
        );
        assert_eq!(
            constrained(SearchOptions { no_repeat_ngram: 2, ..d() }, &[1, 2, 3, 1], 9),
            [-1.0, -2.0, NONE, -4.0]
        );
        assert_eq!(
            constrained(SearchOptions { no_repeat_ngram: 1, ..d() }, &[1, 2], 9),
            [-1.0, NONE, NONE, -4.0]
        );
        assert_eq!(
            constrained(SearchOptions { repetition_penalty: 2.0, ..d() }, &[1, 1], 9),
            [-1.0, -4.0, -3.0, -4.0]
        );
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
