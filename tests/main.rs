//! The integration tests of the command and of the library as a whole, one binary. A crate's own
//! tests are in its folder.

mod architecture;
mod bf16;
mod check;
mod cli;
mod command;
mod distill;
mod docs;
mod encoders;
mod faults;
mod firefox;
mod fine_tune;
mod folders;
mod hub;
mod languages;
mod launcher;
mod marian_tokenizers;
#[cfg(feature = "hub")]
mod models;
mod security;
mod serve;
mod study;
mod train;
mod translate;
mod translate_files;
