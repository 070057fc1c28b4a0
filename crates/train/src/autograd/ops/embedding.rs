//! Scaled token embeddings, with position embeddings added or concatenated.

use crate::autograd::{Backward, Forward, Op, Param};
use regard_core::batch::Packed;
use regard_kernels::{Dropout, add_scaled, dropout_in_place};
use std::sync::Arc;

/// The source of position vectors, each of width `d`.
#[derive(Clone, Debug)]
pub enum PositionVectors {
    /// No positions.
    None,
    /// A fixed table with a row for each position, at least as long as the longest sentence.
    Fixed(Arc<[f32]>),
    /// Learned rows `[positions, d]`, and the row of the first position.
    Learned(Param, usize),
}

/// `y = dropout(scale · E[id] + P[position])`, or with the two concatenated, `y [rows, 2·d]`.
#[derive(Debug)]
pub struct Embedding {
    /// The tokens.
    pub tokens: Packed,
    /// E `[v, d]`
    pub table: Param,
    /// d
    pub width: usize,
    /// √d in the paper.
    pub scale: f32,
    /// P
    pub positions: PositionVectors,
    /// Whether the position vector is concatenated to the token vector instead of added to it.
    pub concatenate: bool,
    /// The token whose vector is zero and stays zero, if there is one.
    pub pad: Option<u32>,
    /// Dropout of the sum.
    pub dropout: Option<Dropout>,
}

impl Embedding {
    fn columns(&self) -> usize {
        if self.concatenate { 2 * self.width } else { self.width }
    }

    /// The columns of the output that hold the position vector.
    fn place(&self) -> std::ops::Range<usize> {
        if self.concatenate { self.width..2 * self.width } else { 0..self.width }
    }
}

impl Op for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn shape(&self, _: &Forward<'_>) -> (usize, usize) {
        (self.tokens.tokens(), self.columns())
    }

    fn saves(&self, _: &Forward<'_>) -> usize {
        0
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], _: &mut [f32]) {
        let d = self.width;
        let table = cx.weight(self.table);
        let positions = match &self.positions {
            PositionVectors::None => None,
            PositionVectors::Fixed(rows) => Some(&rows[..]),
            PositionVectors::Learned(param, first) => Some(&cx.weight(*param)[first * d..]),
        };
        y.fill(0.0);
        let rows = self.tokens.ids().iter().zip(self.tokens.positions());
        for (y, (&id, position)) in y.chunks_exact_mut(self.columns()).zip(rows) {
            if let Some(positions) = positions {
                y[self.place()].copy_from_slice(&positions[position * d..][..d]);
            }
            if Some(id) != self.pad {
                add_scaled(cx.isa, &mut y[..d], &table[id as usize * d..][..d], self.scale);
            }
        }
        if let Some(p) = self.dropout {
            dropout_in_place(cx.isa, y, self.columns(), p);
        }
    }

    fn backward(&self, cx: &mut Backward<'_>, _: &[f32], _: &[f32], dy: &mut [f32]) {
        let d = self.width;
        if let Some(p) = self.dropout {
            dropout_in_place(cx.isa, dy, self.columns(), p);
        }
        let rows = self.tokens.ids().iter().zip(self.tokens.positions());
        for (dy, (&id, position)) in dy.chunks_exact(self.columns()).zip(rows) {
            if Some(id) != self.pad {
                let to = &mut cx.gradients[self.table.range()][id as usize * d..][..d];
                add_scaled(cx.isa, to, &dy[..d], self.scale);
            }
            if let PositionVectors::Learned(param, first) = self.positions {
                let to = &mut cx.gradients[param.range()][(first + position) * d..][..d];
                add_scaled(cx.isa, to, &dy[self.place()], 1.0);
            }
        }
    }
}
