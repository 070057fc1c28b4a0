//! The training loop without a corpus or a folder: any model on the tape, a number of steps.

use super::replicas::{Replica, Replicas};
use crate::autograd::Tape;
use crate::optimizer::{AdamSettings, Optimizer, Schedule, ScheduleKind};
use regard_core::Result;
use regard_kernels::Isa;

/// How long a model is trained, and how.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// Steps. The learning rate rises in a straight line in the first of them, and then falls to 0
    /// in another.
    pub steps: u64,
    /// The highest learning rate.
    pub peak: f64,
    /// Steps in which it rises.
    pub warmup: u64,
    /// Clipping and Adam.
    pub adam: AdamSettings,
    /// Among how many replicas a step is split, each on a thread of its own.
    pub replicas: usize,
    /// Cores that the matrix multiplications of a replica use.
    pub cores: usize,
}

/// The part of one replica in a step.
#[derive(Debug)]
pub struct Pass<'a> {
    /// Which step, from 1.
    pub step: u64,
    /// Which of [`FitSettings::replicas`], from 0.
    pub replica: usize,
    /// Empty.
    pub tape: &'a mut Tape,
    /// All weights.
    pub weights: &'a [f32],
    /// What the gradient is added to.
    pub gradients: &'a mut [f32],
}

/// Trains a model from `weights` on and returns its last weights. `loss` runs forward and backward
/// of a replica's part of a step, and returns its part of the loss; `after` gets each step, its
/// loss and the new weights.
///
/// The result depends on the settings and on what `loss` does, and on nothing else: gradients are
/// added in the order of the replicas.
pub fn fit(
    settings: &FitSettings,
    isa: Isa,
    weights: Vec<f32>,
    loss: impl Fn(Pass<'_>) -> Result<f64> + Sync,
    mut after: impl FnMut(u64, f64, &[f32]) -> Result<()>,
) -> Result<Vec<f32>> {
    let FitSettings { steps, peak, warmup, adam, replicas, cores } = *settings;
    let schedule = Schedule { kind: ScheduleKind::Linear, peak: Some(peak), warmup };
    let cores = std::iter::repeat_n(cores.max(1), replicas.max(1));
    let mut replicas = Replicas::with_cores(isa, cores, weights.len());
    let mut optimizer = Optimizer::new(weights, adam, isa, replicas.len());
    for step in 1..=steps {
        let weights = optimizer.weights();
        let losses = replicas.run(std::iter::repeat(()), |replica, Replica { tape, gradients }, ()| {
            gradients.fill(0.0);
            tape.clear();
            loss(Pass { step, replica, tape, weights, gradients })
        });
        let loss: f64 = losses.into_iter().sum::<Result<f64>>()?;
        let norm = replicas.sum_and_square().sqrt();
        // The peak is given: the width of the model does not matter.
        let rate = schedule.rate(step, 1, Some(steps)) as f32;
        optimizer.step_if_finite(loss, norm, |optimizer| optimizer.step(replicas.gradient(), norm, rate));
        after(step, loss, optimizer.weights())?;
    }
    Ok(optimizer.into_weights())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(replicas: usize) -> FitSettings {
        let adam = AdamSettings { clip: Some(1.0), ..AdamSettings::default() };
        FitSettings { steps: 300, peak: 0.05, warmup: 10, adam, replicas, cores: 1 }
    }

    /// `Σ (w - target)²`, of which each replica sees its part.
    #[test]
    fn a_bowl_is_descended_by_any_number_of_replicas() {
        let target = [1.0f32, -2.0, 0.5, 3.0];
        for replicas in [1, 2, 3] {
            let mut losses = Vec::new();
            let loss = |pass: Pass<'_>| {
                let mut total = 0.0;
                for i in (0..target.len()).filter(|i| i % replicas == pass.replica) {
                    let off = pass.weights[i] - target[i];
                    pass.gradients[i] += 2.0 * off;
                    total += f64::from(off * off);
                }
                Ok(total)
            };
            let after = |step: u64, loss: f64, _: &[f32]| {
                assert_eq!(step, losses.len() as u64 + 1);
                losses.push(loss);
                Ok(())
            };
            let weights = fit(&settings(replicas), Isa::best(), vec![0.0; 4], loss, after).unwrap();
            assert!(losses[0] > 14.0 && losses[299] < 0.01, "{} to {}", losses[0], losses[299]);
            assert!(weights.iter().zip(target).all(|(w, t)| (w - t).abs() < 0.1), "{weights:?}");
        }
    }

    #[test]
    fn what_is_not_a_number_changes_nothing_and_errors_end_it() {
        let loss = |pass: Pass<'_>| {
            pass.gradients[0] = f32::NAN;
            Ok(1.0)
        };
        let settings = FitSettings { steps: 3, ..settings(2) };
        let weights = fit(&settings, Isa::best(), vec![0.25; 2], loss, |_, _, _| Ok(())).unwrap();
        assert_eq!(weights, [0.25, 0.25]);
        let fails = |_: Pass<'_>| Err(regard_core::Error::config("loss", "none"));
        assert!(fit(&settings, Isa::best(), vec![0.0], fails, |_, _, _| Ok(())).is_err());
    }
}
