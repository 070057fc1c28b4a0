//! Runs one layer on the tape, and measures its time.

use crate::encoder_kinds::{ATTENTION, CONVOLUTION, RECURRENT};
use crate::{Scale, Setup};
use regard_core::batch::Packed;
use regard_core::model::{EncoderKind, Executor, Positions, Preset, TokenMixer, Transformer};
use regard_core::{Key, Result};
use regard_train::Taped;
use regard_train::autograd::{Tape, Var};
use std::time::Instant;

/// How far a window reaches to each side.
pub(super) const REACH: usize = 16;
pub(super) const WINDOW: EncoderKind = EncoderKind::Window { window: REACH };
/// The width of a head.
pub(super) const HEAD: usize = 32;
/// The size of the vocabulary for a whole layer's input.
const WORDS: usize = 100;

/// The encoder kinds to compare: the rows of the paper's Table 1.
pub(super) const KINDS: [EncoderKind; 4] = [ATTENTION, WINDOW, RECURRENT, CONVOLUTION];

/// The theoretical number of multiplications, and its exponents of n and d.
pub(super) fn theory(kind: EncoderKind) -> (&'static str, (f64, f64)) {
    match kind {
        EncoderKind::Attention { window: None } => ("n²·d", (2.0, 1.0)),
        EncoderKind::Attention { window: Some(_) } | EncoderKind::Window { .. } => ("r·n·d", (1.0, 1.0)),
        EncoderKind::Recurrent { .. } => ("n·d²", (1.0, 2.0)),
        EncoderKind::Convolutional { .. } => ("k·n·d²", (1.0, 2.0)),
    }
}

/// The part of a layer to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What the theory counts: attention without its projections, and the recurrent unit and the
    /// convolution without their output projections.
    TokenMixer,
    /// A whole encoder layer.
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

/// The time of each pass in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) forward: f64,
    pub(super) backward: f64,
}

/// The times for one sequence of `n` tokens at width `d`, best of several runs.
pub(super) fn time(setup: &Setup<'_>, kind: EncoderKind, part: Part, n: usize, d: usize) -> Result<Times> {
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

/// A model whose encoder has one layer, and a sequence.
struct Work {
    part: Part,
    model: Transformer,
    weights: Vec<f32>,
    tokens: Packed,
    /// The input of the token mixer; unused for a whole layer.
    input: Vec<f32>,
}

impl Work {
    fn new(kind: EncoderKind, part: Part, n: usize, d: usize) -> Result<Self> {
        let mut config = Preset::Tiny.config(WORDS);
        (config.d_model, config.d_ff, config.heads) = (d, 4 * d, d.div_ceil(HEAD));
        (config.encoder_layers, config.decoder_layers) = (1, 1);
        config.encoder = kind;
        if part == Part::TokenMixer {
            // Nothing is embedded, so no positions are needed.
            config.positions = Positions::None;
        }
        let model = Transformer::new(config)?;
        let weights = model.parameters().initialise(1);
        let key = Key::new(2);
        let ids: Vec<u32> = (0..n as u32).map(|i| key.bits(i) % (WORDS as u32 - 1)).collect();
        let width = match (part, model.token_mixers().next()) {
            (Part::Layer, _) | (_, None) => 0,
            (_, Some(TokenMixer::Attention(layer))) => layer.qkv.outputs,
            (_, Some(TokenMixer::Recurrent(_) | TokenMixer::Convolution(_))) => d,
        };
        let (tokens, input) = (Packed::new([&ids[..]]), random(n * width, 2));
        Ok(Work { part, model, weights, tokens, input })
    }

    /// The input of the token mixer on the tape; empty for a whole layer.
    fn input(&self, tape: &mut Tape) -> Var {
        let n = self.tokens.tokens();
        tape.input(&self.input, n, self.input.len() / n.max(1))
    }

    fn forward(&self, tape: &mut Tape, x: Var) -> Result<Var> {
        let sides = (&self.tokens, &self.tokens);
        let mut e = Taped::new(tape, &self.model, &self.weights, None, sides, None)?;
        Ok(match (self.part, self.model.token_mixers().next()) {
            (Part::Layer, _) | (_, None) => self.model.encode(&mut e),
            (_, Some(TokenMixer::Attention(layer))) => e.self_attention(x, layer),
            (_, Some(TokenMixer::Recurrent(layer))) => layer.states(&mut e, x),
            (_, Some(TokenMixer::Convolution(layer))) => layer.features(&mut e, x),
        })
    }
}
