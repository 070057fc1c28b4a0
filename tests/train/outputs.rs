//! What a run leaves.

use super::{command, finish, run, small_config, write_corpus};
use regard::formats::Model;
use regard_sample_corpus as builtin;
use std::fs;
use std::path::PathBuf;

#[test]
fn weights_are_stored_as_the_flag_says() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    for (flag, name) in [("f16", "F16"), ("bf16", "BF16")] {
        let out = folder.path().join(flag);
        let (output, heard) = finish(command(folder.path(), &out, &["--steps", "4", "--store", flag]));
        assert!(output.status.success(), "{heard}");
        let header = std::fs::read(out.join("model.safetensors")).unwrap();
        let header = String::from_utf8_lossy(&header[8..200]).into_owned();
        assert!(header.contains(&format!("\"dtype\":\"{name}\"")), "{header}");
        regard::formats::Model::load(&out).unwrap();
    }
    let out = folder.path().join("int8");
    let (output, heard) = finish(command(folder.path(), &out, &["--set", "checkpoints.store=int8"]));
    assert!(!output.status.success() && heard.contains("checkpoints.store: int8 cannot be"), "{heard}");
}

/// The example in the help of `regard average`.
#[test]
fn checkpoints_of_a_run_can_be_averaged() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    run(&small_config(folder.path()), &out, false, 99).0.unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(out.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let average = |files: &[PathBuf], name: &str| {
        let to = folder.path().join(name);
        let mut command = crate::command::regard();
        command.arg("average").args(files).arg("--out").arg(&to);
        let (output, text) = finish(command);
        assert!(output.status.success(), "{text}");
        Model::load(&to).unwrap()
    };
    let is_state = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with("state-");
    let (states, weights): (Vec<PathBuf>, Vec<PathBuf>) = files.iter().cloned().partition(is_state);
    assert!(states.len() == 2 && weights.len() >= 3, "{files:?}");
    let each: Vec<Vec<f32>> =
        weights.iter().map(|file| average(std::slice::from_ref(file), "one").weights).collect();
    let mean = average(&files, "all").weights;
    for (i, mean) in mean.iter().enumerate() {
        let want = each.iter().map(|w| f64::from(w[i])).sum::<f64>() / each.len() as f64;
        assert!((f64::from(*mean) - want).abs() < 1e-6, "weight {i}: {mean}, not {want}");
    }
    // States are models too, and the last is that of the last weights.
    assert_eq!(average(&states[1..], "state").weights, *each.last().unwrap());
    let refused = crate::command::regard()
        .args(["average", out.join("train.toml").to_str().unwrap(), "--out", "x"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn the_quickstart_runs_through() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = crate::command::regard();
    command.current_dir(folder.path()).args(["quickstart", "--out", "q", "--pairs", "240", "--steps", "3"]);
    let (output, text) = finish(command);
    assert!(output.status.success(), "{text}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("BLEU on 9 held-out sentences: "), "{said}");
    for (source, _) in builtin::SHOWCASE {
        assert!(said.contains(source), "{said}");
    }
    assert!(
        said.contains("cross-attention") && said.contains('█') && said.contains("regard train --src"),
        "{said}"
    );
    assert!(Model::load(&folder.path().join("q")).is_ok());
}
