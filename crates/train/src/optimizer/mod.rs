//! From gradients to weights: clipping, Adam, Muon, the learning rate schedule, and the moving
//! average of the weights.

mod ema;
mod muon;
mod schedule;

pub(crate) use ema::MovingAverage;
pub use schedule::{Schedule, ScheduleKind};

use crate::threads::{PIECE, over_threads};
use muon::Matrix;
use regard_core::model::Param;
use regard_core::{Error, Result};
use regard_kernels::{Adam, Gemm, Isa, adam_step};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The settings of clipping and Adam.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamSettings {
    /// β₁; 0.9 in the paper.
    pub beta1: f32,
    /// β₂; 0.98 in the paper.
    pub beta2: f32,
    /// ε; 1e-9 in the paper.
    pub epsilon: f32,
    /// The maximum gradient norm; larger gradients are scaled down to it. None in the paper.
    pub clip: Option<f32>,
}

impl Default for AdamSettings {
    fn default() -> Self {
        AdamSettings { beta1: 0.9, beta2: 0.98, epsilon: 1e-9, clip: None }
    }
}

/// The weights of a model in training, Adam's moments, and the number of steps taken.
#[derive(Debug)]
pub struct Optimizer {
    settings: AdamSettings,
    isa: Isa,
    threads: usize,
    step: u64,
    weights: Vec<f32>,
    /// Adam's, or Muon's momentum.
    first_moments: Vec<f32>,
    /// Adam's; zeros where Muon is used.
    second_moments: Vec<f32>,
    /// All weights in order.
    segments: Vec<Segment>,
    muon: Option<Muon>,
}

/// What Muon needs besides the matrices.
#[derive(Clone, Copy, Debug)]
struct Muon {
    /// The root mean square of an update, relative to the learning rate.
    scale: f32,
    gemm: Gemm,
}

/// Weights that one thread updates at a time.
#[derive(Debug)]
enum Segment {
    /// Adam's: a piece, or a part of one.
    Weights(Range<usize>),
    /// Muon's.
    Matrix(Matrix),
}

impl Segment {
    fn range(&self) -> Range<usize> {
        match self {
            Segment::Weights(range) => range.clone(),
            Segment::Matrix(matrix) => matrix.range(),
        }
    }
}

/// The part of `start..end` in each piece of the weights.
fn pieces(start: usize, end: usize) -> impl Iterator<Item = Segment> {
    let first = (start < end).then_some(start);
    let next = move |start: &usize| Some((start / PIECE + 1) * PIECE).filter(|next| *next < end);
    std::iter::successors(first, next)
        .map(move |start| Segment::Weights(start..end.min((start / PIECE + 1) * PIECE)))
}

impl Optimizer {
    /// Starts from `weights`; each step runs on `threads` threads.
    pub fn new(weights: Vec<f32>, settings: AdamSettings, isa: Isa, threads: usize) -> Self {
        let zeros = vec![0.0; weights.len()];
        let (first_moments, second_moments) = (zeros.clone(), zeros);
        let (segments, muon) = (pieces(0, weights.len()).collect(), None);
        Optimizer { settings, isa, threads, step: 0, weights, first_moments, second_moments, segments, muon }
    }

    /// Uses Muon for these matrices; the root mean square of an update is about `scale` times the
    /// learning rate.
    pub(crate) fn with_muon(
        mut self,
        scale: f32,
        matrices: impl Iterator<Item = (Param, [usize; 2])>,
    ) -> Self {
        let mut matrices: Vec<Matrix> =
            matrices.flat_map(|(param, shape)| Matrix::blocks(param.offset, shape)).collect();
        matrices.sort_by_key(|matrix| matrix.range().start);
        self.segments.clear();
        let mut end = 0;
        for matrix in matrices {
            let range = matrix.range();
            self.segments.extend(pieces(end, range.start));
            self.segments.push(Segment::Matrix(matrix));
            end = range.end;
        }
        self.segments.extend(pieces(end, self.weights.len()));
        self.muon = Some(Muon { scale, gemm: Gemm::f32(self.isa) });
        self
    }

    /// Uses matmuls in this number format for Muon.
    pub(crate) fn set_gemm(&mut self, gemm: Gemm) {
        self.muon = self.muon.map(|muon| Muon { gemm, ..muon });
    }

    /// Whether a step needs the gradient of all weights, even if this process owns only a part of
    /// them: every process updates all of Muon's matrices.
    pub(crate) fn needs_whole_gradient(&self) -> bool {
        self.muon.is_some()
    }

    /// The weights.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The weights, at the end of the training.
    pub fn into_weights(self) -> Vec<f32> {
        self.weights
    }

    /// The number of steps taken.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Adam's first and second moments.
    pub fn moments(&self) -> (&[f32], &[f32]) {
        (&self.first_moments, &self.second_moments)
    }

    /// Steps, weights and both moments, so that several processes can synchronise them.
    pub(crate) fn parts_mut(&mut self) -> (&mut u64, &mut [f32], [&mut [f32]; 2]) {
        (&mut self.step, &mut self.weights, [&mut self.first_moments, &mut self.second_moments])
    }

    /// Restores the state of another trainer after `steps` steps.
    pub fn restore(&mut self, steps: u64, weights: Vec<f32>, moments: (Vec<f32>, Vec<f32>)) -> Result<()> {
        let n = self.weights.len();
        for vector in [&weights, &moments.0, &moments.1] {
            if vector.len() != n {
                let message = format!("{} numbers for a model of {n}", vector.len());
                return Err(Error::Input { operation: "restoring a trainer", message });
            }
        }
        self.step = steps;
        self.weights = weights;
        (self.first_moments, self.second_moments) = moments;
        Ok(())
    }

    /// One step with learning rate `rate` on a gradient with norm `norm`: clipping, then Adam or Muon.
    pub fn step(&mut self, gradient: &[f32], norm: f64, rate: f32) {
        self.step_where(gradient, norm, rate, |_| true);
    }

    /// The same, but Adam only updates the pieces of the weights selected by `owns`.
    pub(crate) fn step_where(
        &mut self,
        gradient: &[f32],
        norm: f64,
        rate: f32,
        owns: impl Fn(usize) -> bool,
    ) {
        let AdamSettings { beta1, beta2, epsilon, clip } = self.settings;
        self.step += 1;
        let gradient_scale = match clip {
            Some(most) if norm > f64::from(most) => (f64::from(most) / norm) as f32,
            _ => 1.0,
        };
        let (isa, muon) = (self.isa, self.muon);
        let adam = Adam { rate, betas: (beta1, beta2), epsilon, step: self.step, gradient_scale };
        let (mut weights, mut first, mut second) =
            (&mut self.weights[..], &mut self.first_moments[..], &mut self.second_moments[..]);
        let mut work = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let range = segment.range();
            // The segments cover all weights in order.
            let own = [&mut weights, &mut first, &mut second]
                .map(|rest| rest.split_off_mut(..range.len()).expect("a segment is within the weights"));
            if matches!(segment, Segment::Matrix(_)) || owns(range.start / PIECE) {
                work.push((segment, own, &gradient[range]));
            }
        }
        over_threads(self.threads, work.into_iter(), |(segment, [w, m, v], g)| match (segment, muon) {
            (Segment::Matrix(matrix), Some(Muon { scale, gemm })) => {
                matrix.step(gemm, (rate, scale, gradient_scale), w, m, g);
            }
            _ => adam_step(isa, adam, w, m, v, g),
        });
    }

    /// Runs `update` if loss and gradient norm are finite. Otherwise it counts the step but changes
    /// nothing. Returns whether the step was applied.
    pub fn step_if_finite(&mut self, loss: f64, norm: f64, update: impl FnOnce(&mut Self)) -> bool {
        let applied = loss.is_finite() && norm.is_finite();
        if applied {
            update(self);
        } else {
            self.step += 1;
        }
        applied
    }
}
