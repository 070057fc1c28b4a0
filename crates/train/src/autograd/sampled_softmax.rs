//! Sampled softmax: a softmax over the target words of a step and a sample of the others.
//!
//! With 32,000 words and a narrow model, the output layer takes half of a training step, nearly all
//! of it for words that are far from the right one. A step uses the words of its own targets and
//! draws others, each with the same probability `p` ("sampled softmax", Jean et al., 2015). `−ln p`
//! is added to the logit of a drawn word, so that the sum of exponentials is unbiased and the model
//! works with all of its words.

use super::{Forward, Param, Weights};
use regard_kernels::{BOperand, Gemm, Isa, Key, Mat, PackedB, add};

/// The words of one step, and their rows of the output matrix.
#[derive(Debug, Default)]
pub struct SampledSoftmax {
    /// Where the output matrix begins among the weights.
    table: usize,
    /// Sorted ascending.
    words: Vec<u32>,
    /// Added to the logits: the output bias, plus `−ln p` for words that were drawn.
    bias: Vec<f32>,
    /// The rows of the output matrix, `[words, d]`.
    rows: Vec<f32>,
    right: PackedB,
    transposed: PackedB,
}

/// How the words of a step are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// The number of words in the vocabulary.
    pub words: usize,
    /// The approximate number of words to draw besides the targets.
    pub count: usize,
    /// The random stream to draw from.
    pub key: Key,
    /// The output bias, if there is one.
    pub bias: Option<&'a [f32]>,
}

/// A sample must leave out at least one word in this many to be worth it.
const WORTHWHILE: usize = 4;

impl SampledSoftmax {
    /// Chooses the words: all targets and about `count` others. Returns whether that leaves out
    /// enough words to be worth it. The choice depends on the set of targets, not on their order.
    pub fn draw(&mut self, targets: impl Iterator<Item = u32>, draw: Draw<'_>) -> bool {
        self.words.clear();
        self.words.extend(targets);
        self.words.sort_unstable();
        self.words.dedup();
        let others = draw.words.saturating_sub(self.words.len());
        if others <= draw.count + draw.words / WORTHWHILE {
            self.words.clear();
            return false;
        }
        let p = draw.count as f32 / others as f32;
        let (targets, mut next) = (std::mem::take(&mut self.words), 0);
        self.bias.clear();
        for word in 0..draw.words as u32 {
            let is_target = targets.get(next) == Some(&word);
            next += usize::from(is_target);
            if is_target || draw.key.uniform(word) < p {
                let bias = draw.bias.map_or(0.0, |bias| bias[word as usize]);
                self.words.push(word);
                self.bias.push(if is_target { bias } else { bias - p.ln() });
            }
        }
        true
    }

    /// Packs the rows of these words from the output matrix `[v, d]`, on up to two threads.
    pub fn pack(&mut self, gemm: Gemm, weights: &[f32], table: Param, d: usize, threads: usize) {
        self.table = table.offset;
        let all = &weights[table.range()];
        self.rows.clear();
        self.words.iter().for_each(|&word| self.rows.extend_from_slice(&all[word as usize * d..][..d]));
        let matrix = Mat::new(&self.rows, self.words.len(), d);
        let work = [(matrix, &mut self.right), (matrix.t(), &mut self.transposed)];
        crate::threads::over_threads(threads.clamp(1, 2), work.into_iter(), |(matrix, to)| {
            gemm.pack_b(matrix, to);
        });
    }

    /// The words, ascending.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The bias of these words.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    fn places(&self, targets: &[u32]) -> Vec<u32> {
        let place = |target: &u32| self.words.binary_search(target).expect("the sample has all targets");
        targets.iter().map(|target| place(target) as u32).collect()
    }

    fn scatter(&self, isa: Isa, from: &[f32], to: &mut [f32], d: usize) {
        for (&word, from) in self.words.iter().zip(from.chunks_exact(d.max(1))) {
            add(isa, &mut to[word as usize * d..][..d], from);
        }
    }
}

/// The output layer as seen by a loss: all words, or a sample.
#[derive(Clone, Copy, Debug)]
pub(in crate::autograd) struct OutputLayer<'a> {
    /// `E [words, d]`
    pub(super) table: BOperand<'a>,
    /// `Eᵀ`
    pub(super) columns: BOperand<'a>,
    pub(super) words: usize,
    pub(super) bias: Option<&'a [f32]>,
    sample: Option<&'a SampledSoftmax>,
}

impl<'a> OutputLayer<'a> {
    /// The first `words` rows of a parameter, or the sample that comes with the weights.
    pub(super) fn new(
        weights: Weights<'a>,
        table: Param,
        (words, d): (usize, usize),
        bias: Option<&'a [f32]>,
    ) -> Self {
        match weights.sample.filter(|sample| sample.table == table.offset) {
            None => OutputLayer {
                table: weights.right(table, [words, d]),
                columns: weights.right_transposed(table, [words, d]),
                words,
                bias,
                sample: None,
            },
            Some(sample) => OutputLayer {
                table: sample.right.whole(),
                columns: sample.transposed.whole(),
                words: sample.words.len(),
                bias: Some(&sample.bias),
                sample: Some(sample),
            },
        }
    }

    /// The indices of the target words among the words in use.
    pub(super) fn places(&self, targets: &[u32]) -> Vec<u32> {
        self.sample.map_or_else(|| targets.to_vec(), |sample| sample.places(targets))
    }

    /// Calls `f` with the gradient of the rows in use, to accumulate in, if there are gradients;
    /// the rows belong to the parameter `table`.
    pub(super) fn with_gradient(
        &self,
        cx: &mut Forward<'_>,
        (table, d): (Param, usize),
        f: impl FnOnce(&mut Forward<'_>, Option<&mut [f32]>),
    ) {
        let Some(gradients) = cx.gradients.take() else { return f(cx, None) };
        let all = &mut gradients[table.range()];
        match self.sample {
            None => f(cx, Some(&mut all[..self.words * d])),
            Some(sample) => {
                let mut rows = std::mem::take(&mut cx.scratch.sampled_rows);
                rows.clear();
                rows.resize(self.words * d, 0.0);
                f(cx, Some(&mut rows));
                sample.scatter(cx.isa, &rows, all, d);
                cx.scratch.sampled_rows = rows;
            }
        }
        cx.gradients = Some(gradients);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(key: u64, count: usize) -> Draw<'static> {
        Draw { words: 1000, count, key: Key::new(key), bias: None }
    }

    #[test]
    fn a_sample_has_all_targets_and_about_as_many_others_as_asked_for() {
        let mut sample = SampledSoftmax::default();
        let targets = [7u32, 999, 7, 0, 500];
        assert!(sample.draw(targets.into_iter(), draw(3, 200)));
        assert!(sample.words().is_sorted_by(|a, b| a < b));
        assert!(targets.iter().all(|target| sample.words().contains(target)));
        assert!((150..250).contains(&sample.words().len()), "{}", sample.words().len());
        for (word, bias) in sample.words().iter().zip(sample.bias()) {
            let want = if targets.contains(word) { 0.0 } else { (996.0f32 / 200.0).ln() };
            assert!((bias - want).abs() < 1e-6, "word {word}: {bias}");
        }
        // The same set in another order gives the same sample; another key gives another.
        let (words, mut other) = (sample.words().to_vec(), SampledSoftmax::default());
        assert!(other.draw([500u32, 0, 7, 999].into_iter(), draw(3, 200)));
        assert_eq!(other.words(), words);
        assert!(other.draw(targets.into_iter(), draw(4, 200)));
        assert_ne!(other.words(), words);
    }

    #[test]
    fn a_sample_of_nearly_all_words_is_not_worth_it() {
        assert!(!SampledSoftmax::default().draw([1u32].into_iter(), draw(3, 800)));
        assert!(!SampledSoftmax::default().draw(0..900, draw(3, 10)));
    }

    #[test]
    fn the_sum_of_exponentials_is_right_on_average() {
        let logit = |word: u32| f64::from(word % 7) * 0.4 - 1.0;
        let all: f64 = (0..1000).map(|word| logit(word).exp()).sum();
        let mut sample = SampledSoftmax::default();
        let runs = 400;
        let mean = (0..runs)
            .map(|key| {
                assert!(sample.draw([1u32, 5, 800].into_iter(), draw(key, 100)));
                let terms = sample.words().iter().zip(sample.bias());
                terms.map(|(&word, &bias)| (logit(word) + f64::from(bias)).exp()).sum::<f64>()
            })
            .sum::<f64>()
            / runs as f64;
        assert!((mean / all - 1.0).abs() < 0.02, "{mean} instead of {all}");
    }
}
