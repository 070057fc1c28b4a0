//! Inference: text, model, decoding, model folders, and the [`Translator`](translator::Translator)
//! over all of them.

// Raw text to ids and back: normalisation, training a tokenizer, `tokenizer.json`.
pub mod text;
// Sentences laid end to end without padding: what a model computes on.
pub mod batch;
// The Transformer: configuration, parameters, wiring.
pub mod model;
// Search: greedy, beam and sampling, with key/value caches.
pub mod decode;
// Model folders: MarianMT directories, safetensors.
pub mod formats;
// Models by name: a folder of them, downloads, published lists.
pub mod store;
// Text in, text out.
pub mod translator;
pub mod bounded;
mod dtype;
mod error;
// Codes of languages, as models and people spell them.
pub mod languages;
pub mod parallel;
mod replace;

pub use dtype::DType;
pub use error::{Error, Result};
pub use regard_kernels::{Gemm, Isa, IsaError, Key};
pub use regard_random as random;
pub use replace::replace;
