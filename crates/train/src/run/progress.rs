//! The progress events of a run, and its outcome.

use regard_core::formats::{StepRecord, ValidationRecord};

/// Receives the progress of a run.
pub trait Progress {
    /// A message for the user.
    fn message(&mut self, text: &str);

    /// Called after every step; `total` is the last step, if known.
    fn step(&mut self, record: &StepRecord, total: Option<u64>);

    /// Called after every log line about steps.
    fn logged(&mut self, _record: &StepRecord, _total: Option<u64>) {}

    /// Called after every validation.
    fn validated(&mut self, record: &ValidationRecord, best: bool);
}

/// Reports nothing.
impl Progress for () {
    fn message(&mut self, _: &str) {}
    fn step(&mut self, _: &StepRecord, _: Option<u64>) {}
    fn validated(&mut self, _: &ValidationRecord, _: bool) {}
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is complete.
    Finished,
    /// It was asked to stop, and can be resumed.
    Interrupted,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The number of steps taken.
    pub steps: u64,
    /// BLEU of the model in the folder on the validation set.
    pub bleu: Option<f64>,
    /// chrF on the validation set.
    pub chrf: Option<f64>,
    /// The time spent in training steps, in seconds.
    pub seconds: f64,
    /// The total time in seconds: preparation, steps, validation.
    pub all_seconds: f64,
    /// The number of target tokens trained on.
    pub target_tokens: u64,
}
