//! Search against the tape: cached steps, greedy and exhaustive search, forced decoding.

use crate::invariants::variants;
use crate::small_models::{WORDS, engine, find, model, options, sentences, small, sources};
use regard_core::Isa;
use regard_core::batch::Batch;
use regard_core::decode::{EarlyStopping, Hypothesis, LengthPenalty, SearchOptions, score_pairs};
use regard_core::model::{ModelConfig, Transformer};
use regard_train::autograd::Tape;
use regard_train::token_losses;

/// The log-probability of each token without caches: what decoding should come to.
fn on_the_tape(of: &(Transformer, Vec<f32>), pairs: &[(Vec<u32>, Vec<u32>)]) -> Vec<Vec<f32>> {
    let mut tape = Tape::new(Isa::best(), 1);
    let mut one = |(source, target): &(Vec<u32>, Vec<u32>)| -> Vec<f32> {
        let batch = Batch::new([(&source[..], &target[..])], of.0.config().start()).unwrap();
        let losses = token_losses(&mut tape, &of.0, &of.1, &batch).unwrap();
        losses.iter().map(|loss| -loss).collect()
    };
    pairs.iter().map(&mut one).collect()
}

/// The tokens of a hypothesis with its end, if it has one.
fn target(h: &Hypothesis) -> Vec<u32> {
    h.ids.iter().copied().chain(h.ended.then_some(0)).collect()
}

#[test]
fn cached_steps_agree_with_the_tape_for_every_variant() {
    for (name, config) in variants() {
        let of = model(config, 9);
        let sources = sources(6);
        let options = SearchOptions { forced_end: false, nbest: 3, ..options(3) };
        for (source, hypotheses) in sources.iter().zip(find(&of, &sources, &options)) {
            assert_eq!(hypotheses.len(), 3, "{name}");
            for h in hypotheses {
                let pair = (source.clone(), target(&h));
                let want = on_the_tape(&of, &[pair]).remove(0);
                assert_eq!(h.token_log_probabilities.len(), want.len(), "{name}");
                for (got, want) in h.token_log_probabilities.iter().zip(&want) {
                    assert!((got - want).abs() < 1e-4, "{name}: {got} cached, {want} on the tape");
                }
                let total: f32 = want.iter().sum();
                assert!((h.log_probability - total).abs() < 1e-3, "{name}");
                assert!((h.score - total / (want.len() as f32).powf(0.6)).abs() < 1e-3, "{name}");
            }
        }
    }
}

#[test]
fn a_beam_of_one_is_greedy() {
    let of = model(small(), 4);
    for source in sources(10) {
        let h = find(&of, std::slice::from_ref(&source), &options(1)).remove(0).remove(0);
        let limit = source.len() + 8;
        let mut tokens: Vec<u32> = Vec::new();
        while tokens.last() != Some(&0) && tokens.len() + 1 < limit {
            // The likeliest next word, by scoring each of them on the tape.
            let pairs: Vec<_> = (0..WORDS as u32 - 1)
                .map(|w| (source.clone(), tokens.iter().copied().chain([w]).collect::<Vec<_>>()))
                .collect();
            let scores = on_the_tape(&of, &pairs);
            let last = |w: &usize| *scores[*w].last().unwrap();
            let next = (0..scores.len()).max_by(|a, b| last(a).total_cmp(&last(b))).unwrap();
            tokens.push(next as u32);
        }
        if tokens.last() != Some(&0) {
            tokens.push(0); // forced at the limit
        }
        assert_eq!(target(&h), tokens);
    }
}

/// Every sentence of at most `limit` tokens with its end, with its score.
fn all_sentences(
    of: &(Transformer, Vec<f32>),
    source: &[u32],
    words: u32,
    limit: usize,
) -> Vec<(Vec<u32>, f32)> {
    let mut complete = Vec::new();
    let mut open: Vec<Vec<u32>> = vec![vec![]];
    while let Some(tokens) = open.pop() {
        for w in 0..words {
            let next: Vec<u32> = tokens.iter().copied().chain([w]).collect();
            match w == 0 || next.len() == limit {
                true => complete.push(next),
                false => open.push(next),
            }
        }
    }
    let pairs: Vec<_> = complete.iter().map(|t| (source.to_vec(), t.clone())).collect();
    let scores = on_the_tape(of, &pairs);
    complete.into_iter().zip(scores.iter().map(|s| s.iter().sum())).collect()
}

#[test]
fn never_stopping_early_finds_the_best_of_all_sentences() {
    let words = 4u32;
    let config = ModelConfig {
        source_vocabulary: words as usize + 1,
        target_vocabulary: words as usize + 1,
        ..small()
    };
    for seed in 0..6 {
        let of = model(config.clone(), seed);
        let source = vec![1, 3, 2, 0];
        for (penalty, length_penalty) in
            [(LengthPenalty::Power, 1.0), (LengthPenalty::Paper, 0.6), (LengthPenalty::Power, 0.0)]
        {
            let options = SearchOptions {
                // 3 + 9 + 27 + 81 running at most: nothing is pruned.
                beam: 200,
                early_stopping: EarlyStopping::Never,
                max_length: Some(5),
                forced_end: false,
                penalty,
                length_penalty,
                ..SearchOptions::default()
            };
            let got = find(&of, std::slice::from_ref(&source), &options).remove(0).remove(0);
            let score = |(tokens, total): &(Vec<u32>, f32)| total / options.length_penalty_of(tokens.len());
            let all = all_sentences(&of, &source, words, 5);
            let best = all.iter().max_by(|a, b| score(a).total_cmp(&score(b))).unwrap();
            assert!((got.score - score(best)).abs() < 1e-4, "seed {seed}: {} and {}", got.score, score(best));
            assert_eq!(target(&got), best.0, "seed {seed} {penalty:?}");
        }
    }
}

#[test]
fn forced_decoding_gives_the_probabilities_of_the_tape() {
    for (name, config) in variants() {
        let of = model(config, 5);
        let pairs: Vec<(Vec<u32>, Vec<u32>)> = sources(9).into_iter().zip(sentences(9, 77)).collect();
        let want = on_the_tape(&of, &pairs);
        for threads in [1, 2] {
            let got = score_pairs(&[&engine(&of)], &pairs, threads).unwrap();
            for (got, want) in got.iter().zip(&want) {
                assert_eq!(got.len(), want.len(), "{name}");
                assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-4), "{name}: {got:?} {want:?}");
            }
        }
    }
}
