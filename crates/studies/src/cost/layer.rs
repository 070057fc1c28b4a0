//! One layer on the tape, and how long it takes.

use crate::mixer_kind::{MixerKind, WIDTH};
use crate::{Scale, Setup};
use regard_core::batch::Packed;
use regard_core::model::{Activation, HeadShape, Preset, RecurrentCell, Transformer};
use regard_core::{Key, Result};
use regard_kernels::Mask;
use regard_train::Taped;
use regard_train::autograd::ops::{Linear, Recurrent, SelfAttention, Unfold};
use regard_train::autograd::{Param, Tape, Var};
use std::time::Instant;

/// How far a window reaches to each side.
pub(super) const REACH: usize = 16;
/// Width of a head.
pub(super) const HEAD: usize = 32;
/// Words of the vocabulary of a whole layer's input.
const WORDS: usize = 100;

/// What is compared: the rows of the paper's Table 1.
pub(super) const KINDS: [MixerKind; 4] =
    [MixerKind::Attention, MixerKind::Window, MixerKind::Recurrent, MixerKind::Convolution];

/// The theory's count of multiplications, and its exponents of n and d.
pub(super) fn theory(kind: MixerKind) -> (&'static str, (f64, f64)) {
    match kind {
        MixerKind::Attention => ("n²·d", (2.0, 1.0)),
        MixerKind::Window => ("r·n·d", (1.0, 1.0)),
        MixerKind::Recurrent | MixerKind::BothDirections => ("n·d²", (1.0, 2.0)),
        MixerKind::Convolution | MixerKind::Dilated => ("k·n·d²", (1.0, 2.0)),
    }
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What the theory counts: attention without its projections, the recurrent unit and the
    /// convolution without that of their output.
    TokenMixer,
    /// All of an encoder layer.
    Layer,
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Part::TokenMixer => "the token mixer alone",
            Part::Layer => "the whole layer",
        }
    }
}

/// Seconds of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) forward: f64,
    pub(super) backward: f64,
}

/// Times of one sequence of `n` tokens at width `d`, the best of several runs.
pub(super) fn time(setup: &Setup<'_>, kind: MixerKind, part: Part, n: usize, d: usize) -> Result<Times> {
    let work = Work::new(kind, part, n, d)?;
    let mut tape = Tape::new(setup.isa, 1);
    let mut gradients = vec![0.0; work.weights.len()];
    let dy = random(n * d, 3);
    let mut best = Times { forward: f64::INFINITY, backward: f64::INFINITY };
    let (least, seconds) = if setup.scale == Scale::Smoke { (1, 0.0) } else { (3, 0.15) };
    let begin = Instant::now();
    let mut runs = 0;
    while runs < least || begin.elapsed().as_secs_f64() < seconds {
        tape.clear();
        let input = work.input(&mut tape);
        let start = Instant::now();
        let y = work.forward(&mut tape, input)?;
        best.forward = best.forward.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        tape.backward(&work.weights, &mut gradients, y, &dy);
        best.backward = best.backward.min(start.elapsed().as_secs_f64());
        tape.clear_grads();
        runs += 1;
    }
    Ok(best)
}

fn random(n: usize, seed: u64) -> Vec<f32> {
    let key = Key::new(seed);
    (0..n).map(|i| key.uniform(i as u32) - 0.5).collect()
}

/// A layer with weights and a sequence.
struct Work {
    kind: MixerKind,
    d: usize,
    offsets: [usize; 2],
    weights: Vec<f32>,
    /// The mixing's input, which is of no use to a whole layer.
    input: Vec<f32>,
    /// The whole layer and its tokens.
    layer: Option<(Transformer, Packed)>,
}

impl Work {
    fn new(kind: MixerKind, part: Part, n: usize, d: usize) -> Result<Self> {
        let offsets = [0, n];
        if part == Part::Layer {
            let mut config = Preset::Tiny.config(WORDS);
            (config.d_model, config.d_ff, config.heads) = (d, 4 * d, d.div_ceil(HEAD));
            (config.encoder_layers, config.decoder_layers) = (1, 1);
            kind.apply(&mut config, REACH);
            let model = Transformer::new(config)?;
            let weights = model.parameters().initialise(1);
            let key = Key::new(2);
            let ids: Vec<u32> = (0..n as u32).map(|i| key.bits(i) % (WORDS as u32 - 1)).collect();
            let layer = Some((model, Packed::new([&ids[..]])));
            return Ok(Work { kind, d, offsets, weights, input: Vec::new(), layer });
        }
        let (numbers, width) = match kind {
            MixerKind::Attention | MixerKind::Window => (0, 3 * d),
            MixerKind::Recurrent | MixerKind::BothDirections => (2 * (3 * d * d + 3 * d), d),
            MixerKind::Convolution | MixerKind::Dilated => (WIDTH * d * d + d, d),
        };
        let scale = (d as f32).sqrt().recip();
        let weights = random(numbers, 1).into_iter().map(|w| w * scale).collect();
        Ok(Work { kind, d, offsets, weights, input: random(n * width, 2), layer: None })
    }

    /// The mixing's input on the tape; without columns for a whole layer.
    fn input(&self, tape: &mut Tape) -> Var {
        let n = self.offsets[1];
        tape.input(&self.input, n, self.input.len() / n.max(1))
    }

    fn forward(&self, tape: &mut Tape, x: Var) -> Result<Var> {
        if let Some((model, tokens)) = &self.layer {
            let mut e = Taped::new(tape, model, &self.weights, None, (tokens, tokens), None)?;
            return Ok(model.encode(&mut e));
        }
        Ok(match self.kind {
            MixerKind::Attention => self.attention(tape, x, None),
            MixerKind::Window => self.attention(tape, x, Some(REACH)),
            // One unit is all that the theory counts; in both directions there are two of half the width.
            MixerKind::Recurrent | MixerKind::BothDirections => self.recurrent(tape, x),
            // Dilation changes which tokens are multiplied, not how many.
            MixerKind::Convolution | MixerKind::Dilated => self.convolution(tape, x),
        })
    }

    fn attention(&self, tape: &mut Tape, qkv: Var, window: Option<usize>) -> Var {
        let heads = self.d.div_ceil(HEAD);
        let shape = HeadShape { heads, d_k: self.d / heads, d_v: self.d / heads };
        let (mask, offsets) = (Mask { causal: false, window }, self.offsets.into());
        let scale = (shape.d_k as f32).sqrt().recip();
        tape.push(
            &self.weights,
            None,
            SelfAttention { qkv, shape, scale, mask, offsets, dropout: None, relative: None },
        )
    }

    /// A product with a matrix of this many rows and inputs that begins at `offset`, and its bias behind it.
    fn linear(&self, tape: &mut Tape, x: Var, offset: usize, rows: usize, inputs: usize) -> Var {
        let weight = Param { offset, len: rows * inputs };
        let bias = Param { offset: offset + weight.len, len: rows };
        let activation = Activation::Identity;
        tape.push(
            &self.weights,
            None,
            Linear { x, weight, bias: Some(bias), outputs: bias.len, activation, dropout: None },
        )
    }

    fn recurrent(&self, tape: &mut Tape, x: Var) -> Var {
        let d = self.d;
        let x = self.linear(tape, x, 0, 3 * d, d);
        let weight = Param { offset: 3 * d * d + 3 * d, len: 3 * d * d };
        let forward = RecurrentCell { weight, bias: Param { offset: weight.range().end, len: 3 * d } };
        let offsets = self.offsets.into();
        tape.push(&self.weights, None, Recurrent { x, forward, backward: None, offsets })
    }

    fn convolution(&self, tape: &mut Tape, x: Var) -> Var {
        let offsets = self.offsets.into();
        let around = tape.push(&self.weights, None, Unfold { x, width: WIDTH, dilation: 1, offsets });
        self.linear(tape, around, 0, self.d, WIDTH * self.d)
    }
}
