//! Any bytes as parallel text to train on, as TSV, JSONL and a catalogue: pairs or an error, never
//! a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_train::corpus::read_any_pairs(data));
