//! The integration tests, one binary: goldens, gradients, invariants, the command line, faults.

mod corpus;
mod formats;
mod gradients;
mod invariants;
mod metrics;
mod text;
mod transformer;
