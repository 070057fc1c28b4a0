//! The model: an encoder for the article, one for the question, cross-attention from the question
//! to the article, and two pointers to the first and the last word of the answer. Every word of the
//! question votes on where they point.

use super::articles::{Article, Vocabulary};
use crate::net::{self, CrossBlock, Net, SelfBlock};
use regard_core::batch::Packed;
use regard_core::model::{
    EmbeddingLayer, Executor, LayerBuilder, LinearLayer, ModelConfig, Param, Parameters, Positions, Side,
};
use regard_train::Taped;
use regard_train::autograd::Var;
use regard_train::autograd::ops::{Pointer, Pointing, Residual};
use std::ops::Range;

/// The maximum relative distance that is distinguished.
const REACH: usize = 16;
/// The window of the first article layer in words to each side, about a sentence: with it, the
/// model learns much faster which words belong together.
pub(super) const WINDOW: usize = 6;

/// The maximum length of an answer in words.
const SPAN: usize = 4;

/// The size of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) d: usize,
    pub(super) heads: usize,
    /// The number of layers of the article encoder.
    pub(super) article: usize,
    /// The number of layers of the question encoder.
    pub(super) question: usize,
    /// The number of cross-attention layers.
    pub(super) reading: usize,
}

#[derive(Debug)]
pub(super) struct Model {
    config: ModelConfig,
    parameters: Parameters,
    vocabulary: Vocabulary,
    words: Param,
    article: Vec<SelfBlock>,
    question: Vec<SelfBlock>,
    reading: Vec<CrossBlock>,
    /// The projections of the question words to queries and of the article words to keys, for the
    /// first and for the last word of the answer.
    pointers: [(LinearLayer, LinearLayer); 2],
}

/// The output of the model.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The predicted span of the article.
    pub(super) span: Range<usize>,
    /// The probability of each word of the article to be the first word of the answer, and to be
    /// the last.
    pub(super) pointed: [Vec<f32>; 2],
    /// For each word of the question, its own distribution over the first word of the answer.
    pub(super) votes: Vec<Vec<f32>>,
    /// For each word of the question, its attention to the words of the article in the last layer.
    pub(super) attention: Vec<Vec<f32>>,
}

impl Answer {
    /// The mean of the probabilities that the answer begins at the first and ends at the last of
    /// these words.
    pub(super) fn pointed_at(&self, words: &Range<usize>) -> f64 {
        f64::from(self.pointed[0][words.start] + self.pointed[1][words.end - 1]) / 2.0
    }

    /// The share of the question's attention that these words of the article receive.
    pub(super) fn looked_at(&self, words: &Range<usize>) -> f64 {
        let total: f32 = self.attention.iter().flat_map(|row| &row[words.clone()]).sum();
        f64::from(total) / self.attention.len().max(1) as f64
    }
}

/// The rows of sentence `i` of a side.
fn rows(e: &Taped<'_>, side: Side, i: usize) -> Range<usize> {
    let offsets = e.offsets(side);
    offsets[i]..offsets[i + 1]
}

/// The summed scores of each word of article `i` over the question rows `asking`; `q` and `k` are
/// the queries and keys of a pointer.
fn scores(e: &Taped<'_>, i: usize, asking: Range<usize>, (q, k): (Var, Var)) -> Vec<f32> {
    let (q, k) = (e.matrix(q), e.matrix(k));
    let score = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let scale = (q.cols() as f32).sqrt().recip();
    let all = |j: usize| asking.clone().map(|row| score(q.row(row), k.row(j))).sum::<f32>() * scale;
    rows(e, Side::Source, i).map(all).collect()
}

fn softmax(scores: &[f32]) -> Vec<f32> {
    let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = scores.iter().map(|s| (s - top).exp()).sum();
    scores.iter().map(|s| (s - top).exp() / total).collect()
}

impl Model {
    pub(super) fn new(size: Size) -> Self {
        let vocabulary = Vocabulary::new();
        let config = ModelConfig {
            // One more than there are words, for padding.
            source_vocabulary: vocabulary.len() + 1,
            target_vocabulary: vocabulary.len() + 1,
            positions: Positions::Relative,
            relative_reach: REACH,
            ..net::config(size.d, size.heads)
        };
        let mut b = LayerBuilder::new(&config);
        let words = b.words("words", config.source_vocabulary);
        let article = (0..size.article)
            .map(|i| SelfBlock::new(&mut b, "article", i, (i == 0).then_some(WINDOW)))
            .collect();
        let question = (0..size.question).map(|i| SelfBlock::new(&mut b, "question", i, None)).collect();
        let reading = (0..size.reading).map(|i| CrossBlock::new(&mut b, "reading", i)).collect();
        let pointers = ["first", "last"].map(|end| {
            let mut linear = |side: &str| b.linear(&format!("{end}.{side}"), size.d, size.d);
            (linear("question"), linear("article"))
        });
        let parameters = b.into_parameters();
        Model { config, parameters, vocabulary, words, article, question, reading, pointers }
    }

    /// Encodes the words of a side, with relative positions.
    fn encode(&self, e: &mut Taped<'_>, side: Side, layers: &[SelfBlock]) -> Var {
        let x =
            e.embed(&EmbeddingLayer { side, table: self.words, positions: None, joined: None, norm: None });
        layers.iter().fold(x, |x, layer| layer.run(e, x))
    }

    /// The queries of the question words and the keys of the article words, for both pointers.
    fn point(&self, e: &mut Taped<'_>) -> [(Var, Var); 2] {
        let text = self.encode(e, Side::Source, &self.article);
        let asked = self.encode(e, Side::Target, &self.question);
        let x = self.reading.iter().fold(asked, |x, layer| layer.run(e, x, text));
        self.pointers.map(|(question, article)| (e.linear(x, &question), e.linear(text, &article)))
    }
}

impl Net for Model {
    type Example = Article;
    type Answer = Answer;

    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The articles are the source, the questions the target.
    fn tokens(&self, articles: &[Article]) -> (Packed, Packed) {
        let texts: Vec<Vec<u32>> = articles.iter().map(|a| self.vocabulary.ids(&a.words)).collect();
        let asked: Vec<Vec<u32>> = articles.iter().map(|a| self.vocabulary.ids(&a.question)).collect();
        (Packed::new(texts.iter().map(Vec::as_slice)), Packed::new(asked.iter().map(Vec::as_slice)))
    }

    /// The sum of the losses of both pointers for each question.
    fn loss(&self, e: &mut Taped<'_>, articles: &[Article], _: f32) -> Var {
        let pointers = self.point(e);
        let targets: [fn(&Article) -> usize; 2] = [|a| a.answer.start, |a| a.answer.end - 1];
        let [x, branch] = [0, 1].map(|end| {
            let pointing = |(i, a): (usize, &Article)| Pointing {
                rows: rows(e, Side::Target, i),
                among: rows(e, Side::Source, i),
                target: targets[end](a),
            };
            let (q, k) = pointers[end];
            let pointers = articles.iter().enumerate().map(pointing).collect();
            e.push(Pointer { q, k, pointers })
        });
        e.push(Residual { x, branch, dropout: None })
    }

    fn answer(&self, e: &mut Taped<'_>, articles: &[Article]) -> Vec<Answer> {
        let pointers = self.point(e);
        let e = &*e;
        let mut attention = net::last_cross_attention(e, self.config.head_shape(Side::Target)).into_iter();
        let answer = |i: usize| {
            let asking = rows(e, Side::Target, i);
            let scored = pointers.map(|ends| scores(e, i, asking.clone(), ends));
            let vote = |row: usize| softmax(&scores(e, i, row..row + 1, pointers[0]));
            let span = best_span(&scored[0], &scored[1]);
            let attention = attention.by_ref().take(asking.len()).collect();
            Answer {
                span,
                pointed: scored.map(|s| softmax(&s)),
                votes: asking.map(vote).collect(),
                attention,
            }
        };
        (0..articles.len()).map(answer).collect()
    }
}

/// The span whose first and last word have the highest total score.
fn best_span(first: &[f32], last: &[f32]) -> Range<usize> {
    let mut best = (f32::NEG_INFINITY, 0..0);
    for (i, a) in first.iter().enumerate() {
        for (j, b) in last.iter().enumerate().skip(i).take(SPAN) {
            if a + b > best.0 {
                best = (a + b, i..j + 1);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_where_it_begins_or_later() {
        assert_eq!(best_span(&[0.0, 9.0, 1.0], &[9.0, 0.0, 5.0]), 1..3);
        assert_eq!(best_span(&[0.0, 1.0, 0.0], &[3.0, 0.0, 1.0]), 0..1);
        // A span must not be too long.
        assert_eq!(best_span(&[9.0, 0.0, 0.0, 0.0, 0.0], &[0.0, 0.0, 1.0, 0.0, 9.0]), 0..3);
        assert_eq!(best_span(&[], &[]), 0..0);
    }
}
