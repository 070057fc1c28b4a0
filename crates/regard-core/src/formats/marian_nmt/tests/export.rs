//! Tests of the conversion of weights to items that engines can load.

use super::*;
use crate::decode::{Shortlist, ShortlistSize};
use crate::model::{DecoderKind, NormPlace, Tying};
use regard_kernels::Activation;
use regard_random::mix;

pub(super) fn options(decoder: DecoderKind, tying: Tying) -> MarianOptions {
    MarianOptions {
        source_vocabulary: 40,
        target_vocabulary: 48,
        d_model: 64,
        heads: 4,
        encoder_layers: 2,
        decoder_layers: 1,
        encoder_feed_forward: 128,
        decoder_feed_forward: 192,
        activation: Activation::Relu,
        decoder,
        norm: NormPlace::Post,
        norm_embeddings: false,
        norm_top: false,
        tying,
        output_bias: true,
        trained_positions: false,
        version: "v1.12.42".into(),
    }
}

pub(super) fn weights(options: &MarianOptions) -> Vec<NewItem> {
    let value = |i: usize| (mix(i as u64) >> 40) as f32 / (1 << 24) as f32 - 0.5;
    let item = |(name, [rows, columns]): (String, [usize; 2])| {
        NewItem::floats(&name, &[rows, columns], (0..rows * columns).map(value).collect())
    };
    options.parameters().into_iter().map(item).collect()
}

fn watched(options: &MarianOptions) -> InputStatistics {
    let mut ranges = InputStatistics::default();
    for (name, _) in options.parameters() {
        ranges.observe(&name, &[0.5, -2.0, 1.0]);
    }
    ranges
}

#[test]
fn options_that_are_written_are_read() {
    for decoder in [DecoderKind::Attention, DecoderKind::Ssru] {
        for tying in [Tying::ThreeWay, Tying::Decoder, Tying::Embeddings, Tying::None] {
            for norm in [NormPlace::Post, NormPlace::Pre] {
                for (activation, flag) in
                    [(Activation::Relu, true), (Activation::Silu, false), (Activation::Gelu, true)]
                {
                    let mut options = options(decoder, tying);
                    (options.norm, options.activation) = (norm, activation);
                    (options.norm_embeddings, options.norm_top, options.output_bias) = (flag, flag, flag);
                    assert_eq!(MarianOptions::parse(&options.to_yaml().unwrap()), Ok(options));
                }
            }
        }
    }
    let mut options = options(DecoderKind::Ssru, Tying::ThreeWay);
    options.version.clear();
    assert!(options.to_yaml().unwrap().contains("\nversion: v1.12.42\n"));
    options.activation = Activation::Identity;
    assert!(options.to_yaml().unwrap_err().starts_with("transformer-ffn-activation: "));
}

#[test]
fn floats_are_written_as_they_are() {
    let options = options(DecoderKind::Attention, Tying::Embeddings);
    let items = float_items(&options, weights(&options)).unwrap();
    for file in [open(&bin(&items)).unwrap(), open(&npz(&items)).unwrap()] {
        assert_eq!(file.options().unwrap(), options);
        for item in weights(&options) {
            let NewData::F32(shape, values) = item.data else { unreachable!() };
            let read = file.need(&item.name).unwrap();
            assert_eq!((read.shape, read.floats().unwrap()), (&shape[..], values), "{}", item.name);
        }
    }
}

#[test]
fn matrices_are_quantized_as_marian_conv_does() {
    let options = options(DecoderKind::Ssru, Tying::Decoder);
    let file = open(&bin(&int8_items(&options, weights(&options), None).unwrap())).unwrap();
    assert_eq!(file.items().count(), options.parameters().len() + 1);
    for item in weights(&options) {
        let NewData::F32(_, values) = item.data else { unreachable!() };
        let read = file.need(&item.name).unwrap();
        let matrix = ["_W", "_Wf", "_Wq", "_Wk", "_Wv", "_Wo", "_W1", "_W2", "_Wemb"]
            .iter()
            .any(|ending| item.name.ends_with(ending));
        assert_eq!(read.dtype, if matrix { DType::Int8 } else { DType::F32 }, "{}", item.name);
        let step = if matrix { 1.0 / read.int8().unwrap().multiplier } else { 0.0 };
        let largest = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        if matrix {
            assert_eq!(read.int8().unwrap().multiplier, 127.0 / largest);
        }
        for (x, y) in values.iter().zip(read.floats().unwrap()) {
            assert!((x - y).abs() <= 0.5001 * step, "{}: {x} became {y}", item.name);
        }
    }
    assert_eq!(file.input_multiplier("encoder_l1_self_Wq").unwrap(), None);
}

/// Numbers from −1 to 1.
fn noise(count: usize, seed: u64) -> impl Iterator<Item = f32> {
    (0..count as u64).map(move |i| (mix(seed ^ mix(i)) >> 40) as f32 / (1 << 23) as f32 - 1.0)
}

#[test]
fn small_changes_of_weights_that_were_integers_remain() {
    let n = 64 * 64;
    let mut before: Vec<f32> = noise(n, 1).map(|x| (60.0 * x).round() / 300.0).collect();
    before[0] = 127.0 / 300.0;
    let same = Int8Matrix::quantize(64, 64, &before);
    assert!(before.iter().zip(&same.values).all(|(x, &q)| (f32::from(q) / same.multiplier - x).abs() < 1e-6));
    // A tenth of a step each.
    let change: Vec<f32> = noise(n, 2).map(|x| x.signum() * 0.1 / 300.0).collect();
    let after: Vec<f32> = before.iter().zip(&change).map(|(x, change)| x + change).collect();
    let found = Int8Matrix::quantize(64, 64, &after);
    let kept = found.values.iter().zip(before.iter().zip(&change));
    let kept: f32 = kept.map(|(&q, (x, change))| (f32::from(q) / found.multiplier - x) * change).sum();
    let all: f32 = change.iter().map(|x| x * x).sum();
    assert!((0.7..1.3).contains(&(kept / all)), "{}", kept / all);
    // Weights that never were integers have the usual multiplier.
    let others: Vec<f32> = noise(n, 3).collect();
    let largest = others.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    assert_eq!(Int8Matrix::quantize(64, 64, &others).multiplier, 127.0 / largest);
}

#[test]
fn integers_are_rounded_to_even_and_zeros_can_be_divided() {
    let matrix = Int8Matrix::quantize(2, 3, &[127.0, 0.5, 1.5, -2.5, -127.0, 3.4]);
    assert_eq!((matrix.values, matrix.multiplier), (vec![127, 0, 2, -2, -127, 3], 1.0));
    let zeros = Int8Matrix::quantize(1, 2, &[0.0, 0.0]);
    assert_eq!((zeros.values, zeros.multiplier), (vec![0, 0], 1.0));
}

#[test]
fn inputs_have_multipliers() {
    let options = options(DecoderKind::Ssru, Tying::ThreeWay);
    let items = int8_items(&options, weights(&options), Some(&watched(&options))).unwrap();
    let file = open(&bin(&items)).unwrap();
    for (name, _) in options.parameters() {
        let want = (file.need(&name).unwrap().dtype == DType::Int8).then_some(63.5);
        assert_eq!(file.input_multiplier(&name).unwrap(), want, "{name}");
    }
    for name in ["none_QuantMultA", "Wemb_QuantMultA"] {
        assert_eq!(file.need(name).unwrap().floats().unwrap(), [63.5]);
    }
    // Embeddings alone are looked up, not multiplied.
    let options = self::options(DecoderKind::Ssru, Tying::Decoder);
    let items = int8_items(&options, weights(&options), Some(&watched(&options))).unwrap();
    assert!(items.iter().any(|item| item.name == "decoder_Wemb_QuantMultA"));
    assert!(items.iter().all(|item| item.name != "encoder_Wemb_QuantMultA"));
    let error = int8_items(&options, weights(&options), Some(&InputStatistics::default())).unwrap_err();
    assert!(error.starts_with("the sample gave no inputs of "), "{error}");
}

#[test]
fn a_multiplier_covers_the_mean_and_a_bit_more() {
    let mut ranges = InputStatistics::default();
    for largest in [1.0, -3.0] {
        ranges.observe("a", &[0.5, largest]);
    }
    ranges.observe("zeros", &[0.0]);
    // The mean is 2, the deviation 1.
    assert_eq!(ranges.multiplier("a"), Some((127.0f64 / 3.1) as f32));
    assert_eq!((ranges.multiplier("zeros"), ranges.multiplier("b")), (None, None));
}

#[test]
fn what_cannot_be_written_is_named() {
    let good = options(DecoderKind::Ssru, Tying::ThreeWay);
    for (change, want) in [
        (Box::new(|o: &mut MarianOptions| o.d_model = 48) as Box<dyn Fn(&mut MarianOptions)>, "dim-emb: 48"),
        (Box::new(|o| o.encoder_feed_forward = 100), "transformer-dim-ffn: 100"),
        (Box::new(|o| o.decoder_feed_forward = 65), "transformer-decoder-dim-ffn: 65"),
        (Box::new(|o| o.target_vocabulary = 47), "dim-vocabs: 47"),
        (Box::new(|o| o.tying = Tying::None), "tied-embeddings: false"),
    ] {
        let mut options = good.clone();
        change(&mut options);
        let error = int8_items(&options, weights(&options), None).unwrap_err();
        assert!(error.starts_with(want), "{error}");
        assert!(float_items(&options, weights(&options)).is_ok());
    }
    let mut missing = weights(&good);
    missing.retain(|item| item.name != "decoder_l1_rnn_bf");
    assert_eq!(float_items(&good, missing).unwrap_err(), "item decoder_l1_rnn_bf is missing");
    let mut more = weights(&good);
    more.push(NewItem::floats("Wpos", &[1, 1], vec![0.0]));
    assert!(float_items(&good, more).unwrap_err().starts_with("item Wpos is none that these options need"));
    let mut wrong = weights(&good);
    wrong[0] = NewItem::floats(&wrong[0].name, &[2, 2], vec![0.0; 4]);
    assert!(float_items(&good, wrong).unwrap_err().contains("has the shape [2, 2] and 4 numbers"));
    let mut infinite = weights(&good);
    infinite[1].data = NewData::F32(vec![1, 64], vec![f32::INFINITY; 64]);
    assert!(float_items(&good, infinite).unwrap_err().contains("holds inf at 0"));
}

#[test]
fn vocabularies_grow_by_words_that_never_come() {
    let mut options = options(DecoderKind::Attention, Tying::Decoder);
    options.output_bias = false;
    let mut weights = weights(&options);
    grow_vocabularies(&mut options, &mut weights, (48, 56), 47);
    assert_eq!((options.source_vocabulary, options.target_vocabulary), (48, 56));
    let file = open(&bin(&float_items(&options, weights).unwrap())).unwrap();
    let bias = file.need("decoder_ff_logit_out_b").unwrap().floats().unwrap();
    assert_eq!(bias.iter().take_while(|&&b| b == 0.0).count(), 47);
    assert!(bias[47..].iter().all(|&b| b < -1e8));
    let rows = file.need("encoder_Wemb").unwrap().floats().unwrap();
    assert_eq!(rows[40 * 64..], [0.0; 8 * 64]);
    assert_ne!(rows[39 * 64..40 * 64], [0.0; 64]);
}

#[test]
fn a_learned_shortlist_is_marians() {
    let pairs: Vec<(Vec<u32>, Vec<u32>)> = (0..4).map(|a| (vec![10 + a, 0], vec![20 + a, 30, 0])).collect();
    let pairs: Vec<_> = pairs.iter().map(|(s, t)| (&s[..], &t[..])).collect();
    let list = Shortlist::learn(&pairs, (20, 40), ShortlistSize { frequent: 2, per_word: 1 });
    let lexical = lexical_shortlist(&list, 0, 24);
    let mut file = Vec::new();
    lexical.write(&mut file).unwrap();
    let read = LexicalShortlist::read(&file).unwrap();
    assert_eq!((&read, read.source_words(), read.first()), (&lexical, 24, 1));
    for word in 10..14u32 {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        list.words(&[word, 0], &mut ours);
        read.clone().shortlist((24, 40), false).words(&[word, 0], &mut theirs);
        assert!(ours.iter().all(|word| theirs.contains(word)), "{ours:?} {theirs:?}");
        assert!(ours.contains(&(10 + word)) && ours.contains(&0), "{ours:?}");
    }
    // Marian rejects a file unless the last offset of a list is below the number of ids.
    assert_eq!(read.list(23), [0]);
}
