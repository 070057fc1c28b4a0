//! The model: an encoder over the article, one over the question, cross-attention from the question to the article, and two
//! pointers to the first and the last word of the answer. Every word of the question has a vote in where they point.

use super::articles::{Article, Vocabulary};
use crate::net::{Builder, CrossLayer, Crossed, Dense, Offsets, Pass, SelfLayer};
use regard_core::batch::Packed;
use regard_core::model::HeadShape;
use regard_core::model::Parameters;
use regard_train::autograd::ops::{Embedding, Pointer, Pointing, PositionVectors, Residual};
use regard_train::autograd::{Param, Var};
use std::ops::Range;

/// Distances up to this are told apart.
const REACH: usize = 16;
/// The first layer over the article sees this many words to each side, about a sentence: what belongs together is found much sooner.
pub(super) const WINDOW: usize = 6;

/// The longest answer.
const SPAN: usize = 4;

/// How large a model is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) d: usize,
    pub(super) heads: usize,
    /// Layers of the article's encoder.
    pub(super) article: usize,
    /// Layers of the question's encoder.
    pub(super) question: usize,
    /// Cross-attention layers.
    pub(super) reading: usize,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) parameters: Parameters,
    pub(super) heads: HeadShape,
    vocabulary: Vocabulary,
    d: usize,
    words: Param,
    article: Vec<SelfLayer>,
    question: Vec<SelfLayer>,
    reading: Vec<CrossLayer>,
    /// From the words of the question to what they look for, and from those of the article to what they are: of the answer's first
    /// word, and of its last.
    pointers: [(Dense, Dense); 2],
}

/// What the model says.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The words of the article that it chose.
    pub(super) span: Range<usize>,
    /// The probability of each word of the article to be the answer's first, and to be its last.
    pub(super) pointed: [Vec<f32>; 2],
    /// For each word of the question, what it alone would take for the answer's first word.
    pub(super) votes: Vec<Vec<f32>>,
    /// For each word of the question, how it attended to the words of the article in the last layer.
    pub(super) attention: Vec<Vec<f32>>,
}

impl Answer {
    /// The probability of the first and the last of some words to be those of the answer, on average.
    pub(super) fn pointed_at(&self, words: &Range<usize>) -> f64 {
        f64::from(self.pointed[0][words.start] + self.pointed[1][words.end - 1]) / 2.0
    }

    /// The share of the attention of the whole question that some words of the article get.
    pub(super) fn looked_at(&self, words: &Range<usize>) -> f64 {
        let total: f32 = self.attention.iter().flat_map(|row| &row[words.clone()]).sum();
        f64::from(total) / self.attention.len().max(1) as f64
    }
}

/// The model recorded over some articles.
struct Recorded {
    seen: Crossed,
    pointers: [(Var, Var); 2],
    questions: Offsets,
    articles: Offsets,
}

impl Recorded {
    fn question(&self, i: usize) -> Range<usize> {
        self.questions[i]..self.questions[i + 1]
    }

    fn article(&self, i: usize) -> Range<usize> {
        self.articles[i]..self.articles[i + 1]
    }

    /// How much each word of article `i` is pointed at by some words of its question together.
    fn scores(&self, pass: &Pass<'_>, i: usize, rows: Range<usize>, (q, k): (Var, Var)) -> Vec<f32> {
        let (q, k) = (pass.value(q), pass.value(k));
        let score = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let scale = (q.cols() as f32).sqrt().recip();
        let all = |j: usize| rows.clone().map(|row| score(q.row(row), k.row(j))).sum::<f32>() * scale;
        self.article(i).map(all).collect()
    }
}

fn softmax(scores: &[f32]) -> Vec<f32> {
    let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = scores.iter().map(|s| (s - top).exp()).sum();
    scores.iter().map(|s| (s - top).exp() / total).collect()
}

impl Model {
    pub(super) fn new(size: Size) -> Self {
        let vocabulary = Vocabulary::new();
        let mut b = Builder::new(size.d, size.heads);
        let words = b.vectors("words", vocabulary.len(), (size.d as f32).powf(-0.5));
        let article = (0..size.article)
            .map(|i| b.self_layer(&format!("article.{i}"), (i == 0).then_some(WINDOW), Some(REACH)))
            .collect();
        let question =
            (0..size.question).map(|i| b.self_layer(&format!("question.{i}"), None, Some(REACH))).collect();
        let reading = (0..size.reading).map(|i| b.cross_layer(&format!("reading.{i}"))).collect();
        let pointers = ["first", "last"].map(|end| {
            let mut dense = |side: &str| b.dense(&format!("{end}.{side}"), size.d, size.d);
            (dense("question"), dense("article"))
        });
        Model {
            heads: b.heads(),
            parameters: b.parameters,
            vocabulary,
            d: size.d,
            words,
            article,
            question,
            reading,
            pointers,
        }
    }

    /// The loss of the two pointers of each question, added.
    pub(super) fn loss(&self, pass: &mut Pass<'_>, articles: &[Article]) -> Var {
        let recorded = self.record(pass, articles);
        let targets: [fn(&Article) -> usize; 2] = [|a| a.answer.start, |a| a.answer.end - 1];
        let [x, branch] = [0, 1].map(|end| {
            let pointing = |(i, a): (usize, &Article)| Pointing {
                rows: recorded.question(i),
                among: recorded.article(i),
                target: targets[end](a),
            };
            let (q, k) = recorded.pointers[end];
            let pointers = articles.iter().enumerate().map(pointing).collect();
            pass.push(Pointer { q, k, pointers })
        });
        pass.push(Residual { x, branch, dropout: None })
    }

    /// What it says.
    pub(super) fn answer(&self, pass: &mut Pass<'_>, articles: &[Article]) -> Vec<Answer> {
        let recorded = self.record(pass, articles);
        let mut attention =
            pass.weights_of(&recorded.seen, &recorded.questions, &recorded.articles).into_iter();
        let answer = |i: usize| {
            let rows = recorded.question(i);
            let scores = recorded.pointers.map(|ends| recorded.scores(pass, i, rows.clone(), ends));
            let vote = |row: usize| softmax(&recorded.scores(pass, i, row..row + 1, recorded.pointers[0]));
            let span = best_span(&scores[0], &scores[1]);
            let attention = attention.by_ref().take(rows.len()).collect();
            Answer { span, pointed: scores.map(|s| softmax(&s)), votes: rows.map(vote).collect(), attention }
        };
        (0..articles.len()).map(answer).collect()
    }

    fn record(&self, pass: &mut Pass<'_>, articles: &[Article]) -> Recorded {
        let texts: Vec<Vec<u32>> = articles.iter().map(|a| self.vocabulary.ids(&a.words)).collect();
        let asked: Vec<Vec<u32>> = articles.iter().map(|a| self.vocabulary.ids(&a.question)).collect();
        let (text, offsets) = self.encode(pass, &texts, &self.article);
        let (mut x, questions) = self.encode(pass, &asked, &self.question);
        let mut last = None;
        for layer in &self.reading {
            let seen = pass.cross_layer((x, &questions), (text, &offsets), layer);
            (x, last) = (seen.x, Some(seen));
        }
        let seen = last.expect("at least one layer reads");
        let pointers =
            self.pointers.map(|(question, article)| (pass.dense(x, question), pass.dense(text, article)));
        Recorded { seen, pointers, questions, articles: offsets }
    }

    /// Words through an encoder, which knows their distances.
    fn encode(&self, pass: &mut Pass<'_>, texts: &[Vec<u32>], layers: &[SelfLayer]) -> (Var, Offsets) {
        let tokens = Packed::new(texts.iter().map(Vec::as_slice));
        let offsets = tokens.offsets().clone();
        let mut x = pass.push(Embedding {
            tokens,
            table: self.words,
            width: self.d,
            scale: (self.d as f32).sqrt(),
            positions: PositionVectors::None,
            concatenate: false,
            pad: u32::MAX,
            dropout: None,
        });
        for layer in layers {
            x = pass.self_layer(x, layer, &offsets);
        }
        (x, offsets)
    }
}

/// The span whose first and last word have the highest scores together.
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
        // Too long a span is none.
        assert_eq!(best_span(&[9.0, 0.0, 0.0, 0.0, 0.0], &[0.0, 0.0, 1.0, 0.0, 9.0]), 0..3);
        assert_eq!(best_span(&[], &[]), 0..0);
    }
}
