//! The best words of a vocabulary and their log-probabilities, without materialising all logits.
//!
//! The matmul with the output matrix runs in chunks that fit the cache. From each chunk only the
//! softmax statistics (the largest logit and the sum of the exponentials) and the best words so far
//! are kept. The statistics are combined in the order of the chunks, whichever thread computed
//! them, so the result does not depend on the number of threads.

use crate::gemm::{PackedB, Rows};
use crate::mat::MatMut;
use crate::math::exp_of_negative;
use crate::simd::loops::{self, Place, vectors};
use crate::simd::{Simd, lanes, simd_kernel};
use crate::{Isa, Team};
use std::ops::Range;
use std::sync::Mutex;

/// Words of a chunk: with the rows of a batch, they take half of the L2 cache.
const CHUNK: usize = 512;

/// The candidate words: the first `words` rows of the output matrix.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary<'a> {
    /// The output matrix.
    pub table: &'a PackedB,
    /// The number of rows that are candidates.
    pub words: usize,
    /// The bias of the logits, one element for each row of the matrix.
    pub bias: Option<&'a [f32]>,
}

/// Banned words, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Bans<'a> {
    /// Where each row's list begins in `words`, plus the end of the last; or empty, if no row has
    /// any.
    pub offsets: &'a [usize],
    /// The lists.
    pub words: &'a [u32],
    /// Whether to renormalise the probabilities of the other words to a sum of 1.
    pub renormalise: bool,
}

impl Bans<'_> {
    fn of(&self, row: usize) -> &[u32] {
        if self.offsets.is_empty() { &[] } else { &self.words[self.offsets[row]..self.offsets[row + 1]] }
    }
}

/// The best words of some rows, with reusable memory.
#[derive(Debug, Default)]
pub struct BestWords {
    members: Vec<Mutex<Share>>,
    /// `[row]`, best first.
    found: Vec<Vec<(u32, f32)>>,
}

/// What one thread has seen: every n-th chunk.
#[derive(Debug, Default)]
struct Share {
    logits: Vec<f32>,
    best: Vec<Vec<(u32, f32)>>,
    /// `[chunk][row]`: the largest logit and the sum of `e^(logit − largest)`.
    sums: Vec<(f32, f32)>,
}

impl BestWords {
    /// Finds the best `count` words of each row with their log-probabilities. Ties go to the lower
    /// index; −∞ and NaN are never returned.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn find(
        &mut self,
        team: &mut Team,
        vocabulary: Vocabulary<'_>,
        x: Rows<'_>,
        bans: Bans<'_>,
        count: usize,
    ) {
        let Vocabulary { table, words, .. } = vocabulary;
        let (rows, size) = (x.len(), team.size());
        assert!(bans.offsets.is_empty() || bans.offsets.len() == rows + 1);
        let chunk = CHUNK.next_multiple_of(table.panel());
        self.members.resize_with(size.max(self.members.len()), Mutex::default);
        let members = &self.members[..size];
        team.run(&|number| {
            let mut share = members[number].lock().unwrap_or_else(|e| e.into_inner());
            share.start(rows);
            for start in (number * chunk..words).step_by(size * chunk) {
                share.add(vocabulary, x, start..words.min(start + chunk), bans, count);
            }
        });
        self.gather(rows, size, words.div_ceil(chunk), count);
    }

    /// The words of a row and their log-probabilities, best first.
    pub fn row(&self, row: usize) -> &[(u32, f32)] {
        &self.found[row]
    }

    fn gather(&mut self, rows: usize, size: usize, chunks: usize, count: usize) {
        self.found.resize_with(rows.max(self.found.len()), Vec::new);
        let found = &mut self.found[..rows];
        let mut shares =
            self.members[..size].iter_mut().map(|m| m.get_mut().unwrap_or_else(|e| e.into_inner()));
        match (size, shares.next()) {
            // The common case of one thread needs no list of shares.
            (1, Some(share)) => merge(found, &mut [share], chunks, count),
            (_, first) => {
                merge(found, &mut first.into_iter().chain(shares).collect::<Vec<_>>(), chunks, count)
            }
        }
    }
}

/// Combines what the threads have found for each row.
fn merge(found: &mut [Vec<(u32, f32)>], shares: &mut [&mut Share], chunks: usize, count: usize) {
    let (rows, size) = (found.len(), shares.len());
    for (row, found) in found.iter_mut().enumerate() {
        found.clear();
        shares.iter_mut().for_each(|share| found.append(&mut share.best[row]));
        if size > 1 {
            found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            found.truncate(count);
        }
        let part = |c: usize| shares[c % size].sums[c / size * rows + row];
        let log_sum = log_sum((0..chunks).map(part));
        found.iter_mut().for_each(|(_, p)| *p -= log_sum);
    }
}

/// The logarithm of the sum of all exponentials, from the largest logit of each chunk and its sum
/// of exponentials.
fn log_sum(parts: impl Iterator<Item = (f32, f32)> + Clone) -> f32 {
    let top = parts.clone().fold(f32::NEG_INFINITY, |top, part| top.max(part.0));
    // A chunk of only banned words adds nothing.
    let add =
        |sum: f32, (largest, s): (f32, f32)| if s == 0.0 { sum } else { sum + s * (largest - top).exp() };
    top + parts.fold(0.0, add).ln()
}

/// The log-probabilities of whole rows of logits, in place: bitwise equal to those that
/// [`BestWords`] finds.
///
/// `isa` must be that of the matmul which computed them.
pub fn log_probabilities(isa: Isa, logits: &mut [f32], words: usize) {
    for row in logits.chunks_exact_mut(words.max(1)) {
        let chunk = CHUNK.next_multiple_of(2 * lanes(isa));
        let part = |x: &[f32]| {
            let top = largest(isa, x);
            (top, sum_exp(isa, x, top))
        };
        let log_sum = log_sum(row.chunks(chunk).map(part));
        row.iter_mut().for_each(|x| *x -= log_sum);
    }
}

#[inline(always)]
fn largest_body<S: Simd>(s: S, x: &[f32]) -> f32 {
    loops::max(s, x)
}
simd_kernel! { fn largest(x: &[f32]) -> f32 = largest_body; }

impl Share {
    fn start(&mut self, rows: usize) {
        self.sums.clear();
        self.best.resize_with(rows.max(self.best.len()), Vec::new);
        self.best.iter_mut().for_each(Vec::clear);
    }

    fn add(
        &mut self,
        vocabulary: Vocabulary<'_>,
        x: Rows<'_>,
        columns: Range<usize>,
        bans: Bans<'_>,
        count: usize,
    ) {
        let Vocabulary { table, bias, .. } = vocabulary;
        let (rows, width) = (x.len(), columns.len());
        self.logits.resize((rows * width).max(self.logits.len()), 0.0);
        let logits = &mut self.logits[..rows * width];
        table.matmul(x, columns.clone(), bias, MatMut::new(logits, rows, width));
        let isa = table.isa();
        for (row, (logits, best)) in logits.chunks_exact_mut(width).zip(&mut self.best).enumerate() {
            let banned = bans.of(row).iter().filter(|&&w| columns.contains(&(w as usize)));
            let hidden = banned.map(|&w| {
                let place = w as usize - columns.start;
                (place, std::mem::replace(&mut logits[place], f32::NEG_INFINITY))
            });
            let sums = if bans.renormalise {
                hidden.for_each(drop);
                let top = scan(isa, logits, columns.start as u32, count, best);
                (top, sum_exp(isa, logits, top))
            } else {
                let hidden: Vec<(usize, f32)> = hidden.collect();
                let top = scan(isa, logits, columns.start as u32, count, best);
                // Backwards, because a word may be banned twice.
                hidden.iter().rev().for_each(|&(place, logit)| logits[place] = logit);
                let top = hidden.iter().fold(top, |top, &(_, logit)| top.max(logit));
                (top, sum_exp(isa, logits, top))
            };
            self.sums.push(sums);
        }
    }
}

/// The sum of `e^(x − top)`, where `top` is the maximum; 0 if that is −∞, that is, if all words are
/// banned.
#[inline(always)]
fn sum_exp_body<S: Simd>(s: S, x: &[f32], top: f32) -> f32 {
    if top == f32::NEG_INFINITY {
        return 0.0;
    }
    let minus_top = s.splat(-top);
    let mut total = s.zero();
    vectors!(S, x.len(), at => {
        let v = at.fill(s, at.read(s, x), top);
        total = s.add(total, at.fill(s, exp_of_negative(s, s.add(v, minus_top)), 0.0));
    });
    s.reduce_sum(total)
}
simd_kernel! { fn sum_exp(x: &[f32], top: f32) -> f32 = sum_exp_body; }

/// Returns the maximum, and inserts the `count` best into `best`, which is sorted; `first` is the
/// word of the first element, and all words in `best` precede it.
#[inline(always)]
// The loop body expands twice, for whole vectors and for the tail, and the last assignment in the
// tail is unused.
#[allow(unused_assignments)]
fn scan_body<S: Simd>(s: S, x: &[f32], first: u32, count: usize, best: &mut Vec<(u32, f32)>) -> f32 {
    let least =
        |best: &Vec<(u32, f32)>| if best.len() < count { f32::NEG_INFINITY } else { best[count - 1].1 };
    let mut top = s.splat(f32::NEG_INFINITY);
    let mut bound = s.splat(least(best));
    vectors!(S, x.len(), at => {
        let v = at.fill(s, at.read(s, x), f32::NEG_INFINITY);
        top = s.max(v, top);
        let mut better = s.bits(s.lt(bound, v));
        if better != 0 {
            while better != 0 {
                let i = at.index() + better.trailing_zeros() as usize;
                enter(best, count, first + i as u32, x[i]);
                better &= better - 1;
            }
            bound = s.splat(least(best));
        }
    });
    s.reduce_max(top)
}
simd_kernel! { fn scan(x: &[f32], first: u32, count: usize, best: &mut Vec<(u32, f32)>) -> f32 = scan_body; }

#[inline(never)]
fn enter(best: &mut Vec<(u32, f32)>, count: usize, word: u32, logit: f32) {
    if best.len() == count && best.last().is_none_or(|&(_, least)| logit <= least) {
        return;
    }
    if logit > f32::NEG_INFINITY {
        best.truncate(count.saturating_sub(1));
        let at = best.partition_point(|&(_, other)| other >= logit);
        best.insert(at, (word, logit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{RowScratch, quantize_rows};
    use crate::testing::random;
    use crate::{Mat, log_softmax_rows};

    /// The same from all logits at once.
    fn wanted(logits: &[f32], words: usize, bans: Bans<'_>, count: usize) -> Vec<Vec<(u32, f32)>> {
        let ban =
            |row: usize, x: &mut [f32]| bans.of(row).iter().for_each(|&w| x[w as usize] = f32::NEG_INFINITY);
        logits
            .chunks(words)
            .enumerate()
            .map(|(row, x)| {
                let mut x = x.to_vec();
                if bans.renormalise {
                    ban(row, &mut x);
                }
                log_softmax_rows(Isa::PORTABLE, &mut x, words);
                ban(row, &mut x);
                let mut all: Vec<(u32, f32)> =
                    (0u32..).zip(x).filter(|(_, p)| *p > f32::NEG_INFINITY).collect();
                all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                all.truncate(count);
                all
            })
            .collect()
    }

    #[test]
    fn the_best_are_those_of_a_whole_softmax() {
        let (rows, d) = (3, 24);
        for isa in Isa::available() {
            for (words, count) in [(1, 1), (5, 8), (511, 2), (513, 4), (1700, 9)] {
                let (w, x) = (random((words + 1) * d, 1), random(rows * d, 2));
                let (values, scales) = quantize_rows(&w, d);
                let bias = random(words + 1, 3);
                let tables = [PackedB::f32(isa, &w, words + 1, d), PackedB::int8(isa, &values, &scales, d)];
                for table in &tables {
                    let mut scratch = RowScratch::default();
                    let x = table.rows(Mat::new(&x, rows, d), &mut scratch);
                    let mut all = vec![0.0; rows * (words + 1)];
                    table.matmul(x, 0..words + 1, Some(&bias[..]), MatMut::new(&mut all, rows, words + 1));
                    let logits: Vec<f32> = all.chunks(words + 1).flat_map(|r| r[..words].to_vec()).collect();
                    for renormalise in [true, false] {
                        // The best word of the second row, and others.
                        let top =
                            wanted(&logits, words, Bans { offsets: &[], words: &[], renormalise }, 1)[1][0].0;
                        let bans = Bans { offsets: &[0, 0, 2, 3], words: &[top, 0, 0], renormalise };
                        for size in [1, 2, 3] {
                            let mut best = BestWords::default();
                            for bans in [bans, Bans { offsets: &[], words: &[], renormalise }] {
                                let want = wanted(&logits, words, bans, count);
                                let vocabulary = Vocabulary { table, words, bias: Some(&bias) };
                                best.find(&mut Team::new(size), vocabulary, x, bans, count);
                                let mut whole = logits.clone();
                                log_probabilities(isa, &mut whole, words);
                                for (row, want) in want.iter().enumerate() {
                                    let got = best.row(row);
                                    if !renormalise || bans.of(row).is_empty() {
                                        let whole = &whole[row * words..][..words];
                                        assert!(got.iter().all(|&(w, p)| p == whole[w as usize]), "{isa}");
                                    }
                                    assert_eq!(got.len(), want.len(), "{isa} {words} {count} row {row}");
                                    for ((a, p), (b, q)) in got.iter().zip(want) {
                                        assert_eq!(a, b, "{isa} {words} words, {count} best, row {row}");
                                        assert!((p - q).abs() < 2e-5, "{isa} {p} {q}");
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn equal_words_come_in_their_order_and_the_number_of_threads_changes_nothing() {
        let (words, d) = (2000, 8);
        let table = PackedB::f32(Isa::best(), &vec![0.25; words * d], words, d);
        let x = random(d, 4);
        let mut found = [1, 2, 3].map(|size| {
            let (mut best, mut scratch) = (BestWords::default(), RowScratch::default());
            let rows = table.rows(Mat::new(&x, 1, d), &mut scratch);
            let none = Bans { offsets: &[], words: &[], renormalise: true };
            best.find(&mut Team::new(size), Vocabulary { table: &table, words, bias: None }, rows, none, 3);
            best.row(0).to_vec()
        });
        assert_eq!(found[0].iter().map(|f| f.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(found[0].iter().all(|f| (f.1 + (words as f32).ln()).abs() < 1e-4));
        let one = found[0].clone();
        assert!(found.iter_mut().all(|f| *f == one));
    }

    #[test]
    fn a_nan_does_not_come_and_does_not_stay_hidden() {
        let (words, d) = (600, 4);
        let mut w = random(words * d, 5);
        w[550 * d] = f32::NAN;
        let table = PackedB::f32(Isa::best(), &w, words, d);
        let (mut best, mut scratch) = (BestWords::default(), RowScratch::default());
        let x = random(d, 6);
        let rows = table.rows(Mat::new(&x, 1, d), &mut scratch);
        let none = Bans { offsets: &[], words: &[], renormalise: true };
        best.find(&mut Team::new(1), Vocabulary { table: &table, words, bias: None }, rows, none, 4);
        assert!(best.row(0).iter().all(|(w, p)| *w != 550 && p.is_nan()), "{:?}", best.row(0));
    }
}
