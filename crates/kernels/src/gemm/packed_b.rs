//! Right operands that are packed once for many products.

use super::panels::{NC, Panels};
use super::rounding::rounded;
use super::{Format, Gemm, bf16, f32_kernel};
use crate::aligned::Aligned;
use crate::mat::Mat;

/// The right operand of products, as these want to read it: packed, and rounded where they are in bf16.
///
/// A matrix of weights is multiplied by every replica of a training step and changes once. It begins empty;
/// [`Gemm::pack_b`] fills it, and uses the same memory when that is done anew.
#[derive(Debug, Default)]
pub struct PackedB {
    rows: usize,
    cols: usize,
    words: Aligned<u32>,
    by: Option<Gemm>,
}

impl PackedB {
    /// All of it.
    ///
    /// # Panics
    /// If nothing was packed.
    pub fn whole(&self) -> Right<'_> {
        let by = self.by.expect("an operand is packed before it is used");
        let panels = Panels::new(self.words.as_slice(), by.layout(), self.rows, self.cols);
        Right { operand: Operand::Packed(panels), packed_for: Some(by.format) }
    }
}

/// The right operand of a product: a matrix, or one that was packed.
#[derive(Clone, Copy, Debug)]
pub struct Right<'a> {
    pub(super) operand: Operand<'a>,
    /// The number format that it was packed for, if it was.
    pub(super) packed_for: Option<Format>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operand<'a> {
    Matrix(Mat<'a>),
    Packed(Panels<'a>),
}

impl Operand<'_> {
    /// Rows and columns.
    pub(super) fn shape(&self) -> (usize, usize) {
        match self {
            Operand::Matrix(b) => (b.rows, b.cols),
            Operand::Packed(b) => (b.rows, b.cols),
        }
    }
}

impl<'a> From<Mat<'a>> for Right<'a> {
    fn from(matrix: Mat<'a>) -> Self {
        Right { operand: Operand::Matrix(matrix), packed_for: None }
    }
}

impl Right<'_> {
    /// Where parts may begin and end, apart from the end of the whole: multiples of this.
    pub const STEP: usize = 512;

    /// The rows `from .. from + rows`.
    ///
    /// # Panics
    /// If they are not all there, or do not begin and end at [`STEP`](Self::STEP)s of what was packed.
    pub fn rows_from(self, from: usize, rows: usize) -> Self {
        let operand = match self.operand {
            Operand::Matrix(x) => Operand::Matrix(x.rows_from(from, rows)),
            Operand::Packed(x) => Operand::Packed(x.rows_from(from, rows)),
        };
        Right { operand, ..self }
    }

    /// The columns `from .. from + cols`.
    ///
    /// # Panics
    /// As [`rows_from`](Self::rows_from).
    pub fn columns(self, from: usize, cols: usize) -> Self {
        let operand = match self.operand {
            Operand::Matrix(x) => Operand::Matrix(x.columns(from, cols)),
            Operand::Packed(x) => Operand::Packed(x.columns(from, cols)),
        };
        Right { operand, ..self }
    }
}

const _: () = {
    assert!(Right::STEP.is_multiple_of(NC));
    assert!(Right::STEP.is_multiple_of(f32_kernel::KC) && Right::STEP.is_multiple_of(bf16::KC));
};

impl Gemm {
    /// Makes a right operand ready. The products with it are those with the matrix itself, to the bit.
    pub fn pack_b(self, matrix: Mat<'_>, to: &mut PackedB) {
        (to.rows, to.cols, to.by) = (matrix.rows, matrix.cols, Some(self));
        match self.format {
            Format::F32 => f32_kernel::pack_right(self.isa, matrix, &mut to.words),
            Format::Bf16 => bf16::pack_in_hardware(self.isa, matrix, &mut to.words),
            Format::Bf16InSoftware => {
                let data = rounded(matrix);
                f32_kernel::pack_right(self.isa, Mat { data: &data, ..matrix }, &mut to.words);
            }
        }
    }
}
