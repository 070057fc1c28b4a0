//! The readers of model files on bytes of any kind, for the targets in `fuzz/`. They return or panic.

use super::generation::GenerationConfig;
use super::json::Keys;
use super::tensor::{Tensor, width};
use super::weights::Tensors;
use super::{Languages, marian, safetensors, torch};
use crate::model::Transformer;
use std::path::Path;

/// Every tensor lies in the file, has no more numbers than it, and can be read or is refused.
fn check(file: &[u8], tensors: &Tensors) {
    for entry in tensors.values() {
        let bytes = &file[entry.range.clone()];
        let numbers: usize = entry.shape.iter().product();
        assert!(numbers * width(entry.kind) <= file.len());
        let tensor =
            Tensor { kind: entry.kind, shape: &entry.shape, strides: entry.strides.as_deref(), bytes };
        let mut to = vec![0.0; numbers];
        let _ = tensor.read(&mut to);
    }
}

/// A safetensors file.
pub fn safetensors(file: &[u8]) {
    if let Ok(tensors) = safetensors::read(file) {
        check(file, &tensors);
    }
}

/// A `pytorch_model.bin`.
pub fn pytorch(file: &[u8]) {
    if let Ok(tensors) = torch::read(file) {
        check(file, &tensors);
    }
}

/// The settings files of a folder: `config.json`, `generation_config.json`, `tokenizer_config.json`.
pub fn config(text: &[u8]) {
    let Ok(keys) = Keys::parse(Path::new("config.json"), text) else { return };
    let _ = (keys.all::<GenerationConfig>(), keys.all::<Languages>(), marian::read_eos(&keys));
    let Ok(config) = marian::read_config(&keys) else { return };
    assert!(!marian::vocabulary_places(&config).is_empty());
    let _ = marian::why_not(&config);
    // Larger ones are compared with the weights before anything is made of them.
    if config.encoder_layers.max(config.decoder_layers) <= 64
        && let Ok(model) = Transformer::new(config)
    {
        assert!(!marian::places(&model).is_empty());
    }
}
