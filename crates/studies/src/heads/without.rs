//! Measures a trained model without single heads, without all heads of a layer, and without more
//! and more heads.

use super::inside::Described;
use super::{Judge, kind_name};
use crate::small::Trained;
use crate::{Column, Report, Setup, Table};
use regard_core::Result;
use regard_core::model::{AttentionKind, remove_head};
use regard_plot::{HeatMap, LineChart, Matrix, Series};

/// A head whose removal costs less BLEU than this is cheap.
pub(super) const CHEAP_BLEU: f64 = 0.5;

/// The results of removing heads.
pub(super) struct Removed {
    /// BLEU with all heads.
    pub(super) full_bleu: f64,
    /// The attention kind, layer and index of each head.
    heads: Vec<(AttentionKind, usize, usize)>,
    /// The BLEU lost by removing each head.
    pub(super) costs: Vec<f64>,
    /// The BLEU without any heads of a layer: attention kind, layer, BLEU.
    layers: Vec<(AttentionKind, usize, f64)>,
    /// BLEU against the number of heads removed, cheapest first.
    bleu_by_removed: Vec<(f64, f64)>,
}

impl Removed {
    /// The head whose removal costs the most BLEU.
    pub(super) fn most_costly(&self) -> usize {
        (0..self.costs.len()).max_by(|&a, &b| self.costs[a].total_cmp(&self.costs[b])).unwrap_or(0)
    }

    /// The number of cheap heads.
    pub(super) fn cheap_count(&self) -> usize {
        self.costs.iter().filter(|&&cost| cost < CHEAP_BLEU).count()
    }

    pub(super) fn name(&self, i: usize) -> String {
        let (kind, layer, head) = self.heads[i];
        format!("{}, layer {}, head {}", kind_name(kind), layer + 1, head + 1)
    }
}

/// Removes heads from copies of the weights and translates with the remaining ones.
pub(super) fn measure(
    setup: &Setup<'_>,
    judge: &Judge<'_>,
    trained: &Trained,
    described: &[Described],
) -> Result<Removed> {
    let heads: Vec<_> = described.iter().map(|d| (d.kind, d.layer, d.head)).collect();
    let without = |removed: &[(AttentionKind, usize, usize)]| -> Result<f64> {
        let mut weights = trained.weights.clone();
        for &(kind, layer, head) in removed {
            remove_head(&trained.model, &mut weights, kind, layer, head)?;
        }
        judge.bleu(setup, &trained.model, &weights)
    };
    let full_bleu = without(&[])?;
    let mut costs = Vec::new();
    for (i, head) in heads.iter().enumerate() {
        costs.push(full_bleu - without(&[*head])?);
        if (i + 1).is_multiple_of((heads.len() / 4).max(1)) {
            setup.progress(format!("removed {} of {} heads, one at a time", i + 1, heads.len()));
        }
    }
    let mut layers = Vec::new();
    for group in heads.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        layers.push((group[0].0, group[0].1, without(group)?));
    }
    let mut order: Vec<usize> = (0..heads.len()).collect();
    order.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]));
    let cheapest: Vec<_> = order.iter().map(|&i| heads[i]).collect();
    let mut bleu_by_removed = Vec::new();
    for removed in (0..=heads.len()).step_by((heads.len() / 12).max(1)) {
        bleu_by_removed.push((removed as f64, without(&cheapest[..removed])?));
    }
    Ok(Removed { full_bleu, heads, costs, layers, bleu_by_removed })
}

pub(super) fn report(report: &mut Report, judge: &Judge<'_>, heads: usize, removed: &Removed) {
    report.heading("Without a head");
    report.text(format!(
        "One head at a time is taken out: its columns of the output projection $W^O$ are set to zero, nothing else is changed and nothing \
         is trained again. Then {} held-out sentences are translated greedily. With all heads BLEU is {:.1}; below zero, a head is one \
         without which it is better.",
        judge.pairs.len(),
        removed.full_bleu,
    ));
    let names: Vec<String> =
        removed.layers.iter().map(|(kind, layer, _)| format!("{} {}", kind_name(*kind), layer + 1)).collect();
    let columns: Vec<String> = (1..=heads).map(|head| head.to_string()).collect();
    let costs: Vec<f32> = removed.costs.iter().map(|&cost| cost as f32).collect();
    let rows: Vec<&[f32]> = costs.chunks(heads.max(1)).collect();
    let map = HeatMap::new("BLEU that each head is worth", Matrix::from_rows(&rows))
        .labels(&names, &columns)
        .axes("attention and layer", "head")
        .scale_label("BLEU lost")
        .values();
    report.picture("removed-heads", "BLEU lost when that one head is removed.", map);

    let each = (1..=heads).map(|head| Column::new(format!("head {head}")).decimals(1));
    let head = [Column::new("attention and layer")];
    let all = [Column::new("all of them").decimals(1)];
    let caption = "BLEU lost without one head, and without all heads of a layer";
    let mut table = Table::new("removed", caption, head.into_iter().chain(each).chain(all));
    for ((name, costs), (_, _, left)) in
        names.iter().zip(removed.costs.chunks(heads.max(1))).zip(&removed.layers)
    {
        let cells = costs.iter().map(|&cost| cost.into());
        table.row([name.as_str().into()].into_iter().chain(cells).chain([(removed.full_bleu - left).into()]));
    }
    report.table(table);
    let mut chart =
        LineChart::new("More and more heads removed", "heads removed, the cheapest first", "BLEU")
            .series(Series::new("", removed.bleu_by_removed.clone()).markers());
    chart.y.range = Some((0.0, removed.full_bleu.max(1.0) * 1.1));
    let caption =
        "The order is that of their cost one at a time. What two heads cost together need not be the sum.";
    report.picture("removed-many", caption, chart);
}
