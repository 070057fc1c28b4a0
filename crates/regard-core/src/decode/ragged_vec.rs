//! Several rows of different lengths in one buffer, which is reused in every step.

/// Contiguous rows: row `i` is `items[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RaggedVec<T> {
    offsets: Vec<usize>,
    items: Vec<T>,
}

impl<T> Default for RaggedVec<T> {
    fn default() -> Self {
        RaggedVec { offsets: vec![0], items: Vec::new() }
    }
}

impl<T, L: IntoIterator<Item = T>> FromIterator<L> for RaggedVec<T> {
    fn from_iter<I: IntoIterator<Item = L>>(all: I) -> Self {
        let mut rows = RaggedVec::default();
        all.into_iter().for_each(|row| rows.push(row));
        rows
    }
}

impl<T> RaggedVec<T> {
    /// Rows that are already contiguous; `offsets` has the start of each, plus the end of the
    /// last.
    pub(super) fn from_parts(offsets: Vec<usize>, items: Vec<T>) -> Self {
        assert!(offsets.first() == Some(&0) && offsets.last() == Some(&items.len()) && offsets.is_sorted());
        RaggedVec { offsets, items }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Removes all rows but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.offsets.truncate(1);
        self.items.clear();
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: impl IntoIterator<Item = T>) {
        self.items.extend(row);
        self.offsets.push(self.items.len());
    }

    /// Adds a row, which `write` appends to the items.
    pub(super) fn push_with<R>(&mut self, write: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let result = write(&mut self.items);
        self.offsets.push(self.items.len());
        result
    }

    /// Row `i`.
    pub(super) fn row(&self, i: usize) -> &[T] {
        &self.items[self.offsets[i]..self.offsets[i + 1]]
    }

    /// Row `i`, if there is one.
    pub(super) fn get(&self, i: usize) -> Option<&[T]> {
        let &[start, end] = self.offsets.get(i..i + 2)? else { return None };
        Some(&self.items[start..end])
    }

    /// All rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.offsets.windows(2).map(|w| &self.items[w[0]..w[1]])
    }

    /// Where each row begins, plus the end of the last.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The items of all rows.
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_end_to_end() {
        let mut rows = RaggedVec::default();
        assert_eq!((rows.offsets(), rows.iter().count()), (&[0][..], 0));
        for _ in 0..2 {
            rows.clear();
            rows.push([3, 1]);
            rows.push([]);
            assert_eq!(rows.push_with(|items| items.push(7)), ());
            assert_eq!((rows.row(0), rows.row(1), rows.row(2)), (&[3, 1][..], &[][..], &[7][..]));
            assert_eq!((rows.offsets(), rows.items()), (&[0, 2, 2, 3][..], &[3, 1, 7][..]));
        }
    }
}
