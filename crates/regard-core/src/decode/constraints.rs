//! What changes the log-probabilities of the next token before the search looks at them.

use super::SearchOptions;
use regard_kernels::Key;

/// What the log-probabilities of a step go through, in the order of `transformers`.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    options: &'a SearchOptions,
    /// What the decoder starts with: padding, the last word, which never comes.
    start: u32,
    /// Whether the rows are logits instead: where nothing is compared but the next tokens of one hypothesis, a repetition is
    /// penalised before the softmax.
    pub(super) on_logits: bool,
    /// Whether padding takes part in the softmax, to be banned afterwards. That makes a difference only if nothing
    /// is normalised again, or if something happens in between.
    pub(super) with_padding: bool,
}

impl<'a> Rules<'a> {
    /// The rules of a search with this many models.
    pub(super) fn new(options: &'a SearchOptions, members: usize, start: u32) -> Self {
        let penalised = options.repetition_penalty != 1.0;
        let single = options.beam == 1 || options.sampling.is_some();
        Rules {
            options,
            start,
            on_logits: penalised && single && members == 1,
            with_padding: penalised || !options.renormalize,
        }
    }

    /// Applies penalties, bans and forced tokens to `log_p`, the log-probabilities after `tokens`, of which `limit` are allowed.
    pub(super) fn apply(&self, tokens: &[u32], limit: usize, log_p: &mut [f32]) {
        let (options, n) = (self.options, tokens.len());
        self.penalise(tokens, log_p);
        if self.on_logits {
            normalise(log_p);
        }
        if let Some(&forced) = options.prefix.get(n) {
            let p = log_p.get(forced as usize).copied().unwrap_or(f32::NEG_INFINITY);
            return only(log_p, forced, p);
        }
        if options.forced_end && n + 1 == limit {
            return only(log_p, options.end, 0.0);
        }
        if let Some(first) = options.forced_first.filter(|_| n == 0) {
            return only(log_p, first, 0.0);
        }
        if self.ban(tokens, log_p) && options.renormalize {
            normalise(log_p);
        }
    }

    fn penalise(&self, tokens: &[u32], log_p: &mut [f32]) {
        let penalty = self.options.repetition_penalty;
        if penalty == 1.0 {
            return;
        }
        let mut seen = tokens.to_vec();
        seen.sort_unstable();
        seen.dedup();
        for id in seen {
            if let Some(p) = log_p.get_mut(id as usize) {
                *p = if *p < 0.0 { *p * penalty } else { *p / penalty };
            }
        }
    }

    /// Lists the words that may not come after `tokens`; false if more is asked than to leave them out.
    pub(super) fn only_bans(&self, tokens: &[u32], limit: usize, banned: &mut Vec<u32>) -> bool {
        let (options, n) = (self.options, tokens.len());
        let forced = n < options.prefix.len()
            || options.forced_end && n + 1 == limit
            || options.forced_first.is_some() && n == 0;
        self.bans(tokens, banned);
        options.repetition_penalty == 1.0 && !forced
    }

    /// Takes out what may not come; whether there is anything.
    fn ban(&self, tokens: &[u32], log_p: &mut [f32]) -> bool {
        let mut banned = Vec::new();
        self.bans(tokens, &mut banned);
        hide(&banned, log_p);
        !banned.is_empty()
    }

    fn bans(&self, tokens: &[u32], banned: &mut Vec<u32>) {
        let (options, n) = (self.options, tokens.len());
        banned.extend_from_slice(&options.banned);
        if self.with_padding {
            banned.push(self.start);
        }
        let size = options.no_repeat_ngram;
        if size > 0 && n + 1 >= size {
            let last = &tokens[n + 1 - size..];
            let again = tokens.windows(size).filter(|window| window[..size - 1] == *last);
            banned.extend(again.map(|window| window[size - 1]));
        }
        for sequence in &options.banned_sequences {
            if let Some((last, before)) = sequence.split_last()
                && self.ends_with(tokens, before)
            {
                banned.push(*last);
            }
        }
        if n < options.min_length {
            banned.push(options.end);
        }
    }

    /// Whether start and tokens together end so.
    fn ends_with(&self, tokens: &[u32], end: &[u32]) -> bool {
        match end.split_first() {
            Some((first, rest)) if end.len() == tokens.len() + 1 => *first == self.start && rest == tokens,
            _ => tokens.ends_with(end),
        }
    }
}

/// What is hidden does not come.
pub(super) fn hide(words: &[u32], row: &mut [f32]) {
    for &id in words {
        if let Some(p) = row.get_mut(id as usize) {
            *p = f32::NEG_INFINITY;
        }
    }
}

/// Makes logits, or log-probabilities some of which were banned, into log-probabilities. If nothing is left, nothing changes.
pub(super) fn normalise(row: &mut [f32]) {
    let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !top.is_finite() {
        return;
    }
    let sum: f64 = row.iter().map(|x| f64::from(x - top).exp()).sum();
    let shift = top + sum.ln() as f32;
    row.iter_mut().for_each(|x| *x -= shift);
}

fn only(log_p: &mut [f32], id: u32, value: f32) {
    log_p.fill(f32::NEG_INFINITY);
    if let Some(p) = log_p.get_mut(id as usize) {
        *p = value;
    }
}

/// The best `count` of `scores`, as (index, score), best first; of equal ones the lower index. −∞ and NaN never come.
pub(super) fn best(scores: &[f32], count: usize, found: &mut Vec<(u32, f32)>) {
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

/// Draws a token by its probability among those that temperature, top-k and top-p leave.
pub(super) fn draw(sampling: &super::Sampling, key: Key, step: usize, log_p: &[f32]) -> Option<u32> {
    let most = if sampling.top_k == 0 { log_p.len() } else { sampling.top_k };
    let mut words: Vec<(u32, f32)> = Vec::new();
    if most < log_p.len() {
        best(log_p, most, &mut words);
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
    use crate::decode::Sampling;

    const NONE: f32 = f32::NEG_INFINITY;

    #[test]
    fn the_best_come_first_and_equal_ones_by_index() {
        let best = |scores: &[f32], count| {
            let mut found = vec![(9, 9.0)];
            super::best(scores, count, &mut found);
            found
        };
        assert_eq!(best(&[0.5, 2.0, NONE, 2.0, 1.0, f32::NAN], 3), [(1, 2.0), (3, 2.0), (4, 1.0)]);
        assert_eq!(best(&[1.0, 3.0], 8), [(1, 3.0), (0, 1.0)]);
        assert_eq!(best(&[NONE, NONE], 2), []);
        assert_eq!(best(&[], 2), []);
    }

    /// What is left of four words when no normalisation changes them.
    fn constrained(options: SearchOptions, tokens: &[u32], limit: usize) -> Vec<f32> {
        let mut log_p = vec![-1.0, -2.0, -3.0, -4.0];
        let options = SearchOptions { renormalize: false, ..options };
        Rules::new(&options, 1, 4).apply(tokens, limit, &mut log_p);
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
            constrained(SearchOptions { forced_first: Some(2), ..d() }, &[], 9),
            [NONE, NONE, 0.0, NONE]
        );
        assert_eq!(
            constrained(SearchOptions { forced_first: Some(2), ..d() }, &[2], 9),
            [-1.0, -2.0, -3.0, -4.0]
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
    fn sequences_are_banned_at_their_last_token() {
        let banned = |tokens: &[u32]| {
            let banned_sequences = vec![vec![1, 2, 3], vec![4, 1], vec![9, 9, 9, 9]];
            let found =
                constrained(SearchOptions { banned_sequences, ..SearchOptions::default() }, tokens, 9);
            (0..4).filter(|&i| found[i] == NONE).collect::<Vec<_>>()
        };
        assert_eq!(banned(&[3, 1, 2]), [3]);
        assert_eq!(banned(&[1, 2]), [3]);
        assert_eq!(banned(&[2]), [0; 0]);
        // The decoder's start, 4, is a token too, but only in the beginning.
        assert_eq!(banned(&[]), [1]);
        assert_eq!(banned(&[3]), [0; 0]);
    }

    #[test]
    fn what_is_left_sums_to_one_again() {
        let options = SearchOptions { banned: vec![0], ..SearchOptions::default() };
        let mut log_p = [0.5f32, 0.25, 0.25].map(f32::ln);
        Rules::new(&options, 1, 3).apply(&[1], 9, &mut log_p);
        assert_eq!(log_p[0], NONE);
        assert!((log_p[1] - 0.5f32.ln()).abs() < 1e-6 && log_p[1] == log_p[2]);
        // Nothing is left: nothing to make a sum of.
        let options = SearchOptions { banned: vec![0, 1, 2], ..SearchOptions::default() };
        Rules::new(&options, 1, 3).apply(&[1], 9, &mut log_p);
        assert_eq!(log_p, [NONE; 3]);
    }

    #[test]
    fn padding_takes_part_only_where_it_makes_a_difference() {
        let rules = |options: &SearchOptions, members| {
            let rules = Rules::new(options, members, 9);
            (rules.with_padding, rules.on_logits)
        };
        let d = SearchOptions::default;
        assert_eq!(rules(&d(), 1), (false, false));
        assert_eq!(rules(&SearchOptions { renormalize: false, ..d() }, 1), (true, false));
        assert_eq!(rules(&SearchOptions { repetition_penalty: 1.5, ..d() }, 1), (true, false));
        let greedy = SearchOptions { repetition_penalty: 1.5, beam: 1, ..d() };
        assert_eq!(rules(&greedy, 1), (true, true));
        assert_eq!(rules(&greedy, 2), (true, false));
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
