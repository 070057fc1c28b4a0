//! What a run with a time limit does with its time.

use serde::{Deserialize, Serialize};

use super::config::{Every, TrainConfig};
use super::schedule::{Schedule, ScheduleKind};

/// The plan of a run with a time limit, made once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) steps: u64,
    pub(super) schedule: Schedule,
    pub(super) validate: Every,
    pub(super) save: Every,
}

impl Plan {
    /// The plan of a run of so many steps. The rate falls to 0 at its end, which is worth more than a longer run at high rates.
    pub(super) fn new(config: &TrainConfig, steps: u64) -> Self {
        let warmup = config.schedule.warmup.min(steps.div_ceil(4));
        let peak = config.schedule.peak(config.model.d_model);
        // A rate that a long warm-up leads to safely is too high after a short one.
        let shorter = warmup as f64 / config.schedule.warmup.max(1) as f64;
        let schedule =
            Schedule { kind: ScheduleKind::Linear, peak: Some(peak * shorter.sqrt().min(1.0)), warmup };
        // Ten validations, but not so many that a short run does little else.
        let validate = (steps / 10).max((steps / 2).min(100)).max(1);
        Plan { steps, schedule, validate: Every::Steps(validate), save: Every::Steps(validate.div_ceil(4)) }
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
        let long = Plan::new(&config, 20 * warmup);
        assert_eq!((long.schedule.peak, long.schedule.warmup), (Some(peak), warmup));
        let short = Plan::new(&config, warmup);
        assert_eq!(short.schedule.warmup, warmup.div_ceil(4));
        assert!((short.schedule.peak.unwrap() - peak / 2.0).abs() < 0.02 * peak);
        assert_eq!(short.schedule.kind, ScheduleKind::Linear);
        assert!(short.schedule.rate(warmup, 128, Some(warmup)) < 0.01 * peak);
        let one = Plan::new(&config, 1);
        assert_eq!((one.steps, one.validate, one.save), (1, Every::Steps(1), Every::Steps(1)));
    }
}
