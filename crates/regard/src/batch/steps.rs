//! The tokens of packed sentences in the order of time: what a recurrent layer walks along.

/// The first token of every sentence, then the second of all that have one, and so on.
///
/// Sentences come longest first, so that those that are still running are always the first so many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeSteps {
    rows: Vec<usize>,
    starts: Vec<usize>,
}

impl TimeSteps {
    /// Of the sentences between `offsets`, read from their ends if `reversed`.
    pub(crate) fn new(offsets: &[usize], reversed: bool) -> Self {
        let mut sentences: Vec<(usize, usize)> = offsets.windows(2).map(|w| (w[0], w[1])).collect();
        // The sort is stable: equal lengths keep their order.
        sentences.sort_by_key(|(start, end)| std::cmp::Reverse(end - start));
        let longest = sentences.first().map_or(0, |(start, end)| end - start);
        let (mut rows, mut starts) = (Vec::new(), vec![0]);
        for t in 0..longest {
            let running = sentences.iter().take_while(|(start, end)| end - start > t);
            rows.extend(running.map(|(start, end)| if reversed { end - 1 - t } else { start + t }));
            starts.push(rows.len());
        }
        TimeSteps { rows, starts }
    }

    /// How many steps: the length of the longest sentence.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many sentences have a token at all.
    pub(crate) fn sentences(&self) -> usize {
        self.starts.get(1).copied().unwrap_or(0)
    }

    /// Where the tokens of a step lie among those of all steps.
    pub(crate) fn range(&self, step: usize) -> std::ops::Range<usize> {
        self.starts[step]..self.starts[step + 1]
    }

    /// The rows of a step's tokens.
    pub(crate) fn rows(&self, step: usize) -> &[usize] {
        &self.rows[self.range(step)]
    }

    /// For every token in the order of time, the row of the one that was read before it.
    pub(crate) fn previous(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        (0..self.len()).flat_map(move |step| {
            let before = step.checked_sub(1).map(|step| self.rows(step));
            (0..self.range(step).len()).map(move |i| before.map(|rows| rows[i]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_comes_first_and_the_running_are_a_prefix() {
        let steps = TimeSteps::new(&[0, 2, 2, 5, 6], false);
        let rows: Vec<&[usize]> = (0..steps.len()).map(|t| steps.rows(t)).collect();
        assert_eq!(rows, [&[2, 0, 5][..], &[3, 1], &[4]]);
        assert_eq!((steps.sentences(), steps.range(1)), (3, 3..5));
        let previous: Vec<_> = steps.previous().collect();
        assert_eq!(previous, [None, None, None, Some(2), Some(0), Some(3)]);
        let back = TimeSteps::new(&[0, 2, 2, 5, 6], true);
        let rows: Vec<&[usize]> = (0..back.len()).map(|t| back.rows(t)).collect();
        assert_eq!(rows, [&[4, 1, 5][..], &[3, 0], &[2]]);
        assert_eq!(back.previous().flatten().collect::<Vec<_>>(), [4, 1, 3]);
    }

    #[test]
    fn no_tokens_are_no_steps() {
        for offsets in [&[0][..], &[0, 0, 0]] {
            let steps = TimeSteps::new(offsets, true);
            assert_eq!((steps.len(), steps.sentences(), steps.previous().count()), (0, 0, 0));
        }
    }
}
