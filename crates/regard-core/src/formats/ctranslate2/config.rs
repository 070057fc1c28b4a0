//! The shape of a model, from the variables of its file.

use super::model::Ct2Model;
use crate::model::{Activation, Frequencies, ModelConfig, NormPlace, Positions, Tying};
use crate::text::EOS;
use crate::{DType, Error, Result};

/// The maximum sentence length of a model with unlimited positions.
const MAX_POSITIONS: usize = 512;

impl Ct2Model {
    /// The number of layers of a stack.
    fn layers(&self, stack: &str) -> usize {
        (0..)
            .take_while(|i| self.variable(&format!("{stack}/layer_{i}/ffn/linear_0/weight")).is_some())
            .count()
    }

    /// The name of a side's embeddings: older files number them.
    pub(super) fn embeddings(&self, stack: &str) -> Result<&'static str> {
        if self.variable("encoder/embeddings_1/weight").is_some() {
            return Err(self.wrong("has several source embeddings (features), which are not supported"));
        }
        Ok(match stack {
            "decoder" => "decoder/embeddings/weight",
            _ if self.variable("encoder/embeddings_0/weight").is_some() => "encoder/embeddings_0/weight",
            _ => "encoder/embeddings/weight",
        })
    }

    fn refuse_unknown(&self) -> Result<()> {
        for (stack, name, what) in [
            ("encoder", "self_attention/relative_position_keys", "relative position vectors"),
            ("encoder", "self_attention/relative_attention_bias", "a relative attention bias (T5)"),
            ("encoder", "ffn/linear_0_noact/weight", "gated feed-forward layers"),
            ("decoder", "self_attention/rotary_dim", "rotary positions"),
            ("decoder", "self_attention/queries_scale", "attention scores of another scale"),
        ] {
            if self.variable(&format!("{stack}/layer_0/{name}")).is_some() {
                return Err(self.wrong(format!("has {what}, which are not supported in CTranslate2's files")));
            }
        }
        for name in ["decoder/project_in/weight", "decoder/scale_outputs", "decoder/final_logit_softcapping"]
        {
            if self.variable(name).is_some() {
                return Err(self.wrong(format!("has the variable {name}, which is not supported")));
            }
        }
        if self.scalar(&["decoder/alibi".into()])?.unwrap_or(0.0) != 0.0 {
            return Err(self.wrong("has linear attention biases (ALiBi), which are not supported"));
        }
        if self.variable("encoder/layer_0/ffn/layer_norm/gamma").is_some()
            && self.variable("encoder/layer_0/ffn/layer_norm/beta").is_none()
        {
            return Err(self.wrong("has RMS norms, which are not supported in CTranslate2's files"));
        }
        Ok(())
    }

    pub(super) fn read_config(&self) -> Result<ModelConfig> {
        self.refuse_unknown()?;
        let (encoder, decoder) =
            (self.need(self.embeddings("encoder")?)?, self.need("decoder/embeddings/weight")?);
        let projection = self.need("decoder/projection/weight")?;
        let (&[source, d], &[target, of_target]) = (&encoder.shape[..], &decoder.shape[..]) else {
            return Err(self.wrong("has embeddings that are not matrices"));
        };
        if of_target != d || projection.shape != [target, d] {
            let message = format!(
                "has embeddings of {source} × {d} and {target} × {of_target}, and an output of {:?}",
                projection.shape
            );
            return Err(self.wrong(message));
        }
        for (pieces, rows) in [(&self.source, source), (&self.target, target)] {
            if pieces.pieces.len() != rows {
                return Err(self.wrong(format!(
                    "has embeddings of {rows} words, but the vocabulary has {}",
                    pieces.pieces.len()
                )));
            }
        }
        let tying = match (encoder.range == decoder.range, decoder.range == projection.range) {
            (true, true) => Tying::ThreeWay,
            (false, true) => Tying::Decoder,
            (true, false) => Tying::Embeddings,
            (false, false) => Tying::None,
        };
        let start_token = self.start_token()?;
        // If the decoder starts from a zero vector, padding is our own token and comes last.
        let padding = usize::from(start_token.is_none());
        let heads = |stack| Ok::<_, Error>(self.setting(stack, "num_heads")?.unwrap_or(8.0) as usize);
        let width = |stack: &str| {
            let name = format!("{stack}/layer_0/ffn/linear_0/weight");
            Ok::<_, Error>(self.need(&name)?.shape.first().copied().unwrap_or(0))
        };
        let (of_encoder, of_decoder) =
            ((heads("encoder")?, width("encoder")?), (heads("decoder")?, width("decoder")?));
        let shape = ModelConfig {
            source_vocabulary: source + padding,
            target_vocabulary: target + padding,
            start_token,
            d_model: d,
            heads: of_encoder.0,
            decoder_heads: Some(of_decoder.0).filter(|&heads| heads != of_encoder.0),
            d_ff: of_encoder.1,
            decoder_d_ff: Some(of_decoder.1).filter(|&d_ff| d_ff != of_encoder.1),
            encoder_layers: self.layers("encoder"),
            decoder_layers: self.layers("decoder"),
            norm: self.norm()?,
            norm_embeddings: self.variable("encoder/layernorm_embedding/gamma").is_some(),
            norm_epsilon: self.keys.get("layer_norm_epsilon")?.unwrap_or(1e-5),
            activation: self.activation()?,
            tying,
            scale_embeddings: self.is_scaled(d)?,
            ..ModelConfig::default()
        };
        self.with_positions(shape)
    }

    fn with_positions(&self, shape: ModelConfig) -> Result<ModelConfig> {
        let names = ["encoder", "decoder"].map(|stack| format!("{stack}/position_encodings/encodings"));
        match names.each_ref().map(|name| self.variable(name)) {
            [None, None] => Ok(ModelConfig {
                frequencies: Frequencies::Tensor2tensor,
                position_offset: 1,
                max_positions: MAX_POSITIONS,
                ..shape
            }),
            [Some(a), Some(b)] if a.shape.len() == 2 && a.shape == b.shape => {
                Ok(ModelConfig { positions: Positions::Learned, max_positions: a.shape[0], ..shape })
            }
            found => {
                let shapes = found.map(|variable| variable.map(|variable| variable.shape.clone()));
                Err(self
                    .wrong(format!("has position vectors of different shapes on the two sides: {shapes:?}")))
            }
        }
    }

    fn norm(&self) -> Result<NormPlace> {
        let mut places = Vec::new();
        for stack in ["encoder", "decoder"] {
            let is_pre = self.setting(stack, "pre_norm")?.unwrap_or(1.0) != 0.0;
            if is_pre != self.variable(&format!("{stack}/layer_norm/gamma")).is_some() {
                let has = if is_pre { "no norm at the end" } else { "a norm at the end" };
                let place = if is_pre { "pre" } else { "post" };
                return Err(self.wrong(format!("the {stack} is {place}-norm and has {has}: not supported")));
            }
            places.push(if is_pre { NormPlace::Pre } else { NormPlace::Post });
        }
        match places[0] == places[1] {
            true => Ok(places[0]),
            false => {
                Err(self
                    .wrong("the encoder and the decoder are normalised in different places: not supported"))
            }
        }
    }

    fn activation(&self) -> Result<Activation> {
        let of = |stack| Ok::<_, Error>(self.setting(stack, "activation")?.unwrap_or(0.0) as u8);
        match (of("encoder")?, of("decoder")?) {
            (0, 0) => Ok(Activation::Relu),
            (2, 2) => Ok(Activation::Silu),
            (3, 3) => Ok(Activation::Gelu),
            (a, b) => {
                let message = format!(
                    "has the activations {a} and {b}; 0 (relu), 2 (swish) and 3 (gelu) are supported, the same on both sides"
                );
                Err(self.wrong(message))
            }
        }
    }

    fn is_scaled(&self, d: usize) -> Result<bool> {
        let of = |stack: &str| {
            let names =
                [format!("{stack}/scale_embeddings"), format!("{stack}/embeddings/multiply_by_sqrt_depth")];
            let flag =
                names.iter().find_map(|name| self.variable(name)).is_some_and(|v| v.dtype == DType::Int8);
            let root = (d as f32).sqrt();
            match self.scalar(&names)? {
                None => Ok(true),
                Some(value) if flag => Ok(value != 0.0),
                Some(1.0) => Ok(false),
                Some(value) if (value - root).abs() <= 1e-3 * root => Ok(true),
                Some(value) => {
                    Err(self.wrong(format!("embeddings are multiplied by {value}; 1 and √{d} are supported")))
                }
            }
        };
        match (of("encoder")?, of("decoder")?) {
            (encoder, decoder) if encoder == decoder => Ok(encoder),
            _ => Err(self.wrong("embeddings are scaled on one side alone: not supported")),
        }
    }

    /// The word that the decoder starts with; `None` if it starts with a zero vector.
    fn start_token(&self) -> Result<Option<u32>> {
        if self.scalar(&["decoder/start_from_zero_embedding".into()])?.unwrap_or(0.0) != 0.0 {
            return Ok(None);
        }
        let flag = |name: &str, usual| {
            Ok::<_, Error>(self.scalar(&[name.into()])?.map_or(usual, |flag| flag != 0.0))
        };
        let token: Option<String> = match self.contents.version {
            6.. if !self.keys.has("decoder_start_token") => Some("<s>".into()),
            6.. => self.keys.get("decoder_start_token")?,
            _ if flag("user_decoder_start_tokens", false)? => None,
            _ if flag("with_target_bos", true)? => Some("<s>".into()),
            _ => Some(EOS.into()),
        };
        let Some(token) = token else {
            return Err(
                self.wrong("does not say what the decoder starts with (decoder_start_token): not supported")
            );
        };
        // Of several, the first, as in CTranslate2.
        let found = self.target.pieces.iter().position(|piece| piece == token);
        found.map(|id| Some(id as u32)).ok_or_else(|| {
            self.wrong(format!("the decoder starts with {token:?}, which is not in the vocabulary"))
        })
    }
}
