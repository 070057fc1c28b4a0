//! HTML of any kind: each of its tags and all of its text come back, whatever it is; never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_documents::fuzzing::html(data));
