//! Linear layers.

use crate::model::Param;

/// A linear layer: `W [out, in]`, `b [out]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearLayer {
    /// W
    pub weight: Param,
    /// b, optional.
    pub bias: Option<Param>,
    /// The rows of W.
    pub outputs: usize,
}
