//! The tape: coarse operations run forward as they are recorded, then backward in reverse.
//!
//! An operation is a type that implements [`Op`], whose forward and backward stand side by side;
//! one without a backward does not compile. Values live in an arena that the tape keeps from step
//! to step, gradients in a pool that shrinks and grows with the backward pass, so that after the
//! first steps nothing is allocated that grows with the work.

mod memory;
pub mod ops;
mod sampled_softmax;
mod tape;
mod weights;

pub use regard_core::model::Param;
pub use sampled_softmax::{Draw, SampledSoftmax};
pub use tape::{Backward, BackwardHook, Forward, Op, Tape, Var};
pub use weights::{PackedWeights, Repack, Weights};
