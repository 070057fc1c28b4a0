//! TER (Snover et al., 2006): the minimum number of insertions, deletions, substitutions and shifts
//! of word groups that turn the hypothesis into the reference, per reference word.
//!
//! The search for shifts is greedy and bounded, and the bounds affect the result: they are
//! sacreBLEU's.

use super::ngram::Interner;
use super::tokenize::{Tercom, trim_end, words};
use super::{Details, Metric};
use crate::Result;

/// The maximum length of a shifted word group.
const MAX_SHIFT_SIZE: usize = 10;
/// The maximum distance between a group's positions in the hypothesis and in the reference.
const MAX_SHIFT_DISTANCE: usize = 50;
/// The search of a sentence stops after this many candidates and undoes the shift in progress.
const MAX_CANDIDATES: usize = 1000;
/// The number of cells of the edit matrix computed on each side of the diagonal.
const BEAM: usize = 25;
/// The cost of a cell outside the beam: large, with headroom for additions.
const INFINITE: u32 = u32::MAX / 2;

/// TER and its settings; the default is sacreBLEU's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ter {
    /// Whether to split off punctuation and resolve escapes.
    pub normalized: bool,
    /// Whether to remove punctuation.
    pub no_punct: bool,
    /// Whether `normalized` separates ideographs and `no_punct` removes full-width punctuation.
    pub asian_support: bool,
    /// Whether case counts.
    pub case_sensitive: bool,
}

impl Metric for Ter {
    fn key(&self) -> &'static str {
        "ter"
    }

    fn name(&self) -> String {
        "TER".into()
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The minimum number of edits over the references, and the mean reference length.
    fn segment(&self, hypothesis: &str, references: &[&str]) -> Vec<f64> {
        let tokenizer = Tercom {
            normalized: self.normalized,
            no_punct: self.no_punct,
            asian_support: self.asian_support,
            case_sensitive: self.case_sensitive,
        };
        let texts: Vec<String> = std::iter::once(&hypothesis)
            .chain(references)
            .map(|text| tokenizer.apply(trim_end(text)))
            .collect();
        let mut interner = Interner::new();
        let tokens: Vec<Vec<u32>> = texts.iter().map(|text| interner.sequence(words(text))).collect();
        let edits = tokens[1..].iter().map(|reference| edits(&tokens[0], reference)).min().unwrap_or(0);
        let length: usize = tokens[1..].iter().map(Vec::len).sum();
        vec![edits as f64, length as f64 / references.len() as f64]
    }

    fn compute(&self, counts: &[f64]) -> (f64, Details) {
        let (edits, ref_len) = (counts[0], counts[1]);
        let rate = if ref_len > 0.0 {
            edits / ref_len
        } else if edits > 0.0 {
            1.0
        } else {
            0.0
        };
        (100.0 * rate, Details::Ter { edits: edits as u64, ref_len })
    }

    fn settings(&self) -> String {
        let yes_no = |yes: bool| if yes { "yes" } else { "no" };
        format!(
            "case:{}|tok:tercom|norm:{}|punct:{}|asian:{}",
            if self.case_sensitive { "mixed" } else { "lc" },
            yes_no(self.normalized),
            yes_no(!self.no_punct),
            yes_no(self.asian_support)
        )
    }
}

/// The number of shifts plus the remaining edit distance.
fn edits(hypothesis: &[u32], reference: &[u32]) -> usize {
    if reference.is_empty() {
        return hypothesis.len();
    }
    let mut words = hypothesis.to_vec();
    let mut matrix = Matrix::new(&words, reference);
    let mut shifts = 0;
    let mut checked = 0;
    loop {
        let best = best_shift(&words, reference, &matrix, &mut checked);
        match best {
            Some(shift) if shift.gain > 0 && checked < MAX_CANDIDATES => {
                words = shift.perform(&words);
                matrix = Matrix::new(&words, reference);
                shifts += 1;
            }
            _ => return shifts + matrix.distance() as usize,
        }
    }
}

/// A group of words in the hypothesis, its target position, and the gain of the shift.
#[derive(Clone, Copy)]
struct Shift {
    gain: i64,
    length: usize,
    start: usize,
    target: usize,
}

impl Shift {
    /// Tercom's ranking: the largest gain, then the longest group, then the earliest start, then
    /// the earliest target.
    fn rank(&self) -> impl Ord {
        use std::cmp::Reverse;
        (self.gain, self.length, Reverse(self.start), Reverse(self.target))
    }

    /// The first position whose word may change.
    fn first_change(&self) -> usize {
        self.start.min(self.target)
    }

    fn perform(&self, words: &[u32]) -> Vec<u32> {
        let group_end = self.start + self.length;
        let mut shifted = words.to_vec();
        if self.target < self.start {
            shifted[self.target..group_end].rotate_right(self.length);
        } else {
            // A target inside the group counts from the group's start, so that the group moves by
            // that many words.
            let end = if self.target > group_end { self.target } else { self.target + self.length };
            shifted[self.start..end.min(words.len())].rotate_left(self.length);
        }
        shifted
    }
}

/// The best shift that moves a group of words to where the reference has the same words.
fn best_shift(words: &[u32], reference: &[u32], matrix: &Matrix, checked: &mut usize) -> Option<Shift> {
    let alignment = matrix.alignment();
    let mut scratch = Scratch::default();
    let mut best: Option<Shift> = None;
    for start in 0..words.len() {
        let near =
            start.saturating_sub(MAX_SHIFT_DISTANCE)..reference.len().min(start + MAX_SHIFT_DISTANCE + 1);
        for place in near {
            let same = words[start..].iter().zip(&reference[place..]).take_while(|(h, r)| h == r);
            for length in 1..=same.take(MAX_SHIFT_SIZE).count() {
                if !alignment.worth_moving(start, place, length) {
                    continue;
                }
                let mut previous = None;
                for before in place..place + length + 1 {
                    // The group goes after the word that is aligned with the reference's word
                    // before it.
                    let target = if before == 0 { 0 } else { alignment.after[before - 1] };
                    if previous == Some(target) {
                        continue;
                    }
                    previous = Some(target);
                    let mut shift = Shift { gain: 0, length, start, target };
                    let distance = matrix.distance_to(
                        &shift.perform(words),
                        shift.first_change(),
                        reference,
                        &mut scratch,
                    );
                    shift.gain = i64::from(matrix.distance()) - i64::from(distance);
                    *checked += 1;
                    if best.as_ref().is_none_or(|best| shift.rank() > best.rank()) {
                        best = Some(shift);
                    }
                }
                if *checked >= MAX_CANDIDATES {
                    return best;
                }
            }
        }
    }
    best
}

/// Which words are wrong, and the position of each reference word in the hypothesis.
struct Alignment {
    hyp_wrong: Vec<bool>,
    ref_wrong: Vec<bool>,
    /// The position after the hypothesis word that the reference word is aligned with; 0 if the
    /// reference word precedes all of them.
    after: Vec<usize>,
}

impl Alignment {
    /// Whether both the group and the reference words at the target have errors, and the target is
    /// not inside the group.
    fn worth_moving(&self, start: usize, place: usize, length: usize) -> bool {
        let inside = start < self.after[place] && self.after[place] <= start + length;
        !inside
            && self.hyp_wrong[start..start + length].contains(&true)
            && self.ref_wrong[place..place + length].contains(&true)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Edit {
    Keep,
    Substitute,
    /// A word of the reference is missing in the hypothesis.
    Insert,
    /// A word of the hypothesis is not in the reference.
    Delete,
}

/// One row of the edit matrix: the cells inside the beam.
#[derive(Clone, Default)]
struct Row {
    start: usize,
    costs: Vec<u32>,
}

impl Row {
    fn cost(&self, j: usize) -> u32 {
        // For `j` below `start` the subtraction wraps around to an index that no row has.
        self.costs.get(j.wrapping_sub(self.start)).copied().unwrap_or(INFINITE)
    }
}

/// The edit matrix of hypothesis and reference inside the beam around its diagonal.
struct Matrix {
    /// Row `i` is for the first `i` words of the hypothesis.
    rows: Vec<Row>,
    edits: Vec<Vec<Edit>>,
    ref_len: usize,
}

/// Two row buffers that [`Matrix::distance_to`] reuses.
#[derive(Default)]
struct Scratch {
    above: Row,
    row: Row,
}

impl Matrix {
    fn new(words: &[u32], reference: &[u32]) -> Self {
        let ref_len = reference.len();
        let first = Row { start: 0, costs: (0..=ref_len as u32).collect() };
        let mut matrix = Matrix { rows: vec![first], edits: vec![vec![Edit::Insert; ref_len + 1]], ref_len };
        for (i, &word) in words.iter().enumerate() {
            let mut row = Row::default();
            let mut edits = Vec::new();
            let beam = beam(i + 1, words.len(), ref_len);
            fill(&mut row, &matrix.rows[i], word, reference, beam, |edit| edits.push(edit));
            matrix.rows.push(row);
            matrix.edits.push(edits);
        }
        matrix
    }

    fn distance(&self) -> u32 {
        self.rows.last().map_or(0, |row| row.cost(self.ref_len))
    }

    /// The edit distance for other words of the same length that are equal before `first_change`:
    /// the rows up to there remain valid.
    fn distance_to(
        &self,
        words: &[u32],
        first_change: usize,
        reference: &[u32],
        scratch: &mut Scratch,
    ) -> u32 {
        let first_change = first_change.min(words.len());
        scratch.row.clone_from(&self.rows[first_change]);
        for (i, &word) in words.iter().enumerate().skip(first_change) {
            std::mem::swap(&mut scratch.above, &mut scratch.row);
            fill(
                &mut scratch.row,
                &scratch.above,
                word,
                reference,
                beam(i + 1, words.len(), self.ref_len),
                |_| (),
            );
        }
        scratch.row.cost(self.ref_len)
    }

    /// Backtraces the edits from the end.
    fn alignment(&self) -> Alignment {
        let (mut i, mut j) = (self.rows.len() - 1, self.ref_len);
        let mut alignment =
            Alignment { hyp_wrong: vec![true; i], ref_wrong: vec![true; j], after: vec![0; j] };
        while i > 0 || j > 0 {
            match self.edits[i][j - self.rows[i].start] {
                edit @ (Edit::Keep | Edit::Substitute) => {
                    alignment.hyp_wrong[i - 1] = edit == Edit::Substitute;
                    alignment.ref_wrong[j - 1] = edit == Edit::Substitute;
                    alignment.after[j - 1] = i;
                    i -= 1;
                    j -= 1;
                }
                Edit::Insert => {
                    alignment.after[j - 1] = i;
                    j -= 1;
                }
                Edit::Delete => i -= 1,
            }
        }
        alignment
    }
}

/// The computed cells of row `i`. The diagonal follows the ratio of the lengths; where that ratio
/// is so large that the beams of two rows would not overlap, the beam is widened. The last row
/// extends to its end.
fn beam(i: usize, hyp_len: usize, ref_len: usize) -> std::ops::Range<usize> {
    let ratio = ref_len as f64 / hyp_len as f64;
    let width = if ratio / 2.0 > BEAM as f64 { (ratio / 2.0 + BEAM as f64).ceil() as usize } else { BEAM };
    let diagonal = (i as f64 * ratio).floor() as usize;
    let end = if i == hyp_len { ref_len + 1 } else { (diagonal + width).min(ref_len + 1) };
    diagonal.saturating_sub(width)..end
}

/// Computes one row from the row above it. On equal costs a substitution beats a deletion, and a
/// deletion beats an insertion.
fn fill(
    row: &mut Row,
    above: &Row,
    word: u32,
    reference: &[u32],
    beam: std::ops::Range<usize>,
    mut record: impl FnMut(Edit),
) {
    row.start = beam.start;
    row.costs.clear();
    let mut left = INFINITE;
    let mut diagonal = above.cost(beam.start.wrapping_sub(1));
    for j in beam {
        let up = above.cost(j);
        let (mut cost, mut edit) = match j.checked_sub(1).map(|j| reference[j] == word) {
            None => (INFINITE, Edit::Delete),
            Some(true) => (diagonal, Edit::Keep),
            Some(false) => (diagonal + 1, Edit::Substitute),
        };
        if up + 1 < cost {
            (cost, edit) = (up + 1, Edit::Delete);
        }
        if left + 1 < cost {
            (cost, edit) = (left + 1, Edit::Insert);
        }
        let cost = cost.min(INFINITE);
        row.costs.push(cost);
        record(edit);
        (left, diagonal) = (cost, up);
    }
}
