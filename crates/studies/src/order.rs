//! Without positions, shuffling the input only shuffles the output.

use crate::kinds::{self, Kind};
use crate::report::significant;
use crate::{Column, Report, Setup, Study, Table};
use regard_core::batch::Packed;
use regard_core::model::{Preset, Transformer};
use regard_core::{Key, Result};
use regard_plot::{Grid, HeatMap, LineChart, Matrix, Series};
use regard_train::Taped;
use regard_train::autograd::Tape;

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "order",
    title: "Does the order of the input matter?",
    question: "Does a Transformer notice when its input is shuffled?",
    zh: ["输入的顺序重要吗？", "打乱输入的顺序，Transformer 会察觉吗？"],
    about: "without positions, shuffling the input only shuffles the output; with them it does not",
    body: run,
};

/// The number of tokens in a sentence.
const LENGTH: usize = 16;
/// The size of the vocabulary, including the padding token.
const WORDS: usize = 200;

/// A model with random weights, and sentences to read.
struct Experiment<'a> {
    setup: &'a Setup<'a>,
    model: Transformer,
    weights: Vec<f32>,
}

/// The outputs of encoder and decoder for a sentence pair: `[n, d]` and `[m, d]`.
struct Outputs {
    encoder: Vec<f32>,
    decoder: Vec<f32>,
}

impl<'a> Experiment<'a> {
    fn new(setup: &'a Setup<'a>, kind: Kind) -> Result<Self> {
        let mut config = Preset::Tiny.config(WORDS);
        (config.encoder_layers, config.decoder_layers) = (2, 2);
        kind.apply(&mut config);
        let model = Transformer::new(config)?;
        let weights = model.parameters().initialise(setup.seed);
        Ok(Experiment { setup, model, weights })
    }

    fn run(&self, source: &[u32], target: &[u32]) -> Result<Outputs> {
        let mut tape = Tape::new(self.setup.isa, 1);
        let (source, target) = (Packed::new([source]), Packed::new([target]));
        let mut e = Taped::new(&mut tape, &self.model, &self.weights, None, (&source, &target), None)?;
        let memory = self.model.encode(&mut e);
        let out = self.model.decode(&mut e, memory);
        Ok(Outputs { encoder: e.value(memory).to_vec(), decoder: e.value(out).to_vec() })
    }
}

/// Distinct words in random order.
fn sentence(key: Key) -> Vec<u32> {
    shuffled(key, WORDS - 1).into_iter().take(LENGTH).map(|i| i as u32).collect()
}

/// A random permutation (Fisher–Yates).
fn shuffled(key: Key, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, (key.uniform(i as u32) * (i + 1) as f32) as usize);
    }
    order
}

/// A permutation that rotates the tokens of `moved` random positions and leaves the others in
/// place.
fn ring(key: Key, moved: usize) -> Vec<usize> {
    let places = shuffled(key, LENGTH);
    let mut order: Vec<usize> = (0..LENGTH).collect();
    for (i, place) in places.iter().take(moved).enumerate() {
        order[*place] = places[(i + 1) % moved];
    }
    order
}

/// Permutes rows: row `i` of the result is row `order[i]`.
fn reordered<T: Copy>(rows: &[T], order: &[usize]) -> Vec<T> {
    let width = rows.len() / order.len().max(1);
    order.iter().flat_map(|&i| &rows[i * width..(i + 1) * width]).copied().collect()
}

/// The norm of the difference, relative to the norm of the expected value.
fn difference(got: &[f32], want: &[f32]) -> f64 {
    let length = |xs: &mut dyn Iterator<Item = f32>| xs.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    length(&mut got.iter().zip(want).map(|(a, b)| a - b)) / length(&mut want.iter().copied())
}

/// The differences by the number of moved tokens: of the encoder's output from the shuffled output,
/// of the decoder's output when the source is shuffled, and of the decoder's output from the
/// shuffled output when the target is shuffled.
#[derive(Clone, Copy, Default)]
struct Moved {
    encoder: f64,
    over_source: f64,
    decoder: f64,
}

fn measure(experiment: &Experiment<'_>, key: Key, moved: usize, sentences: usize) -> Result<Moved> {
    let mut sum = Moved::default();
    for i in 0..sentences {
        let key = key.child(i as u64);
        let (source, target) = (sentence(key.child(0)), sentence(key.child(1)));
        let order = ring(key.child(2), moved);
        let before = experiment.run(&source, &target)?;
        let after = experiment.run(&reordered(&source, &order), &target)?;
        let target_moved = experiment.run(&source, &reordered(&target, &order))?;
        sum.encoder += difference(&after.encoder, &reordered(&before.encoder, &order));
        sum.over_source += difference(&after.decoder, &before.decoder);
        sum.decoder += difference(&target_moved.decoder, &reordered(&before.decoder, &order));
    }
    let n = sentences as f64;
    Ok(Moved { encoder: sum.encoder / n, over_source: sum.over_source / n, decoder: sum.decoder / n })
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sentences = setup.choose(2, 40, 400);
    let key = Key::new(setup.seed);
    let mut table = Table::new(
        "order",
        format!(
            "Difference between the output of {LENGTH} shuffled tokens and the shuffled output, relative to its norm"
        ),
        [
            Column::new("positions"),
            Column::new("encoder, source shuffled"),
            Column::new("decoder, source shuffled"),
            Column::new("decoder, target shuffled"),
        ],
    );
    let mut chart = LineChart::new(
        "How much the encoder's output depends on order",
        "tokens that changed place",
        "relative difference",
    )
    .log_y();
    let mut all = Vec::new();
    for kind in kinds::ALL {
        setup.progress(format!("positions: {}", kind.name()));
        let experiment = Experiment::new(setup, kind)?;
        let full = measure(&experiment, key, LENGTH, sentences)?;
        table.row([kind.name().into(), full.encoder.into(), full.over_source.into(), full.decoder.into()]);
        let mut points = Vec::new();
        for moved in [2, 4, 8, 12, LENGTH] {
            points.push((moved as f64, measure(&experiment, key, moved, sentences)?.encoder));
        }
        chart = chart.series(Series::new(kind.name(), points).markers());
        all.push((kind, full));
    }
    explain(report, &all, sentences);
    report.table(table);
    report.picture(
        "difference",
        "Without positions nothing but rounding is left, however many tokens move.",
        chart,
    );
    report.picture(
        "likeness",
        "The similarity (cosine) of the encoder's outputs of the shuffled sentence (rows, by place) to those of the sentence itself \
         (columns, by place). Without positions every token has its own output again, elsewhere.",
        likeness(setup, key)?,
    );
    Ok(())
}

fn explain(report: &mut Report, all: &[(Kind, Moved)], sentences: usize) {
    let of =
        |kind: Kind| all.iter().find(|(k, _)| *k == kind).map_or_else(Moved::default, |(_, moved)| *moved);
    let (none, sinusoidal) = (of(Kind::None), of(Kind::Sinusoidal));
    let (en, zh) = if none.encoder < 1e-3 && sinusoidal.encoder > 1e-2 && none.decoder > 1e-3 {
        (
            "Only through its positions. Without them, the encoder gives every word of a shuffled sentence the same vector as before, just \
         in another place. The decoder notices the order of its own words even so, because its mask lets each word see only those \
         before it.",
            "只有通过位置才会。没有位置，编码器给打乱后的句子里每个词的向量和原来一样，只是换了地方。即便如此，解码器仍能察觉自己那些词的顺序，\
          因为掩码只让每个词看到它前面的词。",
        )
    } else {
        (
            "In this run the effect of positions does not show clearly.",
            "在这次运行中，位置的作用没有清楚地显现出来。",
        )
    };
    report.answer(en, zh);
    report.summary(format!(
        "Without positions, the encoder's output of a shuffled sentence is its shuffled output, up to rounding ({} of its norm); with \
         sinusoidal positions it differs by {}. The decoder knows the order of its own tokens even without positions ({}), because the \
         causal mask lets each of them see a different number of others.",
        significant(none.encoder),
        significant(sinusoidal.encoder),
        significant(none.decoder),
    ));
    report.text(format!(
        "Self-attention is a sum over tokens, weighted by how well query and key fit; the feed-forward layers, residuals and norms see one \
         token at a time. None of them knows which token comes first. So $f(P·X) = P·f(X)$ for every permutation $P$: shuffling the input \
         shuffles the output and changes nothing else. Here models of two layers with fresh weights read {sentences} random sentences of \
         {LENGTH} tokens, as they are and shuffled."
    ));
    report.text(
        "The second column of numbers is the decoder's output while the source is shuffled: it attends to the same keys and values in another \
         order, which a sum does not notice. The third is the decoder's output while its own input is shuffled. There the causal mask \
         tells the tokens apart, so that a decoder without positions is not blind to order. Learned positions begin small, so that a \
         fresh model depends on them little.",
    );
}

/// The similarity of outputs with and without positions.
fn likeness(setup: &Setup<'_>, key: Key) -> Result<Grid> {
    let (source, order) = (sentence(key.child(0)), shuffled(key.child(3), LENGTH));
    let mut maps = Vec::new();
    for kind in [Kind::None, Kind::Sinusoidal] {
        let experiment = Experiment::new(setup, kind)?;
        let width = experiment.model.config().d_model;
        let before = experiment.run(&source, &source)?.encoder;
        let after = experiment.run(&reordered(&source, &order), &source)?.encoder;
        let rows: Vec<Vec<f32>> = after
            .chunks_exact(width)
            .map(|a| before.chunks_exact(width).map(|b| cosine(a, b)).collect())
            .collect();
        let title = format!("positions: {}", kind.name());
        maps.push(HeatMap::new(title, Matrix::from_rows(&rows)).axes("place, shuffled", "place"));
    }
    Ok(Grid::new("A sentence and the same one shuffled", 2, maps).scale_label("cosine"))
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn only_a_model_without_positions_is_blind_to_order() {
        let report = smoke(&STUDY);
        let table = report.find_table("order").unwrap();
        assert_eq!(table.rows.len(), kinds::ALL.len());
        for (row, kind) in kinds::ALL.into_iter().enumerate() {
            assert_eq!(table.rows[row][0], kind.name().into());
            let get = |column: &str| table.number(row, column).unwrap();
            let columns = [get("encoder, source shuffled"), get("decoder, source shuffled")];
            if kind == Kind::None {
                assert!(columns.iter().all(|x| *x < 1e-5), "{columns:?}");
            } else {
                assert!(columns.iter().all(|x| *x > 1e-4), "{}: {columns:?}", kind.name());
            }
            assert!(get("decoder, target shuffled") > 0.01, "{}", kind.name());
        }
    }

    #[test]
    fn a_ring_moves_what_it_should() {
        for moved in [2, 5, LENGTH] {
            let order = ring(Key::new(3), moved);
            assert_eq!(order.iter().enumerate().filter(|(i, o)| i != *o).count(), moved);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..LENGTH).collect::<Vec<_>>());
        }
        assert_eq!(reordered(&[1, 2, 3, 4], &[1, 0]), [3, 4, 1, 2]);
        let words = sentence(Key::new(8));
        assert_eq!(words.iter().collect::<std::collections::HashSet<_>>().len(), LENGTH);
    }
}
