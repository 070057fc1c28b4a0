//! Documents that are packages of XML: a damaged one is refused, any other is written again as
//! well-formed XML with all of its text; never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_documents::fuzzing::office(data));
