use super::*;
use crate::model::{ModelConfig, Preset};

const SENTENCE: [&str; 8] = ["▁the", "▁cat", "▁sat", ",", "▁and", "▁the", "▁dog", "</s>"];
const N: usize = SENTENCE.len();

/// Rows with `share` of the weight in the cells that `picks` selects, the rest spread over the
/// visible cells.
fn weights(
    rows: usize,
    columns: usize,
    picks: impl Fn(usize, usize) -> bool,
    share: f32,
    causal: bool,
) -> Vec<f32> {
    let mut all = Vec::new();
    for i in 0..rows {
        let seen = if causal { i + 1 } else { columns };
        let count = (0..seen).filter(|&j| picks(i, j)).count();
        let others = seen - count;
        for j in 0..columns {
            all.push(match (j < seen, count, picks(i, j)) {
                (false, _, _) => 0.0,
                (true, 0, _) => 1.0 / seen as f32,
                (true, _, true) => (if others > 0 { share } else { 1.0 }) / count as f32,
                (true, _, false) => (1.0 - share) / others as f32,
            });
        }
    }
    all
}

fn encoder(picks: impl Fn(usize, usize) -> bool, share: f32) -> HeadHint {
    let weights = weights(N, N, picks, share, false);
    describe_head(AttentionKind::Encoder, &weights, &SENTENCE, &SENTENCE).unwrap()
}

#[test]
fn each_simple_head_of_an_encoder_is_recognised() {
    let pattern = |picks: fn(usize, usize) -> bool| encoder(picks, 0.9).pattern;
    assert_eq!(pattern(|i, j| i == j), HeadPattern::Diagonal);
    assert_eq!(pattern(|i, j| j + 1 == i), HeadPattern::Previous);
    assert_eq!(pattern(|i, j| j == i + 1), HeadPattern::Next);
    assert_eq!(pattern(|_, j| j == 0), HeadPattern::First);
    assert_eq!(pattern(|_, j| j == N - 1), HeadPattern::End);
    assert_eq!(pattern(|_, j| j == 3), HeadPattern::Punctuation);
    assert_eq!(pattern(|_, j| j == 2), HeadPattern::SingleToken);
    assert_eq!(pattern(|i, j| i.abs_diff(j) <= 2), HeadPattern::Near);
    assert_eq!(pattern(|_, _| true), HeadPattern::Uniform);
}

#[test]
fn the_same_token_elsewhere() {
    let tokens = ["▁a", "▁b", "▁a", "▁b", "▁a", "▁b"];
    let weights = weights(6, 6, |i, j| i != j && tokens[i] == tokens[j], 0.9, false);
    let hint = describe_head(AttentionKind::Encoder, &weights, &tokens, &tokens).unwrap();
    assert_eq!(hint.pattern, HeadPattern::Same);
}

#[test]
fn heads_without_a_pattern_are_mixed_and_weak_ones_are_not_claimed() {
    let scattered = encoder(|i, j| j == (i * 3 + 2) % N, 0.8);
    assert_eq!((scattered.pattern, scattered.share), (HeadPattern::Mixed, 0.0));
    assert_ne!(encoder(|i, j| j + 1 == i, 0.3).pattern, HeadPattern::Previous);
}

#[test]
fn the_share_is_the_weight_that_the_pattern_holds_and_the_spread_counts_tokens() {
    let hint = encoder(|_, j| j == 0, 0.7);
    assert_eq!(hint.pattern, HeadPattern::First);
    assert!((hint.share - 0.7).abs() < 1e-6, "{hint:?}");
    assert!((encoder(|_, _| true, 0.9).spread - N as f64).abs() < 1e-5);
    assert!((encoder(|i, j| i == j, 1.0).spread - 1.0).abs() < 1e-6);
    assert_eq!(entropy(&[0.0, 0.0]), 0.0);
    assert!((entropy(&[2.0, 2.0]) - std::f64::consts::LN_2).abs() < 1e-12);
}

#[test]
fn the_decoders_first_row_does_not_decide() {
    let read = ["<start>", "▁a", "▁b", "▁c", "▁d", "▁e"];
    let said = ["▁a", "▁b", "▁c", "▁d", "▁e", "</s>"];
    let decoder = |picks: fn(usize, usize) -> bool| {
        let weights = weights(6, 6, picks, 0.9, true);
        describe_head(AttentionKind::Decoder, &weights, &said, &read).unwrap().pattern
    };
    assert_eq!(decoder(|i, j| j == i), HeadPattern::JustRead);
    assert_eq!(decoder(|i, j| j + 1 == i), HeadPattern::Previous);
    assert_eq!(decoder(|_, j| j == 0), HeadPattern::First);
    assert_eq!(decoder(|_, _| true), HeadPattern::Uniform);
}

#[test]
fn cross_attention_along_the_diagonal_also_between_unequal_lengths() {
    let said: Vec<&str> = "▁1 ▁2 ▁3 ▁4 ▁5 ▁6 ▁7 ▁8 ▁9 ▁10 ▁11 ▁12 ▁13 </s>".split(' ').collect();
    let m = said.len();
    let grad = (N - 1) as f64 / (m - 1) as f64;
    let cross = |picks: &dyn Fn(usize, usize) -> bool| {
        let weights = weights(m, N, picks, 0.9, false);
        describe_head(AttentionKind::Cross, &weights, &said, &SENTENCE).unwrap().pattern
    };
    let at = |i: usize| (i as f64 * grad).round() as usize;
    assert_eq!(cross(&|i, j| j == at(i)), HeadPattern::Aligned);
    assert_eq!(cross(&|i, j| j + 2 == at(i)), HeadPattern::Aligned);
    assert_eq!(cross(&|_, j| j == N - 1), HeadPattern::End);
    assert_eq!(cross(&|_, _| true), HeadPattern::Uniform);
}

#[test]
fn short_and_broken_input() {
    let pieces = ["▁a", "</s>"];
    let hint = describe_head(AttentionKind::Encoder, &[1.0, 0.0, 0.0, 1.0], &pieces, &pieces).unwrap();
    assert_eq!(hint.pattern, HeadPattern::Short);
    let none: [&str; 0] = [];
    assert_eq!(describe_head(AttentionKind::Decoder, &[], &none, &none).unwrap().pattern, HeadPattern::Short);
    let one = ["</s>"];
    let hint = describe_head(AttentionKind::Cross, &[0.2; 4], &one, &["a", "b", "c", "d"]).unwrap();
    assert_eq!(hint.pattern, HeadPattern::Short);
    let error = describe_head(AttentionKind::Cross, &[1.0; 3], &pieces, &pieces).unwrap_err().to_string();
    assert_eq!(error, "describing a head: 3 weights for 2 rows of 2 columns");
    // Non-finite weights have no pattern, and cause no panic.
    let nan = vec![f32::NAN; N * N];
    let hint = describe_head(AttentionKind::Encoder, &nan, &SENTENCE, &SENTENCE).unwrap();
    assert_eq!(hint.pattern, HeadPattern::Mixed);
}

#[test]
fn what_counts_as_punctuation() {
    assert!([",", "▁.", "…", "€", "▁", "Ġ!", "-@@"].iter().all(|p| is_punctuation(p)));
    assert!(!["a", "▁a.", "</s>", "<pad>", "7"].iter().any(|p| is_punctuation(p)));
}

#[test]
fn a_head_is_removed_by_its_columns_alone() {
    let config = ModelConfig { encoder_layers: 2, decoder_layers: 2, ..Preset::Tiny.config(20) };
    let model = Transformer::new(config).unwrap();
    let before = model.parameters().initialise(1);
    let mut after = before.clone();
    remove_head(&model, &mut after, AttentionKind::Cross, 1, 2).unwrap();
    let out = model.parameters().get("decoder.layers.1.cross_attn.out.weight").unwrap().param;
    for (i, (a, b)) in before.iter().zip(&after).enumerate() {
        let inside = out.range().contains(&i) && (64..96).contains(&((i - out.offset) % 128));
        assert_eq!(*b, if inside { 0.0 } else { *a }, "{i}");
    }
    let refused = |kind, layer, head| {
        remove_head(&model, &mut before.clone(), kind, layer, head).unwrap_err().to_string()
    };
    assert_eq!(
        refused(AttentionKind::Encoder, 2, 0),
        "removing a head: there is no parameter encoder.layers.2.self_attn.out.weight"
    );
    assert_eq!(
        refused(AttentionKind::Decoder, 0, 4),
        "removing a head: there is no head 4, a layer has 0 to 3"
    );
    let error = remove_head(&model, &mut [], AttentionKind::Decoder, 0, 0).unwrap_err().to_string();
    assert!(error.starts_with("removing a head: 0 weights for a model of"), "{error}");
}
