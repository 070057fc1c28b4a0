//! Products of matrices in bf16, the upper half of an f32: operands rounded to 8 bits of mantissa, sums in f32.
//!
//! The operands are f32 matrices. They are rounded while they are packed, so that no copy in bf16 has to be kept; of weights, which
//! many products read, one can be: [`Prepared`]. What the numbers are is said at [`Products`], which chooses between this and f32.

// Only x86 has the instruction; elsewhere the tests run its model.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod pack;
mod prepared;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod product;

pub use prepared::{Prepared, Right};

use crate::mat::{Mat, MatMut};
use crate::matmul::{Into, matmul};
use crate::{Isa, Timer};
use prepared::Operand;
use std::borrow::Cow;

/// How matrix products are made: on which instruction set, and with operands in f32 or in bf16.
///
/// **In bf16** the operands are rounded to the nearest bf16, ties to even. The sum over `k` runs in f32, from its beginning to its
/// end in blocks of 512, and in each block in the order of `vdpbf16ps`: of two neighbours the second is added first. A number of the
/// result therefore depends on its own row and column alone, whatever the size of the matrices and however the work is split over
/// threads.
///
/// **What is not finite.** A NaN stays one when it is rounded, an infinity too; f32 numbers from 3.3961·10³⁸ on become infinite. They
/// spread through their row or column as the sum of products says. **Denormals:** the instruction takes them for zero in its operands
/// and writes zero for them in its sums, whatever the state of the CPU; adding a block to the output is ordinary f32.
///
/// **In software** the operands are rounded in the same way and multiplied by the f32 product: the same rounding of the operands,
/// the same precision of the sums, but another order, and denormals are kept. It is for tests on other CPUs, not for speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Products {
    isa: Isa,
    format: Format,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Format {
    #[default]
    F32,
    /// Exists only where the CPU has the instruction.
    Bf16,
    Bf16InSoftware,
}

impl Products {
    /// Operands as they are.
    pub fn f32(isa: Isa) -> Self {
        Products { isa, format: Format::F32 }
    }

    /// Operands rounded to bf16, if the CPU has products of them.
    pub fn bf16(isa: Isa) -> Option<Self> {
        isa.has_bf16().then_some(Products { isa, format: Format::Bf16 })
    }

    /// Operands rounded to bf16, then multiplied as f32: on every machine, and slower than f32.
    pub fn bf16_in_software(isa: Isa) -> Self {
        Products { isa, format: Format::Bf16InSoftware }
    }

    /// The instruction set.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self.format {
            Format::F32 => "f32",
            Format::Bf16 => "bf16",
            Format::Bf16InSoftware => "bf16 in software",
        }
    }

    /// `C = A·B` or `C += A·B`, as [`matmul`], on up to `threads` cores. `B` is a matrix or [`Prepared`] by the same products.
    ///
    /// # Panics
    /// If the shapes do not fit, or if `B` was prepared by other products.
    pub fn matmul<'b>(
        self,
        c: MatMut<'_>,
        a: Mat<'_>,
        b: impl std::convert::Into<Right<'b>>,
        into: Into,
        threads: usize,
    ) {
        let Right { operand: b, prepared } = b.into();
        assert!(
            prepared.is_none_or(|by| by == self.format),
            "an operand prepared for {prepared:?} in {}",
            self.name()
        );
        match (self.format, b) {
            (Format::Bf16InSoftware, Operand::Matrix(b)) => {
                let timer = Timer::start();
                let left = pack::rounded(a);
                let right = if prepared.is_some() { Cow::Borrowed(b.data) } else { pack::rounded(b).into() };
                drop(timer);
                matmul(self.isa, c, Mat { data: &left, ..a }, Mat { data: &right, ..b }, into, threads);
            }
            (Format::F32, Operand::Matrix(b)) => matmul(self.isa, c, a, b, into, threads),
            // What is packed, was packed for this.
            (_, b) => product::in_hardware(self.isa, c, a, b, into, threads),
        }
    }
}

#[cfg(test)]
mod tests;
