//! The right operand B of a matmul, packed once and used many times.

use super::chosen_rows::ChosenRows;
use super::int8_kernel::{Int8Table, Int8Weights, MAX_INT8_K, MarianScales, check_scales};
use super::quantize::{Quantization, QuantizedRows};
use super::rounding::rounded;
use super::{Accumulate, Epilogue, Format, Gemm, bf16_kernel, f32_kernel};
use crate::aligned::Aligned;
use crate::mapped::Int8Values;
use crate::mat::{Mat, MatMut};
use crate::simd::lanes;
use crate::{Isa, Team, Timer};
use std::ops::Range;

/// How a micro-kernel reads a packed B `[k, n]` of floats: `[block of KC rows][panel of NR
/// columns][row][column]`, with the last panel zero-padded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Columns of a panel.
    pub(super) nr: usize,
    /// Rows of a block.
    pub(super) kc: usize,
    /// Rows that share a word.
    pub(super) in_word: usize,
}

impl Layout {
    /// The number of words taken by `rows` rows within a block, or by all blocks of `rows` rows
    /// that start at a block boundary.
    pub(super) const fn words(self, rows: usize, cols: usize) -> usize {
        cols.next_multiple_of(self.nr) * rows.div_ceil(self.in_word)
    }

    /// Packs a whole matrix, calling `block` for each block.
    pub(super) fn pack(self, b: Mat<'_>, to: &mut [u32], block: impl Fn(Mat<'_>, &mut [u32])) {
        assert_eq!(to.len(), self.words(b.rows, b.cols));
        let mut rest = to;
        for start in (0..b.rows).step_by(self.kc) {
            let kc = self.kc.min(b.rows - start);
            let (now, others) = rest.split_at_mut(self.words(kc, b.cols));
            block(b.rows_from(start, kc), now);
            rest = others;
        }
    }
}

/// A packed B of floats, or a part of one that begins and ends at block and panel boundaries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panels<'a> {
    words: &'a [u32],
    layout: Layout,
    /// Rows and columns of the whole matrix.
    whole: (usize, usize),
    /// Where the part begins.
    first: (usize, usize),
    rows: usize,
    cols: usize,
}

impl<'a> Panels<'a> {
    pub(super) fn new(words: &'a [u32], layout: Layout, rows: usize, cols: usize) -> Self {
        assert_eq!(words.len(), layout.words(rows, cols));
        Panels { words, layout, whole: (rows, cols), first: (0, 0), rows, cols }
    }

    pub(super) fn rows_from(self, from: usize, rows: usize) -> Self {
        let start = self.first.0 + from;
        assert!(from + rows <= self.rows && borders(start, rows, self.whole.0, self.layout.kc));
        Panels { first: (start, self.first.1), rows, ..self }
    }

    pub(super) fn columns(self, from: usize, cols: usize) -> Self {
        let start = self.first.1 + from;
        assert!(from + cols <= self.cols && start.is_multiple_of(self.layout.nr));
        Panels { first: (self.first.0, start), cols, ..self }
    }

    /// The panels of these columns in the block that begins at `row`.
    ///
    /// # Panics
    /// If B was packed for another kernel.
    #[inline]
    pub(super) fn block(&self, layout: Layout, row: usize, columns: Range<usize>) -> &'a [u32] {
        assert_eq!(self.layout, layout, "packed for another kernel");
        let ((rows, cols), (row, column)) = (self.whole, (self.first.0 + row, self.first.1 + columns.start));
        assert!(column.is_multiple_of(layout.nr) && columns.end <= self.cols);
        let kc = layout.kc.min(rows - row);
        let before = layout.words(row, cols) + layout.words(kc, column);
        &self.words[before..][..layout.words(kc, columns.len())]
    }
}

/// Whether a part begins and ends at a multiple of `size`, or ends with the whole.
fn borders(start: usize, count: usize, whole: usize, size: usize) -> bool {
    let is_border = |at: usize| at == whole || at.is_multiple_of(size);
    is_border(start) && is_border(start + count)
}

/// The right operand `B [k, n]` of a matmul in the order in which a micro-kernel reads it: in f32,
/// bf16 or int8, for one instruction set.
///
/// **In training** every replica of a step multiplies by the same weight matrix, which changes once
/// per step: it begins empty, and [`Gemm::pack_b`] fills it, reusing the memory each time.
///
/// **In decoding** it is packed when a model is loaded. The weights of a layer are stored as `W [n,
/// k]` and B is their transpose, so constructors take rows of W, and [`PackedB::matmul`] is `x·Wᵀ +
/// bias`.
///
/// **Int8.** Each row of `W` has a scale that maps its largest magnitude to ±127; each row of the
/// input gets a scale and a zero point at run time, with values from 0 to 127. The sums are exact
/// integers, the same on every instruction set.
///
/// **Int8 of Marian and Bergamot** ([`PackedB::int8_fixed`]). The integers of the file are used
/// unchanged, with a multiplier for each matrix and one for its inputs, in that engine's order of
/// operations. Inputs range from −127 to 127; each row is shifted so that its smallest integer
/// becomes 0, and the column sums correct the result afterwards, which leaves every sum unchanged.
/// The smaller a row's range, the more of its products AVX2 can add in 16 bits (see `int8_panels`).
#[derive(Clone, Debug)]
pub struct PackedB {
    isa: Isa,
    k: usize,
    n: usize,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    /// Nothing is packed yet.
    Empty,
    Floats(Format, Aligned<u32>),
    Int8(Box<Int8Weights>),
    Int8Table(Box<Int8Table>),
}

impl Default for PackedB {
    fn default() -> Self {
        PackedB { isa: Isa::PORTABLE, k: 0, n: 0, data: Data::Empty }
    }
}

/// The left operand of a matmul, in the form that its weights require.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a>(pub(super) Form<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    F32(Mat<'a>),
    Int8(&'a QuantizedRows),
}

/// Reusable memory for int8 inputs.
#[derive(Clone, Debug, Default)]
pub struct RowScratch(pub(super) QuantizedRows);

impl Rows<'_> {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self.0 {
            Form::F32(x) => x.rows,
            Form::Int8(x) => x.rows,
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Gemm {
    /// Packs B. A matmul with the packed B gives the same bits as one with the matrix itself.
    pub fn pack_b(self, matrix: Mat<'_>, to: &mut PackedB) {
        let mut words = match std::mem::replace(&mut to.data, Data::Empty) {
            Data::Floats(_, words) => words,
            _ => Aligned::default(),
        };
        words.resize(self.layout().words(matrix.rows, matrix.cols));
        match self.format {
            Format::F32 => f32_kernel::pack_b(self.isa, matrix, words.as_mut_slice()),
            Format::Bf16 => bf16_kernel::pack_b(self.isa, matrix, words.as_mut_slice()),
            Format::Bf16InSoftware => {
                let data = rounded(matrix);
                f32_kernel::pack_b(self.isa, Mat { data: &data, ..matrix }, words.as_mut_slice());
            }
        }
        let data = Data::Floats(self.format, words);
        *to = PackedB { isa: self.isa, k: matrix.rows, n: matrix.cols, data };
    }
}

impl PackedB {
    /// Packs the transpose of `W [n, k]` in f32.
    ///
    /// # Panics
    /// If `w` has a different size.
    pub fn f32(isa: Isa, w: &[f32], n: usize, k: usize) -> Self {
        let mut packed = PackedB::default();
        Gemm::f32(isa).pack_b(Mat::new(w, n, k).t(), &mut packed);
        packed
    }

    /// Packs the transpose of a `W [n, k]` that [`quantize_rows`](super::quantize_rows) has
    /// quantized.
    ///
    /// # Panics
    /// If the sizes do not match, or `k` exceeds [`MAX_INT8_K`].
    pub fn int8(isa: Isa, values: &[i8], scales: &[f32], k: usize) -> Self {
        Self::int8_per_row(isa, values, scales, Quantization::Affine, k)
    }

    /// The same for inputs that are quantized like CTranslate2's: `q = round(x · 127 / max |x|)`
    /// over each row of the input, ties to even.
    ///
    /// # Panics
    /// As [`PackedB::int8`].
    pub fn int8_ctranslate2(isa: Isa, values: &[i8], scales: &[f32], k: usize) -> Self {
        Self::int8_per_row(isa, values, scales, Quantization::CTranslate2, k)
    }

    fn int8_per_row(isa: Isa, values: &[i8], scales: &[f32], inputs: Quantization, k: usize) -> Self {
        let n = scales.len();
        assert_eq!(values.len(), n * k, "a {n}×{k} matrix");
        assert!(k <= MAX_INT8_K, "rows of {k} weights, which is more than {MAX_INT8_K}");
        PackedB { isa, n, k, data: Data::Int8(Box::new(Int8Weights::pack(isa, values, scales, inputs, k))) }
    }

    /// Packs the transpose of a `W [n, k]` of integers as Marian and Bergamot store them, `w ≈
    /// value / multiplier` with a multiplier `m` for each row (matrices with one multiplier each
    /// can be stacked), and the bias of the layer, which is folded in here: do not pass another
    /// bias to the matmul.
    ///
    /// Inputs become `q = round(x·a)`, ties to even, clamped to ±127, with `a` the
    /// `input_multiplier`. The result is in f32, rounded after every operation in Bergamot's order,
    /// with exact sums:
    ///
    /// ```text
    /// (Σ (q + 127)·w) · (1 / (a·m))  +  (Σ w · (−((127/a)·(127/m)) / 127) + bias)
    /// ```
    ///
    /// Without an input multiplier, `a` is 127 / the largest magnitude of the *row* of the input.
    /// Marian uses the largest magnitude of the whole input matrix instead, which makes the
    /// translation of a sentence depend on its neighbours in the batch. A row with a NaN or an
    /// infinity gives NaNs.
    ///
    /// # Panics
    /// If the sizes do not match, or `k` exceeds [`MAX_INT8_K`].
    pub fn int8_fixed(isa: Isa, values: &[i8], scales: MarianScales<'_>, k: usize) -> Self {
        let n = check_scales(scales, k);
        assert_eq!(values.len(), n * k, "a {n}×{k} matrix");
        PackedB { isa, n, k, data: Data::Int8(Box::new(Int8Weights::pack_fixed(isa, values, scales, k))) }
    }

    /// The same for an embedding table, whose rows are read and chosen ([`PackedB::choose`]): the
    /// whole table is packed only at its first matmul. Rows missing at its end are zero.
    ///
    /// # Panics
    /// As [`PackedB::int8_fixed`].
    pub fn int8_table(isa: Isa, values: Int8Values, scales: MarianScales<'_>, k: usize) -> Self {
        let (n, given) = (check_scales(scales, k), values.as_slice().len());
        assert!(given <= n * k && given.is_multiple_of(k.max(1)), "rows of a {n}×{k} matrix");
        PackedB { isa, n, k, data: Data::Int8Table(Box::new(Int8Table::new(values, scales, k))) }
    }

    /// Whether the bias is part of the packed matrix, so that a matmul must not be given one:
    /// [`PackedB::int8_fixed`].
    pub fn has_own_bias(&self) -> bool {
        self.quantization().is_some_and(Quantization::has_bias)
    }

    /// How inputs are quantized, if they are.
    fn quantization(&self) -> Option<Quantization> {
        match &self.data {
            Data::Empty | Data::Floats(..) => None,
            Data::Int8(w) => Some(w.quantization()),
            Data::Int8Table(w) => Some(w.quantization()),
        }
    }

    /// Selects rows of W, in any order, for [`ChosenRows::matmul`]. Reuses the memory of `reuse`.
    ///
    /// # Panics
    /// If a row does not exist, or the matrix is in bf16.
    pub fn choose(&self, rows: &[u32], reuse: Option<ChosenRows>) -> ChosenRows {
        assert!(rows.iter().all(|&row| (row as usize) < self.n), "rows of a matrix of {}", self.n);
        match &self.data {
            Data::Empty | Data::Floats(..) => ChosenRows::f32(self, rows, reuse),
            Data::Int8(w) => w.choose(self.isa, rows, reuse),
            Data::Int8Table(w) => w.choose(self.isa, rows, reuse),
        }
    }

    /// The instruction set it was packed for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The number of columns of B, which are the rows of W: the width of the output.
    pub fn outputs(&self) -> usize {
        self.n
    }

    /// The number of rows of B: the width of the input.
    pub fn inputs(&self) -> usize {
        self.k
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        match &self.data {
            Data::Empty => 0,
            Data::Floats(_, words) => words.bytes(),
            Data::Int8(w) => w.bytes(),
            Data::Int8Table(w) => w.bytes(),
        }
    }

    /// The granularity at which columns of C are split between threads and selected.
    pub fn panel(&self) -> usize {
        2 * lanes(self.isa)
    }

    /// Reads row `i` of W, for embedding lookups.
    ///
    /// # Panics
    /// If the row does not exist, `to` has a different length, or the matrix is in bf16.
    pub fn read_row(&self, i: usize, to: &mut [f32]) {
        assert!(i < self.n && to.len() == self.k, "row {i} of a {}×{} matrix", self.n, self.k);
        match &self.data {
            Data::Empty => {}
            Data::Floats(format, words) => {
                assert!(*format != Format::Bf16, "a row of f32 of a matrix in bf16");
                let (layout, mut rest) = (f32_kernel::layout(self.isa), f32_kernel::floats(words.as_slice()));
                for to in to.chunks_mut(layout.kc) {
                    let (block, others) = rest.split_at(layout.words(to.len(), self.n));
                    let panel = &block[i / layout.nr * layout.nr * to.len()..];
                    for (x, row) in to.iter_mut().zip(panel.chunks_exact(layout.nr)) {
                        *x = row[i % layout.nr];
                    }
                    rest = others;
                }
            }
            Data::Int8(w) => w.read_row(i, to),
            Data::Int8Table(w) => w.read_row(i, to),
        }
    }

    /// The input `[m, k]` in the form that this matrix requires: unchanged, or quantised into
    /// `scratch`.
    ///
    /// # Panics
    /// If its rows have a different length, or it is transposed.
    pub fn rows<'a>(&self, x: Mat<'a>, scratch: &'a mut RowScratch) -> Rows<'a> {
        assert!(x.cols == self.k && x.col_stride == 1 && x.is_within(), "rows of {}", self.k);
        let Some(quantization) = self.quantization() else { return Rows(Form::F32(x)) };
        scratch.0.fill(self.isa, quantization, x);
        Rows(Form::Int8(&scratch.0))
    }

    /// `to = x·Wᵀ + bias`, computed only for `columns`, which begin at a panel boundary. The
    /// epilogue can be just a bias.
    ///
    /// # Panics
    /// If the shapes do not match, the rows were made for a matrix in another format or with
    /// another input multiplier, or a bias is given for a matrix that has its own.
    pub fn matmul<'e>(
        &self,
        x: Rows<'_>,
        columns: Range<usize>,
        epilogue: impl Into<Epilogue<'e>>,
        to: MatMut<'_>,
    ) {
        self.matmul_columns(x, columns, epilogue.into(), to);
    }

    fn matmul_columns(&self, x: Rows<'_>, columns: Range<usize>, epilogue: Epilogue<'_>, to: MatMut<'_>) {
        let Epilogue { bias, relu } = epilogue;
        let (start, end) = (columns.start, columns.end);
        assert!(
            start.is_multiple_of(self.panel()) && start <= end && end <= self.n,
            "columns {start}..{end}"
        );
        assert!((to.rows, to.cols) == (x.len(), end - start), "{} rows of columns {start}..{end}", x.len());
        assert!(bias.is_none_or(|b| b.len() == self.n), "a bias of {} numbers", self.n);
        assert!(bias.is_none() || !self.has_own_bias(), "a second bias");
        let _timer = Timer::start();
        let w = match (&self.data, x.0) {
            (Data::Floats(Format::F32, words), Form::F32(x)) if x.cols == self.k => {
                let b = Panels::new(words.as_slice(), f32_kernel::layout(self.isa), self.k, self.n);
                let b = Operand::Packed(b.columns(start, end - start));
                let epilogue = Epilogue { bias: bias.map(|bias| &bias[columns]), relu };
                let output = f32_kernel::Output { into: Accumulate::Overwrite, epilogue };
                return f32_kernel::matmul(self.isa, to, x, b, output);
            }
            (Data::Int8(w), Form::Int8(_)) => w,
            (Data::Int8Table(w), Form::Int8(_)) => w.packed(self.isa),
            _ => panic!("the rows were made for another matrix"),
        };
        match x.0 {
            Form::Int8(x) if x.cols == self.k && x.quantization == w.quantization() => {
                w.matmul(self.isa, x, columns, epilogue, to)
            }
            _ => panic!("the rows were made for another matrix"),
        }
    }

    /// `to = x·Wᵀ + bias` on all threads of a team, each with a share of the columns.
    ///
    /// # Panics
    /// As [`PackedB::matmul`].
    pub fn matmul_with<'e>(
        &self,
        team: &mut Team,
        x: Rows<'_>,
        epilogue: impl Into<Epilogue<'e>>,
        to: MatMut<'_>,
    ) {
        let epilogue = epilogue.into();
        // Each thread gets at least one panel; with fewer panels there is nothing to split.
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

    /// The whole matrix, as the right operand of [`Gemm::matmul`].
    ///
    /// # Panics
    /// If nothing is packed, or the matrix is int8.
    pub fn whole(&self) -> BOperand<'_> {
        let Data::Floats(format, words) = &self.data else {
            panic!("floats are packed before they are used")
        };
        let layout = Gemm { isa: self.isa, format: *format }.layout();
        let panels = Panels::new(words.as_slice(), layout, self.k, self.n);
        BOperand { operand: Operand::Packed(panels), packed_for: Some(*format) }
    }
}

/// The right operand of a matmul: a plain or a packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct BOperand<'a> {
    pub(super) operand: Operand<'a>,
    /// The number format that it was packed for, if packed.
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

impl<'a> From<Mat<'a>> for BOperand<'a> {
    fn from(matrix: Mat<'a>) -> Self {
        BOperand { operand: Operand::Matrix(matrix), packed_for: None }
    }
}

impl BOperand<'_> {
    /// Parts begin and end at multiples of this, or at the end of the whole.
    pub const STEP: usize = 512;

    /// The rows `from .. from + rows`.
    ///
    /// # Panics
    /// If they do not all exist, or do not begin and end at multiples of [`STEP`](Self::STEP) of a
    /// packed matrix.
    pub fn rows_from(self, from: usize, rows: usize) -> Self {
        let operand = match self.operand {
            Operand::Matrix(x) => Operand::Matrix(x.rows_from(from, rows)),
            Operand::Packed(x) => Operand::Packed(x.rows_from(from, rows)),
        };
        BOperand { operand, ..self }
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
        BOperand { operand, ..self }
    }
}

const _: () =
    assert!(BOperand::STEP.is_multiple_of(f32_kernel::KC) && BOperand::STEP.is_multiple_of(bf16_kernel::KC));
