//! The position-wise feed-forward network (section 3.3).

use super::residual_norm::sub_layer;
use super::{LinearLayer, NormLayer};
use crate::model::{Executor, NormPlace};

/// The position-wise feed-forward layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedForwardLayer {
    /// To the inner width, with the activation; if present, the output of `up` is multiplied by it.
    pub gate: Option<LinearLayer>,
    /// To the inner width, with the activation unless there is a gate.
    pub up: LinearLayer,
    /// The projection back to the width of the model.
    pub down: LinearLayer,
    /// The norm of the sub-layer.
    pub norm: NormLayer,
}

impl FeedForwardLayer {
    /// The sub-layer with its residual connection and its norm.
    pub fn run<E: Executor>(&self, e: &mut E, x: E::Tensor, place: NormPlace) -> E::Tensor {
        sub_layer(e, x, (place, &self.norm), |e, x| {
            let hidden = match &self.gate {
                Some(gate) => {
                    let gate = e.activated(x, gate);
                    let up = e.linear(x, &self.up);
                    e.multiply(gate, up)
                }
                None => e.activated(x, &self.up),
            };
            e.linear(hidden, &self.down)
        })
    }
}
