use super::*;

const NONE: f32 = f32::NEG_INFINITY;

fn at(tokens: &[u32], limit: usize) -> Context<'_> {
    Context { tokens, limit, banned: &[] }
}

/// The words that one processor bans.
fn banned(processor: &impl LogitsProcessor, tokens: &[u32]) -> Vec<u32> {
    let mut banned = Vec::new();
    processor.ban(at(tokens, 9), &mut banned);
    assert!(processor.only_bans(at(tokens, 9)));
    banned
}

/// The result of one processor on four words.
fn processed(processor: &impl LogitsProcessor, tokens: &[u32], limit: usize) -> Vec<f32> {
    let mut log_p = vec![-1.0, -2.0, -3.0, 4.0];
    let flow = processor.process(at(tokens, limit), &mut log_p);
    assert!(flow.is_continue() || !processor.only_bans(at(tokens, limit)));
    log_p
}

#[test]
fn a_repetition_is_penalised_once() {
    assert_eq!(processed(&RepetitionPenalty(2.0), &[1, 1, 3, 99], 9), [-1.0, -4.0, -3.0, 2.0]);
    assert!(!RepetitionPenalty(2.0).only_bans(at(&[1], 9)));
}

#[test]
fn a_softmax_sums_to_one() {
    let sum: f32 = processed(&LogSoftmax, &[], 9).iter().map(|x| x.exp()).sum();
    assert!((sum - 1.0).abs() < 1e-6 && !LogSoftmax.only_bans(at(&[], 9)));
}

#[test]
fn a_prefix_costs_what_the_model_says() {
    let prefix = ForcedPrefix(vec![3, 1, 9]);
    assert_eq!(processed(&prefix, &[3], 9), [NONE, -2.0, NONE, NONE]);
    assert_eq!(processed(&prefix, &[3, 1], 9), [NONE; 4]);
    assert_eq!(processed(&prefix, &[3, 1, 9], 9), [-1.0, -2.0, -3.0, 4.0]);
    assert!(prefix.only_bans(at(&[3, 1, 9], 9)));
}

#[test]
fn an_end_is_forced_at_the_limit() {
    assert_eq!(processed(&ForcedEnd(0), &[1, 1], 3), [0.0, NONE, NONE, NONE]);
    assert_eq!(processed(&ForcedEnd(0), &[1, 1], 4), [-1.0, -2.0, -3.0, 4.0]);
}

#[test]
fn a_first_token_is_forced_in_the_beginning() {
    assert_eq!(processed(&ForcedFirst(2), &[], 9), [NONE, NONE, 0.0, NONE]);
    assert_eq!(processed(&ForcedFirst(2), &[2], 9), [-1.0, -2.0, -3.0, 4.0]);
}

#[test]
fn words_are_banned_everywhere() {
    assert_eq!(banned(&BannedWords(vec![2, 99]), &[1]), [2, 99]);
}

#[test]
fn what_would_repeat_an_ngram_is_banned() {
    assert_eq!(banned(&NoRepeatNgram(2), &[1, 2, 3, 1]), [2]);
    assert_eq!(banned(&NoRepeatNgram(1), &[1, 2]), [1, 2]);
    assert_eq!(banned(&NoRepeatNgram(3), &[1]), [0; 0]);
}

#[test]
fn sequences_are_banned_at_their_last_token() {
    let sequences = vec![vec![1, 2, 3], vec![4, 1], vec![9, 9, 9, 9], vec![]];
    let processor = BannedSequences { sequences, start: 4 };
    assert_eq!(banned(&processor, &[3, 1, 2]), [3]);
    assert_eq!(banned(&processor, &[1, 2]), [3]);
    assert_eq!(banned(&processor, &[2]), [0; 0]);
    // The decoder's start token, 4, is a token too, but only at the beginning.
    assert_eq!(banned(&processor, &[]), [1]);
    assert_eq!(banned(&processor, &[3]), [0; 0]);
}

#[test]
fn no_end_comes_before_the_least_length() {
    let processor = MinLength { min_length: 2, end: 0 };
    assert_eq!((banned(&processor, &[1]), banned(&processor, &[1, 1])), (vec![0], vec![]));
}

#[test]
fn what_is_banned_is_masked_and_the_rest_renormalised() {
    let at = Context { banned: &[1, 99], ..at(&[], 9) };
    let mut log_p = [0.5f32, 0.25, 0.25].map(f32::ln);
    assert!(MaskBanned.process(at, &mut log_p).is_continue() && MaskBanned.only_bans(at));
    assert_eq!(log_p, [0.5f32.ln(), NONE, 0.25f32.ln()]);
    assert!(Renormalize.process(at, &mut log_p).is_continue());
    assert!((log_p[0] - (2.0f32 / 3.0).ln()).abs() < 1e-6 && log_p[1] == NONE);
    // Without bans nothing changes.
    assert_eq!(processed(&Renormalize, &[], 9), [-1.0, -2.0, -3.0, 4.0]);
}

/// The processors of a search over a vocabulary of five, the last of which is padding.
fn of_search(options: &SearchOptions) -> LogitsProcessors {
    LogitsProcessors::new(options, Normalization::new(options, 1, Some(4)), 4, Some(4))
}

/// The result of a search's processors on four words, of a vocabulary of five with padding.
fn searched(options: &SearchOptions, tokens: &[u32], limit: usize, log_p: &mut [f32]) {
    let mut processors = of_search(options);
    processors.add(tokens, limit);
    processors.process(0, tokens, limit, log_p);
}

fn constrained(options: SearchOptions, tokens: &[u32], limit: usize) -> Vec<f32> {
    let mut log_p = vec![-1.0, -2.0, -3.0, -4.0];
    searched(&SearchOptions { renormalize: false, ..options }, tokens, limit, &mut log_p);
    log_p
}

#[test]
fn options_become_bans_penalties_and_forced_tokens() {
    let d = SearchOptions::default;
    assert_eq!(constrained(d(), &[1], 9), [-1.0, -2.0, -3.0, -4.0]);
    assert_eq!(constrained(d(), &[1, 1], 3), [0.0, NONE, NONE, NONE]);
    for (options, tokens, limit, want) in [
        (SearchOptions { forced_end: false, ..d() }, &[1, 1][..], 3, [-1.0, -2.0, -3.0, -4.0]),
        (SearchOptions { min_length: 2, ..d() }, &[1], 9, [NONE, -2.0, -3.0, -4.0]),
        (SearchOptions { banned: vec![2, 99], ..d() }, &[], 9, [-1.0, -2.0, NONE, -4.0]),
        (SearchOptions { prefix: vec![3, 1], ..d() }, &[3], 9, [NONE, -2.0, NONE, NONE]),
        (SearchOptions { forced_first: Some(2), ..d() }, &[], 9, [NONE, NONE, 0.0, NONE]),
        (SearchOptions { forced_first: Some(2), ..d() }, &[2], 9, [-1.0, -2.0, -3.0, -4.0]),
        (SearchOptions { no_repeat_ngram: 2, ..d() }, &[1, 2, 3, 1], 9, [-1.0, -2.0, NONE, -4.0]),
        (SearchOptions { no_repeat_ngram: 1, ..d() }, &[1, 2], 9, [-1.0, NONE, NONE, -4.0]),
        (SearchOptions { repetition_penalty: 2.0, ..d() }, &[1, 1], 9, [-1.0, -4.0, -3.0, -4.0]),
        (SearchOptions { banned_sequences: vec![vec![4, 1]], ..d() }, &[], 9, [-1.0, NONE, -3.0, -4.0]),
        // Forced tokens may be banned ones: a prefix first, then the end, then the first token.
        (SearchOptions { banned: vec![0], ..d() }, &[1], 2, [0.0, NONE, NONE, NONE]),
        (SearchOptions { forced_first: Some(2), ..d() }, &[], 1, [0.0, NONE, NONE, NONE]),
        (SearchOptions { forced_first: Some(2), prefix: vec![3], ..d() }, &[], 1, [NONE, NONE, NONE, -4.0]),
    ] {
        assert_eq!(constrained(options.clone(), tokens, limit), want, "{options:?} {tokens:?}");
    }
}

#[test]
fn what_is_left_sums_to_one_again() {
    let options = SearchOptions { banned: vec![0], ..SearchOptions::default() };
    let mut log_p = [0.5f32, 0.25, 0.25].map(f32::ln);
    searched(&options, &[1], 9, &mut log_p);
    assert_eq!(log_p[0], NONE);
    assert!((log_p[1] - 0.5f32.ln()).abs() < 1e-6 && log_p[1] == log_p[2]);
    // Nothing is left to normalise.
    let options = SearchOptions { banned: vec![0, 1, 2], ..SearchOptions::default() };
    searched(&options, &[1], 9, &mut log_p);
    assert_eq!(log_p, [NONE; 3]);
}

#[test]
fn a_step_knows_of_each_hypothesis_whether_it_only_bans() {
    let options = SearchOptions { min_length: 1, prefix: vec![3], ..SearchOptions::default() };
    let mut processors = of_search(&options);
    for (tokens, limit, only) in [(&[][..], 9, false), (&[3], 9, true), (&[3, 1], 3, false)] {
        processors.add(tokens, limit);
        assert_eq!(processors.only_bans.last(), Some(&only), "{tokens:?}");
    }
    assert!(!processors.all_only_ban() && processors.only_ban(1));
    assert_eq!((processors.bans().row(0), processors.bans().row(1)), (&[0][..], &[][..]));
}
