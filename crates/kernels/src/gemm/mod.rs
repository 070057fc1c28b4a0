//! Matmul: one loop nest ([`nest`]), a micro-kernel for each number format and instruction set, one
//! packed operand ([`PackedB`]) for training and decoding.
//!
//! | format | micro-kernel | operands |
//! |---|---|---|
//! | f32 | [`f32_kernel`] | matrices of f32 |
//! | bf16, the upper half of an f32 | [`bf16_kernel`] | matrices of f32, rounded to 8 bits of mantissa while they are packed; sums in f32 |
//! | int8 | [`int8_kernel`] | packed weights and quantized rows of the input; sums are exact integers |
//!
//! [`chosen_rows`] is not a matmul: it multiplies each row of the input with its own selection of
//! columns. [`small`] has the small matmuls inside other kernels, without packing.

// Only x86 has the instruction; on other CPUs the tests run a model of it.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod bf16_kernel;
mod chosen_rows;
mod f32_kernel;
mod int8_kernel;
mod int8_panels;
mod nest;
mod packed_b;
mod quantize;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod rounding;
pub(crate) mod small;

pub use chosen_rows::{ChosenRows, RowLists};
pub use int8_kernel::{MAX_INT8_K, MarianScales};
pub use packed_b::{BOperand, PackedB, RowScratch, Rows};
pub use quantize::quantize_rows;

use crate::mat::{Mat, MatMut};
use crate::{Isa, Timer};
use packed_b::{Layout, Operand};
use rounding::rounded;

/// Whether a matmul overwrites C or adds to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accumulate {
    /// `C = A·B`
    Overwrite,
    /// `C += A·B`
    Add,
}

/// What a matmul does to its sums before writing them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Added to every row, one element per column.
    pub bias: Option<&'a [f32]>,
    /// Whether to apply ReLU; NaN stays NaN.
    pub relu: bool,
}

impl<'a> From<Option<&'a [f32]>> for Epilogue<'a> {
    fn from(bias: Option<&'a [f32]>) -> Self {
        Epilogue { bias, relu: false }
    }
}

/// How to run a matmul: the instruction set, and whether operands are f32 or bf16.
///
/// **Summation order.** A sum over `k` runs from its beginning to its end, in blocks of 512 that
/// are added to the output in order. Each element of the result therefore depends on its own row
/// and column alone, whatever the size of the matrices and however the work is split over threads.
///
/// **bf16.** The operands are rounded to the nearest bf16, ties to even. The sum is in f32, within
/// each block in the order of `vdpbf16ps`: of two adjacent products the second is added first.
///
/// **Non-finite values** propagate through their row or column as the sum of products implies. A
/// NaN stays a NaN when it is rounded, and an infinity stays infinite; f32 values from 3.3961·10³⁸
/// on become infinite. **Denormals** are ordinary in f32. The bf16 instruction treats them as zero
/// in its operands and flushes them to zero in its sums, whatever the state of the CPU; adding a
/// block to the output is ordinary f32.
///
/// **bf16 in software** rounds the operands in the same way and multiplies them with the f32
/// matmul: the same rounding of the operands and the same precision of the sums, but a different
/// order, and denormals are kept. It is for tests on other CPUs, not for speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gemm {
    isa: Isa,
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    F32,
    /// Exists only if the CPU has the instruction.
    Bf16,
    Bf16InSoftware,
}

impl Gemm {
    /// Uses f32 operands.
    pub fn f32(isa: Isa) -> Self {
        Gemm { isa, format: Format::F32 }
    }

    /// Rounds operands to bf16; `None` if the CPU has no bf16 multiplication.
    pub fn bf16(isa: Isa) -> Option<Self> {
        isa.has_bf16().then_some(Gemm { isa, format: Format::Bf16 })
    }

    /// Rounds operands to bf16 and multiplies them as f32: works on every machine, slower than f32.
    pub fn bf16_in_software(isa: Isa) -> Self {
        Gemm { isa, format: Format::Bf16InSoftware }
    }

    /// The instruction set.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// Whether operands are rounded.
    pub fn round(self) -> bool {
        self.format != Format::F32
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self.format {
            Format::F32 => "f32",
            Format::Bf16 => "bf16",
            Format::Bf16InSoftware => "bf16 in software",
        }
    }

    /// How the micro-kernel reads B.
    fn layout(self) -> Layout {
        match self.format {
            Format::F32 | Format::Bf16InSoftware => f32_kernel::layout(self.isa),
            Format::Bf16 => bf16_kernel::LAYOUT,
        }
    }

    /// `C = A·B` or `C += A·B`, with `A [m, k]` and `B [k, n]` transposed as their views specify,
    /// on up to `threads` threads; with 1 it stays on this thread. `B` is a matrix or a [`PackedB`]
    /// of this format.
    ///
    /// # Panics
    /// If the shapes do not match, or if `B` was packed in another format.
    pub fn matmul<'b>(
        self,
        c: MatMut<'_>,
        a: Mat<'_>,
        b: impl Into<BOperand<'b>>,
        into: Accumulate,
        threads: usize,
    ) {
        let BOperand { operand: b, packed_for } = b.into();
        assert!(
            packed_for.is_none_or(|by| by == self.format),
            "an operand packed for {packed_for:?} in {}",
            self.name()
        );
        match self.format {
            Format::F32 => f32_kernel::matmul_rows(self.isa, c, a, b, into, threads),
            Format::Bf16 => bf16_kernel::matmul_rows(self.isa, c, a, b, into, threads),
            Format::Bf16InSoftware => {
                let timer = Timer::start();
                let (left, right) =
                    (rounded(a), if let Operand::Matrix(b) = b { rounded(b) } else { Vec::new() });
                let b = match b {
                    Operand::Matrix(b) => Operand::Matrix(Mat { data: &right, ..b }),
                    packed => packed,
                };
                drop(timer);
                f32_kernel::matmul_rows(self.isa, c, Mat { data: &left, ..a }, b, into, threads);
            }
        }
    }
}

/// [`Gemm::matmul`] in f32.
pub fn matmul(isa: Isa, c: MatMut<'_>, a: Mat<'_>, b: Mat<'_>, into: Accumulate, threads: usize) {
    Gemm::f32(isa).matmul(c, a, b, into, threads);
}

#[cfg(test)]
mod bf16_tests;
#[cfg(test)]
mod fixed_tests;
#[cfg(test)]
mod packed_tests;
