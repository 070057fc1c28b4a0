//! The layout of packed int8 weights.
//!
//! A panel has as many columns as two vectors have lanes, and a step of it has two groups of four
//! elements of each column. AVX2 multiplies into 16 bits and has to widen the products to 32 bits
//! before they overflow; the less often it does so, the faster it is. Inputs are never negative, so
//! the sums of the positive and of the negative weights bound the products of one or several steps.
//! The integer sums are exact, so their order is free: a panel begins with the steps of small
//! weights, which can be added in 16 bits four at a time, followed by pairs and single steps, and
//! ends with those that need more instructions ([`Runs`]).

use super::quantize::words;
use crate::Isa;
use crate::aligned::Aligned;
use crate::simd::{GROUP, adds_in_16_bits, lanes};

/// Elements of a column that are multiplied in one step: two groups.
pub(super) const STEP: usize = 2 * GROUP;

/// Lanes of the instruction sets that add in 16 bits.
const LANES_16: usize = 8;

/// Bytes of a step on those instruction sets.
const STEP_16: usize = 2 * LANES_16 * STEP;

/// The granularity at which inputs are classified by their largest element.
const INPUT_CLASS_WIDTH: usize = 16;

/// The number of input classes.
pub(super) const INPUT_CLASSES: usize = 256 / INPUT_CLASS_WIDTH + 1;

/// Inputs range from −127 to 127 and are shifted so that none is negative.
const MAX_INPUT: usize = 254;

/// Where in a panel each way of summing ends, for one class of inputs: four steps in 16 bits, two,
/// one, and pairs of products in 16 bits. The steps after that are added in 32 bits.
pub(super) type Runs = [u16; 4];

/// `[panel][step][vector: 2][group: 2][lanes][4]`
#[derive(Clone, Debug)]
pub(super) struct Int8Panels {
    pub(super) k: usize,
    pub(super) lanes: usize,
    /// The number of words of `GROUP` elements in a row of the input, rounded up to whole vectors.
    pub(super) words: usize,
    pub(super) weights: Aligned<i8>,
    /// The sum of each column.
    pub(super) totals: Vec<i32>,
    /// `[panel][place]`: the step of `k` stored there.
    pub(super) order: Vec<u16>,
    /// `[panel][step]`: where a step is stored, the inverse of `order`.
    places: Vec<u16>,
    /// `[panel]`: indexed by [`input_class`]; empty if the instruction set adds in 32 bits.
    pub(super) runs: Vec<[Runs; INPUT_CLASSES]>,
}

/// The index into an entry of [`Int8Panels::runs`] for inputs up to `largest`.
#[inline(always)]
pub(super) fn input_class(largest: i32) -> usize {
    (largest.clamp(0, MAX_INPUT as i32) as usize).div_ceil(INPUT_CLASS_WIDTH)
}

impl Int8Panels {
    pub(super) fn pack(isa: Isa, values: &[i8], n: usize, k: usize) -> Self {
        Self::pack_for(lanes(isa), adds_in_16_bits(isa), values, n, k)
    }

    fn pack_for(lanes: usize, limited: bool, values: &[i8], n: usize, k: usize) -> Self {
        let (words, width) = (words(lanes, k), 2 * lanes);
        let (panels, steps) = (n.div_ceil(width), words / 2);
        assert!(steps <= usize::from(u16::MAX), "rows of {k} weights");
        let mut packed = Int8Panels {
            k,
            lanes,
            words,
            weights: Aligned::zeros(panels * width * words * GROUP),
            totals: vec![0; panels * width],
            order: Vec::with_capacity(panels * steps),
            places: vec![0; panels * steps],
            runs: Vec::with_capacity(if limited { panels } else { 0 }),
        };
        for (i, row) in values.chunks_exact(k.max(1)).enumerate() {
            packed.totals[i] = row.iter().map(|&x| i32::from(x)).sum();
        }
        let size = steps * packed.step_bytes();
        let mut panel = vec![0; size];
        let (mut sums, mut keys) = (Vec::new(), Vec::new());
        for (p, rows) in values.chunks(width * k.max(1)).enumerate() {
            arrange(rows, k, lanes, &mut panel);
            let start = packed.order.len();
            packed.order.extend(0..steps as u16);
            let order = &mut packed.order[start..];
            if limited {
                sums.clear();
                sums.extend(panel.as_chunks().0.iter().map(StepSums::new));
                keys.clear();
                keys.extend(sums.iter().zip(0u16..).map(|(sums, step)| (sums.largest(), step)));
                keys.sort_unstable();
                order.iter_mut().zip(&keys).for_each(|(to, &(_, step))| *to = step);
                packed.runs.push(runs(&sums, order));
            }
            let bytes = packed.step_bytes();
            let to = packed.weights.as_mut_slice()[p * size..][..size].chunks_exact_mut(bytes);
            for (place, (to, &step)) in to.zip(&packed.order[start..]).enumerate() {
                to.copy_from_slice(&panel[usize::from(step) * bytes..][..bytes]);
                packed.places[p * steps + usize::from(step)] = place as u16;
            }
        }
        // Empty rows have panels too.
        packed.runs.resize(if limited { panels } else { 0 }, [[0; 4]; INPUT_CLASSES]);
        packed.order.resize(panels * steps, 0);
        packed
    }

    /// Copies rows of the matrix, contiguously.
    pub(super) fn rows(&self, rows: &[u32]) -> Vec<i8> {
        let weights = self.weights.as_slice();
        let mut values = Vec::with_capacity(rows.len() * self.k);
        for &row in rows {
            let end = values.len() + self.k;
            let (start, places) = self.column(row as usize);
            for &place in places {
                let step = &weights[start + usize::from(place) * self.step_bytes()..];
                values.extend_from_slice(&step[..GROUP]);
                values.extend_from_slice(&step[self.lanes * GROUP..][..GROUP]);
            }
            values.truncate(end);
        }
        values
    }

    /// The bytes of a step of a panel.
    fn step_bytes(&self) -> usize {
        2 * STEP * self.lanes
    }

    /// The offset of the first group of column `i` if its step were the first of the panel, and the
    /// places of the panel's steps.
    fn column(&self, i: usize) -> (usize, &[u16]) {
        let (steps, width) = (self.words / 2, 2 * self.lanes);
        let (panel, column) = (i / width, i % width);
        let start = panel * steps * self.step_bytes();
        let inside = column / self.lanes * STEP * self.lanes + column % self.lanes * GROUP;
        (start + inside, &self.places[panel * steps..][..steps])
    }

    /// The offset of group `g` of column `i`.
    pub(super) fn place(&self, i: usize, g: usize) -> usize {
        let (start, places) = self.column(i);
        start + usize::from(places[g / 2]) * self.step_bytes() + g % 2 * self.lanes * GROUP
    }

    pub(super) fn bytes(&self) -> usize {
        let steps = 2 * (self.order.len() + self.places.len());
        self.weights.bytes() + 4 * self.totals.len() + steps + size_of_val(&self.runs[..])
    }
}

/// Copies the rows of a panel, or fewer, into the byte order of a panel, with the steps in their
/// original order.
fn arrange(rows: &[i8], k: usize, lanes: usize, panel: &mut [i8]) {
    if rows.len() < 2 * lanes * k || !k.is_multiple_of(STEP) {
        panel.fill(0);
    }
    for (column, row) in rows.chunks_exact(k.max(1)).enumerate() {
        let first = column / lanes * STEP * lanes + column % lanes * GROUP;
        let second = first + lanes * GROUP;
        let (whole, rest) = row.as_chunks::<STEP>();
        let mut steps = panel.chunks_exact_mut(2 * STEP * lanes);
        for (from, to) in whole.iter().zip(&mut steps) {
            to[first..first + GROUP].copy_from_slice(&from[..GROUP]);
            to[second..second + GROUP].copy_from_slice(&from[GROUP..]);
        }
        if let Some(to) = steps.next() {
            let (a, b) = rest.split_at(rest.len().min(GROUP));
            to[first..first + a.len()].copy_from_slice(a);
            to[second..second + b.len()].copy_from_slice(b);
        }
    }
}

/// 16-bit elements in a vector: two for each lane.
const HALVES: usize = 2 * LANES_16;

/// Sums for a step of a panel, one for each 16-bit accumulator.
type Sums = [[i16; HALVES]; 2];

/// The weights added in each 16-bit accumulator: the sum of the positive ones, and the sum of the
/// magnitudes of the negative ones.
#[derive(Clone, Copy)]
struct StepSums {
    positive: Sums,
    negative: Sums,
    /// The largest sum of two adjacent weights of a group.
    largest_pair: i16,
}

impl StepSums {
    fn new(step: &[i8; STEP_16]) -> Self {
        let mut found = StepSums { positive: [[0; HALVES]; 2], negative: [[0; HALVES]; 2], largest_pair: 0 };
        let mut pairs = [0i16; HALVES];
        for (v, vector) in step.as_chunks::<{ 4 * HALVES }>().0.iter().enumerate() {
            let (positive, negative) = (&mut found.positive[v], &mut found.negative[v]);
            for group in vector.as_chunks::<{ 2 * HALVES }>().0 {
                let (first, second) = split_pairs(group);
                for i in 0..HALVES {
                    let above = first[i].max(0) + second[i].max(0);
                    let below = (-first[i]).max(0) + (-second[i]).max(0);
                    positive[i] += above;
                    negative[i] += below;
                    pairs[i] = pairs[i].max(above).max(below);
                }
            }
        }
        found.largest_pair = largest(&pairs);
        found
    }

    fn largest(&self) -> i16 {
        let mut most = [0; HALVES];
        for sums in [&self.positive, &self.negative] {
            for i in 0..HALVES {
                most[i] = most[i].max(sums[0][i]).max(sums[1][i]);
            }
        }
        largest(&most)
    }

    /// The sums of two steps together.
    fn and(&self, other: &Self) -> Self {
        let add = |a: &Sums, b: &Sums| {
            let mut sums = *a;
            sums.as_flattened_mut().iter_mut().zip(b.as_flattened()).for_each(|(sum, more)| *sum += more);
            sums
        };
        StepSums {
            positive: add(&self.positive, &other.positive),
            negative: add(&self.negative, &other.negative),
            largest_pair: self.largest_pair.max(other.largest_pair),
        }
    }
}

/// The first and the second weight of each pair.
#[inline(always)]
fn split_pairs(group: &[i8; 2 * HALVES]) -> ([i16; HALVES], [i16; HALVES]) {
    let (mut first, mut second) = ([0; HALVES], [0; HALVES]);
    for (i, both) in group.as_chunks::<2>().0.iter().enumerate() {
        let both = i16::from_le_bytes(both.map(|x| x as u8));
        (first[i], second[i]) = ((both << 8) >> 8, both >> 8);
    }
    (first, second)
}

fn largest(sums: &[i16; HALVES]) -> i16 {
    sums.iter().fold(0, |most, &sum| most.max(sum))
}

/// The runs of a panel with its steps in this order, for each class of inputs.
fn runs(steps: &[StepSums], order: &[u16]) -> [Runs; INPUT_CLASSES] {
    let sorted = |place: usize| &steps[usize::from(order[place])];
    let count = steps.len();
    let two: Vec<StepSums> = (0..count / 2).map(|i| sorted(2 * i).and(sorted(2 * i + 1))).collect();
    let twos: Vec<i16> = two.iter().map(StepSums::largest).collect();
    let fours: Vec<i16> = two.chunks_exact(2).map(|two| two[0].and(&two[1]).largest()).collect();
    let ones: Vec<i16> = (0..count).map(|i| sorted(i).largest()).collect();
    let pairs: Vec<i16> = (0..count).map(|i| sorted(i).largest_pair).collect();
    let [fours, twos, ones, pairs] = [(&fours, 4), (&twos, 2), (&ones, 1), (&pairs, 1)].map(fitting);
    std::array::from_fn(|class| {
        let (four, one) = (fours[class], ones[class]);
        let two = four.max(twos[class]);
        [four, two, two.max(one), two.max(one).max(pairs[class])]
    })
}

/// For each class of inputs, the number of steps before the first whose products do not fit 16
/// bits. Each element of `sums` covers `size` steps.
fn fitting((sums, size): (&Vec<i16>, u16)) -> [u16; INPUT_CLASSES] {
    let mut counts = [size * sums.len() as u16; INPUT_CLASSES];
    let mut classes = counts.len();
    for (&sum, place) in sums.iter().zip(0u16..) {
        let input = i16::MAX.checked_div(sum).map_or(usize::MAX, |input| input as usize);
        let fit = if input >= MAX_INPUT { counts.len() } else { input / INPUT_CLASS_WIDTH + 1 };
        if fit < classes {
            counts[fit..classes].fill(size * place);
            classes = fit;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    /// What the kernel does with a layout, in plain loops; also for the layouts of instruction sets
    /// that this machine lacks.
    fn by_layout(packed: &Int8Panels, n: usize, x: &[i32]) -> Vec<i32> {
        let weights = packed.weights.as_slice();
        let product = |i: usize, t: usize| i32::from(weights[packed.place(i, t / GROUP) + t % GROUP]) * x[t];
        (0..n).map(|i| (0..packed.k).map(|t| product(i, t)).sum()).collect()
    }

    #[test]
    fn the_layouts_of_all_instruction_sets_mean_the_same() {
        for (n, k) in [(1, 1), (5, 3), (33, 70), (40, 64), (64, 129)] {
            let whole = |count: usize, seed: u64| -> Vec<i32> {
                random(count, seed).iter().map(|x| (x * 63.0).round() as i32).collect()
            };
            let (w, x) = (whole(n * k, 1), whole(k, 2));
            let values: Vec<i8> = w.iter().map(|&w| w as i8).collect();
            let want: Vec<i32> =
                w.chunks(k).map(|row| row.iter().zip(&x).map(|(w, x)| w * x).sum()).collect();
            let chosen: Vec<u32> = (0..n as u32).rev().chain([0, n as u32 / 2]).collect();
            let of_chosen: Vec<i8> =
                chosen.iter().flat_map(|&i| &values[i as usize * k..][..k]).copied().collect();
            for (lanes, limited) in [(4, false), (8, true), (8, false), (16, false)] {
                let packed = Int8Panels::pack_for(lanes, limited, &values, n, k);
                assert_eq!(by_layout(&packed, n, &x), want, "{lanes} lanes {n}×{k}");
                assert_eq!(packed.rows(&chosen), of_chosen, "{lanes} lanes {n}×{k}");
            }
        }
    }

    /// The largest 16-bit sum that the weights of some steps can produce with inputs up to `input`.
    fn largest_sum(
        packed: &Int8Panels,
        values: &[i8],
        panel: usize,
        places: std::ops::Range<usize>,
        input: i32,
    ) -> i32 {
        let (k, steps) = (packed.k, packed.words / 2);
        let mut most = 0;
        for column in values.chunks_exact(k).skip(panel * 16).take(16) {
            for half in [0, 2] {
                let weights = packed.order[panel * steps..][places.clone()].iter().flat_map(|&step| {
                    let at = usize::from(step) * STEP + half;
                    [at, at + 1, at + GROUP, at + GROUP + 1]
                        .map(|t| column.get(t).map_or(0, |&w| i32::from(w)))
                });
                let (above, below) = weights.fold((0, 0), |(a, b), w| (a + w.max(0), b - w.min(0)));
                most = most.max(input * above).max(input * below);
            }
        }
        most
    }

    #[test]
    fn what_is_added_in_16_bits_fits_them_and_little_that_fits_is_left_out() {
        let (n, k) = (19, 600);
        // Steps of very different weights, some with the largest possible.
        let scale = |i: usize| [127.0, 20.0, 5.0, 60.0, 90.0][i % k / 40 % 5];
        let values: Vec<i8> = random(n * k, 3)
            .iter()
            .enumerate()
            .map(|(i, x)| (x * scale(i)).clamp(-128.0, 127.0) as i8)
            .collect();
        let packed = Int8Panels::pack_for(8, true, &values, n, k);
        let mut ways = [0; 5];
        for (panel, runs) in packed.runs.iter().enumerate() {
            for largest in [0, 1, 16, 17, 100, 127, 128, 200, 254] {
                let [four, two, one, pairs] = runs[input_class(largest)].map(usize::from);
                assert!(four <= two && two <= one && one <= pairs && pairs <= packed.words / 2);
                assert!(four.is_multiple_of(4) && (two - four).is_multiple_of(2));
                let sum = |places| largest_sum(&packed, &values, panel, places, largest);
                (0..four).step_by(4).for_each(|at| assert!(sum(at..at + 4) <= 32_767));
                (four..two).step_by(2).for_each(|at| assert!(sum(at..at + 2) <= 32_767));
                (two..one).for_each(|at| assert!(sum(at..at + 1) <= 32_767));
                // One more step would not have fit, or not with slightly larger inputs.
                let more = i32::try_from(input_class(largest) * INPUT_CLASS_WIDTH).unwrap().min(254);
                if one < packed.words / 2 && pairs == one {
                    assert!(largest_sum(&packed, &values, panel, one..one + 1, more) > 32_767);
                }
                for (way, count) in
                    ways.iter_mut().zip([four, two - four, one - two, pairs - one, packed.words / 2 - pairs])
                {
                    *way += count;
                }
            }
        }
        assert!(ways.iter().all(|&count| count > 0), "{ways:?}");
    }
}
