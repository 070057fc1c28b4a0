//! The numeric kernels of Regard.

pub mod mapped;
