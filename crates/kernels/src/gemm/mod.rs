//! Matmul: one loop nest ([`nest`]), a micro-kernel for each number format and instruction set, one
//! packed operand ([`PackedB`]) for training and decoding.
//!
//! | format | micro-kernel | operands |
//! |---|---|---|
//! | f32 | [`f32_kernel`] | matrices of f32 |
//! | bf16, the upper half of an f32 | [`bf16_kernel`] | matrices of f32, rounded to 8 bits of mantissa while they are packed; sums in f32 |
//! | int8 | [`int8_kernel`] | packed weights and quantized rows of the input; sums are exact integers |
//!
//! [`chosen_rows`] is no matmul: it multiplies each row of the input with columns of its own.

// Only x86 has the instruction; elsewhere the tests run its model.
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

pub use chosen_rows::{ChosenRows, RowLists};
pub use int8_kernel::{MAX_INT8_K, MarianScales};
pub use packed_b::{PackedB, Right, RowScratch, Rows};
pub use quantize::quantize_rows;

use crate::mat::{Mat, MatMut};
use crate::{Isa, Timer};
use packed_b::{Layout, Operand};
use rounding::rounded;

/// What a matmul does with what was in C before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accumulate {
    /// `C = A·B`
    Overwrite,
    /// `C += A·B`
    Add,
}

/// What a matmul does with its sums before it writes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Added to every row, a number for each column.
    pub bias: Option<&'a [f32]>,
    /// Whether negative numbers then become 0; NaN stays.
    pub relu: bool,
}

impl<'a> From<Option<&'a [f32]>> for Epilogue<'a> {
    fn from(bias: Option<&'a [f32]>) -> Self {
        Epilogue { bias, relu: false }
    }
}

/// How matrix multiplications are made: on which instruction set, and with operands in f32 or in bf16.
///
/// **The order of a sum** over `k` is from its beginning to its end, in blocks of 512 that are added
/// to the output one after the other. A number of the result therefore depends on its own row and
/// column alone, whatever the size of the matrices and however the work is split over threads.
///
/// **In bf16** the operands are rounded to the nearest bf16, ties to even. The sum runs in f32, in
/// each block in the order of `vdpbf16ps`: of two neighbours the second is added first.
///
/// **What is not finite** spreads through its row or column as the sum of products says. A NaN
/// stays one when it is rounded, an infinity too; f32 numbers from 3.3961·10³⁸ on become infinite.
/// **Denormals** are ordinary in f32. The instruction takes them for zero in its operands and
/// writes zero for them in its sums, whatever the state of the CPU; adding a block to the output is
/// ordinary f32.
///
/// **In software** the operands are rounded in the same way and multiplied by the f32 matmul: the
/// same rounding of the operands, the same precision of the sums, but another order, and denormals
/// are kept. It is for tests on other CPUs, not for speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gemm {
    isa: Isa,
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    F32,
    /// Exists only where the CPU has the instruction.
    Bf16,
    Bf16InSoftware,
}

impl Gemm {
    /// Operands as they are.
    pub fn f32(isa: Isa) -> Self {
        Gemm { isa, format: Format::F32 }
    }

    /// Operands rounded to bf16, if the CPU multiplies them.
    pub fn bf16(isa: Isa) -> Option<Self> {
        isa.has_bf16().then_some(Gemm { isa, format: Format::Bf16 })
    }

    /// Operands rounded to bf16, then multiplied as f32: on every machine, and slower than f32.
    pub fn bf16_in_software(isa: Isa) -> Self {
        Gemm { isa, format: Format::Bf16InSoftware }
    }

    /// The instruction set.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// Whether they round their operands.
    pub fn round(self) -> bool {
        self.format != Format::F32
    }

    /// What it is called in messages.
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

    /// `C = A·B` or `C += A·B`, with `A [m, k]` and `B [k, n]` transposed as their views say, on up
    /// to `threads` cores; with 1 it starts none. `B` is a matrix or a [`PackedB`] of this format.
    ///
    /// # Panics
    /// If the shapes do not fit, or if `B` was packed in another format.
    pub fn matmul<'b>(
        self,
        c: MatMut<'_>,
        a: Mat<'_>,
        b: impl Into<Right<'b>>,
        into: Accumulate,
        threads: usize,
    ) {
        let Right { operand: b, packed_for } = b.into();
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
