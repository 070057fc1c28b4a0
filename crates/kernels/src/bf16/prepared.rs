//! Right operands that are made ready once for many products.

use super::pack::rounded;
use super::product::{DEPTH, Line, Lines, WIDE};
use super::{Format, Products};
use crate::mat::Mat;

/// The right operand of products, as these want to read it: rounded and packed where they are in bf16.
///
/// A matrix of weights is multiplied by every replica of a training step and changes once. Made ready, it takes half the memory of
/// its f32 numbers. It begins empty; [`Products::prepare`] fills it, and what the instruction reads is packed into the same memory
/// when that is done anew.
#[derive(Debug, Default)]
pub struct Prepared {
    rows: usize,
    cols: usize,
    /// Of the products that it was prepared by.
    format: Format,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// As the matrix lay, rounded or not.
    Plain { data: Vec<f32>, row_stride: usize, col_stride: usize },
    /// Packed for the instruction.
    Packed(Vec<Line>),
}

impl Default for Form {
    fn default() -> Self {
        Form::Plain { data: Vec::new(), row_stride: 0, col_stride: 0 }
    }
}

impl Prepared {
    /// All of it.
    pub fn whole(&self) -> Right<'_> {
        let operand = match &self.form {
            Form::Plain { data, row_stride, col_stride } => Operand::Matrix(Mat {
                data,
                rows: self.rows,
                cols: self.cols,
                row_stride: *row_stride,
                col_stride: *col_stride,
            }),
            Form::Packed(lines) => Operand::Packed(Lines::new(lines, self.rows, self.cols)),
        };
        Right { operand, prepared: Some(self.format) }
    }
}

/// The right operand of a product: a matrix as it is, or one that was made ready.
#[derive(Clone, Copy, Debug)]
pub struct Right<'a> {
    pub(super) operand: Operand<'a>,
    /// Of the products that it was prepared by, if it was.
    pub(super) prepared: Option<Format>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operand<'a> {
    Matrix(Mat<'a>),
    Packed(Lines<'a>),
}

impl<'a> From<Mat<'a>> for Right<'a> {
    fn from(matrix: Mat<'a>) -> Self {
        Right { operand: Operand::Matrix(matrix), prepared: None }
    }
}

impl Right<'_> {
    /// Where parts may begin and end, apart from the end of the whole: multiples of this.
    pub const STEP: usize = if WIDE > DEPTH { WIDE } else { DEPTH };

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

impl Products {
    /// Whether [preparing](Self::prepare) saves work: not in f32, whose products read matrices as they are.
    pub fn gain_by_preparing(self) -> bool {
        self.format != Format::F32
    }

    /// Makes a right operand ready. The products with it are those with the matrix itself, to the bit.
    pub fn prepare(self, matrix: Mat<'_>, to: &mut Prepared) {
        (to.rows, to.cols, to.format) = (matrix.rows, matrix.cols, self.format);
        if self.format == Format::Bf16 {
            let mut lines = match std::mem::take(&mut to.form) {
                Form::Packed(lines) => lines,
                Form::Plain { .. } => Vec::new(),
            };
            super::product::pack_in_hardware(self.isa, matrix, &mut lines);
            to.form = Form::Packed(lines);
        } else {
            let data = if self.format == Format::F32 { matrix.data.to_vec() } else { rounded(matrix) };
            to.form = Form::Plain { data, row_stride: matrix.row_stride, col_stride: matrix.col_stride };
        }
    }
}
