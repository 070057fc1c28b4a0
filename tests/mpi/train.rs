//! Training on ranks is the training on as many cores.

use super::*;

/// 2 ranks of one core against one process of 2 cores, and a second time; then 3.
#[test]
fn losses_are_those_of_one_process_and_equal_runs_are_equal() {
    let _alone = alone();
    let folder = corpus();
    for (count, steps) in [(2, 200), (3, 40)] {
        let steps = ["--steps".to_owned(), steps.to_string()];
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let out = |name: &str| path(&folder, &format!("{name}-{count}"));
        let threads = count.to_string();
        let cores = [&steps[..], &["--threads", &threads]].concat();
        // A flag may be given once.
        let mut one = train(folder.path(), &out("one"), &cores);
        let at = one.iter().position(|a| a == "--threads").unwrap();
        one.drain(at..at + 2);
        succeed(regard(&one));
        for name in ["first", "second"] {
            succeed(ranks(count, &train(folder.path(), &out(name), &steps)));
        }
        let (one, first) = (losses(&out("one")), losses(&out("first")));
        within(&first, &one, 1e-5);
        assert!(first == losses(&out("second")), "two equal runs of {count} ranks differ");
        assert!(weights(&out("first")) == weights(&out("second")));
        // More than what was asked for: the order of the sum is the same, and so is every bit.
        assert!(first == one, "{count} ranks");
    }
}

#[test]
fn a_run_goes_on_with_the_same_and_with_another_number_of_ranks() {
    let _alone = alone();
    let folder = corpus();
    let whole = path(&folder, "whole");
    succeed(ranks(2, &train(folder.path(), &whole, &["--steps", "20"])));
    for (name, count) in [("same", 2), ("more", 3), ("one", 1)] {
        let out = path(&folder, name);
        succeed(ranks(2, &train(folder.path(), &out, &["--steps", "10"])));
        let resume =
            ["train", "--resume", "--out", &out.display().to_string(), "--steps", "20"].map(str::to_owned);
        let heard = output(ranks(count, &resume));
        assert!(heard.status.success(), "{}", String::from_utf8_lossy(&heard.stderr));
        assert!(String::from_utf8_lossy(&heard.stderr).contains("continuing after step 10"));
        within(&losses(&out), &losses(&whole), if count == 2 { 0.0 } else { 1e-3 });
    }
}

/// Validation files are left out, words are cut anew every epoch, weights are averaged, and numbers
/// are rounded on their way.
#[test]
fn other_settings_reach_all_ranks() {
    let _alone = alone();
    let folder = corpus();
    let out = path(&folder, "out");
    let sets = ["bpe_dropout=0.1", "ema=0.9", "accumulate=2", "wire=bf16", "checkpoints.average=2"];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let mut arguments = train(folder.path(), &out, &[&["--epochs", "3"], &sets[..]].concat());
    for flag in ["--valid-src", "--valid-tgt"] {
        let at = arguments.iter().position(|a| a == flag).unwrap();
        arguments.drain(at..at + 2);
    }
    let heard = output(ranks(3, &arguments));
    let heard = String::from_utf8_lossy(&heard.stderr);
    assert!(heard.contains("3 ranks, which split each batch into 3 parts"), "{heard}");
    assert!(heard.contains("pairs of the corpus are held out"), "{heard}");
    let losses = losses(&out);
    assert!(losses.last().unwrap().1 < losses[0].1 - 0.3, "{losses:?}");
}

#[test]
fn the_benchmark_counts_its_ranks() {
    let _alone = alone();
    let arguments = ["bench", "train", "--preset", "tiny", "--seconds", "0", "--threads", "1", "--json"];
    let line = succeed(ranks(2, &arguments.map(str::to_owned)));
    let report: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((report["ranks"].as_u64(), report["replicas"].as_u64()), (Some(2), Some(2)), "{line}");
    // With two ranks each sends half of its gradient and half of the weights.
    assert!(report["wire_mb"].as_f64().unwrap() > 4.0, "{line}");
}
