//! Whole models: PyTorch's numbers, gradients against finite differences, invariants, the search
//! against the tape.

mod bf16;
mod gradients;
mod invariants;
mod published;
mod search;
mod settings;
// Those that the tests of the search use.
#[path = "../../regard-core/tests/small_models.rs"]
mod small_models;
mod transformer;
