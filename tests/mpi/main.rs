//! Runs of several ranks on this machine, under the real `mpirun`: a test target of its own, for
//! builds with the feature `mpi`.
//!
//! `cargo test --features mpi --test mpi`; Debian: libopenmpi-dev, openmpi-bin, libclang-dev.

mod faults;
mod train;
mod translate;

use regard_sample_corpus as builtin;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

/// Ranks wait in loops: jobs that run at the same time would wait for one another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

const REGARD: &str = env!("CARGO_BIN_EXE_regard");

/// `mpirun` for containers, root, and more ranks than cores.
fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none"]);
    command.args(["--mca", "btl_vader_single_copy_mechanism", "none"]);
    for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(variable, "1");
    }
    command
}

/// `regard` on this many ranks.
fn ranks(count: usize, arguments: &[String]) -> Command {
    let mut command = mpirun();
    command.args(["-n", &count.to_string(), REGARD]).args(arguments);
    command
}

fn regard(arguments: &[String]) -> Command {
    let mut command = Command::new(REGARD);
    command.args(arguments);
    command
}

fn output(mut command: Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// Standard output of a command that must succeed.
fn succeed(command: Command) -> String {
    let shown = format!("{command:?}");
    let out = output(command);
    assert!(out.status.success(), "{shown}\n{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Standard error of a command that must fail.
fn fail(command: Command) -> String {
    let shown = format!("{command:?}");
    let out = output(command);
    assert!(!out.status.success(), "{shown} should have failed");
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// A folder with a small corpus: train.en, train.fr, valid.en, valid.fr.
fn corpus() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let corpus = builtin::corpus(1, 60);
    let (train, valid) = corpus.train.split_at(54);
    for (name, pairs) in [("train", train), ("valid", valid)] {
        let text = |f: fn(&(String, String)) -> &String| -> String {
            pairs.iter().map(|p| format!("{}\n", f(p))).collect()
        };
        fs::write(folder.path().join(format!("{name}.en")), text(|p| &p.0)).unwrap();
        fs::write(folder.path().join(format!("{name}.fr")), text(|p| &p.1)).unwrap();
    }
    folder
}

/// The arguments of a small run into `out`, one core a rank; `more` are further ones.
fn train(folder: &Path, out: &Path, more: &[&str]) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let files = [
        ("--src", "train.en"),
        ("--tgt", "train.fr"),
        ("--valid-src", "valid.en"),
        ("--valid-tgt", "valid.fr"),
    ];
    let mut arguments: Vec<String> = vec!["train".into(), "--out".into(), out.display().to_string()];
    for (flag, name) in files {
        arguments.extend([flag.to_owned(), file(name)]);
    }
    arguments.extend(["--preset", "tiny", "--threads", "1"].map(str::to_owned));
    let sets = [
        "d_model=16",
        "heads=2",
        "d_ff=16",
        "encoder_layers=1",
        "decoder_layers=1",
        "tokenizer.size=400",
        "batch.max_tokens=200",
        "schedule.kind=inverse-sqrt",
        "schedule.peak=0.01",
        "schedule.warmup=5",
        "log_every=1",
        "validation.every=100",
        "checkpoints.every=100",
        "checkpoints.average=0",
        "clip=1",
    ];
    for set in sets {
        arguments.extend(["--set".to_owned(), set.to_owned()]);
    }
    arguments.extend(more.iter().map(|s| (*s).to_owned()));
    arguments
}

/// Loss by step, exact.
fn losses(out: &Path) -> Vec<(u64, f64)> {
    let records = regard::train::read_log(&out.join("logs/log.jsonl")).unwrap();
    let of = |r: &regard::train::Record| match r {
        regard::train::Record::Step(r) => Some((r.step, r.loss)),
        regard::train::Record::Validation(_) => None,
    };
    records.iter().filter_map(of).collect()
}

/// The weights in a model folder.
fn weights(out: &Path) -> Vec<u8> {
    fs::read(out.join("model.safetensors")).unwrap()
}

fn within(a: &[(u64, f64)], b: &[(u64, f64)], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for ((step, x), (other, y)) in a.iter().zip(b) {
        assert_eq!(step, other);
        assert!((x - y).abs() <= tolerance * y.abs(), "step {step}: {x} and {y}");
    }
}

fn path(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}
