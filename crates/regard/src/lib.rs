//! The Transformer of "Attention Is All You Need" as a library, its modules in the order of the flow.

// Raw text to ids and back: the normalisation, training a tokenizer, `tokenizer.json`.
pub mod text;
// Parallel files to a cache of ids on disk: reading, filters, the summary of what was dropped.
pub mod corpus;
// A corpus of English and French made by a grammar, for a first run without any files.
pub mod builtin;
// Batches: which sentences go together, and how they lie in memory.
pub mod batch;
// The tape: coarse operations, each with its backward.
pub mod autograd;
// The Transformer: configuration, parameters, wiring.
pub mod model;
// Training: the step over all cores.
pub mod train;
// Search: greedy, beam and sampling, with key/value caches.
pub mod decode;
// BLEU, chrF and TER, as sacreBLEU counts them.
pub mod metrics;
// Model folders: MarianMT directories, safetensors.
pub mod formats;
// Text in, text out.
pub mod translator;
// Smooth maxima: what softmax is the gradient of.
pub mod smooth;
// Charts, heat maps and pages.
pub mod plot;
// Processes that work together: one, or the ranks of an MPI job.
pub mod group;
mod bounded;
mod counter;
mod error;
mod replace;

pub use error::{Error, Result};
pub use regard_kernels::{Isa, IsaError, Key, Products};
pub use replace::replace;
