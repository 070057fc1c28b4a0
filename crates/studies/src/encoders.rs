//! Compares recurrent, convolutional and self-attention encoders in front of the same decoder,
//! after equal training.

use crate::encoder_kinds::{ATTENTION, CONVOLUTION, DILATED, RECURRENT, WIDTH, kind_name, kind_name_zh};
use crate::small::{Task, Trained};
use crate::{Column, Report, Setup, Study, Table};
use regard_core::Result;
use regard_core::model::{EncoderKind, ModelConfig};
use regard_plot::{LineChart, Series};

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "encoders",
    title: "Three ways to encode a sequence",
    question: "Does it matter whether an encoder is recurrent, convolutional or made of self-attention?",
    zh: ["编码一个序列的三种方式", "编码器是循环的、卷积的，还是由自注意力组成的，有区别吗？"],
    about: "recurrent, convolutional and self-attention encoders with the same decoder: BLEU, speed and parameters",
    body: run,
};

/// How far the window reaches to each side.
const REACH: usize = 2;

const KINDS: [EncoderKind; 6] = [
    ATTENTION,
    EncoderKind::Window { window: REACH },
    RECURRENT,
    EncoderKind::RECURRENT,
    CONVOLUTION,
    DILATED,
];

struct Outcome {
    kind: EncoderKind,
    trained: Trained,
    bleu: f64,
}

impl Outcome {
    /// The mean loss over the last tenth of the steps.
    fn loss(&self) -> f64 {
        let losses = &self.trained.losses;
        let last = &losses[losses.len() - losses.len().div_ceil(10)..];
        last.iter().sum::<f64>() / last.len().max(1) as f64
    }
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let steps = setup.choose(6, 500, 4000);
    let task = Task::new(setup)?;
    let pairs = &task.held_out[..task.held_out.len().min(setup.choose(10, 500, 5000))];
    let mut outcomes = Vec::new();
    for kind in KINDS {
        let config = ModelConfig { encoder: kind, ..task.config(setup.scale) };
        let trained = task.fit(setup, kind_name(kind), config, steps)?;
        let bleu = task.bleu(setup, &trained, pairs)?;
        setup.progress(format!("{}: BLEU {bleu:.1}", kind_name(kind)));
        outcomes.push(Outcome { kind, trained, bleu });
    }
    explain(report, &outcomes, steps, pairs.len());
    report.table(table(&outcomes));
    pictures(report, &outcomes);
    Ok(())
}

fn explain(report: &mut Report, outcomes: &[Outcome], steps: u64, sentences: usize) {
    let by_bleu = |a: &&Outcome, b: &&Outcome| a.bleu.total_cmp(&b.bleu);
    let by_speed =
        |a: &&Outcome, b: &&Outcome| a.trained.tokens_per_second().total_cmp(&b.trained.tokens_per_second());
    let (Some(best), Some(worst), Some(fastest), Some(slowest)) = (
        outcomes.iter().max_by(by_bleu),
        outcomes.iter().min_by(by_bleu),
        outcomes.iter().max_by(by_speed),
        outcomes.iter().min_by(by_speed),
    ) else {
        return;
    };
    let close = best.bleu - worst.bleu < 2.0;
    let [best_name, worst_name, fast, slow] = [best, worst, fastest, slowest].map(|o| kind_name(o.kind));
    let [best_zh, worst_zh, fast_zh, slow_zh] = [best, worst, fastest, slowest].map(|o| kind_name_zh(o.kind));
    let (en, zh) = match close {
        true => (
            "Hardly for the quality of these short sentences, because the decoder's attention reaches every word whatever encoded it. \
             It matters for speed."
                .to_owned(),
            "对这些短句子的质量几乎没有影响，因为无论用什么编码，解码器的注意力都能看到每个词。对速度有影响。".to_owned(),
        ),
        false => (
            format!("Yes. The best translations after equal training: {best_name}; the worst: {worst_name}."),
            format!("有。经过同样的训练，翻译最好的是{best_zh}，最差的是{worst_zh}。"),
        ),
    };
    report.answer(
        format!("{en} Fastest to train: {fast}; slowest: {slow}."),
        format!("{zh}训练最快的是{fast_zh}，最慢的是{slow_zh}。"),
    );
    report.summary(format!(
        "After {steps} steps each, {} has the highest BLEU ({:.1}) and {} the lowest ({:.1}) on {sentences} held-out sentences. Training is \
         fastest with {} ({:.0} target tokens per second) and slowest with {} ({:.0}).",
        kind_name(best.kind),
        best.bleu,
        kind_name(worst.kind),
        worst.bleu,
        kind_name(fastest.kind),
        fastest.trained.tokens_per_second(),
        kind_name(slowest.kind),
        slowest.trained.tokens_per_second(),
    ));
    report.text(
        "An encoder turns the tokens $x_1 … x_n$ into vectors $y_1 … y_n$ that know of each other. A recurrent one does it step by step, \
         $y_t = f(y_{t−1}, x_t)$, in one direction or in both with half the width each; a convolutional one from neighbours, \
         $y_t = f(x_{t−1}, x_t, x_{t+1})$; attention from all at once, $y_t = f(x_t, X, X)$, or from those within a window.",
    );
    let layers = outcomes.first().map_or(0, |o| o.trained.model.config().encoder_layers);
    report.text(format!(
        "All six have {layers} layers with the same residual connections, norms, feed-forward layers and sinusoidal positions; only the token mixer \
         is exchanged. The recurrent unit is a GRU, the convolution is {WIDTH} tokens wide (its dilation grows {WIDTH}-fold from layer to \
         layer where it is dilated), the window reaches {REACH} tokens to each side. The decoder attends to every output of the encoder, \
         whatever made it, and so carries much of the way between distant words itself: for what the encoder alone can reach, see the \
         study “How far a signal must travel”. Sentences of the built-in corpus are short, so that speed says little about long \
         texts: see “What a layer costs”."
    ));
}

fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "encoders",
        "Encoders trained equally long on the built-in corpus",
        [
            Column::new("encoder"),
            Column::new("parameters"),
            Column::new("of them encoder"),
            Column::new("training").unit("s").decimals(1),
            Column::new("speed").unit("target tokens/s").decimals(0),
            Column::new("loss").unit("nats").decimals(3),
            Column::new("BLEU").decimals(1),
        ],
    );
    for outcome in outcomes {
        let parts = outcome.trained.model.parameters().parts();
        table.row([
            kind_name(outcome.kind).into(),
            parts.total.into(),
            parts.encoder.into(),
            outcome.trained.seconds.into(),
            outcome.trained.tokens_per_second().into(),
            outcome.loss().into(),
            outcome.bleu.into(),
        ]);
    }
    table
}

fn pictures(report: &mut Report, outcomes: &[Outcome]) {
    let mut loss = LineChart::new("Loss while training", "step", "loss of a target token (nats)").log_y();
    let mut quality = LineChart::new(
        "Quality against speed",
        "training speed (target tokens/s)",
        "BLEU on held-out sentences",
    );
    for outcome in outcomes {
        loss = loss.series(Series::new(kind_name(outcome.kind), smoothed(&outcome.trained.losses)));
        let point = (outcome.trained.tokens_per_second(), outcome.bleu);
        quality = quality.series(Series::new(kind_name(outcome.kind), vec![point]).markers());
    }
    let fastest = outcomes.iter().map(|o| o.trained.tokens_per_second()).fold(0.0, f64::max);
    (quality.x.range, quality.y.range) = (Some((0.0, 1.1 * fastest)), Some((0.0, 100.0)));
    report.picture("loss", "Each point is the mean of neighbouring steps.", loss);
    report.picture("quality", "Up is better, right is faster.", quality);
}

/// The means of about forty blocks of steps.
fn smoothed(losses: &[f64]) -> Vec<(f64, f64)> {
    let block = losses.len().div_ceil(40).max(1);
    let mean = |(i, part): (usize, &[f64])| {
        let middle = (i * block) as f64 + (part.len() as f64 + 1.0) / 2.0;
        (middle, part.iter().sum::<f64>() / part.len() as f64)
    };
    losses.chunks(block).enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn every_kind_is_trained_and_described() {
        let report = smoke(&STUDY);
        let table = report.find_table("encoders").unwrap();
        assert_eq!(table.rows.len(), KINDS.len());
        let encoder = |row| table.number(row, "of them encoder").unwrap();
        // Neither a window nor dilation changes the number of parameters; a convolution with k = 3
        // has as many as attention, except for biases.
        assert_eq!((encoder(0), encoder(4)), (encoder(1), encoder(5)));
        assert!(encoder(2) > encoder(3) && encoder(3) > encoder(4));
        for row in 0..table.rows.len() {
            assert!(table.number(row, "speed").unwrap() > 0.0);
            assert!((0.0..=100.0).contains(&table.number(row, "BLEU").unwrap()));
        }
    }

    #[test]
    fn smoothing_keeps_the_mean() {
        let losses: Vec<f64> = (0..80).map(f64::from).collect();
        let points = smoothed(&losses);
        assert_eq!((points.len(), points[0]), (40, (1.5, 0.5)));
    }
}
