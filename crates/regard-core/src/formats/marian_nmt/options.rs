//! `special:model.yml`: the options that Marian stores with a model, as far as they determine the
//! architecture.
//!
//! A key with an unsupported value is rejected by name, and so is an unknown key, unless it is
//! switched off (`false`, `0`, empty).

use super::yaml::{self, Yaml};
use crate::model::{DecoderKind, NormPlace, Tying};
use regard_kernels::Activation;
use std::collections::HashMap;

/// The architecture of a Marian transformer.
#[derive(Clone, Debug, PartialEq)]
pub struct MarianOptions {
    /// `dim-vocabs`: the number of source words.
    pub source_vocabulary: usize,
    /// `dim-vocabs`: the number of target words.
    pub target_vocabulary: usize,
    /// `dim-emb`: the width of the model.
    pub d_model: usize,
    /// `transformer-heads`.
    pub heads: usize,
    /// `enc-depth`.
    pub encoder_layers: usize,
    /// `dec-depth`.
    pub decoder_layers: usize,
    /// `transformer-dim-ffn`: the inner width of the encoder's feed-forward layers.
    pub encoder_feed_forward: usize,
    /// `transformer-decoder-dim-ffn`, or the encoder's where it is 0.
    pub decoder_feed_forward: usize,
    /// `transformer-ffn-activation`.
    pub activation: Activation,
    /// `transformer-decoder-autoreg` and `dec-cell`.
    pub decoder: DecoderKind,
    /// `transformer-preprocess` and `transformer-postprocess`: `dan` after a sub-layer is
    /// [`NormPlace::Post`], `n` before it and `da` after it [`NormPlace::Pre`].
    pub norm: NormPlace,
    /// `transformer-postprocess-emb` has an `n`: embeddings are normalized
    /// (`…_emb_ln_{scale,bias}_pre`).
    pub norm_embeddings: bool,
    /// `transformer-postprocess-top` has an `n`: the output of each stack is normalized
    /// (`…_top_ln_{scale,bias}`).
    pub norm_top: bool,
    /// `tied-embeddings` is [`Tying::Decoder`] (items `encoder_Wemb` and `decoder_Wemb`),
    /// `tied-embeddings-src` [`Tying::Embeddings`] (`Wemb` and `decoder_ff_logit_out_Wt`), both
    /// together or `tied-embeddings-all` [`Tying::ThreeWay`] (`Wemb`), neither [`Tying::None`].
    pub tying: Tying,
    /// The opposite of `output-omit-bias`: there is a `decoder_ff_logit_out_b`.
    pub output_bias: bool,
    /// `transformer-train-position-embeddings`. Marian's transformer reads another key, so most
    /// such models have no item `Wpos` and use sinusoids all the same; `Wpos` decides.
    pub trained_positions: bool,
    /// The version of Marian that wrote the model.
    pub version: String,
}

/// Keys that do not affect a transformer, whatever their values: other model types, training, other
/// decoders.
const IGNORED: [&str; 18] = [
    "bert-train-type-embeddings",
    "bert-type-vocab-size",
    "dec-cell-base-depth",
    "dec-cell-high-depth",
    "dim-rnn",
    "enc-cell",
    "enc-cell-depth",
    "enc-type",
    "factors-dim-emb",
    "max-length",
    "separator-symbol",
    "skip",
    "transformer-aan-activation",
    "transformer-aan-depth",
    "transformer-aan-nogate",
    "transformer-depth-scaling",
    "transformer-dim-aan",
    "transformer-guided-alignment-layer",
];

/// Keys that must have one of these values, if present: the others are synonyms of the first.
const FIXED: [(&str, &[&str]); 4] = [
    ("transformer-ffn-depth", &["2"]),
    ("transformer-decoder-ffn-depth", &["2", "0"]),
    ("factors-combine", &["sum"]),
    ("transformer-attention-mask", &["default"]),
];

/// An upper bound of model sizes, such that no product of two overflows.
const MAX_SIZE: usize = 1 << 24;

type Result<T> = std::result::Result<T, String>;

/// The keys that have not been read yet.
struct Keys(HashMap<String, Yaml>);

impl Keys {
    fn take(&mut self, key: &str) -> Option<Yaml> {
        self.0.remove(key)
    }

    fn text(&mut self, key: &str, default: &str) -> Result<String> {
        match self.take(key) {
            None => Ok(default.to_owned()),
            Some(Yaml::Scalar(text)) => Ok(text),
            Some(other) => Err(refuse(key, &other.shown(), "text is expected")),
        }
    }

    fn flag(&mut self, key: &str) -> Result<bool> {
        let text = self.text(key, "false")?;
        match text.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(refuse(key, &format!("{text:?}"), "true or false is expected")),
        }
    }

    fn size(&mut self, key: &str, least: usize) -> Result<usize> {
        let text = match self.take(key) {
            None => return Err(format!("{key} is missing")),
            Some(value) => value,
        };
        size(&text, least)
            .ok_or_else(|| refuse(key, &text.shown(), &format!("{least} to {MAX_SIZE} is expected")))
    }
}

fn refuse(key: &str, value: &str, expected: &str) -> String {
    format!("{key}: {value} is not supported; {expected}")
}

fn size(value: &Yaml, least: usize) -> Option<usize> {
    value.text()?.parse().ok().filter(|size| (least..=MAX_SIZE).contains(size))
}

/// Whether a value switches its key off.
fn is_off(value: &Yaml) -> bool {
    match value {
        Yaml::Scalar(text) => matches!(text.as_str(), "" | "false" | "0" | "~" | "null" | "none"),
        Yaml::List(values) => values.is_empty(),
        Yaml::Map(pairs) => pairs.is_empty(),
    }
}

/// The operations of `transformer-preprocess` and similar keys, without dropout, which does nothing
/// in a trained model.
fn operations(text: &str) -> String {
    text.chars().filter(|&op| op != 'd').collect()
}

impl MarianOptions {
    /// Reads the text of `special:model.yml`; an error names the key and its value.
    pub fn parse(text: &str) -> Result<Self> {
        let mut keys = Keys(HashMap::new());
        for (key, value) in yaml::parse(text)? {
            if let Some(value) = keys.0.insert(key.clone(), value) {
                return Err(format!("{key} is there twice, first as {}", value.shown()));
            }
        }
        let kind = keys.text("type", "amun")?;
        if kind != "transformer" {
            return Err(refuse("type", &format!("{kind:?}"), "transformer is expected"));
        }
        let version = keys.text("version", "")?;
        let (source_vocabulary, target_vocabulary) = vocabularies(&mut keys)?;
        let (d_model, heads) = widths(&mut keys)?;
        let encoder_feed_forward = keys.size("transformer-dim-ffn", 1)?;
        let decoder_feed_forward = match keys.0.contains_key("transformer-decoder-dim-ffn") {
            true => keys.size("transformer-decoder-dim-ffn", 0)?,
            false => 0,
        };
        let options = MarianOptions {
            source_vocabulary,
            target_vocabulary,
            d_model,
            heads,
            encoder_layers: keys.size("enc-depth", 1)?,
            decoder_layers: keys.size("dec-depth", 1)?,
            encoder_feed_forward,
            decoder_feed_forward: if decoder_feed_forward == 0 {
                encoder_feed_forward
            } else {
                decoder_feed_forward
            },
            activation: activation(&mut keys, &version)?,
            decoder: decoder(&mut keys)?,
            norm: norm(&mut keys)?,
            norm_embeddings: extra_norm(&mut keys, "transformer-postprocess-emb", "d")?,
            norm_top: extra_norm(&mut keys, "transformer-postprocess-top", "")?,
            tying: tying(&mut keys)?,
            output_bias: !keys.flag("output-omit-bias")?,
            trained_positions: keys.flag("transformer-train-position-embeddings")?
                | keys.flag("transformer-train-positions")?,
            version,
        };
        refuse_the_rest(keys)?;
        Ok(options)
    }
}

fn vocabularies(keys: &mut Keys) -> Result<(usize, usize)> {
    let value = keys.take("dim-vocabs").ok_or("dim-vocabs is missing")?;
    let sizes: Option<Vec<usize>> = match &value {
        Yaml::List(sizes) => sizes.iter().map(|value| size(value, 1)).collect(),
        _ => None,
    };
    match sizes.as_deref() {
        Some(&[source, target]) => Ok((source, target)),
        _ => Err(refuse("dim-vocabs", &value.shown(), "two sizes are expected, one source and one target")),
    }
}

fn widths(keys: &mut Keys) -> Result<(usize, usize)> {
    let d_model = keys.size("dim-emb", 1)?;
    let heads = keys.size("transformer-heads", 1)?;
    if !d_model.is_multiple_of(heads) || !d_model.is_multiple_of(2) {
        let expected = format!("a divisor of dim-emb {d_model}, which must be even, is expected");
        return Err(refuse("transformer-heads", &heads.to_string(), &expected));
    }
    Ok((d_model, heads))
}

fn activation(keys: &mut Keys, version: &str) -> Result<Activation> {
    const KEY: &str = "transformer-ffn-activation";
    match keys.text(KEY, "swish")?.as_str() {
        "relu" => Ok(Activation::Relu),
        "swish" => Ok(Activation::Silu),
        // The exact form came with 1.12.3; before, gelu was x·σ(1.702x).
        "gelu" if is_since(version, [1, 12, 3]) => Ok(Activation::Gelu),
        "gelu" => {
            let expected = format!(
                "version {version:?} of Marian computes another function by that name than 1.12.3 and later"
            );
            Err(refuse(KEY, "\"gelu\"", &expected))
        }
        other => Err(refuse(KEY, &format!("{other:?}"), "relu, swish or gelu is expected")),
    }
}

/// Whether a text like `v1.12.14 2d067af 2024-02-16` is this version or a later one.
fn is_since(version: &str, since: [u32; 3]) -> bool {
    let number = version.trim_start_matches('v').split([' ', ';', '+']).next().unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    let found = [(); 3].map(|()| parts.next().flatten());
    matches!(found, [Some(a), Some(b), c] if [a, b, c.unwrap_or(0)] >= since)
}

fn decoder(keys: &mut Keys) -> Result<DecoderKind> {
    const KEY: &str = "transformer-decoder-autoreg";
    let cell = keys.text("dec-cell", "gru")?;
    let normalized = keys.flag("layer-normalization")?;
    match keys.text(KEY, "self-attention")?.as_str() {
        "self-attention" => Ok(DecoderKind::Attention),
        "rnn" if cell != "ssru" => Err(refuse("dec-cell", &format!("{cell:?}"), "ssru is expected")),
        "rnn" if normalized => {
            Err(refuse("layer-normalization", "true", "an SSRU without normalization inside is expected"))
        }
        "rnn" => Ok(DecoderKind::Ssru),
        other => Err(refuse(KEY, &format!("{other:?}"), "self-attention or rnn is expected")),
    }
}

fn norm(keys: &mut Keys) -> Result<NormPlace> {
    let before = keys.text("transformer-preprocess", "")?;
    let after = keys.text("transformer-postprocess", "dan")?;
    match (operations(&before).as_str(), operations(&after).as_str()) {
        ("", "an") => Ok(NormPlace::Post),
        ("n", "a") => Ok(NormPlace::Pre),
        ("" | "n", _) => {
            let expected =
                format!("with transformer-preprocess {before:?}, \"dan\" or (with \"n\") \"da\" is expected");
            Err(refuse("transformer-postprocess", &format!("{after:?}"), &expected))
        }
        _ => Err(refuse("transformer-preprocess", &format!("{before:?}"), "\"\" or \"n\" is expected")),
    }
}

/// Whether there is a norm at an optional place.
fn extra_norm(keys: &mut Keys, key: &str, default: &str) -> Result<bool> {
    let text = keys.text(key, default)?;
    match operations(&text).as_str() {
        "" => Ok(false),
        "n" => Ok(true),
        _ => Err(refuse(key, &format!("{text:?}"), "nothing or n (besides dropout d) is expected")),
    }
}

fn tying(keys: &mut Keys) -> Result<Tying> {
    let (all, source, target) =
        (keys.flag("tied-embeddings-all")?, keys.flag("tied-embeddings-src")?, keys.flag("tied-embeddings")?);
    Ok(match (all || (source && target), source, target) {
        (true, _, _) => Tying::ThreeWay,
        (false, true, _) => Tying::Embeddings,
        (false, _, true) => Tying::Decoder,
        (false, false, false) => Tying::None,
    })
}

/// Rejects remaining keys, unless they are known to be irrelevant or are switched off.
fn refuse_the_rest(mut keys: Keys) -> Result<()> {
    for (key, allowed) in FIXED {
        if let Some(value) = keys.take(key)
            && !value.text().is_some_and(|text| allowed.contains(&text))
        {
            return Err(refuse(key, &value.shown(), &format!("{} is expected", allowed[0])));
        }
    }
    let mut rest: Vec<_> =
        keys.0.iter().filter(|(key, value)| !IGNORED.contains(&key.as_str()) && !is_off(value)).collect();
    // Sort, so that the message is deterministic.
    rest.sort_by_key(|(key, _)| *key);
    match rest.first() {
        None => Ok(()),
        Some((key, value)) => Err(refuse(key, &value.shown(), "this key must be off or absent")),
    }
}
