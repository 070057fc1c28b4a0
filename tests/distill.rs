//! `regard distill` from end to end, on the built-in corpus.

use crate::cli::run;
use regard::formats::Model;
use regard_sample_corpus as builtin;
use std::fs;
use std::path::Path;

/// Settings of a model that learns something of a small corpus in seconds.
const SMALL: [&str; 12] = [
    "d_model=32",
    "heads=2",
    "d_ff=64",
    "encoder_layers=1",
    "decoder_layers=1",
    "norm=pre",
    "dropout=0",
    "peak=0.01",
    "tokenizer.size=400",
    "batch.max_tokens=500",
    "validation.max_sentences=20",
    "warmup=20",
];

fn write(folder: &Path) {
    let pairs = builtin::corpus(1, 460).train;
    for (name, part) in [("train", &pairs[..400]), ("test", &pairs[400..440])] {
        let text =
            |side: fn(&(String, String)) -> &String| part.iter().map(|p| format!("{}\n", side(p))).collect();
        let sides: [String; 2] = [text(|p| &p.0), text(|p| &p.1)];
        fs::write(folder.join(format!("{name}.en")), &sides[0]).unwrap();
        fs::write(folder.join(format!("{name}.fr")), &sides[1]).unwrap();
    }
}

fn with_settings<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut all = arguments.to_vec();
    SMALL.iter().for_each(|set| all.extend(["--set", set]));
    all
}

fn train(folder: &Path, source: &str, target: &str, out: &str, seed: &str) {
    let (src, tgt) = (format!("train.{source}"), format!("train.{target}"));
    let run = run(
        folder,
        &with_settings(&[
            "train",
            "--src",
            &src,
            "--tgt",
            &tgt,
            "--preset",
            "tiny",
            "--steps",
            "200",
            "--seed",
            seed,
            "--out",
            out,
            "--threads",
            "2",
            "--set",
            "tokenizer.file=none",
        ]),
    );
    assert_eq!(run.code, 0, "{}", run.err);
}

#[test]
fn a_student_learns_from_its_teachers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder);
    train(folder, "en", "fr", "a", "1");
    train(folder, "en", "fr", "b", "2");
    let arguments = with_settings(&[
        "distill",
        "--teacher",
        "a",
        "--teacher",
        "b",
        "--src",
        "train.en",
        "--test-src",
        "test.en",
        "--test-ref",
        "test.fr",
        "--real-src",
        "train.en",
        "--real-tgt",
        "train.fr",
        "--out",
        "small",
        "--steps",
        "20",
        "--beam",
        "2",
        "--threads",
        "2",
        "--keep",
        "0.5",
    ]);
    let first = run(folder, &arguments);
    assert_eq!(first.code, 0, "{}", first.err);
    let rows: Vec<Vec<&str>> =
        first.out.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
    assert_eq!(rows[0][1..7], ["model", "size (MB)", "beam", "BLEU", "chrF", "words/s"], "{}", first.out);
    let names: Vec<&str> = rows[2..].iter().map(|row| row[1]).collect();
    assert_eq!(names, ["teacher 1", "teacher 2", "teachers together", "student", "student, int8, shortlist"]);
    let size = |row: usize| rows[row][2].parse::<f64>().unwrap();
    assert!(size(4) > 1.9 * size(2) && size(6) < 0.5 * size(5), "{}", first.out);
    assert!(rows[2..].iter().all(|row| row[6].parse::<f64>().unwrap() > 0.0), "{}", first.out);
    assert_eq!(fs::read_to_string(folder.join("small/results.md")).unwrap(), first.out);
    let small = Model::load(&folder.join("small/student-int8")).unwrap();
    assert!(small.shortlist.is_some() && small.languages.target.as_deref() == Some("fr"));
    // About half of the translations are used, beside all real pairs.
    let kept = fs::read_to_string(folder.join("small/text/translation.txt")).unwrap().lines().count();
    assert!((150..=250).contains(&kept), "{kept}");
    assert!(first.err.contains(&format!("{} pairs read", 400 + kept)), "{}", first.err);

    // Again: nothing is translated twice, and the student is finished.
    let again = run(folder, &arguments);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(
        !again.err.contains("lines translated") && again.err.contains("this run is finished"),
        "{}",
        again.err
    );
    // Other teachers need another folder.
    let other = run(
        folder,
        &[
            "distill",
            "--teacher",
            "a",
            "--src",
            "train.en",
            "--test-src",
            "test.en",
            "--test-ref",
            "test.fr",
            "--out",
            "small",
        ],
    );
    assert!(
        other.code == 1 && other.err.contains("small: holds translations by other teachers"),
        "{}",
        other.err
    );
    let nothing = run(folder, &["distill", "--teacher", "a", "--src", "train.en", "--out", "x"]);
    assert!(nothing.code == 2 && nothing.err.contains("there is nothing to evaluate on"), "{}", nothing.err);
}

#[test]
fn back_translation_makes_sources_for_real_targets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder);
    train(folder, "fr", "en", "back", "1");
    let done = run(
        folder,
        &with_settings(&[
            "distill",
            "--reverse",
            "--teacher",
            "back",
            "--src",
            "train.fr",
            "--valid-src",
            "test.en",
            "--valid-tgt",
            "test.fr",
            "--preset",
            "tiny",
            "--out",
            "forth",
            "--steps",
            "20",
            "--beam",
            "1",
            "--threads",
            "2",
            "--keep",
            "1",
        ]),
    );
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("| teacher, the other way "), "{}", done.out);
    let student = Model::load(&folder.join("forth/student")).unwrap();
    assert_eq!(
        (student.languages.source.as_deref(), student.languages.target.as_deref()),
        (Some("en"), Some("fr"))
    );
    // The target side is the real text.
    let real: Vec<String> =
        fs::read_to_string(folder.join("train.fr")).unwrap().lines().map(str::to_owned).collect();
    let config = fs::read_to_string(folder.join("forth/student/logs/config.toml")).unwrap();
    let target = config.lines().find(|line| line.starts_with("tgt = ")).unwrap();
    assert!(target.contains("text/text.txt"), "{target}");
    let used = fs::read_to_string(folder.join("forth/text/text.txt")).unwrap();
    assert!(used.lines().all(|line| real.iter().any(|other| other == line)));
}
