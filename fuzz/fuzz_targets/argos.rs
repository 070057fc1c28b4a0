//! Any bytes as a package of Argos Translate: nothing outside of its folder is looked at, and
//! nothing unpacks to more than it may.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_core::formats::fuzzing::argos(data));
