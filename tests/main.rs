//! The integration tests of the command and of the library as a whole, one binary. A crate's own tests are in its folder.

mod architecture;
mod bf16;
mod cli;
mod command;
mod docs;
mod fine_tune;
mod encoders;
mod faults;
mod formats;
mod generate;
mod hub;
mod launcher;
mod serve;
mod sentencepiece;
mod study;
mod text;
mod train;
mod translate;
mod weights;
