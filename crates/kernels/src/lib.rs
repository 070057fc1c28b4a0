//! The numeric kernels of Regard: every loop that is worth vectorizing, and the only `unsafe` code.
//!
//! There are three layers: `simd` (the vector operations of each instruction set), `math` and
//! `gemm::small` (functions of vectors, small matmuls), and the kernels. A kernel is written once
//! over the trait `Simd`, takes the [`Isa`] to run on as its first argument, and has a twin in
//! [`naive`] that specifies in `f64` and plain loops what it computes.
//!
//! NaN and infinity: a NaN in an input becomes a NaN wherever the formula uses it, and never
//! elsewhere (another row, another sentence). A kernel that deviates from its formula documents it.

mod activation;
mod adam;
mod aligned;
mod attention;
mod counting;
mod cross_entropy;
mod dropout;
mod elementwise;
mod paged;
mod isa;
mod mat;
mod math;
pub mod bf16;
pub mod mapped;
pub mod naive;
mod norm;
mod gemm;
mod prompt_release;
mod r_drop;
mod recurrent;
mod simd;
mod softmax;
mod ssru;
mod system_memory;
#[cfg(test)]
mod testing;
mod team;
mod timer;
mod vocabulary;

pub use activation::{Activation, activate, activate_backward, activate_in_place};
pub use adam::{Adam, adam_step};
pub use attention::{Attention, Mask, Relative, Scratch, attention_backward, attention_forward};
pub use counting::CountingAllocator;
pub use cross_entropy::{BlockStatistics, logits_to_exponentials, logits_to_gradient};
pub use dropout::Dropout;
pub use elementwise::{add, add_product, add_scaled, dropout, dropout_in_place, multiply, sum_of_squares};
pub use gemm::{
    Accumulate, BOperand, ChosenRows, Epilogue, Gemm, MAX_INT8_K, MarianScales, PackedB, RowLists,
    RowScratch, Rows, matmul, quantize_rows,
};
pub use isa::{Isa, IsaError, VARIABLE as ISA_VARIABLE};
pub use mat::{Mat, MatMut};
pub use norm::{Norm, NormSaved, add_norm, add_norm_backward};
pub use paged::{Paged, paged_attention};
pub use prompt_release::PromptRelease;
pub use r_drop::{RDropLoss, RDropRow, r_drop_row};
pub use recurrent::{GruStep, gru_backward, gru_forward};
pub use regard_random::Key;
pub use softmax::{log_add_exp, log_softmax_rows, softmax_rows};
pub use ssru::{SsruSaved, ssru_backward, ssru_forward, ssru_step};
pub use system_memory::SystemMemory;
pub use team::{Invitation, Team};
pub use timer::Timer;
pub use vocabulary::{Bans, BestWords, Vocabulary, log_probabilities};
