//! Small greyscale pictures: a square among other shapes, each inside one patch, with noise
//! everywhere.

use regard_core::Key;
use regard_core::random::Rng;

/// The side of a patch in pixels.
pub(super) const PATCH: usize = 6;

/// The maximum brightness of the noise.
const NOISE: f32 = 0.25;

/// A picture of `grid × grid` patches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    /// The number of patches along a side.
    pub(super) grid: usize,
    /// `grid²` rows of `PATCH²` pixels from 0 (black) to 1 (white): patch by patch, as the model
    /// reads them.
    pub(super) patches: Vec<f32>,
    /// The position of the square.
    pub(super) row: usize,
    pub(super) column: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Square,
    Disc,
    Plus,
    Cross,
    Triangle,
}

/// All shapes except the square.
const OTHERS: [Shape; 4] = [Shape::Disc, Shape::Plus, Shape::Cross, Shape::Triangle];

impl Shape {
    /// Whether the shape covers the pixel (x, y) of a box of `size` pixels.
    fn covers(self, x: usize, y: usize, size: usize) -> bool {
        let last = size - 1;
        match self {
            Shape::Square => x == 0 || y == 0 || x == last || y == last,
            // Compares twice the distance from the centre, to stay in integers.
            Shape::Disc => {
                let from = |v: usize| (2 * v).abs_diff(last).pow(2);
                from(x) + from(y) <= last * last + 1
            }
            Shape::Plus => x == size / 2 || y == size / 2,
            Shape::Cross => x == y || x == last - y,
            Shape::Triangle => (2 * x).abs_diff(last) <= y,
        }
    }
}

impl Picture {
    /// Draws a random picture: the square in a uniformly random patch, and other shapes in a third
    /// of the rest.
    pub(super) fn draw(grid: usize, key: Key) -> Self {
        let mut draws = Rng::from(key);
        let count = grid * grid;
        let mut patches: Vec<f32> = (0..count * PATCH * PATCH).map(|_| draws.between(0.0, NOISE)).collect();
        let places = draws.distinct(1 + (count - 1) / 3, count);
        for (i, &place) in places.iter().enumerate() {
            let shape = if i == 0 { Shape::Square } else { OTHERS[draws.below(OTHERS.len())] };
            paint(&mut patches[place * PATCH * PATCH..][..PATCH * PATCH], shape, &mut draws);
        }
        Picture { grid, patches, row: places[0] / grid, column: places[0] % grid }
    }

    /// The number of patches.
    pub(super) fn count(&self) -> usize {
        self.grid * self.grid
    }

    /// The index of the patch with the square.
    pub(super) fn place(&self) -> usize {
        self.row * self.grid + self.column
    }

    /// The pixels line by line, for display.
    pub(super) fn lines(&self) -> Vec<Vec<f32>> {
        let side = self.grid * PATCH;
        let pixel = |y: usize, x: usize| {
            let patch = y / PATCH * self.grid + x / PATCH;
            self.patches[(patch * PATCH + y % PATCH) * PATCH + x % PATCH]
        };
        (0..side).map(|y| (0..side).map(|x| pixel(y, x)).collect()).collect()
    }

    /// The same patches in random order, with the new position of the square.
    pub(super) fn shuffled(&self, key: Key) -> Self {
        let order = Rng::from(key).distinct(self.count(), self.count());
        let patch = |&from: &usize| self.patches[from * PATCH * PATCH..][..PATCH * PATCH].to_vec();
        let place = order.iter().position(|&from| from == self.place()).unwrap_or(0);
        Picture {
            grid: self.grid,
            patches: order.iter().flat_map(patch).collect(),
            row: place / self.grid,
            column: place % self.grid,
        }
    }
}

/// Draws a shape of four to six pixels at a random place in a patch.
fn paint(patch: &mut [f32], shape: Shape, draws: &mut Rng) {
    let size = PATCH - draws.below(3);
    let (left, top) = (draws.below(PATCH - size + 1), draws.below(PATCH - size + 1));
    let bright = draws.between(0.5, 1.0);
    for y in 0..size {
        for x in (0..size).filter(|&x| shape.covers(x, y, size)) {
            let pixel = &mut patch[(top + y) * PATCH + left + x];
            *pixel = (bright + *pixel - NOISE / 2.0).clamp(0.0, 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_differ_at_every_size() {
        let all = [Shape::Square, Shape::Disc, Shape::Plus, Shape::Cross, Shape::Triangle];
        for size in 4..=6 {
            let drawn: Vec<Vec<bool>> = all
                .iter()
                .map(|s| (0..size * size).map(|i| s.covers(i % size, i / size, size)).collect())
                .collect();
            for (i, a) in drawn.iter().enumerate() {
                assert!(a.iter().any(|&on| on) && !a.iter().all(|&on| on), "{:?} {size}", all[i]);
                assert!(drawn[..i].iter().all(|b| a != b), "{:?} {size}", all[i]);
            }
        }
    }

    #[test]
    fn the_square_is_anywhere_and_where_it_is_said_to_be() {
        let (grid, n) = (4, 3200);
        let mut counts = vec![0; grid * grid];
        for i in 0..n {
            let picture = Picture::draw(grid, Key::new(7).child(i));
            counts[picture.place()] += 1;
            assert!(picture.patches.iter().all(|p| (0.0..=1.0).contains(p)));
        }
        assert!(counts.iter().all(|c| (140..260).contains(c)), "{counts:?}");
    }

    #[test]
    fn lines_and_shuffled_patches_hold_the_same_pixels() {
        let picture = Picture::draw(3, Key::new(1));
        let lines = picture.lines();
        assert_eq!((lines.len(), lines[0].len()), (18, 18));
        // Patch 5 is the last of the second row; its pixel (4, 2) is column 16, line 8.
        assert_eq!(lines[8][16], picture.patches[(5 * PATCH + 2) * PATCH + 4]);
        let shuffled = picture.shuffled(Key::new(2));
        assert_ne!(shuffled.patches, picture.patches);
        let at = |p: &Picture| p.patches[p.place() * 36..][..36].to_vec();
        assert_eq!(at(&picture), at(&shuffled));
        let sorted = |p: &Picture| {
            let mut all = p.patches.clone();
            all.sort_by(f32::total_cmp);
            all
        };
        assert_eq!(sorted(&picture), sorted(&shuffled));
    }
}
