//! The model: patches as tokens, an encoder, and two queries that attend to the patches.

use super::pictures::{PATCH, Picture};
use crate::net::{self, CrossBlock, Net, SelfBlock};
use regard_core::batch::Packed;
use regard_core::model::{
    EmbeddingLayer, Executor, LayerBuilder, LinearLayer, ModelConfig, Param, Parameters, Positions, Side,
    positions,
};
use regard_train::Taped;
use regard_train::autograd::Var;
use regard_train::autograd::ops::{CrossEntropy, Embedding, PositionVectors, Residual};
use std::sync::Arc;

/// How the model represents the position of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PositionKind {
    /// One learned vector per patch.
    Learned,
    /// Sines and cosines of row and column.
    Sinusoids,
    /// No positions.
    None,
}

impl PositionKind {
    pub(super) const ALL: [PositionKind; 3] =
        [PositionKind::Learned, PositionKind::Sinusoids, PositionKind::None];

    pub(super) fn name(self) -> &'static str {
        match self {
            PositionKind::Learned => "one learned vector per patch",
            PositionKind::Sinusoids => "two-dimensional sinusoids",
            PositionKind::None => "none",
        }
    }
}

/// The queries: which row, and which column.
pub(super) const QUESTIONS: usize = 2;

/// The only word of the source, which is padding: its vector is zero, so that an embedding consists
/// of positions only.
const NOTHING: u32 = 0;

#[derive(Debug)]
pub(super) struct Model {
    config: ModelConfig,
    parameters: Parameters,
    kind: PositionKind,
    grid: usize,
    embed: LinearLayer,
    positions: PositionVectors,
    layers: Vec<SelfBlock>,
    questions: Param,
    ask: CrossBlock,
    /// One output vector per answer: the first row or column, the second, and so on.
    answers: Param,
}

/// The output of the model for a picture.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The scores of all rows, followed by the scores of all columns.
    pub(super) scores: Vec<f32>,
    /// The mean attention of the two queries to the patches.
    pub(super) attention: Vec<f32>,
}

impl Answer {
    pub(super) fn row(&self) -> usize {
        net::argmax(&self.scores[..self.scores.len() / 2])
    }

    pub(super) fn column(&self) -> usize {
        net::argmax(&self.scores[self.scores.len() / 2..])
    }
}

impl Model {
    pub(super) fn new(grid: usize, kind: PositionKind, (d, heads, layers): (usize, usize, usize)) -> Self {
        let config = ModelConfig {
            source_vocabulary: 1,
            // One more than there are queries, for padding.
            target_vocabulary: QUESTIONS + 1,
            scale_embeddings: false,
            positions: Positions::None,
            ..net::config(d, heads)
        };
        let mut b = LayerBuilder::new(&config);
        let embed = b.linear("patches", d, PATCH * PATCH);
        let layers = (0..layers).map(|i| SelfBlock::new(&mut b, "layers", i, None)).collect();
        let questions = b.words("questions", config.target_vocabulary);
        let ask = CrossBlock::new(&mut b, "ask", 0);
        let answers = b.vectors("answers", grid, (d as f32).powf(-0.5));
        // Created last, so that all other weights start identically for every kind of positions.
        let positions = match kind {
            PositionKind::Learned => PositionVectors::Learned(b.vectors("places", grid * grid, 0.02), 0),
            PositionKind::Sinusoids => PositionVectors::Fixed(positions::sinusoidal_2d(grid, grid, d).into()),
            PositionKind::None => PositionVectors::None,
        };
        let parameters = b.into_parameters();
        Model { config, parameters, kind, grid, embed, positions, layers, questions, ask, answers }
    }

    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The position vectors `[grid², d]` of a model with these weights.
    pub(super) fn position_vectors(&self, weights: &[f32]) -> Vec<f32> {
        match &self.positions {
            PositionVectors::Learned(param, _) => weights[param.range()].to_vec(),
            PositionVectors::Fixed(table) => table.to_vec(),
            PositionVectors::None => vec![0.0; self.grid * self.grid * self.config.d_model],
        }
    }

    /// The queries after attending to the patches: two rows per picture.
    fn look(&self, e: &mut Taped<'_>, pictures: &[Picture]) -> Var {
        let pixels: Vec<f32> = pictures.iter().flat_map(|p| p.patches.iter().copied()).collect();
        let input = e.input(Side::Source, &pixels, PATCH * PATCH);
        let mut x = e.linear(input, &self.embed);
        if !matches!(self.positions, PositionVectors::None) {
            let branch = self.embed_positions(e, pictures.len());
            x = e.push(Residual { x, branch, dropout: None });
        }
        for layer in &self.layers {
            x = layer.run(e, x);
        }
        let table = self.questions;
        let asked =
            e.embed(&EmbeddingLayer { side: Side::Target, table, positions: None, joined: None, norm: None });
        self.ask.run(e, asked, x)
    }

    /// The position vectors of all patches. They have rows and columns, which no layer of the
    /// Transformer supports.
    fn embed_positions(&self, e: &mut Taped<'_>, pictures: usize) -> Var {
        e.push(Embedding {
            tokens: self.patches(pictures),
            table: self.questions,
            width: self.config.d_model,
            scale: 1.0,
            positions: self.positions.clone(),
            concatenate: false,
            pad: Some(NOTHING),
            dropout: None,
        })
    }

    fn patches(&self, pictures: usize) -> Packed {
        let nothing = vec![NOTHING; self.grid * self.grid];
        Packed::new(std::iter::repeat_n(&nothing[..], pictures))
    }
}

impl Net for Model {
    type Example = Picture;
    type Answer = Answer;

    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The patches of each picture are the source, the two queries the target.
    fn tokens(&self, pictures: &[Picture]) -> (Packed, Packed) {
        let questions: Vec<u32> = (0..QUESTIONS as u32).collect();
        (self.patches(pictures.len()), Packed::new(std::iter::repeat_n(&questions[..], pictures.len())))
    }

    /// The loss of both answers for each picture.
    fn loss(&self, e: &mut Taped<'_>, pictures: &[Picture], scale: f32) -> Var {
        let x = self.look(e, pictures);
        let targets: Arc<[u32]> = pictures.iter().flat_map(|p| [p.row as u32, p.column as u32]).collect();
        let (table, words) = (self.answers, self.grid);
        e.push(CrossEntropy { x, table, bias: None, words, targets, smoothing: 0.0, scale })
    }

    fn answer(&self, e: &mut Taped<'_>, pictures: &[Picture]) -> Vec<Answer> {
        let x = self.look(e, pictures);
        let attention = net::last_cross_attention(e, self.config.head_shape(Side::Target));
        let (x, table) = (e.matrix(x), e.weight(self.answers));
        let scores = |row: usize| {
            let product = move |a: &[f32]| a.iter().zip(x.row(row)).map(|(a, b)| a * b).sum::<f32>();
            table.chunks_exact(self.config.d_model).map(product)
        };
        (0..pictures.len())
            .map(|i| Answer {
                scores: scores(2 * i).chain(scores(2 * i + 1)).collect(),
                attention: mean_of(&attention[2 * i], &attention[2 * i + 1]),
            })
            .collect()
    }
}

fn mean_of(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| 0.5 * (a + b)).collect()
}
