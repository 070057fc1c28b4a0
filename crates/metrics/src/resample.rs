//! Bootstrap draws: the same indices as NumPy's `default_rng(seed).choice`, so that intervals and
//! p-values match those that sacreBLEU computes from the same seed.
//!
//! `SeedSequence` (M. O'Neill's `seed_seq` variant) expands the seed, PCG64 (XSL-RR 128/64)
//! generates the bits, and Lemire's multiplication with rejection produces the bounded integers.

/// NumPy's default generator, reduced to what drawing indices below 2³² needs.
pub(super) struct Draws {
    state: u128,
    increment: u128,
    /// The unused upper half of the last 64-bit output.
    half: Option<u32>,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        let [a, b, c, d] = spread(seed);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let mut draws = Draws { state: 0, increment: wide(c, d) << 1 | 1, half: None };
        draws.step();
        draws.state = draws.state.wrapping_add(wide(a, b));
        draws.step();
        draws
    }

    /// A random index below `n`, which is at least 1.
    pub(super) fn index(&mut self, n: u32) -> usize {
        if n <= 1 {
            return 0;
        }
        // Products whose low half is below this threshold would favour some indices.
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(n);
            if product as u32 >= threshold {
                return (product >> 32) as usize;
            }
        }
    }

    fn step(&mut self) {
        const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        let bits = folded.rotate_right((self.state >> 122) as u32);
        self.half = Some((bits >> 32) as u32);
        bits as u32
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`.
fn spread(seed: u64) -> [u64; 4] {
    const INIT_A: u32 = 0x43b0_d7e5;
    const MULT_A: u32 = 0x931e_8875;
    const INIT_B: u32 = 0x8b51_f9dd;
    const MULT_B: u32 = 0x58f3_8ded;
    const MIX_LEFT: u32 = 0xca01_f9dd;
    const MIX_RIGHT: u32 = 0x4973_f715;

    fn hash(value: u32, constant: &mut u32, multiplier: u32) -> u32 {
        let value = value ^ *constant;
        *constant = constant.wrapping_mul(multiplier);
        let value = value.wrapping_mul(*constant);
        value ^ value >> 16
    }

    let mut constant = INIT_A;
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(|word| hash(word, &mut constant, MULT_A));
    for from in 0..4 {
        for to in (0..4).filter(|&to| to != from) {
            let right = hash(pool[from], &mut constant, MULT_A);
            let mixed = MIX_LEFT.wrapping_mul(pool[to]).wrapping_sub(MIX_RIGHT.wrapping_mul(right));
            pool[to] = mixed ^ mixed >> 16;
        }
    }

    let mut constant = INIT_B;
    let words: [u32; 8] = std::array::from_fn(|i| hash(pool[i % 4], &mut constant, MULT_B));
    std::array::from_fn(|i| u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Golden {
        draws: Vec<Case>,
    }

    #[derive(serde::Deserialize)]
    struct Case {
        seed: u64,
        n: u32,
        indices: Vec<usize>,
    }

    #[test]
    fn indices_are_those_of_numpy() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/metrics_unicode.json");
        let golden: Golden = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(golden.draws.len(), 7);
        for Case { seed, n, indices } in golden.draws {
            let mut draws = Draws::new(seed);
            let ours: Vec<usize> = indices.iter().map(|_| draws.index(n)).collect();
            assert_eq!(ours, indices, "seed {seed}, below {n}");
        }
    }
}
