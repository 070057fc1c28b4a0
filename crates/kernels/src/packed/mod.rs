//! Gemm with weights that were packed once, in f32 or in 8 bits: what decoding multiplies with.
//!
//! A matrix `W [n, k]` is cut into panels of as many rows of `W` (columns of the product) as two vectors have lanes; inside a
//! panel the numbers lie in the order in which the kernel reads them. The sum over `k` always runs from its beginning to
//! its end in one accumulator: a row of the result depends on its own input alone, whatever else is in the batch and
//! however the columns are split over threads.
//!
//! **8 bits.** Each row of `W` has a scale, its largest number being ±127; each row of the input gets a scale and a zero point at run
//! time, its numbers going from 0 to 127. The sums are exact integers, the same on every instruction set.
//!
//! **8 bits of Marian and Bergamot** ([`PackedMatrix::int8_fixed`]). The integers of the file are used as they are, with a multiplier
//! for each matrix and one for its inputs, in that engine's order of operations. Inputs go from −127 to 127; each row is
//! shifted so that its smallest integer becomes 0, and is corrected by the sums of the columns afterwards, which changes no
//! sum. The shorter a row's range, the more of its products AVX2 can add in 16 bits: `int8_panels` says how.

mod chosen;
mod int8;
mod int8_panels;
mod quantize;
mod f32_weights;

use crate::mapped::Int8Values;
use crate::mat::{Mat, MatMut};
use crate::{Isa, Team, Timer};
use f32_weights::F32Weights;
pub use int8::MarianScales;
use int8::{Int8Table, Int8Weights, MAX_K};
use quantize::{Quantization, QuantizedRows};
use std::ops::Range;

pub use chosen::{ChosenRows, RowLists};
pub use quantize::quantize_rows;

/// Weights `[n, k]`, packed for one instruction set.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    isa: Isa,
    n: usize,
    k: usize,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    F32(F32Weights),
    Int8(Box<Int8Weights>),
    Int8Table(Box<Int8Table>),
}

/// The input of a product, in the form that its weights want.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    F32(Mat<'a>),
    Int8(&'a QuantizedRows),
}

/// What a product does with its sums before it writes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Added to every row, a number for each row of the matrix.
    pub bias: Option<&'a [f32]>,
    /// Whether negative numbers then become 0; NaN stays.
    pub relu: bool,
}

impl<'a> From<Option<&'a [f32]>> for Epilogue<'a> {
    fn from(bias: Option<&'a [f32]>) -> Self {
        Epilogue { bias, relu: false }
    }
}

/// Memory for inputs in 8 bits, to be used again and again.
#[derive(Clone, Debug, Default)]
pub struct RowScratch(QuantizedRows);

impl Rows<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        match self.0 {
            Form::F32(x) => x.rows,
            Form::Int8(x) => x.rows,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PackedMatrix {
    /// Packs the matrix `[n, k]` in f32.
    ///
    /// # Panics
    /// If `w` has another size.
    pub fn f32(isa: Isa, w: &[f32], n: usize, k: usize) -> Self {
        assert_eq!(w.len(), n * k, "a {n}×{k} matrix");
        PackedMatrix { isa, n, k, data: Data::F32(F32Weights::pack(isa, w, n, k)) }
    }

    /// Packs a matrix `[n, k]` that [`quantize_rows`] has made of one.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn int8(isa: Isa, values: &[i8], scales: &[f32], k: usize) -> Self {
        let n = scales.len();
        assert_eq!(values.len(), n * k, "a {n}×{k} matrix");
        PackedMatrix { isa, n, k, data: Data::Int8(Box::new(Int8Weights::pack(isa, values, scales, k))) }
    }

    /// Packs a matrix `[n, k]` of integers as Marian and Bergamot store them, `w ≈ value / multiplier` with a multiplier `m` for
    /// each row (matrices with one each can be put below each other), and the bias of the layer, which is prepared here:
    /// products must not be given another one.
    ///
    /// Inputs become `q = round(x·a)`, ties to even, clamped to ±127, with `a` the `input_multiplier`. The result is in f32, rounded
    /// after every operation in Bergamot's order, with exact sums:
    ///
    /// ```text
    /// (Σ (q + 127)·w) · (1 / (a·m))  +  (Σ w · (−((127/a)·(127/m)) / 127) + bias)
    /// ```
    ///
    /// Without an input multiplier `a` is 127 / the largest magnitude of the *row* of the input. Marian takes the largest of the whole
    /// input matrix instead, and with that a sentence's translation depends on its neighbours in the batch. A row with a NaN
    /// or an infinity has a result of NaNs.
    ///
    /// # Panics
    /// If the sizes do not fit, or `k` exceeds 66,000, where sums could exceed 32 bits.
    pub fn int8_fixed(isa: Isa, values: &[i8], scales: MarianScales<'_>, k: usize) -> Self {
        let n = fixed_rows(scales, k);
        assert_eq!(values.len(), n * k, "a {n}×{k} matrix");
        PackedMatrix {
            isa,
            n,
            k,
            data: Data::Int8(Box::new(Int8Weights::pack_fixed(isa, values, scales, k))),
        }
    }

    /// The same of a table of words, of which rows are read and chosen ([`PackedMatrix::choose`]): all of it is packed only when it
    /// is first multiplied by. Whole rows that are missing at its end are zero.
    ///
    /// # Panics
    /// As [`PackedMatrix::int8_fixed`].
    pub fn int8_table(isa: Isa, values: Int8Values, scales: MarianScales<'_>, k: usize) -> Self {
        let (n, given) = (fixed_rows(scales, k), values.as_slice().len());
        assert!(given <= n * k && given.is_multiple_of(k.max(1)), "rows of a {n}×{k} matrix");
        PackedMatrix { isa, n, k, data: Data::Int8Table(Box::new(Int8Table::new(values, scales, k))) }
    }

    /// Whether the bias was given when the matrix was packed, so that products must not be given one: [`PackedMatrix::int8_fixed`].
    pub fn has_own_bias(&self) -> bool {
        match &self.data {
            Data::F32(_) => false,
            Data::Int8(w) => w.quantization() != Quantization::Affine,
            Data::Int8Table(_) => true,
        }
    }

    /// Some rows of the matrix, in an order of one's choice, to be multiplied one by one. They take the
    /// memory of `reuse`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn choose(&self, rows: &[u32], reuse: Option<ChosenRows>) -> ChosenRows {
        assert!(rows.iter().all(|&row| (row as usize) < self.n), "rows of a matrix of {}", self.n);
        match &self.data {
            Data::F32(w) => ChosenRows::f32(self.isa, (w, self.panel()), rows, self.k, reuse),
            Data::Int8(w) => w.choose(self.isa, rows, reuse),
            Data::Int8Table(w) => w.choose(self.isa, rows, reuse),
        }
    }

    /// The instruction set it was packed for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The rows of the matrix: how many numbers a row of the product has.
    pub fn outputs(&self) -> usize {
        self.n
    }

    /// The columns of the matrix: how many numbers a row of the input has.
    pub fn inputs(&self) -> usize {
        self.k
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        match &self.data {
            Data::F32(w) => w.bytes(),
            Data::Int8(w) => w.bytes(),
            Data::Int8Table(w) => w.bytes(),
        }
    }

    /// Columns of a product are split between threads, and chosen, in multiples of this.
    pub fn panel(&self) -> usize {
        panel_width(self.isa)
    }

    /// Row `i` of the matrix: how a table of embeddings is read.
    ///
    /// # Panics
    /// If there is no such row, or `to` has another length.
    pub fn read_row(&self, i: usize, to: &mut [f32]) {
        assert!(i < self.n && to.len() == self.k, "row {i} of a {}×{} matrix", self.n, self.k);
        match &self.data {
            Data::F32(w) => w.read_row(self.panel(), i, to),
            Data::Int8(w) => w.read_row(i, to),
            Data::Int8Table(w) => w.read_row(i, to),
        }
    }

    /// The input `[m, k]` in the form that this matrix wants: itself, or quantised into `scratch`.
    ///
    /// # Panics
    /// If its rows have another length, or it is transposed.
    pub fn rows<'a>(&self, x: Mat<'a>, scratch: &'a mut RowScratch) -> Rows<'a> {
        assert!(x.cols == self.k && x.col_stride == 1 && x.is_within(), "rows of {}", self.k);
        let quantization = match &self.data {
            Data::F32(_) => return Rows(Form::F32(x)),
            Data::Int8(w) => w.quantization(),
            Data::Int8Table(w) => w.quantization(),
        };
        scratch.0.fill(self.isa, quantization, x);
        Rows(Form::Int8(&scratch.0))
    }

    /// `to = x·Wᵀ + bias`, of which only the columns `columns` are computed; they begin with a panel. The epilogue can be a bias
    /// alone.
    ///
    /// # Panics
    /// If the shapes do not fit, the rows were made for a matrix in another format or with another input multiplier, or there is
    /// a bias for a matrix that has its own.
    pub fn matmul<'e>(
        &self,
        x: Rows<'_>,
        columns: Range<usize>,
        epilogue: impl Into<Epilogue<'e>>,
        to: MatMut<'_>,
    ) {
        let epilogue = epilogue.into();
        self.matmul_columns(x, columns, epilogue, to);
    }

    fn matmul_columns(&self, x: Rows<'_>, columns: Range<usize>, epilogue: Epilogue<'_>, to: MatMut<'_>) {
        let bias = epilogue.bias;
        let (start, end) = (columns.start, columns.end);
        assert!(
            start.is_multiple_of(self.panel()) && start <= end && end <= self.n,
            "columns {start}..{end}"
        );
        assert!((to.rows, to.cols) == (x.len(), end - start), "{} rows of columns {start}..{end}", x.len());
        assert!(bias.is_none_or(|b| b.len() == self.n), "a bias of {} numbers", self.n);
        assert!(bias.is_none() || !self.has_own_bias(), "a second bias");
        let _timer = Timer::start();
        match (&self.data, x.0) {
            (Data::F32(w), Form::F32(x)) if x.cols == self.k => w.matmul(self.isa, x, columns, epilogue, to),
            (Data::Int8(w), Form::Int8(x)) if x.cols == self.k && x.quantization == w.quantization() => {
                w.matmul(self.isa, x, columns, epilogue, to)
            }
            (Data::Int8Table(w), Form::Int8(x)) if x.cols == self.k && x.quantization == w.quantization() => {
                w.packed(self.isa).matmul(self.isa, x, columns, epilogue, to)
            }
            _ => panic!("the rows were made for another matrix"),
        }
    }

    /// `to = x·Wᵀ + bias` by all threads of a team, each having some of the columns.
    ///
    /// # Panics
    /// As [`PackedMatrix::matmul`].
    pub fn matmul_with<'e>(
        &self,
        team: &mut Team,
        x: Rows<'_>,
        epilogue: impl Into<Epilogue<'e>>,
        to: MatMut<'_>,
    ) {
        let epilogue = epilogue.into();
        // A panel for each thread, at least: below that there is nothing to split.
        let share = self.n.div_ceil(team.size()).next_multiple_of(self.panel());
        let mut rest = Some(to);
        team.each(
            (0..self.n).step_by(share.max(1)).map(|start| {
                let end = (start + share).min(self.n);
                let part = rest.take().map(|to| {
                    let (part, others) = to.split_columns(end - start);
                    rest = Some(others);
                    part
                });
                (start..end, part)
            }),
            |(columns, part)| {
                if let Some(part) = part {
                    self.matmul_columns(x, columns, epilogue, part);
                }
            },
        );
    }
}

/// Checks what belongs to a matrix of Marian's and returns how many rows it has.
fn fixed_rows(fixed: MarianScales<'_>, k: usize) -> usize {
    let n = fixed.multipliers.len();
    assert!(fixed.bias.is_none_or(|bias| bias.len() == n), "a bias of {n} numbers");
    assert!(k <= MAX_K, "rows of {k} weights, which is more than {MAX_K}");
    n
}

/// Calls `$tile` with the number of rows, from 1 to `$most` and 6 at most, as the constant `$R`.
macro_rules! with_rows {
    ($rows:expr, $most:expr, $R:ident => $tile:expr) => {
        with_rows!(@each $rows, $most, $R => $tile, 6 5 4 3 2 1)
    };
    (@each $rows:expr, $most:expr, $R:ident => $tile:expr, $($count:literal)*) => {
        match $rows {
            // The others are not even compiled.
            $($count if const { $count <= $most } => {
                const $R: usize = $count;
                $tile
            })*
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}
use with_rows;

fn panel_width(isa: Isa) -> usize {
    crate::simd::lanes(isa) * 2
}

#[cfg(test)]
mod fixed_tests;
#[cfg(test)]
mod tests;
