//! The loop nest of every matmul: five loops around a micro-kernel (Goto and van de Geijn, "Anatomy
//! of High-Performance Matrix Multiplication", 2008; the letters are those of BLIS).
//!
//! ```text
//! for pc in 0..k by KC          blocks of the sum: what a tile adds up in registers
//!   for jc in 0..n by NC        blocks of columns: KC × NC of B are packed (or were before)
//!     for ic in 0..m by MC      blocks of rows: MC × KC of A are packed, or read in place
//!       for jr in NC by NR      a panel of B, which stays in the first-level cache while
//!         for ir in MC by MR    the rows of the block go by: a tile of C, R ≤ MR rows by NR columns
//!           micro-kernel        the sum over KC in registers, then into C
//! ```
//!
//! A number of the result is the sum over `k` in one order, whatever else is in the matrices: it
//! depends on its own row and column alone.

use super::packed_b::Operand;
use super::{Accumulate, Timer};
use crate::aligned::Aligned;
use crate::mat::{Mat, MatMut};
use crate::simd::Simd;
use std::cell::Cell;
use std::ops::Range;

/// The innermost loop of a matmul for one number format on one instruction set, with its operands
/// and the sizes of its blocks.
pub(super) trait MicroKernel {
    /// Rows of a tile: as many as fit the registers with two vectors of sums each, and enough of
    /// them to hide the latency of a multiplication. 12 at most.
    const MR: usize;
    /// Columns of a tile: two vectors, so that a number of A that is broadcast is used twice.
    const NR: usize;
    /// How much of `k` is summed in registers.
    const KC: usize;
    /// Rows of a block of A, a multiple of [`MR`](Self::MR).
    const MC: usize;
    /// Columns of a block of B, a multiple of [`NR`](Self::NR).
    const NC: usize;

    /// Makes a block of B ready, packing it unless it was packed before. Later calls are about this
    /// part of the sum and these columns.
    fn begin_block(&mut self, depth: Range<usize>, columns: Range<usize>);

    /// Packs rows of A for this part of the sum, unless they are read in place. They stay packed
    /// until another part begins.
    fn pack_a(&mut self, rows: Range<usize>);

    /// `R` rows from `row` on, by the panel of B that begins with `column`.
    ///
    /// # Safety
    /// `1 <= R <= MR`, rows and columns are in the blocks that were made ready, and `c` can be written
    /// and no other thread touches it.
    unsafe fn tile<const R: usize>(&mut self, row: usize, column: usize, c: CTile);
}

/// Carries out a matmul into `c [m, n]` with a sum over `k`.
#[inline(always)]
pub(super) fn run<K: MicroKernel>(mut kernel: K, mut c: MatMut<'_>, k: usize) {
    const { assert!(K::MR <= 12 && K::MC.is_multiple_of(K::MR) && K::NC.is_multiple_of(K::NR)) }
    let (m, n) = (c.rows, c.cols);
    for pc in (0..k).step_by(K::KC) {
        let depth = pc..k.min(pc.saturating_add(K::KC));
        for jc in (0..n).step_by(K::NC) {
            let columns = jc..n.min(jc.saturating_add(K::NC));
            kernel.begin_block(depth.clone(), columns.clone());
            for ic in (0..m).step_by(K::MC) {
                let rows = ic..m.min(ic + K::MC);
                if jc == 0 {
                    kernel.pack_a(rows.clone());
                }
                for jr in columns.clone().step_by(K::NR) {
                    let mut ir = rows.start;
                    while ir < rows.end {
                        let height = tile_height(K::MR, rows.end - ir);
                        let tile = CTile::within(&mut c, (ir, jr), K::NR.min(columns.end - jr));
                        // SAFETY: the block was made ready, and the tile is inside C, a `&mut` view.
                        unsafe {
                            with_height!(height, K::MR, R => kernel.tile::<R>(ir, jr, tile));
                        }
                        ir += height;
                    }
                }
            }
        }
    }
}

/// How many of the remaining rows the next tile has. Micro-kernels exist for [`with_height`]'s
/// heights alone: each of them is code.
#[inline(always)]
fn tile_height(mr: usize, remaining: usize) -> usize {
    if remaining >= mr { mr } else { remaining.min(6) }
}

/// Calls `$tile` with the height, 12 or at most 6, as the constant `$R`.
macro_rules! with_height {
    ($height:expr, $most:expr, $R:ident => $tile:expr) => {
        with_height!(@each $height, $most, $R => $tile, 12 6 5 4 3 2 1)
    };
    (@each $height:expr, $most:expr, $R:ident => $tile:expr, $($count:literal)*) => {
        match $height {
            // The others are not even compiled.
            $($count if const { $count <= $most } => {
                const $R: usize = $count;
                $tile
            })*
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}
use with_height;

/// Where a tile of C begins, how far its rows lie apart, and how many columns of it there are.
#[derive(Clone, Copy)]
pub(super) struct CTile {
    pub(super) to: *mut f32,
    pub(super) stride: usize,
    pub(super) columns: usize,
}

impl CTile {
    #[inline(always)]
    fn within(c: &mut MatMut<'_>, (row, column): (usize, usize), columns: usize) -> Self {
        // Not followed here; `wrapping_add` asks for nothing.
        CTile { to: c.as_ptr().wrapping_add(row * c.stride + column), stride: c.stride, columns }
    }

    /// How many columns of vector `v` there are.
    #[inline(always)]
    pub(super) fn lanes(self, v: usize, lanes: usize) -> usize {
        self.columns.saturating_sub(v * lanes).min(lanes)
    }

    /// Prefetches `R` rows.
    #[inline(always)]
    pub(super) fn prefetch<S: Simd, const R: usize>(self, s: S) {
        for i in 0..R {
            s.prefetch(self.to.wrapping_add(i * self.stride));
            s.prefetch(self.to.wrapping_add(i * self.stride + S::LANES));
        }
    }

    /// Writes row `i`, adding to what is there if `add`.
    ///
    /// # Safety
    /// The row can be written, and no other thread touches it.
    #[inline(always)]
    pub(super) unsafe fn write<S: Simd>(self, s: S, i: usize, values: [S::F; 2], add: bool) {
        let whole = self.columns == 2 * S::LANES;
        for (v, value) in values.into_iter().enumerate() {
            let to = self.to.wrapping_add(i * self.stride + v * S::LANES);
            // SAFETY: the caller vouches for the row, of which the columns that there are are touched.
            unsafe {
                if whole {
                    s.store(to, if add { s.add(s.load(to), value) } else { value });
                } else {
                    let there = self.lanes(v, S::LANES);
                    let value = if add { s.add(s.load_partial(to, there), value) } else { value };
                    s.store_partial(to, value, there);
                }
            }
        }
    }
}

/// Memory for packed operands, kept from one matmul of a thread to the next.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) a: Aligned<u32>,
    pub(super) b: Aligned<u32>,
}

thread_local! {
    static WORKSPACE: Cell<Workspace> = const { Cell::new(Workspace { a: Aligned::EMPTY, b: Aligned::EMPTY }) };
}

impl Workspace {
    /// Calls `run` with this thread's.
    pub(super) fn with<R>(run: impl FnOnce(&mut Workspace) -> R) -> R {
        let mut workspace = WORKSPACE.take();
        let result = run(&mut workspace);
        WORKSPACE.set(workspace);
        result
    }
}

/// Splits a matmul by its rows over up to `threads` threads, each but the last with a multiple of
/// `least` rows.
///
/// # Panics
/// If the shapes do not fit.
pub(super) fn split_rows(
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
