//! Describes what each head of a trained model attends to.

use super::{KINDS, all_heads, kind_name};
use crate::small::{Task, Trained};
use crate::{Column, Report, Setup, Table};
use regard_core::DType;
use regard_core::decode::{Engine, attention_maps};
use regard_core::model::{AttentionKind, AttentionMap, HeadPattern, describe_head};
use regard_core::{Error, Result};
use regard_plot::{Grid, HeatMap, Matrix};
use regard_sample_corpus as builtin;

/// What a head does over many sentences.
pub(super) struct Described {
    pub(super) kind: AttentionKind,
    pub(super) layer: usize,
    pub(super) head: usize,
    /// Its most frequent pattern.
    pub(super) pattern: HeadPattern,
    /// The fraction of sentences in which it shows this pattern.
    often: f64,
    /// The mean fraction of its weight that the pattern accounts for in those sentences; `None` for
    /// a head without a pattern.
    holds: Option<f64>,
    /// The mean number of tokens that a row attends to.
    spread: f64,
}

/// A sentence and its translation as tokens, with all attention weights.
struct Seen {
    source: Vec<String>,
    /// The input and the output of the decoder.
    read: Vec<String>,
    said: Vec<String>,
    maps: Vec<AttentionMap>,
}

impl Seen {
    fn new(engine: &Engine, task: &Task, (source, target): (&[u32], &[u32])) -> Result<Self> {
        let maps = attention_maps(engine, source, target)?;
        let pieces = |ids: &[u32]| -> Vec<String> {
            ids.iter().map(|&id| task.tokenizer.piece(id).unwrap_or_default()).collect()
        };
        let said = pieces(target);
        let read = std::iter::once("<start>".to_owned())
            .chain(said.iter().take(said.len().saturating_sub(1)).cloned())
            .collect();
        Ok(Seen { source: pieces(source), read, said, maps })
    }

    /// The row and column labels of a map.
    fn labels(&self, kind: AttentionKind) -> (&[String], &[String]) {
        match kind {
            AttentionKind::Encoder => (&self.source, &self.source),
            AttentionKind::Decoder => (&self.said, &self.read),
            AttentionKind::Cross => (&self.said, &self.source),
        }
    }

    fn map(&self, kind: AttentionKind, layer: usize) -> Option<&AttentionMap> {
        self.maps.iter().find(|map| map.kind == kind && map.layer == layer)
    }
}

/// Describes every head while the model reads `sentences` held-out pairs.
pub(super) fn describe(
    setup: &Setup<'_>,
    task: &Task,
    trained: &Trained,
    sentences: usize,
) -> Result<Vec<Described>> {
    let pairs = task.encode(&task.held_out[..sentences.min(task.held_out.len())], setup.threads)?;
    let heads = all_heads(&trained.model);
    let mut hints = vec![Vec::new(); heads.len()];
    let engine = Engine::new(&trained.model, &trained.weights, DType::F32, setup.isa);
    for (source, target) in &pairs {
        let seen = Seen::new(&engine, task, (source, target))?;
        for (&(kind, layer, head), hints) in heads.iter().zip(&mut hints) {
            let (rows, columns) = seen.labels(kind);
            if let Some(map) = seen.map(kind, layer) {
                hints.push(describe_head(kind, map.head(head), rows, columns)?);
            }
        }
    }
    let described = heads.iter().zip(&hints).map(|(&(kind, layer, head), hints)| {
        let count = |p: HeadPattern| hints.iter().filter(|h| h.pattern == p).count();
        let pattern =
            HeadPattern::ALL.into_iter().rev().max_by_key(|&p| count(p)).unwrap_or(HeadPattern::Short);
        let shown = hints.iter().filter(|h| h.pattern == pattern);
        let mean = |total: f64, n: usize| total / n.max(1) as f64;
        let has_one = !matches!(pattern, HeadPattern::Mixed | HeadPattern::Short | HeadPattern::Uniform);
        Described {
            kind,
            layer,
            head,
            pattern,
            often: mean(count(pattern) as f64, hints.len()),
            holds: has_one.then(|| mean(shown.map(|h| h.share).sum(), count(pattern))),
            spread: mean(hints.iter().map(|h| h.spread).sum(), hints.len()),
        }
    });
    Ok(described.collect())
}

/// Adds the table of all heads, and a picture of all heads for one sentence.
pub(super) fn report(
    setup: &Setup<'_>,
    report: &mut Report,
    task: &Task,
    trained: &Trained,
    described: &[Described],
) -> Result<()> {
    report.heading("What each head attends to");
    let heads = trained.model.config().heads;
    report.text(format!(
        "Of the model of {heads} heads, every head while the model reads held-out sentences and their translations. A pattern is named \
         where it holds at least two fifths of a head's weight, and clearly more than an even head would give it; the table shows the \
         one that a head has in most sentences. The decoder's rows are the tokens that it says, its columns those that it reads.",
    ));
    let percent = |name: &str| Column::new(name).unit("%").decimals(0);
    let columns = [
        Column::new("attention"),
        Column::new("layer"),
        Column::new("head"),
        Column::new("pattern"),
        percent("sentences with it"),
        percent("weight it holds"),
        Column::new("tokens looked at").decimals(1),
        Column::new("what it does"),
    ];
    let mut table = Table::new("heads", "Every head, and the pattern it shows most often", columns);
    for d in described {
        table.row([
            kind_name(d.kind).into(),
            (d.layer + 1).into(),
            (d.head + 1).into(),
            d.pattern.short().into(),
            (100.0 * d.often).into(),
            d.holds.map(|share| 100.0 * share).into(),
            d.spread.into(),
            d.pattern.text().into(),
        ]);
    }
    report.table(table);
    let (source, target) = builtin::SHOWCASE[0];
    let pair = task.encode(&[(source.to_owned(), target.to_owned())], setup.threads)?;
    for (source_ids, target_ids) in &pair {
        let engine = Engine::new(&trained.model, &trained.weights, DType::F32, setup.isa);
        let seen = Seen::new(&engine, task, (source_ids, target_ids))?;
        for kind in KINDS {
            let caption = format!("\"{source}\" – \"{target}\" A row is a token that attends.");
            let name = format!("attention-{}", kind_name(kind));
            report.picture(name, caption, picture(&seen, kind, heads, described)?);
        }
    }
    Ok(())
}

/// All heads of one attention kind for one sentence, with one row per layer.
fn picture(seen: &Seen, kind: AttentionKind, heads: usize, described: &[Described]) -> Result<Grid> {
    let (rows, columns) = seen.labels(kind);
    let mut maps = Vec::new();
    for d in described.iter().filter(|d| d.kind == kind) {
        let Some(map) = seen.map(kind, d.layer) else { continue };
        let matrix = Matrix::new(map.rows, map.columns, map.head(d.head).to_vec()).map_err(Error::other)?;
        let title = format!("{}.{}: {}", d.layer + 1, d.head + 1, d.pattern.short());
        maps.push(HeatMap::new(title, matrix).labels(rows, columns));
    }
    let title = match kind {
        AttentionKind::Encoder => "Encoder self-attention: layer.head and its usual pattern",
        AttentionKind::Decoder => "Decoder self-attention: layer.head and its usual pattern",
        AttentionKind::Cross => "Cross-attention: layer.head and its usual pattern",
    };
    Ok(Grid::new(title, heads.min(4), maps).scale_label("attention weight"))
}
