//! The decoder's SSRU in decoding: the state of a hypothesis is one row of the cache.

use super::executor::{Input, Pass};
use super::workspace::Tensor;
use crate::model::SsruLayer;
use regard_kernels::ssru_step;

impl Pass<'_> {
    /// The outputs of the step's tokens. Each reads the state of the token before it, the second to
    /// last of its rows, and writes its own.
    pub(super) fn ssru_states(&mut self, candidates: Tensor, forget: Tensor, layer: &SsruLayer) -> Tensor {
        let Pass { engine, workspace, input: Input::Step(step, cache), .. } = self else {
            unreachable!("an encoder has no SSRU")
        };
        let d = engine.model().config().d_model;
        let states = cache.steps(layer.layer);
        workspace.make(step.rows.len(), d, |w, y| {
            let mut state = std::mem::take(&mut w.scratch);
            let tokens = w.data(candidates).chunks_exact(d).zip(w.data(forget).chunks_exact(d));
            let tokens = tokens.zip(y.chunks_exact_mut(d)).zip(step.past.iter());
            for (((x, z), y), past) in tokens {
                state.clear();
                match past {
                    [.., before, _] => state.extend_from_slice(states.mat().row(*before as usize)),
                    _ => state.resize(d, 0.0),
                }
                ssru_step(engine.isa(), x, z, &mut state, y);
                states.write(&past[past.len() - 1..], d, std::iter::once(&state[..]));
            }
            w.scratch = state;
        })
    }
}
