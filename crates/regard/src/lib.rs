//! The Transformer of "Attention Is All You Need" as a library, its modules in the order of the flow.

pub mod autograd;
pub mod batch;
mod error;
pub mod model;
pub mod train;

pub use error::{Error, Result};
pub use regard_kernels::{Isa, IsaError, Key};
