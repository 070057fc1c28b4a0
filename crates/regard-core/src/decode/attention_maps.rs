//! All attention maps of a model for a sentence and a given translation.

use super::executor::{Inference, Step};
use super::kv_cache::ModelCache;
use super::validate::{check, check_pairs};
use super::{Engine, SearchOptions};
use crate::batch::Packed;
use crate::model::{AttentionKind, AttentionMap, Side};
use crate::{Error, Result};
use regard_kernels::Team;
use std::ops::Range;

/// The weights of all attentions for `source` and a given `target`, both with their end token.
pub fn attention_maps(engine: &Engine, source: &[u32], target: &[u32]) -> Result<Vec<AttentionMap>> {
    let (n, m) = (source.len(), target.len());
    if n == 0 || m == 0 {
        let message = format!("{n} source and {m} target tokens, both need one");
        return Err(Error::Input { operation: "attention", message });
    }
    check_pairs(&[engine], &[(source.to_vec(), target.to_vec())], &SearchOptions::default())?;
    let config = engine.model().config();
    let (mut inference, mut cache) = (Inference::new(engine), ModelCache::default());
    let mut team = Team::new(1);
    inference.weights.own = Some(Vec::new());
    inference.encode(&mut team, &Packed::new([source]), &mut cache);
    let heads = config.head_shape(Side::Source).heads;
    let encoder = inference.weights.own.take().unwrap_or_default();
    let mut maps: Vec<AttentionMap> = encoder
        .into_iter()
        .enumerate()
        .map(|(layer, weights)| AttentionMap {
            kind: AttentionKind::Encoder,
            layer,
            heads,
            rows: n,
            columns: n,
            weights,
        })
        .collect();
    (inference.weights.own, inference.weights.cross) = (Some(Vec::new()), Some(Vec::new()));
    let read = [&[config.start()], &target[..m - 1]].concat();
    inference.decode(&mut team, &Step::whole(&read, n), &mut cache);
    let own = inference.weights.own.take().unwrap_or_default();
    let cross = inference.weights.cross.take().unwrap_or_default();
    let heads = config.head_shape(Side::Target).heads;
    let window = config.decoder_window().map_or(m, |reach| reach + 1);
    let past: Vec<Range<usize>> = (0..m).map(|i| (i + 1).saturating_sub(window)..i + 1).collect();
    for (layer, cross) in cross.iter().enumerate() {
        // An SSRU decoder has no self-attention.
        let own = own.get(layer).map(|own| (AttentionKind::Decoder, own, m, past.clone()));
        let both = own.into_iter().chain([(AttentionKind::Cross, cross, n, vec![0..n; m])]);
        maps.extend(both.map(|(kind, weights, columns, seen)| {
            let weights = by_head(heads, columns, weights, &seen);
            AttentionMap { kind, layer, heads, rows: m, columns, weights }
        }));
    }
    Ok(maps)
}

/// The output of the encoder for a source sentence with its end token: `[n, d]`.
pub fn encoder_output(engine: &Engine, source: &[u32]) -> Result<Vec<f32>> {
    check(&[engine], &[source.to_vec()], &SearchOptions::default())?;
    Ok(Inference::new(engine).encoder_output(&mut Team::new(1), &Packed::new([source])))
}

/// The inputs of a matmul.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerInputs {
    /// The offset of the matrix in the flat weight vector.
    pub weight: usize,
    /// `[rows, columns]`
    pub values: Vec<f32>,
    /// The number of columns.
    pub columns: usize,
}

/// The inputs of each matmul for `source` and a given `target`, both with their end token.
pub fn layer_inputs(engine: &Engine, source: &[u32], target: &[u32]) -> Result<Vec<LayerInputs>> {
    if source.is_empty() || target.is_empty() {
        return Ok(Vec::new());
    }
    check_pairs(&[engine], &[(source.to_vec(), target.to_vec())], &SearchOptions::default())?;
    let config = engine.model().config();
    let (mut inference, mut cache) = (Inference::new(engine), ModelCache::default());
    let mut team = Team::new(1);
    inference.inputs = Some(Vec::new());
    inference.encode(&mut team, &Packed::new([source]), &mut cache);
    let read = [&[config.start()], &target[..target.len() - 1]].concat();
    let (x, _) = inference.decode(&mut team, &Step::whole(&read, source.len()), &mut cache);
    let (values, columns) = (x.data().to_vec(), x.cols());
    let output = LayerInputs { weight: engine.model().output().offset, values, columns };
    Ok(inference.inputs.take().into_iter().flatten().chain([output]).collect())
}

/// Converts rows of `[h, seen]`, as the kernel writes them, to `[h, m, columns]`, with zeros where
/// a row does not attend.
fn by_head(heads: usize, columns: usize, weights: &[f32], seen: &[Range<usize>]) -> Vec<f32> {
    let m = seen.len();
    let mut all = vec![0.0; heads * m * columns];
    let mut rest = weights;
    for (i, seen) in seen.iter().enumerate() {
        for head in 0..heads {
            let (row, others) = rest.split_at(seen.len());
            all[(head * m + i) * columns..][seen.clone()].copy_from_slice(row);
            rest = others;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::model::{EncoderKind, ModelConfig, Positions, Transformer};
    use regard_kernels::Isa;

    fn engine(positions: Positions, window: Option<usize>) -> Engine {
        let config = ModelConfig {
            d_model: 16,
            heads: 2,
            d_ff: 24,
            encoder_layers: 2,
            decoder_layers: 2,
            source_vocabulary: 23,
            target_vocabulary: 23,
            positions,
            encoder: EncoderKind::Attention { window },
            ..ModelConfig::default()
        };
        let model = Transformer::new(config).unwrap();
        Engine::new(&model, &model.parameters().initialise(3), DType::F32, Isa::best())
    }

    const SOURCE: [u32; 5] = [4, 9, 2, 7, 0];
    const TARGET: [u32; 6] = [3, 8, 8, 1, 5, 0];

    #[test]
    fn rows_are_distributions_over_what_they_see() {
        for (positions, window) in
            [(Positions::Sinusoidal, None), (Positions::Relative, None), (Positions::Sinusoidal, Some(2))]
        {
            let engine = engine(positions, window);
            let maps = attention_maps(&engine, &SOURCE, &TARGET).unwrap();
            let kinds: Vec<_> = maps.iter().map(|map| (map.kind, map.layer)).collect();
            use AttentionKind::{Cross, Decoder, Encoder};
            assert_eq!(
                kinds,
                [(Encoder, 0), (Encoder, 1), (Decoder, 0), (Cross, 0), (Decoder, 1), (Cross, 1)]
            );
            for map in &maps {
                let (rows, columns) = match map.kind {
                    Encoder => (5, 5),
                    Decoder => (6, 6),
                    Cross => (6, 5),
                };
                assert_eq!((map.heads, map.rows, map.columns), (2, rows, columns));
                for (i, row) in map.weights.chunks_exact(columns).enumerate() {
                    let i = i % rows;
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{:?} {row:?}", map.kind);
                    let future = if map.kind == Decoder { &row[i + 1..] } else { &[] };
                    assert!(future.iter().all(|&w| w == 0.0), "{row:?}");
                    if let (Some(reach), true) = (window, map.kind != Cross) {
                        assert!(row.iter().enumerate().all(|(j, &w)| i.abs_diff(j) <= reach || w == 0.0));
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_what_is_said_later() {
        for positions in [Positions::Sinusoidal, Positions::Relative] {
            let engine = engine(positions, None);
            let whole = attention_maps(&engine, &SOURCE, &TARGET).unwrap();
            let part = attention_maps(&engine, &SOURCE, &TARGET[..3]).unwrap();
            for (whole, part) in whole.iter().zip(&part) {
                for head in 0..2 {
                    for i in 0..part.rows {
                        let row =
                            |map: &AttentionMap| map.head(head)[i * map.columns..][..part.columns].to_vec();
                        let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
                        assert!(row(whole).iter().zip(&row(part)).all(close), "{:?}", part.kind);
                    }
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let engine = engine(Positions::Sinusoidal, None);
        for (source, target, wanted) in [
            (&SOURCE[..0], &TARGET[..], "attention: 0 source and 6 target tokens, both need one"),
            (&[99, 0], &TARGET, "search: sentence 0: token 99 is not in the vocabulary of 23"),
        ] {
            assert_eq!(attention_maps(&engine, source, target).unwrap_err().to_string(), wanted);
        }
    }
}
