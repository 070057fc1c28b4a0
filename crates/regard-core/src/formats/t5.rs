//! Folders of T5 and MADLAD-400 (`t5`), as `transformers` writes them: their configuration, the
//! names of their tensors, and their tokenizer.

use super::json::Keys;
use super::marian;
use crate::model::{Activation, ModelConfig, NormKind, NormPlace, Positions, Tying};
use crate::text::{PAD, SentencePiece, SpmFile, Tokenizer, TokenizerPair};
use crate::{Error, Result, bounded};
use serde_json::{Value, json};
use std::path::Path;

/// The file of the tokenizer, if there is no `tokenizer.json`.
const SPM: &str = "spiece.model";

/// Reads the shape from `config.json`; missing keys have the defaults of `transformers`' class.
pub(super) fn read_config(keys: &Keys) -> Result<ModelConfig> {
    let number = |key: &str| keys.need::<usize>(key);
    let or = |key: &str, usual: usize| Ok::<usize, Error>(keys.get(key)?.unwrap_or(usual));
    let (words, layers, d_k) = (number("vocab_size")?, number("num_layers")?, number("d_kv")?);
    let dropout = keys.get("dropout_rate")?.unwrap_or(0.1);
    let (gated, activation) = feed_forward(keys)?;
    // Newer folders always say that the output is tied, and have a separate key for whether it is
    // scaled.
    let tied = keys.get("tie_word_embeddings")?.unwrap_or(true);
    Ok(ModelConfig {
        source_vocabulary: words,
        target_vocabulary: words,
        start_token: Some(keys.get("decoder_start_token_id")?.unwrap_or(0)),
        d_model: number("d_model")?,
        heads: number("num_heads")?,
        d_k: Some(d_k),
        d_v: Some(d_k),
        d_ff: number("d_ff")?,
        encoder_layers: layers,
        decoder_layers: or("num_decoder_layers", layers)?,
        gated,
        linear_bias: false,
        norm: NormPlace::Pre,
        norm_kind: NormKind::Rms,
        norm_epsilon: keys.get("layer_norm_epsilon")?.unwrap_or(1e-6),
        activation,
        dropout,
        attention_dropout: dropout,
        activation_dropout: dropout,
        tying: if tied { Tying::ThreeWay } else { Tying::Embeddings },
        scale_embeddings: false,
        scale_scores: false,
        scale_output: keys.get("scale_decoder_outputs")?.unwrap_or(tied),
        positions: Positions::Bucketed,
        max_positions: or("n_positions", 512)?,
        relative_buckets: or("relative_attention_num_buckets", 32)?,
        relative_reach: or("relative_attention_max_distance", 128)?,
        ..ModelConfig::default()
    })
}

/// Whether the feed-forward layers have a gate, and their activation.
fn feed_forward(keys: &Keys) -> Result<(bool, Activation)> {
    const KEY: &str = "feed_forward_proj";
    let name: String = keys.get(KEY)?.unwrap_or_else(|| "relu".into());
    let (gated, function) = match name.strip_prefix("gated-") {
        // The first gated models used `gelu` for the tanh approximation.
        Some("gelu") => (true, "gelu_new"),
        Some(function) => (true, function),
        None => (false, name.as_str()),
    };
    let activation = match function {
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        function => marian::activation_named(function).ok_or_else(|| {
            let message = format!(
                "{name:?} is not supported; supported are relu, gelu, gelu_new, silu and swish, alone or behind gated-"
            );
            keys.wrong(KEY, message)
        })?,
    };
    Ok((gated, activation))
}

/// Which matrices are tied, as determined by the weights file: it has a separate output matrix or
/// not.
pub(super) fn tying(has_output: bool) -> Tying {
    if has_output { Tying::Embeddings } else { Tying::ThreeWay }
}

/// The tensor whose presence means that there are more layers than the configuration says.
pub(super) fn layer_tensor(stack: &str, layer: usize) -> String {
    format!("{stack}.block.{layer}.layer.0.SelfAttention.q.weight")
}

/// The name in T5 of one of our parameters, or of a block of one (`q`, `k` or `v`).
pub(super) fn tensor_name(ours: &str, block: Option<&str>) -> Option<String> {
    match ours {
        "encoder.distances" | "decoder.distances" => {
            let stack = &ours[..7];
            return Some(format!("{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"));
        }
        "encoder.norm.weight" | "decoder.norm.weight" => {
            return Some(format!("{}.final_layer_norm.weight", &ours[..7]));
        }
        _ => {}
    }
    let (stack, rest) = ours.split_once(".layers.")?;
    let (layer, rest) = rest.split_once('.')?;
    let part = rest.strip_suffix(".weight")?;
    let feed_forward = if stack == "decoder" { 2 } else { 1 };
    let (sub_layer, name) = match (part, block) {
        ("self_attn.qkv", Some(block)) => (0, format!("SelfAttention.{block}")),
        ("self_attn.out", _) => (0, "SelfAttention.o".into()),
        ("self_attn_norm", _) => (0, "layer_norm".into()),
        ("cross_attn.q", _) => (1, "EncDecAttention.q".into()),
        ("cross_attn.kv", Some(block)) => (1, format!("EncDecAttention.{block}")),
        ("cross_attn.out", _) => (1, "EncDecAttention.o".into()),
        ("cross_attn_norm", _) => (1, "layer_norm".into()),
        ("ffn.gate", _) => (feed_forward, "DenseReluDense.wi_0".into()),
        ("ffn.up", Some("alone")) => (feed_forward, "DenseReluDense.wi".into()),
        ("ffn.up", _) => (feed_forward, "DenseReluDense.wi_1".into()),
        ("ffn.down", _) => (feed_forward, "DenseReluDense.wo".into()),
        ("ffn_norm", _) => (feed_forward, "layer_norm".into()),
        _ => return None,
    };
    Some(format!("{stack}.block.{layer}.layer.{sub_layer}.{name}.weight"))
}

/// The tokenizer of a folder: its `tokenizer.json`, or else the SentencePiece model. Those of
/// MADLAD-400 have no padding, which then gets the id after the last.
pub(super) fn load_tokenizers(folder: &Path) -> Result<TokenizerPair> {
    let (json, spm) = (folder.join(TokenizerPair::FILE), folder.join(SPM));
    if json.exists() {
        let text = bounded::read_text(&json, bounded::MAX_TEXT_BYTES)?;
        let text = if text.contains(&format!("{PAD:?}")) { text } else { with_padding(&text, &json)? };
        return Ok(TokenizerPair::joint(Tokenizer::from_json(text, &json)?));
    }
    if !spm.exists() {
        let message =
            format!("there is neither {} nor {SPM}; the tokenizer is one of them", TokenizerPair::FILE);
        return Err(Error::file(folder, message));
    }
    let file = bounded::read(&spm, bounded::MAX_TEXT_BYTES)?;
    let pieces = SentencePiece::piece_list(&file, &spm)?;
    if pieces.iter().any(|piece| piece == PAD) {
        let ids = pieces.into_iter().zip(0..).collect();
        return TokenizerPair::from_spm_and_ids((file, &spm), (ids, &spm));
    }
    TokenizerPair::from_spm(SpmFile { bytes: file, path: &spm, vocabulary: None }, None)
}

/// A `tokenizer.json` with padding added after its last id.
fn with_padding(text: &str, path: &Path) -> Result<String> {
    let wrong = |message: String| Error::file(path, message);
    let mut file: Value = serde_json::from_str(text).map_err(|e| wrong(format!("not JSON: {e}")))?;
    let pieces = match &file["model"]["vocab"] {
        Value::Array(pieces) => pieces.len(),
        Value::Object(pieces) => pieces.len(),
        _ => 0,
    };
    let Some(added) = file["added_tokens"].as_array_mut() else {
        return Err(wrong("has no list of added_tokens".into()));
    };
    let behind = added.iter().filter_map(|token| token["id"].as_u64()).map(|id| id as usize + 1);
    let id = behind.max().unwrap_or(0).max(pieces);
    added.push(json!({
        "id": id, "content": PAD, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true,
    }));
    Ok(file.to_string())
}
