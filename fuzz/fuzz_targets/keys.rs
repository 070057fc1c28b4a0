//! Any bytes as a file of API keys: an error, or keys that are written as they were read, never a
//! panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_serve::fuzzing::keys(data));
