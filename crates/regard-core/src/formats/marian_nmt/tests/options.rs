//! Tests of supported and rejected options.

use super::*;
use crate::model::{DecoderKind, NormPlace, Tying};
use regard_kernels::Activation;

#[test]
fn options_of_published_models_are_understood() {
    let options = MarianOptions::parse(STUDENT).unwrap();
    let want = MarianOptions {
        source_vocabulary: 32000,
        target_vocabulary: 32000,
        d_model: 256,
        heads: 8,
        encoder_layers: 6,
        decoder_layers: 2,
        encoder_feed_forward: 1536,
        decoder_feed_forward: 1536,
        activation: Activation::Relu,
        decoder: DecoderKind::Ssru,
        norm: NormPlace::Post,
        norm_embeddings: false,
        norm_top: false,
        tying: Tying::ThreeWay,
        output_bias: true,
        trained_positions: false,
        version: "v1.9.56 94aeaa46 2021-04-28 00:28:35 +0100".into(),
    };
    assert_eq!(options, want);
}

#[test]
fn options_are_read_one_by_one() {
    let with = |from: &str, to: &str| {
        assert!(STUDENT.contains(from), "{from}");
        MarianOptions::parse(&STUDENT.replace(from, to))
    };
    let more = |line: &str| MarianOptions::parse(&format!("{STUDENT}{line}\n"));
    assert_eq!(with("tied-embeddings-all: true", "tied-embeddings-all: false").unwrap().tying, Tying::None);
    assert_eq!(
        with("-all: true\ntied-embeddings-src: false", "-src: true").unwrap().tying,
        Tying::Embeddings
    );
    let both = STUDENT
        .replace("tied-embeddings: false", "tied-embeddings: true")
        .replace("-all: true", "-all: false");
    assert_eq!(MarianOptions::parse(&both).unwrap().tying, Tying::Decoder);
    assert_eq!(
        MarianOptions::parse(&both.replace("src: false", "src: true")).unwrap().tying,
        Tying::ThreeWay
    );
    assert_eq!(with("autoreg: rnn", "autoreg: self-attention").unwrap().decoder, DecoderKind::Attention);
    assert_eq!(with("activation: relu", "activation: swish").unwrap().activation, Activation::Silu);
    let pre = with("postprocess: dan", "postprocess: da").unwrap_err();
    assert!(pre.starts_with("transformer-postprocess: \"da\" is not supported"), "{pre}");
    let pre =
        STUDENT.replace("postprocess: dan", "postprocess: da").replace("preprocess: \"\"", "preprocess: n");
    assert_eq!(MarianOptions::parse(&pre).unwrap().norm, NormPlace::Pre);
    assert!(with("postprocess-top: \"\"", "postprocess-top: n").unwrap().norm_top);
    assert!(with("postprocess-emb: d", "postprocess-emb: nd").unwrap().norm_embeddings);
    assert!(!with("output-omit-bias: false", "output-omit-bias: true").unwrap().output_bias);
    assert_eq!(more("transformer-decoder-dim-ffn: 0").unwrap().decoder_feed_forward, 1536);
    assert_eq!(more("transformer-decoder-dim-ffn: 64").unwrap().decoder_feed_forward, 64);
    assert!(more("transformer-train-position-embeddings: true").unwrap().trained_positions);
    // Keys that are unknown or not about transformers.
    assert!(more("something-new: false\nanother: []\nthird: \"\"\nenc-type: bidirectional").is_ok());
}

#[test]
fn unsupported_options_are_refused_by_key_and_value() {
    let with = |from: &str, to: &str| MarianOptions::parse(&STUDENT.replace(from, to)).unwrap_err();
    for (from, to, want) in [
        ("type: transformer", "type: s2s", "type: \"s2s\" is not supported; transformer is expected"),
        ("dec-cell: ssru", "dec-cell: gru", "dec-cell: \"gru\" is not supported; ssru is expected"),
        (
            "autoreg: rnn",
            "autoreg: average-attention",
            "transformer-decoder-autoreg: \"average-attention\" is not supported",
        ),
        ("activation: relu", "activation: tanh", "transformer-ffn-activation: \"tanh\" is not supported"),
        (
            "activation: relu",
            "activation: gelu",
            "transformer-ffn-activation: \"gelu\" is not supported; version \"v1.9.56 ",
        ),
        ("ffn-depth: 2", "ffn-depth: 3", "transformer-ffn-depth: \"3\" is not supported; 2 is expected"),
        ("postprocess: dan", "postprocess: dhn", "transformer-postprocess: \"dhn\" is not supported"),
        ("postprocess: dan", "postprocess: dar", "transformer-postprocess: \"dar\" is not supported"),
        ("preprocess: \"\"", "preprocess: r", "transformer-preprocess: \"r\" is not supported"),
        (
            "postprocess-top: \"\"",
            "postprocess-top: a",
            "transformer-postprocess-top: \"a\" is not supported",
        ),
        (
            "tied-layers: []",
            "tied-layers: [1, 1]",
            "transformer-tied-layers: [\"1\", \"1\"] is not supported",
        ),
        ("right-left: false", "right-left: true", "right-left: \"true\" is not supported"),
        ("ulr: false", "ulr: true", "ulr: \"true\" is not supported"),
        ("lemma-dim-emb: 0", "lemma-dim-emb: 8", "lemma-dim-emb: \"8\" is not supported"),
        ("input-types: []", "input-types: [class]", "input-types: [\"class\"] is not supported"),
        (
            "layer-normalization: false",
            "layer-normalization: true",
            "layer-normalization: true is not supported",
        ),
        (
            "ulr: false",
            "transformer-rnn-projection: true",
            "transformer-rnn-projection: \"true\" is not supported",
        ),
        ("ulr: false", "brand-new: 7", "brand-new: \"7\" is not supported; this key must be off or absent"),
        ("heads: 8", "heads: 7", "transformer-heads: 7 is not supported; a divisor of dim-emb 256"),
        ("heads: 8", "heads: 0", "transformer-heads: \"0\" is not supported; 1 to"),
        ("dim-emb: 256", "dim-emb: 99999999999", "dim-emb: \"99999999999\" is not supported"),
        ("enc-depth: 6\n", "", "enc-depth is missing"),
        (
            "  - 32000\n",
            "  - 5\n  - 5\n",
            "dim-vocabs: [\"5\", \"5\", \"5\", \"5\"] is not supported; two sizes",
        ),
        ("ulr: false", "ulr: maybe", "ulr: \"maybe\" is not supported"),
        ("ulr: false", "type: x", "type is there twice, first as \"transformer\""),
        ("ulr: false", "- x", "line "),
    ] {
        let message = with(from, to);
        assert!(message.starts_with(want), "{from} to {to}: {message}");
    }
}
