//! A small generator of its own, so that a seed gives the same corpus on every platform and in every version.

/// SplitMix64.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        // The high half of the product is unbiased enough for n far below 2^64, and always below n.
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of a list that is not empty.
    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
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

/// The finaliser of SplitMix64.
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[test]
fn is_splitmix64() {
    // The first outputs for seed 0 of the published algorithm.
    let mut rng = Rng(0);
    assert_eq!([rng.next(), rng.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
}
