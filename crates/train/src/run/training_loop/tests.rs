//! Whole runs with a simulated clock.

use super::*;
use crate::run::{Start, resumed_config};
use regard_core::Isa;
use regard_core::model::Preset;
use regard_sample_corpus as builtin;
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

/// Advances the clock with each step and validation, and stops the run after a given step.
struct Mover<'a> {
    now: Rc<Cell<f64>>,
    stop: &'a AtomicBool,
    after: u64,
    messages: String,
}

impl Progress for Mover<'_> {
    fn message(&mut self, text: &str) {
        self.messages += text;
        self.messages.push('\n');
    }

    fn step(&mut self, record: &StepRecord, _: Option<u64>) {
        // The first steps take many times as long as the others.
        self.now.set(self.now.get() + if record.step <= 25 { 1.0 } else { 0.2 });
        if record.step == self.after {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn validated(&mut self, _: &ValidationRecord, _: bool) {
        self.now.set(self.now.get() + 0.5);
    }
}

fn small_config(folder: &Path) -> TrainConfig {
    let corpus = builtin::corpus(1, 40);
    for (name, side) in [("a.en", 0), ("a.fr", 1)] {
        let text = corpus.train.iter().map(|(s, t)| format!("{}\n", [s, t][side]));
        std::fs::write(folder.join(name), text.collect::<String>()).unwrap();
    }
    let mut config = TrainConfig::new(Preset::Tiny);
    (config.data.src, config.data.tgt) = (vec![folder.join("a.en")], vec![folder.join("a.fr")]);
    (config.model.d_model, config.model.heads, config.model.d_ff) = (8, 2, 8);
    (config.model.encoder_layers, config.model.decoder_layers) = (1, 1);
    config.tokenizer.vocabulary.size = Some(320);
    config.batch.plan.max_tokens = 60;
    config.threads = Some(1);
    config.minutes = Some(1.0);
    config
}

fn run(config: TrainConfig, out: &Path, resume: bool, after: u64) -> (Outcome, String) {
    let (now, stop) = (Rc::new(Cell::new(0.0)), AtomicBool::new(false));
    let mut mover = Mover { now: Rc::clone(&now), stop: &stop, after, messages: String::new() };
    let clock = Box::new(move || now.get());
    let start = Start { clock, ..Start::new(out, resume, Isa::best(), &stop, &mut mover) };
    let outcome = start.run(config).unwrap();
    (outcome, mover.messages)
}

#[test]
fn a_minute_is_a_minute_although_the_first_steps_are_slow() {
    let folder = tempfile::tempdir().unwrap();
    let config = small_config(folder.path());
    let (whole, messages) = run(config.clone(), &folder.path().join("whole"), false, u64::MAX);
    assert_eq!(whole.end, End::Finished);
    assert!((54.0..=63.0).contains(&whole.all_seconds), "{} seconds\n{messages}", whole.all_seconds);
    // The first 25 steps take 25 seconds, which leaves time for more than a hundred.
    assert!(whole.steps > 100, "{} steps\n{messages}", whole.steps);
    assert!(messages.contains("1 minutes are about ") && messages.contains("revised"), "{messages}");

    // A run in parts takes the same time, and a resumed run knows the plan.
    let out = folder.path().join("parts");
    let (mut resumed, mut outcome) = (config, None);
    for (part, after) in [15, 40, 90, u64::MAX].into_iter().enumerate() {
        let (ended, messages) = run(resumed, &out, part > 0, after);
        assert_eq!(messages.contains("is revised as steps are timed"), part == 0, "part {part}: {messages}");
        resumed = resumed_config(&out, |_| Ok(())).unwrap();
        outcome = Some(ended);
    }
    let outcome = outcome.unwrap();
    assert_eq!(outcome.end, End::Finished);
    assert!((54.0..=63.0).contains(&outcome.all_seconds), "{} seconds", outcome.all_seconds);
}
