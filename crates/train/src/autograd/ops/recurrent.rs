//! A gated recurrent unit (GRU) over whole sentences, in one direction or both, without its input
//! projection.
//!
//! The input projection of the gates is one large matmul before this operation. Here, each step
//! multiplies the states of all unfinished sentences at once; in the backward pass, the gradient of
//! the state's matrix is again one large matmul over all steps.

use crate::autograd::{Backward, Forward, Op, Var};
use regard_core::batch::{TimeSteps, gru_states};
use regard_core::model::RecurrentCell;
use regard_kernels::{
    Accumulate, Activation, GruStep, Mat, MatMut, activate, activate_backward, gru_backward, matmul,
};
use std::sync::Arc;

/// The states of a gated recurrent unit: `x [rows, directions · 3·h]`, `y [rows, directions · h]`.
#[derive(Debug)]
pub struct Recurrent {
    /// The input projections of the gates, with all directions side by side.
    pub x: Var,
    /// The cell that reads from the beginning of a sentence.
    pub forward: RecurrentCell,
    /// The cell that reads from its end.
    pub backward: Option<RecurrentCell>,
    /// Where the sentences begin and end.
    pub offsets: Arc<[usize]>,
}

/// Memory that recurrent operations reuse.
#[derive(Debug, Default)]
pub struct RecurrentScratch {
    state: Vec<f32>,
    matrix: Vec<f32>,
    before: Vec<f32>,
    grads: Vec<f32>,
}

impl RecurrentScratch {
    /// The capacity in floats.
    pub(crate) fn capacity(&self) -> usize {
        [&self.state, &self.matrix, &self.before, &self.grads].iter().map(|v| v.capacity()).sum()
    }
}

impl Recurrent {
    /// Width of a direction's state.
    fn hidden(&self) -> usize {
        self.forward.width()
    }

    /// Each direction's cell, and whether it reads from the end.
    fn cells(&self) -> impl Iterator<Item = (RecurrentCell, bool)> {
        std::iter::once((self.forward, false)).chain(self.backward.map(|cell| (cell, true)))
    }
}

impl Op for Recurrent {
    fn name(&self) -> &'static str {
        "recurrent"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        (cx.value(self.x).rows(), self.cells().count() * self.hidden())
    }

    /// For each direction, the gates and `u_c` of each step, in the order of time.
    fn saves(&self, cx: &Forward<'_>) -> usize {
        cx.value(self.x).rows() * self.cells().count() * 4 * self.hidden()
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let (x, h) = (cx.value(self.x), self.hidden());
        let (rows, directions) = (x.rows(), self.cells().count());
        let RecurrentScratch { state, matrix, .. } = &mut cx.scratch.recurrent;
        let mut rest = MatMut::new(y, rows, directions * h);
        for (i, (cell, reversed)) in self.cells().enumerate() {
            let (y, others) = rest.split_columns(h);
            rest = others;
            let steps = TimeSteps::new(&self.offsets, reversed);
            let (gates, u_c) = saved[i * rows * 4 * h..][..rows * 4 * h].split_at_mut(rows * 3 * h);
            // Transpose once instead of in each step.
            let weight = &cx.weights.flat[cell.weight.range()];
            matrix.clear();
            matrix.extend((0..h).flat_map(|c| weight[c..].iter().step_by(h)));
            let (matrix, bias) = (Mat::new(matrix, h, 3 * h), &cx.weights.flat[cell.bias.range()]);
            gru_states(
                cx.isa,
                &steps,
                x.columns(i * 3 * h, 3 * h),
                (gates, u_c),
                state,
                y,
                |state, gates| {
                    let to = MatMut::new(gates, state.rows(), 3 * h);
                    matmul(cx.isa, to, state, matrix, Accumulate::Overwrite, cx.threads);
                    activate(cx.isa, gates, bias, Activation::Identity, None, None);
                },
            );
        }
    }

    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]) {
        let (x, h) = (cx.value(self.x), self.hidden());
        let (rows, directions) = (x.rows(), self.cells().count());
        let mut dx = cx.take_zeroed(self.x);
        let (y, dy) = (Mat::new(y, rows, directions * h), Mat::new(dy, rows, directions * h));
        let mut rest = MatMut::new(&mut dx, rows, directions * 3 * h);
        for (i, (cell, reversed)) in self.cells().enumerate() {
            let (dx, others) = rest.split_columns(3 * h);
            rest = others;
            let steps = TimeSteps::new(&self.offsets, reversed);
            let saved = saved[i * rows * 4 * h..][..rows * 4 * h].split_at(rows * 3 * h);
            let (y, dy) = (y.columns(i * h, h), dy.columns(i * h, h));
            backward_cell(cx, cell, &steps, saved, (y, dy), dx);
        }
        cx.put(self.x, dx);
    }
}

/// The backward pass of one direction: gathers the states before each step, walks from the last
/// step to the first, then runs one matmul.
fn backward_cell(
    cx: &mut Backward<'_>,
    cell: RecurrentCell,
    steps: &TimeSteps,
    (gates, u_c): (&[f32], &[f32]),
    (y, dy): (Mat<'_>, Mat<'_>),
    mut dx: MatMut<'_>,
) {
    let (rows, h) = (y.rows(), y.cols());
    let RecurrentScratch { state: carry, before, grads, .. } = &mut cx.scratch.recurrent;
    before.clear();
    for row in steps.previous() {
        match row {
            Some(row) => before.extend_from_slice(y.row(row)),
            None => before.resize(before.len() + h, 0.0),
        }
    }
    grads.resize(rows * 3 * h, 0.0);
    carry.clear();
    carry.resize(steps.sentences() * h, 0.0);
    let weight = Mat::new(&cx.weights.flat[cell.weight.range()], 3 * h, h);
    for t in (0..steps.count()).rev() {
        let (of, range) = (steps.rows(t), steps.range(t));
        let (one, three) = (range.start * h..range.end * h, range.start * 3 * h..range.end * 3 * h);
        let step = GruStep { gates: &gates[three.clone()], u_c: &u_c[one.clone()], before: &before[one] };
        let (grads, carry) = (&mut grads[three], &mut carry[..of.len() * h]);
        gru_backward(cx.isa, step, of, dy, carry, dx.reborrow(), grads);
        if t > 0 {
            let to = MatMut::new(carry, of.len(), h);
            matmul(cx.isa, to, Mat::new(grads, of.len(), 3 * h), weight, Accumulate::Add, cx.threads);
        }
    }
    let grads = &mut grads[..rows * 3 * h];
    activate_backward(cx.isa, grads, &[], Activation::Identity, None, &mut cx.gradients[cell.bias.range()]);
    let d_weight = MatMut::new(&mut cx.gradients[cell.weight.range()], 3 * h, h);
    let grads = Mat::new(grads, rows, 3 * h);
    matmul(cx.isa, d_weight, grads.t(), Mat::new(before, rows, h), Accumulate::Add, cx.threads);
}
