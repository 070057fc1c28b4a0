//! Right operands that are packed: blocks that stay in cache, in them panels as wide as a tile.

use crate::aligned::Aligned;
use crate::mat::{Mat, MatMut};

/// Columns of a block.
pub(super) const NC: usize = 512;

/// How a kernel wants its right operand.
///
/// Blocks of `kc` rows follow one another, in them blocks of [`NC`] columns, in these panels of
/// `columns`, in a panel the rows; the last block each way may be smaller, the last panel is filled
/// up with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Columns of a tile.
    pub(super) columns: usize,
    /// Rows of a block.
    pub(super) kc: usize,
    /// Rows that share a word.
    pub(super) in_word: usize,
}

impl Layout {
    /// How many words a block takes, or all blocks of some rows that begin with one.
    pub(super) const fn words(self, rows: usize, cols: usize) -> usize {
        cols.next_multiple_of(self.columns) * rows.div_ceil(self.in_word)
    }

    /// Packs a whole matrix by what packs a block.
    pub(super) fn pack(self, b: Mat<'_>, to: &mut Aligned<u32>, block: impl Fn(Mat<'_>, &mut [u32])) {
        to.resize(self.words(b.rows, b.cols));
        let mut rest = to.as_mut_slice();
        for start in (0..b.rows).step_by(self.kc) {
            let kc = self.kc.min(b.rows - start);
            for first in (0..b.cols).step_by(NC) {
                let nc = NC.min(b.cols - first);
                let (now, others) = rest.split_at_mut(self.words(kc, nc));
                block(b.rows_from(start, kc).columns(first, nc), now);
                rest = others;
            }
        }
    }
}

/// A right operand that is packed, or a part of one that begins and ends with blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panels<'a> {
    words: &'a [u32],
    layout: Layout,
    /// Rows and columns of the whole.
    whole: (usize, usize),
    /// Where the part begins.
    first: (usize, usize),
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl<'a> Panels<'a> {
    pub(super) fn new(words: &'a [u32], layout: Layout, rows: usize, cols: usize) -> Self {
        assert_eq!(words.len(), layout.words(rows, cols));
        Panels { words, layout, whole: (rows, cols), first: (0, 0), rows, cols }
    }

    pub(super) fn rows_from(self, from: usize, rows: usize) -> Self {
        let start = self.first.0 + from;
        assert!(from + rows <= self.rows && borders(start, rows, self.whole.0, self.layout.kc));
        Panels { first: (start, self.first.1), rows, ..self }
    }

    pub(super) fn columns(self, from: usize, cols: usize) -> Self {
        let start = self.first.1 + from;
        assert!(from + cols <= self.cols && borders(start, cols, self.whole.1, NC));
        Panels { first: (self.first.0, start), cols, ..self }
    }

    /// The block that begins with that row and column.
    ///
    /// # Panics
    /// If it was packed for another kernel.
    pub(super) fn block(&self, layout: Layout, row: usize, column: usize) -> &'a [u32] {
        assert_eq!(self.layout, layout, "packed for another kernel");
        let ((rows, cols), (row, column)) = (self.whole, (self.first.0 + row, self.first.1 + column));
        let (kc, nc) = (layout.kc.min(rows - row), NC.min(cols - column));
        let before = layout.words(row, cols) + layout.words(kc, column);
        &self.words[before..][..layout.words(kc, nc)]
    }
}

/// Whether a part begins with a block of `size` and ends with one.
fn borders(start: usize, count: usize, whole: usize, size: usize) -> bool {
    let is_border = |at: usize| at == whole || at.is_multiple_of(size);
    is_border(start) && is_border(start + count)
}

/// Where a tile of the output is, and how much of it there is.
#[derive(Clone, Copy)]
pub(super) struct CTile {
    pub(super) to: *mut f32,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Whether to add to what is there.
    pub(super) add: bool,
}

impl CTile {
    /// The tile of `c` that begins with that row and column.
    #[inline(always)]
    pub(super) fn within(
        c: &mut MatMut<'_>,
        (row, column): (usize, usize),
        (rows, columns): (usize, usize),
        add: bool,
    ) -> Self {
        // Not followed here; `wrapping_add` asks for nothing.
        let to = c.as_ptr().wrapping_add(row * c.stride + column);
        CTile { to, stride: c.stride, rows, columns, add }
    }
}
