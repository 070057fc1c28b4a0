//! Row-major matrix views: the arguments of kernels.
//!
//! The row stride of a view may exceed its width. Queries, keys and values that one matmul has
//! written side by side are then three views of one buffer, and so are their gradients.

use std::marker::PhantomData;

/// A read-only matrix: element `(r, c)` is at offset `r · row_stride + c · col_stride`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
}

impl<'a> Mat<'a> {
    /// A `[rows, cols]` matrix that fills `data`.
    ///
    /// # Panics
    /// If `data` has another length.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "a {rows}×{cols} matrix of {} numbers", data.len());
        Mat { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All elements of a matrix that fills its data.
    ///
    /// # Panics
    /// If it is part of a larger matrix, or transposed.
    pub fn data(&self) -> &'a [f32] {
        assert!(self.data.len() == self.rows * self.cols && (self.col_stride == 1 || self.data.is_empty()));
        self.data
    }

    /// The transpose, without copying.
    pub fn t(self) -> Self {
        Mat {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The columns `from .. from + cols`.
    ///
    /// # Panics
    /// If they do not all exist.
    pub fn columns(self, from: usize, cols: usize) -> Self {
        assert!(from + cols <= self.cols, "columns {from}..{} of {}", from + cols, self.cols);
        // An empty view has no valid start beyond 0.
        let start = if self.rows == 0 || cols == 0 { 0 } else { from * self.col_stride };
        Mat { data: &self.data[start..], cols, ..self }
    }

    /// The rows `from .. from + rows`.
    ///
    /// # Panics
    /// If they do not all exist.
    pub fn rows_from(self, from: usize, rows: usize) -> Self {
        assert!(from + rows <= self.rows, "rows {from}..{} of {}", from + rows, self.rows);
        let start = if rows == 0 || self.cols == 0 { 0 } else { from * self.row_stride };
        Mat { data: &self.data[start..], rows, ..self }
    }

    /// Row `r` of a matrix that is not transposed.
    #[inline(always)]
    pub fn row(&self, r: usize) -> &'a [f32] {
        assert!(r < self.rows && self.col_stride == 1);
        &self.data[r * self.row_stride..][..self.cols]
    }

    /// Whether every element lies inside the data; raw access relies on this.
    pub(crate) fn is_within(&self) -> bool {
        self.rows == 0
            || self.cols == 0
            || (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride < self.data.len()
    }
}

/// A writable matrix whose rows lie `stride` apart.
#[derive(Debug)]
pub struct MatMut<'a> {
    ptr: *mut f32,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
    lifetime: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is a `&mut [f32]` with gaps; no two views share an element.
unsafe impl Send for MatMut<'_> {}

impl<'a> MatMut<'a> {
    /// A `[rows, cols]` matrix that fills `data`.
    ///
    /// # Panics
    /// If `data` has another length.
    pub fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "a {rows}×{cols} matrix of {} numbers", data.len());
        MatMut { ptr: data.as_mut_ptr(), rows, cols, stride: cols, lifetime: PhantomData }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Reborrows the same matrix for a shorter time.
    pub fn reborrow(&mut self) -> MatMut<'_> {
        MatMut { ptr: self.ptr, rows: self.rows, cols: self.cols, stride: self.stride, lifetime: PhantomData }
    }

    /// Splits into the first `at` columns and the others.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_columns(self, at: usize) -> (MatMut<'a>, MatMut<'a>) {
        assert!(at <= self.cols, "column {at} of {}", self.cols);
        let right = MatMut {
            // With rows, `at <= cols <= stride` stays within (or one past) the first row;
            // `wrapping_add` has no safety requirement.
            ptr: self.ptr.wrapping_add(at),
            cols: self.cols - at,
            ..self
        };
        (MatMut { cols: at, ..self }, right)
    }

    /// Splits into the first `at` rows and the others.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_rows(self, at: usize) -> (MatMut<'a>, MatMut<'a>) {
        assert!(at <= self.rows, "row {at} of {}", self.rows);
        let below = MatMut { ptr: self.ptr.wrapping_add(at * self.stride), rows: self.rows - at, ..self };
        (MatMut { rows: at, ..self }, below)
    }

    /// The rows `from .. from + rows`.
    ///
    /// # Panics
    /// If they do not all exist.
    pub fn rows_from(self, from: usize, rows: usize) -> MatMut<'a> {
        assert!(from + rows <= self.rows, "rows {from}..{} of {}", from + rows, self.rows);
        MatMut { ptr: self.ptr.wrapping_add(from * self.stride), rows, ..self }
    }

    /// Row `r`.
    #[inline(always)]
    pub fn row(&mut self, r: usize) -> &mut [f32] {
        assert!(r < self.rows);
        // SAFETY: the row lies in the borrowed data, no other view holds its elements, and `&mut
        // self` keeps the reference unique.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(r * self.stride), self.cols) }
    }

    /// A pointer to the first element.
    #[inline(always)]
    pub(crate) fn as_ptr(&mut self) -> *mut f32 {
        self.ptr
    }

    /// Sets every element to `x`.
    pub fn fill(&mut self, x: f32) {
        for r in 0..self.rows {
            self.row(r).fill(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_buffer_are_written_apart() {
        let mut data = vec![0.0; 12];
        let (mut q, rest) = MatMut::new(&mut data, 2, 6).split_columns(2);
        let (mut k, mut v) = rest.split_columns(1);
        q.fill(1.0);
        k.fill(2.0);
        v.row(1).copy_from_slice(&[7.0, 8.0, 9.0]);
        assert_eq!(data, [1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 7.0, 8.0, 9.0]);
        let m = Mat::new(&data, 2, 6);
        assert_eq!(m.columns(3, 3).row(1), [7.0, 8.0, 9.0]);
        assert_eq!(m.rows_from(1, 1).columns(2, 2).row(0), [2.0, 7.0]);
        assert_eq!((m.t().rows(), m.t().cols()), (6, 2));
    }

    #[test]
    fn empty_views_do_not_reach_past_the_end() {
        let m = Mat::new(&[], 0, 4);
        assert_eq!(m.columns(4, 0).rows(), 0);
        assert_eq!(m.columns(2, 2).cols(), 2);
        assert_eq!(Mat::new(&[1.0, 2.0], 2, 1).rows_from(2, 0).rows(), 0);
        let mut none = [];
        let (left, right) = MatMut::new(&mut none, 0, 5).split_columns(5);
        assert_eq!((left.cols(), right.cols()), (5, 0));
    }
}
