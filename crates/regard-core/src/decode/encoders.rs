//! Recurrent and convolutional encoders in decoding.

use super::executor::{Input, Pass};
use super::workspace::Tensor;
use crate::batch::{Packed, TimeSteps, gru_states, unfold};
use crate::model::{ConvolutionLayer, RecurrentLayer};
use regard_kernels::MatMut;

impl<'p> Pass<'p> {
    /// The states of a GRU layer over whole sentences.
    pub(super) fn gru(&mut self, gates: Tensor, layer: &RecurrentLayer) -> Tensor {
        let source = self.source();
        let Pass { engine, team, workspace, .. } = self;
        let h = layer.forward.width();
        let (rows, cols) = (workspace.mat(gates).rows(), workspace.mat(gates).cols());
        let cells = [(Some(layer.forward), false), (layer.backward, true)];
        workspace.make(rows, cols / 3, |w, y| {
            let (mut state, mut saved) = std::mem::take(&mut w.states);
            saved.resize(saved.len().max(rows * 4 * h), 0.0);
            let (inner, kept) = saved[..rows * 4 * h].split_at_mut(rows * 3 * h);
            let mut rest = MatMut::new(y, rows, cols / 3);
            for (i, (cell, reversed)) in cells.into_iter().enumerate() {
                let Some(cell) = cell else { continue };
                let (y, others) = rest.split_columns(h);
                rest = others;
                let steps = TimeSteps::new(source.offsets(), reversed);
                let (matrix, bias) = (engine.matrix(cell.weight), engine.vector(cell.bias));
                let (x, quantized) = w.operand(gates);
                let x = x.columns(i * 3 * h, 3 * h);
                gru_states(engine.isa(), &steps, x, (&mut *inner, &mut *kept), &mut state, y, |state, to| {
                    let to = MatMut::new(to, state.rows(), 3 * h);
                    matrix.matmul_with(team, matrix.rows(state, quantized), Some(bias), to);
                });
            }
            w.states = (state, saved);
        })
    }

    /// Concatenates the tokens around each token.
    pub(super) fn unfold_tokens(&mut self, x: Tensor, layer: &ConvolutionLayer) -> Tensor {
        let source = self.source();
        let (rows, cols) = (self.workspace.mat(x).rows(), self.workspace.mat(x).cols());
        self.workspace.make(rows, layer.width * cols, |w, y| {
            unfold(w.mat(x), source.offsets(), layer.width, layer.dilation, y);
        })
    }

    fn source(&self) -> &'p Packed {
        let Input::Source(source) = self.input else { unreachable!("a decoder attends") };
        source
    }
}
