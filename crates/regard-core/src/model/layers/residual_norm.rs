//! Residual connection and norm around every sub-layer (section 3.1 of the paper).

use crate::model::{Executor, NormPlace, Param};

/// γ and β; an RMS norm has no β.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormLayer {
    /// γ
    pub gamma: Param,
    /// β
    pub beta: Option<Param>,
}

/// A sub-layer with its residual connection and its norm, before or after it.
pub(super) fn sub_layer<E: Executor>(
    e: &mut E,
    x: E::Tensor,
    (place, norm): (NormPlace, &NormLayer),
    f: impl FnOnce(&mut E, E::Tensor) -> E::Tensor,
) -> E::Tensor {
    match place {
        NormPlace::Post => {
            let branch = f(e, x);
            e.add_norm(x, branch, norm)
        }
        NormPlace::Pre => {
            let normed = e.norm(x, norm);
            let branch = f(e, normed);
            e.add(x, branch)
        }
    }
}
