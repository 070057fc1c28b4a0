//! Packed weights in f32.

use super::{Epilogue, panel_width, with_rows};
use crate::Isa;
use crate::aligned::Aligned;
use crate::mat::{Mat, MatMut};
use crate::simd::{Simd, simd_kernel};
use std::ops::Range;

/// Rows of a tile: twelve sums in flight hide the latency of a fused product, and fit sixteen registers with their operands.
const ROWS: usize = 6;

/// `[panel][k][2 · lanes]`
#[derive(Clone, Debug)]
pub(super) struct F32Weights {
    k: usize,
    panels: Aligned<f32>,
}

impl F32Weights {
    pub(super) fn pack(isa: Isa, w: &[f32], n: usize, k: usize) -> Self {
        let width = panel_width(isa);
        let mut panels = Aligned::zeros(n.div_ceil(width) * k * width);
        let to = panels.as_mut_slice();
        for (i, row) in w.chunks_exact(k.max(1)).enumerate() {
            let start = i / width * k * width + i % width;
            for (t, x) in row.iter().enumerate() {
                to[start + t * width] = *x;
            }
        }
        F32Weights { k, panels }
    }

    pub(super) fn bytes(&self) -> usize {
        self.panels.bytes()
    }

    pub(super) fn read_row(&self, width: usize, i: usize, to: &mut [f32]) {
        let panel = &self.panels.as_slice()[i / width * self.k * width..][..self.k * width];
        for (x, row) in to.iter_mut().zip(panel.chunks_exact(width)) {
            *x = row[i % width];
        }
    }

    pub(super) fn matmul(
        &self,
        isa: Isa,
        x: Mat<'_>,
        columns: Range<usize>,
        epilogue: Epilogue<'_>,
        to: MatMut<'_>,
    ) {
        product(isa, self.panels.as_slice(), x, columns, epilogue, to);
    }
}

#[inline(always)]
fn body<S: Simd>(
    s: S,
    panels: &[f32],
    x: Mat<'_>,
    columns: Range<usize>,
    epilogue: Epilogue<'_>,
    mut to: MatMut<'_>,
) {
    let (m, k, width) = (x.rows, x.cols, 2 * S::LANES);
    assert!(x.col_stride == 1 && x.is_within() && to.rows == m && to.cols == columns.len());
    assert!(columns.start.is_multiple_of(width) && columns.end.div_ceil(width) * k * width <= panels.len());
    assert!(epilogue.bias.is_none_or(|b| b.len() >= columns.end));
    for start in columns.clone().step_by(width) {
        let valid = width.min(columns.end - start);
        let mut offset = [0.0; 64];
        if let Some(bias) = epilogue.bias {
            offset[..valid].copy_from_slice(&bias[start..start + valid]);
        }
        let panel = panels[start * k..].as_ptr();
        let mut i = 0;
        while i < m {
            let rows = ROWS.min(m - i);
            // SAFETY: rows `i .. i + rows` of `x` and `to` are there, as is the panel: asserted above.
            unsafe {
                let from = x.data.as_ptr().add(i * x.row_stride);
                let c = OutputTile {
                    to: to.as_ptr().add(i * to.stride + (start - columns.start)),
                    stride: to.stride,
                    valid,
                    relu: epilogue.relu,
                };
                with_rows!(rows, ROWS, R => tile::<S, R>(s, k, (from, x.row_stride), panel, &offset, c))
            }
            i += rows;
        }
    }
}
simd_kernel! {
    fn product(panels: &[f32], x: Mat<'_>, columns: Range<usize>, epilogue: Epilogue<'_>, to: MatMut<'_>) = body;
}

/// Where a tile of the result goes: the first of its rows, their distance, how many columns there are, and whether negative
/// numbers become 0.
#[derive(Clone, Copy)]
pub(super) struct OutputTile {
    pub(super) to: *mut f32,
    pub(super) stride: usize,
    pub(super) valid: usize,
    pub(super) relu: bool,
}

impl OutputTile {
    /// # Safety
    /// Row `i` can be written, and no other thread touches it.
    #[inline(always)]
    pub(super) unsafe fn write<S: Simd>(self, s: S, i: usize, values: [S::F; 2]) {
        // SAFETY: the caller vouches for the row, of which `valid` columns are written.
        unsafe {
            let to = self.to.add(i * self.stride);
            let [a, b] = values;
            let values = if self.relu { [s.max(s.zero(), a), s.max(s.zero(), b)] } else { values };
            if self.valid >= 2 * S::LANES {
                s.store(to, values[0]);
                s.store(to.add(S::LANES), values[1]);
            } else if self.valid > S::LANES {
                s.store(to, values[0]);
                s.store_partial(to.add(S::LANES), values[1], self.valid - S::LANES);
            } else {
                s.store_partial(to, values[0], self.valid);
            }
        }
    }
}

/// `R` rows by one panel.
///
/// # Safety
/// `R` rows of `k` floats can be read at `x`, `k · 2 · LANES` at `panel`, and `c` can be written.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize>(
    s: S,
    k: usize,
    (x, stride): (*const f32, usize),
    panel: *const f32,
    offset: &[f32; 64],
    c: OutputTile,
) {
    // SAFETY: the caller vouches for all of it; `offset` has two vectors at least.
    unsafe {
        let mut sums = [[s.zero(); 2]; R];
        for t in 0..k {
            let at = panel.add(t * 2 * S::LANES);
            let w = [s.load(at), s.load(at.add(S::LANES))];
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = s.splat(*x.add(i * stride + t));
                sums[0] = s.mul_add(x, w[0], sums[0]);
                sums[1] = s.mul_add(x, w[1], sums[1]);
            }
        }
        let bias = [s.load(offset.as_ptr()), s.load(offset.as_ptr().add(S::LANES))];
        for (i, sums) in sums.iter().enumerate() {
            c.write(s, i, [s.add(sums[0], bias[0]), s.add(sums[1], bias[1])]);
        }
    }
}
