//! The configuration of a model, field by field.

use super::encoder_kind::{Direction, EncoderKind};
use super::layers::{HeadShape, Side};
use super::positions;
use super::tied_embeddings::Tying;
use crate::{Error, Result};
use regard_kernels::Activation;
use serde::{Deserialize, Serialize};

/// Where layers are normalised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormPlace {
    /// `LayerNorm(x + f(x))`, as in the paper.
    #[default]
    Post,
    /// `x + f(LayerNorm(x))`, with one more norm at the end of each stack.
    Pre,
}

/// How a row is normalised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// Layer norm, as in the paper: mean 0 and variance 1, then γ and β.
    #[default]
    Layer,
    /// RMS norm: division by the root mean square, then γ.
    Rms,
}

/// How the model represents the order of its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// Sines in the first half of the columns and cosines in the second: the paper's, with columns
    /// reordered.
    #[default]
    Sinusoidal,
    /// A learned vector for each position up to `max_positions`.
    Learned,
    /// A learned vector for each distance between query and key, in every self-attention.
    Relative,
    /// A learned bias for each head and bucket of distances between query and key, which is added
    /// to the scores of every self-attention; one table for all layers of a stack, as in T5.
    Bucketed,
    /// No positions.
    None,
}

/// The frequencies of sinusoidal positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Frequencies {
    /// `10000^(−i / (d/2))` in column `i` of each half, as in the paper.
    #[default]
    Paper,
    /// `10000^(−i / (d/2 − 1))`: those of Tensor2Tensor, the paper's own implementation, and of
    /// Marian and fairseq after it.
    Tensor2tensor,
}

/// How a target token sees those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecoderKind {
    /// Masked self-attention, as in the paper.
    #[default]
    Attention,
    /// A simpler simple recurrent unit, whose state is one vector: the decoder of small, fast
    /// models.
    Ssru,
}

/// How position and token vectors are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// Added, as in the paper.
    #[default]
    Add,
    /// Concatenated and projected back to `d_model` by a learned matrix, so that the embeddings can
    /// still be tied.
    Concatenate,
}

/// A named size of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// 128 wide, 4 heads, 4 + 4 layers, d_ff 256.
    Tiny,
    /// 512 wide, 4 heads, 6 + 6 layers, d_ff 1024.
    Small,
    /// The paper's base: 512 wide, 8 heads, 6 + 6 layers, d_ff 2048.
    Base,
    /// The paper's big: 1024 wide, 16 heads, 6 + 6 layers, d_ff 4096, dropout 0.3.
    Big,
    /// The model of browsers: 256 wide, 8 heads, 6 + 2 layers, d_ff 1536, an SSRU decoder.
    /// Everything else also follows Marian, so that such a model can be exported to it.
    Student,
}

/// The architecture of a Transformer. The default is the paper's base model, but without
/// vocabularies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The number of source words, including the padding token; padding is the last, unless there
    /// is a `start_token`.
    pub source_vocabulary: usize,
    /// The number of target words, including the padding token; padding is the last, and the
    /// decoder's start token, unless there is a `start_token`.
    pub target_vocabulary: usize,
    /// The decoder's start token. If set, no word is padding: all words of both vocabularies have
    /// vectors and can be generated.
    pub start_token: Option<u32>,
    /// Width of the vectors between layers.
    pub d_model: usize,
    /// The number of attention heads.
    pub heads: usize,
    /// The number of attention heads of the decoder; `heads` if not given.
    pub decoder_heads: Option<usize>,
    /// Width of a head's queries and keys; `d_model / heads` if not given.
    pub d_k: Option<usize>,
    /// Width of a head's values; `d_model / heads` if not given.
    pub d_v: Option<usize>,
    /// Width inside the feed-forward layers.
    pub d_ff: usize,
    /// Width inside the feed-forward layers of the decoder; `d_ff` if not given.
    pub decoder_d_ff: Option<usize>,
    /// The number of encoder layers.
    pub encoder_layers: usize,
    /// The number of decoder layers.
    pub decoder_layers: usize,
    /// Whether the feed-forward layers have a gate: `activation(x·W_gate) ∘ (x·W_up)` inside.
    pub gated: bool,
    /// Whether linear layers have a bias.
    pub linear_bias: bool,
    /// Where layers are normalised.
    pub norm: NormPlace,
    /// How they are normalised.
    pub norm_kind: NormKind,
    /// Whether the embeddings are normalised too.
    pub norm_embeddings: bool,
    /// ε of the norms.
    pub norm_epsilon: f32,
    /// The feed-forward layers' activation.
    #[serde(with = "activation_name")]
    pub activation: Activation,
    /// Dropout of the embeddings and of each sub-layer's output.
    pub dropout: f32,
    /// Dropout of the attention weights.
    pub attention_dropout: f32,
    /// Dropout after the activation.
    pub activation_dropout: f32,
    /// Which vocabulary matrices are tied.
    pub tying: Tying,
    /// Whether token vectors are multiplied by √d_model.
    pub scale_embeddings: bool,
    /// Whether attention scores are divided by √d_k.
    pub scale_scores: bool,
    /// Whether the decoder's output is divided by √d_model before the output matrix.
    pub scale_output: bool,
    /// How token order is represented.
    pub positions: Positions,
    /// The frequencies of sinusoidal positions.
    pub frequencies: Frequencies,
    /// How position and token vectors are combined.
    pub combine: Combine,
    /// The number of positions with learned vectors; sinusoids are unlimited.
    pub max_positions: usize,
    /// The row of the position table for the first token of a sentence: 2 in fairseq, where earlier
    /// rows belong to padding.
    pub position_offset: usize,
    /// The longest distance that relative positions distinguish; with bucketed ones, all longer
    /// distances share a bucket.
    pub relative_reach: usize,
    /// The number of buckets of bucketed positions, for both directions together.
    pub relative_buckets: usize,
    /// How a target token sees those before it.
    pub decoder: DecoderKind,
    /// The token mixer of the encoder's layers, with the settings of that kind.
    #[serde(flatten)]
    pub encoder: EncoderKind,
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig {
            source_vocabulary: 0,
            target_vocabulary: 0,
            start_token: None,
            d_model: 512,
            heads: 8,
            decoder_heads: None,
            d_k: None,
            d_v: None,
            d_ff: 2048,
            decoder_d_ff: None,
            encoder_layers: 6,
            decoder_layers: 6,
            gated: false,
            linear_bias: true,
            norm: NormPlace::Post,
            norm_kind: NormKind::Layer,
            norm_embeddings: false,
            norm_epsilon: 1e-5,
            activation: Activation::Relu,
            dropout: 0.1,
            attention_dropout: 0.0,
            activation_dropout: 0.0,
            tying: Tying::ThreeWay,
            scale_embeddings: true,
            scale_scores: true,
            scale_output: false,
            positions: Positions::Sinusoidal,
            frequencies: Frequencies::Paper,
            combine: Combine::Add,
            max_positions: 512,
            position_offset: 0,
            relative_reach: 16,
            relative_buckets: 32,
            decoder: DecoderKind::Attention,
            encoder: EncoderKind::default(),
        }
    }
}

impl Preset {
    /// All presets, by size.
    pub const ALL: [Preset; 5] = [Preset::Tiny, Preset::Small, Preset::Base, Preset::Big, Preset::Student];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Tiny => "tiny",
            Preset::Small => "small",
            Preset::Base => "base",
            Preset::Big => "big",
            Preset::Student => "student",
        }
    }

    /// The model of this size, with one vocabulary of `words` words for both languages.
    pub fn config(self, words: usize) -> ModelConfig {
        let (d_model, heads, layers, d_ff, dropout) = match self {
            Preset::Tiny => (128, 4, 4, 256, 0.1),
            Preset::Small => (512, 4, 6, 1024, 0.1),
            Preset::Base => (512, 8, 6, 2048, 0.1),
            Preset::Big => (1024, 16, 6, 4096, 0.3),
            Preset::Student => (256, 8, 6, 1536, 0.1),
        };
        let marian = match self {
            Preset::Student => ModelConfig {
                decoder: DecoderKind::Ssru,
                frequencies: Frequencies::Tensor2tensor,
                norm_epsilon: 1e-6,
                ..ModelConfig::default()
            },
            _ => ModelConfig::default(),
        };
        ModelConfig {
            source_vocabulary: words,
            target_vocabulary: words,
            d_model,
            heads,
            d_ff,
            encoder_layers: layers,
            decoder_layers: if self == Preset::Student { 2 } else { layers },
            dropout,
            ..marian
        }
    }
}

impl ModelConfig {
    /// The heads of each attention of the encoder or the decoder.
    pub fn head_shape(&self, side: Side) -> HeadShape {
        let heads = match side {
            Side::Source => self.heads,
            Side::Target => self.decoder_heads.unwrap_or(self.heads),
        };
        let even = self.d_model / heads.max(1);
        HeadShape { heads, d_k: self.d_k.unwrap_or(even), d_v: self.d_v.unwrap_or(even) }
    }

    /// The width inside the feed-forward layers of the encoder or the decoder.
    pub fn feed_forward_width(&self, side: Side) -> usize {
        match side {
            Side::Source => self.d_ff,
            Side::Target => self.decoder_d_ff.unwrap_or(self.d_ff),
        }
    }

    /// A description of its sizes; where encoder and decoder differ, the encoder's first.
    pub fn sizes(&self) -> String {
        let both = |of: fn(&Self, Side) -> usize| {
            let (source, target) = (of(self, Side::Source), of(self, Side::Target));
            if source == target { source.to_string() } else { format!("{source} and {target}") }
        };
        format!(
            "d_model {}, heads {}, d_ff {}, encoder layers {}, decoder layers {}",
            self.d_model,
            both(|config, side| config.head_shape(side).heads),
            both(Self::feed_forward_width),
            self.encoder_layers,
            self.decoder_layers
        )
    }

    /// The source padding token, if there is one.
    pub fn source_pad(&self) -> Option<u32> {
        self.start_token.is_none().then(|| (self.source_vocabulary - 1) as u32)
    }

    /// The target padding token, if there is one.
    pub fn target_pad(&self) -> Option<u32> {
        self.start_token.is_none().then(|| (self.target_vocabulary - 1) as u32)
    }

    /// The decoder's start token: padding, unless `start_token` is set.
    pub fn start(&self) -> u32 {
        self.start_token.unwrap_or((self.target_vocabulary - 1) as u32)
    }

    /// The number of words that can be generated: all except padding, which is the last.
    pub fn output_words(&self) -> usize {
        self.target_vocabulary - usize::from(self.start_token.is_none())
    }

    /// The sinusoids of the first `n` positions, `[n, d]`.
    pub fn sinusoids(&self, n: usize) -> Vec<f32> {
        positions::sinusoidal_from(self.frequencies, self.position_offset, n, self.d_model)
    }

    /// The factor applied to token vectors.
    pub fn embedding_scale(&self) -> f32 {
        if self.scale_embeddings { (self.d_model as f32).sqrt() } else { 1.0 }
    }

    /// The factor applied to attention scores.
    pub fn score_scale(&self, side: Side) -> f32 {
        if self.scale_scores { (self.head_shape(side).d_k as f32).sqrt().recip() } else { 1.0 }
    }

    /// The factor applied to the decoder's output.
    pub fn output_scale(&self) -> f32 {
        if self.scale_output { (self.d_model as f32).sqrt().recip() } else { 1.0 }
    }

    /// The window of the decoder's self-attention, if it is restricted.
    pub(crate) fn decoder_window(&self) -> Option<usize> {
        match self.encoder {
            EncoderKind::Attention { window } => window,
            _ => None,
        }
    }

    /// The dilation of layer `layer` of a convolutional encoder.
    pub(crate) fn dilation(&self, layer: usize) -> usize {
        self.encoder.dilation(layer, MAX_DIMENSION)
    }

    /// Rejects invalid settings, naming the field.
    pub fn validate(&self) -> Result<()> {
        self.validate_sizes()?;
        self.validate_heads()?;
        self.validate_numbers()?;
        self.validate_combinations()?;
        self.validate_encoder()
    }

    fn validate_sizes(&self) -> Result<()> {
        for (field, value, least) in [
            ("source_vocabulary", self.source_vocabulary, 3),
            ("target_vocabulary", self.target_vocabulary, 3),
            ("d_model", self.d_model, 1),
            ("heads", self.heads, 1),
            ("decoder_heads", self.decoder_heads.unwrap_or(1), 1),
            ("d_k", self.d_k.unwrap_or(1), 1),
            ("d_v", self.d_v.unwrap_or(1), 1),
            ("d_ff", self.d_ff, 1),
            ("decoder_d_ff", self.decoder_d_ff.unwrap_or(1), 1),
            ("encoder_layers", self.encoder_layers, 1),
            ("decoder_layers", self.decoder_layers, 1),
            ("max_positions", self.max_positions, 1),
            ("relative_reach", self.relative_reach, 1),
            ("relative_buckets", self.relative_buckets, 4),
            ("window", self.encoder.window().unwrap_or(1), 1),
            ("position_offset", self.position_offset, 0),
        ] {
            if value < least {
                return Err(Error::config(field, format!("{value} is too few, at least {least} is needed")));
            }
            if value > MAX_DIMENSION {
                return Err(Error::config(
                    field,
                    format!("{value} is too many, at most {MAX_DIMENSION} is possible"),
                ));
            }
        }
        Ok(())
    }

    fn validate_heads(&self) -> Result<()> {
        let even = self.d_k.is_none() || self.d_v.is_none();
        for (field, heads) in [("heads", Some(self.heads)), ("decoder_heads", self.decoder_heads)] {
            let Some(heads) = heads.filter(|&heads| even && !self.d_model.is_multiple_of(heads)) else {
                continue;
            };
            let fits: Vec<String> = (1..=self.d_model.min(64))
                .filter(|h| self.d_model.is_multiple_of(*h))
                .map(|h| h.to_string())
                .collect();
            let message = format!(
                "{heads} does not divide d_model = {}; use one of {}, or set d_k and d_v",
                self.d_model,
                fits.join(", ")
            );
            return Err(Error::config(field, message));
        }
        Ok(())
    }

    fn validate_numbers(&self) -> Result<()> {
        if self.positions == Positions::Sinusoidal && !self.d_model.is_multiple_of(2) {
            let message = format!("{} is odd; sinusoidal positions need an even width", self.d_model);
            return Err(Error::config("d_model", message));
        }
        for (field, rate) in [
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout),
            ("activation_dropout", self.activation_dropout),
        ] {
            if !(0.0..1.0).contains(&rate) {
                let message = format!("{rate} is not a rate from 0 up to, but not including, 1");
                return Err(Error::config(field, message));
            }
        }
        if !(self.norm_epsilon > 0.0 && self.norm_epsilon.is_finite()) {
            let message = format!("{} is not a small positive number", self.norm_epsilon);
            return Err(Error::config("norm_epsilon", message));
        }
        Ok(())
    }

    /// Rejects incompatible settings.
    fn validate_combinations(&self) -> Result<()> {
        let refuse = |field: &str, message: String| Err(Error::config(field, message));
        let shared = match self.tying {
            Tying::ThreeWay => Some("three-way"),
            Tying::Embeddings => Some("embeddings"),
            Tying::Decoder | Tying::None => None,
        };
        if let Some(name) = shared.filter(|_| self.source_vocabulary != self.target_vocabulary) {
            let message = format!(
                "{name} needs one vocabulary, but the source has {} and the target {} words; use decoder or none",
                self.source_vocabulary, self.target_vocabulary
            );
            return refuse("tying", message);
        }
        if self.combine == Combine::Concatenate
            && matches!(self.positions, Positions::Relative | Positions::Bucketed | Positions::None)
        {
            let message = "concatenate needs position vectors; use positions = sinusoidal or learned".into();
            return refuse("combine", message);
        }
        if self.decoder == DecoderKind::Ssru && self.decoder_window().is_some() {
            let message =
                "window restricts self-attention, which an ssru decoder does not have; use encoder = window"
                    .into();
            return refuse("decoder", message);
        }
        if let Some(start) = self.start_token.filter(|&start| start as usize >= self.target_vocabulary) {
            let message = format!("{start} is not a word of the vocabulary of {}", self.target_vocabulary);
            return refuse("start_token", message);
        }
        if self.position_offset > 0 && !matches!(self.positions, Positions::Sinusoidal | Positions::Learned) {
            let message =
                "only sinusoidal and learned positions have a table with rows to skip; use 0".into();
            return refuse("position_offset", message);
        }
        if self.positions == Positions::Bucketed {
            // In the decoder, half of the buckets hold one distance each; the others share the rest
            // up to the reach.
            let alone = self.relative_buckets / 2;
            if !self.relative_buckets.is_multiple_of(2) {
                let message =
                    format!("{} is odd; the two directions have half of them each", self.relative_buckets);
                return refuse("relative_buckets", message);
            }
            if self.relative_reach > MAX_RELATIVE_REACH {
                let message =
                    format!("{} is too far, at most {MAX_RELATIVE_REACH} is possible", self.relative_reach);
                return refuse("relative_reach", message);
            }
            if self.relative_reach <= alone {
                let message = format!(
                    "{} is too short for relative_buckets = {}; it must be over {alone}",
                    self.relative_reach, self.relative_buckets
                );
                return refuse("relative_reach", message);
            }
        }
        if self.frequencies != Frequencies::Paper && self.positions != Positions::Sinusoidal {
            let message = "only sinusoidal positions have frequencies; use positions = sinusoidal".into();
            return refuse("frequencies", message);
        }
        Ok(())
    }

    /// Rejects settings that are incompatible with the kind of encoder.
    fn validate_encoder(&self) -> Result<()> {
        let refuse = |field: &str, message: String| Err(Error::config(field, message));
        let kind = self.encoder.name();
        if !self.encoder.attends() && matches!(self.positions, Positions::Relative | Positions::Bucketed) {
            let message = format!(
                "relative ones belong to self-attention, which a {kind} encoder does not have; use sinusoidal, learned or none"
            );
            return refuse("positions", message);
        }
        match self.encoder {
            EncoderKind::Recurrent { direction: Direction::Both } if !self.d_model.is_multiple_of(2) => {
                let message =
                    format!("{} is odd; each direction gets half, so it must be even", self.d_model);
                refuse("d_model", message)
            }
            EncoderKind::Convolutional { kernel_width, .. } if kernel_width > MAX_DIMENSION => refuse(
                "kernel_width",
                format!("{kernel_width} is too many, at most {MAX_DIMENSION} is possible"),
            ),
            EncoderKind::Convolutional { kernel_width: 0..3, .. } => {
                let message = "too few, at least 3 is needed: a token and its neighbours".into();
                refuse("kernel_width", message)
            }
            EncoderKind::Convolutional { kernel_width, .. } if kernel_width.is_multiple_of(2) => {
                let message = format!("{kernel_width} is even; a token in the middle needs 3, 5, 7, …");
                refuse("kernel_width", message)
            }
            _ => Ok(()),
        }
    }

    /// The multiply-adds of a training step for one pair, up to a factor; work is split by this.
    pub fn cost(&self, source: usize, target: usize) -> f64 {
        let (d, n, m) = (self.d_model as f64, source as f64, target as f64);
        let sizes = |side| {
            let HeadShape { heads, d_k, d_v } = self.head_shape(side);
            let scores = (heads * (d_k + d_v)) as f64;
            // Projections, scores, feed-forward.
            let matrices = if self.gated { 3.0 } else { 2.0 };
            (2.0 * scores * d, scores, matrices * d * self.feed_forward_width(side) as f64)
        };
        let reach = |n: f64, window: Option<usize>| window.map_or(n, |w| n.min(2.0 * w as f64 + 1.0));
        let (attention, scores, ff) = sizes(Side::Source);
        let mixing = match self.encoder {
            EncoderKind::Attention { .. } | EncoderKind::Window { .. } => {
                attention + scores * reach(n, self.encoder.window())
            }
            EncoderKind::Recurrent { direction: Direction::Both } => 5.5 * d * d,
            EncoderKind::Recurrent { direction: Direction::Forward } => 7.0 * d * d,
            EncoderKind::Convolutional { kernel_width, .. } => (kernel_width as f64 + 1.0) * d * d,
        };
        let encoder = n * (mixing + ff);
        let (attention, scores, ff) = sizes(Side::Target);
        let cross = scores * d;
        let past = match self.decoder {
            DecoderKind::Attention => attention + scores * reach(m, self.decoder_window()),
            DecoderKind::Ssru => 2.0 * d * d,
        };
        let decoder = m * (past + cross + ff + scores * n) + n * cross;
        self.encoder_layers as f64 * encoder
            + self.decoder_layers as f64 * decoder
            + m * d * self.target_vocabulary as f64
    }
}

/// The maximum of any dimension: products of a few of them stay far from overflow.
const MAX_DIMENSION: usize = 1 << 24;

/// Bucketed positions are expanded to a value for each distance and head.
const MAX_RELATIVE_REACH: usize = 1 << 16;

/// Activations by their names in configurations.
mod activation_name {
    use regard_kernels::Activation;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    const NAMES: [(&str, Activation); 5] = [
        ("relu", Activation::Relu),
        ("gelu", Activation::Gelu),
        ("gelu_new", Activation::GeluTanh),
        ("silu", Activation::Silu),
        ("swish", Activation::Silu),
    ];

    pub(super) fn serialize<S: Serializer>(value: &Activation, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(NAMES.iter().find(|(_, a)| a == value).map_or("identity", |(name, _)| name))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Activation, D::Error> {
        let name = String::deserialize(from)?;
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, a)| *a).ok_or_else(|| {
            D::Error::custom(format!("unknown activation {name:?}, use relu, gelu, gelu_new, silu or swish"))
        })
    }
}

#[cfg(test)]
mod tests;
