//! Any bytes as a lex*.bin file of Marian: an error or what is in it, never a panic, and no memory
//! that it does not warrant.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_core::formats::fuzzing::marian_shortlist(data));
