//! Recurrent layers: gated recurrent units in the encoder, SSRUs in the decoder.

use super::residual_norm::sub_layer;
use super::{LinearLayer, NormLayer};
use crate::model::{Executor, NormPlace, Param};

/// The recurrent weights of a GRU, from its state to its gates (reset, update, candidate): `U [3·h,
/// h]`, `b [3·h]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentCell {
    /// U
    pub weight: Param,
    /// b
    pub bias: Param,
}

impl RecurrentCell {
    /// h
    pub fn width(self) -> usize {
        self.bias.len / 3
    }
}

/// A gated recurrent unit (GRU) with its projections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentLayer {
    /// The input weights, from the tokens to the gates, with all directions side by side.
    pub input: LinearLayer,
    /// The recurrent weights, read from the beginning.
    pub forward: RecurrentCell,
    /// The same, read from the end.
    pub backward: Option<RecurrentCell>,
    /// The projection back to the width of the model.
    pub out: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

/// A simpler simple recurrent unit (SSRU; Kim et al., 2019): `f = σ(W_f·h + b_f)`, `c ← f∘c + (1 −
/// f)∘(W·h)`, and its output is `relu(c)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SsruLayer {
    /// The index in the stack.
    pub layer: usize,
    /// W, without a bias.
    pub candidate: LinearLayer,
    /// W_f and b_f.
    pub forget: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

impl RecurrentLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let states = self.states(e, x);
            e.linear(states, &self.out)
        })
    }

    /// The states of the unit after each token, without the output projection.
    pub fn states<E: Executor>(&self, e: &mut E, x: E::Tensor) -> E::Tensor {
        let gates = e.linear(x, &self.input);
        e.recurrent(gates, self)
    }
}

impl SsruLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let candidates = e.linear(x, &self.candidate);
            let forget = e.linear(x, &self.forget);
            e.ssru(candidates, forget, self)
        })
    }
}
