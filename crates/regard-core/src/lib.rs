//! Inference: text, model, decoding, model folders, and the [`Translator`](translator::Translator)
//! on top of them.

// From raw text to ids and back: normalisation, training a tokenizer, `tokenizer.json`.
pub mod text;
// Contiguous sentences without padding: the input of a model.
pub mod batch;
// The Transformer: configuration, parameters, wiring.
pub mod model;
// Search: greedy, beam and sampling, with key/value caches.
pub mod decode;
// Model folders: MarianMT directories, safetensors.
pub mod formats;
// Models by name: the model folder, downloads, published lists.
pub mod store;
// From text to text.
pub mod translator;
pub mod bounded;
mod dtype;
mod error;
// Language codes and their spellings.
pub mod languages;
pub mod parallel;
mod replace;

pub use dtype::DType;
pub use error::{Error, Result};
pub use regard_kernels::{Gemm, Isa, IsaError, Key};
pub use regard_random as random;
pub use replace::replace;
