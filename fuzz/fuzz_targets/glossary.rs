//! Any text as a glossary, and the terms that a text has: an error that names a line, or places in
//! the text, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_documents::fuzzing::glossary(data));
