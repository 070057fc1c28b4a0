//! The micro-kernel for int8 weights and int8 inputs.
//!
//! The sums are exact integers on every instruction set; how they become floats depends on how the
//! weights were quantized ([`Dequantization`]).

use super::int8_panels::{INPUT_CLASSES, Int8Panels, Runs, STEP, input_class};
use super::nest::{self, CTile, MicroKernel};
use super::quantize::{INT8_MAX, Quantization, QuantizedRows, RowParams};
use super::{ChosenRows, Epilogue};
use crate::Isa;
use crate::mapped::Int8Values;
use crate::mat::MatMut;
use crate::simd::{GROUP, Simd, simd_kernel};
use std::ops::Range;
use std::sync::OnceLock;

/// The maximum `k` of int8 weights: longer sums could exceed 32 bits.
pub const MAX_INT8_K: usize = (i32::MAX / (254 * 128)) as usize;

/// Rows of the input that stay in the L2 cache while all panels are processed; a multiple of every
/// [`Simd::INT8_MR`].
const MC: usize = 252;

/// KC and NC are unbounded. The whole sum stays in registers, because C can hold only floats; and
/// columns need no blocks, because B is already packed and a panel fits the L1 cache.
const UNBOUNDED: usize = 1 << 62;

/// Int8 weights and their dequantization.
#[derive(Clone, Debug)]
pub(super) struct Int8Weights {
    panels: Int8Panels,
    dequantization: Dequantization,
}

/// How integer sums become floats. The vectors have an element for each column, zero-padded to
/// whole panels.
#[derive(Clone, Debug)]
pub(super) enum Dequantization {
    /// `w ≈ value · scale`, with a scale for each column and for each row of the input.
    PerRow {
        scales: Vec<f32>,
        /// `Affine` or `CTranslate2`.
        inputs: Quantization,
    },
    /// `w ≈ value / multiplier`, in Bergamot's order of operations.
    Fixed {
        multipliers: Vec<f32>,
        input: Option<f32>,
        /// With a fixed input multiplier `a`: `1 / (a·m)`; otherwise `m`.
        scales: Vec<f32>,
        /// With a fixed input multiplier: `Σ w · (−((127/a)·(127/m)) / 127) + bias`; otherwise the
        /// bias.
        offsets: Vec<f32>,
    },
}

/// The scales of the integers of Marian and Bergamot, and the bias of their layer.
#[derive(Clone, Copy, Debug)]
pub struct MarianScales<'a> {
    /// `m`, for each row of the matrix.
    pub multipliers: &'a [f32],
    /// `a`, if the file has it.
    pub input: Option<f32>,
    /// The bias, for each row of the matrix.
    pub bias: Option<&'a [f32]>,
}

/// An embedding table as Marian and Bergamot store it. Most uses read or choose single rows; the
/// whole table is packed at its first matmul.
#[derive(Debug)]
pub(super) struct Int8Table {
    /// Missing rows at the end are zero.
    values: Int8Values,
    multipliers: Vec<f32>,
    input: Option<f32>,
    bias: Option<Vec<f32>>,
    k: usize,
    packed: OnceLock<Int8Weights>,
}

impl Clone for Int8Table {
    fn clone(&self) -> Self {
        let (values, multipliers, bias) = (self.values.clone(), self.multipliers.clone(), self.bias.clone());
        Int8Table { values, multipliers, bias, packed: OnceLock::new(), ..*self }
    }
}

impl Int8Table {
    pub(super) fn new(values: Int8Values, fixed: MarianScales<'_>, k: usize) -> Self {
        let (multipliers, bias) = (fixed.multipliers.to_vec(), fixed.bias.map(<[f32]>::to_vec));
        Int8Table { values, multipliers, input: fixed.input, bias, k, packed: OnceLock::new() }
    }

    /// The whole table, packed.
    pub(super) fn packed(&self, isa: Isa) -> &Int8Weights {
        let fixed =
            MarianScales { multipliers: &self.multipliers, input: self.input, bias: self.bias.as_deref() };
        self.packed.get_or_init(|| {
            let mut values = self.values.as_slice().to_vec();
            values.resize(self.multipliers.len() * self.k, 0);
            Int8Weights::pack_fixed(isa, &values, fixed, self.k)
        })
    }

    /// Some of its rows.
    pub(super) fn choose(&self, isa: Isa, rows: &[u32], reuse: Option<ChosenRows>) -> ChosenRows {
        let of_rows = |from: &[f32]| rows.iter().map(|&row| from[row as usize]).collect::<Vec<f32>>();
        let (multipliers, bias) = (of_rows(&self.multipliers), self.bias.as_deref().map(of_rows));
        let fixed = MarianScales { multipliers: &multipliers, input: self.input, bias: bias.as_deref() };
        let values = rows.iter().map(|&row| self.row(row as usize));
        let dequantization = |totals: &[i32]| Dequantization::fixed(totals, fixed, rows.len());
        ChosenRows::int8(isa, values, self.k, dequantization, reuse)
    }

    /// Row `i`; empty if it is missing, which means zero.
    fn row(&self, i: usize) -> &[i8] {
        self.values.as_slice().get(i * self.k..(i + 1) * self.k).unwrap_or_default()
    }

    pub(super) fn read_row(&self, i: usize, to: &mut [f32]) {
        let scale = 1.0 / self.multipliers[i];
        to.fill(0.0);
        to.iter_mut().zip(self.row(i)).for_each(|(x, &w)| *x = f32::from(w) * scale);
    }

    pub(super) fn quantization(&self) -> Quantization {
        self.input.map_or(Quantization::BergamotPerRow, Quantization::Fixed)
    }

    pub(super) fn bytes(&self) -> usize {
        let floats = self.multipliers.len() + self.bias.as_ref().map_or(0, Vec::len);
        self.values.as_slice().len() + 4 * floats + self.packed.get().map_or(0, Int8Weights::bytes)
    }
}

impl Dequantization {
    /// Builds the vectors for columns with these sums.
    fn fixed(totals: &[i32], fixed: MarianScales<'_>, padded_to: usize) -> Self {
        let MarianScales { multipliers, input, bias } = fixed;
        let columns = totals.iter().zip(multipliers).enumerate();
        let (scales, offsets): (Vec<f32>, Vec<f32>) = columns
            .map(|(i, (&total, &m))| match (input, bias.map(|bias| bias[i])) {
                (None, bias) => (m, bias.unwrap_or(0.0)),
                (Some(a), bias) => {
                    let correction = total as f32 * (-((INT8_MAX / a) * (INT8_MAX / m)) / INT8_MAX);
                    (1.0 / (a * m), bias.map_or(correction, |bias| correction + bias))
                }
            })
            .unzip();
        let (scales, offsets) = (padded(scales, padded_to), padded(offsets, padded_to));
        Dequantization::Fixed { multipliers: multipliers.to_vec(), input, scales, offsets }
    }

    /// Selects some columns.
    fn of(&self, rows: &[u32]) -> Self {
        let of_rows = |from: &[f32]| rows.iter().map(|&row| from[row as usize]).collect::<Vec<f32>>();
        match self {
            Dequantization::PerRow { scales, inputs } => {
                Dequantization::PerRow { scales: of_rows(scales), inputs: *inputs }
            }
            Dequantization::Fixed { multipliers, input, scales, offsets } => Dequantization::Fixed {
                multipliers: of_rows(multipliers),
                input: *input,
                scales: of_rows(scales),
                offsets: of_rows(offsets),
            },
        }
    }

    /// How inputs must be quantized.
    pub(super) fn quantization(&self) -> Quantization {
        match *self {
            Dequantization::PerRow { inputs, .. } => inputs,
            Dequantization::Fixed { input: Some(a), .. } => Quantization::Fixed(a),
            Dequantization::Fixed { input: None, .. } => Quantization::BergamotPerRow,
        }
    }

    /// The scale of each column, and what is added to it: the packed bias if there is one, else
    /// `bias`.
    #[inline(always)]
    pub(super) fn vectors<'a>(&'a self, bias: Option<&'a [f32]>) -> (&'a [f32], Option<&'a [f32]>) {
        match self {
            Dequantization::PerRow { scales, .. } => (scales, bias),
            Dequantization::Fixed { scales, offsets, .. } => (scales, Some(offsets)),
        }
    }
}

impl Int8Weights {
    pub(super) fn pack(isa: Isa, values: &[i8], scales: &[f32], inputs: Quantization, k: usize) -> Self {
        let panels = Int8Panels::pack(isa, values, scales.len(), k);
        let scales = padded(scales.iter().copied(), panels.totals.len());
        Int8Weights { panels, dequantization: Dequantization::PerRow { scales, inputs } }
    }

    pub(super) fn pack_fixed(isa: Isa, values: &[i8], fixed: MarianScales<'_>, k: usize) -> Self {
        let panels = Int8Panels::pack(isa, values, fixed.multipliers.len(), k);
        let dequantization = Dequantization::fixed(&panels.totals, fixed, panels.totals.len());
        Int8Weights { panels, dequantization }
    }

    /// Some rows of the matrix.
    pub(super) fn choose(&self, isa: Isa, rows: &[u32], reuse: Option<ChosenRows>) -> ChosenRows {
        let k = self.panels.k;
        let values = self.panels.rows(rows);
        let values = (0..rows.len()).map(|i| &values[i * k..][..k]);
        ChosenRows::int8(isa, values, k, |_| self.dequantization.of(rows), reuse)
    }

    pub(super) fn bytes(&self) -> usize {
        let floats = match &self.dequantization {
            Dequantization::PerRow { scales, .. } => scales.len(),
            Dequantization::Fixed { multipliers, scales, offsets, .. } => {
                multipliers.len() + scales.len() + offsets.len()
            }
        };
        self.panels.bytes() + 4 * floats
    }

    pub(super) fn quantization(&self) -> Quantization {
        self.dequantization.quantization()
    }

    pub(super) fn read_row(&self, i: usize, to: &mut [f32]) {
        let scale = match &self.dequantization {
            Dequantization::PerRow { scales, .. } => scales[i],
            Dequantization::Fixed { multipliers, .. } => 1.0 / multipliers[i],
        };
        let weights = self.panels.weights.as_slice();
        for (g, to) in to.chunks_mut(GROUP).enumerate() {
            for (x, &w) in to.iter_mut().zip(&weights[self.panels.place(i, g)..]) {
                *x = f32::from(w) * scale;
            }
        }
    }

    pub(super) fn matmul(
        &self,
        isa: Isa,
        x: &QuantizedRows,
        columns: Range<usize>,
        epilogue: Epilogue<'_>,
        to: MatMut<'_>,
    ) {
        assert!(x.cols == self.panels.k && x.width == self.panels.words);
        on_isa(isa, self, x, columns, epilogue, to);
    }
}

/// Checks the scales of a Marian matrix and returns its number of rows.
pub(super) fn check_scales(fixed: MarianScales<'_>, k: usize) -> usize {
    let n = fixed.multipliers.len();
    assert!(fixed.bias.is_none_or(|bias| bias.len() == n), "a bias of {n} numbers");
    assert!(k <= MAX_INT8_K, "rows of {k} weights, which is more than {MAX_INT8_K}");
    n
}

/// The values, zero-padded to `len`.
fn padded(x: impl IntoIterator<Item = f32>, len: usize) -> Vec<f32> {
    let mut x: Vec<f32> = x.into_iter().collect();
    x.resize(len, 0.0);
    x
}

#[inline(always)]
fn body<S: Simd>(
    s: S,
    w: &Int8Weights,
    x: &QuantizedRows,
    columns: Range<usize>,
    epilogue: Epilogue<'_>,
    to: MatMut<'_>,
) {
    let Int8Weights { panels, dequantization } = w;
    let (m, words, width) = (x.rows, panels.words, 2 * S::LANES);
    let (size, steps) = (words * GROUP * width, words / 2);
    let (scales, offsets) = dequantization.vectors(epilogue.bias);
    assert!(panels.lanes == S::LANES && x.words.len() == m * words && x.params.len() == m);
    assert!(to.rows == m && to.cols == columns.len() && columns.start.is_multiple_of(width));
    let all = columns.end.div_ceil(width);
    assert!(all * size <= panels.weights.as_slice().len() && all * steps <= panels.order.len());
    assert!(!S::ADDS_IN_16_BITS || all <= panels.runs.len());
    assert!(all * width <= panels.totals.len() && all * width <= scales.len());
    assert!(offsets.is_none_or(|b| b.len() >= columns.end));
    let kernel = Int8 { s, panels, x, first: columns.start, scales, offsets, relu: epilogue.relu };
    // With `k` 0, the (empty) sum is written too.
    nest::run(kernel, to, panels.k.max(1));
}
simd_kernel! {
    fn on_isa(w: &Int8Weights, x: &QuantizedRows, columns: Range<usize>, epilogue: Epilogue<'_>, to: MatMut<'_>) = body;
}

struct Int8<'a, S> {
    s: S,
    panels: &'a Int8Panels,
    x: &'a QuantizedRows,
    /// The column of the weights that is the first of C.
    first: usize,
    /// One per column of the weights.
    scales: &'a [f32],
    offsets: Option<&'a [f32]>,
    relu: bool,
}

impl<S: Simd> MicroKernel for Int8<'_, S> {
    const MR: usize = S::INT8_MR;
    const NR: usize = 2 * S::LANES;
    const KC: usize = UNBOUNDED;
    const MC: usize = MC;
    const NC: usize = UNBOUNDED;

    #[inline(always)]
    fn begin_block(&mut self, _: Range<usize>, _: Range<usize>) {}

    #[inline(always)]
    fn pack_a(&mut self, _: Range<usize>) {}

    #[inline(always)]
    unsafe fn tile<const R: usize>(&mut self, row: usize, column: usize, c: CTile) {
        let Int8 { s, panels, x, .. } = *self;
        let (words, steps, start) = (panels.words, panels.words / 2, self.first + column);
        let at = start / Self::NR;
        // SAFETY: `body` has asserted that the rows of the input and the panels of these columns
        // exist. A panel's order is a permutation of its steps (`Int8Panels`).
        unsafe {
            let panel = Panel {
                weights: panels.weights.as_slice().as_ptr().add(at * words * GROUP * Self::NR),
                order: panels.order.get_unchecked(at * steps..(at + 1) * steps),
                runs: if S::ADDS_IN_16_BITS { panels.runs.get_unchecked(at) } else { &NO_RUNS },
            };
            let input =
                Input { words: x.words.as_ptr().add(row * words), params: x.params.as_ptr().add(row) };
            let sums = integer_sums::<S, R>(s, input, panel);
            let columns = [self.columns(start, 0, c), self.columns(start, 1, c)];
            // The match is outside the loop, so that the loop body has no branches.
            match x.quantization {
                Quantization::Affine | Quantization::CTranslate2 => {
                    self.finish::<R, PER_ROW>(sums, input, columns, c);
                }
                Quantization::Fixed(_) => self.finish::<R, FIXED>(sums, input, columns, c),
                Quantization::BergamotPerRow => self.finish::<R, BERGAMOT_PER_ROW>(sums, input, columns, c),
            }
        }
    }
}

impl<S: Simd> Int8<'_, S> {
    /// The dequantization of vector `v` of the columns of a panel that begins at column `start` of
    /// the weights.
    ///
    /// # Safety
    /// The panel exists.
    #[inline(always)]
    unsafe fn columns(&self, start: usize, v: usize, c: CTile) -> Finish<S> {
        let (s, at) = (self.s, start + v * S::LANES);
        // SAFETY: totals and scales cover whole panels; of offsets, only existing columns are read.
        unsafe {
            let offset = match self.offsets {
                None => s.zero(),
                Some(offsets) => s.load_partial(offsets.as_ptr().wrapping_add(at), c.lanes(v, S::LANES)),
            };
            Finish {
                total: s.load_i(self.panels.totals.as_ptr().add(at)),
                scale: s.load(self.scales.as_ptr().add(at)),
                offset,
            }
        }
    }

    /// Writes a tile. `KIND` is the dequantization as a constant.
    ///
    /// # Safety
    /// The parameters of `R` rows are readable at `x`, and `c` is writable.
    #[inline(always)]
    unsafe fn finish<const R: usize, const KIND: u8>(
        &self,
        sums: [[S::I; 2]; R],
        x: Input,
        columns: [Finish<S>; 2],
        c: CTile,
    ) {
        let s = self.s;
        for (i, sums) in sums.into_iter().enumerate() {
            // SAFETY: the caller vouches for the row.
            unsafe {
                let params = *x.params.add(i);
                let mut out = [
                    finish::<S, KIND>(s, sums[0], params, columns[0]),
                    finish::<S, KIND>(s, sums[1], params, columns[1]),
                ];
                if self.relu {
                    out = [s.max(s.zero(), out[0]), s.max(s.zero(), out[1])];
                }
                c.write(s, i, out, false);
            }
        }
    }
}

/// For instruction sets that do not add in 16 bits.
static NO_RUNS: [Runs; INPUT_CLASSES] = [[0; 4]; INPUT_CLASSES];

/// A panel of weights.
#[derive(Clone, Copy)]
struct Panel<'a> {
    weights: *const i8,
    /// A permutation of the panel's steps.
    order: &'a [u16],
    /// Indexed by the magnitude of the inputs.
    runs: &'a [Runs; INPUT_CLASSES],
}

/// Some rows of the input.
#[derive(Clone, Copy)]
struct Input {
    words: *const i32,
    params: *const RowParams,
}

/// The dequantization of a vector of columns.
#[derive(Clone, Copy)]
pub(super) struct Finish<S: Simd> {
    /// The sums of their weights.
    pub(super) total: S::I,
    pub(super) scale: S::F,
    pub(super) offset: S::F,
}

/// The results of a row, given its integer sums.
#[inline(always)]
pub(super) fn finish<S: Simd, const KIND: u8>(
    s: S,
    sum: S::I,
    params: RowParams,
    columns: Finish<S>,
) -> S::F {
    let Finish { total, scale, offset } = columns;
    let (row, sum) = (s.splat(params.scale), s.int_to_float(s.sub_times(sum, total, params.zero)));
    match KIND {
        // Not fused, because portable code has no FMA: the bits are the same on every instruction
        // set. With `FIXED`, the row's scale is 1, or NaN.
        PER_ROW | FIXED => s.add(s.mul(sum, s.mul(row, scale)), offset),
        _ => symmetric(s, sum, s.int_to_float(total), [row, scale], offset),
    }
}

/// [`Dequantization`] as a constant.
pub(super) const PER_ROW: u8 = 0;
pub(super) const FIXED: u8 = 1;
pub(super) const BERGAMOT_PER_ROW: u8 = 2;

/// Bergamot's expression for a row whose input multiplier `a` is computed at run time, and columns
/// with multipliers `m`.
#[inline(always)]
fn symmetric<S: Simd>(s: S, sum: S::F, total: S::F, [a, m]: [S::F; 2], bias: S::F) -> S::F {
    let largest = s.splat(INT8_MAX);
    let steps = s.mul(s.div(largest, a), s.div(largest, m));
    let correction = s.mul(total, s.div(s.sub(s.zero(), steps), largest));
    s.add(s.mul(sum, s.div(s.splat(1.0), s.mul(a, m))), s.add(correction, bias))
}

/// The integer products of `R` rows with the columns of a panel.
///
/// # Safety
/// `R` rows of two words per step and their parameters are readable at `x`, and all steps at
/// `panel`.
#[inline(always)]
unsafe fn integer_sums<S: Simd, const R: usize>(s: S, x: Input, panel: Panel<'_>) -> [[S::I; 2]; R] {
    let mut sums = [[s.splat_i(0); 2]; R];
    let steps = panel.order.len();
    // SAFETY: the caller vouches for the parameters and words of `R` rows, and for the weights of
    // all steps.
    unsafe {
        let input = (x.words, 2 * steps);
        let largest = (0..R).map(|i| (*x.params.add(i)).largest).fold(0, i32::max);
        let mut at = 0;
        if S::ADDS_IN_16_BITS {
            let [four, two, one, pairs] = panel.runs[input_class(largest)].map(usize::from);
            while at < four {
                add_in_16_bits::<S, R, 4>(s, &mut sums, panel, at, input);
                at += 4;
            }
            while at < two {
                add_in_16_bits::<S, R, 2>(s, &mut sums, panel, at, input);
                at += 2;
            }
            while at < one {
                add_in_16_bits::<S, R, 1>(s, &mut sums, panel, at, input);
                at += 1;
            }
            while at < pairs {
                add_in_32_bits::<S, R, true>(s, &mut sums, panel, at, input);
                at += 1;
            }
        } else if largest <= 127 {
            while at < steps {
                add_in_32_bits::<S, R, true>(s, &mut sums, panel, at, input);
                at += 1;
            }
        }
        while at < steps {
            add_in_32_bits::<S, R, false>(s, &mut sums, panel, at, input);
            at += 1;
        }
    }
    sums
}

/// Adds the products of `STEPS` steps of a panel from step `at` on, whose sum fits 16 bits.
///
/// # Safety
/// These steps exist, as do their words in each of the `R` rows of the input, which lie `input.1`
/// words apart.
#[inline(always)]
unsafe fn add_in_16_bits<S: Simd, const R: usize, const STEPS: usize>(
    s: S,
    sums: &mut [[S::I; 2]; R],
    panel: Panel<'_>,
    at: usize,
    (input, stride): (*const i32, usize),
) {
    let group = GROUP * S::LANES;
    let mut halves = [[s.splat_i(0); 2]; R];
    for n in 0..STEPS {
        // SAFETY: the caller vouches for weights and words.
        unsafe {
            let weights = panel.weights.add((at + n) * 2 * STEP * S::LANES);
            let input = input.add(2 * usize::from(*panel.order.get_unchecked(at + n)));
            for g in 0..2 {
                let w =
                    [s.load_weights(weights.add(g * group)), s.load_weights(weights.add((2 + g) * group))];
                for (i, halves) in halves.iter_mut().enumerate() {
                    let a = s.splat_i(*input.add(i * stride + g));
                    for (half, w) in halves.iter_mut().zip(w) {
                        let products = s.products_in_16_bits(a, w);
                        *half = if n == 0 && g == 0 { products } else { s.add_in_16_bits(*half, products) };
                    }
                }
            }
        }
    }
    for (sums, halves) in sums.iter_mut().zip(halves) {
        for (sum, half) in sums.iter_mut().zip(halves) {
            *sum = s.add_widened(*sum, half);
        }
    }
}

/// Adds the products of step `at` of a panel. With `PAIRS`, two adjacent products are added in 16
/// bits if the instruction set does that.
///
/// # Safety
/// The step exists, as do its words in each of the `R` rows of the input, which lie `input.1` words
/// apart.
#[inline(always)]
unsafe fn add_in_32_bits<S: Simd, const R: usize, const PAIRS: bool>(
    s: S,
    sums: &mut [[S::I; 2]; R],
    panel: Panel<'_>,
    at: usize,
    (input, stride): (*const i32, usize),
) {
    let group = GROUP * S::LANES;
    // SAFETY: the caller vouches for weights and words. No closure here: unless inlined, it would
    // not have the target features.
    unsafe {
        let weights = panel.weights.add(at * 2 * STEP * S::LANES);
        let input = input.add(2 * usize::from(*panel.order.get_unchecked(at)));
        let w = [
            [s.load_weights(weights), s.load_weights(weights.add(group))],
            [s.load_weights(weights.add(2 * group)), s.load_weights(weights.add(3 * group))],
        ];
        for (i, sums) in sums.iter_mut().enumerate() {
            let a = [s.splat_i(*input.add(i * stride)), s.splat_i(*input.add(i * stride + 1))];
            for (sum, w) in sums.iter_mut().zip(w) {
                *sum = if PAIRS { s.dot(*sum, w, a) } else { s.dot_wide(*sum, w, a) };
            }
        }
    }
}
