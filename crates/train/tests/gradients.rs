//! One table of all operations: each is run on the tape, compared with its definition in `f64`, and
//! its backward with finite differences of that definition.

use regard_core::batch::Packed;
use regard_core::model::positions::Buckets;
use regard_core::model::{HeadShape, RecurrentCell, RelativePositions};
use regard_core::{Gemm, Isa};
use regard_kernels::{Activation, Dropout, Key, Mask, naive};
use regard_train::autograd::ops::{
    AddNorm, CrossAttention, CrossEntropy, Embedding, Linear, Multiply, Pick, Pointer, Pointing,
    PositionVectors, RDrop, Recurrent, Residual, Scale, SelfAttention, Ssru, Unfold,
};
use regard_train::autograd::{Draw, Param, SampledSoftmax, Tape, Var, Weights};
use std::sync::Arc;

type Vectors = Vec<Vec<f64>>;
type Record = Box<dyn Fn(&mut Tape, &[f32], Option<&mut [f32]>, &[Var], &[Param]) -> Var>;
type Definition = Box<dyn Fn(&Vectors, &Vectors) -> Vec<f64>>;

/// An operation, its inputs and parameters by size, how to record it, and what it computes.
struct Case {
    name: String,
    inputs: Vec<(usize, usize)>,
    parameters: Vec<usize>,
    record: Record,
    definition: Definition,
}

fn dropout(rate: f32) -> Option<Dropout> {
    (rate > 0.0).then(|| Dropout::new(Key::new(5), rate, 3))
}

fn factor(rate: f32, r: usize, c: usize, cols: usize) -> f64 {
    dropout(rate).map_or(1.0, |d| f64::from(d.factor(r, c, cols)))
}

fn linear(activation: Activation, rate: f32, with_bias: bool) -> Case {
    let (rows, input, outputs) = (5, 3, 7);
    let output = outputs;
    Case {
        name: format!("linear {activation:?} dropout {rate} bias {with_bias}"),
        inputs: vec![(rows, input)],
        parameters: if with_bias { vec![output * input, output] } else { vec![output * input] },
        record: Box::new(move |tape, w, g, x, p| {
            let (x, weight, bias) = (x[0], p[0], p.get(1).copied());
            tape.push(w, g, Linear { x, weight, bias, outputs, activation, dropout: dropout(rate) })
        }),
        definition: Box::new(move |x, p| {
            (0..rows * output)
                .map(|i| {
                    let (r, o) = (i / output, i % output);
                    let z: f64 = (0..input).map(|k| x[0][r * input + k] * p[0][o * input + k]).sum();
                    let z = z + p.get(1).map_or(0.0, |bias| bias[o]);
                    let y = match activation {
                        Activation::Identity => z,
                        Activation::Relu => naive::relu(z),
                        Activation::Gelu => naive::gelu(z),
                        Activation::GeluTanh => naive::gelu_tanh(z),
                        Activation::Silu => naive::silu(z),
                    };
                    factor(rate, r, o, output) * y
                })
                .collect()
        }),
    }
}

fn add_norm(with_branch: bool, rate: f32, rms: bool) -> Case {
    let (rows, d) = (4, 6);
    let epsilon = 1e-5f32;
    Case {
        name: format!("add_norm branch {with_branch} dropout {rate} RMS {rms}"),
        inputs: vec![(rows, d); if with_branch { 2 } else { 1 }],
        parameters: vec![d; if rms { 1 } else { 2 }],
        record: Box::new(move |tape, w, g, x, p| {
            let (branch, beta) = (x.get(1).copied(), p.get(1).copied());
            let dropout = dropout(rate);
            tape.push(w, g, AddNorm { x: x[0], branch, dropout, gamma: p[0], beta, epsilon })
        }),
        definition: Box::new(move |x, p| {
            (0..rows)
                .flat_map(|r| {
                    let branch = |c| x.get(1).map_or(0.0, |f| f[r * d + c] * factor(rate, r, c, d));
                    let sum: Vec<f64> = (0..d).map(|c| x[0][r * d + c] + branch(c)).collect();
                    match p.get(1) {
                        Some(beta) => naive::layer_norm(&sum, &p[0], beta, f64::from(epsilon)),
                        None => naive::rms_norm(&sum, &p[0], f64::from(epsilon)),
                    }
                })
                .collect()
        }),
    }
}

fn residual(rate: f32) -> Case {
    let (rows, d) = (3, 5);
    Case {
        name: format!("residual dropout {rate}"),
        inputs: vec![(rows, d); 2],
        parameters: vec![],
        record: Box::new(move |tape, w, g, x, _| {
            tape.push(w, g, Residual { x: x[0], branch: x[1], dropout: dropout(rate) })
        }),
        definition: Box::new(move |x, _| {
            (0..rows * d).map(|i| x[0][i] + x[1][i] * factor(rate, i / d, i % d, d)).collect()
        }),
    }
}

fn multiply() -> Case {
    Case {
        name: "multiply".into(),
        inputs: vec![(3, 5); 2],
        parameters: vec![],
        record: Box::new(|tape, w, g, x, _| tape.push(w, g, Multiply { a: x[0], b: x[1] })),
        definition: Box::new(|x, _| x[0].iter().zip(&x[1]).map(|(a, b)| a * b).collect()),
    }
}

/// A value times itself: both gradients go to one place.
fn square() -> Case {
    Case {
        name: "square".into(),
        inputs: vec![(3, 5)],
        parameters: vec![],
        record: Box::new(|tape, w, g, x, _| tape.push(w, g, Multiply { a: x[0], b: x[0] })),
        definition: Box::new(|x, _| x[0].iter().map(|a| a * a).collect()),
    }
}

fn scale() -> Case {
    Case {
        name: "scale".into(),
        inputs: vec![(3, 5)],
        parameters: vec![],
        record: Box::new(|tape, w, g, x, _| tape.push(w, g, Scale { x: x[0], factor: -0.25 })),
        definition: Box::new(|x, _| x[0].iter().map(|x| -0.25 * x).collect()),
    }
}

const SHAPE: HeadShape = HeadShape { heads: 2, d_k: 3, d_v: 4 };
/// 1/√d_k
const SCALE: f32 = 0.577_350_3;
/// The spacing of attention's dropout counters, which is part of what makes a run reproducible.
const COUNTERS: usize = 1 << 14;

/// What is learned about distances.
#[derive(Clone, Copy)]
enum Distances<'a> {
    None,
    /// A table of vectors, and how far it reaches.
    Vectors(&'a [f64], usize),
    /// A table `[buckets, h]`.
    Bias(&'a [f64], Buckets),
}

/// Attention of each sentence and head, by the naive twin: `q [m, h·d_k]`, `k`, `v` as slices of
/// rows.
fn heads(
    (q, k, v): (&[f64], &[f64], &[f64]),
    scale: f32,
    (queries, keys): (&[usize], &[usize]),
    mask: Mask,
    distances: Distances<'_>,
    rate: f32,
) -> Vec<f64> {
    let HeadShape { heads, d_k, d_v } = SHAPE;
    let mut out = vec![0.0; queries[queries.len() - 1] * heads * d_v];
    for b in 0..queries.len() - 1 {
        let (m, n) = (queries[b + 1] - queries[b], keys[b + 1] - keys[b]);
        for h in 0..heads {
            let part = |x: &[f64], at: usize, rows: usize, d: usize| -> Vec<f64> {
                (0..rows * d).map(|i| x[(at + i / d) * heads * d + h * d + i % d]).collect()
            };
            let (y, _) = naive::biased_attention(
                &part(q, queries[b], m, d_k),
                &part(k, keys[b], n, d_k),
                &part(v, keys[b], n, d_v),
                naive::Sizes { m, n, d_k, d_v },
                f64::from(scale),
                |i, j| mask.range(i, m, n).contains(&j),
                |i, j, c| match distances {
                    Distances::Vectors(table, reach) => {
                        table[(j + reach).saturating_sub(i).min(2 * reach) * d_k + c]
                    }
                    _ => 0.0,
                },
                |i, j| match distances {
                    Distances::Bias(table, buckets) => table[buckets.of(j as isize - i as isize) * heads + h],
                    _ => 0.0,
                },
                |i, j| {
                    dropout(rate).map_or(1.0, |d| f64::from(d.head(h).factor(queries[b] + i, j, COUNTERS)))
                },
            );
            for (i, y) in y.iter().enumerate() {
                out[(queries[b] + i / d_v) * heads * d_v + h * d_v + i % d_v] = *y;
            }
        }
    }
    out
}

fn columns(x: &[f64], width: usize, from: usize, cols: usize) -> Vec<f64> {
    x.chunks(width).flat_map(|row| row[from..from + cols].to_vec()).collect()
}

fn self_attention(mask: Mask, relative: bool, rate: f32) -> Case {
    let offsets: Arc<[usize]> = vec![0, 4, 5, 5, 8].into();
    let (k, v, reach) = (SHAPE.keys(), SHAPE.values(), 2);
    let width = 2 * k + v;
    let for_definition = offsets.clone();
    Case {
        name: format!("self_attention {mask:?} relative {relative} dropout {rate}"),
        inputs: vec![(8, width)],
        parameters: if relative { vec![(2 * reach + 1) * SHAPE.d_k] } else { vec![] },
        record: Box::new(move |tape, w, g, x, p| {
            let relative = p.first().map(|&table| RelativePositions::Vectors { table, reach });
            let dropout = dropout(rate);
            let offsets = offsets.clone();
            let (shape, scale) = (SHAPE, SCALE);
            tape.push(w, g, SelfAttention { qkv: x[0], shape, scale, mask, offsets, dropout, relative })
        }),
        definition: Box::new(move |x, p| {
            let (q, keys) = (columns(&x[0], width, 0, k), columns(&x[0], width, k, k));
            let values = columns(&x[0], width, 2 * k, v);
            let distances = p.first().map_or(Distances::None, |t| Distances::Vectors(t, reach));
            let offsets = (&for_definition[..], &for_definition[..]);
            heads((&q, &keys, &values), SCALE, offsets, mask, distances, rate)
        }),
    }
}

/// Self-attention with bucketed positions, and with scores that are not scaled as usual.
fn biased_attention(causal: bool, scale: f32, rate: f32) -> Case {
    let offsets: Arc<[usize]> = vec![0, 7, 8, 8, 11].into();
    let (k, v) = (SHAPE.keys(), SHAPE.values());
    let width = 2 * k + v;
    let (mask, buckets) = (Mask { causal, window: None }, Buckets { count: 4, reach: 4, causal });
    let for_definition = offsets.clone();
    Case {
        name: format!("self_attention causal {causal} scale {scale} bias dropout {rate}"),
        inputs: vec![(11, width)],
        parameters: vec![buckets.count * SHAPE.heads],
        record: Box::new(move |tape, w, g, x, p| {
            let relative = Some(RelativePositions::Bias { table: p[0], buckets });
            let (shape, dropout, offsets) = (SHAPE, dropout(rate), offsets.clone());
            tape.push(w, g, SelfAttention { qkv: x[0], shape, scale, mask, offsets, dropout, relative })
        }),
        definition: Box::new(move |x, p| {
            let (q, keys) = (columns(&x[0], width, 0, k), columns(&x[0], width, k, k));
            let values = columns(&x[0], width, 2 * k, v);
            let offsets = (&for_definition[..], &for_definition[..]);
            heads((&q, &keys, &values), scale, offsets, mask, Distances::Bias(&p[0], buckets), rate)
        }),
    }
}

fn cross_attention(scale: f32, rate: f32) -> Case {
    let queries: Arc<[usize]> = vec![0, 2, 5].into();
    let keys: Arc<[usize]> = vec![0, 4, 5].into();
    let (k, v) = (SHAPE.keys(), SHAPE.values());
    let (q_offsets, k_offsets) = (queries.clone(), keys.clone());
    Case {
        name: format!("cross_attention scale {scale} dropout {rate}"),
        inputs: vec![(5, k), (5, k + v)],
        parameters: vec![],
        record: Box::new(move |tape, w, g, x, _| {
            let (queries, keys) = (queries.clone(), keys.clone());
            let (shape, dropout) = (SHAPE, dropout(rate));
            tape.push(w, g, CrossAttention { q: x[0], kv: x[1], shape, scale, queries, keys, dropout })
        }),
        definition: Box::new(move |x, _| {
            let (keys, values) = (columns(&x[1], k + v, 0, k), columns(&x[1], k + v, k, v));
            let offsets = (&q_offsets[..], &k_offsets[..]);
            heads((&x[0], &keys, &values), scale, offsets, Mask::NONE, Distances::None, rate)
        }),
    }
}

/// Sentences of several lengths, one of them empty, in another order than that of their lengths.
const RAGGED: [usize; 5] = [0, 2, 6, 6, 9];

/// The states of each sentence by the naive twin, one direction after the other.
fn recurrent(both: bool) -> Case {
    let (h, rows, directions) = (3, 9, if both { 2 } else { 1 });
    Case {
        name: format!("recurrent both {both}"),
        inputs: vec![(rows, directions * 3 * h)],
        parameters: [3 * h * h, 3 * h].repeat(directions),
        record: Box::new(move |tape, w, g, x, p| {
            let cell = |i: usize| RecurrentCell { weight: p[2 * i], bias: p[2 * i + 1] };
            let (forward, backward) = (cell(0), both.then(|| cell(1)));
            tape.push(w, g, Recurrent { x: x[0], forward, backward, offsets: RAGGED.into() })
        }),
        definition: Box::new(move |x, p| {
            let width = directions * h;
            let mut y = vec![0.0; rows * width];
            for (i, sentence) in (0..directions).flat_map(|i| RAGGED.windows(2).map(move |w| (i, w))) {
                let mut state = vec![0.0; h];
                for t in 0..sentence[1] - sentence[0] {
                    let row = if i == 0 { sentence[0] + t } else { sentence[1] - 1 - t };
                    let u: Vec<f64> = (0..3 * h)
                        .map(|o| {
                            p[2 * i + 1][o] + (0..h).map(|c| p[2 * i][o * h + c] * state[c]).sum::<f64>()
                        })
                        .collect();
                    state = naive::gru_step(&x[0][(row * directions + i) * 3 * h..][..3 * h], &u, &state);
                    y[row * width + i * h..][..h].copy_from_slice(&state);
                }
            }
            y
        }),
    }
}

fn unfold(width: usize, dilation: usize) -> Case {
    let (d, rows) = (3, 9);
    Case {
        name: format!("unfold {width}, dilation {dilation}"),
        inputs: vec![(rows, d)],
        parameters: vec![],
        record: Box::new(move |tape, w, g, x, _| {
            tape.push(w, g, Unfold { x: x[0], width, dilation, offsets: RAGGED.into() })
        }),
        definition: Box::new(move |x, _| {
            let sentence = |row: usize| RAGGED.windows(2).find(|w| (w[0]..w[1]).contains(&row)).unwrap();
            (0..rows * width * d)
                .map(|i| {
                    let (row, tap, c) = (i / (width * d), i / d % width, i % d);
                    let there = row as isize + (tap as isize - width as isize / 2) * dilation as isize;
                    let inside = |w: &[usize]| (w[0] as isize..w[1] as isize).contains(&there);
                    if inside(sentence(row)) { x[0][there as usize * d + c] } else { 0.0 }
                })
                .collect()
        }),
    }
}

fn pick() -> Case {
    let (d, rows) = (3, [4usize, 0, 4]);
    Case {
        name: "pick".into(),
        inputs: vec![(5, d)],
        parameters: vec![],
        record: Box::new(move |tape, w, g, x, _| tape.push(w, g, Pick { x: x[0], rows: rows.into() })),
        definition: Box::new(move |x, _| rows.iter().flat_map(|row| x[0][row * d..][..d].to_vec()).collect()),
    }
}

/// With `first` rows of learned positions that no token has, and then no padding.
fn embedding(learned: bool, concatenate: bool, rate: f32, first: usize) -> Case {
    let (words, d, scale) = (6usize, 4usize, 2.0f32);
    let last = words as u32 - 1;
    let pad = (first == 0).then_some(last);
    let tokens = Packed::new([&[last, 2, 2, 0][..], &[1, 3]]);
    let fixed: Vec<f32> = (0..5 * d).map(|i| (i as f32).sin()).collect();
    let (ids, positions) = (tokens.ids().to_vec(), tokens.positions().collect::<Vec<_>>());
    let cols = if concatenate { 2 * d } else { d };
    let fixed_for_definition = fixed.clone();
    Case {
        name: format!("embedding learned {learned} concatenate {concatenate} dropout {rate} first {first}"),
        inputs: vec![],
        parameters: if learned { vec![words * d, (5 + first) * d] } else { vec![words * d] },
        record: Box::new(move |tape, w, g, _, p| {
            let positions = match learned {
                true => PositionVectors::Learned(p[1], first),
                false => PositionVectors::Fixed(fixed.clone().into()),
            };
            let (tokens, dropout) = (tokens.clone(), dropout(rate));
            let table = p[0];
            tape.push(
                w,
                g,
                Embedding { tokens, table, width: d, scale, positions, concatenate, pad, dropout },
            )
        }),
        definition: Box::new(move |_, p| {
            let position = |r: usize, c: usize| match learned {
                true => p[1][(first + positions[r]) * d + c],
                false => f64::from(fixed_for_definition[positions[r] * d + c]),
            };
            let token = |r: usize, c: usize| match Some(ids[r]) == pad {
                true => 0.0,
                false => f64::from(scale) * p[0][ids[r] as usize * d + c],
            };
            (0..ids.len() * cols)
                .map(|i| {
                    let (r, c) = (i / cols, i % cols);
                    let y = match (concatenate, c < d) {
                        (true, true) => token(r, c),
                        (true, false) => position(r, c - d),
                        (false, _) => token(r, c) + position(r, c),
                    };
                    y * factor(rate, r, c, cols)
                })
                .collect()
        }),
    }
}

/// A vocabulary of one block, and one of several with a partial one at the end.
fn cross_entropy(words: usize, smoothing: f32, biased: bool) -> Case {
    let (rows, d) = (3, 2);
    let bias: Option<Arc<[f32]>> = biased.then(|| (0..=words).map(|w| (w % 5) as f32 * 0.25).collect());
    let bias_for_definition = bias.clone();
    let targets: Arc<[u32]> = vec![0, words as u32 - 1, words as u32 / 2].into();
    let scale = 0.25f32;
    let for_definition = targets.clone();
    Case {
        name: format!("cross_entropy of {words} words, smoothing {smoothing}, biased {biased}"),
        inputs: vec![(rows, d)],
        // One more word, padding, which takes no part.
        parameters: vec![(words + 1) * d],
        record: Box::new(move |tape, w, g, x, p| {
            let (targets, bias) = (targets.clone(), bias.clone());
            tape.push(w, g, CrossEntropy { x: x[0], table: p[0], bias, words, targets, smoothing, scale })
        }),
        definition: Box::new(move |x, p| {
            (0..rows)
                .map(|r| {
                    let bias = |w: usize| bias_for_definition.as_ref().map_or(0.0, |b| f64::from(b[w]));
                    let logits: Vec<f64> = (0..words)
                        .map(|w| bias(w) + (0..d).map(|c| x[0][r * d + c] * p[0][w * d + c]).sum::<f64>())
                        .collect();
                    naive::cross_entropy(&logits, for_definition[r] as usize, f64::from(smoothing))
                })
                .collect()
        }),
    }
}

/// The sample of a softmax of 1,500 words, besides these targets.
fn sample(targets: &[u32], bias: Option<&[f32]>, words: usize) -> SampledSoftmax {
    let mut sample = SampledSoftmax::default();
    let draw = Draw { words, count: 600, key: Key::new(11), bias };
    assert!(sample.draw(targets.iter().copied(), draw), "a sample of {words} words");
    sample
}

/// A sample of more than one block of words, with and without R-Drop's divergence of two passes.
fn sampled_softmax(weight: Option<f32>, biased: bool) -> Case {
    let (half, d, words, smoothing, scale) = (2, 2, 1500, 0.1, 0.25f32);
    let rows = 2 * half;
    let targets: Arc<[u32]> = [3u32, 1499, 3, 1499].into();
    let bias: Option<Arc<[f32]>> = biased.then(|| (0..=words).map(|w| (w % 5) as f32 * 0.25).collect());
    let chosen = sample(&targets, bias.as_deref(), words);
    assert!(chosen.words().len() > 512);
    let (chosen, offsets) = (chosen.words().to_vec(), widen(chosen.bias()));
    let for_definition = targets.clone();
    Case {
        name: format!("cross_entropy of a sample, r_drop {weight:?}, biased {biased}"),
        inputs: vec![(rows, d)],
        parameters: vec![(words + 1) * d],
        record: Box::new(move |tape, w, g, x, p| {
            let mut sample = sample(&targets, bias.as_deref(), words);
            sample.pack(tape.gemm(), w, p[0], d, 2);
            let weights = Weights::from(w).with_sample(Some(&sample));
            let (targets, bias) = (targets.clone(), bias.clone());
            let loss = CrossEntropy { x: x[0], table: p[0], bias, words, targets, smoothing, scale };
            match weight {
                Some(weight) => tape.push(weights, g, RDrop { loss, weight }),
                None => tape.push(weights, g, loss),
            }
        }),
        definition: Box::new(move |x, p| {
            let logits = |r: usize| -> Vec<f64> {
                let product =
                    |w: u32| (0..d).map(|c| x[0][r * d + c] * p[0][w as usize * d + c]).sum::<f64>();
                chosen.iter().zip(&offsets).map(|(&w, offset)| product(w) + offset).collect()
            };
            let loss = |r: usize| {
                let target = chosen.binary_search(&for_definition[r]).unwrap();
                let other = naive::log_softmax(&logits((r + half) % rows));
                let own = naive::log_softmax(&logits(r));
                let apart: f64 = own.iter().zip(&other).map(|(a, b)| (a.exp() - b.exp()) * (a - b)).sum();
                naive::cross_entropy(&logits(r), target, f64::from(smoothing))
                    + 0.25 * f64::from(weight.unwrap_or(0.0)) * apart
            };
            (0..rows).map(loss).collect()
        }),
    }
}

/// Two passes over 70 tokens, so that their logits do not fit one group.
fn r_drop(weight: f32, biased: bool) -> Case {
    let (half, d, words, smoothing) = (70, 3, 5, 0.1);
    let targets: Arc<[u32]> = (0..2 * half).map(|r| (r % half % words) as u32).collect();
    let bias: Option<Arc<[f32]>> = biased.then(|| (0..=words).map(|w| w as f32 * 0.25).collect());
    let (for_definition, bias_for_definition) = (targets.clone(), bias.clone());
    Case {
        name: format!("r_drop {weight}, biased {biased}"),
        inputs: vec![(2 * half, d)],
        parameters: vec![(words + 1) * d],
        record: Box::new(move |tape, w, g, x, p| {
            let (targets, bias) = (targets.clone(), bias.clone());
            let loss = CrossEntropy { x: x[0], table: p[0], bias, words, targets, smoothing, scale: 0.25 };
            tape.push(w, g, RDrop { loss, weight })
        }),
        definition: Box::new(move |x, p| {
            let bias = |w: usize| bias_for_definition.as_ref().map_or(0.0, |b| f64::from(b[w]));
            let logits = |r: usize| -> Vec<f64> {
                let product = |w: usize| (0..d).map(|c| x[0][r * d + c] * p[0][w * d + c]).sum::<f64>();
                (0..words).map(|w| bias(w) + product(w)).collect()
            };
            (0..2 * half)
                .map(|r| {
                    let other = naive::log_softmax(&logits((r + half) % (2 * half)));
                    let own = naive::log_softmax(&logits(r));
                    let apart: f64 = own.iter().zip(&other).map(|(a, b)| (a.exp() - b.exp()) * (a - b)).sum();
                    naive::cross_entropy(&logits(r), for_definition[r] as usize, f64::from(smoothing))
                        + 0.25 * f64::from(weight) * apart
                })
                .collect()
        }),
    }
}

/// Three sentences, one of a single token.
fn ssru() -> Case {
    let d = 5;
    let offsets: Arc<[usize]> = [0, 3, 4, 7].into();
    let for_definition = offsets.clone();
    Case {
        name: "ssru".into(),
        inputs: vec![(7, d); 2],
        parameters: vec![],
        record: Box::new(move |tape, w, g, x, _| {
            tape.push(w, g, Ssru { candidates: x[0], forget: x[1], offsets: offsets.clone() })
        }),
        definition: Box::new(move |x, _| naive::ssru(&x[0], &x[1], &for_definition, d)),
    }
}

/// Rows that point alone, together and twice, ranges that overlap, and one of a single choice.
fn pointer() -> Case {
    let (m, n, d) = (4, 7, 4);
    let pointing = |rows, among, target| Pointing { rows, among, target };
    let pointers: Arc<[Pointing]> =
        [pointing(0..1, 0..4, 1), pointing(2..4, 3..7, 0), pointing(0..3, 2..7, 4), pointing(2..3, 6..7, 0)]
            .into();
    let for_definition = pointers.clone();
    Case {
        name: "pointer".into(),
        inputs: vec![(m, d), (n, d)],
        parameters: vec![],
        record: Box::new(move |tape, w, g, x, _| {
            tape.push(w, g, Pointer { q: x[0], k: x[1], pointers: pointers.clone() })
        }),
        definition: Box::new(move |x, _| {
            let score = |row: usize, j: usize| {
                let product: f64 = (0..d).map(|c| x[0][row * d + c] * x[1][j * d + c]).sum();
                product / (d as f64).sqrt()
            };
            let loss = |p: &Pointing| {
                let all = |j| p.rows.clone().map(|row| score(row, j)).sum();
                let scores: Vec<f64> = p.among.clone().map(all).collect();
                naive::cross_entropy(&scores, p.target, 0.0)
            };
            for_definition.iter().map(loss).collect()
        }),
    }
}

fn table() -> Vec<Case> {
    let mut cases = Vec::new();
    for rate in [0.0, 0.4] {
        let activations = [Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu];
        for activation in [Activation::Identity].into_iter().chain(activations) {
            cases.extend([true, false].map(|with_bias| linear(activation, rate, with_bias)));
        }
        cases.extend([add_norm(true, rate, false), add_norm(true, rate, true), residual(rate)]);
        cases.extend([cross_attention(SCALE, rate), cross_attention(1.0, rate)]);
        for (causal, scale) in [(false, 1.0), (true, 1.0), (false, SCALE)] {
            cases.push(biased_attention(causal, scale, rate));
        }
        for (causal, window) in [(false, None), (true, None), (false, Some(1))] {
            let mask = Mask { causal, window };
            cases.extend([false, true].map(|relative| self_attention(mask, relative, rate)));
        }
        for learned in [false, true] {
            cases.extend([false, true].map(|concatenate| embedding(learned, concatenate, rate, 0)));
            cases.push(embedding(learned, false, rate, 2));
        }
    }
    cases.extend([add_norm(false, 0.0, false), add_norm(false, 0.0, true)]);
    cases.extend([multiply(), square(), scale()]);
    cases.extend([recurrent(false), recurrent(true), ssru(), pick()]);
    cases.extend([unfold(3, 1), unfold(3, 2), unfold(5, 1), unfold(3, 100)]);
    cases.extend([
        cross_entropy(7, 0.0, false),
        cross_entropy(7, 0.1, true),
        cross_entropy(1027, 0.1, false),
    ]);
    cases.push(cross_entropy(1027, 0.1, true));
    cases.extend([r_drop(0.0, false), r_drop(5.0, true)]);
    cases.extend([
        sampled_softmax(None, false),
        sampled_softmax(None, true),
        sampled_softmax(Some(5.0), true),
    ]);
    cases.push(pointer());
    cases
}

fn random(n: usize, seed: u64) -> Vec<f32> {
    let key = Key::new(seed);
    (0..n).map(|i| 2.0 * key.uniform(i as u32) - 1.0).collect()
}

fn widen(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

#[track_caller]
fn assert_close(got: &[f32], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let wrong = (f64::from(*got) - want).abs();
        assert!(wrong <= tolerance * want.abs().max(1.0), "{what}: number {i} is {got}, not {want}");
    }
}

#[test]
fn every_operation_agrees_with_its_definition_and_with_finite_differences() {
    for case in table() {
        for isa in Isa::available() {
            check(&case, Gemm::f32(isa), (1e-5, 1e-4));
        }
    }
}

/// The definition knows nothing of bf16: an operand is off by 2⁻⁹ of itself at most, and the sums
/// are short.
#[test]
fn matmuls_in_bf16_leave_values_and_gradients_what_they_are_but_for_their_rounding() {
    let isa = Isa::best();
    for gemm in Gemm::bf16(isa).into_iter().chain([Gemm::bf16_in_software(isa)]) {
        for case in table() {
            check(&case, gemm, (0.03, 0.03));
        }
    }
}

/// Asserts values and gradients within these tolerances.
fn check(case: &Case, gemm: Gemm, (exact, exact_grad): (f64, f64)) {
    let what = format!("{} on {} in {}", case.name, gemm.isa(), gemm.name());
    let inputs: Vec<Vec<f32>> =
        case.inputs.iter().enumerate().map(|(i, (r, c))| random(r * c, i as u64)).collect();
    let parameters: Vec<Vec<f32>> =
        case.parameters.iter().enumerate().map(|(i, n)| random(*n, 10 + i as u64)).collect();
    let weights: Vec<f32> = parameters.concat();
    let mut at = 0;
    let places: Vec<Param> = parameters
        .iter()
        .map(|p| {
            at += p.len();
            Param { offset: at - p.len(), len: p.len() }
        })
        .collect();

    let mut tape = Tape::with_gemm(gemm, 1);
    let mut gradients = vec![0.0; weights.len()];
    let vars: Vec<Var> = inputs.iter().zip(&case.inputs).map(|(x, (r, c))| tape.input(x, *r, *c)).collect();
    let y = (case.record)(&mut tape, &weights, Some(&mut gradients), &vars, &places);
    let (wide_inputs, wide_parameters): (Vectors, Vectors) =
        (inputs.iter().map(|x| widen(x)).collect(), parameters.iter().map(|x| widen(x)).collect());
    let got = tape.value(y).data().to_vec();
    assert_close(&got, &(case.definition)(&wide_inputs, &wide_parameters), exact, &what);

    // A loss knows its own gradient (scale times the sum of its rows); anything else gets a random
    // one.
    let is_loss = ["cross_entropy", "r_drop"].iter().any(|loss| case.name.starts_with(loss));
    let grad = if is_loss { vec![0.25; got.len()] } else { random(got.len(), 99) };
    tape.backward(&weights, &mut gradients, y, if is_loss { &[] } else { &grad });
    let total = |y: Vec<f64>| y.iter().zip(&grad).map(|(y, s)| y * f64::from(*s)).sum::<f64>();
    for (i, var) in vars.iter().enumerate() {
        let want = naive::finite_differences(&wide_inputs[i], 1e-6, |x| {
            let mut inputs = wide_inputs.clone();
            inputs[i] = x.to_vec();
            total((case.definition)(&inputs, &wide_parameters))
        });
        assert!(want.iter().any(|x| x.abs() > 1e-4), "{what}: input {i} has no gradient to check");
        let grad = tape.grad(*var).expect("a gradient");
        assert_close(grad, &want, exact_grad, &format!("{what}: gradient by input {i}"));
    }
    for (i, place) in places.iter().enumerate() {
        let want = naive::finite_differences(&wide_parameters[i], 1e-6, |p| {
            let mut parameters = wide_parameters.clone();
            parameters[i] = p.to_vec();
            total((case.definition)(&wide_inputs, &parameters))
        });
        assert!(want.iter().any(|x| x.abs() > 1e-4), "{what}: parameter {i} has no gradient to check");
        assert_close(
            &gradients[place.range()],
            &want,
            exact_grad,
            &format!("{what}: gradient by parameter {i}"),
        );
    }
}
