//! CTranslate2's folders, and the packages of Argos Translate, which contain them.
//!
//! `file` reads `model.bin`: every variable by name, in place. `files` finds the files, which lie
//! in a folder or in a zip archive. [`Ct2Model`] converts them to our model.
//!
//! # `model.bin`
//!
//! All numbers are little-endian. A string is preceded by its length (u16, including the final
//! NUL).
//!
//! | what | format |
//! |---|---|
//! | version | u32, 2 to 6 |
//! | specification | string, `TransformerSpec` here |
//! | its revision | u32 |
//! | number of variables | u32 |
//! | each variable | name (string), rank (u8), dimensions (u32 each), type and bytes |
//! | from version 4 on | type (u8: 0 f32, 1 i8, 2 i16, 3 i32, 4 f16, 5 bf16), bytes (u32) |
//! | before | bytes per element (u8: 4 f32, 2 i16, 1 i8), number of elements (u32) |
//! | … | its bytes |
//! | number of aliases | u32, from version 3 on |
//! | each alias | its name and that of a variable (strings), whose scale it has as well |
//!
//! Integers come with a variable `…_scale`, with one value for each row or one for all: the weight
//! is the integer divided by it. Before version 6, the contents of `config.json` were among the
//! variables.
//!
//! # Computation
//!
//! The computation is that of the paper, except for what variables specify: `pre_norm`,
//! `activation`, `layernorm_embedding`, `scale_embeddings` (a flag, or the factor itself). Without
//! `position_encodings`, positions are sinusoids that begin at 1, with Tensor2Tensor's frequencies.
//! With `start_from_zero_embedding` the decoder begins with a zero vector, like Marian's.

mod config;
mod file;
mod files;
mod model;
mod vocabulary;

pub(crate) use model::Ct2Model;

#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
#[cfg(test)]
mod tests;
