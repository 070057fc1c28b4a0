//! Quantization to int8: rows of weights when they are packed, rows of the input at run time.

use crate::Isa;
use crate::mat::Mat;
use crate::simd::loops::{Place as _, vectors};
use crate::simd::{GROUP, Simd, lanes, simd_kernel};

/// The largest integer of weights and inputs; −128 is not used, so that the range is symmetric.
pub(super) const INT8_MAX: f32 = 127.0;

/// Rows with a range below this count as zeros: the inverse would be infinite.
const MIN_RANGE: f32 = 1e-37;

/// Quantizes rows to int8, with a scale for each: `w ≈ value · scale`. A row of zeros has the scale
/// 0; a row with a NaN or an infinity has the scale NaN.
pub fn quantize_rows(w: &[f32], k: usize) -> (Vec<i8>, Vec<f32>) {
    let mut values = Vec::with_capacity(w.len());
    let mut scales = Vec::with_capacity(w.len() / k.max(1));
    for row in w.chunks_exact(k.max(1)) {
        let largest = row.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
        let non_finite: f32 = row.iter().map(|x| x * 0.0).sum();
        let factor = if largest > MIN_RANGE { INT8_MAX / largest } else { 0.0 };
        scales.push(largest / INT8_MAX + non_finite);
        values.extend(row.iter().map(|x| (x * factor).round_ties_even() as i8));
    }
    (values, scales)
}

/// The number of words of `GROUP` elements in a row of `k` elements, rounded up to whole vectors.
pub(super) fn words(lanes: usize, k: usize) -> usize {
    k.div_ceil(lanes * GROUP) * lanes
}

/// How inputs are quantized.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Quantization {
    /// From 0 to 127, with a scale and a zero point for each row.
    #[default]
    Affine,
    /// `q = round(x · 127 / max |x|)` over the row, from −127 to 127, as in CTranslate2.
    CTranslate2,
    /// `q = round(x · a)` from −127 to 127, with a constant `a`.
    Fixed(f32),
    /// The same with `a = 127 / max |x|` over the row, for Bergamot's order of operations.
    BergamotPerRow,
}

impl Quantization {
    /// Whether the bias is a part of the packed matrix.
    pub(super) fn has_bias(self) -> bool {
        matches!(self, Quantization::Fixed(_) | Quantization::BergamotPerRow)
    }
}

/// Rows of the input in unsigned 8 bits, in the order in which the kernel reads them.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantizedRows {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) quantization: Quantization,
    /// Words of a row.
    pub(super) width: usize,
    pub(super) words: Vec<i32>,
    pub(super) params: Vec<RowParams>,
}

/// The quantization parameters of one row of the input.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowParams {
    /// [`Quantization::Affine`] and `CTranslate2`: the quantization step. `Fixed`: 1.
    /// `BergamotPerRow`: `a`. NaN if the row has a NaN or an infinity.
    pub(super) scale: f32,
    /// How many times the sum of a column of weights must be subtracted from the sum of its
    /// products: for `Affine` and `CTranslate2` the zero point; for the others the zero point minus
    /// 127, because Bergamot sums over `q + 127`.
    pub(super) zero: i32,
    /// An upper bound of the integers of the row.
    pub(super) largest: i32,
}

impl QuantizedRows {
    pub(super) fn fill(&mut self, isa: Isa, quantization: Quantization, x: Mat<'_>) {
        self.quantization = quantization;
        (self.rows, self.cols, self.width) = (x.rows, x.cols, words(lanes(isa), x.cols));
        self.words.resize(self.rows * self.width, 0);
        self.params.resize(self.rows, RowParams::default());
        quantize(isa, quantization, x, &mut self.words, &mut self.params);
    }
}

/// The largest value of a row and the largest of its negatives (both at least 0), and 0, or NaN if
/// the row has a NaN or an infinity.
#[inline(always)]
fn extremes<S: Simd>(s: S, row: &[f32]) -> (f32, f32, f32) {
    let (mut above, mut below, mut non_finite) = (s.zero(), s.zero(), s.zero());
    vectors!(S, row.len(), at => {
        let v = at.read(s, row);
        above = s.max(v, above);
        below = s.max(s.sub(s.zero(), v), below);
        non_finite = s.mul_add(v, s.zero(), non_finite);
    });
    (s.reduce_max(above), s.reduce_max(below), s.reduce_sum(non_finite))
}

/// A row's parameters, and the factor and the shift that turn its values into unsigned integers.
#[inline(always)]
fn row_params(quantization: Quantization, above: f32, below: f32, non_finite: f32) -> (RowParams, f32, i32) {
    let a = match quantization {
        Quantization::Affine => {
            let below = below / INT8_MAX;
            let size = above / INT8_MAX + below;
            let factor = if size > MIN_RANGE { 1.0 / size } else { 0.0 };
            let zero = (below * INT8_MAX * factor).round_ties_even() as i32;
            return (RowParams { scale: size + non_finite, zero, largest: 127 }, factor, zero);
        }
        Quantization::Fixed(a) => a,
        // A row of zeros quantizes to zeros with any multiplier.
        Quantization::CTranslate2 | Quantization::BergamotPerRow if above.max(below) <= MIN_RANGE => INT8_MAX,
        Quantization::CTranslate2 | Quantization::BergamotPerRow => INT8_MAX / above.max(below),
    };
    let whole = |x: f32| (x * a).clamp(0.0, INT8_MAX).round_ties_even() as i32;
    // The smaller the integers, the more of their products can be added in 16 bits: shift the row's
    // smallest value to 0 rather than −127.
    let shift = whole(below);
    let (scale, zero) = match quantization {
        Quantization::CTranslate2 => (1.0 / a, shift),
        Quantization::BergamotPerRow => (a, shift - 127),
        _ => (1.0, shift - 127),
    };
    (RowParams { scale: scale + non_finite, zero, largest: shift + whole(above) }, a, shift)
}

#[inline(always)]
fn body<S: Simd>(s: S, quantization: Quantization, x: Mat<'_>, words: &mut [i32], params: &mut [RowParams]) {
    let step = S::LANES * GROUP;
    let width = x.cols.div_ceil(step) * S::LANES;
    assert!(words.len() == x.rows * width && params.len() == x.rows);
    for (r, params) in params.iter_mut().enumerate() {
        let row = x.row(r);
        let (above, below, non_finite) = extremes(s, row);
        let (found, factor, shift) = row_params(quantization, above, below, non_finite);
        *params = found;
        let words = &mut words[r * width..][..width];
        for (part, to) in row.chunks(step).zip(words.chunks_exact_mut(S::LANES)) {
            // SAFETY: a part has at most `step` elements, and a chunk of words is a vector.
            unsafe { s.quantize(part.as_ptr(), part.len(), factor, shift, found.largest, to.as_mut_ptr()) };
        }
    }
}
simd_kernel! {
    fn quantize(quantization: Quantization, x: Mat<'_>, words: &mut [i32], params: &mut [RowParams]) = body;
}
