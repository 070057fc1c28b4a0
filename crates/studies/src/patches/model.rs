//! The model: patches as tokens, an encoder, and two questions that look at them.

use super::pictures::{PATCH, Picture};
use crate::net::{self, Builder, CrossLayer, Crossed, Dense, Offsets, Pass, SelfLayer};
use regard_core::batch::Packed;
use regard_core::model::HeadShape;
use regard_core::model::{Parameters, positions};
use regard_train::autograd::ops::{CrossEntropy, Embedding, PositionVectors, Residual};
use regard_train::autograd::{Param, Var};
use std::sync::Arc;

/// How the model knows where a patch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// One learned vector a patch.
    Learned,
    /// Sines and cosines of row and column.
    Sinusoids,
    /// Not at all.
    None,
}

impl Places {
    pub(super) const ALL: [Places; 3] = [Places::Learned, Places::Sinusoids, Places::None];

    pub(super) fn name(self) -> &'static str {
        match self {
            Places::Learned => "one learned vector a patch",
            Places::Sinusoids => "two-dimensional sinusoids",
            Places::None => "none",
        }
    }
}

/// Which row, and which column.
pub(super) const QUESTIONS: usize = 2;

/// No token: its vector is zero, so that an embedding gives nothing but positions.
const NOTHING: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Model {
    pub(super) parameters: Parameters,
    pub(super) heads: HeadShape,
    kind: Places,
    grid: usize,
    d: usize,
    embed: Dense,
    places: PositionVectors,
    layers: Vec<SelfLayer>,
    questions: Param,
    ask: CrossLayer,
    /// A row for each answer: the first, the second, and so on.
    answers: Param,
}

/// What the model makes of a picture.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The scores of every row and every column, one behind the other.
    pub(super) scores: Vec<f32>,
    /// How the two questions attended to the patches, on average.
    pub(super) attention: Vec<f32>,
}

impl Answer {
    pub(super) fn row(&self) -> usize {
        net::greatest(&self.scores[..self.scores.len() / 2])
    }

    pub(super) fn column(&self) -> usize {
        net::greatest(&self.scores[self.scores.len() / 2..])
    }
}

impl Model {
    pub(super) fn new(grid: usize, kind: Places, (d, heads, layers): (usize, usize, usize)) -> Self {
        let mut b = Builder::new(d, heads);
        let embed = b.dense("patches", d, PATCH * PATCH);
        let layers = (0..layers).map(|i| b.self_layer(&format!("layers.{i}"), None, None)).collect();
        let questions = b.vectors("questions", QUESTIONS, 1.0);
        let ask = b.cross_layer("ask");
        let answers = b.vectors("answers", grid, (d as f32).powf(-0.5));
        // Last, so that all other weights begin alike whatever the places.
        let places = match kind {
            Places::Learned => PositionVectors::Learned(b.vectors("places", grid * grid, 0.02)),
            Places::Sinusoids => PositionVectors::Fixed(positions::sinusoidal_2d(grid, grid, d).into()),
            Places::None => PositionVectors::None,
        };
        let heads = b.heads();
        Model {
            parameters: b.parameters,
            heads,
            kind,
            grid,
            d,
            embed,
            places,
            layers,
            questions,
            ask,
            answers,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The vectors of all places, `[grid², d]`, of a model with these weights.
    pub(super) fn place_vectors(&self, weights: &[f32]) -> Vec<f32> {
        match &self.places {
            PositionVectors::Learned(param) => weights[param.range()].to_vec(),
            PositionVectors::Fixed(table) => table.to_vec(),
            PositionVectors::None => vec![0.0; self.grid * self.grid * self.d],
        }
    }

    /// The loss of both answers of each picture.
    pub(super) fn loss(&self, pass: &mut Pass<'_>, pictures: &[Picture]) -> Var {
        let (seen, _, _) = self.record(pass, pictures);
        let targets: Arc<[u32]> = pictures.iter().flat_map(|p| [p.row as u32, p.column as u32]).collect();
        let (table, words, scale) = (self.answers, self.grid, pass.scale);
        pass.push(CrossEntropy { x: seen.x, table, bias: None, words, targets, smoothing: 0.0, scale })
    }

    /// What it says.
    pub(super) fn answer(&self, pass: &mut Pass<'_>, pictures: &[Picture]) -> Vec<Answer> {
        let (seen, asked, patches) = self.record(pass, pictures);
        let attention = pass.weights_of(&seen, &asked, &patches);
        let x = pass.value(seen.x);
        let table = pass.weight(self.answers);
        let scores = |row: usize| {
            let product = move |a: &[f32]| a.iter().zip(x.row(row)).map(|(a, b)| a * b).sum::<f32>();
            table.chunks_exact(self.d).map(product)
        };
        (0..pictures.len())
            .map(|i| Answer {
                scores: scores(2 * i).chain(scores(2 * i + 1)).collect(),
                attention: mean_of(&attention[2 * i], &attention[2 * i + 1]),
            })
            .collect()
    }

    /// The questions after they have looked, and where those and the patches of each picture lie.
    fn record(&self, pass: &mut Pass<'_>, pictures: &[Picture]) -> (Crossed, Offsets, Offsets) {
        let (count, b) = (self.grid * self.grid, pictures.len());
        let patches = net::even_offsets(b, count);
        let pixels: Vec<f32> = pictures.iter().flat_map(|p| p.patches.iter().copied()).collect();
        let input = pass.tape.input(&pixels, b * count, PATCH * PATCH);
        let mut x = pass.dense(input, self.embed);
        if !matches!(self.places, PositionVectors::None) {
            let nowhere = vec![NOTHING; count];
            let branch = self.vectors(pass, &vec![&nowhere[..]; b], self.places.clone());
            x = pass.push(Residual { x, branch, dropout: None });
        }
        for layer in &self.layers {
            x = pass.self_layer(x, layer, &patches);
        }
        let asked = net::even_offsets(b, QUESTIONS);
        let questions = self.vectors(pass, &vec![&[0, 1][..]; b], PositionVectors::None);
        (pass.cross_layer((questions, &asked), (x, &patches), &self.ask), asked, patches)
    }

    /// The vectors of questions, or of nothing at all, with those of their places.
    fn vectors(&self, pass: &mut Pass<'_>, ids: &[&[u32]], positions: PositionVectors) -> Var {
        pass.push(Embedding {
            tokens: Packed::new(ids.iter().copied()),
            table: self.questions,
            width: self.d,
            scale: 1.0,
            positions,
            concatenate: false,
            pad: NOTHING,
            dropout: None,
        })
    }
}

fn mean_of(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| 0.5 * (a + b)).collect()
}
