//! The layout of packed weights in 8 bits.
//!
//! A panel is as many columns of the product as two vectors have lanes, and a step of it two groups of four numbers of each
//! column. The sums are exact, so that their order is free: a panel begins with the steps whose products can be added in 16 bits
//! even if the inputs are large. For given inputs a number of steps at its beginning take the fast instructions, without
//! a branch for each.

use super::quantize::words;
use crate::Isa;
use crate::aligned::Aligned;
use crate::simd::{GROUP, adds_in_16_bits, lanes};

/// Numbers of a column that are multiplied in one step: two groups.
pub(super) const STEP: usize = 2 * GROUP;

/// `[panel][step][vector: 2][group: 2][lanes][4]`
#[derive(Clone, Debug)]
pub(super) struct Int8Panels {
    pub(super) k: usize,
    pub(super) lanes: usize,
    /// How many words of `GROUP` numbers a row of the input takes: whole vectors of them.
    pub(super) words: usize,
    pub(super) weights: Aligned<i8>,
    /// The sum of each column.
    pub(super) totals: Vec<i32>,
    /// `[panel][place]`: which step of `k` lies there.
    pub(super) order: Vec<u16>,
    /// `[panel][place]`: the largest input whose products can be added in 16 bits. It falls from place to place.
    pub(super) limits: Vec<u8>,
    /// `[panel][step]`: where a step lies, the inverse of `order`.
    places: Vec<u16>,
    /// `[column][step]`: the limit of a column by itself; empty where the instruction set adds in 32 bits.
    column_limits: Vec<u8>,
}

impl Int8Panels {
    pub(super) fn pack(isa: Isa, values: &[i8], n: usize, k: usize) -> Self {
        Self::pack_for(lanes(isa), adds_in_16_bits(isa), values, n, k)
    }

    fn pack_for(lanes: usize, limited: bool, values: &[i8], n: usize, k: usize) -> Self {
        let column_limits = if limited { column_limits(values, k, words(lanes, k) / 2) } else { Vec::new() };
        let mut packed = Self::arranged(lanes, column_limits, n, k);
        for (i, row) in values.chunks_exact(k.max(1)).enumerate() {
            packed.totals[i] = row.iter().map(|&x| i32::from(x)).sum();
            for (g, part) in row.chunks(GROUP).enumerate() {
                let at = packed.place(i, g);
                packed.weights.as_mut_slice()[at..at + part.len()].copy_from_slice(part);
            }
        }
        packed
    }

    /// Zeros, with the steps of each panel in the order that the limits of its columns ask for.
    fn arranged(lanes: usize, column_limits: Vec<u8>, n: usize, k: usize) -> Self {
        let (words, width) = (words(lanes, k), 2 * lanes);
        let (padded, steps) = (n.next_multiple_of(width), words / 2);
        assert!(steps <= usize::from(u16::MAX), "rows of {k} weights");
        let mut packed = Int8Panels {
            k,
            lanes,
            words,
            weights: Aligned::zeros(padded * words * GROUP),
            totals: vec![0; padded],
            order: Vec::with_capacity(padded / width * steps),
            limits: vec![u8::MAX; padded / width * steps],
            places: vec![0; padded / width * steps],
            column_limits,
        };
        let mut limits = vec![u8::MAX; steps];
        for panel in 0..padded / width {
            let at = panel * steps..(panel + 1) * steps;
            packed.order.extend(0..steps as u16);
            let order = &mut packed.order[at.clone()];
            if !packed.column_limits.is_empty() {
                limits.fill(u8::MAX);
                let last = packed.column_limits.len().min((panel + 1) * width * steps);
                for column in packed.column_limits[panel * width * steps..last].chunks_exact(steps) {
                    limits.iter_mut().zip(column).for_each(|(limit, &own)| *limit = own.min(*limit));
                }
                order.sort_by_key(|&step| std::cmp::Reverse(limits[usize::from(step)]));
                let sorted = order.iter().map(|&step| limits[usize::from(step)]);
                packed.limits[at.clone()].iter_mut().zip(sorted).for_each(|(to, limit)| *to = limit);
            }
            let places = &mut packed.places[at];
            order.iter().enumerate().for_each(|(place, &step)| places[usize::from(step)] = place as u16);
        }
        packed
    }

    /// Some rows of the matrix, packed alike.
    pub(super) fn select(&self, rows: &[u32]) -> Self {
        let steps = self.words / 2;
        let rows = rows.iter().map(|&row| row as usize);
        let column_limits = if self.column_limits.is_empty() {
            Vec::new()
        } else {
            rows.clone().flat_map(|row| &self.column_limits[row * steps..][..steps]).copied().collect()
        };
        let mut to = Self::arranged(self.lanes, column_limits, rows.len(), self.k);
        let second = self.lanes * GROUP;
        let mut packed = std::mem::take(&mut to.weights);
        let weights = packed.as_mut_slice();
        for (i, row) in rows.enumerate() {
            to.totals[i] = self.totals[row];
            let (from, from_places) = self.column(row);
            let (at, to_places) = to.column(i);
            let from = &self.weights.as_slice()[from..];
            for (&from_place, &to_place) in from_places.iter().zip(to_places) {
                let from = &from[usize::from(from_place) * self.step_bytes()..];
                let at = at + usize::from(to_place) * self.step_bytes();
                let to = &mut weights[at..at + second + GROUP];
                to[..GROUP].copy_from_slice(&from[..GROUP]);
                to[second..].copy_from_slice(&from[second..second + GROUP]);
            }
        }
        to.weights = packed;
        to
    }

    /// The bytes of a step of a panel.
    fn step_bytes(&self) -> usize {
        2 * STEP * self.lanes
    }

    /// Where the first group of column `i` would lie if its step were the first of the panel, and the places of the panel's steps.
    fn column(&self, i: usize) -> (usize, &[u16]) {
        let (steps, width) = (self.words / 2, 2 * self.lanes);
        let (panel, column) = (i / width, i % width);
        let start = panel * steps * self.step_bytes();
        let inside = column / self.lanes * STEP * self.lanes + column % self.lanes * GROUP;
        (start + inside, &self.places[panel * steps..][..steps])
    }

    /// Where group `g` of column `i` lies.
    pub(super) fn place(&self, i: usize, g: usize) -> usize {
        let (start, places) = self.column(i);
        start + usize::from(places[g / 2]) * self.step_bytes() + g % 2 * self.lanes * GROUP
    }

    pub(super) fn bytes(&self) -> usize {
        let steps = self.limits.len() + self.column_limits.len() + 2 * (self.order.len() + self.places.len());
        self.weights.bytes() + 4 * self.totals.len() + steps
    }
}

/// `[column][step]`: the largest input with which the products of a step can be added in 16 bits.
fn column_limits(values: &[i8], k: usize, steps: usize) -> Vec<u8> {
    let rows = values.chunks_exact(k.max(1));
    let mut limits = Vec::with_capacity(rows.len() * steps);
    for row in rows {
        limits.extend(row.chunks(STEP).map(limit_16_bits));
        limits.resize(limits.len().next_multiple_of(steps), u8::MAX);
    }
    limits
}

/// The largest input with which the pairs of a step that are added in 16 bits fit them: the first of both groups, and the
/// second. Inputs are never negative, so that positive and negative weights count apart.
fn limit_16_bits(step: &[i8]) -> u8 {
    let most = [0, 2].iter().fold(1, |most: i32, &first| {
        let both = [first, first + 1, first + GROUP, first + GROUP + 1];
        let weights = both.iter().filter_map(|&i| step.get(i)).map(|&w| i32::from(w));
        let (above, below) = weights.fold((0, 0), |(a, b), w| (a + w.max(0), b - w.min(0)));
        most.max(above).max(below)
    });
    (i32::from(i16::MAX) / most).min(i32::from(u8::MAX)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    /// What the kernel does with a layout, in plain loops: also that of instruction sets which this machine lacks.
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
            let of_chosen: Vec<i32> = chosen.iter().map(|&i| want[i as usize]).collect();
            for (lanes, limited) in [(4, false), (8, true), (8, false), (16, false)] {
                let packed = Int8Panels::pack_for(lanes, limited, &values, n, k);
                assert_eq!(by_layout(&packed, n, &x), want, "{lanes} lanes {n}×{k}");
                let selected = packed.select(&chosen);
                assert_eq!(by_layout(&selected, chosen.len(), &x), of_chosen, "{lanes} lanes {n}×{k}");
            }
        }
    }

    #[test]
    fn the_steps_of_a_panel_are_ordered_by_their_limits_and_each_has_the_limit_of_its_columns() {
        let (n, k) = (19, 200);
        let values: Vec<i8> = random(n * k, 3).iter().map(|x| (x * 63.0) as i8).collect();
        let packed = Int8Panels::pack_for(8, true, &values, n, k);
        let steps = packed.words / 2;
        for panel in 0..2 {
            let limits = &packed.limits[panel * steps..][..steps];
            assert!(limits.is_sorted_by(|a, b| a >= b) && limits[0] > limits[steps - 1]);
            for (limit, &step) in limits.iter().zip(&packed.order[panel * steps..]) {
                let columns = (panel * 16..n.min(panel * 16 + 16)).map(|i| &values[i * k..][..k]);
                let parts = columns.map(|row| row.chunks(STEP).nth(usize::from(step)).unwrap_or(&[]));
                assert_eq!(parts.map(limit_16_bits).min(), Some(*limit));
            }
        }
    }

    #[test]
    fn a_limit_is_the_largest_input_whose_products_fit_16_bits() {
        // 127 · 258 = 32,766 fits, 127 · 259 does not.
        assert_eq!(limit_16_bits(&[127, 127, 127, 0, 4, 0, 127, 4]), 127);
        assert_eq!(limit_16_bits(&[127, 127, 0, 0, 4, 1, 0, 0]), 126);
        assert_eq!(limit_16_bits(&[0, 0, -127, -127, 0, 0, 0, -5]), 126);
        // 254 · 129 = 32,766.
        assert_eq!(limit_16_bits(&[127, 2, 127, 127, -127, -2, -127, -127]), 129);
        assert_eq!(limit_16_bits(&[127, 2, 127, 2, -127, -2, -127, -2]), 254);
        assert_eq!(limit_16_bits(&[127, 127, 127]), 129);
        assert_eq!(limit_16_bits(&[]), 255);
    }
}
