//! Where the decoder looks: the weights of the cross-attention, computed beside the tape.

use super::layers::{
    CrossAttentionLayer, EmbeddingLayer, Executor, LinearLayer, NormLayer, SelfAttentionLayer,
};
use super::{Taped, Transformer};
use crate::autograd::{Tape, Var};
use crate::batch::Packed;
use crate::{Error, Isa, Result};

/// The tape, and the weights of the last cross-attention that went over it.
struct Watched<'a> {
    tape: Taped<'a>,
    model: &'a Transformer,
    last: Vec<f32>,
}

/// The weights `[m, n]` of the last layer's cross-attention, averaged over its heads; rows are the target's tokens, as they are to be
/// said, columns the source's. Both sides end with their `</s>`.
pub fn cross_attention(
    model: &Transformer,
    weights: &[f32],
    source: &[u32],
    target: &[u32],
    isa: Isa,
) -> Result<Vec<f32>> {
    if source.is_empty() || target.is_empty() {
        let message = format!("{} source and {} target tokens, both need one", source.len(), target.len());
        return Err(Error::Input { operation: "cross-attention", message });
    }
    let mut input = vec![model.config().target_pad()];
    input.extend_from_slice(&target[..target.len() - 1]);
    let (source, input) = (Packed::new([source]), Packed::new([&input[..]]));
    let mut tape = Tape::new(isa, 1);
    let tape = Taped::new(&mut tape, model, weights, None, (&source, &input), None)?;
    let mut watched = Watched { tape, model, last: Vec::new() };
    let memory = model.encode(&mut watched);
    model.decode(&mut watched, memory);
    Ok(watched.last)
}

impl Executor for Watched<'_> {
    type Tensor = Var;

    fn embed(&mut self, layer: &EmbeddingLayer) -> Var {
        self.tape.embed(layer)
    }

    fn linear(&mut self, x: Var, layer: &LinearLayer) -> Var {
        self.tape.linear(x, layer)
    }

    fn activated(&mut self, x: Var, layer: &LinearLayer) -> Var {
        self.tape.activated(x, layer)
    }

    fn self_attention(&mut self, qkv: Var, layer: &SelfAttentionLayer) -> Var {
        self.tape.self_attention(qkv, layer)
    }

    fn memory(&mut self, memory: Var, layer: &CrossAttentionLayer) -> Var {
        self.tape.memory(memory, layer)
    }

    fn cross_attention(&mut self, q: Var, kv: Var, layer: &CrossAttentionLayer) -> Var {
        let heads = self.model.config().head_shape();
        let (queries, keys) = (self.tape.value(q), self.tape.value(kv));
        let (width, columns) = (heads.keys(), heads.keys() + heads.values());
        let (m, n) = (queries.len() / width, keys.len() / columns);
        let scale = (heads.d_k as f32).sqrt().recip();
        let mut mean = vec![0.0; m * n];
        let mut row = vec![0.0; n];
        for (i, query) in queries.chunks(width).enumerate() {
            for (head, query) in query.chunks(heads.d_k).enumerate() {
                for (score, key) in row.iter_mut().zip(keys.chunks(columns)) {
                    let key = &key[head * heads.d_k..][..heads.d_k];
                    *score = scale * query.iter().zip(key).map(|(a, b)| a * b).sum::<f32>();
                }
                let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f32 = row.iter().map(|s| (s - most).exp()).sum();
                for (to, score) in mean[i * n..].iter_mut().zip(&row) {
                    *to += (score - most).exp() / (sum * heads.heads as f32);
                }
            }
        }
        self.last = mean;
        self.tape.cross_attention(q, kv, layer)
    }

    fn add_norm(&mut self, x: Var, branch: Var, norm: &NormLayer) -> Var {
        self.tape.add_norm(x, branch, norm)
    }

    fn norm(&mut self, x: Var, norm: &NormLayer) -> Var {
        self.tape.norm(x, norm)
    }

    fn add(&mut self, x: Var, branch: Var) -> Var {
        self.tape.add(x, branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelConfig;

    #[test]
    fn rows_are_distributions_over_the_source() {
        let config = ModelConfig {
            source_vocabulary: 20,
            target_vocabulary: 20,
            d_model: 16,
            heads: 2,
            d_ff: 16,
            encoder_layers: 1,
            decoder_layers: 2,
            ..ModelConfig::default()
        };
        let model = Transformer::new(config).unwrap();
        let weights = model.parameters().initialise(3);
        let (source, target) = ([3, 4, 5, 0], [7, 8, 0]);
        let map = cross_attention(&model, &weights, &source, &target, Isa::best()).unwrap();
        assert_eq!(map.len(), 12);
        for row in map.chunks(4) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
        }
        // A row depends on what was said before it alone.
        let other = cross_attention(&model, &weights, &source, &[7, 9, 0], Isa::best()).unwrap();
        assert_eq!(map[..8], other[..8]);
        assert_ne!(map[8..], other[8..]);
        assert!(cross_attention(&model, &weights, &[], &target, Isa::best()).is_err());
        assert!(cross_attention(&model, &weights, &[99], &target, Isa::best()).is_err());
    }
}
