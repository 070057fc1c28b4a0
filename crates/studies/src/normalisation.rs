//! Compares layer norm with batch norm on batches of sentences with different lengths.

mod batch_norm;
mod model;

use crate::report::significant;
use crate::small::{Pairs, Task};
use crate::{Column, Report, Setup, Study, Table};
use model::{Model, Norm, StatisticsKind, mean, padding_share, ragged};
use regard_core::batch::Batch;
use regard_core::{Error, Key, Result};
use regard_metrics::{Bleu, Metric};
use regard_plot::{LineChart, Series};

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "normalisation",
    title: "Layer norm against batch norm on sentences of different lengths",
    question: "Why do Transformers normalise each token by itself, and not each batch?",
    zh: [
        "句子长短不一时，层归一化与批归一化的比较",
        "为什么 Transformer 对每个词元单独归一化，而不是对整个批次？",
    ],
    about: "layer norm against batch norm on ragged batches: statistics at training and inference, and quality",
    body: run,
};

/// The number of sentences per training batch.
const SENTENCES: usize = 64;

/// The state that all measurements share.
struct Lab<'a> {
    setup: &'a Setup<'a>,
    held_out: Pairs,
    start: u32,
    key: Key,
}

impl Lab<'_> {
    /// The mean loss per held-out token in batches of this many sentences.
    fn loss(&self, model: &Model, sentences: usize, kind: StatisticsKind) -> Result<f64> {
        let wanted = self.setup.choose(8, 128, 400).min(self.held_out.len());
        let mut losses = Vec::new();
        for part in self.held_out[..wanted].chunks(sentences) {
            let batch = Batch::new(part.iter().map(|(s, t)| (&s[..], &t[..])), self.start)?;
            losses.extend(model.token_losses(self.setup, &batch, kind)?);
        }
        Ok(mean(&losses))
    }
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let task = Task::new(setup)?;
    let steps = setup.choose(3, 500, 3000);
    let config = task.config(setup.scale);
    let sentences = setup.choose(8, SENTENCES, SENTENCES);
    let mut models = Vec::new();
    for norm in Norm::ALL {
        models.push(Model::train(setup, norm, config.clone(), &task.train, (steps, sentences))?);
    }
    setup.progress("measuring");
    let lab = Lab {
        setup,
        held_out: task.encode(&task.held_out, setup.threads)?,
        start: config.start(),
        key: Key::new(setup.seed).child(77),
    };
    introduce(report, &lab, steps, sentences)?;
    let quality = quality(report, &lab, &task, &models, sentences)?;
    statistics(report, &lab, &models, sentences)?;
    sizes(report, &lab, &models)?;
    let change = neighbours(report, &lab, &models, sentences)?;
    let [en, zh] = answer(report);
    report.answer(en, zh);
    report.summary(format!("{quality} {change}"));
    Ok(())
}

/// The result in words, in English and in Chinese.
fn answer(report: &Report) -> [String; 2] {
    let bleu: Vec<f64> = report
        .tables()
        .find(|table| table.name == "quality")
        .map(|table| (0..table.rows.len()).filter_map(|row| table.number(row, "BLEU")).collect())
        .unwrap_or_default();
    let best = bleu.iter().skip(1).all(|score| bleu[0] > *score + 0.5);
    let en = format!(
        "Because what a batch norm makes of a sentence depends on the sentences that happen to be beside it, and in use, where there may be \
         one sentence alone, it needs statistics kept from training. Layer norm needs none of this{}.",
        if best { ", and translates better here" } else { "; in quality they hardly differ here" }
    );
    let zh = format!(
        "因为批归一化如何处理一个句子，取决于恰好和它放在一起的其他句子；而在使用时，可能只有一个句子，它就需要训练时留下的统计量。\
         层归一化完全不需要这些{}。",
        if best {
            "，在这里翻译得也更好"
        } else {
            "；两者在这里的翻译质量几乎没有差别"
        }
    );
    [en, zh]
}

fn introduce(report: &mut Report, lab: &Lab<'_>, steps: u64, sentences: usize) -> Result<()> {
    let mut shares = Vec::new();
    for i in 0..50 {
        let batch = ragged(lab.key.child(1000 + i), &lab.held_out, sentences, lab.start)?;
        shares.push(100.0 * padding_share(&batch.source));
    }
    let (least, most) = shares.iter().fold((f64::MAX, 0f64), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
    report.text(
        "Layer norm makes mean 0 and variance 1 of the numbers of each token. Batch norm does so for each of the columns, over all tokens \
         of a batch. For sentences this has three consequences: the tokens of other sentences, and later tokens of the same, change what \
         a token becomes; padding takes part unless it is left out with care; and in inference, where there may be one sentence and \
         its next tokens do not exist yet, statistics kept from training (a running mean of every batch's) stand in for those of the \
         batch.",
    );
    report.text(format!(
        "Three models differ in their norms alone: layer norm; batch norm over the tokens; batch norm over the tokens and the padding that \
         makes all sentences of a batch as long as the longest, taken as vectors of zeros. They train {steps} steps on the built-in corpus, in \
         batches of {sentences} random sentences; {least:.0} to {most:.0} % of such a batch's source would be padding."
    ));
    Ok(())
}

/// Reports losses and BLEU, and returns a one-sentence summary.
fn quality(
    report: &mut Report,
    lab: &Lab<'_>,
    task: &Task,
    models: &[Model],
    sentences: usize,
) -> Result<String> {
    let tested = task.held_out.len().min(lab.setup.choose(4, 250, 500));
    let (sources, references): (Vec<_>, Vec<_>) = lab
        .held_out
        .iter()
        .zip(&task.held_out)
        .take(tested)
        .map(|((s, _), (_, r))| (s.clone(), r.clone()))
        .unzip();
    let mut table = Table::new(
        "quality",
        format!(
            "Losses in nats per token (training: with smoothed labels; held-out: with the statistics of the batch and of inference), and \
             BLEU of {tested} held-out sentences (greedy, statistics of inference)"
        ),
        [
            Column::new("norm"),
            Column::new("training").decimals(3),
            Column::new("held-out, by batch").decimals(3),
            Column::new("held-out, by inference").decimals(3),
            Column::new("BLEU").decimals(1),
        ],
    );
    let mut chart = LineChart::new("Training", "step", "loss (nats/token, smoothed labels)");
    let mut found = Vec::new();
    for model in models {
        let ids = model.greedy(lab.setup, &sources, task.tokenizer.eos())?;
        let texts: Vec<String> = ids.iter().map(|ids| task.tokenizer.decode(ids)).collect();
        let bleu =
            Bleu::default().corpus(&texts, std::slice::from_ref(&references)).map_err(Error::other)?.score;
        let (by_batch, by_running) = (
            lab.loss(model, sentences, StatisticsKind::Batch)?,
            lab.loss(model, sentences, StatisticsKind::Running)?,
        );
        let last = &model.losses[model.losses.len() - model.losses.len().min(50)..];
        let training = last.iter().sum::<f64>() / last.len().max(1) as f64;
        table.row([
            model.norm.name().into(),
            training.into(),
            by_batch.into(),
            by_running.into(),
            bleu.into(),
        ]);
        let points: Vec<(f64, f64)> =
            model.losses.iter().enumerate().map(|(i, loss)| ((i + 1) as f64, *loss)).collect();
        chart = chart.series(Series::new(model.norm.name(), regard_plot::smooth(&points, 5)));
        found.push(format!("{} {bleu:.1} (held-out loss {by_running:.2})", model.norm.name()));
    }
    report.heading("Quality");
    report.table(table);
    report.picture("training", "The loss while training, a running mean over 11 steps.", chart);
    Ok(format!("BLEU after equal training: {}.", found.join(", ")))
}

/// Compares the statistics of batches with those used at inference.
fn statistics(report: &mut Report, lab: &Lab<'_>, models: &[Model], sentences: usize) -> Result<()> {
    let batches = lab.setup.choose(2, 20, 50);
    let mut table = Table::new(
        "statistics",
        format!(
            "Statistics of batches of {sentences} sentences against those kept for inference, norm by norm"
        ),
        [
            Column::new("norm"),
            Column::new("mean shift").unit("σ").decimals(3),
            Column::new("mean shift, padded").unit("σ").decimals(3),
            Column::new("σ change").unit("%").decimals(1),
            Column::new("σ change, padded").unit("%").decimals(1),
        ],
    );
    let mut columns = Vec::new();
    for model in models.iter().filter(|m| m.norm != Norm::Layer) {
        let mut sums = vec![(0.0, 0.0); model.running().len()];
        for i in 0..batches {
            let batch = ragged(lab.key.child(i), &lab.held_out, sentences, lab.start)?;
            for ((sum, batch_statistics), running) in
                sums.iter_mut().zip(model.batch_statistics(lab.setup, &batch)?).zip(model.running())
            {
                let d = running.mean.len();
                for c in 0..d {
                    let deviation = f64::from(running.variance[c]).max(1e-12).sqrt();
                    let share = 1.0 / (d as u64 * batches) as f64;
                    sum.0 +=
                        share * f64::from((batch_statistics.mean[c] - running.mean[c]).abs()) / deviation;
                    sum.1 += share
                        * 100.0
                        * (f64::from(batch_statistics.variance[c]).sqrt() / deviation - 1.0).abs();
                }
            }
        }
        columns.push(sums);
    }
    let [plain, padded] = &columns[..] else { return Ok(()) };
    let encoder_layers = models.first().map_or(0, Model::encoder_layers);
    for (i, (plain, padded)) in plain.iter().zip(padded).enumerate() {
        table.row([
            norm_name(i, encoder_layers).into(),
            plain.0.into(),
            padded.0.into(),
            plain.1.into(),
            padded.1.into(),
        ]);
    }
    report.heading("Statistics at training and at inference");
    report.text(
        "A layer norm computes the same in training and in inference: its statistics are the token's own. Those of a batch norm are \
         another sample with every batch. The table shows how far the mean of a column in a random held-out batch lies from the mean \
         that inference uses, in standard deviations, and how much the standard deviation differs, both on average over columns.",
    );
    report.table(table);
    Ok(())
}

/// The name of norm `i`: two per encoder layer, three per decoder layer.
fn norm_name(i: usize, encoder_layers: usize) -> String {
    let encoder = ["self-attention", "feed-forward"];
    let decoder = ["self-attention", "cross-attention", "feed-forward"];
    match i.checked_sub(2 * encoder_layers) {
        None => format!("encoder {}, {}", i / 2 + 1, encoder[i % 2]),
        Some(i) => format!("decoder {}, {}", i / 3 + 1, decoder[i % 3]),
    }
}

/// Reports the loss against the number of sentences per batch.
fn sizes(report: &mut Report, lab: &Lab<'_>, models: &[Model]) -> Result<()> {
    let mut table = Table::new(
        "batch-size",
        "Held-out loss in nats per token against the sentences in a batch",
        [
            Column::new("norm"),
            Column::new("statistics"),
            Column::new("sentences"),
            Column::new("loss").unit("nats/token").decimals(3),
        ],
    );
    let mut chart = LineChart::new(
        "Loss against the size of a batch",
        "sentences in a batch",
        "held-out loss (nats/token)",
    )
    .log_x();
    let all: &[usize] = lab.setup.choose(&[1, 4], &[1, 2, 4, 8, 16, 32, 64], &[1, 2, 4, 8, 16, 32, 64, 128]);
    for (colour, model) in models.iter().enumerate() {
        let kinds: &[(StatisticsKind, &str)] = match model.norm {
            Norm::Layer => &[(StatisticsKind::Batch, "the token's own")],
            _ => &[(StatisticsKind::Batch, "of the batch"), (StatisticsKind::Running, "of inference")],
        };
        for (kind, words) in kinds {
            let mut points = Vec::new();
            for &sentences in all {
                let loss = lab.loss(model, sentences, *kind)?;
                table.row([model.norm.name().into(), (*words).into(), sentences.into(), loss.into()]);
                points.push((sentences as f64, loss));
            }
            let series =
                Series::new(format!("{}, {words}", model.norm.name()), points).markers().colour(colour);
            chart = chart.series(if *kind == StatisticsKind::Running { series.dashed() } else { series });
        }
    }
    report.heading("The size of a batch");
    report.text(
        "With the statistics of the batch, a batch norm needs a large batch to come to the statistics that its weights were trained with; \
         with those of inference the size does not matter. A layer norm never sees the batch.",
    );
    report.table(table);
    report.picture("batch-size", "The same held-out sentences in batches of different sizes.", chart);
    Ok(())
}

/// Reports how much the loss of a sentence depends on the other sentences of its batch, and returns
/// a one-sentence summary.
fn neighbours(report: &mut Report, lab: &Lab<'_>, models: &[Model], sentences: usize) -> Result<String> {
    let (watched, draws) = lab.setup.choose((2, 2), (10, 8), (40, 16));
    let mut table = Table::new(
        "neighbours",
        format!(
            "Change of a sentence's loss (nats/token) when the other {} sentences of its batch are others",
            sentences - 1
        ),
        [
            Column::new("norm"),
            Column::new("mean change").decimals(4),
            Column::new("largest change").decimals(4),
        ],
    );
    let mut found = Vec::new();
    for model in models {
        let (mut sum, mut most, mut count) = (0f64, 0f64, 0usize);
        for (i, sentence) in lab.held_out.iter().take(watched).enumerate() {
            let mut losses = Vec::new();
            for draw in 0..draws {
                let others = ragged(
                    lab.key.child((1 + i * draws + draw) as u64),
                    &lab.held_out,
                    sentences - 1,
                    lab.start,
                )?;
                losses.push(mean(&beside(lab, model, sentence, &others)?));
            }
            for pair in losses.windows(2) {
                let change = (pair[0] - pair[1]).abs();
                (sum, most, count) = (sum + change, most.max(change), count + 1);
            }
        }
        let mean = sum / count.max(1) as f64;
        table.row([model.norm.name().into(), mean.into(), most.into()]);
        found.push(format!("{} {}", model.norm.name(), significant(mean)));
    }
    report.heading("Neighbours in the batch");
    report.text(
        "The same sentence stands in batches with different others, and the statistics are those of the batch, as in training. With a layer \
         norm nothing but rounding can change its loss.",
    );
    report.table(table);
    Ok(format!(
        "A sentence's loss changes with its neighbours in a batch by {} nats per token on average.",
        found.join(", ")
    ))
}

/// The token losses of a sentence in a batch with others.
fn beside(lab: &Lab<'_>, model: &Model, sentence: &(Vec<u32>, Vec<u32>), others: &Batch) -> Result<Vec<f32>> {
    let (mut pairs, sources, inputs) = (vec![sentence.clone()], &others.source, others.input.offsets());
    for i in 0..others.pairs() {
        let source = sources.ids()[sources.offsets()[i]..sources.offsets()[i + 1]].to_vec();
        pairs.push((source, others.output[inputs[i]..inputs[i + 1]].to_vec()));
    }
    let batch = Batch::new(pairs.iter().map(|(s, t)| (&s[..], &t[..])), lab.start)?;
    let mut losses = model.token_losses(lab.setup, &batch, StatisticsKind::Batch)?;
    losses.truncate(sentence.1.len());
    Ok(losses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn a_layer_norm_sees_no_neighbours_and_a_batch_norm_does() {
        let report = smoke(&STUDY);
        let table = report.find_table("neighbours").unwrap();
        let change = |row| table.number(row, "largest change").unwrap();
        assert!(change(0) < 1e-5, "{}", change(0));
        assert!(change(1) > 1e-4 && change(2) > 1e-4, "{} {}", change(1), change(2));
        let sizes = report.find_table("batch-size").unwrap();
        let loss = |row| sizes.number(row, "loss").unwrap();
        // Layer norm, then batch norm with batch statistics and with running statistics, two sizes
        // each.
        assert!((loss(0) - loss(1)).abs() < 1e-5);
        assert!((loss(2) - loss(3)).abs() > 1e-4);
        assert!((loss(4) - loss(5)).abs() < 1e-5);
        assert_eq!(report.find_table("statistics").unwrap().rows.len(), 2 * 2 + 2 * 3);
        assert_eq!(norm_name(4, 2), "decoder 1, self-attention");
        assert_eq!(norm_name(3, 2), "encoder 2, feed-forward");
    }
}
