//! Any bytes as a model.bin of CTranslate2: an error or what is in it, never a panic, and no memory
//! that it does not warrant.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_core::formats::fuzzing::ctranslate2(data));
