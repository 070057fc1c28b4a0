//! The tape: coarse-grained operations that run forward as they are recorded, then backward in
//! reverse.
//!
//! An operation is a type that implements [`Op`], with forward and backward side by side; an
//! operation without a backward does not compile. Values live in an arena that the tape reuses
//! across steps, gradients in a pool that follows the backward pass, so after the first steps
//! nothing is allocated that grows with the work.

mod memory;
pub mod ops;
mod sampled_softmax;
mod tape;
mod weights;

pub use regard_core::model::Param;
pub use sampled_softmax::{Draw, SampledSoftmax};
pub use tape::{Backward, BackwardHook, Forward, Op, Tape, Var};
pub use weights::{PackedWeights, Repack, Weights};
