//! Any bytes as a checkpoint of a training run, as they are and with the right checksum: an error
//! or what is in it, never a panic, and no memory that it does not warrant.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_train::read_any_checkpoint(data));
