//! The exponential moving average of the weights.

/// An average that follows the weights at a distance. It is what is validated and saved where there
/// is one.
#[derive(Clone, Debug)]
pub(crate) struct MovingAverage {
    decay: f32,
    weights: Vec<f32>,
}

impl MovingAverage {
    /// Begins at `weights`; `decay` is the part of the average that a step keeps.
    pub(crate) fn new(decay: f32, weights: Vec<f32>) -> Self {
        MovingAverage { decay, weights }
    }

    /// The average.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Takes in the weights after step `step`, from 1.
    pub(crate) fn update(&mut self, step: u64, weights: &[f32]) {
        // In the beginning a young average follows faster.
        let decay = self.decay.min((1.0 + step as f32) / (10.0 + step as f32));
        self.weights.iter_mut().zip(weights).for_each(|(e, w)| *e = decay * *e + (1.0 - decay) * w);
    }
}
