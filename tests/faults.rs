//! Faults of the machine: a disk that is full at some point of a run. That of kill -9 is in
//! `train.rs`.
#![cfg(unix)]

use crate::train::{command, finish, losses, write_corpus};
use regard::formats::Model;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command of a small run that may write files of at most this many blocks of 512 bytes. A
/// larger write fails with an error, as on a full disk; the signal that would end the process is
/// ignored.
fn limited(folder: &Path, out: &Path, more: &[&str], blocks: u32) -> Command {
    let whole = command(folder, out, more);
    let mut limited = Command::new("sh");
    limited.current_dir(folder).stdin(Stdio::null());
    limited.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""));
    limited.arg(whole.get_program()).args(whole.get_args());
    limited
}

#[test]
fn a_disk_that_is_full_at_any_point_costs_nothing_that_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    let can_limit = Command::new("sh").args(["-c", "trap '' XFSZ && ulimit -f 1"]).status();
    if !can_limit.is_ok_and(|status| status.success()) {
        eprintln!("skipped: sh cannot limit the size of files here");
        return;
    }
    write_corpus(folder.path(), 60);
    let whole = folder.path().join("whole");
    let (output, text) = finish(command(folder.path(), &whole, &["--steps", "12"]));
    assert!(output.status.success(), "{text}");
    // The largest file of all is a checkpoint; smaller limits are met earlier.
    let checkpoints = fs::read_dir(whole.join("checkpoints")).unwrap().flatten();
    let largest = checkpoints.map(|file| file.metadata().unwrap().len()).max().unwrap();
    let blocks = u32::try_from(largest / 512).unwrap();
    let out = folder.path().join("out");
    let mut failures = 0;
    let mut round = |steps: &str, blocks: u32| {
        let (output, text) = finish(limited(folder.path(), &out, &["--steps", steps, "--resume"], blocks));
        if output.status.success() {
            return;
        }
        failures += 1;
        assert_eq!(output.status.code(), Some(1), "{blocks} blocks: {text}");
        let last = text.lines().last().unwrap_or_default();
        let named = last.starts_with(&format!("regard: {}", out.display()));
        assert!(named && last.contains("File too large"), "{blocks} blocks: {text}");
        if let Err(e) = Model::load(&out) {
            assert!(e.to_string().contains("is not a model yet"), "{blocks} blocks: {e}");
        }
    };
    for part in [2, 8, 20, 45, 70, 99] {
        round("12", (blocks * part / 100).max(1));
    }
    // With room for a while, then with none: the last state is kept.
    round("5", u32::MAX);
    for part in [1, 30, 60, 99] {
        round("12", (blocks * part / 100).max(1));
    }
    assert!(failures >= 8, "only {failures} runs have met the limit");
    let (output, text) = finish(command(folder.path(), &out, &["--steps", "12", "--resume"]));
    assert!(output.status.success(), "{text}");
    assert_eq!(losses(&out), losses(&whole));
    assert_eq!(Model::load(&out).unwrap().weights, Model::load(&whole).unwrap().weights);
    let leftovers = fs::read_dir(out.join("checkpoints")).unwrap().flatten();
    let leftovers = leftovers.filter(|file| file.file_name().to_string_lossy().ends_with(".part")).count();
    assert_eq!(leftovers, 0);
}
