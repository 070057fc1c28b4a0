//! The exponential moving average of the weights.

/// An exponential moving average of the weights. If present, it is what is validated and saved.
#[derive(Clone, Debug)]
pub(crate) struct MovingAverage {
    decay: f32,
    weights: Vec<f32>,
}

impl MovingAverage {
    /// Starts at `weights`; `decay` is the weight of the old average in each step.
    pub(crate) fn new(decay: f32, weights: Vec<f32>) -> Self {
        MovingAverage { decay, weights }
    }

    /// The average.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Updates the average with the weights after step `step`, from 1.
    pub(crate) fn update(&mut self, step: u64, weights: &[f32]) {
        // Follow faster in the first steps.
        let decay = self.decay.min((1.0 + step as f32) / (10.0 + step as f32));
        self.weights.iter_mut().zip(weights).for_each(|(e, w)| *e = decay * *e + (1.0 - decay) * w);
    }
}
