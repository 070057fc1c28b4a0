//! The progress events of a run, and its outcome.

use regard_core::formats::{StepRecord, ValidationRecord};

/// Receives the progress of a run.
pub trait Progress {
    /// A sentence for the user.
    fn message(&mut self, text: &str);

    /// After every step; `total` is the last step, if it is known.
    fn step(&mut self, record: &StepRecord, total: Option<u64>);

    /// After every line of the log about steps.
    fn logged(&mut self, _record: &StepRecord, _total: Option<u64>) {}

    /// After every validation.
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
    /// It is done.
    Finished,
    /// It was asked to stop, and can be resumed.
    Interrupted,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Steps taken.
    pub steps: u64,
    /// BLEU of the model in the folder, on the validation sentences.
    pub bleu: Option<f64>,
    /// chrF of the same.
    pub chrf: Option<f64>,
    /// Seconds of training steps.
    pub seconds: f64,
    /// Seconds of everything: preparation, steps, validation.
    pub all_seconds: f64,
    /// Target tokens trained on.
    pub target_tokens: u64,
}
