//! Products of packed weights in 8 bits with inputs in 8 bits.
//!
//! The sums are exact integers on every instruction set; what is made of them depends on how the weights were quantized
//! ([`Dequantization`]).

use super::f32_weights::OutputTile;
use super::int8_panels::{Int8Panels, STEP};
use super::quantize::{LARGEST, Quantization, QuantizedRows, RowParams};
use super::{Epilogue, with_rows};
use crate::Isa;
use crate::mat::MatMut;
use crate::simd::{GROUP, Simd, simd_kernel};
use std::ops::Range;

/// Longer rows could exceed 32 bits.
pub(super) const MAX_K: usize = (i32::MAX / (254 * 128)) as usize;

/// Weights in 8 bits, and what their integers mean.
#[derive(Clone, Debug)]
pub(super) struct Int8Weights {
    panels: Int8Panels,
    dequantization: Dequantization,
}

/// How integer sums become floats. Vectors have a number for each column, and zeros up to whole panels.
#[derive(Clone, Debug)]
enum Dequantization {
    /// `w ≈ value · scale`, with a scale for each column and for each row of the input.
    Affine { scales: Vec<f32> },
    /// `w ≈ value / multiplier`, in Bergamot's order of operations.
    Fixed {
        multipliers: Vec<f32>,
        input: Option<f32>,
        /// With a fixed input multiplier `a`: `1 / (a·m)`; otherwise `m`.
        scales: Vec<f32>,
        /// With a fixed input multiplier: `Σ w · (−((127/a)·(127/m)) / 127) + bias`; otherwise the bias.
        offsets: Vec<f32>,
    },
}

impl Int8Weights {
    pub(super) fn pack(isa: Isa, values: &[i8], scales: &[f32], k: usize) -> Self {
        let panels = Int8Panels::pack(isa, values, scales.len(), k);
        let scales = padded(scales.iter().copied(), panels.totals.len());
        Int8Weights { panels, dequantization: Dequantization::Affine { scales } }
    }

    pub(super) fn pack_fixed(
        isa: Isa,
        values: &[i8],
        multipliers: &[f32],
        input: Option<f32>,
        bias: Option<&[f32]>,
        k: usize,
    ) -> Self {
        let panels = Int8Panels::pack(isa, values, multipliers.len(), k);
        let columns = panels.totals.iter().zip(multipliers).enumerate();
        let (scales, offsets): (Vec<f32>, Vec<f32>) = columns
            .map(|(i, (&total, &m))| match (input, bias.map(|bias| bias[i])) {
                (None, bias) => (m, bias.unwrap_or(0.0)),
                (Some(a), bias) => {
                    let correction = total as f32 * (-((LARGEST / a) * (LARGEST / m)) / LARGEST);
                    (1.0 / (a * m), bias.map_or(correction, |bias| correction + bias))
                }
            })
            .unzip();
        let all = panels.totals.len();
        let dequantization = Dequantization::Fixed {
            multipliers: multipliers.to_vec(),
            input,
            scales: padded(scales, all),
            offsets: padded(offsets, all),
        };
        Int8Weights { panels, dequantization }
    }

    /// Some rows of the matrix, packed alike.
    pub(super) fn select(&self, rows: &[u32]) -> Self {
        let panels = self.panels.select(rows);
        let all = panels.totals.len();
        let of_rows = |from: &[f32]| rows.iter().map(|&row| from[row as usize]).collect::<Vec<f32>>();
        let dequantization = match &self.dequantization {
            Dequantization::Affine { scales } => {
                Dequantization::Affine { scales: padded(of_rows(scales), all) }
            }
            Dequantization::Fixed { multipliers, input, scales, offsets } => Dequantization::Fixed {
                multipliers: of_rows(multipliers),
                input: *input,
                scales: padded(of_rows(scales), all),
                offsets: padded(of_rows(offsets), all),
            },
        };
        Int8Weights { panels, dequantization }
    }

    pub(super) fn bytes(&self) -> usize {
        let floats = match &self.dequantization {
            Dequantization::Affine { scales } => scales.len(),
            Dequantization::Fixed { multipliers, scales, offsets, .. } => {
                multipliers.len() + scales.len() + offsets.len()
            }
        };
        self.panels.bytes() + 4 * floats
    }

    /// What inputs must be quantized by.
    pub(super) fn quantization(&self) -> Quantization {
        match self.dequantization {
            Dequantization::Affine { .. } => Quantization::Affine,
            Dequantization::Fixed { input: Some(a), .. } => Quantization::Fixed(a),
            Dequantization::Fixed { input: None, .. } => Quantization::Symmetric,
        }
    }

    pub(super) fn read_row(&self, i: usize, to: &mut [f32]) {
        let scale = match &self.dequantization {
            Dequantization::Affine { scales } => scales[i],
            Dequantization::Fixed { multipliers, .. } => 1.0 / multipliers[i],
        };
        let weights = self.panels.weights.as_slice();
        for (g, to) in to.chunks_mut(GROUP).enumerate() {
            for (x, &w) in to.iter_mut().zip(&weights[self.panels.place(i, g)..]) {
                *x = f32::from(w) * scale;
            }
        }
    }

    pub(super) fn product(
        &self,
        isa: Isa,
        x: &QuantizedRows,
        columns: Range<usize>,
        epilogue: Epilogue<'_>,
        to: MatMut<'_>,
    ) {
        assert!(x.cols == self.panels.k && x.width == self.panels.words);
        product(isa, self, x, columns, epilogue, to);
    }
}

/// The numbers, and zeros up to whole panels.
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
    mut to: MatMut<'_>,
) {
    let Int8Weights { panels, dequantization } = w;
    let (m, words, width) = (x.rows, panels.words, 2 * S::LANES);
    let (size, steps) = (words * GROUP * width, words / 2);
    let (scales, offsets) = match dequantization {
        Dequantization::Affine { scales } => (scales, epilogue.bias),
        Dequantization::Fixed { scales, offsets, .. } => (scales, Some(&offsets[..])),
    };
    let weights = panels.weights.as_slice();
    assert!(panels.lanes == S::LANES && x.words.len() == m * words && x.params.len() == m);
    assert!(to.rows == m && to.cols == columns.len() && columns.start.is_multiple_of(width));
    let all = columns.end.div_ceil(width);
    assert!(all * size <= weights.len() && all * steps <= panels.limits.len().min(panels.order.len()));
    assert!(all * width <= panels.totals.len() && all * width <= scales.len());
    assert!(offsets.is_none_or(|b| b.len() >= columns.end));
    // A bias need not fill the last panel.
    let (mut last, zeros) = ([0.0; 64], [0.0; 64]);
    for start in columns.clone().step_by(width) {
        let (valid, at) = (width.min(columns.end - start), start / width);
        let offset = match offsets {
            None => &zeros[..],
            Some(offsets) if offsets.len() >= start + width => &offsets[start..],
            Some(offsets) => {
                last[..valid].copy_from_slice(&offsets[start..start + valid]);
                &last[..]
            }
        };
        let panel = Panel {
            weights: weights[at * size..].as_ptr(),
            order: &panels.order[at * steps..][..steps],
            limits: &panels.limits[at * steps..][..steps],
            totals: panels.totals[start..].as_ptr(),
            scales: scales[start..].as_ptr(),
            offset: offset.as_ptr(),
        };
        let mut i = 0;
        while i < m {
            let rows = S::BYTE_ROWS.min(m - i);
            // SAFETY: rows `i .. i + rows` of input and output are there, as is the panel: asserted above. Its order is a
            // permutation of its steps (`Int8Panels`).
            unsafe {
                let input =
                    Input { words: x.words.as_ptr().add(i * words), params: x.params.as_ptr().add(i) };
                let c = OutputTile {
                    to: to.as_ptr().add(i * to.stride + (start - columns.start)),
                    stride: to.stride,
                    valid,
                    relu: epilogue.relu,
                };
                with_rows!(rows, R => tile::<S, R>(s, input, panel, x.quantization, c))
            }
            i += rows;
        }
    }
}
simd_kernel! {
    fn product(w: &Int8Weights, x: &QuantizedRows, columns: Range<usize>, epilogue: Epilogue<'_>, to: MatMut<'_>) = body;
}

/// A panel of weights with what belongs to its columns.
#[derive(Clone, Copy)]
struct Panel<'a> {
    weights: *const i8,
    /// A permutation of the panel's steps.
    order: &'a [u16],
    limits: &'a [u8],
    totals: *const i32,
    scales: *const f32,
    offset: *const f32,
}

/// Some rows of the input.
#[derive(Clone, Copy)]
struct Input {
    words: *const i32,
    params: *const RowParams,
}

/// `R` rows by one panel.
///
/// # Safety
/// `R` rows of two words a step and parameters can be read at `x`, all steps at `panel`, and `c` can be written.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize>(
    s: S,
    x: Input,
    panel: Panel<'_>,
    quantization: Quantization,
    c: OutputTile,
) {
    // SAFETY: the caller vouches for all of it; a panel has two vectors of each of its numbers.
    unsafe {
        let sums = integer_sums::<S, R>(s, x, panel);
        for (i, sums) in sums.iter().enumerate() {
            let params = *x.params.add(i);
            let mut out = [s.zero(); 2];
            for (j, out) in out.iter_mut().enumerate() {
                let total = s.load_i(panel.totals.add(j * S::LANES));
                let scale = s.load(panel.scales.add(j * S::LANES));
                let offset = s.load(panel.offset.add(j * S::LANES));
                let sum = s.int_to_float(s.sub_times(sums[j], total, params.zero));
                let row = s.splat(params.scale);
                *out = match quantization {
                    Quantization::Affine => s.mul_add(sum, s.mul(row, scale), offset),
                    // The row's scale is 1, or NaN.
                    Quantization::Fixed(_) => s.add(s.mul(sum, s.mul(row, scale)), offset),
                    Quantization::Symmetric => symmetric(s, sum, s.int_to_float(total), [row, scale], offset),
                };
            }
            c.write(s, i, out);
        }
    }
}

/// Bergamot's expression for a row whose input multiplier `a` is known at run time, and columns with multipliers `m`.
#[inline(always)]
fn symmetric<S: Simd>(s: S, sum: S::F, total: S::F, [a, m]: [S::F; 2], bias: S::F) -> S::F {
    let largest = s.splat(LARGEST);
    let steps = s.mul(s.div(largest, a), s.div(largest, m));
    let correction = s.mul(total, s.div(s.sub(s.zero(), steps), largest));
    s.add(s.mul(sum, s.div(s.splat(1.0), s.mul(a, m))), s.add(correction, bias))
}

/// The sums of the products of `R` rows with the columns of a panel.
///
/// # Safety
/// `R` rows of two words a step and parameters can be read at `x`, and all steps at `panel`.
#[inline(always)]
unsafe fn integer_sums<S: Simd, const R: usize>(s: S, x: Input, panel: Panel<'_>) -> [[S::I; 2]; R] {
    let mut sums = [[s.splat_i(0); 2]; R];
    let words = 2 * panel.order.len();
    // SAFETY: the caller vouches for the parameters of `R` rows.
    let largest = (0..R).map(|i| unsafe { (*x.params.add(i)).largest }).fold(0, i32::max);
    let fast = match S::ADDS_IN_16_BITS {
        true => panel.limits.partition_point(|&limit| i32::from(limit) >= largest),
        false => 0,
    };
    // SAFETY: the caller vouches for weights and words.
    unsafe {
        let at = |place: usize| panel.weights.add(place * 2 * STEP * S::LANES);
        let input = |step: u16| (x.words.add(2 * usize::from(step)), words);
        for (place, &step) in panel.order[..fast].iter().enumerate() {
            multiply::<S, R, SMALL>(s, &mut sums, at(place), input(step));
        }
        if largest <= 127 {
            for (place, &step) in panel.order.iter().enumerate().skip(fast) {
                multiply::<S, R, PAIRS>(s, &mut sums, at(place), input(step));
            }
        } else {
            for (place, &step) in panel.order.iter().enumerate().skip(fast) {
                multiply::<S, R, WIDE>(s, &mut sums, at(place), input(step));
            }
        }
    }
    sums
}

/// How the products of a step are added up: two pairs in 16 bits, one pair in 16 bits, or all of it in 32.
const SMALL: u8 = 0;
const PAIRS: u8 = 1;
const WIDE: u8 = 2;

/// One step of a tile. `SUMS` is a constant and not a function, which would have to be inlined to have the target's features.
///
/// # Safety
/// Four vectors can be read at `weights`, two words at each of `R` rows of `input`.
#[inline(always)]
unsafe fn multiply<S: Simd, const R: usize, const SUMS: u8>(
    s: S,
    sums: &mut [[S::I; 2]; R],
    weights: *const i8,
    (input, stride): (*const i32, usize),
) {
    let group = GROUP * S::LANES;
    // SAFETY: the caller vouches for the weights. Written out: a closure would not have the target's features where it is not inlined.
    let w = unsafe {
        [
            [s.load_weights(weights), s.load_weights(weights.add(group))],
            [s.load_weights(weights.add(2 * group)), s.load_weights(weights.add(3 * group))],
        ]
    };
    for (i, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the words.
        let a = unsafe { [s.splat_i(*input.add(i * stride)), s.splat_i(*input.add(i * stride + 1))] };
        for (sum, w) in sums.iter_mut().zip(w) {
            *sum = match SUMS {
                SMALL => s.dot_small(*sum, w, a),
                PAIRS => s.dot(*sum, w, a),
                _ => s.dot_wide(*sum, w, a),
            };
        }
    }
}
