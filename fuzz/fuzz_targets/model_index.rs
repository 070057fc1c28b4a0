//! Any bytes as a list of models to download, and as a model card: an error or what is in it, and
//! no name that leads out of the folder of models.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regard_core::store::fuzzing::index(data));
