//! Any text as a tokenizer.json: it is refused, or it encodes and decodes text, the same way each
//! time and never with a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_core::formats::fuzzing::tokenizer(data));
