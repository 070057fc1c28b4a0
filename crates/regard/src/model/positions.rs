//! Sinusoidal positions (section 3.5 of the paper).

/// `[n, d]` sinusoids, as the models use them: sines in the first half of the columns, cosines in the second.
///
/// Column `i` of a half has the frequency `10000^(−2i/d)`. It is the paper's table with its columns reordered, which
/// changes nothing, since every weight that reads them is learned.
///
/// ```
/// let table = regard::model::positions::sinusoidal(3, 4);
/// assert_eq!(table[..4], [0.0, 0.0, 1.0, 1.0]);
/// assert!((table[4] - 1f32.sin()).abs() < 1e-6 && (table[6] - 1f32.cos()).abs() < 1e-6);
/// ```
pub fn sinusoidal(n: usize, d: usize) -> Vec<f32> {
    let half = d / 2;
    let mut table = vec![0.0; n * d];
    for (position, row) in table.chunks_exact_mut(d.max(1)).enumerate() {
        for i in 0..half {
            let (sin, cos) = angle(position, i, d).sin_cos();
            (row[i], row[half + i]) = (sin as f32, cos as f32);
        }
    }
    table
}

/// `[n, d]` sinusoids in the paper's own order: `PE(p, 2i) = sin(p / 10000^(2i/d))`, `PE(p, 2i+1) = cos(…)` of the same angle.
pub fn interleaved(n: usize, d: usize) -> Vec<f32> {
    let mut table = vec![0.0; n * d];
    for (position, row) in table.chunks_exact_mut(d.max(1)).enumerate() {
        for (c, x) in row.iter_mut().enumerate() {
            let angle = angle(position, c / 2, d);
            *x = if c % 2 == 0 { angle.sin() } else { angle.cos() } as f32;
        }
    }
    table
}

/// `p / 10000^(2i/d)`
fn angle(position: usize, i: usize, d: usize) -> f64 {
    position as f64 / 10_000f64.powf(2.0 * i as f64 / d as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_hold_the_same_numbers() {
        let (n, d) = (40, 16);
        let (halves, pairs) = (sinusoidal(n, d), interleaved(n, d));
        for p in 0..n {
            for i in 0..d / 2 {
                assert_eq!(halves[p * d + i], pairs[p * d + 2 * i]);
                assert_eq!(halves[p * d + d / 2 + i], pairs[p * d + 2 * i + 1]);
            }
        }
    }

    #[test]
    fn numbers_of_the_formula() {
        // d = 6, p = 2: the second frequency is 10000^(−1/3) = 0.0464158883.
        let row = &sinusoidal(3, 6)[12..];
        let want = [0.909_297_4, 0.092_698_5, 0.004_308_854, -0.416_146_84, 0.995_694_2, 0.999_990_7];
        for (got, want) in row.iter().zip(want) {
            assert!((got - want).abs() < 1e-6, "{row:?}");
        }
    }
}
