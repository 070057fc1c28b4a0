//! The formats of model folders and tokenizers, and the search, against the programs that define
//! them; and what must hold for every search.

mod constraints;
mod ctranslate2;
mod export;
mod families;
mod formats;
mod generate;
mod reproducibility;
mod search;
mod sentencepiece;
mod sentence_splitting;
mod sentences;
mod small_models;
mod text;
mod weights;

/// Counts allocations: steps of the search make none.
#[global_allocator]
static ALLOCATOR: regard_kernels::CountingAllocator = regard_kernels::CountingAllocator;
