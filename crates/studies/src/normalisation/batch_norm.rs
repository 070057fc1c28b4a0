//! `y = BatchNorm(x)`: normalises each column over the tokens of the batch, or with given
//! statistics.

use regard_train::autograd::{Backward, Forward, Op, Param, Var};
use std::sync::Arc;

/// The mean and variance of each column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Statistics {
    pub(super) mean: Vec<f32>,
    pub(super) variance: Vec<f32>,
}

impl Statistics {
    /// The statistics of the rows of `x` `[rows, d]` and of `zeros` additional rows of zeros, the
    /// padding of a batch.
    pub(super) fn of(x: &[f32], d: usize, zeros: usize) -> Self {
        let count = (x.len() / d + zeros) as f64;
        let mut mean = vec![0f64; d];
        for row in x.chunks_exact(d) {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        mean.iter_mut().for_each(|sum| *sum /= count);
        let mut variance: Vec<f64> = mean.iter().map(|mean| zeros as f64 * mean * mean).collect();
        for row in x.chunks_exact(d) {
            for ((sum, x), mean) in variance.iter_mut().zip(row).zip(&mean) {
                *sum += (f64::from(*x) - mean).powi(2);
            }
        }
        Statistics {
            mean: mean.iter().map(|x| *x as f32).collect(),
            variance: variance.iter().map(|sum| (sum / count) as f32).collect(),
        }
    }
}

/// Where the statistics come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The batch itself, including this many rows of padding.
    Batch {
        /// The number of additional rows of zeros.
        zeros: usize,
    },
    /// Statistics collected during training.
    Running(Arc<Statistics>),
}

/// Batch normalisation.
#[derive(Debug)]
pub(super) struct BatchNorm {
    /// x `[rows, d]`
    pub(super) x: Var,
    /// γ `[d]`
    pub(super) gamma: Param,
    /// β `[d]`
    pub(super) beta: Param,
    /// ε
    pub(super) epsilon: f32,
    /// The source of the statistics.
    pub(super) source: Source,
}

impl Op for BatchNorm {
    fn name(&self) -> &'static str {
        "batch_norm"
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let x = cx.value(self.x);
        (x.rows(), x.cols())
    }

    /// The normalised rows, then the scale of each column.
    fn saves(&self, cx: &Forward<'_>) -> usize {
        let x = cx.value(self.x);
        (x.rows() + 1) * x.cols()
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let (normalised, scale) = saved.split_at_mut(y.len());
        let (x, d) = (cx.value(self.x).data(), scale.len());
        let of_batch;
        let statistics = match &self.source {
            Source::Batch { zeros } => {
                of_batch = Statistics::of(x, d, *zeros);
                &of_batch
            }
            Source::Running(running) => running,
        };
        for (scale, variance) in scale.iter_mut().zip(&statistics.variance) {
            *scale = (variance + self.epsilon).sqrt().recip();
        }
        let (gamma, beta) = (cx.weight(self.gamma), cx.weight(self.beta));
        let rows = x.chunks_exact(d).zip(normalised.chunks_exact_mut(d)).zip(y.chunks_exact_mut(d));
        for ((x, normalised), y) in rows {
            for c in 0..d {
                normalised[c] = (x[c] - statistics.mean[c]) * scale[c];
                y[c] = gamma[c] * normalised[c] + beta[c];
            }
        }
    }

    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]) {
        let (normalised, scale) = saved.split_at(y.len());
        let d = scale.len();
        // Σ dy and Σ dy·x̂ of each column: the gradients of β and γ.
        let (mut sums, mut products) = (vec![0f32; d], vec![0f32; d]);
        for (dy, normalised) in dy.chunks_exact(d).zip(normalised.chunks_exact(d)) {
            for c in 0..d {
                sums[c] += dy[c];
                products[c] += dy[c] * normalised[c];
            }
        }
        for (param, sum) in [(self.beta, &sums), (self.gamma, &products)] {
            cx.gradient(param).iter_mut().zip(sum).for_each(|(to, from)| *to += from);
        }
        // Batch statistics depend on x; given ones do not.
        let share = match self.source {
            Source::Batch { zeros } => 1.0 / (y.len() / d + zeros) as f32,
            Source::Running(_) => 0.0,
        };
        let gamma = cx.weight(self.gamma);
        let mut dx = cx.take_zeroed(self.x);
        let rows = dx.chunks_exact_mut(d).zip(dy.chunks_exact(d)).zip(normalised.chunks_exact(d));
        for ((dx, dy), normalised) in rows {
            for c in 0..d {
                let through = dy[c] - share * (sums[c] + normalised[c] * products[c]);
                dx[c] += gamma[c] * scale[c] * through;
            }
        }
        cx.put(self.x, dx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_core::{Isa, Key};
    use regard_train::autograd::Tape;

    const ROWS: usize = 5;
    const D: usize = 3;
    const EPSILON: f32 = 1e-3;

    /// Σ c·BatchNorm(x) in f64, written as in the formula.
    fn objective(x: &[f64], weights: &[f64], c: &[f64], zeros: usize, running: Option<&Statistics>) -> f64 {
        let mut total = 0.0;
        for column in 0..D {
            let mut values: Vec<f64> = (0..ROWS).map(|r| x[r * D + column]).collect();
            values.resize(ROWS + zeros, 0.0);
            let n = values.len() as f64;
            let mut mean = values.iter().sum::<f64>() / n;
            let mut variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            if let Some(running) = running {
                (mean, variance) = (f64::from(running.mean[column]), f64::from(running.variance[column]));
            }
            for r in 0..ROWS {
                let normalised = (x[r * D + column] - mean) / (variance + f64::from(EPSILON)).sqrt();
                total += c[r * D + column] * (weights[column] * normalised + weights[D + column]);
            }
        }
        total
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let running = Statistics { mean: vec![0.1, -0.2, 0.3], variance: vec![0.5, 1.5, 2.0] };
        let sources = [
            Source::Batch { zeros: 0 },
            Source::Batch { zeros: 4 },
            Source::Running(Arc::new(running.clone())),
        ];
        for source in sources {
            let (zeros, fixed) = match &source {
                Source::Batch { zeros } => (*zeros, None),
                Source::Running(_) => (0, Some(&running)),
            };
            let draw = |stream: u64, n: usize| {
                let key = Key::new(9).child(stream);
                (0..n as u32).map(|i| key.normal(i)).collect::<Vec<f32>>()
            };
            let (x, weights, c) = (draw(0, ROWS * D), draw(1, 2 * D), draw(2, ROWS * D));
            let mut tape = Tape::new(Isa::best(), 1);
            let var = tape.input(&x, ROWS, D);
            let (gamma, beta) = (Param { offset: 0, len: D }, Param { offset: D, len: D });
            let op = BatchNorm { x: var, gamma, beta, epsilon: EPSILON, source };
            let y = tape.push(&weights, None, op);
            let mut gradients = vec![0.0; 2 * D];
            tape.backward(&weights, &mut gradients, y, &c);
            let dx = tape.grad(var).unwrap().to_vec();

            let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
            let (x, weights, c) = (wide(&x), wide(&weights), wide(&c));
            let h = 1e-5;
            let check = |i: usize, got: f32, of_x: bool| {
                let at = |step: f64| {
                    let (mut x, mut weights) = (x.clone(), weights.clone());
                    if of_x {
                        x[i] += step
                    } else {
                        weights[i] += step
                    }
                    objective(&x, &weights, &c, zeros, fixed)
                };
                let want = (at(h) - at(-h)) / (2.0 * h);
                assert!((f64::from(got) - want).abs() < 1e-4 * want.abs().max(1.0), "{i}: {got} for {want}");
            };
            dx.iter().enumerate().for_each(|(i, got)| check(i, *got, true));
            gradients.iter().enumerate().for_each(|(i, got)| check(i, *got, false));
        }
    }

    #[test]
    fn padding_pulls_the_statistics_to_zero() {
        let x = [1.0, 5.0, 3.0, 7.0];
        let plain = Statistics::of(&x, 2, 0);
        assert_eq!(plain, Statistics { mean: vec![2.0, 6.0], variance: vec![1.0, 1.0] });
        let padded = Statistics::of(&x, 2, 2);
        assert_eq!(padded, Statistics { mean: vec![1.0, 3.0], variance: vec![1.5, 9.5] });
    }
}
