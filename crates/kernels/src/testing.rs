//! Helpers for kernel tests: awkward sizes, random numbers, comparison with a twin.

use crate::Key;

/// Zero, one, and sizes around every vector width and its double.
pub(crate) const SIZES: &[usize] = &[0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100];

/// Random numbers in [−2, 2).
pub(crate) fn random(n: usize, seed: u64) -> Vec<f32> {
    let key = Key::new(seed);
    (0..n).map(|i| 4.0 * key.uniform(i as u32) - 2.0).collect()
}

/// The same values in `f64`.
pub(crate) fn widen(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// The matrix `[rows, cols]` as `[cols, rows]`.
pub(crate) fn transposed(x: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..rows * cols).map(|i| x[i % rows * cols + i / rows]).collect()
}

/// Asserts `|got − want| ≤ tolerance · max(1, |want|)`, and NaN and infinity where expected.
#[track_caller]
pub(crate) fn assert_close(got: &[f32], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let g = f64::from(g);
        let same = if w.is_finite() {
            (g - w).abs() <= tolerance * w.abs().max(1.0)
        } else {
            g == w || (g.is_nan() && w.is_nan())
        };
        assert!(same, "{what}: number {i} is {g}, not {w}");
    }
}
