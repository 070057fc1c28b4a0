//! Text files of every format (the first byte says which): what can be opened comes back as it was
//! if nothing is translated, and can be opened again whatever the translation; never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_documents::fuzzing::text_file(data));
