//! What the grammar draws, from a sequence that is the same on every platform and in every version.

/// The draws of one corpus.
pub(super) struct Rng(regard_random::Rng);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Rng(regard_random::Rng::new(seed))
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of a list that is not empty.
    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        self.0.pick(list)
    }

    /// One of a list whose weights are not all 0.
    pub(super) fn weighted<T: Copy>(&mut self, list: &[(usize, T)]) -> T {
        let mut left = self.below(list.iter().map(|(weight, _)| weight).sum());
        let chosen = list.iter().find(|(weight, _)| {
            let here = left < *weight;
            left = left.wrapping_sub(*weight);
            here
        });
        chosen.unwrap_or(&list[list.len() - 1]).1
    }
}
