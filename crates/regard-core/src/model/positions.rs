//! Positional encodings: sinusoids (section 3.5 of the paper), and T5's relative position buckets.

use super::config::Frequencies;

/// `[n, d]` sinusoids in the order that the models use: sines in the first half of the columns,
/// cosines in the second.
///
/// Column `i` of a half has the frequency `10000^(−2i/d)`. It is the paper's table with its columns
/// reordered, which changes nothing, since every weight that reads them is learned.
///
/// ```
/// let table = regard_core::model::positions::sinusoidal(3, 4);
/// assert_eq!(table[..4], [0.0, 0.0, 1.0, 1.0]);
/// assert!((table[4] - 1f32.sin()).abs() < 1e-6 && (table[6] - 1f32.cos()).abs() < 1e-6);
/// ```
pub fn sinusoidal(n: usize, d: usize) -> Vec<f32> {
    sinusoidal_with(Frequencies::Paper, n, d)
}

/// The same with other frequencies.
///
/// ```
/// use regard_core::model::{Frequencies, positions::sinusoidal_with};
/// let table = sinusoidal_with(Frequencies::Tensor2tensor, 2, 4);
/// assert!((table[5] - 1e-4f32.sin()).abs() < 1e-9);
/// ```
pub fn sinusoidal_with(frequencies: Frequencies, n: usize, d: usize) -> Vec<f32> {
    sinusoidal_from(frequencies, 0, n, d)
}

/// The same from position `first` on.
///
/// ```
/// use regard_core::model::{Frequencies, positions::{sinusoidal, sinusoidal_from}};
/// assert_eq!(sinusoidal_from(Frequencies::Paper, 2, 3, 4), sinusoidal(5, 4)[2 * 4..]);
/// ```
pub fn sinusoidal_from(frequencies: Frequencies, first: usize, n: usize, d: usize) -> Vec<f32> {
    let half = d / 2;
    let of_column: Vec<f64> = (0..half)
        .map(|i| match frequencies {
            Frequencies::Paper => frequency(i, d),
            // With one column there is one frequency, and it is 1.
            Frequencies::Tensor2tensor => 10_000f64.powf(-(i as f64) / (half as f64 - 1.0).max(1.0)),
        })
        .collect();
    let mut table = vec![0.0; n * d];
    for (position, row) in (first..).zip(table.chunks_exact_mut(d.max(1))) {
        for (i, frequency) in of_column.iter().enumerate() {
            let (sin, cos) = (position as f64 * frequency).sin_cos();
            (row[i], row[half + i]) = (sin as f32, cos as f32);
        }
    }
    table
}

/// `[n, d]` sinusoids in the paper's own order: `PE(p, 2i) = sin(p / 10000^(2i/d))`,
/// `PE(p, 2i+1) = cos(…)` of the same angle.
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

/// The matrix `M(δ)` `[d, d]` with `PE(p + δ) = M(δ)·PE(p)` for every position `p`, the columns
/// ordered as in [`sinusoidal`].
///
/// It turns the sine and cosine of each frequency `ω` by the angle `δω`: a rotation that depends on
/// the distance alone, so that "δ tokens further on" is the same linear map everywhere.
///
/// ```
/// use regard_core::model::positions::{linear_map, sinusoidal};
/// let (table, map) = (sinusoidal(10, 4), linear_map(3, 4));
/// let moved: f32 = map[..4].iter().zip(&table[5 * 4..]).map(|(m, x)| m * x).sum();
/// assert!((moved - table[8 * 4]).abs() < 1e-6);
/// ```
pub fn linear_map(delta: isize, d: usize) -> Vec<f32> {
    let half = d / 2;
    let mut map = vec![0.0; d * d];
    for i in 0..half {
        let (sin, cos) = (delta as f64 * frequency(i, d)).sin_cos();
        let (sin, cos) = (sin as f32, cos as f32);
        (map[i * d + i], map[i * d + half + i]) = (cos, sin);
        (map[(half + i) * d + i], map[(half + i) * d + half + i]) = (-sin, cos);
    }
    map
}

/// `PE(p)·PE(p + δ)`, which is `Σ cos(δω)` over the frequencies: it depends on the distance alone,
/// and is `d / 2` at distance 0.
pub fn similarity(delta: isize, d: usize) -> f64 {
    (0..d / 2).map(|i| (delta as f64 * frequency(i, d)).cos()).sum()
}

/// `10000^(−2i/d)`
fn frequency(i: usize, d: usize) -> f64 {
    10_000f64.powf(-2.0 * i as f64 / d as f64)
}

/// `[rows · columns, d]` sinusoids for the cells of a grid, row by row: the first half of a vector
/// encodes the row, the second the column, each as in [`sinusoidal`]. `d` must be a multiple of 4;
/// leftover columns stay zero.
///
/// ```
/// let table = regard_core::model::positions::sinusoidal_2d(2, 3, 8);
/// // The last of six places is row 1, column 2.
/// assert_eq!(table[5 * 8..5 * 8 + 4], regard_core::model::positions::sinusoidal(2, 4)[4..]);
/// assert_eq!(table[5 * 8 + 4..], regard_core::model::positions::sinusoidal(3, 4)[8..]);
/// ```
pub fn sinusoidal_2d(rows: usize, columns: usize, d: usize) -> Vec<f32> {
    let half = d / 4 * 2;
    let (of_row, of_column) = (sinusoidal(rows, half), sinusoidal(columns, half));
    let mut table = vec![0.0; rows * columns * d];
    for (place, vector) in table.chunks_exact_mut(d.max(1)).enumerate() {
        let (row, column) = (place / columns, place % columns);
        vector[..half].copy_from_slice(&of_row[row * half..][..half]);
        vector[half..2 * half].copy_from_slice(&of_column[column * half..][..half]);
    }
    table
}

/// Buckets of distances between query and key that share a learned parameter (Raffel et al., 2020):
/// short distances have a bucket each, longer ones share buckets of logarithmically growing size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// The number of buckets.
    pub count: usize,
    /// The distance from which on all share a bucket.
    pub reach: usize,
    /// Whether all buckets are for keys before the query; otherwise half are for keys after it.
    pub causal: bool,
}

impl Buckets {
    /// The bucket of a distance, which is the position of the key minus that of the query.
    ///
    /// ```
    /// use regard_core::model::positions::Buckets;
    /// let both = Buckets { count: 32, reach: 128, causal: false };
    /// let buckets = [0, -1, 1, -7, -8, 1000].map(|distance| both.of(distance));
    /// assert_eq!(buckets, [0, 1, 17, 7, 8, 31]);
    /// ```
    pub fn of(self, distance: isize) -> usize {
        let (count, first) = match (self.causal, distance > 0) {
            (true, _) => (self.count, 0),
            (false, behind) => (self.count / 2, if behind { self.count / 2 } else { 0 }),
        };
        let far = if self.causal { distance.min(0) } else { distance }.unsigned_abs();
        let alone = count / 2;
        if far < alone {
            return first + far;
        }
        // In f32, as in T5: different rounding would give different buckets.
        let octaves = ((self.reach as f64 / alone as f64).ln() as f32).max(f32::MIN_POSITIVE);
        let share = (far as f32 / alone as f32).ln() / octaves;
        first + (alone + (share * (count - alone) as f32) as usize).min(count - 1)
    }

    /// Expands a table `[count, h]` to each head and distance: `[h, 2 · reach + 1]`, from the key
    /// farthest before the query to the one farthest after it.
    pub fn expand(self, table: &[f32], heads: usize) -> Vec<f32> {
        let mut expanded = Vec::with_capacity(heads * (2 * self.reach + 1));
        let rows: Vec<usize> = self.distances().map(|distance| self.of(distance)).collect();
        for head in 0..heads {
            expanded.extend(rows.iter().map(|row| table[row * heads + head]));
        }
        expanded
    }

    /// Adds the gradients of the result of [`expand`](Self::expand) to those of its table.
    pub fn add_gradients(self, expanded: &[f32], heads: usize, table: &mut [f32]) {
        for (head, of_head) in expanded.chunks_exact(2 * self.reach + 1).enumerate() {
            for (distance, gradient) in self.distances().zip(of_head) {
                table[self.of(distance) * heads + head] += gradient;
            }
        }
    }

    fn distances(self) -> impl Iterator<Item = isize> {
        let reach = self.reach as isize;
        -reach..=reach
    }
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

    fn product(map: &[f32], x: &[f32]) -> Vec<f32> {
        map.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(m, x)| m * x).sum()).collect()
    }

    #[test]
    fn one_linear_map_moves_every_position() {
        let (n, d) = (60, 32);
        let table = sinusoidal(n, d);
        let row = |p: usize| &table[p * d..(p + 1) * d];
        for delta in [-20isize, -1, 0, 1, 7, 20] {
            let map = linear_map(delta, d);
            for p in 20..40usize {
                let want = row(p.checked_add_signed(delta).unwrap());
                for (got, want) in product(&map, row(p)).iter().zip(want) {
                    assert!((got - want).abs() < 2e-6, "{delta}, {p}: {got} for {want}");
                }
            }
        }
        // There and back is the identity; the map of a wrong distance differs.
        let back = product(&linear_map(-7, d), &product(&linear_map(7, d), row(9)));
        assert!(back.iter().zip(row(9)).all(|(a, b)| (a - b).abs() < 1e-6));
        let wrong = product(&linear_map(6, d), row(20));
        assert!(wrong.iter().zip(row(27)).any(|(a, b)| (a - b).abs() > 0.1));
    }

    #[test]
    fn similarity_is_the_dot_product_of_two_rows() {
        let (n, d) = (40, 24);
        let table = sinusoidal(n, d);
        let row = |p: usize| &table[p * d..(p + 1) * d];
        for (p, q) in [(0usize, 0usize), (3, 10), (39, 2)] {
            let dot: f32 = row(p).iter().zip(row(q)).map(|(a, b)| a * b).sum();
            assert!((f64::from(dot) - similarity(q as isize - p as isize, d)).abs() < 1e-5);
        }
        assert_eq!(similarity(0, d), 12.0);
    }

    #[test]
    fn places_on_a_grid_differ_and_share_what_they_share() {
        let (rows, columns, d) = (3, 5, 16);
        let table = sinusoidal_2d(rows, columns, d);
        let vector = |place: usize| &table[place * d..][..d];
        for a in 0..rows * columns {
            for b in 0..a {
                assert_eq!(vector(a)[..8] == vector(b)[..8], a / columns == b / columns, "{a} {b}");
                assert_eq!(vector(a)[8..] == vector(b)[8..], a % columns == b % columns, "{a} {b}");
            }
        }
        // A width that is not a multiple of 4 has zero columns at its end, and a width of 0 has no
        // columns.
        assert_eq!(sinusoidal_2d(2, 2, 6)[4..6], [0.0, 0.0]);
        assert!(sinusoidal_2d(2, 2, 0).is_empty() && sinusoidal_2d(0, 3, 8).is_empty());
    }

    /// The buckets of `transformers`' T5, as the number of distances from −200 to 200 in each.
    #[test]
    fn ranges_of_distances_are_those_of_t5() {
        let runs = |count, reach, causal| {
            let buckets = Buckets { count, reach, causal };
            let all: Vec<usize> = (-200..=200).map(|distance| buckets.of(distance)).collect();
            all.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect::<Vec<_>>()
        };
        let before = [110, 27, 18, 14, 9, 7, 4, 4, 1, 1, 1, 1, 1, 1, 1];
        let before: Vec<(usize, usize)> = (1..=15).rev().zip(before).collect();
        let behind = before.iter().rev().map(|&(bucket, length)| (16 + bucket, length));
        let want: Vec<_> = before.iter().copied().chain([(0, 1)]).chain(behind).collect();
        assert_eq!(runs(32, 128, false), want);
        let causal = [88, 14, 12, 10, 10, 8, 7, 6, 6, 5, 4, 4, 3, 3, 2, 3];
        let want: Vec<_> = (0..32).rev().zip(causal.into_iter().chain([1; 15]).chain([201])).collect();
        assert_eq!(runs(32, 128, true), want);
        assert_eq!(runs(8, 12, true), [(7, 191), (6, 3), (5, 1), (4, 2), (3, 1), (2, 1), (1, 1), (0, 201)]);
        assert_eq!(runs(6, 20, false), [(2, 196), (1, 4), (0, 1), (4, 4), (5, 196)]);
    }

    #[test]
    fn a_table_of_ranges_is_expanded_and_gathered() {
        let buckets = Buckets { count: 4, reach: 5, causal: false };
        let table: Vec<f32> = (0..4 * 3).map(|i| i as f32).collect();
        let expanded = buckets.expand(&table, 3);
        assert_eq!(expanded.len(), 3 * 11);
        for (head, of_head) in expanded.chunks(11).enumerate() {
            for (distance, value) in (-5..=5).zip(of_head) {
                assert_eq!(*value, table[buckets.of(distance) * 3 + head]);
            }
        }
        let mut gathered = vec![1.0; table.len()];
        buckets.add_gradients(&[1.0; 33], 3, &mut gathered);
        // Of eleven distances one is 0, and five are on either side.
        assert_eq!(gathered.iter().sum::<f32>(), 12.0 + 33.0);
        assert_eq!(gathered[0], 2.0);
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
