//! Random numbers that are the same on every machine and in every version of this program.
//!
//! [`Key`] computes number `i` of a stream without its predecessors: dropout masks do not depend on
//! how work is split over threads, and the backward pass recomputes them instead of storing them.
//! [`Rng`] is an ordinary sequential generator for shuffles and samples.

mod key;
mod sequence;

pub use key::{Key, mix_u32};
pub use sequence::Rng;

/// A bijection on 64-bit integers in which every input bit affects every output bit: the finalizer
/// of SplitMix64 (Steele, Lea and Flood).
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The increment of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
