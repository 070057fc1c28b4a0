//! Attention of single queries over rows of a KV cache: one step of decoding.
//!
//! Each query lists the cache rows that it attends to, so hypotheses of a beam share common rows,
//! including the keys and values of the source, and reordering a beam copies nothing.

use crate::attention::{Relative, add_by_distance, distance_row};
use crate::mat::{Mat, MatMut};
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, simd_kernel};
use crate::softmax::exponentials;

/// The heads, and which cache rows each query sees.
#[derive(Clone, Copy, Debug)]
pub struct Paged<'a> {
    /// h
    pub heads: usize,
    /// Width of a head's queries and keys.
    pub d_k: usize,
    /// Width of a head's values.
    pub d_v: usize,
    /// The factor applied to the scores: 1/√d_k, or 1.
    pub scale: f32,
    /// Where each query's list begins in `rows`, plus the end of the last.
    pub offsets: &'a [usize],
    /// Cache rows, list by list; with relative positions, the last row of a list is at the query's
    /// own position.
    pub rows: &'a [u32],
    /// Relative positions.
    pub relative: Option<Relative<'a>>,
}

#[inline(always)]
fn body<S: Simd>(
    s: S,
    shape: &Paged<'_>,
    q: Mat<'_>,
    kv: Mat<'_>,
    mut out: MatMut<'_>,
    mut weights: Option<&mut [f32]>,
    scratch: &mut Vec<f32>,
) {
    let Paged { heads, d_k, d_v, offsets, rows, relative, .. } = *shape;
    let keys = heads * d_k;
    assert!(offsets.len() == q.rows + 1 && offsets[q.rows] <= rows.len());
    assert!(q.cols == keys && kv.cols == keys + heads * d_v && (out.rows, out.cols) == (q.rows, heads * d_v));
    let largest = rows[offsets[0]..offsets[q.rows]].iter().max().map_or(0, |&row| row as usize + 1);
    assert!(largest <= kv.rows && kv.is_within() && kv.col_stride == 1);
    if let Some(relative) = relative {
        relative.check(heads, d_k);
    }
    // Heads of a few whole vectors, which is the common case, stay in registers.
    let plain = !matches!(relative, Some(Relative::Vectors { .. }));
    let in_registers = d_k == d_v && plain && d_k.is_multiple_of(S::LANES);
    for r in 0..q.rows {
        let list = &rows[offsets[r]..offsets[r + 1]];
        let n = list.len();
        scratch.clear();
        scratch.resize(heads * n, 0.0);
        let (query, to) = (q.row(r), out.row(r));
        match if in_registers { d_k / S::LANES } else { 0 } {
            1 => by_heads::<S, 1>(s, shape, query, kv, list, scratch, to),
            2 => by_heads::<S, 2>(s, shape, query, kv, list, scratch, to),
            4 => by_heads::<S, 4>(s, shape, query, kv, list, scratch, to),
            8 => by_heads::<S, 8>(s, shape, query, kv, list, scratch, to),
            _ => by_rows(s, shape, query, kv, list, scratch, to),
        }
        if let Some(weights) = &mut weights {
            weights[heads * offsets[r]..heads * offsets[r + 1]].copy_from_slice(scratch);
        }
    }
}

/// One query, head by head; its elements and the sums over the values stay in registers.
#[inline(always)]
fn by_heads<S: Simd, const V: usize>(
    s: S,
    shape: &Paged<'_>,
    query: &[f32],
    kv: Mat<'_>,
    list: &[u32],
    scores: &mut [f32],
    to: &mut [f32],
) {
    let Paged { heads, .. } = *shape;
    let (width, n) = (V * S::LANES, list.len());
    let keys = heads * width;
    assert!(query.len() == keys && to.len() == keys && kv.cols == 2 * keys && scores.len() == heads * n);
    let base = kv.data.as_ptr();
    for h in 0..heads {
        let scores = &mut scores[h * n..][..n];
        // SAFETY: `h` is below `heads`, the lengths have been asserted, and the caller has checked
        // that every row of the list exists.
        unsafe {
            let mut q = [s.zero(); V];
            for (i, q) in q.iter_mut().enumerate() {
                *q = s.load(query.as_ptr().add(h * width + i * S::LANES));
            }
            // Eight keys at a time: a horizontal sum of one vector costs more than its products.
            for (scores, rows) in scores.chunks_mut(8).zip(list.chunks(8)) {
                let mut sums = [s.zero(); 8];
                for (sum, &row) in sums.iter_mut().zip(rows) {
                    let key = base.add(row as usize * kv.row_stride + h * width);
                    prefetch_next_head::<S, V>(s, key);
                    for (i, &q) in q.iter().enumerate() {
                        *sum = s.mul_add(q, s.load(key.add(i * S::LANES)), *sum);
                    }
                }
                scores.copy_from_slice(&s.reduce_sums(sums)[..rows.len()]);
            }
            weigh(s, shape, h, scores);
            let mut sums = [s.zero(); V];
            for (&weight, &row) in scores.iter().zip(list) {
                let value = base.add(row as usize * kv.row_stride + keys + h * width);
                prefetch_next_head::<S, V>(s, value);
                let weight = s.splat(weight);
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = s.mul_add(weight, s.load(value.add(i * S::LANES)), *sum);
                }
            }
            for (i, &sum) in sums.iter().enumerate() {
                s.store(to.as_mut_ptr().add(h * width + i * S::LANES), sum);
            }
        }
    }
}

/// Prefetches the elements of the next head: those of a batch of sentences come from a distant
/// cache, in short pieces that the hardware prefetcher does not predict.
#[inline(always)]
fn prefetch_next_head<S: Simd, const V: usize>(s: S, head: *const f32) {
    let width = V * S::LANES;
    for at in (0..width).step_by(64 / size_of::<f32>()) {
        s.prefetch(head.wrapping_add(width + at));
    }
}

/// Turns the scores of a head into weights.
#[inline(always)]
fn weigh<S: Simd>(s: S, shape: &Paged<'_>, head: usize, scores: &mut [f32]) {
    let scale = shape.scale;
    if let Some(Relative::Bias { table, reach }) = shape.relative {
        let of_head = &table[head * (2 * reach + 1)..][..2 * reach + 1];
        // The query is at the end of its list; the scale is applied below.
        let places = (0, scores.len().saturating_sub(1));
        add_by_distance(scores, places, (of_head, reach), scale.recip());
    }
    let top = loops::max(s, scores) * scale;
    let total = exponentials(s, scores, scale, top);
    loops::scale(s, scores, 1.0 / total);
}

/// One query with heads of any width and with relative positions.
#[inline(always)]
fn by_rows<S: Simd>(
    s: S,
    shape: &Paged<'_>,
    query: &[f32],
    kv: Mat<'_>,
    list: &[u32],
    scores: &mut [f32],
    to: &mut [f32],
) {
    let Paged { heads, d_k, d_v, relative, .. } = *shape;
    let (keys, n) = (heads * d_k, list.len());
    for (j, &row) in list.iter().enumerate() {
        let key = &kv.row(row as usize)[..keys];
        for h in 0..heads {
            let at = h * d_k..(h + 1) * d_k;
            let mut score = loops::dot(s, &query[at.clone()], &key[at.clone()]);
            if let Some(Relative::Vectors { table, reach }) = relative {
                // The query is at the end of its list.
                let row = distance_row(j, n - 1, reach);
                score += loops::dot(s, &query[at], &table[row * d_k..][..d_k]);
            }
            scores[h * n + j] = score;
        }
    }
    for h in 0..heads {
        weigh(s, shape, h, &mut scores[h * n..][..n]);
    }
    to.fill(0.0);
    for (j, &row) in list.iter().enumerate() {
        let value = &kv.row(row as usize)[keys..];
        for h in 0..heads {
            let weight = s.splat(scores[h * n + j]);
            let (to, value) = (&mut to[h * d_v..][..d_v], &value[h * d_v..][..d_v]);
            vectors!(S, d_v, at => {
                let v = s.mul_add(at.read(s, value), weight, at.read(s, to));
                at.write(s, to, v);
            });
        }
    }
}
simd_kernel! {
    /// `out = softmax(q·kᵀ·scale)·v` over each query's own rows of `kv [rows, h·(d_k + d_v)]`, keys
    /// and values side by side.
    ///
    /// `weights`, if given, receives `[h, n]` elements for each query, where `n` is the length of
    /// its list. A query's result depends on its list alone. An empty list gives zeros.
    ///
    /// # Panics
    /// If the shapes do not match, or a list names a row that does not exist.
    pub fn paged_attention(
        shape: &Paged<'_>, q: Mat<'_>, kv: Mat<'_>, out: MatMut<'_>, weights: Option<&mut [f32]>,
        scratch: &mut Vec<f32>,
    ) = body;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, random, widen};
    use crate::{Isa, naive};

    #[test]
    fn lists_agree_with_the_naive_twin() {
        let lists: [&[u32]; 5] = [&[3, 1, 4, 1], &[0], &[], &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0], &[2, 2]];
        let offsets: Vec<usize> = std::iter::once(0)
            .chain(lists.iter().scan(0, |at, l| {
                *at += l.len();
                Some(*at)
            }))
            .collect();
        let rows = lists.concat();
        for isa in Isa::available() {
            for (heads, d_k, d_v) in
                [(1, 3, 5), (2, 8, 8), (3, 17, 9), (2, 16, 16), (3, 32, 32), (2, 64, 64), (1, 128, 128)]
            {
                for (reach, biased) in [(None, false), (Some(2), false), (Some(2), true)] {
                    let keys = heads * d_k;
                    let width = keys + heads * d_v;
                    let (q, kv) = (random(5 * keys, 1), random(10 * width, 2));
                    let cells = if biased { heads } else { d_k };
                    let table = random((2 * reach.unwrap_or(0) + 1) * cells, 3);
                    let table = &table[..];
                    let relative = reach.map(|reach| match biased {
                        true => Relative::Bias { table, reach },
                        false => Relative::Vectors { table, reach },
                    });
                    let scale = 0.7 / (d_k as f32).sqrt();
                    let shape = Paged { heads, d_k, d_v, scale, offsets: &offsets, rows: &rows, relative };
                    let mut out = vec![f32::NAN; 5 * heads * d_v];
                    let mut weights = vec![f32::NAN; heads * rows.len()];
                    paged_attention(
                        isa,
                        &shape,
                        Mat::new(&q, 5, keys),
                        Mat::new(&kv, 10, width),
                        MatMut::new(&mut out, 5, heads * d_v),
                        Some(&mut weights),
                        &mut Vec::new(),
                    );
                    for (r, list) in lists.iter().enumerate() {
                        for h in 0..heads {
                            let n = list.len();
                            let part = |from: usize, d: usize| -> Vec<f64> {
                                let of = |row: &u32| kv[*row as usize * width + from + h * d..][..d].to_vec();
                                widen(&list.iter().flat_map(of).collect::<Vec<f32>>())
                            };
                            let row = |j: usize| {
                                reach.map(|reach| (j + reach).saturating_sub(n - 1).min(2 * reach))
                            };
                            let (want, want_weights) = naive::biased_attention(
                                &widen(&q[r * keys + h * d_k..][..d_k]),
                                &part(0, d_k),
                                &part(keys, d_v),
                                naive::Sizes { m: 1, n, d_k, d_v },
                                f64::from(scale),
                                |_, _| true,
                                |_, j, c| {
                                    row(j)
                                        .filter(|_| !biased)
                                        .map_or(0.0, |row| f64::from(table[row * d_k + c]))
                                },
                                |_, j| {
                                    row(j).filter(|_| biased).map_or(0.0, |row| f64::from(table[h * 5 + row]))
                                },
                                |_, _| 1.0,
                            );
                            let what = format!("{isa} query {r} head {h} of {heads}, {reach:?} {biased}");
                            assert_close(&out[r * heads * d_v + h * d_v..][..d_v], &want, 1e-5, &what);
                            let got = &weights[heads * offsets[r] + h * n..][..n];
                            assert_close(got, &want_weights, 1e-5, &what);
                        }
                    }
                }
            }
        }
    }
}
