//! Search with phrases that must occur, against scoring every sentence.

use regard_core::decode::{
    Constraint, Engine, SearchOptions, score_pairs, search_constrained, search_ensemble,
};
use regard_core::model::{ModelConfig, Transformer};
use regard_core::{DType, Isa};

fn engine(words: usize, seed: u64) -> Engine {
    let config = ModelConfig {
        d_model: 16,
        heads: 2,
        d_ff: 24,
        encoder_layers: 1,
        decoder_layers: 2,
        source_vocabulary: words,
        target_vocabulary: words,
        ..ModelConfig::default()
    };
    let model = Transformer::new(config).unwrap();
    Engine::new(&model, &model.parameters().initialise(seed), DType::F32, Isa::best())
}

fn constraint(forms: &[&[u32]]) -> Constraint {
    Constraint { forms: forms.iter().map(|form| form.to_vec()).collect() }
}

fn contains(ids: &[u32], forms: &[&[u32]]) -> bool {
    forms.iter().any(|form| ids.windows(form.len()).any(|window| window == *form))
}

#[test]
fn every_translation_contains_its_phrases() {
    let engine = engine(30, 5);
    let sources = vec![vec![4, 9, 2, 0], vec![7, 3, 3, 11, 8, 0], vec![5, 0]];
    let first: &[&[u32]] = &[&[13, 6, 21], &[13, 8]];
    let second: &[&[u32]] = &[&[25]];
    let constraints = vec![vec![constraint(first), constraint(second)], vec![constraint(second)], vec![]];
    let options =
        SearchOptions { beam: 4, nbest: 4, extra_length: 12, forced_end: false, ..SearchOptions::default() };
    let found = search_constrained(&[&engine], &sources, &constraints, &options, 2, &()).unwrap();
    assert!(found[0].iter().all(|h| contains(&h.ids, first) && contains(&h.ids, second)), "{found:?}");
    assert!(found[1].iter().all(|h| contains(&h.ids, second)), "{found:?}");
    // What a sentence gets does not depend on the others; one without phrases gets what it always
    // does.
    let alone = search_constrained(&[&engine], &sources[1..2], &constraints[1..2], &options, 1, &()).unwrap();
    assert_eq!(alone[0], found[1]);
    let plain = search_ensemble(&[&engine], &sources[2..], &options, 1).unwrap();
    let ids =
        |list: &[regard_core::decode::Hypothesis]| list.iter().map(|h| h.ids.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&found[2]), ids(&plain[0]));
    // The score is that of the tokens, forced or not.
    for hypothesis in &found[0] {
        let end = if hypothesis.ended { vec![options.end] } else { Vec::new() };
        let target = [hypothesis.ids.clone(), end].concat();
        let scores = score_pairs(&[&engine], &[(sources[0].clone(), target)], 1).unwrap();
        assert!((scores[0].iter().sum::<f32>() - hypothesis.log_probability).abs() < 1e-3);
    }
}

#[test]
fn a_wide_beam_finds_the_best_sentence_with_the_phrase() {
    let words = 7u32;
    for seed in 1..6 {
        let engine = engine(words as usize, seed);
        let source = vec![3, 2, 4, 0];
        let options = SearchOptions {
            beam: 60,
            nbest: 1,
            max_length: Some(5),
            forced_end: false,
            length_penalty: 0.0,
            ..SearchOptions::default()
        };
        let phrase: &[&[u32]] = &[&[4, 2], &[5]];
        let found = search_constrained(
            &[&engine],
            std::slice::from_ref(&source),
            &[vec![constraint(phrase)]],
            &options,
            1,
            &(),
        );
        let found = found.unwrap()[0][0].clone();
        // All sentences of up to four words and their end, and five words that reach the limit
        // without one; the last word of the vocabulary is padding.
        let mut sentences: Vec<Vec<u32>> = vec![Vec::new()];
        let mut begin = 0;
        for _ in 0..5 {
            let end = sentences.len();
            for i in begin..end {
                let longer = (1..words - 1).map(|word| [sentences[i].clone(), vec![word]].concat());
                let longer: Vec<_> = longer.collect();
                sentences.extend(longer);
            }
            begin = end;
        }
        sentences.retain(|ids| contains(ids, phrase));
        let ended = |ids: &Vec<u32>| if ids.len() < 5 { [&ids[..], &[0]].concat() } else { ids.clone() };
        let pairs: Vec<_> = sentences.iter().map(|ids| (source.clone(), ended(ids))).collect();
        let scores = score_pairs(&[&engine], &pairs, 2).unwrap();
        let total = |i: &usize| scores[*i].iter().sum::<f32>();
        let best = (0..pairs.len()).max_by(|a, b| total(a).total_cmp(&total(b))).unwrap();
        let both = (found.log_probability, total(&best));
        assert!(found.ids == sentences[best] || (both.0 - both.1).abs() < 1e-4, "seed {seed}: {both:?}");
    }
}
