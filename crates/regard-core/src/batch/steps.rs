//! The tokens of packed sentences in time order, for recurrent layers.

use regard_kernels::{Isa, Mat, MatMut, gru_forward};

/// The first token of every sentence, then the second of all sentences that have one, and so on.
///
/// Sentences are sorted longest first, so the unfinished ones are always a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSteps {
    rows: Vec<usize>,
    starts: Vec<usize>,
}

impl TimeSteps {
    /// The steps of the sentences at `offsets`, read from their ends if `reversed`.
    pub fn new(offsets: &[usize], reversed: bool) -> Self {
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

    /// The number of steps: the length of the longest sentence.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of non-empty sentences.
    pub fn sentences(&self) -> usize {
        self.starts.get(1).copied().unwrap_or(0)
    }

    /// The range of a step's tokens in time order.
    pub fn range(&self, step: usize) -> std::ops::Range<usize> {
        self.starts[step]..self.starts[step + 1]
    }

    /// The rows of a step's tokens.
    pub fn rows(&self, step: usize) -> &[usize] {
        &self.rows[self.range(step)]
    }

    /// For every token in time order, the row of the token read before it.
    pub fn previous(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        (0..self.count()).flat_map(move |step| {
            let before = step.checked_sub(1).map(|step| self.rows(step));
            (0..self.range(step).len()).map(move |i| before.map(|rows| rows[i]))
        })
    }
}

/// Runs a GRU over the sentences: `matmul` computes `U·h + b` from the states of the unfinished
/// ones. `gates [rows, 3·h]` and `kept [rows, h]`, in time order, are filled as by [`gru_forward`].
pub fn gru_states(
    isa: Isa,
    steps: &TimeSteps,
    x: Mat<'_>,
    (gates, kept): (&mut [f32], &mut [f32]),
    state: &mut Vec<f32>,
    mut y: MatMut<'_>,
    mut matmul: impl FnMut(Mat<'_>, &mut [f32]),
) {
    let h = y.cols();
    state.clear();
    state.resize(steps.sentences() * h, 0.0);
    for t in 0..steps.count() {
        let (rows, range) = (steps.rows(t), steps.range(t));
        let state = &mut state[..rows.len() * h];
        let gates = &mut gates[range.start * 3 * h..range.end * 3 * h];
        matmul(Mat::new(state, rows.len(), h), gates);
        let kept = &mut kept[range.start * h..range.end * h];
        gru_forward(isa, x, rows, gates, kept, state, y.reborrow());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_comes_first_and_the_running_are_a_prefix() {
        let steps = TimeSteps::new(&[0, 2, 2, 5, 6], false);
        let rows: Vec<&[usize]> = (0..steps.count()).map(|t| steps.rows(t)).collect();
        assert_eq!(rows, [&[2, 0, 5][..], &[3, 1], &[4]]);
        assert_eq!((steps.sentences(), steps.range(1)), (3, 3..5));
        let previous: Vec<_> = steps.previous().collect();
        assert_eq!(previous, [None, None, None, Some(2), Some(0), Some(3)]);
        let back = TimeSteps::new(&[0, 2, 2, 5, 6], true);
        let rows: Vec<&[usize]> = (0..back.count()).map(|t| back.rows(t)).collect();
        assert_eq!(rows, [&[4, 1, 5][..], &[3, 0], &[2]]);
        assert_eq!(back.previous().flatten().collect::<Vec<_>>(), [4, 1, 3]);
    }

    #[test]
    fn no_tokens_are_no_steps() {
        for offsets in [&[0][..], &[0, 0, 0]] {
            let steps = TimeSteps::new(offsets, true);
            assert_eq!((steps.count(), steps.sentences(), steps.previous().count()), (0, 0, 0));
        }
    }
}
