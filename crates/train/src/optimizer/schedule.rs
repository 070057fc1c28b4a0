//! Learning-rate schedules (section 5.3 of the paper).

use serde::{Deserialize, Serialize};

use regard_core::{Error, Result};

/// The learning rate after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// `d_model^-½ · min(step^-½, step · warmup^-1½)`: equation 3 of the paper, without a
    /// `peak` to set.
    Paper,
    /// Decays from the peak with the inverse square root of the step.
    InverseSqrt,
    /// Decays linearly from the peak to 0 after the last step.
    Linear,
    /// Stays at the peak.
    Constant,
}

/// The learning rate as a function of the step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The decay after the warm-up: paper, inverse-sqrt, linear or constant.
    pub kind: ScheduleKind,
    /// The peak rate; by default `(d_model · warmup)^-½`, which is the paper's.
    pub peak: Option<f64>,
    /// The number of steps over which the rate rises linearly to its peak.
    pub warmup: u64,
    /// For linear decay: the limit of the sum of all rates. A run too long for it gets a lower
    /// peak, so that it does not move the weights further than a shorter one.
    #[serde(default)]
    pub max_sum: Option<f64>,
}

impl Schedule {
    /// Rejects invalid settings, naming the field.
    pub fn check(&self) -> Result<()> {
        if let Some(peak) = self.peak.filter(|p| !(*p > 0.0 && p.is_finite())) {
            return Err(Error::config("schedule.peak", format!("{peak} is not a positive number")));
        }
        if let Some(sum) = self.max_sum.filter(|sum| !(*sum > 0.0 && sum.is_finite())) {
            return Err(Error::config("schedule.max_sum", format!("{sum} is not a positive number")));
        }
        if self.kind == ScheduleKind::Paper && self.peak.is_some() {
            let message = "the paper's schedule has no peak to set; use schedule.kind = inverse-sqrt with it";
            return Err(Error::config("schedule.peak", message));
        }
        if self.kind == ScheduleKind::Paper && self.warmup == 0 {
            return Err(Error::config("schedule.warmup", "the paper's schedule needs at least 1 step"));
        }
        Ok(())
    }

    /// The peak rate for a model of width `d_model`.
    pub fn peak(&self, d_model: usize) -> f64 {
        self.peak.unwrap_or_else(|| (d_model as f64 * self.warmup.max(1) as f64).powf(-0.5))
    }

    /// The rate of `step`, from 1; `last` is the last step, if it is known.
    pub fn rate(&self, step: u64, d_model: usize, last: Option<u64>) -> f64 {
        let (step, warmup) = (step.max(1) as f64, self.warmup.max(1) as f64);
        // Warm-up and decay form a triangle.
        let linear = self.max_sum.filter(|_| self.kind == ScheduleKind::Linear);
        let highest = linear.zip(last).map_or(f64::INFINITY, |(sum, last)| 2.0 * sum / (last as f64 + 1.0));
        let peak = self.peak(d_model).min(highest);
        if step <= warmup && self.warmup > 0 {
            return peak * step / warmup;
        }
        match self.kind {
            ScheduleKind::Paper | ScheduleKind::InverseSqrt => peak * (warmup / step).sqrt(),
            ScheduleKind::Constant => peak,
            ScheduleKind::Linear => match last {
                Some(last) => {
                    let end = last as f64 + 1.0;
                    peak * ((end - step) / (end - warmup).max(1.0)).clamp(0.0, 1.0)
                }
                None => peak,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    /// Equation 3 with d_model 512 and 4,000 warm-up steps, computed independently.
    #[test]
    fn the_papers_numbers() {
        let paper = Schedule { kind: ScheduleKind::Paper, peak: None, warmup: 4000, max_sum: None };
        for (step, rate) in [
            (1, 1.746_928_107_421_710_6e-7),
            (2000, 3.493_856_214_843_421_3e-4),
            (4000, 6.987_712_429_686_843e-4),
            (16_000, 3.493_856_214_843_421_3e-4),
            (100_000, 1.397_542_485_937_368_5e-4),
        ] {
            assert!(close(paper.rate(step, 512, None), rate), "{step}: {}", paper.rate(step, 512, None));
        }
        for step in [1u64, 7, 3999, 4000, 4001, 123_456] {
            let s = step as f64;
            let formula = 512f64.powf(-0.5) * s.powf(-0.5).min(s * 4000f64.powf(-1.5));
            assert!(close(paper.rate(step, 512, None), formula), "{step}");
        }
    }

    #[test]
    fn the_others() {
        let of = |kind| Schedule { kind, peak: Some(0.005), warmup: 2000, max_sum: None };
        let root = of(ScheduleKind::InverseSqrt);
        assert!(close(root.rate(1000, 128, None), 0.0025));
        assert!(close(root.rate(2000, 128, None), 0.005));
        assert!(close(root.rate(8000, 128, None), 0.0025));
        let linear = of(ScheduleKind::Linear);
        assert!(close(linear.rate(2000, 128, Some(3999)), 0.005));
        assert!(close(linear.rate(3000, 128, Some(3999)), 0.0025));
        assert!(close(linear.rate(3999, 128, Some(3999)), 0.005 / 2000.0));
        assert_eq!(linear.rate(9999, 128, Some(3999)), 0.0);
        assert_eq!(linear.rate(9999, 128, None), 0.005);
        assert_eq!(of(ScheduleKind::Constant).rate(50_000, 128, None), 0.005);
        let at_once = Schedule { warmup: 0, ..of(ScheduleKind::Constant) };
        assert_eq!(at_once.rate(1, 128, None), 0.005);
    }

    #[test]
    fn the_rates_of_a_long_run_add_up_to_no_more() {
        let schedule =
            Schedule { kind: ScheduleKind::Linear, peak: Some(2e-4), warmup: 50, max_sum: Some(0.1) };
        let sum = |last: u64| (1..=last).map(|step| schedule.rate(step, 256, Some(last))).sum::<f64>();
        assert!(close(schedule.rate(50, 256, Some(500)), 2e-4), "a short run has its peak");
        assert!((sum(500) - 0.05).abs() < 1e-3, "{}", sum(500));
        for last in [1_000, 2_000, 50_000] {
            assert!((sum(last) - 0.1).abs() < 1e-3, "{last}: {}", sum(last));
        }
        assert!(schedule.rate(1_000, 256, None) == 2e-4, "whose end is not known");
    }

    #[test]
    fn nonsense_is_refused() {
        let check = |kind, peak, warmup| {
            Schedule { kind, peak, warmup, max_sum: None }.check().unwrap_err().to_string()
        };
        assert_eq!(check(ScheduleKind::Linear, Some(-1.0), 1), "schedule.peak: -1 is not a positive number");
        assert!(check(ScheduleKind::Paper, Some(0.1), 1).starts_with("schedule.peak: the paper's"));
        assert!(check(ScheduleKind::Paper, None, 0).starts_with("schedule.warmup:"));
        let schedule = Schedule { kind: ScheduleKind::Linear, peak: None, warmup: 1, max_sum: Some(0.0) };
        assert_eq!(schedule.check().unwrap_err().to_string(), "schedule.max_sum: 0 is not a positive number");
    }
}
