//! The integration tests, one binary: goldens, gradients, invariants, the command line, faults.

mod corpus;
mod text;
