//! Runs that are killed, stopped by a signal, or lose their files.

use super::{command, finish, losses, write_corpus};
use regard::formats::Model;
use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::process::Command;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Waits until a run has logged this many lines.
#[cfg(unix)]
fn wait_for_steps(out: &Path, lines: usize) {
    let start = Instant::now();
    while fs::read_to_string(out.join("logs/log.jsonl")).unwrap_or_default().lines().count() < lines {
        assert!(start.elapsed() < Duration::from_secs(60), "no steps in a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A folder in training is a model, or it says that it is none yet.
fn check_loadable(out: &Path, round: u64) {
    match Model::load(out) {
        Ok(model) => assert!(model.weights.iter().all(|w| w.is_finite()), "round {round}"),
        Err(e) => {
            let text = e.to_string();
            let early = text.ends_with(
                "is not a model yet: the training run in this folder has not reached its first step",
            );
            let nothing = !out.join("cache/lock").exists();
            assert!(early || nothing, "round {round}: {text}");
            let states = fs::read_dir(out.join("checkpoints")).into_iter().flatten().flatten();
            let states = states.filter(|e| e.file_name().to_string_lossy().ends_with(".ckpt")).count();
            assert_eq!(states, 0, "round {round}: there is a state, but no model: {text}");
        }
    }
}

/// Killed as soon as there is anything of the model: it can be loaded, or says that it cannot yet.
#[test]
fn a_run_that_is_killed_right_after_its_start_leaves_a_model_or_says_that_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let marks = [
        "cache/lock",
        "cache/train.ids",
        "logs/config.toml",
        "tokenizer.json",
        "model.safetensors",
        "config.json",
    ];
    for (round, mark) in marks.into_iter().enumerate() {
        let out = folder.path().join(format!("out-{round}"));
        let mut child = command(folder.path(), &out, &["--steps", "1000000"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while !out.join(mark).exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "there is no {mark} after a minute");
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        check_loadable(&out, round as u64);
        if mark == "config.json" {
            Model::load(&out).unwrap();
        }
        // The same command goes on from whatever is there.
        let (output, text) = finish(command(folder.path(), &out, &["--steps", "2", "--resume"]));
        assert!(output.status.success(), "{mark}: {text}");
    }
}

#[test]
fn killed_at_any_moment_a_run_can_be_resumed_and_its_model_loaded() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let whole = folder.path().join("whole");
    let (output, text) = finish(command(folder.path(), &whole, &["--steps", "40"]));
    assert!(output.status.success(), "{text}");
    let expected = losses(&whole);

    let out = folder.path().join("out");
    // Moments that fall into preparation, steps, validations and saves; other ones on every
    // machine.
    let mut delay = 5;
    let mut kills = 0;
    for round in 0..12 {
        let mut child = command(folder.path(), &out, &["--steps", "40", "--resume"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        kills += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        delay = (delay * 7 / 4) % 400 + 11 * round;
        check_loadable(&out, round);
    }
    assert!(kills > 0);
    let (output, text) = finish(command(folder.path(), &out, &["--steps", "40", "--resume"]));
    assert!(output.status.success(), "{text}");
    assert_eq!(losses(&out), expected);
    assert_eq!(Model::load(&out).unwrap().weights, Model::load(&whole).unwrap().weights);
}

#[cfg(unix)]
#[test]
fn a_signal_saves_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    for (signal, status) in [("-TERM", 143), ("-INT", 130)] {
        let out = folder.path().join(signal);
        let child = command(folder.path(), &out, &["--steps", "1000000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_steps(&out, 4);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        // Not 0: `regard train … && deploy` must not deploy half a model.
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(output.stdout.is_empty() && !text.contains("regard: "), "{text}");
        assert!(text.contains("everything is saved\nto continue:\n  regard train --resume --out"), "{text}");
        assert!(text.contains("tokens/s") && text.contains("validation loss"), "{text}");
        // What it says is enough.
        let steps = (losses(&out).len() + 2).to_string();
        let mut again = crate::command::regard();
        again.current_dir(folder.path()).args(["train", "--resume", "--steps", &steps, "--out"]).arg(&out);
        let (output, text) = finish(again);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("continuing after step"), "{text}");
        assert_eq!(losses(&out).len().to_string(), steps);
        assert!(String::from_utf8_lossy(&output.stdout).contains("report: "));
    }
}

/// A corpus cache that is cut off while it is in use ends the run with a message, and with
/// everything saved.
#[cfg(unix)]
#[test]
fn a_corpus_cache_that_is_cut_off_ends_the_run_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let out = folder.path().join("out");
    let child = command(folder.path(), &out, &["--steps", "1000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_steps(&out, 4);
    let cache = fs::File::options().write(true).open(out.join("cache/train.ids")).unwrap();
    cache.set_len(80).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.ends_with("out/cache/train.ids: was cut off while it was in use\n"), "{text}");
    assert!(text.contains("everything up to it is saved"), "{text}");
    let steps = (losses(&out).len() + 2).to_string();
    let (output, text) = finish(command(folder.path(), &out, &["--steps", &steps, "--resume"]));
    assert!(output.status.success() && text.contains("continuing after step"), "{text}");
    assert_eq!(losses(&out).len().to_string(), steps);
}
