//! Small models with random weights and random sentences, for the tests of the search and of
//! training.

use regard_core::decode::{Engine, Hypothesis, SearchOptions, search};
use regard_core::model::{
    Activation, DecoderKind, Direction, EncoderKind, ModelConfig, NormKind, NormPlace, Positions,
    Transformer, Tying,
};
use regard_core::{DType, Isa, Key};

pub(crate) const WORDS: usize = 23;

/// Two layers in each stack, 16 wide.
pub(crate) fn small() -> ModelConfig {
    ModelConfig {
        source_vocabulary: WORDS,
        target_vocabulary: WORDS,
        d_model: 16,
        heads: 2,
        d_ff: 24,
        encoder_layers: 2,
        decoder_layers: 2,
        max_positions: 32,
        relative_reach: 3,
        relative_buckets: 4,
        ..ModelConfig::default()
    }
}

/// Every kind of encoder but the paper's.
pub(crate) fn encoders() -> [(&'static str, ModelConfig); 6] {
    let of = |encoder| ModelConfig { encoder, ..small() };
    let convolutional = |kernel_width, dilated| of(EncoderKind::Convolutional { kernel_width, dilated });
    [
        ("window", of(EncoderKind::Window { window: 2 })),
        ("recurrent, both directions", of(EncoderKind::RECURRENT)),
        ("recurrent", of(EncoderKind::Recurrent { direction: Direction::Forward })),
        ("convolutional", convolutional(3, false)),
        ("wide", convolutional(5, false)),
        ("dilated", convolutional(3, true)),
    ]
}

/// A model of random sizes and parts, the same one for a seed every time.
pub(crate) fn random_config(seed: u64) -> ModelConfig {
    let key = Key::new(seed).child(77);
    let of_try = |n: u64| {
        let key = key.child(n);
        let below = |i: u32, n: u32| (key.bits(i) % n) as usize;
        let yes = |i| below(i, 2) == 1;
        let heads = [1, 2, 3, 4][below(0, 4)];
        let width = 1 + below(1, 24);
        let mixer =
            [EncoderKind::default(), EncoderKind::default(), encoders()[below(2, 6)].1.encoder][below(3, 3)];
        ModelConfig {
            d_model: heads * width,
            heads,
            d_k: yes(4).then(|| 1 + below(5, 20)),
            d_ff: 1 + below(6, 130),
            encoder_layers: 1 + below(7, 2),
            decoder_layers: 1 + below(8, 2),
            norm: [NormPlace::Post, NormPlace::Pre][below(9, 2)],
            norm_kind: [NormKind::Layer, NormKind::Rms][below(10, 2)],
            activation: [Activation::Relu, Activation::Gelu, Activation::Silu][below(11, 3)],
            gated: yes(12),
            linear_bias: yes(13),
            tying: [Tying::ThreeWay, Tying::Decoder, Tying::Embeddings, Tying::None][below(14, 4)],
            positions: [Positions::Sinusoidal, Positions::Learned, Positions::Relative, Positions::Bucketed]
                [below(15, 4)],
            decoder: [DecoderKind::Attention, DecoderKind::Attention, DecoderKind::Ssru][below(16, 3)],
            encoder: mixer,
            ..small()
        }
    };
    (0..).map(of_try).find(|config| config.validate().is_ok()).unwrap()
}

/// Random sentences of one to nine words.
pub(crate) fn sentences(count: usize, seed: u64) -> Vec<Vec<u32>> {
    let key = Key::new(seed);
    (0..count as u32)
        .map(|i| {
            let length = 1 + key.bits(i) % 9;
            (0..length).map(|j| key.child(u64::from(i)).bits(j) % (WORDS as u32 - 1)).collect()
        })
        .collect()
}

/// A model whose weights are large enough for its choices to be clear.
pub(crate) fn model(config: ModelConfig, seed: u64) -> (Transformer, Vec<f32>) {
    let model = Transformer::new(config).unwrap();
    let weights = model.parameters().initialise(seed).iter().map(|w| 1.5 * w).collect();
    (model, weights)
}

/// Beam search of this width, a few tokens longer than the source at most.
pub(crate) fn options(beam: usize) -> SearchOptions {
    SearchOptions { beam, extra_length: 8, ..SearchOptions::default() }
}

pub(crate) fn sources(count: usize) -> Vec<Vec<u32>> {
    sentences(count, 40)
}

pub(crate) fn find(
    of: &(Transformer, Vec<f32>),
    sources: &[Vec<u32>],
    options: &SearchOptions,
) -> Vec<Vec<Hypothesis>> {
    search(&of.0, &of.1, sources, options, Isa::best(), 2).unwrap()
}

pub(crate) fn engine(of: &(Transformer, Vec<f32>)) -> Engine {
    Engine::new(&of.0, &of.1, DType::F32, Isa::best())
}
