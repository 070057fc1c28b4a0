//! Scaled dot-product attention over packed sentences, forward and backward.
//!
//! For each sentence and head, the kernel computes, masks, normalises and uses the scores of a
//! block of queries while they are in cache; it never stores the `[m, n]` weights. The backward
//! pass recomputes them from the logarithm of each row's sum. Only keys that some query of the
//! block can see are touched: a window of `r` costs `r · n`.

use crate::dropout::Dropout;
use crate::gemm::small::{AView, BView, CView};
use crate::mat::{Mat, MatMut};
use crate::math::exp_of_negative;
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, simd_kernel};
use crate::softmax::exponentials;
use std::ops::Range;

/// The number of queries processed together.
const BLOCK: usize = 32;

/// Scratch rows are padded to a multiple of this many columns, the widest vector, so that no vector
/// there is partial.
const WIDTH: usize = 16;

/// The number of dropout counters reserved for each query. In sentences longer than this, queries
/// share part of their random numbers with their neighbours.
const COUNTERS: usize = 1 << 14;

/// Which keys a query sees. Queries are aligned with the end of the keys: with fewer queries than
/// keys, query 0 is at position `n − m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Only keys at the query's own position and before it.
    pub causal: bool,
    /// Only keys at most this many positions away.
    pub window: Option<usize>,
}

impl Mask {
    /// Every key.
    pub const NONE: Mask = Mask { causal: false, window: None };

    /// The keys that query `i` of `m` sees among `n`.
    pub fn range(self, i: usize, m: usize, n: usize) -> Range<usize> {
        let at = i + n.saturating_sub(m);
        let end = if self.causal { (at + 1).min(n) } else { n };
        match self.window {
            None => 0..end,
            Some(r) => at.saturating_sub(r).min(end)..end.min(at + r + 1),
        }
    }
}

/// Relative positions: what the distance from query `i` to key `j` adds. Distances beyond `reach`
/// are clipped.
#[derive(Clone, Copy, Debug)]
pub enum Relative<'a> {
    /// Vectors that are added to the keys (Shaw, Uszkoreit and Vaswani, 2018).
    Vectors {
        /// `[2 · reach + 1, d_k]`: row `reach + j − i`.
        table: &'a [f32],
        /// The longest distance with a vector of its own.
        reach: usize,
    },
    /// Numbers that are added to the scaled scores (Raffel et al., 2020).
    Bias {
        /// `[h, 2 · reach + 1]`: column `reach + j − i`.
        table: &'a [f32],
        /// The longest distance with an entry of its own.
        reach: usize,
    },
}

impl Relative<'_> {
    /// # Panics
    /// If the table does not fit this number of heads of this width.
    pub(crate) fn check(self, heads: usize, d_k: usize) {
        match self {
            Relative::Vectors { table, reach } => {
                assert_eq!(table.len(), (2 * reach + 1) * d_k, "relative positions");
            }
            Relative::Bias { table, reach } => {
                assert_eq!(table.len(), (2 * reach + 1) * heads, "bias by distance");
            }
        }
    }
}

/// The shape, mask and sentences of an attention.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// h
    pub heads: usize,
    /// Width of a head's queries and keys.
    pub d_k: usize,
    /// Width of a head's values.
    pub d_v: usize,
    /// The factor applied to the scores: 1/√d_k, or 1.
    pub scale: f32,
    /// Which keys a query sees.
    pub mask: Mask,
    /// Where each sentence's queries begin, plus the end of the last.
    pub queries: &'a [usize],
    /// Where each sentence's keys begin, plus the end of the last.
    pub keys: &'a [usize],
    /// Dropout of the attention weights.
    pub dropout: Option<Dropout>,
    /// Relative positions.
    pub relative: Option<Relative<'a>>,
}

impl Attention<'_> {
    /// # Panics
    /// If the matrices do not match the sentences.
    fn check(&self, q: Mat<'_>, k: Mat<'_>, v: Mat<'_>) {
        let ends = |x: &[usize]| x.windows(2).all(|w| w[0] <= w[1]);
        assert!(self.queries.len() == self.keys.len() && ends(self.queries) && ends(self.keys));
        let (m, n) = (self.queries.last().copied().unwrap_or(0), self.keys.last().copied().unwrap_or(0));
        let (h, d_k, d_v) = (self.heads, self.d_k, self.d_v);
        assert!(
            (q.rows, q.cols) == (m, h * d_k)
                && (k.rows, k.cols) == (n, h * d_k)
                && (v.rows, v.cols) == (n, h * d_v),
            "attention of {m} queries over {n} keys, {h} heads of {d_k} and {d_v}: q {}×{}, k {}×{}, v {}×{}",
            q.rows,
            q.cols,
            k.rows,
            k.cols,
            v.rows,
            v.cols
        );
        assert!([q, k, v].iter().all(|x| x.col_stride == 1 && x.is_within()));
        if let Some(relative) = self.relative {
            relative.check(h, d_k);
        }
    }

    /// The vectors of relative positions, if any, and their reach.
    fn vectors(&self) -> Option<(&[f32], usize)> {
        match self.relative {
            Some(Relative::Vectors { table, reach }) => Some((table, reach)),
            _ => None,
        }
    }

    /// # Panics
    /// If the shapes are not those of the output, its gradient and the log-sums of `m` queries.
    fn check_saved(&self, m: usize, out: Mat<'_>, d_out: Mat<'_>, log_sums: &[f32]) {
        assert!(log_sums.len() == m * self.heads);
        let fits =
            |x: Mat<'_>| (x.rows, x.cols, x.col_stride) == (m, self.heads * self.d_v, 1) && x.is_within();
        assert!(fits(out) && fits(d_out));
    }

    fn sentences(&self) -> impl Iterator<Item = (usize, usize, usize, usize)> + '_ {
        self.queries.windows(2).zip(self.keys.windows(2)).map(|(q, k)| (q[0], q[1] - q[0], k[0], k[1] - k[0]))
    }

    /// The number of keys of the longest sentence.
    fn longest(&self) -> usize {
        self.keys.windows(2).map(|k| k[1] - k[0]).max().unwrap_or(0)
    }

    /// The keys that some query of `i .. i + rows` sees, with the start rounded down to whole
    /// vectors.
    fn band(&self, i: usize, rows: usize, m: usize, n: usize) -> (usize, usize) {
        let (first, last) = (self.mask.range(i, m, n), self.mask.range(i + rows - 1, m, n));
        (first.start / WIDTH * WIDTH, last.end)
    }
}

/// Memory that the kernels reuse across calls.
#[derive(Debug, Default)]
pub struct Scratch(Vec<f32>);

impl Scratch {
    /// Slices of the given lengths with arbitrary contents.
    fn split<const N: usize>(&mut self, lengths: [usize; N]) -> [&mut [f32]; N] {
        let total = lengths.iter().sum();
        if self.0.len() < total {
            self.0.resize(total, 0.0);
        }
        let mut rest = &mut self.0[..];
        lengths.map(|n| {
            let (piece, more) = std::mem::take(&mut rest).split_at_mut(n);
            rest = more;
            piece
        })
    }
}

/// Adds `scores[j] += factor · by_distance[reach + (j − at)]`, with the distance clipped, for the
/// keys `first ..` of a row.
pub(crate) fn add_by_distance(
    scores: &mut [f32],
    (first, at): (usize, usize),
    (by_distance, reach): (&[f32], usize),
    factor: f32,
) {
    for (j, score) in scores.iter_mut().enumerate() {
        *score += factor * by_distance[distance_row(first + j, at, reach)];
    }
}

/// The row of the relative table for a key at `j` and a query at `at`.
pub(crate) fn distance_row(j: usize, at: usize, reach: usize) -> usize {
    (j + reach).saturating_sub(at).min(2 * reach)
}

/// A pointer to row `r`, column `c`.
#[inline(always)]
fn at(x: Mat<'_>, r: usize, c: usize) -> *const f32 {
    debug_assert!(r <= x.rows && c <= x.cols);
    x.data.as_ptr().wrapping_add(r * x.row_stride + c)
}

/// A row of a block of scores: a query of a head, and the keys that it sees.
struct Row {
    /// Its row among all queries.
    query: usize,
    head: usize,
    /// Its position among the keys of its sentence.
    position: usize,
    /// The first key that it sees, and the columns of all keys that it sees.
    first_seen: usize,
    columns: Range<usize>,
}

impl Row {
    /// Query `i` of `m`, over `n` keys of a sentence whose queries begin at `q0`; column 0 is key
    /// `first`.
    #[inline(always)]
    fn new(
        shape: &Attention<'_>,
        (q0, i, m, n): (usize, usize, usize, usize),
        head: usize,
        first: usize,
    ) -> Self {
        let seen = shape.mask.range(i, m, n);
        Row {
            query: q0 + i,
            head,
            position: i + n.saturating_sub(m),
            first_seen: seen.start,
            columns: seen.start - first..seen.end - first,
        }
    }

    /// The columns that the query sees; sets the others to 0.
    #[inline(always)]
    fn seen<'a>(&self, row: &'a mut [f32]) -> &'a mut [f32] {
        row[..self.columns.start].fill(0.0);
        row[self.columns.end..].fill(0.0);
        &mut row[self.columns.clone()]
    }

    /// Adds the scores of relative positions, if any; `by_distance` is the product of the query
    /// with their vectors.
    #[inline(always)]
    fn add_relative(&self, shape: &Attention<'_>, row: &mut [f32], by_distance: &[f32]) {
        let (seen, places) = (&mut row[self.columns.clone()], (self.first_seen, self.position));
        match shape.relative {
            None => {}
            Some(Relative::Vectors { reach, .. }) => add_by_distance(seen, places, (by_distance, reach), 1.0),
            Some(Relative::Bias { table, reach }) => {
                let of_head = &table[self.head * (2 * reach + 1)..][..2 * reach + 1];
                // The scale is applied later.
                add_by_distance(seen, places, (of_head, reach), shape.scale.recip());
            }
        }
    }
}

/// Turns a row of scores into weights with dropout, and copies the weights before dropout to
/// `kept`; returns the logarithm of the sum.
#[inline(always)]
fn softmax_row<S: Simd>(
    s: S,
    shape: &Attention<'_>,
    at: &Row,
    row: &mut [f32],
    by_distance: &[f32],
    kept: Option<&mut [f32]>,
) -> f32 {
    at.add_relative(shape, row, by_distance);
    let row = at.seen(row);
    let top = loops::max(s, row) * shape.scale;
    let total = exponentials(s, row, shape.scale, top);
    if let Some(kept) = kept {
        kept.fill(0.0);
        kept[at.first_seen..][..row.len()].copy_from_slice(row);
        loops::scale(s, kept, 1.0 / total);
    }
    match shape.dropout {
        None => loops::scale(s, row, 1.0 / total),
        Some(dropout) => {
            let factors = dropout.head(at.head).row(s, at.query, COUNTERS);
            let normal = s.splat(1.0 / total);
            vectors!(S, row.len(), column => {
                let f = s.mul(normal, factors.at(s, at.first_seen + column.index()));
                let v = s.mul(column.read(s, row), f);
                column.write(s, row, v);
            });
        }
    }
    top + total.ln()
}

/// From a row of scores and the gradients with respect to its weights, computes the weights and the
/// gradients with respect to the scores. `mean` is the dot product of the output and its gradient.
/// The gradients summed by distance go to `by_distance` if relative positions have vectors, and to
/// `d_table` if they have a bias.
#[inline(always)]
fn softmax_row_backward<S: Simd>(
    s: S,
    shape: &Attention<'_>,
    at: &Row,
    (weights, grads): (&mut [f32], &mut [f32]),
    (mean, log_sum): (f32, f32),
    by_distance: &mut [f32],
    d_table: Option<&mut [f32]>,
) {
    at.add_relative(shape, weights, by_distance);
    let (weights, grads) = (at.seen(weights), at.seen(grads));
    let (scale, shift, mean) = (s.splat(shape.scale), s.splat(-log_sum), s.splat(mean));
    match shape.dropout {
        None => vectors!(S, weights.len(), column => {
            let p = exp_of_negative(s, s.mul_add(column.read(s, weights), scale, shift));
            let g = s.sub(column.read(s, grads), mean);
            column.write(s, weights, p);
            column.write(s, grads, s.mul(s.mul(p, g), scale));
        }),
        Some(dropout) => {
            let factors = dropout.head(at.head).row(s, at.query, COUNTERS);
            vectors!(S, weights.len(), column => {
                let p = exp_of_negative(s, s.mul_add(column.read(s, weights), scale, shift));
                let f = factors.at(s, at.first_seen + column.index());
                let g = s.sub(s.mul(column.read(s, grads), f), mean);
                column.write(s, weights, s.mul(p, f));
                column.write(s, grads, s.mul(s.mul(p, g), scale));
            });
        }
    }
    let row = |j: usize, reach| distance_row(at.first_seen + j, at.position, reach);
    match (shape.relative, d_table) {
        (Some(Relative::Vectors { reach, .. }), _) => {
            by_distance.fill(0.0);
            grads.iter().enumerate().for_each(|(j, grad)| by_distance[row(j, reach)] += grad);
        }
        (Some(Relative::Bias { reach, .. }), Some(d_table)) => {
            let of_head = &mut d_table[at.head * (2 * reach + 1)..][..2 * reach + 1];
            let factor = shape.scale.recip();
            grads.iter().enumerate().for_each(|(j, grad)| of_head[row(j, reach)] += factor * grad);
        }
        _ => {}
    }
}

#[inline(always)]
fn forward_body<S: Simd>(
    s: S,
    shape: &Attention<'_>,
    (q, k, v): (Mat<'_>, Mat<'_>, Mat<'_>),
    mut out: MatMut<'_>,
    log_sums: &mut [f32],
    mut weights: Option<&mut [f32]>,
    scratch: &mut Scratch,
) {
    shape.check(q, k, v);
    let Attention { heads, d_k, d_v, .. } = *shape;
    assert!(out.rows == q.rows && out.cols == heads * d_v && log_sums.len() == q.rows * heads);
    let wide = shape.longest().next_multiple_of(WIDTH);
    let vectors = shape.vectors();
    let reach = vectors.map_or(0, |(_, reach)| reach);
    let far = (2 * reach + 1).next_multiple_of(WIDTH);
    let [keys_t, scores, table_t, by_distance] =
        scratch.split([d_k * wide, BLOCK * wide, d_k * far, BLOCK * far]);
    if let Some((table, _)) = vectors {
        let from = BView { at: table.as_ptr(), row: d_k };
        // SAFETY: the table's length is checked; `table_t` has d_k rows of `far`.
        unsafe { s.transpose(2 * reach + 1, d_k, from, CView { at: table_t.as_mut_ptr(), row: far }) };
    }
    let mut weights_at = 0;
    for (q0, m, k0, n) in shape.sentences() {
        for head in 0..heads {
            // SAFETY: `check` has matched the matrices with the sentences; `keys_t` has d_k rows of
            // `wide >= n`.
            unsafe {
                let from = BView { at: at(k, k0, head * d_k), row: k.row_stride };
                s.transpose(n, d_k, from, CView { at: keys_t.as_mut_ptr(), row: wide });
            }
            for i in (0..m).step_by(BLOCK) {
                let rows = BLOCK.min(m - i);
                let (first, end) = shape.band(i, rows, m, n);
                let width = (end - first).next_multiple_of(WIDTH);
                let left = AView { at: at(q, q0 + i, head * d_k), row: q.row_stride, col: 1 };
                // SAFETY: rows `i .. i + rows` of this sentence's queries; `first + width <= wide`
                // columns of `keys_t`, since `wide` is the next multiple of the same width and
                // `first` is one too; `scores` has BLOCK rows.
                unsafe {
                    let right = BView { at: keys_t.as_ptr().add(first), row: wide };
                    s.product(
                        (rows, width, d_k),
                        left,
                        right,
                        CView { at: scores.as_mut_ptr(), row: wide },
                        false,
                    );
                    if vectors.is_some() {
                        let right = BView { at: table_t.as_ptr(), row: far };
                        let to = CView { at: by_distance.as_mut_ptr(), row: far };
                        s.product((rows, far, d_k), left, right, to, false);
                    }
                }
                for r in 0..rows {
                    let at = Row::new(shape, (q0, i + r, m, n), head, first);
                    let row = &mut scores[r * wide..][..width];
                    let kept = weights.as_mut().map(|w| &mut w[weights_at + (head * m + i + r) * n..][..n]);
                    log_sums[at.query * heads + head] =
                        softmax_row(s, shape, &at, row, &by_distance[r * far..], kept);
                }
                let left = AView { at: scores.as_ptr(), row: wide, col: 1 };
                // SAFETY: `end - first <= n` rows of this sentence's values from `first` on; the
                // output rows are its queries'.
                unsafe {
                    let right = BView { at: at(v, k0 + first, head * d_v), row: v.row_stride };
                    let to = out.as_ptr().add((q0 + i) * out.stride + head * d_v);
                    s.product(
                        (rows, d_v, end - first),
                        left,
                        right,
                        CView { at: to, row: out.stride },
                        false,
                    );
                }
            }
        }
        weights_at += heads * m * n;
    }
}
simd_kernel! {
    /// `out = softmax(q·kᵀ·scale)·v` for each sentence and head, `q [m, h·d_k]`, `k [n, h·d_k]`,
    /// `v [n, h·d_v]`, `out [m, h·d_v]`.
    ///
    /// `log_sums [m, h]` receives the logarithm of each row's sum of exponentials, for the backward
    /// pass. `weights`, if given, receives the rows of weights before dropout: sentence by
    /// sentence, head by head, `[m, n]`. A query without any key gives zeros. A NaN affects only
    /// its own sentence.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn attention_forward(
        shape: &Attention<'_>, qkv: (Mat<'_>, Mat<'_>, Mat<'_>), out: MatMut<'_>, log_sums: &mut [f32],
        weights: Option<&mut [f32]>, scratch: &mut Scratch,
    ) = forward_body;
}

#[inline(always)]
fn backward_body<S: Simd>(
    s: S,
    shape: &Attention<'_>,
    (q, k, v): (Mat<'_>, Mat<'_>, Mat<'_>),
    (out, d_out, log_sums): (Mat<'_>, Mat<'_>, &[f32]),
    (mut dq, mut dk, mut dv): (MatMut<'_>, MatMut<'_>, MatMut<'_>),
    mut d_table: Option<&mut [f32]>,
    scratch: &mut Scratch,
) {
    shape.check(q, k, v);
    let Attention { heads, d_k, d_v, .. } = *shape;
    shape.check_saved(q.rows, out, d_out, log_sums);
    assert!((dq.rows, dq.cols) == (q.rows, q.cols) && (dk.rows, dk.cols) == (k.rows, k.cols));
    assert!((dv.rows, dv.cols) == (v.rows, v.cols));
    let wide = shape.longest().next_multiple_of(WIDTH);
    let vectors = shape.vectors();
    let reach = vectors.map_or(0, |(_, reach)| reach);
    let far = (2 * reach + 1).next_multiple_of(WIDTH);
    let [keys_t, values_t, scores, grads, table_t, by_distance] =
        scratch.split([d_k * wide, d_v * wide, BLOCK * wide, BLOCK * wide, d_k * far, BLOCK * far]);
    if let Some(Relative::Vectors { table, .. } | Relative::Bias { table, .. }) = shape.relative {
        let fits = d_table.as_ref().is_some_and(|d_table| d_table.len() == table.len());
        assert!(fits, "gradient of relative positions");
    }
    if let Some((table, _)) = vectors {
        let from = BView { at: table.as_ptr(), row: d_k };
        // SAFETY: the table's length is checked; `table_t` has d_k rows of `far`.
        unsafe { s.transpose(2 * reach + 1, d_k, from, CView { at: table_t.as_mut_ptr(), row: far }) };
    }
    for (q0, m, k0, n) in shape.sentences() {
        for head in 0..heads {
            // SAFETY: as in the forward pass; `values_t` has d_v rows of `wide >= n`.
            unsafe {
                let from = BView { at: at(k, k0, head * d_k), row: k.row_stride };
                s.transpose(n, d_k, from, CView { at: keys_t.as_mut_ptr(), row: wide });
                let from = BView { at: at(v, k0, head * d_v), row: v.row_stride };
                s.transpose(n, d_v, from, CView { at: values_t.as_mut_ptr(), row: wide });
            }
            for i in (0..m).step_by(BLOCK) {
                let rows = BLOCK.min(m - i);
                let (first, end) = shape.band(i, rows, m, n);
                let width = (end - first).next_multiple_of(WIDTH);
                let queries = AView { at: at(q, q0 + i, head * d_k), row: q.row_stride, col: 1 };
                let d_outs = AView { at: at(d_out, q0 + i, head * d_v), row: d_out.row_stride, col: 1 };
                // SAFETY: as in the forward pass, for the scores and for the gradients with respect
                // to the weights.
                unsafe {
                    let right = BView { at: keys_t.as_ptr().add(first), row: wide };
                    let to = CView { at: scores.as_mut_ptr(), row: wide };
                    s.product((rows, width, d_k), queries, right, to, false);
                    let right = BView { at: values_t.as_ptr().add(first), row: wide };
                    let to = CView { at: grads.as_mut_ptr(), row: wide };
                    s.product((rows, width, d_v), d_outs, right, to, false);
                    if vectors.is_some() {
                        let right = BView { at: table_t.as_ptr(), row: far };
                        let to = CView { at: by_distance.as_mut_ptr(), row: far };
                        s.product((rows, far, d_k), queries, right, to, false);
                    }
                }
                for r in 0..rows {
                    let at = Row::new(shape, (q0, i + r, m, n), head, first);
                    let columns = head * d_v..(head + 1) * d_v;
                    let mean =
                        loops::dot(s, &d_out.row(at.query)[columns.clone()], &out.row(at.query)[columns]);
                    let row = (&mut scores[r * wide..][..width], &mut grads[r * wide..][..width]);
                    let log_sum = log_sums[at.query * heads + head];
                    softmax_row_backward(
                        s,
                        shape,
                        &at,
                        row,
                        (mean, log_sum),
                        &mut by_distance[r * far..][..far],
                        d_table.as_deref_mut(),
                    );
                }
                let keys = end - first;
                // SAFETY: `keys <= n` rows of this sentence's keys and values from `first` on,
                // `rows` of its queries, and the same positions in the gradients, which are
                // separate views.
                unsafe {
                    let right = BView { at: at(d_out, q0 + i, head * d_v), row: d_out.row_stride };
                    let to = dv.as_ptr().add((k0 + first) * dv.stride + head * d_v);
                    let left = AView { at: scores.as_ptr(), row: 1, col: wide };
                    s.product((keys, d_v, rows), left, right, CView { at: to, row: dv.stride }, true);

                    let right = BView { at: at(k, k0 + first, head * d_k), row: k.row_stride };
                    let to = dq.as_ptr().add((q0 + i) * dq.stride + head * d_k);
                    let to_queries = CView { at: to, row: dq.stride };
                    let left = AView { at: grads.as_ptr(), row: wide, col: 1 };
                    s.product((rows, d_k, keys), left, right, to_queries, true);

                    let queries = BView { at: queries.at, row: queries.row };
                    let to = dk.as_ptr().add((k0 + first) * dk.stride + head * d_k);
                    let left = AView { at: grads.as_ptr(), row: 1, col: wide };
                    s.product((keys, d_k, rows), left, queries, CView { at: to, row: dk.stride }, true);

                    if let (Some((table, _)), Some(d_table)) = (vectors, &mut d_table) {
                        let table = BView { at: table.as_ptr(), row: d_k };
                        let left = AView { at: by_distance.as_ptr(), row: far, col: 1 };
                        s.product((rows, d_k, 2 * reach + 1), left, table, to_queries, true);
                        let left = AView { at: by_distance.as_ptr(), row: 1, col: far };
                        let to = CView { at: d_table.as_mut_ptr(), row: d_k };
                        s.product((2 * reach + 1, d_k, rows), left, queries, to, true);
                    }
                }
            }
        }
    }
}
simd_kernel! {
    /// Accumulates the gradients of [`attention_forward`] with respect to `q`, `k`, `v` and the
    /// relative table.
    ///
    /// `saved` is the output, its gradient, and the `log_sums` of the forward pass.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn attention_backward(
        shape: &Attention<'_>, qkv: (Mat<'_>, Mat<'_>, Mat<'_>), saved: (Mat<'_>, Mat<'_>, &[f32]),
        d_qkv: (MatMut<'_>, MatMut<'_>, MatMut<'_>), d_table: Option<&mut [f32]>, scratch: &mut Scratch,
    ) = backward_body;
}

#[cfg(test)]
mod tests;
