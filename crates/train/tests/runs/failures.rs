//! Runs whose loss goes wrong.

use crate::common::{run, small_config};
use regard_core::formats::Model;
use regard_train::{End, Schedule, ScheduleKind, resumed_config};

#[test]
fn a_run_that_goes_wrong_keeps_what_was_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.schedule = Schedule { kind: ScheduleKind::Constant, peak: Some(1e30), warmup: 0, max_sum: None };
    let out = folder.path().join("out");
    let error = run(&config, &out, false, u64::MAX).0.unwrap_err().to_string();
    assert!(error.contains("no longer a number") && error.contains(", schedule.peak="), "{error}");
    let model = Model::load(&out).unwrap();
    assert!(model.weights.iter().all(|w| w.is_finite()));
    let mended = resumed_config(&out, |c| c.set("schedule.peak=0.001")).unwrap();
    assert_eq!(run(&mended, &out, true, u64::MAX).0.unwrap().end, End::Finished);
}

/// A rate that is far too high once the model has begun to learn: numbers all the way, but the
/// wrong ones.
#[test]
fn a_loss_that_explodes_ends_the_run_with_the_last_good_model_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.steps = Some(60);
    let out = folder.path().join("out");
    run(&config, &out, false, u64::MAX).0.unwrap();
    let good = Model::load(&out).unwrap().weights;
    let rates =
        ["steps=400", "schedule.kind=constant", "schedule.peak=3.0", "validation.every=\"300 steps\""];
    let config = resumed_config(&out, |c| rates.iter().try_for_each(|set| c.set(set))).unwrap();
    let error = run(&config, &out, true, u64::MAX).0.unwrap_err().to_string();
    assert!(error.contains("the loss has risen from ") && error.contains(", schedule.peak=1.5, "), "{error}");
    assert_eq!(Model::load(&out).unwrap().weights, good);
}
