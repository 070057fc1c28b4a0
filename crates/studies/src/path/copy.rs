//! The task: a symbol among other tokens, and behind them the question which symbol it was.

use crate::Setup;
use crate::token_mixer::TokenMixer;
use regard_core::batch::Packed;
use regard_core::model::{ModelConfig, NormPlace, Preset, Transformer};
use regard_core::{Key, Result};
use regard_kernels::{Adam, adam_step};
use regard_train::Taped;
use regard_train::autograd::ops::{CrossEntropy, Pick};
use regard_train::autograd::{Tape, Var};
use regard_train::{Schedule, ScheduleKind};

/// How many symbols there are to be copied.
pub(super) const SYMBOLS: usize = 16;
/// How many other tokens lie between.
const OTHERS: usize = 16;
/// Asks for the symbol.
const QUESTION: u32 = (SYMBOLS + OTHERS) as u32;
/// The vocabulary, with the question and padding.
const WORDS: usize = SYMBOLS + OTHERS + 2;
/// Other tokens before the symbol: a dilated convolution goes some way past it and back, and needs tokens to go along.
pub(super) const BEFORE: usize = 16;
/// The highest learning rate.
const PEAK: f64 = 0.003;

/// How large models and training are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) steps: u64,
    /// Sentences of a step.
    pub(super) batch: usize,
    /// Sentences that each distance is tried on.
    tries: usize,
    /// All distances that are trained and tried, rising.
    distances: &'static [usize],
}

impl Sizes {
    pub(super) const SMOKE: Sizes =
        Sizes { layers: 1, width: 32, steps: 150, batch: 16, tries: 60, distances: &[1, 2, 5] };
    pub(super) const QUICK: Sizes = Sizes {
        layers: 4,
        width: 64,
        steps: 1000,
        batch: 32,
        tries: 200,
        distances: &[1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32, 40, 41, 48, 64],
    };
    pub(super) const FULL: Sizes = Sizes {
        layers: 4,
        width: 128,
        steps: 4000,
        batch: 64,
        tries: 2000,
        distances: &[1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32, 40, 41, 48, 64, 96, 128],
    };

    pub(super) fn longest(&self) -> usize {
        self.distances.last().copied().unwrap_or(0)
    }
}

/// Sentences, the row of each one's question, and the symbols.
struct Problem {
    tokens: Packed,
    questions: Vec<usize>,
    symbols: Vec<u32>,
}

impl Problem {
    /// A sentence for each distance; everything random follows from `key`.
    fn new(key: Key, distances: impl Iterator<Item = usize>) -> Self {
        let (mut sentences, mut symbols) = (Vec::new(), Vec::new());
        for (i, distance) in distances.enumerate() {
            let key = key.child(i as u64);
            let symbol = key.bits(0) % SYMBOLS as u32;
            let mut sentence: Vec<u32> = (0..(BEFORE + distance) as u32)
                .map(|t| SYMBOLS as u32 + key.bits(1 + t) % OTHERS as u32)
                .collect();
            sentence[BEFORE] = symbol;
            sentence.push(QUESTION);
            sentences.push(sentence);
            symbols.push(symbol);
        }
        let tokens = Packed::new(sentences.iter().map(Vec::as_slice));
        let questions = tokens.offsets()[1..].iter().map(|end| end - 1).collect();
        Problem { tokens, questions, symbols }
    }
}

/// Trains a model and tries it: accuracy by distance.
pub(super) fn accuracies(
    setup: &Setup<'_>,
    kind: TokenMixer,
    reach: usize,
    sizes: &Sizes,
) -> Result<Vec<(usize, f64)>> {
    let mut config = ModelConfig { dropout: 0.0, norm: NormPlace::Pre, ..Preset::Tiny.config(WORDS) };
    (config.d_model, config.d_ff) = (sizes.width, 2 * sizes.width);
    (config.encoder_layers, config.decoder_layers) = (sizes.layers, 1);
    kind.apply(&mut config, reach);
    let mut learner = Learner::new(setup, Transformer::new(config)?);
    let schedule =
        Schedule { kind: ScheduleKind::Linear, peak: Some(PEAK), warmup: (sizes.steps / 10).max(1) };
    let key = Key::new(setup.seed);
    for step in 1..=sizes.steps {
        let key = key.child(step);
        let distance = |i: usize| {
            let at = (key.uniform(i as u32) * sizes.distances.len() as f32) as usize;
            sizes.distances.get(at).copied().unwrap_or(1)
        };
        let problem = Problem::new(key.child(1), (0..sizes.batch).map(distance));
        let rate = schedule.rate(step, sizes.width, Some(sizes.steps)) as f32;
        let loss = learner.step(&problem, step, rate)?;
        if step % (sizes.steps / 4).max(1) == 0 {
            setup.progress(format!("{}: step {step} of {}, loss {loss:.2}", kind.name(), sizes.steps));
        }
    }
    let tried = |&distance: &usize| {
        let key = key.child(sizes.steps + distance as u64);
        let problem = Problem::new(key, std::iter::repeat_n(distance, sizes.tries));
        Ok((distance, learner.accuracy(&problem)?))
    };
    sizes.distances.iter().map(tried).collect()
}

/// A model, its weights and Adam's moments.
struct Learner {
    model: Transformer,
    weights: Vec<f32>,
    gradients: Vec<f32>,
    moments: (Vec<f32>, Vec<f32>),
    tape: Tape,
}

impl Learner {
    fn new(setup: &Setup<'_>, model: Transformer) -> Self {
        let weights = model.parameters().initialise(setup.seed);
        let zeros = vec![0.0; weights.len()];
        let moments = (zeros.clone(), zeros.clone());
        Learner { model, weights, gradients: zeros, moments, tape: Tape::new(setup.isa, 1) }
    }

    /// The encoder's outputs at the questions.
    fn answers(&mut self, problem: &Problem) -> Result<Var> {
        self.tape.clear();
        let tokens = &problem.tokens;
        let mut e = Taped::new(&mut self.tape, &self.model, &self.weights, None, (tokens, tokens), None)?;
        let x = self.model.encode(&mut e);
        let rows = problem.questions.clone().into();
        Ok(self.tape.push(&self.weights, None, Pick { x, rows }))
    }

    /// One step of Adam; the mean loss before it.
    fn step(&mut self, problem: &Problem, step: u64, rate: f32) -> Result<f64> {
        let x = self.answers(problem)?;
        self.gradients.fill(0.0);
        let sentences = problem.symbols.len();
        let loss = CrossEntropy {
            x,
            table: self.model.output(),
            bias: None,
            words: WORDS - 1,
            targets: problem.symbols.clone().into(),
            smoothing: 0.0,
            scale: (sentences as f32).recip(),
        };
        let losses = self.tape.push(&self.weights, Some(&mut self.gradients), loss);
        let total: f32 = self.tape.value(losses).data().iter().sum();
        self.tape.backward(&self.weights, &mut self.gradients, losses, &[]);
        self.tape.clear_grads();
        let adam = Adam { rate, betas: (0.9, 0.98), epsilon: 1e-9, step, gradient_scale: 1.0 };
        let (first, second) = &mut self.moments;
        adam_step(self.tape.isa(), adam, &mut self.weights, first, second, &self.gradients);
        Ok(f64::from(total) / sentences.max(1) as f64)
    }

    /// How many of the answers are right, as a part of all.
    fn accuracy(&mut self, problem: &Problem) -> Result<f64> {
        let x = self.answers(problem)?;
        let (x, table) = (self.tape.value(x), &self.weights[self.model.output().range()]);
        let d = x.cols();
        let score = |row: &[f32], word: usize| -> f32 {
            row.iter().zip(&table[word * d..][..d]).map(|(a, b)| a * b).sum()
        };
        let right = problem.symbols.iter().enumerate().filter(|(i, symbol)| {
            let row = x.row(*i);
            let best = (0..WORDS - 1).max_by(|a, b| score(row, *a).total_cmp(&score(row, *b)));
            best == Some(**symbol as usize)
        });
        Ok(right.count() as f64 / problem.symbols.len().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symbol_lies_as_far_before_the_question_as_was_asked() {
        let problem = Problem::new(Key::new(3), [1, 4].into_iter());
        let ids = problem.tokens.ids();
        assert_eq!(problem.questions, [BEFORE + 1, 2 * BEFORE + 6]);
        for (question, (symbol, distance)) in problem.questions.iter().zip(problem.symbols.iter().zip([1, 4]))
        {
            assert_eq!((ids[*question], ids[question - distance]), (QUESTION, *symbol));
            assert!(ids[question - distance + 1..*question].iter().all(|&id| id as usize >= SYMBOLS));
        }
    }
}
