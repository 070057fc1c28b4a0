//! From gradients to weights: clipping, Adam, the learning rate schedule, and the moving average of
//! the weights.

mod ema;
mod schedule;

pub(crate) use ema::MovingAverage;
pub use schedule::{Schedule, ScheduleKind};

use crate::threads::{PIECE, over_threads};
use regard_core::{Error, Result};
use regard_kernels::{Adam, Isa, adam_step};
use serde::{Deserialize, Serialize};

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
    first_moments: Vec<f32>,
    second_moments: Vec<f32>,
}

impl Optimizer {
    /// Starts from `weights`; each step runs on `threads` threads.
    pub fn new(weights: Vec<f32>, settings: AdamSettings, isa: Isa, threads: usize) -> Self {
        let zeros = vec![0.0; weights.len()];
        let (first_moments, second_moments) = (zeros.clone(), zeros);
        Optimizer { settings, isa, threads, step: 0, weights, first_moments, second_moments }
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

    /// One step with learning rate `rate` on a gradient with norm `norm`: clipping, then Adam.
    pub fn step(&mut self, gradient: &[f32], norm: f64, rate: f32) {
        self.step_where(gradient, norm, rate, std::iter::repeat(true));
    }

    /// The same on the pieces of the weights selected by `owns`.
    pub(crate) fn step_where(
        &mut self,
        gradient: &[f32],
        norm: f64,
        rate: f32,
        owns: impl IntoIterator<Item = bool>,
    ) {
        let AdamSettings { beta1, beta2, epsilon, clip } = self.settings;
        self.step += 1;
        let gradient_scale = match clip {
            Some(most) if norm > f64::from(most) => (f64::from(most) / norm) as f32,
            _ => 1.0,
        };
        let (isa, adam) =
            (self.isa, Adam { rate, betas: (beta1, beta2), epsilon, step: self.step, gradient_scale });
        let work = self
            .weights
            .chunks_mut(PIECE)
            .zip(self.first_moments.chunks_mut(PIECE).zip(self.second_moments.chunks_mut(PIECE)))
            .zip(gradient.chunks(PIECE))
            .zip(owns)
            .filter_map(|(work, own)| own.then_some(work));
        over_threads(self.threads, work, |((w, (m, v)), g)| adam_step(isa, adam, w, m, v, g));
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
