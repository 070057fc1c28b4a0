//! Gemm of large matrices, in f32 or in bf16, the upper half of an f32: operands rounded to 8
//! bits of mantissa, sums in f32.
//!
//! The operands are f32 matrices. Those that are rounded are so while they are packed, so that no
//! copy in bf16 has to be kept; of weights, which many products read, one can be: [`PackedB`]. What
//! the numbers are is said at [`Gemm`].

// Only x86 has the instruction; elsewhere the tests run its model.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod bf16;
mod panels;
mod packed_b;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod rounding;
mod f32_kernel;

pub use packed_b::{PackedB, Right};

use crate::mat::{Mat, MatMut};
use crate::{Isa, Timer};
use packed_b::Operand;
use panels::Layout;
use rounding::rounded;

/// What a product does to what was in its output before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accumulate {
    /// `C = A·B`
    Overwrite,
    /// `C += A·B`
    Add,
}

/// How matrix multiplications are made: on which instruction set, and with operands in f32 or in bf16.
///
/// **The order of a sum** over `k` is from its beginning to its end, in blocks of 256 (f32) or 512
/// (bf16) that are added to the output one after the other. A number of the result therefore
/// depends on its own row and column alone, whatever the size of the matrices and however the work
/// is split over threads.
///
/// **In bf16** the operands are rounded to the nearest bf16, ties to even. The sum runs in f32, in
/// each block in the order of `vdpbf16ps`: of two neighbours the second is added first.
///
/// **What is not finite** spreads through its row or column as the sum of products says. A NaN
/// stays one when it is rounded, an infinity too; f32 numbers from 3.3961·10³⁸ on become infinite.
/// **Denormals** are ordinary in f32. The instruction takes them for zero in its operands and
/// writes zero for them in its sums, whatever the state of the CPU; adding a block to the output is
/// ordinary f32.
///
/// **In software** the operands are rounded in the same way and multiplied by the f32 product: the
/// same rounding of the operands, the same precision of the sums, but another order, and denormals
/// are kept. It is for tests on other CPUs, not for speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gemm {
    isa: Isa,
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    F32,
    /// Exists only where the CPU has the instruction.
    Bf16,
    Bf16InSoftware,
}

impl Gemm {
    /// Operands as they are.
    pub fn f32(isa: Isa) -> Self {
        Gemm { isa, format: Format::F32 }
    }

    /// Operands rounded to bf16, if the CPU has products of them.
    pub fn bf16(isa: Isa) -> Option<Self> {
        isa.has_bf16().then_some(Gemm { isa, format: Format::Bf16 })
    }

    /// Operands rounded to bf16, then multiplied as f32: on every machine, and slower than f32.
    pub fn bf16_in_software(isa: Isa) -> Self {
        Gemm { isa, format: Format::Bf16InSoftware }
    }

    /// The instruction set.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// Whether they round their operands.
    pub fn round(self) -> bool {
        self.format != Format::F32
    }

    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self.format {
            Format::F32 => "f32",
            Format::Bf16 => "bf16",
            Format::Bf16InSoftware => "bf16 in software",
        }
    }

    /// How these products want their right operand.
    fn layout(self) -> Layout {
        match self.format {
            Format::F32 | Format::Bf16InSoftware => f32_kernel::layout_of(self.isa),
            Format::Bf16 => bf16::LAYOUT,
        }
    }

    /// `C = A·B` or `C += A·B`, with `A [m, k]` and `B [k, n]` transposed as their views say, on up
    /// to `threads` cores; with 1 it starts none. `B` is a matrix or [`PackedB`] by the same
    /// products.
    ///
    /// # Panics
    /// If the shapes do not fit, or if `B` was packed by other products.
    pub fn matmul<'b>(
        self,
        c: MatMut<'_>,
        a: Mat<'_>,
        b: impl Into<Right<'b>>,
        into: Accumulate,
        threads: usize,
    ) {
        let Right { operand: b, packed_for } = b.into();
        assert!(
            packed_for.is_none_or(|by| by == self.format),
            "an operand packed for {packed_for:?} in {}",
            self.name()
        );
        match self.format {
            Format::F32 => f32_kernel::product(self.isa, c, a, b, into, threads),
            Format::Bf16 => bf16::in_hardware(self.isa, c, a, b, into, threads),
            Format::Bf16InSoftware => {
                let timer = Timer::start();
                let (left, right) =
                    (rounded(a), if let Operand::Matrix(b) = b { rounded(b) } else { Vec::new() });
                let b = match b {
                    Operand::Matrix(b) => Operand::Matrix(Mat { data: &right, ..b }),
                    packed => packed,
                };
                drop(timer);
                f32_kernel::product(self.isa, c, Mat { data: &left, ..a }, b, into, threads);
            }
        }
    }
}

/// [`Gemm::matmul`] in f32.
pub fn matmul(isa: Isa, c: MatMut<'_>, a: Mat<'_>, b: Mat<'_>, into: Accumulate, threads: usize) {
    Gemm::f32(isa).matmul(c, a, b, into, threads);
}

/// Whether there was nothing to multiply, and what that leaves to do has been done.
///
/// # Panics
/// If the shapes do not fit.
fn is_done(c: &mut MatMut<'_>, a: Mat<'_>, b: Operand<'_>, into: Accumulate) -> bool {
    let ((m, k), (rows, n)) = ((a.rows, a.cols), b.shape());
    assert!(
        rows == k && c.rows == m && c.cols == n,
        "product of {m}×{k} and {rows}×{n} into {}×{}",
        c.rows,
        c.cols
    );
    assert!(a.is_within());
    if let Operand::Matrix(b) = b {
        assert!(b.is_within());
    }
    if k == 0 && into == Accumulate::Overwrite {
        c.fill(0.0);
    }
    m == 0 || n == 0 || k == 0
}

/// Makes a product by what makes some of its rows, on up to `threads` threads; each but the last
/// gets a multiple of `least` rows.
///
/// # Panics
/// If the shapes do not fit.
fn over_rows(
    (mut c, a, b): (MatMut<'_>, Mat<'_>, Operand<'_>),
    into: Accumulate,
    least: usize,
    threads: usize,
    run: &(impl Fn(MatMut<'_>, Mat<'_>) + Sync),
) {
    if is_done(&mut c, a, b, into) {
        return;
    }
    let _timer = Timer::start();
    let m = a.rows;
    let share = m.div_ceil(threads.max(1)).next_multiple_of(least);
    if share >= m {
        return run(c, a);
    }
    rayon::scope(|scope| {
        let mut rest = c;
        for start in (0..m).step_by(share) {
            let rows = share.min(m - start);
            let (part, others) = rest.split_rows(rows);
            rest = others;
            scope.spawn(move |_| run(part, a.rows_from(start, rows)));
        }
    });
}

#[cfg(test)]
mod tests;
