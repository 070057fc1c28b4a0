//! `regard train --precision bf16`, here in software.

use crate::train::{command, finish, losses, write_corpus};
use regard::formats::Model;
use std::path::Path;
use std::process::Command;

/// A run of the program whose bf16 is done in software.
fn emulated(folder: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = command(folder, out, more);
    command.env("REGARD_BF16", "emulate");
    command
}

#[test]
fn the_program_trains_in_bf16_and_resumes_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_corpus(folder, 60);
    let runs: [(&str, &[&[&str]]); 3] = [
        ("whole", &[&["--steps", "12", "--precision", "bf16"]]),
        ("parts", &[&["--steps", "5", "--precision", "bf16"], &["--steps", "12", "--resume"]]),
        ("f32", &[&["--steps", "12", "--precision", "f32"]]),
    ];
    let [whole, parts, exact] = runs.map(|(name, parts)| {
        let out = folder.join(name);
        let mut told = String::new();
        for part in parts {
            let (output, text) = finish(emulated(folder, &out, part));
            assert!(output.status.success(), "{text}");
            told += &text;
        }
        (losses(&out), Model::load(&out).unwrap().weights, told)
    });
    assert!(
        whole.2.contains(", bf16 in software)") && parts.2.contains(", bf16 in software)"),
        "{}",
        parts.2
    );
    assert!(exact.2.contains(", f32)"), "{}", exact.2);
    assert_eq!(parts.0, whole.0);
    assert_eq!(parts.1, whole.1);
    assert_ne!(exact.0, whole.0);
    for (exact, rounded) in exact.0.iter().zip(&whole.0) {
        assert!((exact.1 - rounded.1).abs() < 0.01 * exact.1, "{exact:?} {rounded:?}");
    }
}

#[test]
fn what_cannot_be_had_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let out = folder.path().join("out");
    let mut without = command(folder.path(), &out, &["--steps", "1", "--precision", "bf16"]);
    without.env("REGARD_ISA", "portable");
    let (output, text) = finish(without);
    assert!(output.status.success(), "{text}");
    let note =
        "precision bf16: portable on this CPU has no bf16 instructions (AVX-512 BF16 has); training in f32\n";
    assert!(text.contains(note) && text.contains("(portable, f32)"), "{text}");
    let saved = std::fs::read_to_string(out.join("logs/config.toml")).unwrap();
    assert!(saved.contains("precision = \"f32\"\n"), "{saved}");

    let mut wrong = command(folder.path(), &folder.path().join("other"), &["--steps", "1"]);
    wrong.env("REGARD_BF16", "fast");
    let (output, text) = finish(wrong);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.ends_with("regard: REGARD_BF16: fast is unknown; emulate is possible\n"), "{text}");
}
