//! What encoders do that do not attend, carried out for decoding.

use super::executor::{Inference, Tensor};
use crate::batch::{TimeSteps, gru_states, unfold};
use crate::model::{ConvolutionLayer, RecurrentLayer};
use regard_kernels::MatMut;

impl Inference<'_> {
    /// The states of a recurrent layer over whole sentences.
    pub(super) fn states(&mut self, gates: Tensor, layer: &RecurrentLayer) -> Tensor {
        let engine = self.engine;
        let h = layer.forward.bias.len / 3;
        let (_, rows, cols) = self.get(gates);
        let cells = [(Some(layer.forward), false), (layer.backward, true)];
        self.make(rows, cols / 3, |e, y| {
            let (mut state, mut saved) = std::mem::take(&mut e.states);
            saved.resize(saved.len().max(rows * 4 * h), 0.0);
            let (inner, kept) = saved[..rows * 4 * h].split_at_mut(rows * 3 * h);
            let mut rest = MatMut::new(y, rows, cols / 3);
            for (i, (cell, reversed)) in cells.into_iter().enumerate() {
                let Some(cell) = cell else { continue };
                let (y, others) = rest.split_columns(h);
                rest = others;
                let steps = TimeSteps::new(e.source.offsets(), reversed);
                let (matrix, bias) = (engine.matrix(cell.weight), engine.vector(cell.bias));
                let (x, team, quantized) = e.with_tools(gates);
                let x = x.columns(i * 3 * h, 3 * h);
                gru_states(engine.isa(), &steps, x, (&mut *inner, &mut *kept), &mut state, y, |state, to| {
                    let to = MatMut::new(to, state.rows(), 3 * h);
                    matrix.product_by(team, matrix.rows(state, quantized), Some(bias), to);
                });
            }
            e.states = (state, saved);
        })
    }

    /// The tokens around each token side by side.
    pub(super) fn around(&mut self, x: Tensor, layer: &ConvolutionLayer) -> Tensor {
        let (_, rows, cols) = self.get(x);
        self.make(rows, layer.width * cols, |e, y| {
            unfold(e.mat(x), e.source.offsets(), layer.width, layer.dilation, y);
        })
    }
}
