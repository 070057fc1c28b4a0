//! `regard train` as a command: what it leaves, when it is killed, what it refuses.

mod killed;
mod outputs;
#[path = "../../crates/train/tests/runs/common.rs"]
mod runs;
mod usage;

pub(crate) use runs::{foreign, losses, run, small_config, write_corpus};

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command line of a small run.
pub(crate) fn command(folder: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = crate::command::regard();
    command.current_dir(folder).args(["train", "--src", "train.en", "--tgt", "train.fr"]);
    command.args([
        "--valid-src",
        "valid.en",
        "--valid-tgt",
        "valid.fr",
        "--preset",
        "tiny",
        "--threads",
        "1",
    ]);
    for set in [
        "d_model=16",
        "heads=2",
        "d_ff=16",
        "encoder_layers=1",
        "decoder_layers=1",
        "tokenizer.size=400",
        "batch.max_tokens=200",
        "validation.every=4 steps",
        "checkpoints.every=2 steps",
        "log_every=1",
        "warmup=5",
    ] {
        command.args(["--set", set]);
    }
    command.arg("--out").arg(out).args(more).stdin(Stdio::null());
    command
}

pub(crate) fn finish(mut command: Command) -> (Output, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}
