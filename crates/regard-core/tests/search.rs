//! Search: beams, limits, sampling, ensembles, shortlists, 8 bits. The tests of `regard-train`
//! compare it with the tape.

use crate::small_models::{WORDS, encoders, engine, find, model, options, sentences, small, sources};
use regard_core::decode::{
    EarlyStopping, Engine, Sampling, SearchOptions, Shortlist, ShortlistSize, score_pairs, search,
    search_ensemble,
};
use regard_core::model::{ModelConfig, Positions, Transformer};
use regard_core::{DType, Isa};
use regard_kernels::CountingAllocator;
use std::sync::Arc;

#[test]
fn every_instruction_set_finds_the_same_translations() {
    let of = model(small(), 5);
    let sources = sources(12);
    let found = |isa| search(&of.0, &of.1, &sources, &options(3), isa, 2).unwrap();
    let want = found(Isa::best());
    for isa in Isa::available() {
        for (a, b) in found(isa).iter().zip(&want) {
            assert_eq!(a[0].ids, b[0].ids, "{isa}");
            assert!((a[0].score - b[0].score).abs() < 1e-4, "{isa}");
        }
    }
}

#[test]
fn a_translation_does_not_depend_on_batch_order_or_threads() {
    let of = model(small(), 5);
    let sources = sources(23);
    let base = SearchOptions { nbest: 2, ..options(3) };
    let want = find(&of, &sources, &base);
    for (batch, threads) in [(1, 1), (1, 2), (5, 1), (32, 3), (7, 2)] {
        let options = SearchOptions { batch, ..base.clone() };
        let got = search(&of.0, &of.1, &sources, &options, Isa::best(), threads).unwrap();
        assert_eq!(got, want, "batch {batch}, {threads} threads");
    }
    let backwards: Vec<_> = sources.iter().rev().cloned().collect();
    let mut got = find(&of, &backwards, &base);
    got.reverse();
    assert_eq!(got, want);
}

#[test]
fn a_larger_beam_is_not_worse_and_may_exceed_the_vocabulary() {
    let of = model(small(), 6);
    let sources = sources(8);
    let exact =
        |beam| SearchOptions { early_stopping: EarlyStopping::Never, forced_end: false, ..options(beam) };
    let scores =
        |beam| -> Vec<f32> { find(&of, &sources, &exact(beam)).iter().map(|h| h[0].score).collect() };
    let (small, large) = (scores(2), scores(100));
    assert!(small.iter().zip(&large).all(|(s, l)| *l >= s - 1e-5), "{small:?} {large:?}");
}

#[test]
fn limits_prefixes_and_penalties_hold() {
    let of = model(small(), 7);
    let sources = sources(8);
    for h in find(&of, &sources, &SearchOptions { max_length: Some(4), ..options(3) }) {
        assert!(h[0].ids.len() <= 3 && h[0].ended);
    }
    for h in find(&of, &sources, &SearchOptions { min_length: 6, ..options(3) }) {
        assert!(h[0].ids.len() >= 6);
    }
    for h in find(&of, &sources, &SearchOptions { prefix: vec![5, 9, 5], ..options(3) }) {
        assert_eq!(h[0].ids[..3], [5, 9, 5]);
    }
    for h in find(&of, &sources, &SearchOptions { no_repeat_ngram: 1, ..options(3) }) {
        let mut ids = h[0].ids.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), h[0].ids.len());
    }
    let free = find(&of, &sources, &options(3));
    let banned: Vec<u32> = free[0][0].ids.clone();
    for h in find(&of, &sources, &SearchOptions { banned: banned.clone(), ..options(3) }) {
        assert!(h[0].ids.iter().all(|id| !banned.contains(id)));
    }
    // All words but one banned, the end too: it says what it can until it is cut.
    let all_but_one: Vec<u32> = (0..WORDS as u32 - 1).filter(|&w| w != 7).collect();
    for h in find(&of, &sources, &SearchOptions { banned: all_but_one, forced_end: false, ..options(3) }) {
        assert!(!h[0].ended && h[0].ids.iter().all(|&id| id == 7));
    }
}

#[test]
fn samples_are_reproducible_and_their_own() {
    let of = model(small(), 8);
    let sources = sources(6);
    let drawn = |seed, batch| {
        let sampling = Some(Sampling { seed, temperature: 1.5, ..Sampling::default() });
        find(&of, &sources, &SearchOptions { sampling, nbest: 3, batch, ..options(1) })
    };
    let first = drawn(1, 32);
    assert!(first.iter().all(|h| h.len() == 3));
    assert_eq!(first, drawn(1, 2));
    assert_ne!(first, drawn(2, 32));
}

#[test]
fn an_ensemble_of_one_model_twice_is_that_model() {
    let of = model(small(), 3);
    let other = model(small(), 11);
    let sources = sources(5);
    let both = |a: &'_ (Transformer, Vec<f32>), b: &'_ (Transformer, Vec<f32>)| {
        search_ensemble(&[&engine(a), &engine(b)], &sources, &options(3), 2).unwrap()
    };
    let alone = find(&of, &sources, &options(3));
    for (a, b) in both(&of, &of).iter().zip(&alone) {
        assert_eq!(a[0].ids, b[0].ids);
        assert!((a[0].score - b[0].score).abs() < 1e-4);
    }
    assert_ne!(both(&of, &other), alone);
    let strange = model(ModelConfig { source_vocabulary: 9, target_vocabulary: 9, ..small() }, 1);
    let engines = [&engine(&of), &engine(&strange)];
    let error = search_ensemble(&engines, &sources, &options(1), 1).unwrap_err().to_string();
    assert_eq!(error, "search: models of different vocabularies: 9 and 23 words; an ensemble needs one");
}

#[test]
fn a_token_that_is_not_in_the_vocabulary_is_not_scored() {
    let of = model(small(), 5);
    let error = score_pairs(&[&engine(&of)], &[(vec![1, 0], vec![99])], 1).unwrap_err().to_string();
    assert_eq!(error, "scoring: translation 0: token 99 is not in the vocabulary of 23");
}

#[test]
fn eight_bits_find_nearly_the_same() {
    for (name, config) in encoders().into_iter().chain([("attention", small())]) {
        nearly_the_same(name, config);
    }
}

#[test]
fn eight_bits_take_less_memory() {
    // Wide enough that no instruction set pads its vectors by more than they hold.
    let of = model(ModelConfig { d_model: 128, d_ff: 256, ..small() }, 3);
    let int8 = Engine::new(&of.0, &of.1, DType::Int8, Isa::best());
    assert!(2 * int8.bytes() < engine(&of).bytes());
}

fn nearly_the_same(name: &str, config: ModelConfig) {
    let of = model(config, 3);
    let (f32, int8) = (engine(&of), Engine::new(&of.0, &of.1, DType::Int8, Isa::best()));
    let pairs: Vec<(Vec<u32>, Vec<u32>)> = sources(30).into_iter().zip(sentences(30, 5)).collect();
    let [a, b] = [&f32, &int8].map(|e| score_pairs(&[e], &pairs, 2).unwrap().concat());
    let mean = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum::<f32>() / a.len() as f32;
    assert!(mean > 0.0 && mean < 0.1, "{name}: {mean}");
    // The number of threads, the batch and the order change nothing in 8 bits either.
    let sources = sources(20);
    let want = search_ensemble(&[&int8], &sources, &options(3), 1).unwrap();
    for (batch, threads) in [(1, 1), (1, 2), (5, 3)] {
        let options = SearchOptions { batch, ..options(3) };
        assert_eq!(search_ensemble(&[&int8], &sources, &options, threads).unwrap(), want, "{name}");
    }
}

#[test]
fn a_bias_of_the_logits_counts() {
    let mut of = model(small(), 3);
    let mut bias = vec![0.0; WORDS];
    bias[7] = 50.0;
    of.0.set_output_bias(Some(bias)).unwrap();
    let found = find(&of, &sources(3), &options(2));
    assert!(found.iter().all(|h| h[0].ids.iter().all(|&id| id == 7) && !h[0].ids.is_empty()));
    let error = of.0.set_output_bias(Some(vec![0.0; 5])).unwrap_err().to_string();
    assert_eq!(error, "model: a bias of 5 numbers for a vocabulary of 23");
}

#[test]
fn attention_over_the_source_sums_to_one() {
    let of = model(small(), 2);
    let sources = sources(7);
    let found = find(&of, &sources, &SearchOptions { attention: true, nbest: 2, ..options(3) });
    for (source, hypotheses) in sources.iter().zip(found) {
        for h in hypotheses {
            assert_eq!(h.attention.len(), h.token_log_probabilities.len());
            for row in &h.attention {
                assert_eq!(row.len(), source.len());
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn nonsense_is_refused_by_name_and_nothing_gives_nothing() {
    let of = model(ModelConfig { positions: Positions::Learned, ..small() }, 2);
    let refuse = |options: SearchOptions, sources: &[Vec<u32>]| {
        search(&of.0, &of.1, sources, &options, Isa::best(), 1).unwrap_err().to_string()
    };
    let one = [vec![1, 0]];
    let d = SearchOptions::default;
    assert_eq!(refuse(SearchOptions { beam: 0, ..d() }, &one), "beam: 0 is too few, at least 1 is needed");
    assert_eq!(refuse(SearchOptions { nbest: 5, ..d() }, &one), "nbest: 5 is more than the beam size of 4");
    assert!(
        refuse(SearchOptions { max_length: Some(0), ..d() }, &one)
            .starts_with("max_length: 0 leaves no room")
    );
    let tight = SearchOptions { max_length: Some(3), min_length: 3, ..d() };
    assert_eq!(refuse(tight, &one), "min_length: 3 leaves no room for the end token within max_length 3");
    let long = SearchOptions { max_length: Some(2), prefix: vec![1, 1], ..d() };
    assert_eq!(refuse(long, &one), "prefix: 2 tokens leave no room for the end within max_length 2");
    for (sampling, name) in [
        (Sampling { temperature: 0.0, ..Sampling::default() }, "temperature: 0 is not"),
        (Sampling { temperature: f32::NAN, ..Sampling::default() }, "temperature: NaN is not"),
        (Sampling { top_p: 1.5, ..Sampling::default() }, "top_p: 1.5 is not"),
    ] {
        let got = refuse(SearchOptions { sampling: Some(sampling), ..d() }, &one);
        assert!(got.starts_with(name), "{got}");
    }
    assert_eq!(
        refuse(d(), &[vec![1], vec![77]]),
        "search: sentence 1: token 77 is not in the vocabulary of 23"
    );
    assert_eq!(refuse(d(), &[vec![1; 33]]), "search: sentence 0 has 33 tokens, the model has 32 positions");
    assert!(find(&of, &[], &d()).is_empty());
    // A source longer than the output may be: learned positions end, and so does the translation.
    assert!(find(&of, &[vec![1; 32]], &d())[0][0].token_log_probabilities.len() <= 32);
}

/// A list that lets a sentence have its own words, in the target's numbers, and some others.
fn shortlist(sources: &[Vec<u32>], size: ShortlistSize) -> Option<Arc<Shortlist>> {
    let pairs: Vec<_> = sources.iter().map(|s| (&s[..], &s[..])).collect();
    Some(Arc::new(Shortlist::learn(&pairs, (WORDS, WORDS), size)))
}

#[test]
fn a_shortlist_of_everything_changes_nothing() {
    let of = model(small(), 21);
    let sources = sources(7);
    let every: Vec<Vec<u32>> = vec![(0..WORDS as u32 - 1).collect()];
    let list = shortlist(&every, ShortlistSize { frequent: WORDS, per_word: 0 });
    for options in [
        options(4),
        options(1),
        SearchOptions { renormalize: false, banned: vec![3], ..options(3) },
        SearchOptions { repetition_penalty: 1.3, no_repeat_ngram: 2, ..options(3) },
        SearchOptions { sampling: Some(Sampling::default()), ..options(1) },
    ] {
        let all = find(&of, &sources, &options);
        let listed = find(&of, &sources, &SearchOptions { shortlist: list.clone(), ..options });
        for (all, listed) in all.iter().zip(&listed) {
            assert_eq!(all[0].ids, listed[0].ids);
            assert!((all[0].score - listed[0].score).abs() < 1e-4, "{} {}", all[0].score, listed[0].score);
        }
    }
}

#[test]
fn with_a_shortlist_nothing_else_comes_and_neighbours_do_not_matter() {
    let of = model(small(), 22);
    let sources = sources(9);
    let list = shortlist(&sources, ShortlistSize { frequent: 2, per_word: 1 }).unwrap();
    for options in [options(4), SearchOptions { repetition_penalty: 1.2, ..options(2) }] {
        let options = SearchOptions { shortlist: Some(list.clone()), prefix: vec![7], ..options };
        let together = find(&of, &sources, &options);
        for (source, found) in sources.iter().zip(&together) {
            let mut words = Vec::new();
            list.words(source, &mut words);
            assert!(words.len() < WORDS / 2, "{words:?}");
            let ids = &found[0].ids;
            assert!(ids[0] == 7 && ids[1..].iter().all(|id| words.contains(id)), "{ids:?} of {words:?}");
            // To rounding: a rule that holds for one sentence makes its whole batch go the longer
            // way.
            let alone = find(&of, std::slice::from_ref(source), &options);
            assert_eq!(alone[0][0].ids, found[0].ids);
            assert!((alone[0][0].score - found[0].score).abs() < 1e-5);
        }
    }
}

#[test]
fn a_shortlist_of_another_vocabulary_is_refused() {
    let of = model(small(), 23);
    let list = Some(Arc::new(Shortlist::learn(&[], (3, 4), ShortlistSize::default())));
    let options = SearchOptions { shortlist: list, ..options(2) };
    let refused = search(&of.0, &of.1, &sources(1), &options, Isa::best(), 1).unwrap_err().to_string();
    assert!(refused.contains("3 and 4") && refused.contains(&WORDS.to_string()), "{refused}");
}

#[test]
fn steps_do_not_allocate() {
    let of = model(small(), 24);
    let list = shortlist(&sources(6), ShortlistSize { frequent: 4, per_word: 3 });
    for (precision, shortlist) in [(DType::F32, None), (DType::Int8, None), (DType::F32, list)] {
        let engine = Engine::new(&of.0, &of.1, precision, Isa::best());
        // The end never comes: this many steps are taken.
        let allocations = |steps: usize| {
            let options = SearchOptions {
                max_length: Some(steps),
                extra_length: steps,
                banned: vec![0],
                forced_end: false,
                shortlist: shortlist.clone(),
                ..options(4)
            };
            let before = CountingAllocator::count();
            search_ensemble(&[&engine], &sources(6), &options, 1).unwrap();
            CountingAllocator::count() - before
        };
        allocations(8);
        let (short, long) = (allocations(40), allocations(80));
        // Lists that grow with the length are doubled now and then.
        assert!(long < short + 40, "{precision:?}: {short} allocations in 40 steps, {long} in 80");
    }
}
