//! Builds the layers of a configuration and the layout of their parameters.

use super::config::{Combine, DecoderKind, ModelConfig, NormKind, Positions};
use super::encoder_kind::{Direction, EncoderKind};
use super::layers::{
    ConvolutionLayer, CrossAttentionLayer, EmbeddingLayer, FeedForwardLayer, HeadShape, LinearLayer,
    NormLayer, RecurrentCell, RecurrentLayer, RelativePositions, SelfAttentionLayer, Side, SsruLayer,
};
use super::parameters::{Initial, Location, Param, Parameters, Role};
use super::positions::Buckets;
use super::transformer::{PastMixer, TokenMixer};
use regard_kernels::Mask;

/// Creates layers with the sizes of a configuration, and lays out their parameters contiguously.
#[derive(Debug)]
pub struct LayerBuilder<'a> {
    config: &'a ModelConfig,
    /// The side of the current layer.
    side: Side,
    /// The current layer.
    layer: Option<usize>,
    /// The tables of relative position buckets of the two stacks, once created.
    distances: [Option<Param>; 2],
    parameters: Parameters,
}

impl<'a> LayerBuilder<'a> {
    /// A builder without parameters.
    pub fn new(config: &'a ModelConfig) -> Self {
        let parameters = Parameters::default();
        LayerBuilder { config, side: Side::Source, layer: None, distances: [None; 2], parameters }
    }

    /// Enters a stack: what follows belongs to one of its layers, or to no layer.
    pub fn enter(&mut self, side: Side, layer: Option<usize>) {
        (self.side, self.layer) = (side, layer);
    }

    fn add(&mut self, name: String, shape: [usize; 2], initial: Initial, role: Role) -> Param {
        let location = Location { stack: Some(self.side), layer: self.layer };
        self.parameters.add(name, shape, initial, role, location)
    }

    /// All parameters created so far.
    pub fn into_parameters(self) -> Parameters {
        self.parameters
    }

    /// A linear layer from `input` to `rows` features, with a bias unless the model has none.
    pub fn linear(&mut self, name: &str, rows: usize, input: usize) -> LinearLayer {
        self.linear_like(name, rows, input, rows)
    }

    /// The last linear layer of a sub-layer: its output is added to the residual stream.
    fn output(&mut self, name: &str, rows: usize, input: usize) -> LinearLayer {
        self.linear_from(name, [rows, input], Initial::Glorot { fan_out: rows, residual: true })
    }

    /// A linear layer that is initialised as if it were part of one with `fan_out` rows.
    fn linear_like(&mut self, name: &str, rows: usize, input: usize, fan_out: usize) -> LinearLayer {
        self.linear_from(name, [rows, input], Initial::Glorot { fan_out, residual: false })
    }

    fn linear_from(&mut self, name: &str, shape: [usize; 2], initial: Initial) -> LinearLayer {
        let weight = self.matrix(name, shape, initial);
        let rows = shape[0];
        let bias = self.config.linear_bias.then(|| self.bias(name, weight, rows));
        LinearLayer { weight, bias, outputs: rows }
    }

    fn matrix(&mut self, name: &str, shape: [usize; 2], initial: Initial) -> Param {
        self.add(format!("{name}.weight"), shape, initial, Role::Matrix)
    }

    /// The bias of a matrix with this many rows.
    fn bias(&mut self, name: &str, weight: Param, rows: usize) -> Param {
        let bias = self.add(format!("{name}.bias"), [1, rows], Initial::Zero, Role::Vector);
        self.parameters.set_bias(weight, bias);
        bias
    }

    /// A norm.
    pub fn norm(&mut self, name: &str) -> NormLayer {
        let d = self.config.d_model;
        NormLayer {
            gamma: self.add(format!("{name}.weight"), [1, d], Initial::One, Role::Vector),
            beta: (self.config.norm_kind == NormKind::Layer)
                .then(|| self.add(format!("{name}.bias"), [1, d], Initial::Zero, Role::Vector)),
        }
    }

    /// The vectors of a vocabulary; the last, if it is padding, is zero.
    pub fn words(&mut self, name: &str, words: usize) -> Param {
        let d = self.config.d_model;
        let deviation = if self.config.scale_embeddings { (d as f32).powf(-0.5) } else { 1.0 };
        let initial = Initial::Normal { deviation, pad: self.config.start_token.is_none() };
        self.parameters.add(name, [words, d], initial, Role::Vocabulary, Location::default())
    }

    /// Learned vectors other than those of words, for example of positions.
    pub fn vectors(&mut self, name: &str, rows: usize, deviation: f32) -> Param {
        let initial = Initial::Normal { deviation, pad: false };
        self.add(name.to_owned(), [rows, self.config.d_model], initial, Role::Positions)
    }

    pub(super) fn embedding(&mut self, side: Side, table: Param) -> EmbeddingLayer {
        self.enter(side, None);
        let d = self.config.d_model;
        let name = match side {
            Side::Source => "encoder",
            Side::Target => "decoder",
        };
        let rows = self.config.max_positions + self.config.position_offset;
        let positions = (self.config.positions == Positions::Learned)
            .then(|| self.vectors(&format!("{name}.positions"), rows, 0.02));
        let joined = (self.config.combine == Combine::Concatenate)
            .then(|| self.linear(&format!("{name}.joined"), d, 2 * d));
        let norm = self.config.norm_embeddings.then(|| self.norm(&format!("{name}.embedding_norm")));
        EmbeddingLayer { side, table, positions, joined, norm }
    }

    pub(super) fn token_mixer(&mut self, layer: usize) -> TokenMixer {
        let name = |kind: &str| format!("encoder.layers.{layer}.{kind}");
        match self.config.encoder {
            EncoderKind::Attention { .. } | EncoderKind::Window { .. } => {
                let mask = Mask { causal: false, window: self.config.encoder.window() };
                TokenMixer::Attention(self.self_attention(&name("self_attn"), layer, mask))
            }
            EncoderKind::Recurrent { direction } => {
                TokenMixer::Recurrent(self.recurrent(&name("recurrent"), direction))
            }
            EncoderKind::Convolutional { kernel_width, .. } => {
                let dilation = self.config.dilation(layer);
                TokenMixer::Convolution(self.convolution(&name("convolution"), kernel_width, dilation))
            }
        }
    }

    /// Gates are initialised as separate matrices, so that the state neither fades nor grows in the
    /// first steps.
    fn recurrent(&mut self, name: &str, direction: Direction) -> RecurrentLayer {
        let d = self.config.d_model;
        let both = direction == Direction::Both;
        let (directions, h) = if both { (2, d / 2) } else { (1, d) };
        RecurrentLayer {
            input: self.linear_like(&format!("{name}.input"), directions * 3 * h, d, h),
            forward: self.recurrent_cell(&format!("{name}.forward"), h),
            backward: both.then(|| self.recurrent_cell(&format!("{name}.backward"), h)),
            out: self.output(&format!("{name}.out"), d, d),
            norm: self.norm(&format!("{name}_norm")),
        }
    }

    fn recurrent_cell(&mut self, name: &str, h: usize) -> RecurrentCell {
        let weight = self.matrix(name, [3 * h, h], Initial::Glorot { fan_out: h, residual: false });
        RecurrentCell { weight, bias: self.bias(name, weight, 3 * h) }
    }

    pub(super) fn past_mixer(&mut self, layer: usize) -> PastMixer {
        let name = |kind: &str| format!("decoder.layers.{layer}.{kind}");
        match self.config.decoder {
            DecoderKind::Attention => {
                let causal = Mask { causal: true, window: self.config.decoder_window() };
                PastMixer::Attention(self.self_attention(&name("self_attn"), layer, causal))
            }
            DecoderKind::Ssru => PastMixer::Ssru(self.ssru(&name("ssru"), layer)),
        }
    }

    fn ssru(&mut self, name: &str, layer: usize) -> SsruLayer {
        let d = self.config.d_model;
        // The state, a mean of candidates, is the output.
        let initial = Initial::Glorot { fan_out: d, residual: true };
        let candidate = self.matrix(&format!("{name}.candidate"), [d, d], initial);
        SsruLayer {
            layer,
            candidate: LinearLayer { weight: candidate, bias: None, outputs: d },
            forget: self.linear(&format!("{name}.forget"), d, d),
            norm: self.norm(&format!("{name}_norm")),
        }
    }

    fn convolution(&mut self, name: &str, width: usize, dilation: usize) -> ConvolutionLayer {
        let d = self.config.d_model;
        ConvolutionLayer {
            width,
            dilation,
            kernel: self.linear(&format!("{name}.kernel"), d, width * d),
            out: self.output(&format!("{name}.out"), d, d),
            norm: self.norm(&format!("{name}_norm")),
        }
    }

    /// Self-attention, layer `layer` of the stack; `mask` says which keys a query sees.
    pub fn self_attention(&mut self, name: &str, layer: usize, mask: Mask) -> SelfAttentionLayer {
        let (d, heads) = (self.config.d_model, self.config.head_shape(self.side));
        SelfAttentionLayer {
            layer,
            qkv: self.linear(&format!("{name}.qkv"), 2 * heads.keys() + heads.values(), d),
            out: self.output(&format!("{name}.out"), d, heads.values()),
            norm: self.norm(&format!("{name}_norm")),
            mask,
            relative: self.relative_positions(name, mask.causal),
        }
    }

    fn relative_positions(&mut self, name: &str, causal: bool) -> Option<RelativePositions> {
        let HeadShape { heads, d_k, .. } = self.config.head_shape(self.side);
        let reach = self.config.relative_reach;
        match self.config.positions {
            Positions::Relative => {
                let rows = 2 * reach + 1;
                let initial = Initial::Glorot { fan_out: rows, residual: false };
                let name = format!("{name}.relative");
                let table = self.add(name, [rows, d_k], initial, Role::Positions);
                Some(RelativePositions::Vectors { table, reach })
            }
            Positions::Bucketed => {
                let buckets = Buckets { count: self.config.relative_buckets, reach, causal };
                let table = match self.distances[self.side as usize] {
                    Some(table) => table,
                    None => self.distance_table(buckets.count, heads),
                };
                Some(RelativePositions::Bias { table, buckets })
            }
            Positions::Sinusoidal | Positions::Learned | Positions::None => None,
        }
    }

    /// The table of relative position buckets of a stack; it is outside the layers because they all
    /// share it.
    fn distance_table(&mut self, buckets: usize, heads: usize) -> Param {
        let name = match self.side {
            Side::Source => "encoder.distances",
            Side::Target => "decoder.distances",
        };
        let location = Location { stack: Some(self.side), layer: None };
        let (initial, shape) = (Initial::Glorot { fan_out: buckets, residual: false }, [buckets, heads]);
        let table = self.parameters.add(name, shape, initial, Role::Positions, location);
        self.distances[self.side as usize] = Some(table);
        table
    }

    /// Cross-attention, layer `layer` of the stack.
    pub fn cross_attention(&mut self, name: &str, layer: usize) -> CrossAttentionLayer {
        let (d, heads) = (self.config.d_model, self.config.head_shape(self.side));
        let all = 2 * heads.keys() + heads.values();
        CrossAttentionLayer {
            layer,
            q: self.linear_like(&format!("{name}.q"), heads.keys(), d, all),
            kv: self.linear_like(&format!("{name}.kv"), heads.keys() + heads.values(), d, all),
            out: self.output(&format!("{name}.out"), d, heads.values()),
            norm: self.norm(&format!("{name}_norm")),
        }
    }

    /// A feed-forward layer.
    pub fn feed_forward(&mut self, name: &str) -> FeedForwardLayer {
        let (d, d_ff) = (self.config.d_model, self.config.feed_forward_width(self.side));
        FeedForwardLayer {
            gate: self.config.gated.then(|| self.linear(&format!("{name}.gate"), d_ff, d)),
            up: self.linear(&format!("{name}.up"), d_ff, d),
            down: self.output(&format!("{name}.down"), d, d_ff),
            norm: self.norm(&format!("{name}_norm")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Parameter, Transformer};
    use super::*;

    #[test]
    fn a_matrix_knows_its_own_bias() {
        let small = || ModelConfig {
            d_model: 8,
            heads: 2,
            source_vocabulary: 9,
            target_vocabulary: 9,
            ..ModelConfig::default()
        };
        for config in [
            ModelConfig { combine: Combine::Concatenate, ..small() },
            ModelConfig { decoder: DecoderKind::Ssru, ..small() },
            ModelConfig { gated: true, ..small() },
            ModelConfig { encoder: EncoderKind::RECURRENT, ..small() },
        ] {
            let model = Transformer::new(config).unwrap();
            let of = |param: Param| model.parameters().iter().find(|p| p.param == param).unwrap();
            for matrix in model.parameters() {
                let has = matrix.role == Role::Matrix && !matrix.name.ends_with("candidate.weight");
                assert_eq!(matrix.bias.is_some(), has, "{}", matrix.name);
                let Some(Parameter { name, role, shape, .. }) = matrix.bias.map(of) else { continue };
                assert_eq!(*name, matrix.name.replace(".weight", ".bias"));
                assert_eq!((*role, *shape), (Role::Vector, [1, matrix.shape[0]]));
            }
        }
    }

    #[test]
    fn the_last_matrix_of_each_sub_layer_is_scaled_and_nothing_else() {
        let sizes = || ModelConfig {
            d_model: 8,
            heads: 2,
            source_vocabulary: 9,
            target_vocabulary: 9,
            encoder_layers: 2,
            decoder_layers: 1,
            ..ModelConfig::default()
        };
        let cases = [
            (sizes(), ["self_attn.out", "ffn.down"], vec!["self_attn.out", "cross_attn.out", "ffn.down"]),
            (
                ModelConfig { decoder: DecoderKind::Ssru, encoder: EncoderKind::RECURRENT, ..sizes() },
                ["recurrent.out", "ffn.down"],
                vec!["ssru.candidate", "cross_attn.out", "ffn.down"],
            ),
        ];
        for (config, encoder, decoder) in cases {
            let model = Transformer::new(config).unwrap();
            let before = model.parameters().initialise(1);
            let mut after = before.clone();
            model.parameters().scale_residual(&mut after, 0.5, 0.25);
            let mut scaled = Vec::new();
            for parameter in model.parameters() {
                let (old, new) = (&before[parameter.param.range()], &after[parameter.param.range()]);
                if old != new {
                    let factor = if parameter.name.starts_with("encoder") { 0.5 } else { 0.25 };
                    assert!(old.iter().zip(new).all(|(old, new)| *new == factor * old), "{}", parameter.name);
                    scaled.push(parameter.name.clone());
                }
            }
            let of = |layer: &str, name: &str| format!("{layer}.{name}.weight");
            let layers = ["encoder.layers.0", "encoder.layers.1"];
            let mut all: Vec<String> =
                layers.iter().flat_map(|layer| encoder.map(|name| of(layer, name))).collect();
            all.extend(decoder.iter().map(|name| of("decoder.layers.0", name)));
            assert_eq!(scaled, all);
        }
    }
}
