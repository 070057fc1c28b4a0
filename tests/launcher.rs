//! A program that knows nothing of MPI, started by its launcher: N copies must not do N times what
//! is meant to be done once.

use std::fs;
use std::process::Command;

/// Standard error of a copy that the launcher says is one of four.
fn copy(variable: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(arguments)
        .current_dir(folder.path())
        .env(variable, "4")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?} has written something");
    String::from_utf8(output.stderr).unwrap()
}

#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_copies_are_refused() {
    let train = ["train", "--src", "a.en", "--tgt", "a.de", "--out", "out"];
    let translate = ["translate", "--model", "out"];
    let bench = ["bench", "train", "--preset", "tiny", "--seconds", "0"];
    for (variable, arguments, what) in [
        ("OMPI_COMM_WORLD_SIZE", &train[..], "train"),
        ("PMI_SIZE", &train, "train"),
        ("OMPI_COMM_WORLD_SIZE", &translate, "translate"),
        ("OMPI_COMM_WORLD_SIZE", &bench, "measure"),
    ] {
        assert_eq!(
            copy(variable, arguments),
            format!(
                "regard: mpi: started 4 times by an MPI launcher, but this program was built without MPI: each copy would {what} by \
                 itself. Start it once, or build it with the feature `mpi` (`cargo build --release --features mpi`)\n"
            )
        );
    }
}

#[test]
fn what_is_for_one_process_is_refused_in_any_build() {
    for arguments in [&["quickstart", "--out", "out"][..], &["average", "a", "b", "--out", "out"]] {
        assert_eq!(
            copy("OMPI_COMM_WORLD_SIZE", arguments),
            format!(
                "regard: mpi: started 4 times by an MPI launcher, but `{}` is for one process; start it without the launcher\n",
                arguments[0]
            )
        );
    }
}
