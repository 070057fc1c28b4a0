//! Attention heads: how many, what each of them attends to, and how much each contributes.

mod inside;
mod without;

use crate::small::{Pairs, Task, Trained};
use crate::{Column, Report, Setup, Study, Table};
use regard_core::batch::Batch;
use regard_core::decode::{SearchOptions, search};
use regard_core::model::{AttentionKind, Side, Transformer};
use regard_core::{Error, Result};
use regard_metrics::{Bleu, Metric};
use regard_plot::{LineChart, Series};
use regard_train::autograd::Tape;
use regard_train::token_losses;

pub(crate) const STUDY: Study = Study {
    name: "heads",
    title: "Attention heads: how many, what they do, what they are worth",
    question: "What are several heads good for?",
    zh: ["注意力头：要多少个，做什么，值多少", "多个头有什么用？"],
    about: "1 to 16 heads at equal width, what each head of a trained model attends to, and BLEU without it",
    body: run,
};

/// The three kinds of attention, in the order of tables and pictures.
const KINDS: [AttentionKind; 3] = [AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross];

fn kind_name(kind: AttentionKind) -> &'static str {
    match kind {
        AttentionKind::Encoder => "encoder",
        AttentionKind::Decoder => "decoder",
        AttentionKind::Cross => "cross",
    }
}

/// Sentence pairs and search settings for evaluating a model.
struct Judge<'a> {
    task: &'a Task,
    pairs: Pairs,
    references: Vec<String>,
    options: SearchOptions,
}

impl<'a> Judge<'a> {
    /// Uses the first `count` held-out pairs and a beam of this width.
    fn new(setup: &Setup<'_>, task: &'a Task, count: usize, beam: usize) -> Result<Self> {
        let held_out = &task.held_out[..count.min(task.held_out.len())];
        Ok(Judge {
            task,
            pairs: task.encode(held_out, setup.threads)?,
            references: held_out.iter().map(|(_, target)| target.clone()).collect(),
            options: SearchOptions { beam, ..SearchOptions::default() },
        })
    }

    fn bleu(&self, setup: &Setup<'_>, model: &Transformer, weights: &[f32]) -> Result<f64> {
        let sources: Vec<Vec<u32>> = self.pairs.iter().map(|(source, _)| source.clone()).collect();
        let found = search(model, weights, &sources, &self.options, setup.isa, setup.threads)?;
        let text = |best: &Vec<regard_core::decode::Hypothesis>| {
            best.first().map_or_else(String::new, |h| self.task.tokenizer.decode(&h.ids))
        };
        let translations: Vec<String> = found.iter().map(text).collect();
        Ok(Bleu::default()
            .corpus(&translations, std::slice::from_ref(&self.references))
            .map_err(Error::other)?
            .score)
    }

    /// The mean loss per reference token, in nats.
    fn loss(&self, setup: &Setup<'_>, trained: &Trained) -> Result<f64> {
        let mut tape = Tape::new(setup.isa, setup.threads);
        let (mut total, mut count) = (0.0, 0);
        for some in self.pairs.chunks(64) {
            let pairs = some.iter().map(|(source, target)| (&source[..], &target[..]));
            let batch = Batch::new(pairs, trained.model.config().start())?;
            let losses = token_losses(&mut tape, &trained.model, &trained.weights, &batch)?;
            total += losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
            count += losses.len();
        }
        Ok(total / count.max(1) as f64)
    }
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let task = Task::new(setup)?;
    let counts: Vec<usize> = setup.choose(vec![1, 2], vec![1, 2, 4, 8, 16], vec![1, 2, 4, 8, 16]);
    let steps = setup.choose(4, 450, 3000);
    let judge = Judge::new(setup, &task, setup.choose(5, 500, 500), setup.choose(1, 4, 4))?;
    let mut models = Vec::new();
    for &heads in &counts {
        let mut config = task.config(setup.scale);
        config.heads = heads;
        models.push(task.fit(setup, &counted(heads), config, steps)?);
    }
    let table = numbers(setup, &judge, &counts, &models)?;
    compare(report, &task, steps, &counts, &table);

    // Inspects the model with eight heads, as in the paper, or the last one.
    let at = counts.iter().position(|&heads| heads == 8).unwrap_or(counts.len() - 1);
    let (trained, heads) = (&models[at], counts[at]);
    setup.progress(format!("looking into the model of {}", counted(heads)));
    let described = inside::describe(setup, &task, trained, setup.choose(3, 200, 500))?;
    inside::report(setup, report, &task, trained, &described)?;
    let greedy = Judge::new(setup, &task, setup.choose(3, 200, 500), 1)?;
    let removed = without::measure(setup, &greedy, trained, &described)?;
    without::report(report, &greedy, heads, &removed);
    summary(report, &counts, &table, heads, &removed);
    Ok(())
}

fn numbers(setup: &Setup<'_>, judge: &Judge<'_>, counts: &[usize], models: &[Trained]) -> Result<Table> {
    let columns = [
        Column::new("heads"),
        Column::new("dₖ = dᵥ"),
        Column::new("parameters"),
        Column::new("validation loss").unit("nats a token").decimals(3),
        Column::new("BLEU").decimals(1),
        Column::new("training speed").unit("target tokens/s").decimals(0),
    ];
    let caption = format!("Models of equal width, judged on {} held-out sentences", judge.pairs.len());
    let mut table = Table::new("counts", caption, columns);
    for (&heads, trained) in counts.iter().zip(models) {
        table.row([
            heads.into(),
            trained.model.config().head_shape(Side::Source).d_k.into(),
            trained.model.parameters().len().into(),
            judge.loss(setup, trained)?.into(),
            judge.bleu(setup, &trained.model, &trained.weights)?.into(),
            trained.tokens_per_second().into(),
        ]);
    }
    Ok(table)
}

fn compare(report: &mut Report, task: &Task, steps: u64, counts: &[usize], table: &Table) {
    report.heading("How many heads");
    report.text(format!(
        "The same model with its width divided among more or fewer heads, as in rows A of the paper's table 3: what is computed stays \
         about the same, and so does the number of weights. Each is trained for {steps} steps on the same {} sentence pairs of the \
         built-in corpus in the same order, and judged on sentences whose combinations of words are in none of them.",
        task.train.len(),
    ));
    let points = |column: &str| -> Vec<(f64, f64)> {
        let value = |(i, heads): (usize, &usize)| Some((*heads as f64, table.number(i, column)?));
        counts.iter().enumerate().filter_map(value).collect()
    };
    let chart = |title: &str, unit: &str, column: &str| {
        let mut chart = LineChart::new(title, "heads", unit).log_x();
        chart.x.ticks = counts.iter().map(|&heads| heads as f64).collect();
        chart.series(Series::new("", points(column)).markers())
    };
    report.table(table.clone());
    let caption = "Translations of held-out sentences against the number of heads.";
    report.picture("bleu", caption, chart("BLEU and the number of heads", "BLEU", "BLEU"));
    let caption = "Cross-entropy of the reference translations, without label smoothing.";
    let title = "Validation loss and the number of heads";
    report.picture("loss", caption, chart(title, "loss (nats a token)", "validation loss"));
}

fn summary(report: &mut Report, counts: &[usize], table: &Table, heads: usize, removed: &without::Removed) {
    let bleu = |i: &usize| table.number(*i, "BLEU").unwrap_or(f64::NAN);
    let order = |a: &usize, b: &usize| bleu(a).total_cmp(&bleu(b));
    let all = 0..counts.len();
    let (Some(best), Some(worst)) = (all.clone().max_by(order), all.min_by(order)) else { return };
    let several = match counts[best] {
        1 => [
            "At equal width, several heads did not translate better than one here.",
            "宽度相同时，这里多个头并不比一个头翻译得好。",
        ],
        _ => [
            "At equal width, several heads translate better than one, because each can look at something else.",
            "宽度相同时，多个头比一个头翻译得好，因为每个头可以看不同的东西。",
        ],
    };
    let spare = match 2 * removed.cheap_count() > removed.costs.len() {
        true => [
            "Most single heads can be taken out of the trained model at little cost: what they do, others do too.",
            "从训练好的模型里去掉任何一个头，大多损失很小：它做的事，别的头也在做。",
        ],
        false => [
            "Most heads of the trained model are missed when they are taken out.",
            "训练好的模型里，大多数头去掉之后都会有损失。",
        ],
    };
    report.answer(several[0].to_owned() + " " + spare[0], several[1].to_owned() + spare[1]);
    report.summary(format!(
        "At equal width and equal training, {} did best (BLEU {:.1}) and {} did worst ({:.1}). In the model of {heads} heads a single \
         head costs {:.1} BLEU when it is taken out, at most ({}), and {} of its {} heads cost less than {} BLEU each.",
        counted(counts[best]),
        bleu(&best),
        counted(counts[worst]),
        bleu(&worst),
        removed.costs[removed.most_costly()],
        removed.name(removed.most_costly()),
        removed.cheap_count(),
        removed.costs.len(),
        without::CHEAP_BLEU,
    ));
}

fn counted(heads: usize) -> String {
    if heads == 1 { "1 head".to_owned() } else { format!("{heads} heads") }
}

/// Every head of a model: attention kind, layer and head.
fn all_heads(model: &Transformer) -> Vec<(AttentionKind, usize, usize)> {
    let config = model.config();
    let layers =
        |kind| if kind == AttentionKind::Encoder { config.encoder_layers } else { config.decoder_layers };
    let of_layer = |kind, layer| (0..config.heads).map(move |head| (kind, layer, head));
    KINDS.iter().flat_map(|&kind| (0..layers(kind)).flat_map(move |layer| of_layer(kind, layer))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn every_head_is_described_and_removed() {
        let report = smoke(&STUDY);
        let counts = report.find_table("counts").unwrap();
        assert_eq!((counts.number(0, "heads"), counts.number(1, "heads")), (Some(1.0), Some(2.0)));
        assert_eq!(counts.number(0, "parameters"), counts.number(1, "parameters"));
        assert!(counts.number(0, "validation loss").unwrap() > 0.0);
        // Two layers on each side, three attentions, two heads.
        let heads = report.find_table("heads").unwrap();
        assert_eq!(heads.rows.len(), 12);
        assert_eq!(report.find_table("removed").unwrap().rows.len(), 6);
    }
}
