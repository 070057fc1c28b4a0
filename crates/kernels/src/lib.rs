//! The numeric kernels of Regard.
