//! Any bytes as the cache of a corpus, as they are and with a header and hashes that fit: an error
//! or pairs, never a panic, and no memory that they do not warrant.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_train::corpus::read_any_cache(data));
