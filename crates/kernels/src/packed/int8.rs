//! Packed weights in 8 bits, and inputs quantised row by row.

use super::aligned::Aligned;
use super::panel_width;
use super::single::Place;
use crate::Isa;
use crate::mat::{Mat, MatMut};
use crate::simd::loops::{Place as _, vectors};
use crate::simd::{Simd, group, simd_kernel, zero_point};
use std::ops::Range;

const ROWS: usize = 6;

/// The largest number in 8 bits; −128 is not used, so that a number and its negative are as exact as each other.
const LARGEST: f32 = 127.0;

/// Rows in 8 bits and the scale of each: `w ≈ value · scale`. A row of zeros has the scale 0; one with a NaN or an infinity a NaN.
pub fn quantize_rows(w: &[f32], k: usize) -> (Vec<i8>, Vec<f32>) {
    let mut values = Vec::with_capacity(w.len());
    let mut scales = Vec::with_capacity(w.len() / k.max(1));
    for row in w.chunks_exact(k.max(1)) {
        let (scale, factor) =
            scale_of(row.iter().fold(0.0, |m: f32, x| m.max(x.abs())), row.iter().map(|x| x * 0.0).sum());
        scales.push(scale);
        values.extend(row.iter().map(|x| (x * factor).round_ties_even() as i8));
    }
    (values, scales)
}

/// The scale of a row, and its inverse. `odd` is 0, or NaN if the row has a NaN or an infinity.
#[inline(always)]
fn scale_of(largest: f32, odd: f32) -> (f32, f32) {
    let factor = if largest > 0.0 { LARGEST / largest } else { 0.0 };
    (largest / LARGEST + odd, factor)
}

/// `[panel][k / group][2 · lanes][group]`
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    k: usize,
    /// `k` in groups, a whole number of vectors.
    groups: usize,
    group: usize,
    panels: Aligned<i8>,
    scales: Vec<f32>,
    /// What each sum starts with: it takes the zero point of the input away.
    starts: Vec<i32>,
}

/// How an instruction set wants weights and inputs to lie.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Columns of a panel.
    width: usize,
    /// Neighbouring numbers that are multiplied and added at once.
    group: usize,
    /// What each number of the input has been raised by.
    zero_point: i32,
}

impl Layout {
    fn of(isa: Isa) -> Self {
        Layout { width: panel_width(isa), group: group(isa), zero_point: zero_point(isa) }
    }

    /// How many words a row of `k` numbers takes: whole vectors of them.
    fn groups(self, k: usize) -> usize {
        let lanes = self.width / 2;
        k.div_ceil(lanes * self.group) * lanes
    }
}

impl Bytes {
    pub(super) fn pack(isa: Isa, values: &[i8], scales: &[f32], k: usize) -> Self {
        Self::pack_as(Layout::of(isa), values, scales, k)
    }

    fn pack_as(layout: Layout, values: &[i8], scales: &[f32], k: usize) -> Self {
        let Layout { width, group, zero_point } = layout;
        let (n, groups) = (scales.len(), layout.groups(k));
        let padded = n.next_multiple_of(width);
        let mut panels = Aligned::zeros(padded * groups * group);
        let mut starts = vec![0; padded];
        let to = panels.as_mut_slice();
        for (i, row) in values.chunks_exact(k.max(1)).enumerate() {
            let start = i / width * groups * group * width + i % width * group;
            for (g, part) in row.chunks(group).enumerate() {
                let at = start + g * width * group;
                to[at..at + part.len()].copy_from_slice(part);
            }
            starts[i] = -zero_point * row.iter().map(|&x| i32::from(x)).sum::<i32>();
        }
        let scales = scales.iter().copied().chain(std::iter::repeat_n(0.0, padded - n)).collect();
        Bytes { k, groups, group, panels, scales, starts }
    }

    pub(super) fn bytes(&self) -> usize {
        self.panels.bytes() + 8 * self.scales.len()
    }

    pub(super) fn read_row(&self, width: usize, i: usize, to: &mut [f32]) {
        let size = self.groups * self.group * width;
        let panel = &self.panels.as_slice()[i / width * size..][..size];
        for (t, x) in to.iter_mut().enumerate() {
            let at = t / self.group * width * self.group + i % width * self.group + t % self.group;
            *x = f32::from(panel[at]) * self.scales[i];
        }
    }

    pub(super) fn product(
        &self,
        isa: Isa,
        x: &Quantized,
        columns: Range<usize>,
        bias: Option<&[f32]>,
        to: MatMut<'_>,
    ) {
        assert!(x.cols == self.k && x.groups == self.groups);
        product(isa, self, x, columns, bias, to);
    }
}

/// Rows of the input in 8 bits, in the order in which the kernel wants them.
#[derive(Clone, Debug, Default)]
pub(super) struct Quantized {
    pub(super) rows: usize,
    pub(super) cols: usize,
    groups: usize,
    words: Vec<i32>,
    scales: Vec<f32>,
}

impl Quantized {
    pub(super) fn fill(&mut self, isa: Isa, x: Mat<'_>) {
        (self.rows, self.cols, self.groups) = (x.rows, x.cols, Layout::of(isa).groups(x.cols));
        self.words.resize(self.rows * self.groups, 0);
        self.scales.resize(self.rows, 0.0);
        quantize(isa, x, &mut self.words, &mut self.scales);
    }
}

#[inline(always)]
fn quantize_body<S: Simd>(s: S, x: Mat<'_>, words: &mut [i32], scales: &mut [f32]) {
    let step = S::LANES * S::GROUP;
    let groups = x.cols.div_ceil(step) * S::LANES;
    assert!(words.len() == x.rows * groups && scales.len() == x.rows);
    for (r, scale) in scales.iter_mut().enumerate() {
        let row = x.row(r);
        let (mut top, mut odd) = (s.zero(), s.zero());
        vectors!(S, row.len(), at => {
            let v = at.read(s, row);
            top = s.max(s.max(v, s.sub(s.zero(), v)), top);
            odd = s.mul_add(v, s.zero(), odd);
        });
        let factor;
        (*scale, factor) = scale_of(s.reduce_max(top), s.reduce_sum(odd));
        let factor = s.splat(factor);
        let words = &mut words[r * groups..][..groups];
        for (part, to) in row.chunks(step).zip(words.chunks_exact_mut(S::LANES)) {
            // SAFETY: a part has `step` numbers at most, and a chunk of words is a vector.
            unsafe { s.quantize(part.as_ptr(), part.len(), factor, to.as_mut_ptr()) };
        }
    }
}
simd_kernel! {
    fn quantize(x: Mat<'_>, words: &mut [i32], scales: &mut [f32]) = quantize_body;
}

#[inline(always)]
fn body<S: Simd>(
    s: S,
    w: &Bytes,
    x: &Quantized,
    columns: Range<usize>,
    bias: Option<&[f32]>,
    mut to: MatMut<'_>,
) {
    let (m, groups, width) = (x.rows, w.groups, 2 * S::LANES);
    let size = groups * width * S::GROUP;
    let panels = w.panels.as_slice();
    assert!(w.group == S::GROUP && x.words.len() == m * groups && x.scales.len() == m);
    assert!(to.rows == m && to.cols == columns.len() && columns.start.is_multiple_of(width));
    let all = columns.end.div_ceil(width);
    assert!(all * size <= panels.len() && all * width <= w.starts.len() && all * width <= w.scales.len());
    assert!(bias.is_none_or(|b| b.len() >= columns.end));
    for start in columns.clone().step_by(width) {
        let valid = width.min(columns.end - start);
        let mut offset = [0.0; 64];
        if let Some(bias) = bias {
            offset[..valid].copy_from_slice(&bias[start..start + valid]);
        }
        let panel = Panel {
            weights: panels[start / width * size..].as_ptr(),
            starts: w.starts[start..].as_ptr(),
            scales: w.scales[start..].as_ptr(),
            offset: offset.as_ptr(),
        };
        let mut i = 0;
        while i < m {
            let rows = ROWS.min(m - i);
            // SAFETY: rows `i .. i + rows` of input and output are there, as is the panel: asserted above.
            unsafe {
                let input = (x.words.as_ptr().add(i * groups), x.scales.as_ptr().add(i));
                let place = Place {
                    to: to.as_ptr().add(i * to.stride + (start - columns.start)),
                    stride: to.stride,
                    valid,
                };
                match rows {
                    6 => tile::<S, 6>(s, groups, input, panel, place),
                    5 => tile::<S, 5>(s, groups, input, panel, place),
                    4 => tile::<S, 4>(s, groups, input, panel, place),
                    3 => tile::<S, 3>(s, groups, input, panel, place),
                    2 => tile::<S, 2>(s, groups, input, panel, place),
                    _ => tile::<S, 1>(s, groups, input, panel, place),
                }
            }
            i += rows;
        }
    }
}
simd_kernel! {
    fn product(w: &Bytes, x: &Quantized, columns: Range<usize>, bias: Option<&[f32]>, to: MatMut<'_>) = body;
}

/// A panel of weights with what belongs to its columns.
#[derive(Clone, Copy)]
struct Panel {
    weights: *const i8,
    starts: *const i32,
    scales: *const f32,
    offset: *const f32,
}

/// `R` rows by one panel.
///
/// # Safety
/// `R` rows of `groups` words and `R` scales can be read at `x`, `groups` groups at `panel`, and `place` can be written.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize>(
    s: S,
    groups: usize,
    (words, scales): (*const i32, *const f32),
    panel: Panel,
    place: Place,
) {
    // SAFETY: the caller vouches for all of it; a panel has two vectors of each of its numbers.
    unsafe {
        let mut sums = [[s.load_i(panel.starts), s.load_i(panel.starts.add(S::LANES))]; R];
        for g in 0..groups {
            let at = panel.weights.add(g * 2 * S::LANES * S::GROUP);
            let w = [s.load_weights(at), s.load_weights(at.add(S::LANES * S::GROUP))];
            for (i, sums) in sums.iter_mut().enumerate() {
                let a = s.splat_i(*words.add(i * groups + g));
                sums[0] = s.dot(sums[0], w[0], a);
                sums[1] = s.dot(sums[1], w[1], a);
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            let scale = s.splat(*scales.add(i));
            let mut out = [s.zero(); 2];
            for (j, out) in out.iter_mut().enumerate() {
                let scale = s.mul(scale, s.load(panel.scales.add(j * S::LANES)));
                *out = s.mul_add(s.int_to_float(sums[j]), scale, s.load(panel.offset.add(j * S::LANES)));
            }
            place.write(s, i, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    /// What the kernel does with a layout, in plain loops: also that of instruction sets which this machine lacks.
    fn by_layout(layout: Layout, values: &[i8], k: usize, x: &[i32]) -> Vec<i32> {
        let n = values.len() / k;
        let packed = Bytes::pack_as(layout, values, &vec![1.0; n], k);
        let Layout { width, group, zero_point } = layout;
        let padded: Vec<i32> =
            (0..packed.groups * group).map(|t| x.get(t).unwrap_or(&0) + zero_point).collect();
        let panels = packed.panels.as_slice();
        let column = |i: usize| {
            let panel = &panels[i / width * packed.groups * group * width..];
            let product = |(t, x): (usize, &i32)| {
                let weight = panel[t / group * width * group + i % width * group + t % group];
                i32::from(weight) * x
            };
            packed.starts[i] + padded.iter().enumerate().map(product).sum::<i32>()
        };
        (0..n).map(column).collect()
    }

    #[test]
    fn the_layouts_of_all_instruction_sets_mean_the_same() {
        let layouts = [(16, 2, 0), (8, 2, 0), (32, 4, 128)].map(|(width, group, zero_point)| Layout {
            width,
            group,
            zero_point,
        });
        for (n, k) in [(1, 1), (5, 3), (33, 70), (40, 64), (64, 129)] {
            let whole = |count: usize, seed: u64| -> Vec<i32> {
                random(count, seed).iter().map(|x| (x * 63.0).round() as i32).collect()
            };
            let (w, x) = (whole(n * k, 1), whole(k, 2));
            let values: Vec<i8> = w.iter().map(|&w| w as i8).collect();
            let want: Vec<i32> =
                w.chunks(k).map(|row| row.iter().zip(&x).map(|(w, x)| w * x).sum()).collect();
            for layout in layouts {
                assert_eq!(by_layout(layout, &values, k, &x), want, "{layout:?} {n}×{k}");
            }
        }
    }
}
