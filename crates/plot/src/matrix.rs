//! The values of a heat map.

use crate::{Error, Result};

/// A matrix of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// A matrix from its values in row-major order.
    pub fn new(rows: usize, columns: usize, values: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(columns) != Some(values.len()) {
            let message = format!("{rows} rows of {columns} columns do not hold {} values", values.len());
            return Err(Error::Input { operation: "heat map", message });
        }
        Ok(Matrix { rows, columns, values })
    }

    /// A matrix from rows; short ones are padded with NaN, which is drawn as missing.
    pub fn from_rows<R: AsRef<[f32]>>(rows: &[R]) -> Self {
        let columns = rows.iter().map(|r| r.as_ref().len()).max().unwrap_or(0);
        let mut values = Vec::with_capacity(rows.len() * columns);
        for row in rows {
            values.extend_from_slice(row.as_ref());
            values.resize(values.len() + columns - row.as_ref().len(), f32::NAN);
        }
        Matrix { rows: rows.len(), columns, values }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The values in row-major order.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The value of a cell; NaN outside the matrix.
    pub fn get(&self, row: usize, column: usize) -> f32 {
        if column < self.columns {
            self.values.get(row * self.columns + column).copied().unwrap_or(f32::NAN)
        } else {
            f32::NAN
        }
    }

    /// The minimum and maximum of the finite values.
    pub fn extent(&self) -> Option<(f32, f32)> {
        let finite = self.values.iter().copied().filter(|v| v.is_finite());
        finite
            .fold(None, |e: Option<(f32, f32)>, v| Some(e.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v)))))
    }

    /// The columns `from..to`.
    pub(super) fn slice_columns(&self, from: usize, to: usize) -> Matrix {
        let (from, to) = (from.min(self.columns), to.min(self.columns));
        let rows: Vec<&[f32]> = self.values.chunks(self.columns.max(1)).map(|row| &row[from..to]).collect();
        Matrix::from_rows(&rows)
    }

    /// Averages blocks so that no side is longer than `most`, and returns the size of a block, too.
    pub(super) fn shrunk(&self, most: usize) -> (Matrix, (usize, usize)) {
        let block = (self.rows.div_ceil(most).max(1), self.columns.div_ceil(most).max(1));
        if block == (1, 1) {
            return (self.clone(), block);
        }
        let (rows, columns) = (self.rows.div_ceil(block.0), self.columns.div_ceil(block.1));
        let mut values = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let (mut sum, mut count) = (0.0, 0);
                for r in row * block.0..((row + 1) * block.0).min(self.rows) {
                    for c in column * block.1..((column + 1) * block.1).min(self.columns) {
                        let v = self.values[r * self.columns + c];
                        if !v.is_nan() {
                            (sum, count) = (sum + f64::from(v), count + 1);
                        }
                    }
                }
                values.push(if count == 0 { f32::NAN } else { (sum / f64::from(count)) as f32 });
            }
        }
        (Matrix { rows, columns, values }, block)
    }
}

/// The ends of a colour scale: the given range, otherwise from 0 to the maximum if no value is
/// negative, otherwise the range of the values.
pub(super) fn scale_range(asked: Option<(f32, f32)>, extent: Option<(f32, f32)>) -> (f64, f64) {
    let (lo, hi) = match (asked, extent) {
        (Some(range), _) => (f64::from(range.0), f64::from(range.1)),
        (None, None) => (0.0, 1.0),
        (None, Some((lo, hi))) if lo >= 0.0 && hi > 0.0 => (0.0, f64::from(hi)),
        (None, Some((lo, hi))) if lo == 0.0 && hi == 0.0 => (0.0, 1.0),
        (None, Some((lo, hi))) => (f64::from(lo), f64::from(hi)),
    };
    super::ticks::sane_range(lo, hi)
}

/// The position of a value on a scale, from 0 to 1; `None` for NaN.
pub(super) fn position(value: f32, (lo, hi): (f64, f64)) -> Option<f64> {
    if value.is_nan() {
        return None;
    }
    Some(((f64::from(value) - lo) / (hi - lo)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked() {
        assert_eq!(Matrix::new(2, 3, vec![0.0; 6]).unwrap().columns(), 3);
        let message = Matrix::new(2, 3, vec![0.0; 5]).unwrap_err().to_string();
        assert_eq!(message, "heat map: 2 rows of 3 columns do not hold 5 values");
        assert!(Matrix::new(usize::MAX, 2, vec![]).is_err());
        assert_eq!(Matrix::new(0, 4, vec![]).unwrap().extent(), None);
    }

    #[test]
    fn ragged_rows_are_filled_with_nothing() {
        let m = Matrix::from_rows(&[vec![1.0, 2.0], vec![3.0]]);
        assert_eq!((m.rows(), m.columns()), (2, 2));
        assert!(m.get(1, 1).is_nan());
        assert!(m.get(0, 9).is_nan());
        assert_eq!(m.get(1, 0), 3.0);
        assert_eq!(m.extent(), Some((1.0, 3.0)));
    }

    #[test]
    fn shrinking_averages_blocks() {
        let m = Matrix::from_rows(&[[1.0, 3.0, 5.0], [1.0, 3.0, f32::NAN]]);
        let (small, block) = m.shrunk(2);
        assert_eq!(block, (1, 2));
        assert_eq!(small.values()[..3], [2.0, 5.0, 2.0]);
        assert!(small.get(1, 1).is_nan());
        assert_eq!(m.shrunk(3).0.rows(), 2);
        assert_eq!(m.slice_columns(1, 2).values(), [3.0, 3.0]);
    }

    #[test]
    fn scales_of_ordinary_and_odd_data() {
        assert_eq!(scale_range(None, Some((0.1, 0.8))), (0.0, f64::from(0.8f32)));
        assert_eq!(scale_range(None, Some((-1.0, 1.0))), (-1.0, 1.0));
        assert_eq!(scale_range(None, Some((0.0, 0.0))), (0.0, 1.0));
        assert_eq!(scale_range(None, Some((-2.0, -2.0))), (-3.0, -1.0));
        assert_eq!(scale_range(None, None), (0.0, 1.0));
        assert_eq!(scale_range(Some((1.0, 0.0)), None), (0.0, 1.0));
        assert_eq!(scale_range(Some((f32::NAN, 0.5)), None).0, 0.25);
        assert_eq!(position(0.5, (0.0, 1.0)), Some(0.5));
        assert_eq!(position(f32::INFINITY, (0.0, 1.0)), Some(1.0));
        assert_eq!(position(f32::NEG_INFINITY, (0.0, 1.0)), Some(0.0));
        assert_eq!(position(f32::NAN, (0.0, 1.0)), None);
    }
}
