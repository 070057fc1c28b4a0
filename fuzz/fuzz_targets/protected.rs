//! Text of any kind: it comes back as it was, with its addresses, placeholders and numbers; never a
//! panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_documents::fuzzing::protected(data));
