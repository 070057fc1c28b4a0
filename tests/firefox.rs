//! The commands on a folder of Firefox, which `regard export` makes of a model of ours.

use crate::translate::small_model;
use regard::DType;
use regard::model::{DecoderKind, Frequencies};
use std::fs;
use std::path::Path;

/// Runs a command in a folder; what it prints.
fn run(folder: &Path, arguments: &str) -> String {
    let mut command = crate::command::regard();
    command.current_dir(folder).args(arguments.split(' '));
    let output = crate::command::output(command, b"The dog runs.\n\nA cat sleeps.\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments}: {said}");
    // Random weights say little that makes sense, and the command says so.
    let said: Vec<&str> = said.lines().filter(|line| !line.contains("degenerate")).collect();
    String::from_utf8(output.stdout).unwrap() + &said.join("\n")
}

/// A model of the shape that Marian and Firefox can express, and `firefox`, what is exported of it.
pub(crate) fn exported(folder: &Path) {
    let model = small_model(5, |config| {
        (config.d_model, config.heads, config.d_ff) = (64, 4, 128);
        (config.decoder, config.frequencies) = (DecoderKind::Ssru, Frequencies::Tensor2tensor);
        config.norm_epsilon = 1e-6;
    });
    model.unwrap().save(&folder.join("ours"), DType::F32).unwrap();
    let lines = "The dog runs.\nA cat sleeps.\nTwo men talk.\n".repeat(20);
    fs::write(folder.join("text.en"), &lines).unwrap();
    fs::write(folder.join("text.fr"), &lines).unwrap();
    run(folder, "export --model ours --to bergamot --sample text.en --out firefox");
    let mut command = crate::command::regard();
    command.current_dir(folder).args("export --model ours --to marian --precision int8 --out no".split(' '));
    let output = crate::command::output(command, b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--to marian writes f32"));
}

#[test]
fn every_command_takes_a_folder_of_firefox() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    exported(folder);
    let info = run(folder, "info --model firefox");
    assert!(info.contains("ssru") && info.contains("int8"), "{info}");
    let lines = run(folder, "translate --model firefox --max-length 9");
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert_eq!(lines.lines().nth(1), Some(""));
    let scores = run(folder, "evaluate --model firefox --src text.en --ref text.fr --max-length 9");
    assert!(scores.contains("BLEU"), "{scores}");
    let seen = run(folder, "look --model firefox --src Hello. --kind cross --out seen.html");
    assert!(folder.join("seen.html").exists(), "{seen}");
    run(folder, "average --out mean firefox firefox");
    assert_eq!(run(folder, "translate --model mean --max-length 9").lines().count(), 3);
    let trained =
        "train --init firefox --src text.en --tgt text.fr --steps 2 --set validation.max_sentences=4";
    run(folder, &format!("{trained} --out tuned"));
    assert!(run(folder, "info --model tuned").contains("ssru"));
}
