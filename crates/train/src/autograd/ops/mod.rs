//! The operations, one file each, forward and backward side by side.
//!
//! Letters as in the paper: `n` source tokens, `m` target tokens, `d` model width, `h` heads, `v`
//! vocabulary; `rows` where it may be either kind of token.

mod attention;
mod embedding;
mod label_smoothed_cross_entropy;
mod linear;
mod multiply;
mod norm;
mod pick;
mod pointer;
mod r_drop;
mod recurrent;
mod residual;
mod ssru;
mod unfold;

pub use attention::{CrossAttention, SelfAttention};
pub use embedding::{Embedding, PositionVectors};
pub use label_smoothed_cross_entropy::CrossEntropy;
pub use linear::Linear;
pub use multiply::{Multiply, Scale};
pub use norm::AddNorm;
pub use pick::Pick;
pub use pointer::{Pointer, Pointing};
pub use r_drop::RDrop;
pub use recurrent::{Recurrent, RecurrentScratch};
pub use residual::Residual;
pub use ssru::Ssru;
pub use unfold::Unfold;
