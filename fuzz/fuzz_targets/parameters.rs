//! Any bytes as the body of a request: JSON, a form, a multipart form: an error or what is in it,
//! never a panic, and no memory that it does not warrant.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_serve::fuzzing::parameters(data));
