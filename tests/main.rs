//! The integration tests, one binary: goldens, gradients, invariants, the command line, faults.
mod metrics;
mod transformer;
mod gradients;
mod invariants;
