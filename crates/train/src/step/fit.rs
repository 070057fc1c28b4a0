//! A training loop without corpus or folder, for a number of steps: [`Trainer::fit`] for
//! translation models, [`fit`] for any other model on the tape.

use super::replicas::{Replica, Replicas};
use super::{StepReport, Trainer};
use crate::autograd::Tape;
use crate::optimizer::{AdamSettings, Optimizer, Schedule, ScheduleKind};
use regard_core::Result;
use regard_core::batch::Batch;
use regard_kernels::Isa;

/// The length and the settings of a training.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// The number of steps. The learning rate rises linearly during warm-up and then falls linearly
    /// to 0.
    pub steps: u64,
    /// The peak learning rate.
    pub peak: f64,
    /// The number of warm-up steps.
    pub warmup: u64,
    /// Clipping and Adam.
    pub adam: AdamSettings,
    /// The number of replicas that share a step, each on its own thread.
    pub replicas: usize,
    /// The number of threads per matmul of a replica.
    pub cores: usize,
}

/// One replica's part of a step.
#[derive(Debug)]
pub struct Pass<'a> {
    /// The step, from 1.
    pub step: u64,
    /// The replica, from 0; there are [`FitSettings::replicas`].
    pub replica: usize,
    /// An empty tape.
    pub tape: &'a mut Tape,
    /// All weights.
    pub weights: &'a [f32],
    /// The gradients to accumulate in.
    pub gradients: &'a mut [f32],
}

/// Trains a model starting from `weights` and returns its final weights. `loss` runs forward and
/// backward for a replica's part of a step, and returns its part of the loss; `after` receives each
/// step, its loss and the new weights.
///
/// The result depends only on the settings and on what `loss` does: gradients are added in the
/// order of the replicas.
pub fn fit(
    settings: &FitSettings,
    isa: Isa,
    weights: Vec<f32>,
    loss: impl Fn(Pass<'_>) -> Result<f64> + Sync,
    mut after: impl FnMut(u64, f64, &[f32]) -> Result<()>,
) -> Result<Vec<f32>> {
    let FitSettings { steps, peak, warmup, adam, replicas, cores } = *settings;
    let schedule = Schedule { kind: ScheduleKind::Linear, peak: Some(peak), warmup, max_sum: None };
    let cores = std::iter::repeat_n(cores.max(1), replicas.max(1));
    let mut replicas = Replicas::with_cores(isa, cores, weights.len());
    let mut optimizer = Optimizer::new(weights, adam, isa, replicas.len());
    // The peak is given, so the width of the model does not matter.
    each_step(schedule, 1, steps, |step, rate| {
        let weights = optimizer.weights();
        let losses = replicas.run(std::iter::repeat(()), |replica, Replica { tape, gradients }, ()| {
            gradients.fill(0.0);
            tape.clear();
            loss(Pass { step, replica, tape, weights, gradients })
        });
        let loss: f64 = losses.into_iter().sum::<Result<f64>>()?;
        let norm = replicas.sum_and_square().sqrt();
        optimizer.step_if_finite(loss, norm, |optimizer| optimizer.step(replicas.gradient(), norm, rate));
        after(step, loss, optimizer.weights())
    })?;
    Ok(optimizer.into_weights())
}

impl Trainer {
    /// Takes this many steps, each on the next batch; `after` receives the number and the report of
    /// each.
    pub fn fit(
        &mut self,
        schedule: Schedule,
        steps: u64,
        mut batch: impl FnMut() -> Result<Batch>,
        mut after: impl FnMut(u64, &StepReport),
    ) -> Result<()> {
        let width = self.model().config().d_model;
        each_step(schedule, width, steps, |step, rate| {
            after(step, &self.step(&[batch()?], rate)?);
            Ok(())
        })
    }
}

/// Runs steps from 1 on, each with the learning rate of the schedule.
fn each_step(
    schedule: Schedule,
    width: usize,
    steps: u64,
    mut step: impl FnMut(u64, f32) -> Result<()>,
) -> Result<()> {
    (1..=steps).try_for_each(|n| step(n, schedule.rate(n, width, Some(steps)) as f32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::StepSettings;
    use regard_core::model::{ModelConfig, Transformer};

    fn settings(replicas: usize) -> FitSettings {
        let adam = AdamSettings { clip: Some(1.0), ..AdamSettings::default() };
        FitSettings { steps: 300, peak: 0.05, warmup: 10, adam, replicas, cores: 1 }
    }

    /// `Σ (w - target)²`, split over the replicas.
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
    fn a_trainer_takes_steps_with_the_rates_of_the_schedule() {
        let config = ModelConfig {
            d_model: 8,
            heads: 2,
            d_ff: 16,
            encoder_layers: 1,
            decoder_layers: 1,
            source_vocabulary: 9,
            target_vocabulary: 9,
            ..ModelConfig::default()
        };
        let trainer = || {
            let model = Transformer::new(config.clone()).unwrap();
            let weights = model.parameters().initialise(1);
            Trainer::new(model, weights, StepSettings::default(), Isa::best(), 1, 1).unwrap()
        };
        let pair = |i: u32| ([1 + i % 5, 0], [2 + i % 5, 0]);
        let batch = |i: u32| Batch::new([pair(i)].iter().map(|(s, t)| (&s[..], &t[..])), config.start());
        let schedule = Schedule { kind: ScheduleKind::Linear, peak: Some(0.01), warmup: 2, max_sum: None };
        let mut expected = trainer();
        let mut losses = Vec::new();
        for step in 1..=5 {
            let rate = schedule.rate(step, config.d_model, Some(5)) as f32;
            losses.push((step, expected.step(&[batch(step as u32).unwrap()], rate).unwrap().loss));
        }
        let (mut fitted, mut seen, mut i) = (trainer(), Vec::new(), 0);
        let next = || {
            i += 1;
            batch(i)
        };
        fitted.fit(schedule, 5, next, |step, report| seen.push((step, report.loss))).unwrap();
        assert_eq!((seen, fitted.steps()), (losses, 5));
        assert_eq!(fitted.weights(), expected.weights());
        let none = || Err(regard_core::Error::config("batch", "none"));
        assert!(fitted.fit(schedule, 1, none, |_, _| panic!("there was no step")).is_err());
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
