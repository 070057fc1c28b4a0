//! `regard check`, and the warnings at the start of `regard train`.

use crate::cli::run;
use crate::train::{command, finish, write_corpus};
use regard_sample_corpus as builtin;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Long enough to be recognised, and there are enough of them.
fn write_long(folder: &Path) {
    let corpus = builtin::corpus(3, 6000).train;
    let (mut english, mut french) = (String::new(), String::new());
    for two in corpus.chunks_exact(2).take(2000) {
        english += &format!("{} {}\n", two[0].0, two[1].0);
        french += &format!("{} {}\n", two[0].1, two[1].1);
    }
    fs::write(folder.join("a.en"), english).unwrap();
    fs::write(folder.join("a.fr"), french).unwrap();
}

#[test]
fn sound_text_swapped_languages_and_the_same_file_twice() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_long(folder);
    let sound = run(folder, &["check", "--src", "a.en", "--tgt", "a.fr"]);
    assert_eq!((sound.code, sound.err.as_str()), (0, ""), "{}", sound.out);
    assert!(sound.out.starts_with("training text: 2,000 pairs, 2,000 of them usable\n"), "{}", sound.out);

    let swapped = run(
        folder,
        &["check", "--src", "a.fr", "--tgt", "a.en", "--source-lang", "en", "--target-lang", "fr"],
    );
    assert_eq!(swapped.code, 1, "{}", swapped.out);
    assert!(swapped.out.contains("PROBLEM: source and target are swapped: "), "{}", swapped.out);

    let same = run(folder, &["check", "--src", "a.en", "--tgt", "a.en", "--json"]);
    assert_eq!(same.code, 1);
    let report: Value = serde_json::from_str(&same.out).unwrap();
    let finding = &report["training"]["findings"][0];
    assert_eq!((finding["check"].as_str(), finding["count"].as_u64()), (Some("identical"), Some(2000)));
    assert_eq!(finding["severity"], "problem");
    assert_eq!(finding["examples"][0]["place"], "a.en:1");
    assert!(finding["advice"].as_str().unwrap().contains("the same file"), "{finding}");

    let wrong = run(folder, &["check", "--src", "a.en", "--tgt", "a.fr", "--source-lang", "de"]);
    assert_eq!(wrong.code, 1, "{}", wrong.out);
    assert!(wrong.out.contains("is in another language, most often English"), "{}", wrong.out);
    assert!(wrong.out.contains("→ set --source-lang to the right language"), "{}", wrong.out);
}

#[test]
fn wrong_arguments_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.en"), "one\ntwo\n").unwrap();
    fs::write(folder.join("a.fr"), "un\n").unwrap();
    let none = run(folder, &["check"]);
    assert_eq!(none.code, 1);
    assert!(
        none.err.contains("--src: there is no text to train on; set --src and --tgt, or --pairs"),
        "{}",
        none.err
    );
    let uneven = run(folder, &["check", "--src", "a.en", "--tgt", "a.fr"]);
    assert!(uneven.code == 1 && uneven.err.contains("a.en: 2 lines, but a.fr has 1"), "{}", uneven.err);
    assert_eq!(run(folder, &["check", "--pairs", "x", "--src", "y"]).code, 2);
}

#[test]
fn a_run_begins_with_warnings() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let out = folder.path().join("out");
    fs::copy(folder.path().join("train.en"), folder.path().join("train.fr")).unwrap();
    let (output, heard) = finish(command(folder.path(), &out, &["--steps", "2"]));
    assert!(output.status.success(), "{heard}");
    assert!(
        heard.contains("warning: source and target are the same text in 54 of 54 pairs (first: train.en:1)"),
        "{heard}"
    );
    assert!(heard.contains("warning: there are only 54 usable pairs"), "{heard}");
    assert!(heard.contains("`regard check` with the same files shows examples"), "{heard}");
    // A resumed run has been warned.
    let (_, heard) = finish(command(folder.path(), &out, &["--steps", "3", "--resume"]));
    assert!(!heard.contains("warning: "), "{heard}");
}

#[test]
fn a_run_reads_catalogues_and_objects() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut po, mut jsonl) = (String::new(), String::new());
    for (i, (source, target)) in builtin::corpus(3, 60).train.iter().enumerate() {
        match i % 2 {
            0 => po += &format!("msgid {source:?}\nmsgstr {target:?}\n\n"),
            _ => jsonl += &format!("{}\n", serde_json::json!({ "en": source, "fr": target })),
        }
    }
    fs::write(folder.join("fr.po"), po).unwrap();
    fs::write(folder.join("pairs.jsonl"), jsonl).unwrap();
    let run = run(
        folder,
        &[
            "train",
            "--pairs",
            "fr.po",
            "pairs.jsonl",
            "--source-lang",
            "en",
            "--target-lang",
            "fr",
            "--preset",
            "tiny",
            "--steps",
            "2",
            "--set",
            "d_model=16",
            "--set",
            "heads=2",
            "--set",
            "d_ff=16",
            "--set",
            "tokenizer.size=400",
            "--set",
            "validation.max_sentences=4",
            "--out",
            "model",
        ],
    );
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("60 pairs read\n"), "{}", run.err);
    let card = fs::read_to_string(folder.join("model/README.md")).unwrap();
    assert!(card.contains("`fr.po`, `pairs.jsonl` (60 pairs"), "{card}");
    assert!(card.contains("regard train --pairs fr.po pairs.jsonl --source-lang en"), "{card}");
    assert!(card.contains("language:\n- en\n- fr\nlicense: unknown\n"), "{card}");
}
