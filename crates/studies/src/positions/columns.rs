//! Shows that the order of the sine and cosine columns does not matter.

use crate::small::{Batches, Task, Trained};
use crate::{Column, Report, Setup, Table};
use regard_core::batch::Batch;
use regard_core::model::positions::{interleaved, sinusoidal};
use regard_core::model::{Param, Parameter, Positions, Role, Transformer};
use regard_core::{Error, Result};
use regard_train::autograd::Tape;
use regard_train::token_losses;

/// Reorders the columns of a trained model, and returns a one-sentence summary.
pub(super) fn study(
    setup: &Setup<'_>,
    report: &mut Report,
    task: &Task,
    trained: &Trained,
) -> Result<String> {
    setup.progress("reordering the columns");
    let d = trained.model.config().d_model;
    let pad = trained.model.config().start();
    let held_out = task.encode(&task.held_out, setup.threads)?;
    let mut batches = Batches::new(&held_out, pad, setup.seed)?;
    let batch = batches.next_batch()?;

    // Column c of the paper's order is column order[c] of ours.
    let order: Vec<usize> = (0..d).map(|c| c / 2 + (c % 2) * (d / 2)).collect();
    let kept: Vec<usize> = (0..d).collect();
    let longest = longest(&batch);
    let halves = losses(setup, trained, &kept, &sinusoidal(longest, d), &batch)?;
    let pairs = losses(setup, trained, &order, &interleaved(longest, d), &batch)?;
    let mixed = losses(setup, trained, &kept, &interleaved(longest, d), &batch)?;

    let difference =
        |other: &[f32]| halves.iter().zip(other).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
    let mean =
        |losses: &[f32]| losses.iter().map(|x| f64::from(*x)).sum::<f64>() / losses.len().max(1) as f64;
    let mut table = Table::new(
        "columns",
        format!("Loss of {} target tokens with the columns in two orders", halves.len()),
        [
            Column::new("positions, weights"),
            Column::new("loss").unit("nats/token").decimals(6),
            Column::new("largest difference of a token").unit("nats"),
        ],
    );
    table.row(["sines | cosines, as trained".into(), mean(&halves).into(), 0.0.into()]);
    table.row([
        "sine, cosine, sine, …, weights likewise".into(),
        mean(&pairs).into(),
        difference(&pairs).into(),
    ]);
    table.row([
        "sine, cosine, sine, …, weights as trained".into(),
        mean(&mixed).into(),
        difference(&mixed).into(),
    ]);
    report.heading("The order of the columns");
    report.text(
        "The paper interleaves sines and cosines; this program keeps all sines in front of all cosines, and others do so too. Every number that \
         reads a column is learned, and begins at random in the same way for every column. So for each model of one order there is \
         one of the other that computes the same: its weights, reordered. Below, the model that was trained with sinusoids gets \
         its columns in the paper's order, first with its weights reordered likewise, then, to see that the order is not without effect on weights \
         that were trained, with its weights as they were.",
    );
    report.table(table);
    Ok(format!(
        "Reordering the columns, with the weights, changes no token's loss by more than {}.",
        crate::report::significant(difference(&pairs))
    ))
}

fn longest(batch: &Batch) -> usize {
    let side = |x: &regard_core::batch::Packed| (0..x.sentences()).map(|i| x.length(i)).max().unwrap_or(1);
    side(&batch.source).max(side(&batch.input))
}

/// The loss of each token with the given positions, when column `c` of the vectors holds the former
/// column `order[c]`.
///
/// The positions are stored in place of learned ones, which the model reads from a table.
fn losses(
    setup: &Setup<'_>,
    trained: &Trained,
    order: &[usize],
    positions: &[f32],
    batch: &Batch,
) -> Result<Vec<f32>> {
    let mut config = trained.model.config().clone();
    config.positions = Positions::Learned;
    config.max_positions = positions.len() / config.d_model;
    let model = Transformer::new(config)?;
    let axes = ModelAxes::of(&model);
    let mut weights = vec![0.0; model.parameters().len()];
    for parameter in model.parameters() {
        let to = &mut weights[parameter.param.range()];
        if parameter.role == Role::Positions {
            to.copy_from_slice(positions);
            continue;
        }
        let from = trained.model.parameters().get(&parameter.name).ok_or_else(|| Error::Input {
            operation: "reordering columns",
            message: format!("the trained model has no {}", parameter.name),
        })?;
        reorder(
            axes.of_parameter(parameter),
            parameter.shape,
            order,
            &trained.weights[from.param.range()],
            to,
        );
    }
    token_losses(&mut Tape::new(setup.isa, setup.threads), &model, &weights, batch)
}

/// Finds the axes of the parameters that have model width: those that correspond to the vectors
/// between layers, whose columns are reordered.
struct ModelAxes {
    /// Matrices whose outputs are added to these vectors; all others read the vectors.
    projections: Vec<Param>,
    /// Biases that do not belong to these vectors: of queries, keys, values and the hidden
    /// feed-forward layers.
    inner_biases: Vec<Param>,
}

impl ModelAxes {
    fn of(model: &Transformer) -> Self {
        let projections: Vec<Param> = model.output_projections().iter().map(|layer| layer.weight).collect();
        let matrices = model.parameters().iter().filter(|p| !projections.contains(&p.param));
        let inner_biases = matrices.filter_map(|matrix| matrix.bias).collect();
        ModelAxes { projections, inner_biases }
    }

    /// Whether the rows and whether the columns are reordered.
    fn of_parameter(&self, Parameter { role, param, .. }: &Parameter) -> [bool; 2] {
        match role {
            Role::Matrix if self.projections.contains(param) => [true, false],
            Role::Vector => [false, !self.inner_biases.contains(param)],
            Role::Matrix | Role::Vocabulary | Role::Positions => [false, true],
        }
    }
}

fn reorder(
    [by_row, by_column]: [bool; 2],
    [rows, columns]: [usize; 2],
    order: &[usize],
    from: &[f32],
    to: &mut [f32],
) {
    for r in 0..rows {
        for c in 0..columns {
            let row = if by_row { order[r] } else { r };
            let column = if by_column { order[c] } else { c };
            to[r * columns + c] = from[row * columns + column];
        }
    }
}
