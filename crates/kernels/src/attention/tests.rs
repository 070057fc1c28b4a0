use super::*;
use crate::testing::{assert_close, random, widen};
use crate::{Isa, Key, naive};

/// One case: sentences of (queries, keys).
struct Case {
    sentences: Vec<(usize, usize)>,
    heads: usize,
    d_k: usize,
    d_v: usize,
    mask: Mask,
    dropout: f32,
    reach: Option<usize>,
    /// Whether relative positions add to the scores instead of the keys.
    biased: bool,
}

impl Case {
    fn offsets(&self, side: fn(&(usize, usize)) -> usize) -> Vec<usize> {
        std::iter::once(0)
            .chain(self.sentences.iter().scan(0, |at, s| {
                *at += side(s);
                Some(*at)
            }))
            .collect()
    }

    /// An unusual scale for the bias, to check that the bias is not scaled.
    fn scale(&self) -> f32 {
        (if self.biased { 1.5 } else { 1.0 }) / (self.d_k as f32).sqrt()
    }

    fn dropout(&self) -> Option<Dropout> {
        (self.dropout > 0.0).then(|| Dropout::new(Key::new(77), self.dropout, 13))
    }

    /// The outputs `[m, h·d_v]` and all weights, computed by the naive twin.
    fn twin(&self, q: &[f64], k: &[f64], v: &[f64], table: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let Case { heads, d_k, d_v, mask, .. } = *self;
        let (queries, keys) = (self.offsets(|s| s.0), self.offsets(|s| s.1));
        let mut out = vec![0.0; queries[queries.len() - 1] * heads * d_v];
        let mut weights = Vec::new();
        for (b, &(m, n)) in self.sentences.iter().enumerate() {
            for h in 0..heads {
                let part = |x: &[f64], at: usize, rows: usize, d: usize| -> Vec<f64> {
                    (0..rows * d).map(|i| x[(at + i / d) * heads * d + h * d + i % d]).collect()
                };
                let row = |i: usize, j: usize| {
                    self.reach.map(|reach| {
                        let at = (i + n.saturating_sub(m)) as isize;
                        let far = (j as isize - at).clamp(-(reach as isize), reach as isize);
                        (far + reach as isize) as usize
                    })
                };
                let (of_vectors, of_bias) = (!self.biased, self.biased);
                let (o, w) = naive::biased_attention(
                    &part(q, queries[b], m, d_k),
                    &part(k, keys[b], n, d_k),
                    &part(v, keys[b], n, d_v),
                    naive::Sizes { m, n, d_k, d_v },
                    f64::from(self.scale()),
                    |i, j| mask.range(i, m, n).contains(&j),
                    |i, j, c| row(i, j).filter(|_| of_vectors).map_or(0.0, |row| table[row * d_k + c]),
                    |i, j| {
                        let columns = self.reach.map_or(0, |reach| 2 * reach + 1);
                        row(i, j).filter(|_| of_bias).map_or(0.0, |row| table[h * columns + row])
                    },
                    |i, j| {
                        self.dropout()
                            .map_or(1.0, |p| f64::from(p.head(h).factor(queries[b] + i, j, COUNTERS)))
                    },
                );
                for (i, x) in o.iter().enumerate() {
                    out[(queries[b] + i / d_v) * heads * d_v + h * d_v + i % d_v] = *x;
                }
                weights.extend(w);
            }
        }
        (out, weights)
    }

    fn run(&self, isa: Isa) {
        let Case { heads, d_k, d_v, mask, .. } = *self;
        let (queries, keys) = (self.offsets(|s| s.0), self.offsets(|s| s.1));
        let (m, n) = (queries[queries.len() - 1], keys[keys.len() - 1]);
        let (q, k, v) = (random(m * heads * d_k, 1), random(n * heads * d_k, 2), random(n * heads * d_v, 3));
        let cells = if self.biased { heads } else { d_k };
        let table = random(self.reach.map_or(0, |r| (2 * r + 1) * cells), 4);
        let relative = self.reach.map(|reach| match self.biased {
            true => Relative::Bias { table: &table, reach },
            false => Relative::Vectors { table: &table, reach },
        });
        let shape = Attention {
            heads,
            d_k,
            d_v,
            scale: self.scale(),
            mask,
            queries: &queries,
            keys: &keys,
            dropout: self.dropout(),
            relative,
        };
        let mats = (Mat::new(&q, m, heads * d_k), Mat::new(&k, n, heads * d_k), Mat::new(&v, n, heads * d_v));
        let mut scratch = Scratch::default();
        let mut out = vec![f32::NAN; m * heads * d_v];
        let mut sums = vec![0.0; m * heads];
        let mut weights = vec![f32::NAN; self.sentences.iter().map(|(m, n)| heads * m * n).sum()];
        let to = MatMut::new(&mut out, m, heads * d_v);
        attention_forward(isa, &shape, mats, to, &mut sums, Some(&mut weights), &mut scratch);
        let (wq, wk, wv, wt) = (widen(&q), widen(&k), widen(&v), widen(&table));
        let (want, want_weights) = self.twin(&wq, &wk, &wv, &wt);
        let what = format!(
            "{isa} {:?} h{heads} {d_k}/{d_v} {mask:?} p{} {:?} {}",
            self.sentences, self.dropout, self.reach, self.biased
        );
        assert_close(&out, &want, 1e-5, &what);
        assert_close(&weights, &want_weights, 1e-5, &what);

        let d_out = random(m * heads * d_v, 5);
        let (mut dq, mut dk, mut dv) = (vec![0.5; q.len()], vec![0.5; k.len()], vec![0.5; v.len()]);
        let mut dt = vec![0.5; table.len()];
        attention_backward(
            isa,
            &shape,
            mats,
            (Mat::new(&out, m, heads * d_v), Mat::new(&d_out, m, heads * d_v), &sums),
            (
                MatMut::new(&mut dq, m, heads * d_k),
                MatMut::new(&mut dk, n, heads * d_k),
                MatMut::new(&mut dv, n, heads * d_v),
            ),
            self.reach.is_some().then_some(&mut dt[..]),
            &mut scratch,
        );
        let loss =
            |x: (Vec<f64>, Vec<f64>)| x.0.iter().zip(&d_out).map(|(x, g)| x * f64::from(*g)).sum::<f64>();
        let by = |x: &[f64], f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            naive::finite_differences(x, 1e-5, f).into_iter().map(|x| x + 0.5).collect()
        };
        assert_close(&dq, &by(&wq, &|q| loss(self.twin(q, &wk, &wv, &wt))), 1e-4, &format!("dq {what}"));
        assert_close(&dk, &by(&wk, &|k| loss(self.twin(&wq, k, &wv, &wt))), 1e-4, &format!("dk {what}"));
        assert_close(&dv, &by(&wv, &|v| loss(self.twin(&wq, &wk, v, &wt))), 1e-4, &format!("dv {what}"));
        assert_close(&dt, &by(&wt, &|t| loss(self.twin(&wq, &wk, &wv, t))), 1e-4, &format!("dt {what}"));
    }
}

const CAUSAL: Mask = Mask { causal: true, window: None };

const WINDOWS: [Mask; 5] = [
    Mask::NONE,
    CAUSAL,
    Mask { causal: false, window: Some(2) },
    Mask { causal: true, window: Some(1) },
    Mask { causal: false, window: Some(0) },
];

#[test]
fn every_mask_agrees_with_the_naive_twin() {
    for isa in Isa::available() {
        for mask in WINDOWS {
            for dropout in [0.0, 0.3] {
                for (reach, biased) in [(None, false), (Some(2), false), (Some(2), true)] {
                    let sentences = vec![(3, 3), (1, 1), (0, 0), (6, 6)];
                    Case { sentences, heads: 2, d_k: 3, d_v: 5, mask, dropout, reach, biased }.run(isa);
                }
            }
        }
    }
}

#[test]
fn cross_attention_and_queries_at_the_end_of_the_keys() {
    for isa in Isa::available() {
        for (mask, reach, biased) in [
            (Mask::NONE, None, false),
            (CAUSAL, None, false),
            (CAUSAL, Some(1), false),
            (CAUSAL, Some(1), true),
        ] {
            let sentences = vec![(2, 5), (4, 7), (1, 17)];
            Case { sentences, heads: 1, d_k: 8, d_v: 4, mask, dropout: 0.1, reach, biased }.run(isa);
        }
        // More queries than keys, and no keys at all.
        let sentences = vec![(5, 2), (2, 0), (3, 1)];
        let mask = Mask::NONE;
        Case { sentences, heads: 2, d_k: 4, d_v: 4, mask, dropout: 0.0, reach: None, biased: false }.run(isa);
    }
}

#[test]
fn sentences_longer_than_a_block_and_around_the_vector_widths() {
    for isa in Isa::available() {
        for n in [7, 8, 9, 15, 16, 17, 33] {
            let mask = Mask { causal: n % 2 == 0, window: (n % 3 == 0).then_some(3) };
            for biased in [false, true] {
                let (sentences, reach) = (vec![(n, n)], (n == 9).then_some(20));
                Case { sentences, heads: 1, d_k: 2, d_v: 3, mask, dropout: 0.2, reach, biased }.run(isa);
            }
        }
    }
}

#[test]
fn a_nan_stays_in_its_sentence() {
    for isa in Isa::available() {
        let offsets = [0, 3, 7];
        let (mut q, k, v) = (random(7 * 4, 1), random(7 * 4, 2), random(7 * 4, 3));
        q[0] = f32::NAN;
        let shape = Attention {
            heads: 1,
            d_k: 4,
            d_v: 4,
            scale: 0.5,
            mask: Mask::NONE,
            queries: &offsets,
            keys: &offsets,
            dropout: None,
            relative: None,
        };
        let mats = (Mat::new(&q, 7, 4), Mat::new(&k, 7, 4), Mat::new(&v, 7, 4));
        let (mut out, mut sums) = (vec![0.0; 28], vec![0.0; 7]);
        attention_forward(
            isa,
            &shape,
            mats,
            MatMut::new(&mut out, 7, 4),
            &mut sums,
            None,
            &mut Scratch::default(),
        );
        assert!(out[..4].iter().all(|x| x.is_nan()), "{isa}");
        assert!(out[4..].iter().all(|x| x.is_finite()), "{isa}");
    }
}

#[test]
fn ranges_of_the_masks() {
    let window = Mask { causal: false, window: Some(2) };
    assert_eq!(Mask::NONE.range(1, 4, 4), 0..4);
    assert_eq!(CAUSAL.range(1, 4, 4), 0..2);
    assert_eq!(CAUSAL.range(0, 1, 4), 0..4);
    assert_eq!(window.range(0, 9, 9), 0..3);
    assert_eq!(window.range(4, 9, 9), 2..7);
    assert_eq!(window.range(8, 9, 9), 6..9);
    assert_eq!(Mask { causal: true, window: Some(2) }.range(4, 9, 9), 2..5);
}

#[test]
fn a_window_does_not_touch_what_is_far_away() {
    // A key that is read spoils a row even with weight zero: NaN · 0 is NaN.
    let (n, d, bad) = (512, 4, 400);
    let (q, mut k, mut v) = (random(n * d, 1), random(n * d, 2), random(n * d, 3));
    k[bad * d..][..d].fill(f32::NAN);
    v[bad * d..][..d].fill(f32::NAN);
    for isa in Isa::available() {
        let offsets = [0, n];
        let shape = Attention {
            heads: 1,
            d_k: d,
            d_v: d,
            scale: 0.5,
            mask: Mask { causal: false, window: Some(3) },
            queries: &offsets,
            keys: &offsets,
            dropout: None,
            relative: None,
        };
        let mats = (Mat::new(&q, n, d), Mat::new(&k, n, d), Mat::new(&v, n, d));
        let (mut out, mut sums) = (vec![0.0; n * d], vec![0.0; n]);
        attention_forward(
            isa,
            &shape,
            mats,
            MatMut::new(&mut out, n, d),
            &mut sums,
            None,
            &mut Scratch::default(),
        );
        let spoilt: Vec<usize> = (0..n).filter(|i| out[i * d..][..d].iter().any(|x| x.is_nan())).collect();
        assert!(spoilt.contains(&bad), "{isa}");
        // A block of queries plus the window on one side, in whole vectors.
        let near = BLOCK + 3 + WIDTH;
        assert!(spoilt.iter().all(|i| i.abs_diff(bad) <= near), "{isa}: {spoilt:?}");
    }
}
