//! Dot products of each input with its own selection of rows: the logits of a shortlist.
//!
//! The sentences of a batch have about a thousand words each and ten thousand together, so most of
//! a matmul with all words of the batch would be wasted. Here the rows are contiguous, and each is
//! multiplied only with the inputs that have it on their list.

use super::int8_kernel::{BERGAMOT_PER_ROW, Dequantization, FIXED, Finish, PER_ROW, finish};
use super::packed_b::{Form, PackedB, RowScratch, Rows};
use super::quantize::{Quantization, QuantizedRows, RowParams, words};
use crate::aligned::Aligned;
use crate::mat::Mat;
use crate::simd::{GROUP, Simd, adds_in_16_bits, lanes, simd_kernel};
use crate::{Isa, Timer};

/// Products that are computed together.
const CHUNK: usize = 16;

/// Rows of a block, which stays in cache while all inputs are processed.
const BLOCK: u32 = 512;

/// The number of weight vectors whose products are added in 16 bits before they are widened.
const SEGMENT: usize = 4;

/// How many rows ahead to prefetch weights.
const AHEAD: usize = 6;

/// Selected rows of a matrix, stored contiguously.
#[derive(Clone, Debug)]
pub struct ChosenRows {
    isa: Isa,
    k: usize,
    n: usize,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    F32(Vec<f32>),
    Int8(Box<Int8Rows>),
}

/// Int8 rows, each padded with zeros to whole vectors.
#[derive(Clone, Debug)]
struct Int8Rows {
    words: usize,
    weights: Aligned<i8>,
    totals: Vec<i32>,
    dequantization: Dequantization,
    /// One entry per row; empty if the instruction set adds in 32 bits.
    bounds: Vec<Bound>,
}

/// The largest input for which sums of a row's products fit 16 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Bound {
    /// For all products of a segment.
    segment: u8,
    /// For two adjacent products.
    pair: u8,
}

/// For each input, the indices of its rows in ascending order: those of input `i` are
/// `rows[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Copy, Debug)]
pub struct RowLists<'a> {
    /// Where each list begins, plus the end of the last.
    pub offsets: &'a [usize],
    /// The lists.
    pub rows: &'a [u32],
}

impl ChosenRows {
    /// Selects rows of packed f32 weights.
    pub(super) fn f32(from: &PackedB, rows: &[u32], reuse: Option<ChosenRows>) -> Self {
        let k = from.inputs();
        let mut values = match reuse {
            Some(ChosenRows { data: Data::F32(old), .. }) => old,
            _ => Vec::new(),
        };
        values.resize(rows.len() * k, 0.0);
        for (&row, to) in rows.iter().zip(values.chunks_exact_mut(k.max(1))) {
            from.read_row(row as usize, to);
        }
        ChosenRows { isa: from.isa(), k, n: rows.len(), data: Data::F32(values) }
    }

    /// Rows of integers, padded with zeros at the end; `dequantization` receives the sum of each
    /// row.
    pub(super) fn int8(
        isa: Isa,
        values: impl ExactSizeIterator<Item = impl AsRef<[i8]>>,
        k: usize,
        dequantization: impl FnOnce(&[i32]) -> Dequantization,
        reuse: Option<ChosenRows>,
    ) -> Self {
        let (n, words) = (values.len(), words(lanes(isa), k));
        let mut weights = match reuse {
            Some(ChosenRows { data: Data::Int8(old), .. }) => old.weights,
            _ => Aligned::default(),
        };
        weights.resize(n * words * GROUP);
        let rows = weights.as_mut_slice().chunks_exact_mut((words * GROUP).max(1));
        for (to, row) in rows.zip(values) {
            let (there, missing) = to.split_at_mut(row.as_ref().len());
            there.copy_from_slice(row.as_ref());
            missing.fill(0);
        }
        let mut totals = vec![0; n];
        let mut bounds = vec![Bound::default(); if adds_in_16_bits(isa) { n } else { 0 }];
        row_sums(isa, weights.as_slice(), words, &mut totals, &mut bounds);
        let dequantization = dequantization(&totals);
        let data = Data::Int8(Box::new(Int8Rows { words, weights, totals, dequantization, bounds }));
        ChosenRows { isa, k, n, data }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The input `[m, k]` in the form that these rows require: unchanged, or quantised into
    /// `scratch`.
    ///
    /// # Panics
    /// If its rows have a different length, or it is transposed.
    pub fn rows<'a>(&self, x: Mat<'a>, scratch: &'a mut RowScratch) -> Rows<'a> {
        assert!(x.cols == self.k && x.col_stride == 1 && x.is_within(), "rows of {}", self.k);
        match &self.data {
            Data::F32(_) => Rows(Form::F32(x)),
            Data::Int8(w) => {
                scratch.0.fill(self.isa, w.dequantization.quantization(), x);
                Rows(Form::Int8(&scratch.0))
            }
        }
    }

    /// The dot products of each input with the rows on its list, plus the bias of each row: one
    /// result per list entry, in the order of the lists.
    ///
    /// # Panics
    /// If the sizes do not match, a list is not ascending or names a row that does not exist, the
    /// inputs were made for other weights, or a bias is given for a matrix that has its own.
    pub fn matmul(&self, x: Rows<'_>, lists: RowLists<'_>, bias: Option<&[f32]>, to: &mut [f32]) {
        let RowLists { offsets, rows } = lists;
        assert!(offsets.len() == x.len() + 1 && offsets.is_sorted() && offsets[0] == 0);
        assert!(*offsets.last().unwrap_or(&0) == rows.len() && to.len() == rows.len());
        assert!(rows.iter().all(|&row| (row as usize) < self.n), "one of {} rows", self.n);
        assert!(offsets.windows(2).all(|list| rows[list[0]..list[1]].is_sorted()), "rows that ascend");
        assert!(bias.is_none_or(|bias| bias.len() == self.n), "a bias of {} numbers", self.n);
        let _timer = Timer::start();
        match (&self.data, x.0) {
            (Data::F32(w), Form::F32(x)) if x.cols == self.k => {
                f32_products(self.isa, w, self.n, x, lists, bias, to)
            }
            (Data::Int8(w), Form::Int8(x))
                if x.cols == self.k && x.quantization == w.dequantization.quantization() =>
            {
                assert!(bias.is_none() || !x.quantization.has_bias(), "a second bias");
                int8_products(self.isa, w, x, lists, bias, to);
            }
            _ => panic!("the inputs were made for other weights"),
        }
    }
}

#[inline(always)]
fn row_sums_body<S: Simd>(s: S, weights: &[i8], words: usize, totals: &mut [i32], bounds: &mut [Bound]) {
    let step = S::LANES * GROUP;
    assert!(weights.len() == totals.len() * words * GROUP && words.is_multiple_of(S::LANES));
    let limit = |most: i32| (i32::from(i16::MAX) / most.max(1)).min(255) as u8;
    for (i, row) in weights.chunks_exact((words * GROUP).max(1)).enumerate() {
        totals[i] = row.iter().map(|&w| i32::from(w)).sum();
        let Some(bound) = bounds.get_mut(i) else { continue };
        let (mut segment, mut pair) = (0, 0);
        for vectors in row.chunks(SEGMENT * step) {
            // SAFETY: a vector of weights has `step` bytes.
            unsafe {
                let mut sums = [s.splat_i(0); 2];
                let mut largest = s.splat_i(0);
                for weights in vectors.chunks_exact(step) {
                    let parts = s.positive_and_negative(s.load_weights(weights.as_ptr()));
                    for (sum, part) in sums.iter_mut().zip(parts) {
                        *sum = s.add_in_16_bits(*sum, part);
                        largest = s.max_in_16_bits(largest, part);
                    }
                }
                segment = segment.max(s.largest_in_16_bits(s.max_in_16_bits(sums[0], sums[1])));
                pair = pair.max(s.largest_in_16_bits(largest));
            }
        }
        *bound = Bound { segment: limit(segment), pair: limit(pair) };
    }
}
simd_kernel! {
    /// Computes the sum of each row, and its [`Bound`] if `bounds` is not empty.
    fn row_sums(weights: &[i8], words: usize, totals: &mut [i32], bounds: &mut [Bound]) = row_sums_body;
}

/// Calls `$chunk` with an input and a range of the lists that holds at most [`CHUNK`] rows of that
/// input; all inputs visit a block of rows before the next block.
macro_rules! for_each_chunk {
    ($lists:expr, $n:expr, ($input:ident, $range:ident) => $chunk:expr) => {
        let RowLists { offsets, rows } = $lists;
        let mut first = 0;
        while (first as usize) < $n {
            for ($input, list) in offsets.windows(2).enumerate() {
                let rows = &rows[list[0]..list[1]];
                let start = list[0] + rows.partition_point(|&row| row < first);
                let end = list[0] + rows.partition_point(|&row| row < first + BLOCK);
                for start in (start..end).step_by(CHUNK) {
                    let $range = start..end.min(start + CHUNK);
                    $chunk
                }
            }
            first += BLOCK;
        }
    };
}

#[inline(always)]
fn f32_body<S: Simd>(
    s: S,
    w: &[f32],
    n: usize,
    x: Mat<'_>,
    lists: RowLists<'_>,
    bias: Option<&[f32]>,
    to: &mut [f32],
) {
    let k = x.cols;
    for_each_chunk!(lists, n, (input, range) => {
        for (to, &row) in to[range.clone()].iter_mut().zip(&lists.rows[range]) {
            let row = row as usize;
            let dot = crate::simd::loops::dot(s, x.row(input), &w[row * k..][..k]);
            *to = dot + bias.map_or(0.0, |bias| bias[row]);
        }
    });
}
simd_kernel! {
    fn f32_products(w: &[f32], n: usize, x: Mat<'_>, lists: RowLists<'_>, bias: Option<&[f32]>, to: &mut [f32]) = f32_body;
}

#[inline(always)]
fn int8_body<S: Simd>(
    s: S,
    w: &Int8Rows,
    x: &QuantizedRows,
    lists: RowLists<'_>,
    bias: Option<&[f32]>,
    to: &mut [f32],
) {
    let (scales, offsets) = w.dequantization.vectors(bias);
    let (n, words) = (w.totals.len(), w.words);
    assert!(w.weights.as_slice().len() == n * words * GROUP && words.is_multiple_of(S::LANES));
    assert!(x.words.len() == x.rows * words && x.params.len() == x.rows && scales.len() >= n);
    assert!(!S::ADDS_IN_16_BITS || w.bounds.len() == n);
    for_each_chunk!(lists, n, (input, range) => {
        let params = x.params[input];
        let list = &lists.rows[range.clone()];
        let (mut sums, mut totals) = ([0; CHUNK], [0; CHUNK]);
        let (mut scale, mut offset) = ([0.0; CHUNK], [0.0; CHUNK]);
        for (i, &row) in list.iter().enumerate() {
            let row = row as usize;
            totals[i] = w.totals[row];
            scale[i] = scales[row];
            offset[i] = offsets.map_or(0.0, |offsets| offsets[row]);
        }
        let later = lists.rows.get(range.start + AHEAD..).unwrap_or_default();
        // SAFETY: all rows of the lists exist (`ChosenRows::matmul`) and have as many words as the
        // inputs (asserted above).
        unsafe { integer_sums(s, w, (x.words.as_ptr().add(input * words), params), (list, later), &mut sums) };
        let mut out = [0.0; CHUNK];
        for at in (0..CHUNK).step_by(S::LANES) {
            // SAFETY: `LANES` divides `CHUNK`.
            unsafe {
                let columns = Finish {
                    total: s.load_i(totals.as_ptr().add(at)),
                    scale: s.load(scale.as_ptr().add(at)),
                    offset: s.load(offset.as_ptr().add(at)),
                };
                let sum = s.load_i(sums.as_ptr().add(at));
                let y = match x.quantization {
                    Quantization::Affine | Quantization::CTranslate2 => {
                        finish::<S, PER_ROW>(s, sum, params, columns)
                    }
                    Quantization::Fixed(_) => finish::<S, FIXED>(s, sum, params, columns),
                    Quantization::BergamotPerRow => finish::<S, BERGAMOT_PER_ROW>(s, sum, params, columns),
                };
                s.store(out.as_mut_ptr().add(at), y);
            }
        }
        to[range].copy_from_slice(&out[..list.len()]);
    });
}
simd_kernel! {
    fn int8_products(w: &Int8Rows, x: &QuantizedRows, lists: RowLists<'_>, bias: Option<&[f32]>, to: &mut [f32]) = int8_body;
}

/// The integer dot products of one input with some rows.
///
/// # Safety
/// The rows exist, and the input has as many words as they have.
#[inline(always)]
unsafe fn integer_sums<S: Simd>(
    s: S,
    w: &Int8Rows,
    (x, params): (*const i32, RowParams),
    (list, later): (&[u32], &[u32]),
    sums: &mut [i32; CHUNK],
) {
    let weights = w.weights.as_slice().as_ptr();
    let size = w.words * GROUP;
    let mut vectors = [s.splat_i(0); CHUNK];
    for (i, (vector, &row)) in vectors.iter_mut().zip(list).enumerate() {
        if let Some(&row) = later.get(i) {
            for line in (0..size).step_by(64) {
                s.prefetch(weights.wrapping_add(row as usize * size + line).cast());
            }
        }
        // SAFETY: the caller vouches for the row and the input; each row has a bound (`int8_body`).
        unsafe {
            let weights = weights.add(row as usize * size);
            *vector = if S::ADDS_IN_16_BITS {
                let bound = *w.bounds.get_unchecked(row as usize);
                if i32::from(bound.segment) >= params.largest {
                    dot_in_16_bits(s, weights, x, w.words)
                } else if i32::from(bound.pair) >= params.largest {
                    dot::<S, true>(s, weights, x, w.words)
                } else {
                    dot::<S, false>(s, weights, x, w.words)
                }
            } else if params.largest <= 127 {
                dot::<S, true>(s, weights, x, w.words)
            } else {
                dot::<S, false>(s, weights, x, w.words)
            };
        }
    }
    let [a, b] = sums.as_chunks_mut::<8>().0 else { return };
    let (first, second) = vectors.split_at(8);
    if let ([p, q, r, t, u, v, y, z], [i, j, k, l, m, n, o, h]) = (first, second) {
        *a = s.reduce_each([*p, *q, *r, *t, *u, *v, *y, *z]);
        *b = s.reduce_each([*i, *j, *k, *l, *m, *n, *o, *h]);
    }
}

/// The dot product of two rows in 16 bits, segment by segment, each partial sum in one lane.
///
/// # Safety
/// `words` words are readable at both pointers; they are whole vectors.
#[inline(always)]
unsafe fn dot_in_16_bits<S: Simd>(s: S, weights: *const i8, x: *const i32, words: usize) -> S::I {
    let mut sum = s.splat_i(0);
    let mut at = 0;
    while at < words {
        let end = words.min(at + SEGMENT * S::LANES);
        // SAFETY: the caller vouches for the words.
        unsafe {
            let mut halves =
                s.products_in_16_bits(s.load_i(x.add(at)), s.load_weights(weights.add(at * GROUP)));
            at += S::LANES;
            while at < end {
                let more =
                    s.products_in_16_bits(s.load_i(x.add(at)), s.load_weights(weights.add(at * GROUP)));
                halves = s.add_in_16_bits(halves, more);
                at += S::LANES;
            }
            sum = s.add_widened(sum, halves);
        }
    }
    sum
}

/// The same in 32 bits or, if `PAIRS`, with two adjacent products added in 16.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn dot<S: Simd, const PAIRS: bool>(s: S, weights: *const i8, x: *const i32, words: usize) -> S::I {
    let mut sum = s.splat_i(0);
    let mut at = 0;
    while at < words {
        // SAFETY: the caller vouches for the words.
        unsafe {
            // The last of an odd number of vectors is paired with zeros.
            let next = at + S::LANES;
            let a = [s.load_i(x.add(at)), if next < words { s.load_i(x.add(next)) } else { s.splat_i(0) }];
            let place = if next < words { next } else { at };
            let w = [s.load_weights(weights.add(at * GROUP)), s.load_weights(weights.add(place * GROUP))];
            sum = if PAIRS { s.dot(sum, w, a) } else { s.dot_wide(sum, w, a) };
            at = next + S::LANES;
        }
    }
    sum
}
