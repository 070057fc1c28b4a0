//! Packed weights in 8 bits, and inputs quantised row by row.
//!
//! Weights are whole numbers from −127 to 127, inputs from 0 to 127: that of 0 is the row's zero point. Products of two neighbours
//! then fit 16 bits, in which AVX2 adds them, and where the weights of two pairs are small enough, both pairs do.

use super::f32_weights::OutputTile;
use super::with_rows;
use crate::Isa;
use crate::aligned::Aligned;
use crate::mat::{Mat, MatMut};
use crate::simd::loops::{Place as _, vectors};
use crate::simd::{GROUP, Simd, lanes, simd_kernel};
use std::ops::Range;

/// Numbers of a column that are multiplied in one step: two groups.
const STEP: usize = 2 * GROUP;

/// The largest number of weights and inputs; −128 is not used, so that a weight and its negative are as exact as each other.
const LARGEST: f32 = 127.0;

/// Below this a row of the input counts as zeros: its inverse would be infinite.
const SMALLEST: f32 = 1e-37;

/// Rows in 8 bits and the scale of each: `w ≈ value · scale`. A row of zeros has the scale 0; one with a NaN or an infinity a NaN.
pub fn quantize_rows(w: &[f32], k: usize) -> (Vec<i8>, Vec<f32>) {
    let mut values = Vec::with_capacity(w.len());
    let mut scales = Vec::with_capacity(w.len() / k.max(1));
    for row in w.chunks_exact(k.max(1)) {
        let largest = row.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
        let odd: f32 = row.iter().map(|x| x * 0.0).sum();
        let factor = if largest > SMALLEST { LARGEST / largest } else { 0.0 };
        scales.push(largest / LARGEST + odd);
        values.extend(row.iter().map(|x| (x * factor).round_ties_even() as i8));
    }
    (values, scales)
}

/// `[panel][k / 8][vector: 2][group: 2][lanes][4]`
#[derive(Clone, Debug)]
pub(super) struct Int8Weights {
    k: usize,
    lanes: usize,
    /// How many words of `GROUP` numbers a row of the input takes: whole vectors of them.
    words: usize,
    panels: Aligned<i8>,
    scales: Vec<f32>,
    /// The sum of each column, which a zero point counts this many times too often.
    totals: Vec<i32>,
    /// For each step of each panel, whether its sums fit 16 bits.
    small: Vec<bool>,
}

/// How many words a row of `k` numbers takes: whole vectors of them.
fn words(lanes: usize, k: usize) -> usize {
    k.div_ceil(lanes * GROUP) * lanes
}

impl Int8Weights {
    pub(super) fn pack(isa: Isa, values: &[i8], scales: &[f32], k: usize) -> Self {
        Self::pack_for(lanes(isa), values, scales, k)
    }

    fn pack_for(lanes: usize, values: &[i8], scales: &[f32], k: usize) -> Self {
        let (n, words, width) = (scales.len(), words(lanes, k), 2 * lanes);
        let (padded, steps) = (n.next_multiple_of(width), words / 2);
        let mut packed = Int8Weights {
            k,
            lanes,
            words,
            panels: Aligned::zeros(padded * words * GROUP),
            scales: scales.iter().copied().chain(std::iter::repeat_n(0.0, padded - n)).collect(),
            totals: vec![0; padded],
            small: vec![true; padded / width * steps],
        };
        for (i, row) in values.chunks_exact(k.max(1)).enumerate() {
            packed.totals[i] = row.iter().map(|&x| i32::from(x)).sum();
            for (step, part) in row.chunks(STEP).enumerate() {
                packed.small[i / width * steps + step] &= fits_16_bits(part);
            }
            for (g, part) in row.chunks(GROUP).enumerate() {
                let at = packed.place(i, g);
                packed.panels.as_mut_slice()[at..at + part.len()].copy_from_slice(part);
            }
        }
        packed
    }

    /// Some rows of the matrix, packed alike.
    pub(super) fn select(&self, rows: &[u32]) -> Self {
        let panels = self.panels.as_slice();
        let mut values = Vec::with_capacity(rows.len() * self.k);
        for &row in rows {
            let groups = (0..self.words).flat_map(|g| &panels[self.place(row as usize, g)..][..GROUP]);
            values.extend(groups.take(self.k));
        }
        let scales: Vec<f32> = rows.iter().map(|&row| self.scales[row as usize]).collect();
        Self::pack_for(self.lanes, &values, &scales, self.k)
    }

    /// Where group `g` of column `i` lies.
    fn place(&self, i: usize, g: usize) -> usize {
        let (lanes, column) = (self.lanes, i % (2 * self.lanes));
        let panel = i / (2 * lanes) * self.words * 2 * lanes;
        let vector = (g / 2 * 2 + column / lanes) * 2 * lanes;
        (panel + vector + g % 2 * lanes + column % lanes) * GROUP
    }

    pub(super) fn bytes(&self) -> usize {
        self.panels.bytes() + 8 * self.scales.len() + self.small.len()
    }

    pub(super) fn read_row(&self, i: usize, to: &mut [f32]) {
        let panels = self.panels.as_slice();
        for (g, to) in to.chunks_mut(GROUP).enumerate() {
            for (x, &w) in to.iter_mut().zip(&panels[self.place(i, g)..]) {
                *x = f32::from(w) * self.scales[i];
            }
        }
    }

    pub(super) fn product(
        &self,
        isa: Isa,
        x: &QuantizedRows,
        columns: Range<usize>,
        bias: Option<&[f32]>,
        to: MatMut<'_>,
    ) {
        assert!(x.cols == self.k && x.width == self.words);
        product(isa, self, x, columns, bias, to);
    }
}

/// Whether the pairs of a step that are added in 16 bits fit them: the first of both groups, and the second. Inputs are never
/// negative, so that positive and negative weights count apart.
fn fits_16_bits(step: &[i8]) -> bool {
    const MOST: i32 = i16::MAX as i32 / LARGEST as i32;
    [0, 2].iter().all(|&first| {
        let both = [first, first + 1, first + GROUP, first + GROUP + 1];
        let weights = both.iter().filter_map(|&i| step.get(i)).map(|&w| i32::from(w));
        let (above, below) = weights.fold((0, 0), |(a, b), w| (a + w.max(0), b - w.min(0)));
        above <= MOST && below <= MOST
    })
}

/// Rows of the input in 8 bits, in the order in which the kernel wants them.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantizedRows {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Words of a row.
    width: usize,
    words: Vec<i32>,
    scales: Vec<f32>,
    zeros: Vec<i32>,
}

impl QuantizedRows {
    pub(super) fn fill(&mut self, isa: Isa, x: Mat<'_>) {
        (self.rows, self.cols, self.width) = (x.rows, x.cols, words(lanes(isa), x.cols));
        self.words.resize(self.rows * self.width, 0);
        self.scales.resize(self.rows, 0.0);
        self.zeros.resize(self.rows, 0);
        quantize(isa, x, &mut self.words, &mut self.scales, &mut self.zeros);
    }
}

#[inline(always)]
fn quantize_body<S: Simd>(s: S, x: Mat<'_>, words: &mut [i32], scales: &mut [f32], zeros: &mut [i32]) {
    let step = S::LANES * GROUP;
    let width = x.cols.div_ceil(step) * S::LANES;
    assert!(words.len() == x.rows * width && scales.len() == x.rows && zeros.len() == x.rows);
    for (r, (scale, zero)) in scales.iter_mut().zip(zeros).enumerate() {
        let row = x.row(r);
        let (mut above, mut below, mut odd) = (s.zero(), s.zero(), s.zero());
        vectors!(S, row.len(), at => {
            let v = at.read(s, row);
            above = s.max(v, above);
            below = s.max(s.sub(s.zero(), v), below);
            odd = s.mul_add(v, s.zero(), odd);
        });
        let below = s.reduce_max(below) / LARGEST;
        let size = s.reduce_max(above) / LARGEST + below;
        let factor = if size > SMALLEST { 1.0 / size } else { 0.0 };
        *scale = size + s.reduce_sum(odd);
        *zero = (below * LARGEST * factor).round_ties_even() as i32;
        let words = &mut words[r * width..][..width];
        for (part, to) in row.chunks(step).zip(words.chunks_exact_mut(S::LANES)) {
            // SAFETY: a part has `step` numbers at most, and a chunk of words is a vector.
            unsafe { s.quantize(part.as_ptr(), part.len(), factor, *zero, to.as_mut_ptr()) };
        }
    }
}
simd_kernel! {
    fn quantize(x: Mat<'_>, words: &mut [i32], scales: &mut [f32], zeros: &mut [i32]) = quantize_body;
}

#[inline(always)]
fn body<S: Simd>(
    s: S,
    w: &Int8Weights,
    x: &QuantizedRows,
    columns: Range<usize>,
    bias: Option<&[f32]>,
    mut to: MatMut<'_>,
) {
    let (m, words, width) = (x.rows, w.words, 2 * S::LANES);
    let (size, steps) = (words * GROUP * width, words / 2);
    let panels = w.panels.as_slice();
    assert!(w.lanes == S::LANES && x.words.len() == m * words && x.scales.len() == m && x.zeros.len() == m);
    assert!(to.rows == m && to.cols == columns.len() && columns.start.is_multiple_of(width));
    let all = columns.end.div_ceil(width);
    assert!(all * size <= panels.len() && all * steps <= w.small.len());
    assert!(all * width <= w.totals.len() && all * width <= w.scales.len());
    assert!(bias.is_none_or(|b| b.len() >= columns.end));
    for start in columns.clone().step_by(width) {
        let valid = width.min(columns.end - start);
        let mut offset = [0.0; 64];
        if let Some(bias) = bias {
            offset[..valid].copy_from_slice(&bias[start..start + valid]);
        }
        let panel = Panel {
            weights: panels[start / width * size..].as_ptr(),
            small: &w.small[start / width * steps..][..steps],
            totals: w.totals[start..].as_ptr(),
            scales: w.scales[start..].as_ptr(),
            offset: offset.as_ptr(),
        };
        let mut i = 0;
        while i < m {
            let rows = S::BYTE_ROWS.min(m - i);
            // SAFETY: rows `i .. i + rows` of input and output are there, as is the panel: asserted above.
            unsafe {
                let input = Input {
                    words: x.words.as_ptr().add(i * words),
                    scales: x.scales.as_ptr().add(i),
                    zeros: x.zeros.as_ptr().add(i),
                };
                let c = OutputTile {
                    to: to.as_ptr().add(i * to.stride + (start - columns.start)),
                    stride: to.stride,
                    valid,
                };
                with_rows!(rows, R => tile::<S, R>(s, input, panel, c))
            }
            i += rows;
        }
    }
}
simd_kernel! {
    fn product(w: &Int8Weights, x: &QuantizedRows, columns: Range<usize>, bias: Option<&[f32]>, to: MatMut<'_>) = body;
}

/// A panel of weights with what belongs to its columns.
#[derive(Clone, Copy)]
struct Panel<'a> {
    weights: *const i8,
    /// As long as the panel has steps.
    small: &'a [bool],
    totals: *const i32,
    scales: *const f32,
    offset: *const f32,
}

/// Some rows of the input.
#[derive(Clone, Copy)]
struct Input {
    words: *const i32,
    scales: *const f32,
    zeros: *const i32,
}

/// `R` rows by one panel.
///
/// # Safety
/// `R` rows of two words a step, scales and zero points can be read at `x`, all steps at `panel`, and `c` can be written.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize>(s: S, x: Input, panel: Panel<'_>, c: OutputTile) {
    // SAFETY: the caller vouches for all of it; a panel has two vectors of each of its numbers.
    unsafe {
        let words = 2 * panel.small.len();
        let mut sums = [[s.splat_i(0); 2]; R];
        for (step, &small) in panel.small.iter().enumerate() {
            let at = panel.weights.add(step * 2 * STEP * S::LANES);
            let input = x.words.add(2 * step);
            if small || !S::ADDS_IN_16_BITS {
                multiply(s, &mut sums, at, (input, words), S::dot_small);
            } else {
                multiply(s, &mut sums, at, (input, words), S::dot);
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            let (scale, zero) = (s.splat(*x.scales.add(i)), *x.zeros.add(i));
            let mut out = [s.zero(); 2];
            for (j, out) in out.iter_mut().enumerate() {
                let scale = s.mul(scale, s.load(panel.scales.add(j * S::LANES)));
                let sum = s.sub_times(sums[j], s.load_i(panel.totals.add(j * S::LANES)), zero);
                *out = s.mul_add(s.int_to_float(sum), scale, s.load(panel.offset.add(j * S::LANES)));
            }
            c.write(s, i, out);
        }
    }
}

/// One step of a tile.
///
/// # Safety
/// Four vectors can be read at `weights`, two words at each of `R` rows of `input`.
#[inline(always)]
unsafe fn multiply<S: Simd, const R: usize>(
    s: S,
    sums: &mut [[S::I; 2]; R],
    weights: *const i8,
    (input, stride): (*const i32, usize),
    dot: impl Fn(S, S::I, [S::W; 2], [S::I; 2]) -> S::I,
) {
    // SAFETY: the caller vouches for the weights.
    let w = [0, 1].map(|j| unsafe {
        let at = weights.add(j * STEP * S::LANES);
        [s.load_weights(at), s.load_weights(at.add(GROUP * S::LANES))]
    });
    for (i, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the words.
        let a = unsafe { [s.splat_i(*input.add(i * stride)), s.splat_i(*input.add(i * stride + 1))] };
        sums[0] = dot(s, sums[0], w[0], a);
        sums[1] = dot(s, sums[1], w[1], a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    /// What the kernel does with a layout, in plain loops: also that of instruction sets which this machine lacks.
    fn by_layout(lanes: usize, values: &[i8], k: usize, x: &[i32]) -> Vec<i32> {
        let n = values.len() / k;
        let packed = Int8Weights::pack_for(lanes, values, &vec![1.0; n], k);
        let panels = packed.panels.as_slice();
        let product =
            |column: usize, t: usize| i32::from(panels[packed.place(column, t / GROUP) + t % GROUP]) * x[t];
        (0..n).map(|i| (0..k).map(|t| product(i, t)).sum()).collect()
    }

    #[test]
    fn the_layouts_of_all_instruction_sets_mean_the_same() {
        for (n, k) in [(1, 1), (5, 3), (33, 70), (40, 64), (64, 129)] {
            let whole = |count: usize, seed: u64| -> Vec<i32> {
                random(count, seed).iter().map(|x| (x * 63.0).round() as i32).collect()
            };
            let (w, x) = (whole(n * k, 1), whole(k, 2));
            let values: Vec<i8> = w.iter().map(|&w| w as i8).collect();
            let want: Vec<i32> =
                w.chunks(k).map(|row| row.iter().zip(&x).map(|(w, x)| w * x).sum()).collect();
            for lanes in [4, 8, 16] {
                assert_eq!(by_layout(lanes, &values, k, &x), want, "{lanes} lanes {n}×{k}");
            }
        }
    }

    #[test]
    fn a_step_is_small_as_long_as_its_pairs_fit_16_bits() {
        // 127 · 258 = 32,766 fits, one more does not.
        assert!(fits_16_bits(&[127, 127, 127, 0, 4, 0, 127, 4]));
        assert!(!fits_16_bits(&[127, 127, 0, 0, 4, 1, 0, 0]));
        assert!(!fits_16_bits(&[0, 0, -127, -127, 0, 0, 0, -5]));
        assert!(fits_16_bits(&[127, 127, 127, 127, -127, -127, -127, -127]));
        assert!(fits_16_bits(&[127, 127, 127]) && fits_16_bits(&[]));
    }
}
