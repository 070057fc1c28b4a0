//! What must hold for every model, whatever its weights.

use crate::small_models::{WORDS, encoders, random_config, sentences, small};
use regard_core::batch::{Batch, Packed};
use regard_core::model::{
    Activation, Combine, DecoderKind, EncoderKind, Frequencies, ModelConfig, NormKind, NormPlace, Positions,
    Transformer, Tying, positions,
};
use regard_core::{Isa, Key};
use regard_kernels::{Attention, Mask, Mat, MatMut, Scratch, attention_forward};
use regard_train::autograd::Tape;
use regard_train::{LossSettings, Taped, layer_outputs, loss};
use regard_train::{StepReport, StepSettings, Trainer};
use std::sync::mpsc::channel;

const D: usize = 16;

/// The architecture of preset `student`.
pub(crate) fn student() -> ModelConfig {
    ModelConfig {
        decoder: DecoderKind::Ssru,
        frequencies: Frequencies::Tensor2tensor,
        norm_epsilon: 1e-6,
        ..small()
    }
}

/// Every architecture: each setting that changes the wiring or the parameters, in every sensible
/// combination.
pub(crate) fn variants() -> Vec<(String, ModelConfig)> {
    let mut all = Vec::new();
    for norm in [NormPlace::Post, NormPlace::Pre] {
        for tying in [Tying::ThreeWay, Tying::Decoder, Tying::None] {
            for positions in [
                Positions::Sinusoidal,
                Positions::Learned,
                Positions::Relative,
                Positions::Bucketed,
                Positions::None,
            ] {
                for combine in [Combine::Add, Combine::Concatenate] {
                    for window in [None, Some(2)] {
                        let encoder = EncoderKind::Attention { window };
                        let config = ModelConfig { norm, tying, positions, combine, encoder, ..small() };
                        if config.validate().is_ok() {
                            all.push((
                                format!("{norm:?} {tying:?} {positions:?} {combine:?} {window:?}"),
                                config,
                            ));
                        }
                    }
                }
            }
        }
    }
    for activation in [Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu] {
        let config = ModelConfig { activation, d_k: Some(3), d_v: Some(5), heads: 3, ..small() };
        all.push((format!("{activation:?} with heads of their own width"), config));
    }
    all.push(("t5".into(), t5()));
    for (name, change) in settings_of_t5() {
        let mut config = small();
        change(&mut config);
        all.push((name.into(), config));
    }
    for (name, encoder) in encoders() {
        for norm in [NormPlace::Post, NormPlace::Pre] {
            for positions in [Positions::Sinusoidal, Positions::None] {
                let config = ModelConfig { norm, positions, ..encoder.clone() };
                all.push((format!("{name} {norm:?} {positions:?}"), config));
            }
        }
    }
    for norm in [NormPlace::Post, NormPlace::Pre] {
        for tying in [Tying::ThreeWay, Tying::Embeddings] {
            let config = ModelConfig { norm, tying, ..student() };
            all.push((format!("student {norm:?} {tying:?}"), config.clone()));
            let config = ModelConfig { norm_embeddings: true, ..config };
            all.push((format!("student {norm:?} {tying:?}, embeddings normalised"), config));
        }
    }
    let config = ModelConfig { decoder_heads: Some(4), decoder_d_ff: Some(12), ..small() };
    all.push(("a decoder of other sizes".into(), config));
    for positions in [Positions::Sinusoidal, Positions::Learned] {
        let config = ModelConfig {
            norm: NormPlace::Pre,
            norm_embeddings: true,
            start_token: Some(2),
            position_offset: 2,
            positions,
            ..small()
        };
        all.push((format!("fairseq's {positions:?} positions and start"), config));
    }
    let config = ModelConfig { decoder_heads: Some(3), d_k: Some(3), d_v: Some(5), ..small() };
    all.push(("a decoder of other sizes, heads of their own width".into(), config));
    all
}

/// The architecture of T5 and MADLAD-400.
pub(crate) fn t5() -> ModelConfig {
    let mut config = ModelConfig { norm: NormPlace::Pre, ..small() };
    settings_of_t5().into_iter().for_each(|(_, change)| change(&mut config));
    config
}

type Change = fn(&mut ModelConfig);

/// In what T5 differs, setting by setting.
fn settings_of_t5() -> [(&'static str, Change); 7] {
    [
        ("RMS norm", |c| c.norm_kind = NormKind::Rms),
        ("a gate", |c| (c.gated, c.activation) = (true, Activation::GeluTanh)),
        ("no bias", |c| c.linear_bias = false),
        ("bucketed positions", |c| c.positions = Positions::Bucketed),
        ("scores without scale", |c| c.scale_scores = false),
        ("heads of their own width", |c| (c.d_k, c.d_v) = (Some(6), Some(6))),
        ("scaled output", |c| (c.scale_output, c.scale_embeddings, c.start_token) = (true, false, Some(0))),
    ]
}

pub(crate) fn batch(count: usize, seed: u64) -> Batch {
    let (source, target) = (sentences(count, seed), sentences(count, seed + 1));
    Batch::new(source.iter().zip(&target).map(|(s, t)| (&s[..], &t[..])), WORDS as u32 - 1).unwrap()
}

pub(crate) fn trainer(config: ModelConfig, threads: usize) -> Trainer {
    let model = Transformer::new(config).unwrap();
    let weights = model.parameters().initialise(3);
    Trainer::new(model, weights, StepSettings::default(), Isa::best(), threads, 7).unwrap()
}

fn encode(model: &Transformer, weights: &[f32], source: &[&[u32]]) -> Vec<f32> {
    let mut tape = Tape::new(Isa::best(), 1);
    let packed = Packed::new(source.iter().copied());
    let mut e = Taped::new(&mut tape, model, weights, None, (&packed, &packed), None).unwrap();
    let x = model.encode(&mut e);
    e.value(x).to_vec()
}

fn decode(model: &Transformer, weights: &[f32], source: &[&[u32]], target: &[&[u32]]) -> Vec<f32> {
    let mut tape = Tape::new(Isa::best(), 1);
    let (source, target) = (Packed::new(source.iter().copied()), Packed::new(target.iter().copied()));
    let mut e = Taped::new(&mut tape, model, weights, None, (&source, &target), None).unwrap();
    let memory = model.encode(&mut e);
    let x = model.decode(&mut e, memory);
    e.value(x).to_vec()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn every_parameter_of_every_variant_has_a_gradient() {
    for (name, config) in variants() {
        let mut trainer = trainer(config, 2);
        trainer.step(&[batch(40, 1)], 0.0).unwrap();
        for parameter in trainer.model().parameters() {
            let gradient = &trainer.gradient()[parameter.param.range()];
            let largest = gradient.iter().fold(0f32, |m, g| m.max(g.abs()));
            assert!(largest > 1e-6, "{name}: {} has no gradient", parameter.name);
        }
    }
}

/// What leaves for other ranks before the backward pass is over must not change any more, and can
/// leave no sooner.
#[test]
fn gradients_are_final_behind_their_marks() {
    for (name, config) in variants() {
        let (model, batch) = (Transformer::new(config).unwrap(), batch(10, 1));
        let weights = model.parameters().initialise(3);
        let (passed, seen) = channel();
        let mut tape = Tape::new(Isa::best(), 1);
        tape.set_backward_hook(Some(Box::new(move |mark, gradients| {
            passed.send((mark, gradients.to_vec())).unwrap();
        })));
        let mut gradients = vec![0.0; weights.len()];
        let to = Some(&mut gradients[..]);
        loss(&mut tape, &model, &weights, to, &batch, LossSettings::PLAIN, None).unwrap();
        let seen: Vec<(usize, Vec<f32>)> = seen.try_iter().collect();
        let marks = model.config().encoder_layers + model.config().decoder_layers + 2;
        assert!(seen.iter().map(|(mark, _)| *mark).eq((0..marks).rev()), "{name}");
        let at = |mark: usize| &seen[marks - 1 - mark].1;
        for parameter in model.parameters() {
            let range = parameter.param.range();
            match model.final_after(range.clone()) {
                Some(mark) => {
                    assert_eq!(
                        at(mark)[range.clone()],
                        gradients[range.clone()],
                        "{name} {}",
                        parameter.name
                    );
                    assert_ne!(at(mark + 1)[range.clone()], gradients[range], "{name} {}", parameter.name);
                }
                None => assert!(!parameter.name.contains(".layers."), "{name} {}", parameter.name),
            }
        }
        assert_eq!(model.final_after(0..weights.len()), None, "{name}: the embeddings come last");
    }
}

#[test]
fn without_positions_shuffled_words_give_shuffled_vectors() {
    let order = [3, 0, 4, 1, 2];
    let sentence = [5u32, 1, 9, 2, 7];
    let shuffled = order.map(|i| sentence[i]);
    for (positions, same) in
        [(Positions::None, true), (Positions::Sinusoidal, false), (Positions::Relative, false)]
    {
        let model = Transformer::new(ModelConfig { positions, ..small() }).unwrap();
        let weights = model.parameters().initialise(5);
        let plain = encode(&model, &weights, &[&sentence]);
        let other = encode(&model, &weights, &[&shuffled]);
        let back: Vec<f32> = order.iter().flat_map(|&i| plain[i * D..(i + 1) * D].to_vec()).collect();
        let difference = largest_difference(&back, &other);
        assert_eq!(difference < 1e-5, same, "{positions:?}: {difference}");
    }
}

#[test]
fn an_encoder_reaches_as_far_as_its_kind_says() {
    // Two layers over 12 tokens: which outputs change when token 4 does.
    let reached: [&[usize]; 6] = [
        &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        &[4, 5, 6, 7, 8, 9, 10, 11],
        &[2, 3, 4, 5, 6],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8],
    ];
    let mut sentence: Vec<u32> = (0..12).collect();
    for ((name, config), reached) in encoders().into_iter().zip(reached) {
        let model = Transformer::new(config).unwrap();
        let weights = model.parameters().initialise(5);
        sentence[4] = 4;
        let before = encode(&model, &weights, &[&sentence]);
        sentence[4] = 20;
        let after = encode(&model, &weights, &[&sentence]);
        let changed: Vec<usize> =
            (0..12).filter(|i| before[i * D..(i + 1) * D] != after[i * D..(i + 1) * D]).collect();
        assert_eq!(changed, reached, "{name}");
    }
}

#[test]
fn nothing_of_the_future_reaches_the_past() {
    for (name, config) in variants() {
        let model = Transformer::new(config).unwrap();
        let weights = model.parameters().initialise(6);
        let source = [4u32, 8, 15];
        let (mut target, kept) = ([22u32, 1, 2, 3, 4, 5], 3);
        let before = decode(&model, &weights, &[&source], &[&target]);
        target[kept..].copy_from_slice(&[9, 10, 11]);
        let after = decode(&model, &weights, &[&source], &[&target]);
        assert_eq!(before[..kept * D], after[..kept * D], "{name}");
        assert!(largest_difference(&before[kept * D..], &after[kept * D..]) > 1e-3, "{name}");
    }
}

#[test]
fn a_sentence_does_not_depend_on_its_batch() {
    for (name, config) in variants() {
        let model = Transformer::new(config).unwrap();
        let weights = model.parameters().initialise(8);
        let (source, target) = (sentences(9, 20), sentences(9, 21));
        let s: Vec<&[u32]> = source.iter().map(Vec::as_slice).collect();
        let t: Vec<&[u32]> = target.iter().map(Vec::as_slice).collect();
        let together = decode(&model, &weights, &s, &t);
        let mut at = 0;
        for i in 0..s.len() {
            let alone = decode(&model, &weights, &s[i..=i], &t[i..=i]);
            let difference = largest_difference(&alone, &together[at..at + alone.len()]);
            assert!(difference <= 1e-6, "{name}: sentence {i} differs by {difference}");
            at += alone.len();
        }
    }
}

#[test]
fn the_vectors_between_layers_are_those_that_encoder_and_decoder_make() {
    for positions in [Positions::Sinusoidal, Positions::None] {
        for combine in [Combine::Add, Combine::Concatenate] {
            let config = ModelConfig { positions, combine, ..small() };
            let Ok(model) = Transformer::new(config) else { continue };
            let weights = model.parameters().initialise(5);
            let (source, target) = ([3u32, 1, 4, 0], [1u32, 5, 9, 0]);
            let pair = Batch::new([(&source[..], &target[..])], WORDS as u32 - 1).unwrap();
            let seen = layer_outputs(&mut Tape::new(Isa::best(), 1), &model, &weights, &pair).unwrap();
            assert_eq!((seen.encoder.len(), seen.decoder.len()), (3, 3));
            assert!(seen.encoder.iter().chain(&seen.decoder).all(|x| x.len() == 4 * D));
            assert_eq!(seen.encoder[2], encode(&model, &weights, &[&source]));
            let read = [WORDS as u32 - 1, 1, 5, 9];
            assert_eq!(seen.decoder[2], decode(&model, &weights, &[&source], &[&read]));
            assert_ne!(seen.encoder[0], seen.encoder[1]);
        }
    }
}

#[test]
fn attention_rows_sum_to_one() {
    let (heads, d_k, lengths) = (3, 4, [5usize, 1, 40]);
    let offsets: Vec<usize> = std::iter::once(0)
        .chain(lengths.iter().scan(0, |a, n| {
            *a += n;
            Some(*a)
        }))
        .collect();
    let n = offsets[3];
    let key = Key::new(1);
    let x: Vec<f32> = (0..n * heads * d_k).map(|i| 6.0 * key.uniform(i as u32) - 3.0).collect();
    for isa in Isa::available() {
        for (causal, window) in [(false, None), (true, None), (false, Some(3))] {
            let mask = Mask { causal, window };
            let shape = Attention {
                heads,
                d_k,
                d_v: d_k,
                scale: 0.5,
                mask,
                queries: &offsets,
                keys: &offsets,
                dropout: None,
                relative: None,
            };
            let m = Mat::new(&x, n, heads * d_k);
            let (mut out, mut sums) = (vec![0.0; x.len()], vec![0.0; n * heads]);
            let mut weights = vec![0.0; lengths.iter().map(|n| heads * n * n).sum()];
            let to = MatMut::new(&mut out, n, heads * d_k);
            attention_forward(
                isa,
                &shape,
                (m, m, m),
                to,
                &mut sums,
                Some(&mut weights),
                &mut Scratch::default(),
            );
            let mut rest = &weights[..];
            for n in lengths {
                let (these, others) = rest.split_at(heads * n * n);
                rest = others;
                for (i, row) in these.chunks(n).enumerate() {
                    let sum: f32 = row.iter().sum();
                    assert!((sum - 1.0).abs() < 1e-5, "{isa} {mask:?}: a row sums to {sum}");
                    let seen = mask.range(i % n, n, n);
                    assert!(
                        row.iter().enumerate().all(|(j, w)| (*w > 0.0) == seen.contains(&j)),
                        "{isa} {mask:?}"
                    );
                }
            }
        }
    }
}

fn three_steps(threads: usize, batches: &[Vec<Batch>]) -> (Vec<StepReport>, Trainer) {
    let config = ModelConfig { attention_dropout: 0.2, activation_dropout: 0.2, dropout: 0.2, ..small() };
    let mut trainer = trainer(config, threads);
    let reports = batches.iter().map(|b| trainer.step(b, 0.01).unwrap()).collect();
    (reports, trainer)
}

#[test]
fn a_second_run_is_the_same_bit_for_bit() {
    let batches: Vec<Vec<Batch>> = (0..3).map(|i| vec![batch(30, 10 * i)]).collect();
    for threads in [1, 2, 3] {
        let (first, one) = three_steps(threads, &batches);
        let (second, two) = three_steps(threads, &batches);
        assert_eq!(one.weights(), two.weights());
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(
                (a.loss.to_bits(), a.gradient_norm.to_bits()),
                (b.loss.to_bits(), b.gradient_norm.to_bits())
            );
        }
    }
}

#[test]
fn two_passes_that_agree_add_nothing_and_two_that_drop_differently_do() {
    let step = |rate: f32, r_drop: Option<f32>, threads: usize| {
        let config = ModelConfig { attention_dropout: rate, dropout: rate, ..small() };
        let settings = StepSettings { r_drop, ..StepSettings::default() };
        let model = Transformer::new(config).unwrap();
        let weights = model.parameters().initialise(7);
        let mut trainer = Trainer::new(model, weights, settings, Isa::best(), threads, 1).unwrap();
        let loss = trainer.step(&[batch(30, 4)], 0.01).unwrap().loss;
        (loss, trainer.gradient().to_vec())
    };
    let (loss, gradient) = step(0.0, None, 1);
    for threads in [1, 2] {
        let (twice, same) = step(0.0, Some(5.0), threads);
        assert!((twice - loss).abs() < 1e-5 * loss && largest_difference(&same, &gradient) < 1e-5);
    }
    let without = step(0.3, Some(1e-9), 2).0;
    assert!(step(0.3, Some(5.0), 2).0 > 1.001 * without);
}

#[test]
fn a_sampled_softmax_is_the_same_on_one_thread_as_on_three_and_none_where_it_leaves_little_out() {
    let step = |softmax_sample: Option<usize>, threads: usize| {
        let settings = StepSettings { softmax_sample, ..StepSettings::default() };
        let config = ModelConfig { source_vocabulary: 800, target_vocabulary: 800, ..small() };
        let model = Transformer::new(config).unwrap();
        let weights = model.parameters().initialise(7);
        let mut trainer = Trainer::new(model, weights, settings, Isa::best(), threads, 1).unwrap();
        trainer.step(&[batch(30, 4)], 0.01).unwrap();
        let first = trainer.gradient().to_vec();
        let second = trainer.step(&[batch(30, 4)], 0.01).unwrap().loss;
        (first, second)
    };
    let (gradient, loss) = step(Some(100), 1);
    let (other, second) = step(Some(100), 3);
    assert!(largest_difference(&gradient, &other) < 1e-6 && (loss - second).abs() < 1e-4 * loss);
    let (all, _) = step(None, 1);
    assert!(largest_difference(&gradient, &all) > 1e-4, "a sample has another gradient than all words");
    assert!(largest_difference(&step(Some(790), 1).0, &all) < 1e-6);
}

#[test]
fn every_encoder_learns_the_same_on_one_thread_as_on_three() {
    for (name, config) in encoders() {
        let step = |threads: usize| {
            let mut trainer = trainer(ModelConfig { dropout: 0.2, ..config.clone() }, threads);
            trainer.step(&[batch(30, 2)], 0.01).unwrap();
            trainer.gradient().to_vec()
        };
        let difference = largest_difference(&step(1), &step(3));
        assert!(difference < 1e-6, "{name}: {difference}");
    }
}

#[test]
fn threads_and_splits_change_only_the_rounding() {
    // Dropout is on: its random numbers must be the same for every split.
    let batches: Vec<Vec<Batch>> = (0..3).map(|i| vec![batch(30, 10 * i)]).collect();
    let (one, _) = three_steps(1, &batches);
    let (_, first) = three_steps(1, &batches[..1]);
    for threads in [2, 3, 8, 11] {
        let (other, _) = three_steps(threads, &batches);
        for (a, b) in one.iter().zip(&other) {
            assert!((a.loss - b.loss).abs() < 1e-5 * a.loss, "{threads} threads: {} and {}", a.loss, b.loss);
        }
        // One step's gradient, not three steps' weights: Adam turns the rounding of a gradient near
        // zero into a whole step.
        let (_, other) = three_steps(threads, &batches[..1]);
        let difference = largest_difference(first.gradient(), other.gradient());
        assert!(difference < 1e-6, "{threads} threads: {difference}");
    }
}

/// The same over models of random sizes and parts.
#[test]
fn random_models_learn_the_same_on_one_two_and_three_threads() {
    for seed in 0..20 {
        let config = ModelConfig { attention_dropout: 0.1, dropout: 0.2, ..random_config(seed) };
        let step = |threads: usize| {
            let mut trainer = trainer(config.clone(), threads);
            let loss = trainer.step(&[batch(5 + seed as usize, seed)], 0.01).unwrap().loss;
            (loss, trainer.gradient().to_vec())
        };
        let (loss, gradient) = step(1);
        // The rounding of a sum is in proportion to what is added.
        let largest = gradient.iter().fold(1.0, |m: f32, g| m.max(g.abs()));
        for threads in [2, 3] {
            let (other_loss, other) = step(threads);
            assert!((loss - other_loss).abs() < 1e-5 * loss, "{config:?}: {loss} and {other_loss}");
            let difference = largest_difference(&gradient, &other);
            assert!(difference < 1e-6 * largest, "{threads} threads, {config:?}: {difference}");
        }
    }
}

#[test]
fn accumulated_batches_are_one_large_batch() {
    let config = ModelConfig { dropout: 0.0, ..small() };
    let whole = batch(24, 5);
    let parts = [whole.part(0..7), whole.part(7..24)];
    let (mut one, mut two) = (trainer(config.clone(), 2), trainer(config, 2));
    let (a, b) = (one.step(&[whole], 0.01).unwrap(), two.step(&parts, 0.01).unwrap());
    assert!((a.loss - b.loss).abs() < 1e-6 && a.target_tokens == b.target_tokens);
    assert!(largest_difference(one.gradient(), two.gradient()) < 1e-6);
}

#[test]
fn the_padding_row_stays_zero() {
    for tying in [Tying::ThreeWay, Tying::Decoder, Tying::Embeddings, Tying::None] {
        let mut trainer = trainer(ModelConfig { tying, ..small() }, 2);
        for i in 0..5 {
            trainer.step(&[batch(10, i)], 0.01).unwrap();
        }
        let mut tables = 0;
        for parameter in trainer.model().parameters().iter().filter(|p| p.shape == [WORDS, D]) {
            let row = &trainer.weights()[parameter.param.range()][(WORDS - 1) * D..];
            assert!(row.iter().all(|&x| x == 0.0), "{}", parameter.name);
            tables += 1;
        }
        assert!(tables >= 1);
    }
}

#[test]
fn memory_stops_growing_after_the_first_steps() {
    for (name, config) in encoders().into_iter().chain([("attention", small()), ("student", student())]) {
        let mut trainer = trainer(config, 2);
        let longest = batch(50, 3);
        for _ in 0..2 {
            trainer.step(std::slice::from_ref(&longest), 1e-3).unwrap();
        }
        let before = trainer.tape_capacity();
        for i in 0..20 {
            trainer.step(&[longest.part(0..10 + i)], 1e-3).unwrap();
        }
        trainer.step(&[longest], 1e-3).unwrap();
        assert_eq!(trainer.tape_capacity(), before, "{name}");
    }
}

/// Pairs of sentences of these lengths.
fn batch_of_lengths(pairs: usize, source: usize, target: usize, seed: u64) -> Batch {
    let key = Key::new(seed);
    let sentence = |i: usize, length: usize| -> Vec<u32> {
        (0..length).map(|j| key.child(i as u64).bits(j as u32) % (WORDS as u32 - 1)).collect()
    };
    let pairs: Vec<_> = (0..pairs).map(|i| (sentence(2 * i, source), sentence(2 * i + 1, target))).collect();
    Batch::new(pairs.iter().map(|(s, t)| (&s[..], &t[..])), WORDS as u32 - 1).unwrap()
}

/// Batches of long sources and of long targets need about the memory of one of them, and after an
/// epoch no more is allocated in whatever order they come.
#[test]
fn memory_is_that_of_the_largest_batch_whatever_the_shapes() {
    let shapes =
        [(40, 30, 4), (40, 4, 30), (70, 17, 17), (200, 4, 6), (20, 31, 29), (90, 12, 13), (65, 18, 16)];
    let batches: Vec<Batch> =
        shapes.iter().zip(1..).map(|(&(pairs, s, t), seed)| batch_of_lengths(pairs, s, t, seed)).collect();
    for (name, config) in [("attention", small()), ("student", student())] {
        let alone = |batch: &Batch| {
            let mut trainer = trainer(config.clone(), 2);
            for _ in 0..2 {
                trainer.step(std::slice::from_ref(batch), 1e-3).unwrap();
            }
            trainer.step(&[batch.part(0..2)], 1e-3).unwrap();
            trainer.tape_capacity()
        };
        let largest = batches.iter().map(alone).max().unwrap();
        let mut trainer = trainer(config.clone(), 2);
        let mut epoch = |first: usize| {
            for i in 0..batches.len() {
                trainer.step(std::slice::from_ref(&batches[(first + 3 * i) % batches.len()]), 1e-3).unwrap();
            }
            // What the last batch has added is merged when the next one begins.
            trainer.step(&[batches[0].part(0..2)], 1e-3).unwrap();
            trainer.tape_capacity()
        };
        let first = epoch(0);
        // A buffer for each value and each batch shape would hold nearly twice as much.
        assert!(
            first as f64 <= 1.2 * largest as f64,
            "{name}: {first} numbers, {largest} for the largest batch"
        );
        for n in 1..batches.len() {
            let now = epoch(n);
            assert!(now as f64 <= 1.03 * first as f64, "{name}: {first} numbers, then {now}");
        }
    }
}

#[test]
fn a_small_model_learns_its_batch_by_heart() {
    let mut trainer = trainer(ModelConfig { dropout: 0.0, ..small() }, 2);
    let batch = batch(8, 1);
    let first = trainer.step(std::slice::from_ref(&batch), 3e-3).unwrap().loss;
    let mut last = first;
    for _ in 0..150 {
        last = trainer.step(std::slice::from_ref(&batch), 3e-3).unwrap().loss;
    }
    // With label smoothing 0.1 over 22 words, the least possible loss is the entropy of the
    // smoothed target, 0.62.
    assert!(first > 3.0 && last < 0.85, "{first} to {last}");
}

#[test]
fn a_loss_that_is_not_finite_leaves_the_weights_alone() {
    let model = Transformer::new(small()).unwrap();
    let mut weights = model.parameters().initialise(3);
    weights[0] = f32::NAN;
    let before: Vec<u32> = weights.iter().map(|x| x.to_bits()).collect();
    let mut trainer = Trainer::new(model, weights, StepSettings::default(), Isa::best(), 2, 7).unwrap();
    let report = trainer.step(&[batch(40, 1)], 0.01).unwrap();
    assert!(!report.applied && !report.gradient_norm.is_finite());
    assert_eq!(trainer.weights().iter().map(|x| x.to_bits()).collect::<Vec<_>>(), before);
}

#[test]
fn ids_and_lengths_that_the_model_lacks_are_named() {
    let model =
        Transformer::new(ModelConfig { positions: Positions::Learned, max_positions: 4, ..small() }).unwrap();
    let weights = model.parameters().initialise(1);
    let refuse = |source: &[u32], target: &[u32]| {
        let mut trainer =
            Trainer::new(model.clone(), weights.clone(), StepSettings::default(), Isa::best(), 1, 1).unwrap();
        let batch = Batch::new([(source, target)], WORDS as u32 - 1).unwrap();
        trainer.step(&[batch], 0.1).unwrap_err().to_string()
    };
    assert_eq!(refuse(&[WORDS as u32], &[1]), "source: token 23 is not in the vocabulary of 23");
    assert_eq!(refuse(&[1], &[22]), "loss: target token 22 is not one of the 22 words that can come");
    assert_eq!(refuse(&[1; 5], &[1]), "source: sentence 0 has 5 tokens, the model has 4 positions");
    let mut trainer =
        Trainer::new(model.clone(), weights.clone(), StepSettings::default(), Isa::best(), 1, 1).unwrap();
    assert_eq!(trainer.step(&[], 0.1).unwrap_err().to_string(), "training step: there are no target tokens");
    assert!(Trainer::new(model, weights, StepSettings::default(), Isa::best(), 0, 1).is_err());
}

#[test]
fn a_shift_of_position_is_a_rotation_that_depends_on_the_shift_alone() {
    let (n, d, shift) = (60, 12, 7);
    let table = positions::sinusoidal(n, d);
    for p in 0..n - shift {
        for i in 0..d / 2 {
            let angle = shift as f64 / 10_000f64.powf(2.0 * i as f64 / d as f64);
            let (sin, cos) = (f64::from(table[p * d + i]), f64::from(table[p * d + d / 2 + i]));
            let moved = sin * angle.cos() + cos * angle.sin();
            assert!((moved - f64::from(table[(p + shift) * d + i])).abs() < 1e-6);
        }
    }
}
