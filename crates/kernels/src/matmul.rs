//! Products of large matrices: the `gemm` crate behind an interface of our own, which other number formats can join.

use crate::block::{Left, Out, Right};
use crate::mat::{Mat, MatMut};
use crate::simd::{Simd, simd_kernel};
use crate::{Isa, Timer};

/// What a product does to what was in its output before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Into {
    /// `C = A·B`
    Overwrite,
    /// `C += A·B`
    Add,
}

/// `C = A·B` or `C += A·B`, with `A [m, k]` and `B [k, n]` transposed as their views say.
///
/// `threads` is how many cores the product may use; with 1 it starts none. The `gemm` crate chooses its instruction set
/// itself, so that when another than the best has been forced the product is done by our own block kernel, several times
/// slower. A row of the result does not depend on the other rows of `A` for `k` up to 512, and beyond that only by rounding. A NaN or infinity spreads through its row and column as the sum of products says.
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul(isa: Isa, mut c: MatMut<'_>, a: Mat<'_>, b: Mat<'_>, into: Into, threads: usize) {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    assert!(b.is_within());
    if is_done(&mut c, a, (b.rows, b.cols), into) {
        return;
    }
    let _timer = Timer::start();
    // For a few rows or columns the `gemm` crate changes to kernels that sum in another order: a sentence of one word
    // would not get the numbers that it gets in a batch. Our block kernel sums as its large one does.
    let few = m == 1 || n == 1 || m * n <= 256;
    if isa == Isa::best() && !few {
        let parallelism = match threads {
            0 | 1 => gemm::Parallelism::None,
            n => gemm::Parallelism::Rayon(n),
        };
        // SAFETY: `is_within` has been asserted for A and B; C is a view whose rows lie in its own data.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                c.as_ptr(),
                1,
                c.stride as isize,
                into == Into::Add,
                a.data.as_ptr(),
                a.col_stride as isize,
                a.row_stride as isize,
                b.data.as_ptr(),
                b.col_stride as isize,
                b.row_stride as isize,
                1.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
        }
    } else {
        // The block kernel reads along the rows of B: copy it where they are not neighbours.
        let mut copy = Vec::new();
        let b = if b.col_stride == 1 {
            b
        } else {
            copy.extend((0..k * n).map(|i| b.data[i / n * b.row_stride + i % n * b.col_stride]));
            Mat::new(&copy, k, n)
        };
        by_blocks(isa, c, a, b, into);
    }
}

/// Whether there was nothing to multiply in the product of `a` and a matrix of that shape, and what that leaves to do has been done.
///
/// # Panics
/// If the shapes do not fit.
pub(crate) fn is_done(c: &mut MatMut<'_>, a: Mat<'_>, (rows, n): (usize, usize), into: Into) -> bool {
    let (m, k) = (a.rows, a.cols);
    assert!(
        rows == k && c.rows == m && c.cols == n,
        "product of {m}×{k} and {rows}×{n} into {}×{}",
        c.rows,
        c.cols
    );
    assert!(a.is_within());
    if k == 0 && into == Into::Overwrite {
        c.fill(0.0);
    }
    m == 0 || n == 0 || k == 0
}

#[inline(always)]
fn by_blocks_body<S: Simd>(s: S, mut c: MatMut<'_>, a: Mat<'_>, b: Mat<'_>, into: Into) {
    assert!(b.col_stride == 1 && a.is_within() && b.is_within());
    assert!(a.cols == b.rows && c.rows == a.rows && c.cols == b.cols);
    let left = Left { at: a.data.as_ptr(), row: a.row_stride, col: a.col_stride };
    let right = Right { at: b.data.as_ptr(), row: b.row_stride };
    let out = Out { at: c.as_ptr(), row: c.stride };
    // SAFETY: shapes and extents have just been asserted; C is a `&mut` view and overlaps nothing.
    unsafe { s.product((a.rows, b.cols, a.cols), left, right, out, into == Into::Add) }
}
simd_kernel! {
    fn by_blocks(c: MatMut<'_>, a: Mat<'_>, b: Mat<'_>, into: Into) = by_blocks_body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use crate::testing::{SIZES, assert_close, random, transposed, widen};

    #[test]
    fn every_transposition_agrees_with_the_naive_twin() {
        for isa in Isa::available() {
            for &m in &[0, 1, 5, 16, 33] {
                for &n in SIZES {
                    for &k in &[0, 1, 17, 64] {
                        let (a, b, old) = (random(m * k, 1), random(k * n, 2), random(m * n, 3));
                        let (at, bt) = (transposed(&a, m, k), transposed(&b, k, n));
                        let want = naive::product(&widen(&a), &widen(&b), m, n, k);
                        let plus: Vec<f64> = want.iter().zip(&old).map(|(w, o)| w + f64::from(*o)).collect();
                        let (a, at) = (Mat::new(&a, m, k), Mat::new(&at, k, m).t());
                        let (b, bt) = (Mat::new(&b, k, n), Mat::new(&bt, n, k).t());
                        for (a, b, form) in [(a, b, "nn"), (a, bt, "nt"), (at, b, "tn"), (at, bt, "tt")] {
                            for (into, want) in [(Into::Overwrite, &want), (Into::Add, &plus)] {
                                let mut c = old.clone();
                                matmul(isa, MatMut::new(&mut c, m, n), a, b, into, 1);
                                assert_close(&c, want, 1e-5, &format!("{isa} {form} {m}×{n}×{k} {into:?}"));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn two_threads_give_the_numbers_of_one() {
        let (m, n, k) = (130, 200, 70);
        let (a, b) = (random(m * k, 1), random(k * n, 2));
        let mut results = [1, 2].map(|threads| {
            let mut c = vec![0.0; m * n];
            let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
            matmul(Isa::best(), MatMut::new(&mut c, m, n), a, b, Into::Overwrite, threads);
            c
        });
        let [one, two] = &mut results;
        assert_close(two, &widen(one), 1e-6, "two threads");
    }

    #[test]
    #[should_panic(expected = "product of 2×3 and 2×3 into 2×3")]
    fn shapes_that_do_not_fit_are_named() {
        let x = [0.0; 6];
        let mut c = [0.0; 6];
        matmul(Isa::best(), MatMut::new(&mut c, 2, 3), Mat::new(&x, 2, 3), Mat::new(&x, 2, 3), Into::Add, 1);
    }
}
