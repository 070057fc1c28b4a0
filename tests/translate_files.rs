//! `regard translate --out`: documents, files of many lines, and models in a row.

use super::translate::{folder, small_model};
use regard::DType;
use regard::formats::Languages;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn regard(arguments: &[&str]) -> Output {
    let mut command = crate::command::regard();
    command.args(arguments);
    crate::command::output(command, b"")
}

fn translate(flags: &[&str]) -> Output {
    let model = folder().to_str().unwrap();
    regard(&[&["translate", "--model", model, "--max-length", "9"], flags].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The one message of a call that fails.
fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    said(output)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

const LINES: &str = "The dog sleeps.\n\nA cat eats. We see the sea.\n12 %\n";

#[test]
fn files_become_files() {
    let scratch = TempDir::new().unwrap();
    let [a, b, out] = ["a.en", "b.txt", "out"].map(|name| scratch.path().join(name));
    std::fs::write(&a, LINES).unwrap();
    std::fs::write(&b, "Two cats.\n").unwrap();
    let [a, b, out] = [&a, &b, &out].map(|path| path.to_str().unwrap());
    let printed = |file: &str| String::from_utf8(translate(&[file]).stdout).unwrap();
    let run = translate(&[a, "-o", out]);
    assert!(run.status.success() && run.stdout.is_empty(), "{}", said(&run));
    assert_eq!(text(out.as_ref()), printed(a));
    // Nothing is left beside it.
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 3);
    // As a document: the same sentences, in their places.
    let document = scratch.path().join("out.txt");
    let run = translate(&[a, "--format", "txt", "--out", document.to_str().unwrap()]);
    assert!(run.status.success(), "{}", said(&run));
    assert_eq!(text(&document), printed(a));
    // Several, into a folder.
    let folder = scratch.path().join("fr");
    let run = translate(&[a, b, "--out", folder.to_str().unwrap()]);
    assert!(run.status.success(), "{}", said(&run));
    assert_eq!(text(&folder.join("a.en")), printed(a));
    assert_eq!(text(&folder.join("b.txt")), printed(b));
}

#[test]
fn what_cannot_be_written_is_refused_first() {
    let scratch = TempDir::new().unwrap();
    let (docx, txt) = (scratch.path().join("report.docx"), scratch.path().join("a.txt"));
    std::fs::write(&docx, "no zip").unwrap();
    std::fs::write(&txt, LINES).unwrap();
    let (docx, txt) = (docx.to_str().unwrap(), txt.to_str().unwrap());
    let out = scratch.path().join("out.docx");
    let out = out.to_str().unwrap();
    for (flags, says) in [
        (&[docx][..], "a docx document is not printed; name the translated file with --out"),
        (&[docx, "--out", out, "--json"], "are for lines of text"),
        (&[docx, "--out", docx], "this is the input"),
        (&[docx, "--out", out], "report.docx: "),
        (&[txt, "--out", out, "--only-empty"], "--only-empty is for documents"),
        (&[txt, txt, "--out", out], "two inputs would become"),
        (&[txt, "--format", "doc", "--out", out], "docx"),
        (&[txt, "--resume"], "--out"),
    ] {
        let message = refusal(&translate(flags));
        assert!(message.contains(says), "{flags:?}: {message}");
    }
    assert!(!Path::new(out).exists());
}

#[test]
fn an_interrupted_file_is_continued() {
    let scratch = TempDir::new().unwrap();
    let [input, out, whole] = ["big.en", "big.fr", "whole.fr"].map(|name| scratch.path().join(name));
    let names = ["dog", "cat", "house", "sea", "apple", "child", "book"];
    let line = |i: usize| format!("The {} sees the {} {i}.\n", names[i % 7], names[i / 7 % 7]);
    std::fs::write(&input, (0..6_000).map(line).collect::<String>()).unwrap();
    let [i, o, w] = [&input, &out, &whole].map(|path| path.to_str().unwrap());
    assert!(translate(&[i, "--out", w]).status.success());
    let mut command = crate::command::regard();
    let model = folder().to_str().unwrap();
    command.args(["translate", "--model", model, "--max-length", "9", i, "--out", o]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let (state, start) = (scratch.path().join("big.fr.part.json"), Instant::now());
    while !state.exists() && !out.exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if out.exists() {
        return; // It was faster.
    }
    assert!(scratch.path().join("big.fr.part").exists());
    // Another input or other settings cannot go on with it.
    let other = scratch.path().join("other.en");
    std::fs::write(&other, text(&input).replace("The dog", "A dog")).unwrap();
    let message = refusal(&translate(&[other.to_str().unwrap(), "--out", o, "--resume"]));
    assert!(message.contains("big.fr.part was made from another input"), "{message}");
    let message = refusal(&translate(&[i, "--out", o, "--resume", "--beam", "2"]));
    assert!(message.contains("other models or settings"), "{message}");
    let run = translate(&[i, "--out", o, "--resume"]);
    assert!(run.status.success() && said(&run).contains("going on after "), "{}", said(&run));
    assert_eq!(text(&out), text(&whole));
    assert!(!state.exists() && !scratch.path().join("big.fr.part").exists());
    // With nothing to continue, it begins.
    std::fs::remove_file(&out).unwrap();
    assert!(translate(&[i, "--out", o, "--resume"]).status.success());
    assert_eq!(text(&out), text(&whole));
}

/// A model of random weights between two languages.
fn model(source: &str, target: &str, seed: u64) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut model = small_model(seed, |_| ()).unwrap();
    model.languages = Languages { source: Some(source.into()), target: Some(target.into()) };
    model.save(folder.path(), DType::F32).unwrap();
    folder
}

#[test]
fn two_models_in_a_row_are_one() {
    let (first, second, back) = (model("de", "en", 5), model("en", "fr", 6), model("en", "de", 7));
    let path = |folder: &TempDir| folder.path().to_str().unwrap().to_owned();
    let (first, second, back) = (path(&first), path(&second), path(&back));
    let line = "The dog sleeps";
    let run = |flags: &[&str], line: &str| {
        let mut command = crate::command::regard();
        command.args(["translate", "--max-length", "9", "--no-split"]).args(flags);
        crate::command::output(command, line.as_bytes())
    };
    let out = |flags: &[&str], line: &str| {
        let output = run(flags, line);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let wanted = out(&["--model", &second], &out(&["--model", &first], line));
    assert_eq!(out(&["--model", &first, "--model", &second], line), wanted);
    assert_eq!(out(&["--model", &second, "--model", &first], line), wanted);
    let all = ["--model", &second, "--model", &first, "--model", &back];
    let named = [&all[..], &["--source-lang", "de", "--target-lang", "fr"]].concat();
    assert_eq!(out(&named, line), wanted);
    let direct = [&all[..], &["--source-lang", "en", "--target-lang", "de"]].concat();
    assert_eq!(out(&direct, line), out(&["--model", &back], line));
    // Of one pair, they are an ensemble.
    let twin = model("de", "en", 5);
    assert_eq!(out(&["--model", &first, "--model", &path(&twin)], line), out(&["--model", &first], line));
    let output = run(&["--model", &first, "--model", &back], line);
    assert!(said(&output).contains("two in a row of which the second reads what the first writes"));
}

#[test]
fn a_text_in_another_language_is_noticed_once() {
    let german = "Der Ausschuss hat gestern beschlossen, die Sitzung auf nächste Woche zu verschieben.\n";
    let mut command = crate::command::regard();
    command.args(["translate", "--model", folder().to_str().unwrap(), "--max-length", "9", "--json"]);
    let output = crate::command::output(command, german.repeat(3).as_bytes());
    let says = "regard: standard input: this looks like German; this model translates from English\n";
    assert_eq!(said(&output).matches(says).count(), 1, "{}", said(&output));
    let line = String::from_utf8(output.stdout).unwrap();
    let value: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    assert!((0.0..=1.0).contains(&value["confidence"].as_f64().unwrap()), "{line}");
}

#[test]
fn terms_and_known_translations_are_used_and_reported() {
    let scratch = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(scratch.path().join(name), text).unwrap();
        scratch.path().join(name).to_str().unwrap().to_owned()
    };
    let model = model("en", "fr", 3);
    let of = |flags: &[&str]| {
        let model = model.path().to_str().unwrap();
        regard(&[&["translate", "--model", model, "--max-length", "12"], flags].concat())
    };
    let terms = write("terms.tsv", "# animals\ndog\tchien\nRegard\t=\n");
    let unit = |a: &str, b: &str| {
        format!("<tu><tuv xml:lang=\"en\"><seg>{a}</seg></tuv><tuv xml:lang=\"fr\"><seg>{b}</seg></tuv></tu>")
    };
    let units = unit("A cat eats.", "Un chat mange.") + &unit("Two lines. Twice.", "Deux lignes.");
    let memory = write("known.tmx", &format!("<tmx version=\"1.4\"><body>{units}</body></tmx>"));
    let lines = "The dog sleeps.\nTwo lines. Twice.\nWe see the sea. A cat eats.\nRegard\n";
    let input = write("input.en", lines);
    let run = of(&["--glossary", &terms, "--memory", &memory, &input]);
    assert!(run.status.success(), "{}", said(&run));
    let out = String::from_utf8(run.stdout.clone()).unwrap();
    let out: Vec<&str> = out.lines().collect();
    // Random weights may not find the term; what is said about it is true in either case.
    let found = out[0].to_lowercase().contains("chien");
    assert_eq!((out[1], out[3]), ("Deux lignes.", "Regard"));
    assert!(out[2].ends_with(" Un chat mange."), "{out:?}");
    let notes = said(&run);
    assert!(notes.contains("1 of 4 lines came from the translation memory, 1 more in part"), "{notes}");
    let count = 1 + usize::from(found);
    assert!(
        notes.contains(&format!("{count} of 2 terms of the glossary are in the translations")),
        "{notes}"
    );
    let lacks = "input.en:1: the translation lacks \"chien\", which the glossary has for \"dog\"";
    assert_eq!(notes.contains(lacks), !found, "{notes}");
    // As JSON.
    let run = of(&["--glossary", &terms, "--memory", &memory, "--json", &input]);
    let values: Vec<serde_json::Value> = run
        .stdout
        .split(|&b| b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let missing = if found { serde_json::json!([]) } else { serde_json::json!([["dog", "chien"]]) };
    assert_eq!(values[0]["terms"], serde_json::json!({"wanted": 1, "missing": missing}));
    let found: Vec<&serde_json::Value> = values.iter().map(|value| &value["memory"]).collect();
    assert_eq!(
        found,
        [&serde_json::Value::Null, &"segment".into(), &"sentences".into(), &serde_json::Value::Null]
    );
    // Objects.
    let record = write("a.jsonl", "{\"text\": \"A cat eats.\\nThe dog sleeps.\"}\n");
    let run = of(&["--glossary", &terms, "--memory", &memory, "--jsonl", &record]);
    let value: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&value["memory"], &value["terms"]["wanted"]), (&"sentences".into(), &1.into()), "{value}");
    // A document.
    let out = scratch.path().join("out.txt");
    let run = of(&[
        "--glossary",
        &terms,
        "--memory",
        &memory,
        "--format",
        "txt",
        "--out",
        out.to_str().unwrap(),
        &input,
    ]);
    assert!(run.status.success() && text(&out).contains("Un chat mange."), "{}", said(&run));
    assert!(said(&run).contains("sentences came from the translation memory"), "{}", said(&run));
    for (flags, says) in [
        (["--glossary", &write("bad.tsv", "a\tb\nno tab\n")], "bad.tsv:2: there is no tab"),
        (["--memory", &write("bad.tmx", "<tmx><tu></tmx>")], "the XML is damaged"),
        (["--memory", &terms], "no unit of a TMX file with both en and fr"),
    ] {
        let error = refusal(&of(&[&flags[..], &[&input]].concat()));
        assert!(error.contains(says), "{error}");
    }
    let error = refusal(&of(&["--glossary", &terms, "--glossary-method", "annotate", &input]));
    let says = "--glossary-method annotate: the model is not trained to read terms; `regard train --terms`";
    assert!(error.contains(says), "{error}");
    let error = refusal(&of(&["--glossary", &terms, "--no-split", &input]));
    assert!(error.contains("--no-split"), "{error}");
}
