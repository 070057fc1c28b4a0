//! Concatenates the tokens around each token (im2col), for convolutions.

use regard_kernels::Mat;
use std::ops::Range;

/// For each token and each position of the window: the token's row, the position, and the row of
/// the token there, if it exists.
pub fn unfold_pairs(
    offsets: &[usize],
    width: usize,
    dilation: usize,
) -> impl Iterator<Item = (usize, usize, Option<usize>)> {
    let middle = width / 2;
    let inside = move |sentence: Range<usize>, row: usize, i: usize| {
        let there = (row + i * dilation).checked_sub(middle * dilation)?;
        sentence.contains(&there).then_some(there)
    };
    offsets.windows(2).map(|w| w[0]..w[1]).flat_map(move |sentence| {
        sentence.clone().flat_map(move |row| {
            let sentence = sentence.clone();
            (0..width).map(move |i| (row, i, inside(sentence.clone(), row, i)))
        })
    })
}

/// Fills `y [rows, width · d]`, with zeros beyond the ends of a sentence.
pub fn unfold(x: Mat<'_>, offsets: &[usize], width: usize, dilation: usize, y: &mut [f32]) {
    let d = x.cols();
    for (row, i, there) in unfold_pairs(offsets, width, dilation) {
        let to = &mut y[(row * width + i) * d..][..d];
        match there {
            Some(there) => to.copy_from_slice(x.row(there)),
            None => to.fill(0.0),
        }
    }
}
