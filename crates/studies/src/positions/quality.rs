//! Compares five kinds of positions, trained on short sentences and tested on longer ones.

use crate::kinds::{self, Kind};
use crate::small::{Pairs, Task, Trained};
use crate::{Column, Report, Setup, Table};
use regard_core::Result;
use regard_plot::{LineChart, Series};

/// The trained models and their results.
pub(super) struct Models {
    pub(super) trained: Vec<(Kind, Trained)>,
    /// Pairs up to the training length.
    pub(super) pairs: Pairs,
    /// BLEU by kind: at training lengths, on longer sentences, on two sentences in one.
    bleu: Vec<(Kind, [f64; 3])>,
}

impl Models {
    pub(super) fn sinusoidal(&self) -> &Trained {
        let found = self.trained.iter().find(|(kind, _)| *kind == Kind::Sinusoidal);
        &found.unwrap_or(&self.trained[0]).1
    }

    /// The result in words, in English and in Chinese.
    pub(super) fn answer(&self) -> [String; 2] {
        let best = |i: usize| {
            let best = self.bleu.iter().max_by(|a, b| a.1[i].total_cmp(&b.1[i]));
            best.map_or(Kind::None, |(kind, _)| *kind)
        };
        let of = |kind: Kind, i: usize| {
            self.bleu.iter().find(|(k, _)| *k == kind).map_or(0.0, |(_, bleu)| bleu[i])
        };
        let others = self.bleu.iter().filter(|(kind, _)| *kind != Kind::None);
        let needed = others.map(|(_, bleu)| bleu[0]).fold(f64::MAX, f64::min) > of(Kind::None, 0) + 1.0;
        let en = format!(
            "A vector that depends on the position alone is added to each word's vector, or each distance between words has a vector of its \
             own. {} The best kind at the lengths that were trained: {}; on texts about twice as long: {}.",
            if needed {
                "Without either, translations are clearly worse."
            } else {
                "Without either, this task loses little."
            },
            best(0).name(),
            best(2).name(),
        );
        let zh = format!(
            "要么给每个词的向量加上一个只取决于位置的向量，要么让词与词之间的每种距离有自己的向量。{}在训练过的长度上，{}最好；\
             在大约两倍长的文本上，最好的是{}。",
            if needed {
                "两者都没有，翻译明显变差。"
            } else {
                "两者都没有，在这个任务上损失不大。"
            },
            best(0).name_zh(),
            best(2).name_zh(),
        );
        [en, zh]
    }

    /// A one-sentence summary.
    pub(super) fn summary(&self) -> String {
        let show = |i: usize| {
            let parts: Vec<String> =
                self.bleu.iter().map(|(kind, bleu)| format!("{} {:.1}", kind.name(), bleu[i])).collect();
            parts.join(", ")
        };
        format!(
            "BLEU at trained lengths: {}; on two sentences in one, about twice as long: {}.",
            show(0),
            show(2)
        )
    }
}

/// Trains and evaluates all kinds.
pub(super) fn study(setup: &Setup<'_>, report: &mut Report, task: &Task) -> Result<Models> {
    let steps = setup.choose(3, 550, 3000);
    let limit = middle_length(&task.train);
    let pairs: Pairs = task.train.iter().filter(|(source, _)| source.len() <= limit).cloned().collect();
    let tests = tests(task, limit, setup.choose(6, 250, 500))?;
    let mut table = Table::new(
        "quality",
        format!("BLEU after {steps} steps on sentences of at most {limit} source tokens"),
        [
            Column::new("positions"),
            Column::new("trained lengths").unit("BLEU").decimals(1),
            Column::new("longer").unit("BLEU").decimals(1),
            Column::new("two in one").unit("BLEU").decimals(1),
            Column::new("parameters"),
            Column::new("training").unit("target tokens/s").decimals(0),
        ],
    );
    let mut chart = LineChart::new(
        "Quality beyond the lengths that were trained",
        "mean length of the sources (tokens)",
        "BLEU",
    );
    let (mut trained, mut bleu) = (Vec::new(), Vec::new());
    for kind in kinds::ALL {
        let mut config = task.config(setup.scale);
        kind.apply(&mut config);
        let model = crate::small::fit(setup, &format!("positions {}", kind.name()), config, &pairs, steps)?;
        let mut scores = [0.0; 3];
        for (score, test) in scores.iter_mut().zip(&tests) {
            *score = task.bleu(setup, &model, &test.pairs)?;
        }
        table.row([
            kind.name().into(),
            scores[0].into(),
            scores[1].into(),
            scores[2].into(),
            model.model.parameters().len().into(),
            model.tokens_per_second().into(),
        ]);
        let points = tests.iter().zip(scores).map(|(test, score)| (test.length, score)).collect();
        chart = chart.series(Series::new(kind.name(), points).markers());
        trained.push((kind, model));
        bleu.push((kind, scores));
    }
    explain(report, limit, &pairs, task, &tests);
    report.table(table);
    report.picture(
        "quality",
        "Each kind of positions at trained lengths, on longer sentences, and on two sentences in one.",
        chart,
    );
    Ok(Models { trained, pairs, bleu })
}

fn explain(report: &mut Report, limit: usize, pairs: &Pairs, task: &Task, tests: &[Test]) {
    report.heading("Kinds of positions, and lengths beyond those trained");
    report.text(format!(
        "Five models differ in nothing but their positions: sinusoids added to the token's vector, a learned vector for each position, \
         a learned vector for each distance in self-attention, sinusoids beside the token's vector, and none. All train on the {} of {} \
         pairs of the built-in corpus whose source has at most {limit} tokens. They are tested on held-out sentences of such lengths \
         ({} sentences of {:.1} tokens on average), on longer ones ({} of {:.1}), and on two short ones in one line ({} of {:.1}), whose \
         last positions no training sentence had.",
        pairs.len(),
        task.train.len(),
        tests[0].pairs.len(),
        tests[0].length,
        tests[1].pairs.len(),
        tests[1].length,
        tests[2].pairs.len(),
        tests[2].length,
    ));
    report.text(
        "Theory expects learned vectors to fail where none was trained, sinusoids to have a value everywhere but not one that the model \
         has seen, and distances to carry over as far as neighbours decide. Without positions the encoder reads a bag of words; the \
         decoder's causal mask still orders what it says.",
    );
}

/// The median source length.
fn middle_length(pairs: &Pairs) -> usize {
    let mut lengths: Vec<usize> = pairs.iter().map(|(source, _)| source.len()).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or(1)
}

struct Test {
    pairs: Vec<(String, String)>,
    /// The mean source length.
    length: f64,
}

/// Held-out pairs of training lengths, longer ones, and pairs of short sentences joined; at most
/// `most` of each.
fn tests(task: &Task, limit: usize, most: usize) -> Result<[Test; 3]> {
    let sources: Vec<&str> = task.held_out.iter().map(|(source, _)| source.as_str()).collect();
    let lengths: Vec<usize> = task.tokenizer.encode_batch(&sources, 1)?.iter().map(Vec::len).collect();
    let part = |wanted: &dyn Fn(usize) -> bool| -> Vec<(String, String)> {
        let found = task.held_out.iter().zip(&lengths).filter(|(_, length)| wanted(**length));
        found.map(|(pair, _)| pair.clone()).take(most).collect()
    };
    let short = part(&|length| length <= limit);
    let joined: Vec<(String, String)> = short
        .iter()
        .zip(short.iter().rev())
        .map(|(a, b)| (format!("{} {}", a.0, b.0), format!("{} {}", a.1, b.1)))
        .collect();
    let test = |pairs: Vec<(String, String)>| -> Result<Test> {
        let sources: Vec<&str> = pairs.iter().map(|(source, _)| source.as_str()).collect();
        let tokens: usize = task.tokenizer.encode_batch(&sources, 1)?.iter().map(Vec::len).sum();
        Ok(Test { length: tokens as f64 / pairs.len().max(1) as f64, pairs })
    };
    Ok([test(short)?, test(part(&|length| length > limit))?, test(joined)?])
}
