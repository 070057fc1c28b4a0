//! Runs that go on where they were stopped.

use crate::common::{losses, run, small_config};
use crate::records::validations;
use regard_core::formats::Model;
use regard_train::{End, Record, TrainConfig, read_log, resumed_config};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn a_resumed_run_is_the_run_that_was_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.optimizer.ema = Some(0.9);
    config.optimizer.step.adam.clip = Some(1.0);
    config.batch.accumulate = 2;
    config.tokenizer.bpe_dropout = 0.1;
    config.optimizer.r_drop_after = 1;
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    let (outcome, _) = run(&config, &whole, false, u64::MAX);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.end, outcome.steps), (End::Finished, 14));

    // Between two checkpoints, at one, in the step before a validation, in the step before the end.
    for (i, after) in [2, 3, 4, 9, 13, u64::MAX].into_iter().enumerate() {
        let config = if i == 0 { config.clone() } else { resumed_config(&parts, |_| Ok(())).unwrap() };
        let (outcome, messages) = run(&config, &parts, i > 0, after);
        let end = outcome.unwrap().end;
        assert_eq!(end, if after == u64::MAX { End::Finished } else { End::Interrupted });
        assert_eq!(messages.contains("continuing after step"), i > 0, "{messages}");
        assert!(Model::load(&parts).is_ok());
    }
    let expected = losses(&whole);
    assert_eq!(expected.len(), 14);
    assert!(expected.iter().all(|(_, loss)| loss.is_finite()));
    assert_eq!(losses(&parts), expected);
    assert_eq!(validations(&parts), validations(&whole));
    assert_eq!(validations(&whole).len(), 5, "{:?}", validations(&whole));
    let weights = |out: &Path| Model::load(out).unwrap().weights;
    assert_eq!(weights(&parts), weights(&whole));

    // Another seed is another run; a finished one is finished; one that may go on does.
    let other = TrainConfig { seed: 2, ..config.clone() };
    let third = folder.path().join("third");
    run(&other, &third, false, u64::MAX).0.unwrap();
    assert_ne!(losses(&third), expected);
    let (_, messages) = run(&resumed_config(&parts, |_| Ok(())).unwrap(), &parts, true, u64::MAX);
    assert!(messages.contains("this run is finished"), "{messages}");
    let longer = resumed_config(&parts, |c| c.set("steps=16")).unwrap();
    assert_eq!(run(&longer, &parts, true, u64::MAX).0.unwrap().steps, 16);
    assert_eq!(losses(&parts)[..14], expected);
    let error = resumed_config(&parts, |c| c.set("d_model=32")).unwrap_err().to_string();
    assert!(error.starts_with("model.d_model: cannot change in the middle of a run"), "{error}");
}

#[test]
fn r_drop_begins_after_its_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    let losses_with = |config: &TrainConfig, name: &str| {
        let out = folder.path().join(name);
        run(config, &out, false, u64::MAX).0.unwrap();
        losses(&out)
    };
    config.optimizer.step.r_drop = None;
    let without = losses_with(&config, "without");
    config.optimizer.step.r_drop = Some(5.0);
    for after in [0, 1, 2] {
        config.optimizer.r_drop_after = after;
        let with = losses_with(&config, &format!("after-{after}"));
        let same = with.iter().zip(&without).take_while(|(with, without)| with == without).count();
        let expected = after * steps_of_first_epoch(&folder.path().join("without"));
        assert_eq!(same as u64, expected, "R-Drop after {after} epochs began after {same} steps");
    }
}

/// The number of steps in the first epoch of a run.
fn steps_of_first_epoch(out: &Path) -> u64 {
    let records = read_log(&out.join("logs/log.jsonl")).unwrap();
    let last = records.iter().filter_map(|record| match record {
        Record::Step(step) if step.epoch <= 1.0 => Some(step.step),
        _ => None,
    });
    last.max().unwrap()
}

#[test]
fn damaged_checkpoints_and_other_corpora() {
    let folder = tempfile::tempdir().unwrap();
    let config = small_config(folder.path());
    let out = folder.path().join("out");
    run(&config, &out, false, 11).0.unwrap();
    let states = |out: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(out.join("checkpoints")).unwrap().map(|e| e.unwrap().path());
        let mut states: Vec<_> = entries.filter(|p| p.to_string_lossy().contains("state-")).collect();
        states.sort();
        states
    };
    let found = states(&out);
    assert_eq!(found.len(), 2, "{found:?}");
    let bytes = fs::read(&found[1]).unwrap();
    fs::write(&found[1], &bytes[..bytes.len() / 3]).unwrap();
    let (outcome, messages) = run(&config, &out, true, u64::MAX);
    assert_eq!(outcome.unwrap().steps, 14);
    assert!(
        messages.contains("it is cut off") && messages.contains("continuing after step 10"),
        "{messages}"
    );
    assert_eq!(losses(&out).iter().map(|l| l.0).collect::<Vec<_>>(), (1..=14).collect::<Vec<_>>());

    for state in states(&out) {
        fs::write(state, b"").unwrap();
    }
    let error = run(&config, &out, true, u64::MAX).0.unwrap_err().to_string();
    assert!(error.ends_with("no checkpoint of this run is complete; start another run"), "{error}");

    let out = folder.path().join("changed");
    run(&config, &out, false, 4).0.unwrap();
    let source = folder.path().join("train.en");
    let text = fs::read_to_string(&source).unwrap().replacen("The", "Some of the", 1);
    fs::write(&source, text).unwrap();
    let error = run(&config, &out, true, u64::MAX).0.unwrap_err().to_string();
    assert!(error.contains("the corpus is not the one that this run began with"), "{error}");
}

/// What the plan does with the time is tested with a clock of its own, beside the training loop;
/// this is the real one.
#[test]
fn a_run_with_a_time_limit_is_resumed_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.minutes = Some(0.05);
    let out = folder.path().join("out");
    let start = Instant::now();
    let (outcome, messages) = run(&config, &out, false, 25);
    assert_eq!(outcome.unwrap().end, End::Interrupted, "{messages}");
    assert!(messages.contains("0.05 minutes are about "), "{messages}");
    let error = resumed_config(&out, |c| c.set("schedule.peak=1")).unwrap_err().to_string();
    assert!(error.contains("this run has a time limit and plans its steps itself"), "{error}");
    let (outcome, _) = run(&resumed_config(&out, |_| Ok(())).unwrap(), &out, true, u64::MAX);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.end, End::Finished);
    assert!(outcome.steps > 25 && outcome.all_seconds >= outcome.seconds);
    // Generous: the machine may be busy with other tests.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
