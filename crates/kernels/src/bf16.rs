//! bf16: the upper half of an f32.

/// Rounds to the nearest bf16, ties to even, in the upper half of the result; a NaN stays a NaN.
/// The lower half is arbitrary.
#[inline(always)]
pub(crate) fn upper_half(x: f32) -> u32 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    // A NaN whose payload is all in the lower half would become an infinity: set the quiet bit.
    if bits & 0x7fff_ffff > 0x7f80_0000 { bits | 0x0040_0000 } else { nearest }
}

/// The bits of the nearest bf16, ties to even; a NaN stays a NaN.
#[inline(always)]
pub fn from_f32(x: f32) -> u16 {
    (upper_half(x) >> 16) as u16
}

/// Converts the bits of a bf16 to f32.
#[inline(always)]
pub fn to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest bf16 as an f32.
#[inline(always)]
pub fn round(x: f32) -> f32 {
    f32::from_bits(upper_half(x) & 0xffff_0000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearer of the two adjacent bf16 values, found by comparing distances in f64.
    fn naive(x: f32) -> f32 {
        let below = f32::from_bits(x.to_bits() & 0xffff_0000);
        let above = f32::from_bits((x.to_bits() & 0xffff_0000).wrapping_add(0x1_0000));
        // The value after the largest bf16 would be 2^128, which f64 can represent and f32 cannot.
        let wide =
            |y: f32| if y.is_infinite() { f64::from(y.signum()) * 2f64.powi(128) } else { f64::from(y) };
        let (down, up) = ((f64::from(x) - wide(below)).abs(), (f64::from(x) - wide(above)).abs());
        let even = below.to_bits() >> 16 & 1 == 0;
        if down < up || (down == up && even) { below } else { above }
    }

    #[test]
    fn every_bf16_is_kept_and_between_two_the_nearest_is_taken() {
        for high in 0..=u16::MAX {
            let exact = to_f32(high);
            if exact.is_nan() {
                assert!(to_f32(from_f32(exact)).is_nan());
                continue;
            }
            assert_eq!(from_f32(exact), high);
            if exact.is_infinite() {
                continue;
            }
            for low in [1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let x = f32::from_bits(u32::from(high) << 16 | low);
                assert_eq!(round(x).to_bits(), naive(x).to_bits(), "{x:e}");
                assert_eq!(to_f32(from_f32(x)).to_bits(), round(x).to_bits());
            }
        }
        for nan in [0x7f80_0001, 0x7fff_ffff, 0xffc0_0000, 0xff80_8000] {
            assert!(round(f32::from_bits(nan)).is_nan() && to_f32(from_f32(f32::from_bits(nan))).is_nan());
        }
    }
}
