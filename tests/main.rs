//! The integration tests, one binary: goldens, gradients, invariants, the command line, faults.

mod architecture;
mod bf16;
mod cli;
mod command;
mod corpus;
mod docs;
mod fine_tune;
mod encoders;
mod faults;
mod formats;
mod generate;
mod gradients;
mod hub;
mod invariants;
mod launcher;
mod metrics;
mod search;
mod serve;
mod sentencepiece;
mod study;
mod text;
mod train;
mod transformer;
mod translate;
mod weights;

#[global_allocator]
static ALLOCATOR: regard_kernels::CountingAllocator = regard_kernels::CountingAllocator;
