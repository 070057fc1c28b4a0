//! Several lists in one buffer, which is reused in every step.

/// Contiguous lists: list `i` is `items[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lists<T> {
    offsets: Vec<usize>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists { offsets: vec![0], items: Vec::new() }
    }
}

impl<T, L: IntoIterator<Item = T>> FromIterator<L> for Lists<T> {
    fn from_iter<I: IntoIterator<Item = L>>(all: I) -> Self {
        let mut lists = Lists::default();
        all.into_iter().for_each(|list| lists.push(list));
        lists
    }
}

impl<T> Lists<T> {
    /// Lists that are already contiguous; `offsets` has the start of each, plus the end of the
    /// last.
    pub(super) fn of_parts(offsets: Vec<usize>, items: Vec<T>) -> Self {
        assert!(offsets.first() == Some(&0) && offsets.last() == Some(&items.len()) && offsets.is_sorted());
        Lists { offsets, items }
    }

    /// The number of lists.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Removes all lists but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.offsets.truncate(1);
        self.items.clear();
    }

    /// Adds a list.
    pub(super) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.offsets.push(self.items.len());
    }

    /// Adds a list, which `write` appends to the items.
    pub(super) fn push_with<R>(&mut self, write: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let result = write(&mut self.items);
        self.offsets.push(self.items.len());
        result
    }

    /// List `i`.
    pub(super) fn of(&self, i: usize) -> &[T] {
        &self.items[self.offsets[i]..self.offsets[i + 1]]
    }

    /// List `i`, if there is one.
    pub(super) fn get(&self, i: usize) -> Option<&[T]> {
        let &[start, end] = self.offsets.get(i..i + 2)? else { return None };
        Some(&self.items[start..end])
    }

    /// All lists.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.offsets.windows(2).map(|w| &self.items[w[0]..w[1]])
    }

    /// Where each list begins, plus the end of the last.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The items of all lists.
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_lie_end_to_end() {
        let mut lists = Lists::default();
        assert_eq!((lists.offsets(), lists.iter().count()), (&[0][..], 0));
        for _ in 0..2 {
            lists.clear();
            lists.push([3, 1]);
            lists.push([]);
            assert_eq!(lists.push_with(|items| items.push(7)), ());
            assert_eq!((lists.of(0), lists.of(1), lists.of(2)), (&[3, 1][..], &[][..], &[7][..]));
            assert_eq!((lists.offsets(), lists.items()), (&[0, 2, 2, 3][..], &[3, 1, 7][..]));
        }
    }
}
