//! The MarianMT format: which of our models it can express, `config.json`, and the names of its
//! tensors.
//!
//! Other models are written in the same files under `model_type: regard`: our whole configuration
//! under the key `regard`, and our own names for tensors that Marian does not have.

use super::families::Family;
use super::generation::first;
use super::json::Keys;
use super::t5;
use crate::model::{
    Activation, Combine, DecoderKind, EncoderKind, Frequencies, ModelConfig, NormKind, NormPlace, Parameter,
    Positions, Role, Side, Transformer, Tying,
};
use crate::{DType, Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub(super) const MARIAN: &str = "marian";
pub(super) const REGARD: &str = "regard";
const ARCHITECTURE: &str = "MarianMTModel";
const EPSILON: f32 = 1e-5;

/// Activations by their names in Marian configurations; the first name of a kind is the one
/// written.
const ACTIVATIONS: [(&str, Activation); 4] = [
    ("swish", Activation::Silu),
    ("silu", Activation::Silu),
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
];

/// Why the Marian format cannot express a model; empty if it can.
pub(super) fn why_not(config: &ModelConfig) -> Vec<String> {
    let mut why = Vec::new();
    let mut unless = |fits: bool, reason: String| {
        if !fits {
            why.push(reason);
        }
    };
    unless(config.norm == NormPlace::Post, "norm: Marian is post-norm".into());
    unless(config.norm_kind == NormKind::Layer, "norm_kind: Marian has layer norms".into());
    unless(!config.gated, "gated: Marian's feed-forward layers have no gate".into());
    unless(config.linear_bias, "linear_bias: Marian's linear layers have biases".into());
    unless(config.scale_scores, "scale_scores: Marian divides scores by √d_k".into());
    unless(!config.scale_output, "scale_output: Marian does not scale the decoder's output".into());
    unless(
        config.positions == Positions::Sinusoidal,
        format!("positions: Marian has sinusoidal ones, not {}", name(&config.positions)),
    );
    unless(config.combine == Combine::Add, "combine: Marian adds positions".into());
    unless(config.position_offset == 0, "position_offset: Marian's positions begin with the first".into());
    unless(config.start_token.is_none(), "start_token: Marian starts with padding, the last word".into());
    unless(config.frequencies == Frequencies::Paper, "frequencies: MarianMT has the paper's".into());
    unless(!config.norm_embeddings, "norm_embeddings: MarianMT does not normalise embeddings".into());
    unless(config.decoder == DecoderKind::Attention, "decoder: MarianMT's is attention, not ssru".into());
    unless(config.tying != Tying::Embeddings, "tying: MarianMT ties the output too, or nothing".into());
    unless(
        matches!(config.encoder, EncoderKind::Attention { .. }),
        format!("encoder: Marian's is attention, not {}", config.encoder.name()),
    );
    unless(
        !matches!(config.encoder, EncoderKind::Attention { window: Some(_) }),
        "window: Marian attends to whole sentences".into(),
    );
    let sides = [Side::Source, Side::Target].map(|side| config.head_shape(side));
    for (field, width) in [("d_k", config.d_k), ("d_v", config.d_v)] {
        unless(
            width.is_none_or(|width| sides.iter().all(|side| side.heads * width == config.d_model)),
            format!("{field}: Marian has d_model / heads"),
        );
    }
    unless(config.norm_epsilon == EPSILON, format!("norm_epsilon: Marian has {EPSILON:e}"));
    unless(
        ACTIVATIONS.iter().any(|(_, a)| *a == config.activation),
        "activation: Marian has swish, relu and gelu".into(),
    );
    unless(
        config.source_vocabulary == config.target_vocabulary,
        format!(
            "vocabularies of {} and {} words: Marian has one padding id for both",
            config.source_vocabulary, config.target_vocabulary
        ),
    );
    why
}

fn name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// `config.json` in the form that we write.
#[derive(Debug, Serialize)]
pub(super) struct WrittenConfig<'a> {
    model_type: &'static str,
    architectures: [&'static str; 1],
    vocab_size: usize,
    decoder_vocab_size: usize,
    d_model: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    num_hidden_layers: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
    encoder_ffn_dim: usize,
    decoder_ffn_dim: usize,
    activation_function: &'static str,
    dropout: f32,
    attention_dropout: f32,
    activation_dropout: f32,
    max_position_embeddings: usize,
    scale_embedding: bool,
    share_encoder_decoder_embeddings: bool,
    tie_word_embeddings: bool,
    is_encoder_decoder: bool,
    static_position_embeddings: bool,
    normalize_before: bool,
    normalize_embedding: bool,
    add_final_layer_norm: bool,
    pad_token_id: u32,
    decoder_start_token_id: u32,
    eos_token_id: u32,
    forced_eos_token_id: u32,
    dtype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    regard: Option<&'a ModelConfig>,
}

impl<'a> WrittenConfig<'a> {
    pub(super) fn new(config: &'a ModelConfig, (pad, eos): (u32, u32), dtype: DType) -> Self {
        let marian = why_not(config).is_empty() && dtype != DType::Int8;
        WrittenConfig {
            model_type: if marian { MARIAN } else { REGARD },
            architectures: [if marian { ARCHITECTURE } else { "Regard" }],
            vocab_size: config.source_vocabulary,
            decoder_vocab_size: config.target_vocabulary,
            d_model: config.d_model,
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            num_hidden_layers: config.encoder_layers,
            encoder_attention_heads: config.heads,
            decoder_attention_heads: config.head_shape(Side::Target).heads,
            encoder_ffn_dim: config.d_ff,
            decoder_ffn_dim: config.feed_forward_width(Side::Target),
            activation_function: ACTIVATIONS
                .iter()
                .find(|(_, a)| *a == config.activation)
                .map_or("identity", |(name, _)| name),
            dropout: config.dropout,
            attention_dropout: config.attention_dropout,
            activation_dropout: config.activation_dropout,
            max_position_embeddings: config.max_positions,
            scale_embedding: config.scale_embeddings,
            share_encoder_decoder_embeddings: matches!(config.tying, Tying::ThreeWay | Tying::Embeddings),
            tie_word_embeddings: matches!(config.tying, Tying::ThreeWay | Tying::Decoder),
            is_encoder_decoder: true,
            static_position_embeddings: config.positions == Positions::Sinusoidal,
            normalize_before: config.norm == NormPlace::Pre,
            normalize_embedding: config.norm_embeddings,
            add_final_layer_norm: config.norm == NormPlace::Pre,
            pad_token_id: pad,
            decoder_start_token_id: config.start(),
            eos_token_id: eos,
            forced_eos_token_id: eos,
            dtype: match dtype {
                DType::Bf16 => "bfloat16",
                DType::F16 => "float16",
                DType::Int8 => "int8",
                _ => "float32",
            },
            regard: (!marian).then_some(config),
        }
    }
}

/// Reads the shape of the model from `config.json`.
pub(super) fn read_config(keys: &Keys) -> Result<ModelConfig> {
    let model_type: Option<String> = keys.get("model_type")?;
    let architectures: Vec<String> = keys.get("architectures")?.unwrap_or_default();
    let config = match model_type.as_deref() {
        Some(REGARD) => keys.object(REGARD)?.all()?,
        Some(MARIAN) | None if architectures.iter().any(|a| a == ARCHITECTURE) => read_marian(keys)?,
        Some(MARIAN) if architectures.is_empty() => read_marian(keys)?,
        Some(MARIAN) | None => {
            let found = match architectures.first() {
                Some(first) => format!("{first} is not supported"),
                None => "is missing, and so is model_type".into(),
            };
            return Err(keys.wrong("architectures", format!("{found}; supported is {ARCHITECTURE}")));
        }
        Some(other) => match Family::of(keys)? {
            Some(family) => family.read_config(keys)?,
            None => {
                let names = Family::ALL.map(Family::name).join(", ");
                let message =
                    format!("{other:?} is not supported; supported are {MARIAN}, {names} and {REGARD}");
                return Err(keys.wrong("model_type", message));
            }
        },
    };
    config.validate().map_err(|e| Error::file(keys.path(), e.to_string()))?;
    Ok(config)
}

/// The settings that all classes derived from BART in `transformers` (MarianMT, M2M100, mBART)
/// share. Missing keys have the defaults of those classes.
pub(super) fn bart_shape(keys: &Keys, usual_activation: &str) -> Result<ModelConfig> {
    let rate = |key: &str, default: f32| Ok::<f32, Error>(keys.get(key)?.unwrap_or(default));
    let (heads, decoder_heads) = keys.two("encoder_attention_heads", "decoder_attention_heads")?;
    let (d_ff, decoder_d_ff) = keys.two("encoder_ffn_dim", "decoder_ffn_dim")?;
    let words = keys.need("vocab_size")?;
    Ok(ModelConfig {
        source_vocabulary: words,
        target_vocabulary: words,
        d_model: keys.need("d_model")?,
        heads,
        decoder_heads,
        d_ff,
        decoder_d_ff,
        encoder_layers: keys.need("encoder_layers")?,
        decoder_layers: keys.need("decoder_layers")?,
        norm_epsilon: EPSILON,
        activation: activation(keys, usual_activation)?,
        dropout: rate("dropout", 0.1)?,
        attention_dropout: rate("attention_dropout", 0.0)?,
        activation_dropout: rate("activation_dropout", 0.0)?,
        max_positions: keys.get("max_position_embeddings")?.unwrap_or(1024),
        ..ModelConfig::default()
    })
}

fn read_marian(keys: &Keys) -> Result<ModelConfig> {
    let flag = |key: &str, default: bool| Ok::<bool, Error>(keys.get(key)?.unwrap_or(default));
    let shape = bart_shape(keys, "gelu")?;
    let target_vocabulary = keys.get("decoder_vocab_size")?.unwrap_or(shape.source_vocabulary);
    let shared = flag("share_encoder_decoder_embeddings", true)?;
    let tied = flag("tie_word_embeddings", true)?;
    let tying = match (shared, tied) {
        (true, true) => Tying::ThreeWay,
        (false, true) => Tying::Decoder,
        // If nothing is tied to the output, `transformers` stores the matrix that the sides share
        // once for each side, or once for both: here it is two matrices either way.
        (_, false) => Tying::None,
    };
    for key in ["pad_token_id", "decoder_start_token_id"] {
        let id: Option<u32> = keys.get(key)?;
        let last = target_vocabulary.saturating_sub(1);
        if let Some(id) = id.filter(|&id| id as usize != last) {
            let message = format!("{id} is not the last id of the vocabulary, {last}: not supported yet");
            return Err(keys.wrong(key, message));
        }
    }
    let scale_embeddings = flag("scale_embedding", false)?;
    Ok(ModelConfig { target_vocabulary, tying, scale_embeddings, ..shape })
}

/// The activation named in `config.json`, or `usual`.
fn activation(keys: &Keys, usual: &str) -> Result<Activation> {
    let function: String = keys.get("activation_function")?.unwrap_or_else(|| usual.into());
    activation_named(&function).ok_or_else(|| {
        let message = format!("{function:?} is not supported; supported are swish, silu, relu and gelu");
        keys.wrong("activation_function", message)
    })
}

/// The activation with this name.
pub(super) fn activation_named(name: &str) -> Option<Activation> {
    ACTIVATIONS.iter().find(|(known, _)| *known == name).map(|(_, activation)| *activation)
}

/// The end token in `config.json`.
pub(super) fn read_eos(keys: &Keys) -> Result<Option<u32>> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Id(#[serde(deserialize_with = "first")] Option<u32>);
    Ok(keys.get::<Id>("eos_token_id")?.and_then(|id| id.0))
}

/// A tensor of the file and the range of weights that it holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) name: String,
    /// Alternative names of the same tensor in files of other writers.
    pub(super) also: Vec<String>,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range<usize>,
}

pub(super) const BIAS: &str = "final_logits_bias";
const SHARED: &str = "model.shared.weight";
/// T5's name for it.
const SHARED_BY_T5: &str = "shared.weight";
const SOURCE: &str = "model.encoder.embed_tokens.weight";
const TARGET: &str = "model.decoder.embed_tokens.weight";
pub(super) const OUTPUT: &str = "lm_head.weight";

/// A vocabulary matrix: our name, its name in the file, and alternative names.
///
/// Some published files have a wrong `lm_head` beside the shared matrix, so it comes last.
fn vocabulary_matrix(ours: &str, tying: Tying) -> Option<(&'static str, &'static [&'static str])> {
    match (ours, tying) {
        ("embeddings", Tying::Embeddings) => Some((SHARED, &[SHARED_BY_T5, SOURCE, TARGET])),
        ("embeddings", _) => Some((SHARED, &[SHARED_BY_T5, SOURCE, TARGET, OUTPUT])),
        ("encoder.embeddings", Tying::None) => Some((SOURCE, &[SHARED])),
        ("encoder.embeddings", _) => Some((SOURCE, &[])),
        ("decoder.embeddings", Tying::None) => Some((TARGET, &[SHARED])),
        ("decoder.embeddings", _) => Some((TARGET, &[OUTPUT])),
        ("output", _) => Some((OUTPUT, &[])),
        _ => None,
    }
}

/// The vocabulary matrices of a configuration, before a model is built from it; their offsets are
/// meaningless.
pub(super) fn vocabulary_places(config: &ModelConfig) -> Vec<Place> {
    let ours: &[&str] = match config.tying {
        Tying::ThreeWay => &["embeddings"],
        Tying::Embeddings => &["embeddings", "output"],
        Tying::Decoder => &["encoder.embeddings", "decoder.embeddings"],
        Tying::None => &["encoder.embeddings", "decoder.embeddings", "output"],
    };
    let place = |ours: &&str| {
        let (name, also) = vocabulary_matrix(ours, config.tying)?;
        let rows = if name == SOURCE { config.source_vocabulary } else { config.target_vocabulary };
        let also = owned(also);
        Some(Place { name: name.into(), also, shape: vec![rows, config.d_model], range: 0..0 })
    };
    ours.iter().filter_map(place).collect()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The names in mBART of parameters that Marian does not have.
fn names_of_mbart(ours: &str) -> &'static [&'static str] {
    match ours {
        "encoder.positions" => &["model.encoder.embed_positions.weight"],
        "decoder.positions" => &["model.decoder.embed_positions.weight"],
        "encoder.embedding_norm.weight" => &["model.encoder.layernorm_embedding.weight"],
        "encoder.embedding_norm.bias" => &["model.encoder.layernorm_embedding.bias"],
        "decoder.embedding_norm.weight" => &["model.decoder.layernorm_embedding.weight"],
        "decoder.embedding_norm.bias" => &["model.decoder.layernorm_embedding.bias"],
        _ => &[],
    }
}

/// All tensors of a model, except the bias of the logits.
pub(super) fn places(model: &Transformer) -> Vec<Place> {
    model.parameters().iter().flat_map(|parameter| places_of(parameter, model.config())).collect()
}

/// The tensors of one of our parameters, up to three: queries, keys and values are one matrix here.
pub(super) fn places_of(parameter: &Parameter, config: &ModelConfig) -> Vec<Place> {
    let Parameter { name: ours, shape: [rows, cols], param, role, location, .. } = parameter;
    let start = param.range().start;
    if let Some((name, also)) = vocabulary_matrix(ours, config.tying) {
        let (also, shape) = (owned(also), vec![*rows, *cols]);
        return vec![Place { name: name.into(), also, shape, range: param.range() }];
    }
    let vector = *role == Role::Vector;
    let heads = config.head_shape(location.stack.unwrap_or(Side::Source));
    let (keys, values) = (heads.keys(), heads.values());
    let of_t5 = |block: Option<&str>| t5::tensor_name(ours, block).into_iter().collect();
    let named = |name: String, block: Option<&str>, at: usize, rows: usize, cols: usize| Place {
        name,
        also: of_t5(block),
        shape: if vector { vec![rows * cols] } else { vec![rows, cols] },
        range: start + at..start + at + rows * cols,
    };
    // Split the name of the layer from `weight` or `bias`.
    let (layer, kind) = ours.rsplit_once('.').unwrap_or((ours, ""));
    let split = |stem: &str, attention: &str, blocks: &[(&str, usize)]| {
        let width = if vector { 1 } else { *cols };
        let mut at = 0;
        blocks
            .iter()
            .map(|(block, rows)| {
                let name = format!("model.{stem}{attention}.{block}_proj.{kind}");
                let place = named(name, Some(*block), at, *rows, width);
                at += rows * width;
                place
            })
            .collect()
    };
    if let Some(stem) = layer.strip_suffix("self_attn.qkv") {
        return split(stem, "self_attn", &[("q", keys), ("k", keys), ("v", values)]);
    }
    if let Some(stem) = layer.strip_suffix("cross_attn.kv") {
        return split(stem, "encoder_attn", &[("k", keys), ("v", values)]);
    }
    // Without a gate, T5 has another name for it.
    let block = (!config.gated).then_some("alone");
    const ENDINGS: [(&str, &str); 10] = [
        ("self_attn.out", "self_attn.out_proj"),
        ("self_attn_norm", "self_attn_layer_norm"),
        ("cross_attn.q", "encoder_attn.q_proj"),
        ("cross_attn.out", "encoder_attn.out_proj"),
        ("cross_attn_norm", "encoder_attn_layer_norm"),
        ("ffn.up", "fc1"),
        ("ffn.down", "fc2"),
        ("ffn_norm", "final_layer_norm"),
        // Not in Marian; the name in pre-norm models of `transformers`.
        ("encoder.norm", "encoder.layer_norm"),
        ("decoder.norm", "decoder.layer_norm"),
    ];
    for (ending, theirs) in ENDINGS {
        if let Some(stem) = layer.strip_suffix(ending) {
            return vec![named(format!("model.{stem}{theirs}.{kind}"), block, 0, *rows, *cols)];
        }
    }
    // Learned, relative and concatenated positions keep our names, as do gates and encoders without
    // attention.
    let mut place = named(format!("model.{ours}"), block, 0, *rows, *cols);
    place.also.extend(owned(names_of_mbart(ours)));
    vec![place]
}
