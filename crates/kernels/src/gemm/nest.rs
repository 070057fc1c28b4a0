//! The loop nest of every matmul: five loops around a micro-kernel (Goto and van de Geijn, "Anatomy
//! of High-Performance Matrix Multiplication", 2008), with the names of BLIS.
//!
//! ```text
//! for pc in 0..k by KC          blocks of k: what a tile sums in registers
//!   for jc in 0..n by NC        blocks of columns: KC × NC of B are packed, unless already done
//!     for ic in 0..m by MC      blocks of rows: MC × KC of A are packed, or read in place
//!       for jr in NC by NR      a panel of B, which stays in the L1 cache during the next loop
//!         for ir in MC by MR    a tile of C, R ≤ MR rows by NR columns
//!           micro-kernel        the sum over KC in registers, then into C
//! ```
//!
//! Each element of the result is a sum over `k` in a fixed order: it depends on its own row and
//! column alone, whatever else is in the matrices.

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
    /// Rows of a tile: as many as fit the registers with two accumulator vectors each, and enough
    /// to hide the latency of an FMA. At most 12.
    const MR: usize;
    /// Columns of a tile: two vectors, so that each broadcast element of A is used twice.
    const NR: usize;
    /// How much of `k` is summed in registers.
    const KC: usize;
    /// Rows of a block of A, a multiple of [`MR`](Self::MR).
    const MC: usize;
    /// Columns of a block of B, a multiple of [`NR`](Self::NR).
    const NC: usize;

    /// Prepares a block of B, packing it unless it is already packed. Later calls refer to this
    /// range of `k` and these columns.
    fn begin_block(&mut self, depth: Range<usize>, columns: Range<usize>);

    /// Packs rows of A for this range of `k`, unless they are read in place. They stay packed until
    /// another range begins.
    fn pack_a(&mut self, rows: Range<usize>);

    /// Multiplies `R` rows from `row` on by the panel of B that begins at `column`.
    ///
    /// # Safety
    /// `1 <= R <= MR`, rows and columns are inside the prepared blocks, `c` is writable, and no
    /// other thread accesses it.
    unsafe fn tile<const R: usize>(&mut self, row: usize, column: usize, c: CTile);
}

/// Runs a matmul into `c [m, n]` with sums over `k`.
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
                        // SAFETY: the block is prepared, and the tile is inside C, a `&mut` view.
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

/// The height of the next tile, given the remaining rows. Micro-kernels exist only for the heights
/// of [`with_height`], because each height is separate code.
#[inline(always)]
fn tile_height(mr: usize, remaining: usize) -> usize {
    match remaining {
        _ if remaining >= mr => mr,
        8.. => 8,
        _ => remaining.min(6),
    }
}

/// Calls `$tile` with the height, 12, 8 or at most 6, as the constant `$R`.
macro_rules! with_height {
    ($height:expr, $most:expr, $R:ident => $tile:expr) => {
        with_height!(@each $height, $most, $R => $tile, 12 8 6 5 4 3 2 1)
    };
    (@each $height:expr, $most:expr, $R:ident => $tile:expr, $($count:literal)*) => {
        match $height {
            // Heights above `$most` are not compiled.
            $($count if const { $count <= $most } => {
                const $R: usize = $count;
                $tile
            })*
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}
use with_height;

/// A tile of C: where it begins, its row stride, and how many of its columns exist.
#[derive(Clone, Copy)]
pub(super) struct CTile {
    pub(super) to: *mut f32,
    pub(super) stride: usize,
    pub(super) columns: usize,
}

impl CTile {
    #[inline(always)]
    fn within(c: &mut MatMut<'_>, (row, column): (usize, usize), columns: usize) -> Self {
        // Not dereferenced here; `wrapping_add` has no safety requirement.
        CTile { to: c.as_ptr().wrapping_add(row * c.stride + column), stride: c.stride, columns }
    }

    /// How many lanes of vector `v` are existing columns.
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

    /// Writes row `i`, or adds to it if `add`.
    ///
    /// # Safety
    /// The row is writable, and no other thread accesses it.
    #[inline(always)]
    pub(super) unsafe fn write<S: Simd>(self, s: S, i: usize, values: [S::F; 2], add: bool) {
        let whole = self.columns == 2 * S::LANES;
        for (v, value) in values.into_iter().enumerate() {
            let to = self.to.wrapping_add(i * self.stride + v * S::LANES);
            // SAFETY: the caller vouches for the row; only existing columns are accessed.
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

/// Memory for packed operands, which a thread reuses across matmuls.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) a: Aligned<u32>,
    pub(super) b: Aligned<u32>,
}

thread_local! {
    static WORKSPACE: Cell<Workspace> = const { Cell::new(Workspace { a: Aligned::EMPTY, b: Aligned::EMPTY }) };
}

impl Workspace {
    /// Calls `run` with this thread's workspace.
    pub(super) fn with<R>(run: impl FnOnce(&mut Workspace) -> R) -> R {
        let mut workspace = WORKSPACE.take();
        let result = run(&mut workspace);
        WORKSPACE.set(workspace);
        result
    }
}

/// Splits a matmul by rows over up to `threads` threads; each but the last gets a multiple of
/// `least` rows.
///
/// # Panics
/// If the shapes do not match.
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

/// Whether there is nothing to multiply; if so, C has been zeroed where necessary.
///
/// # Panics
/// If the shapes do not match.
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
