//! The task: a symbol among other tokens, followed by the question which symbol it was.

use crate::Setup;
use crate::encoder_kinds::kind_name;
use regard_core::batch::Packed;
use regard_core::model::{EncoderKind, ModelConfig, NormPlace, Preset, Transformer};
use regard_core::{Key, Result};
use regard_train::autograd::ops::{CrossEntropy, Pick};
use regard_train::autograd::{Tape, Var};
use regard_train::{AdamSettings, FitSettings, Pass, Taped, fit};

/// The number of symbols to copy.
pub(super) const SYMBOLS: usize = 16;
/// The number of distinct filler tokens.
const OTHERS: usize = 16;
/// The token that asks for the symbol.
const QUESTION: u32 = (SYMBOLS + OTHERS) as u32;
/// The size of the vocabulary, including the question and padding.
const WORDS: usize = SYMBOLS + OTHERS + 2;
/// The number of filler tokens before the symbol: a dilated convolution may reach past the symbol
/// and back, and needs tokens there.
pub(super) const BEFORE: usize = 16;
/// The peak learning rate.
const PEAK: f64 = 0.003;

/// The sizes of models and training.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) steps: u64,
    /// The number of sentences per step.
    pub(super) batch: usize,
    /// The number of test sentences per distance.
    tries: usize,
    /// The distances to train and test, in ascending order.
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

/// Sentences, the row of the question in each, and the symbols.
struct Problem {
    tokens: Packed,
    questions: Vec<usize>,
    symbols: Vec<u32>,
}

impl Problem {
    /// Makes a sentence for each distance; all random choices derive from `key`.
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

/// Trains and tests a model, and returns the accuracy by distance.
pub(super) fn accuracies(setup: &Setup<'_>, kind: EncoderKind, sizes: &Sizes) -> Result<Vec<(usize, f64)>> {
    let mut config = ModelConfig { dropout: 0.0, norm: NormPlace::Pre, ..Preset::Tiny.config(WORDS) };
    (config.d_model, config.d_ff) = (sizes.width, 2 * sizes.width);
    (config.encoder_layers, config.decoder_layers) = (sizes.layers, 1);
    config.encoder = kind;
    let model = Transformer::new(config)?;
    let key = Key::new(setup.seed);
    let settings = FitSettings {
        steps: sizes.steps,
        peak: PEAK,
        warmup: (sizes.steps / 10).max(1),
        adam: AdamSettings::default(),
        replicas: 1,
        cores: 1,
    };
    let loss = |pass: Pass<'_>| {
        let key = key.child(pass.step);
        let distance = |i: usize| {
            let at = (key.uniform(i as u32) * sizes.distances.len() as f32) as usize;
            sizes.distances.get(at).copied().unwrap_or(1)
        };
        loss(&model, &Problem::new(key.child(1), (0..sizes.batch).map(distance)), pass)
    };
    let after = |step: u64, loss: f64, _: &[f32]| {
        if step.is_multiple_of((sizes.steps / 4).max(1)) {
            setup.progress(format!("{}: step {step} of {}, loss {loss:.2}", kind_name(kind), sizes.steps));
        }
        Ok(())
    };
    let weights = fit(&settings, setup.isa, model.parameters().initialise(setup.seed), loss, after)?;
    let mut tape = Tape::new(setup.isa, 1);
    let tried = |&distance: &usize| {
        let key = key.child(sizes.steps + distance as u64);
        let problem = Problem::new(key, std::iter::repeat_n(distance, sizes.tries));
        Ok((distance, accuracy(&mut tape, &model, &weights, &problem)?))
    };
    sizes.distances.iter().map(tried).collect()
}

/// The outputs of the encoder at the questions.
fn answers(tape: &mut Tape, model: &Transformer, weights: &[f32], problem: &Problem) -> Result<Var> {
    let tokens = &problem.tokens;
    let mut e = Taped::new(tape, model, weights, None, (tokens, tokens), None)?;
    let x = model.encode(&mut e);
    Ok(e.push(Pick { x, rows: problem.questions.clone().into() }))
}

/// The mean loss of the answers; adds its gradient to that of the pass.
fn loss(model: &Transformer, problem: &Problem, pass: Pass<'_>) -> Result<f64> {
    let Pass { tape, weights, gradients, .. } = pass;
    let x = answers(tape, model, weights, problem)?;
    let sentences = problem.symbols.len();
    let loss = CrossEntropy {
        x,
        table: model.output(),
        bias: None,
        words: WORDS - 1,
        targets: problem.symbols.clone().into(),
        smoothing: 0.0,
        scale: (sentences as f32).recip(),
    };
    let losses = tape.push(weights, Some(&mut *gradients), loss);
    let total: f32 = tape.value(losses).data().iter().sum();
    tape.backward(weights, gradients, losses, &[]);
    tape.clear_grads();
    Ok(f64::from(total) / sentences.max(1) as f64)
}

/// The fraction of correct answers.
fn accuracy(tape: &mut Tape, model: &Transformer, weights: &[f32], problem: &Problem) -> Result<f64> {
    tape.clear();
    let x = answers(tape, model, weights, problem)?;
    let (x, table) = (tape.value(x), &weights[model.output().range()]);
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
