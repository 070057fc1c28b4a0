//! Plans the steps of a run with a time limit.
//!
//! A plan says how many steps fit into the time. It is made after the first steps and revised as
//! more are timed: the first steps are slower than the others, and a machine may be busy for a
//! while. A checkpoint holds enough to continue with the same plan. Runs that end after a number of
//! steps or epochs have no plan, and no clock affects them.

use serde::{Deserialize, Serialize};

use crate::config::TrainConfig;
use crate::optimizer::{Schedule, ScheduleKind};

/// The number of steps timed before a plan is made.
const FIRST: u64 = 20;
/// The share of the time after which a plan is made even if fewer steps have been timed.
const FIRST_SHARE: f64 = 0.05;
/// The share of the time after which a plan is revised.
const REVISE_SHARE: f64 = 0.02;
/// The share of the time assumed for validations until one has been timed.
const ASSUMED_SHARE: f64 = 0.15;
/// The number of validations in a run, if they do not take too long.
const VALIDATIONS: u64 = 10;
/// The steps between two validations take at least this many times as long as a validation.
const STEPS_PER_VALIDATION: f64 = 4.0;
/// A finished plan is extended only if more than this share of the time is left.
const WORTHWHILE_SHARE: f64 = 0.03;

/// Measured durations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StepTimings {
    /// Seconds per step, including checkpoints but not validations; 0 before any have been timed.
    pub(super) per_step: f64,
    /// Seconds of the last validation; 0 before the first.
    pub(super) validation: f64,
    /// When the steps being timed began, in seconds of the run, and after which step.
    since: f64,
    step: u64,
    /// Seconds of validations since then.
    validating: f64,
}

impl StepTimings {
    /// Starts timing steps here: at the start of a run, or where it is resumed.
    pub(super) fn restart(&mut self, now: f64, step: u64) {
        (self.since, self.step, self.validating) = (now, step, 0.0);
    }

    /// Records a validation.
    pub(super) fn validated(&mut self, seconds: f64) {
        self.validation = seconds;
        self.validating += seconds;
    }

    /// Records the steps since the last call.
    fn measure(&mut self, now: f64, step: u64) {
        let steps = step.saturating_sub(self.step);
        if steps > 0 {
            let latest = ((now - self.since - self.validating) / steps as f64).max(1e-6);
            // Average with the previous value: a slow minute is not forgotten at once, and the slow
            // first steps soon are.
            self.per_step = if self.per_step > 0.0 { 0.5 * (self.per_step + latest) } else { latest };
        }
        self.restart(now, step);
    }
}

/// The plan of a run with a time limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The last step.
    pub(super) steps: u64,
    pub(super) schedule: Schedule,
    /// The steps after which the next validation and the next checkpoint are due, and the number of
    /// steps between validations.
    #[serde(default)]
    pub(super) next_validation: u64,
    #[serde(default)]
    pub(super) next_save: u64,
    #[serde(default)]
    pub(super) interval: u64,
}

impl Plan {
    /// Makes or revises the plan after `step`, if it is time to. Returns whether it did.
    pub(super) fn update(
        plan: &mut Option<Plan>,
        timings: &mut StepTimings,
        config: &TrainConfig,
        now: f64,
        step: u64,
    ) -> bool {
        let Some(limit) = config.minutes.map(|minutes| 60.0 * minutes) else { return false };
        let timed = now - timings.since;
        let is_time = match plan {
            None => step >= FIRST || timed >= FIRST_SHARE * limit || now >= limit,
            Some(plan) => timed >= REVISE_SHARE * limit || step >= plan.steps || now >= limit,
        };
        if !is_time {
            return false;
        }
        timings.measure(now, step);
        let fitting = step + Self::steps_left(timings, config, now, limit, step);
        match plan {
            None => *plan = Some(Plan::new(config, timings, fitting.max(step + 1), step)),
            Some(plan) => plan.revise(config, timings, fitting, limit, step),
        }
        true
    }

    /// How many more steps fit into the time, with their validations and those at the end.
    fn steps_left(timings: &StepTimings, config: &TrainConfig, now: f64, limit: f64, step: u64) -> u64 {
        let validation = match timings.validation {
            0.0 => ASSUMED_SHARE * limit / (VALIDATIONS + 2) as f64,
            seconds => seconds,
        };
        // At the end, the last step and up to two averages are validated, plus the weights without
        // the initial ones.
        let at_end = if config.checkpoints.average > 0 { 3.0 } else { 1.0 };
        let at_end = if config.checkpoints.init_share > 0.0 { at_end + 1.0 } else { at_end };
        let left = (limit - now - at_end * validation).max(0.0);
        let per_step = timings.per_step.max(1e-6);
        let interval = Self::interval(timings, step + (left / per_step) as u64) as f64;
        (left / (per_step + validation / interval)) as u64
    }

    /// The number of steps between validations: ten validations, or fewer where a short run would
    /// do little else.
    fn interval(timings: &StepTimings, steps: u64) -> u64 {
        let least = (STEPS_PER_VALIDATION * timings.validation / timings.per_step.max(1e-6)).ceil() as u64;
        (steps / VALIDATIONS).max((steps / 2).min(100)).max(least).max(1)
    }

    fn new(config: &TrainConfig, timings: &StepTimings, steps: u64, step: u64) -> Self {
        let interval = Self::interval(timings, steps);
        Plan {
            steps,
            schedule: schedule(config, steps),
            next_validation: step + interval,
            next_save: step + interval.div_ceil(4),
            interval,
        }
    }

    fn revise(&mut self, config: &TrainConfig, timings: &StepTimings, fitting: u64, limit: f64, step: u64) {
        let longer = fitting.saturating_sub(step) as f64 * timings.per_step;
        // The rate is 0 at the end of a plan; a few more steps would be useless.
        if step >= self.steps && longer < WORTHWHILE_SHARE * limit {
            return;
        }
        self.steps = fitting.max(step);
        // Once the rate has reached its peak, only the end of the run changes.
        if step < self.schedule.warmup {
            self.schedule = schedule(config, self.steps);
        }
        let before = self.next_validation.saturating_sub(self.interval);
        self.interval = Self::interval(timings, self.steps);
        self.next_validation = (before + self.interval).max(step + 1);
        self.next_save = self.next_save.min(step + self.interval.div_ceil(4)).max(step + 1);
    }

    /// Whether a validation and a checkpoint are due after `step`.
    pub(super) fn due(&mut self, step: u64) -> (bool, bool) {
        let (validate, save) = (step >= self.next_validation, step >= self.next_save);
        if validate {
            self.next_validation = step + self.interval.max(1);
        }
        if save || validate {
            self.next_save = step + self.interval.div_ceil(4).max(1);
        }
        (validate, save)
    }
}

/// The learning rate schedule for `steps` steps. It decays to 0 at the end, which is worth more
/// than a longer run at high rates.
fn schedule(config: &TrainConfig, steps: u64) -> Schedule {
    let warmup = config.schedule.warmup.min(steps.div_ceil(4));
    let peak = config.schedule.peak(config.model.d_model);
    // A peak rate that is safe after a long warm-up is too high after a short one.
    let shorter = warmup as f64 / config.schedule.warmup.max(1) as f64;
    Schedule {
        kind: ScheduleKind::Linear,
        peak: Some(peak * shorter.sqrt().min(1.0)),
        warmup,
        max_sum: config.schedule.max_sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_core::model::Preset;

    #[test]
    fn a_short_run_warms_up_less_and_to_less() {
        let config = TrainConfig::new(Preset::Tiny);
        let (peak, warmup) = (config.schedule.peak(128), config.schedule.warmup);
        let long = schedule(&config, 20 * warmup);
        assert_eq!((long.peak, long.warmup), (Some(peak), warmup));
        let short = schedule(&config, warmup);
        assert_eq!(short.warmup, warmup.div_ceil(4));
        assert!((short.peak.unwrap() - peak / 2.0).abs() < 0.02 * peak);
        assert_eq!(short.kind, ScheduleKind::Linear);
        assert!(short.rate(warmup, 128, Some(warmup)) < 0.01 * peak);
        let one = Plan::new(&config, &StepTimings { per_step: 1.0, ..StepTimings::default() }, 1, 0);
        assert_eq!((one.steps, one.next_validation, one.next_save), (1, 1, 1));
    }

    /// How a simulated run used its time.
    struct TimeSpent {
        /// The share of the time limit that was used.
        share: f64,
        validations: usize,
        rates: Vec<f64>,
    }

    /// Simulates a run of `minutes`, given how long preparation, a step and a validation take; the
    /// latter two are functions of the time and, for a step, of its number.
    fn simulate(
        minutes: f64,
        preparation: f64,
        step_time: impl Fn(f64, u64) -> f64,
        validation_time: impl Fn(f64) -> f64,
    ) -> TimeSpent {
        let config = TrainConfig { minutes: Some(minutes), ..TrainConfig::new(Preset::Tiny) };
        let (mut plan, mut timings) = (None, StepTimings::default());
        let (mut now, mut step, mut validations, mut rates) = (preparation, 0, 0, Vec::new());
        timings.restart(now, step);
        while plan.as_ref().is_none_or(|plan: &Plan| step < plan.steps) {
            step += 1;
            assert!(step < 1_000_000);
            if let Some(plan) = &plan {
                rates.push(plan.schedule.rate(step, 128, Some(plan.steps)));
            }
            now += step_time(now, step);
            Plan::update(&mut plan, &mut timings, &config, now, step);
            let over = plan.as_ref().is_some_and(|plan| step >= plan.steps);
            if plan.as_mut().is_some_and(|plan| plan.due(step).0) || over {
                let seconds = validation_time(now);
                now += seconds;
                timings.validated(seconds);
                validations += 1;
            }
        }
        // Validate the averages.
        now += 2.0 * validation_time(now);
        TimeSpent { share: now / (60.0 * minutes), validations, rates }
    }

    #[test]
    fn a_run_takes_the_time_that_it_is_given() {
        let steady = |_: f64, _: u64| 0.25;
        let slow_start = |_: f64, step: u64| if step <= 30 { 1.2 } else { 0.2 };
        let fast_start = |_: f64, step: u64| if step <= 30 { 0.05 } else { 0.4 };
        let busy = |now: f64, _: u64| if (40.0..70.0).contains(&now) { 0.9 } else { 0.15 };
        let uneven = |_: f64, step: u64| 0.1 + 0.05 * (step % 7) as f64;
        type StepTime<'a> = &'a dyn Fn(f64, u64) -> f64;
        let cases: [(&str, StepTime<'_>); 5] = [
            ("steady", &steady),
            ("slow at first", &slow_start),
            ("fast at first", &fast_start),
            ("busy for a while", &busy),
            ("uneven", &uneven),
        ];
        for (name, step_time) in cases {
            for minutes in [2.0, 10.0, 60.0] {
                for (preparation, validation) in [(0.0, 0.5), (5.0, 2.0), (10.0, 6.0)] {
                    // An untrained model writes the maximum length, so the first validations take
                    // longest.
                    let slowest = move |now: f64| validation * (1.0 + 2.0 * (-now / 20.0).exp());
                    let done = simulate(minutes, preparation, step_time, slowest);
                    let what = format!("{name}, {minutes} minutes, validations of {validation} s");
                    assert!((0.9..=1.05).contains(&done.share), "{what}: {:.3} of the time", done.share);
                    assert!((2..=60).contains(&done.validations), "{what}: {}", done.validations);
                    let peak = done.rates.iter().copied().fold(0.0, f64::max);
                    assert!(done.rates.last().unwrap() / peak < 0.1, "{what}: the rate ends near 0");
                }
            }
        }
    }

    /// Preparation takes nearly all of the two minutes: the run still produces a model, and soon.
    #[test]
    fn a_run_without_time_ends_at_once() {
        let done = simulate(2.0, 119.0, |_, _| 0.2, |_| 1.0);
        assert!(done.share < 1.2, "{}", done.share);
        let done = simulate(2.0, 200.0, |_, _| 0.2, |_| 1.0);
        assert!(done.share < 200.0 / 120.0 + 0.2, "{}", done.share);
    }

    #[test]
    fn a_run_without_a_time_limit_has_no_plan() {
        let (mut plan, mut timings) = (None, StepTimings::default());
        assert!(!Plan::update(&mut plan, &mut timings, &TrainConfig::new(Preset::Tiny), 1e9, 1000));
        assert_eq!((plan, timings), (None, StepTimings::default()));
    }
}
