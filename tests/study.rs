//! `regard study`: the list, what is refused, and what a run prints and writes.

use crate::cli::run;
use std::fs;
use std::path::Path;

#[test]
fn without_a_name_the_studies_are_listed() {
    let listed = run(Path::new("."), &["study"]);
    assert_eq!((listed.code, listed.err.as_str()), (0, ""));
    let names: Vec<&str> = listed.out.lines().filter_map(|line| line.split(' ').next()).collect();
    for study in regard_studies::studies() {
        assert!(names.contains(&study.name), "{} in {names:?}", study.name);
    }
    assert_eq!(names.last(), Some(&"all"));
}

#[test]
fn an_unknown_name_gets_the_list() {
    let result = run(Path::new("."), &["study", "scale", "scales"]);
    assert_eq!((result.code, result.out.as_str()), (2, ""));
    assert!(result.err.starts_with("regard: scales: no such study; accepted: "), "{}", result.err);
    assert!(result.err.contains("smooth-maximum") && result.err.trim_end().ends_with(", all"));
    assert_eq!(run(Path::new("."), &["study", "--full"]).code, 2);
    assert_eq!(run(Path::new("."), &["study", "scale", "--threads", "0"]).code, 2);
}

#[test]
fn a_study_prints_its_tables_and_writes_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(folder.path(), &["study", "smooth-maximum", "--smoke", "--out", "report"]);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.out.contains("ln(n)/k") && result.out.contains("safe form"), "{}", result.out);
    assert!(result.err.contains("the report is in report"), "{}", result.err);
    let report = folder.path().join("report");
    let page = fs::read_to_string(report.join("index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("regard study smooth-maximum --smoke --seed 1"));
    // The question and the answer come before any number, and formulas are MathML.
    let question = "Where does softmax come from, and why the exponential?";
    assert!(page.find(question).unwrap() < page.find("<math").unwrap(), "{page}");
    assert!(!page.contains("e^{") && !page.contains('$'));
    assert!(result.out.lines().nth(1).is_some_and(|line| line == question), "{}", result.out);
    assert!(result.out.contains("ln(Σ eᵏˣ)/k") && !result.out.contains('$'), "{}", result.out);
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(report.join("report.json")).unwrap()).unwrap();
    assert_eq!(json["question"][0], question);
    let csv = fs::read_to_string(report.join("error.csv")).unwrap();
    assert!(csv.starts_with("n,k,mean error,"), "{csv}");
    assert!(report.join("error.svg").exists());
    // The same seed gives the same numbers.
    let again = run(folder.path(), &["study", "smooth-maximum", "--smoke"]);
    assert_eq!(again.out, result.out);
    let other = run(folder.path(), &["study", "smooth-maximum", "--smoke", "--seed", "2"]);
    assert_ne!(other.out, result.out);
}

#[test]
fn several_studies_get_a_folder_each_and_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(folder.path(), &["study", "scale", "smooth-maximum", "--smoke", "--out", "all"]);
    assert_eq!(result.code, 0, "{}", result.err);
    let index = fs::read_to_string(folder.path().join("all/index.html")).unwrap();
    for name in ["scale", "smooth-maximum"] {
        assert!(index.contains(&format!("href=\"{name}/index.html\"")), "{name}");
        assert!(folder.path().join("all").join(name).join("index.html").exists());
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("all/index.json")).unwrap(),
        "[\"scale\",\"smooth-maximum\"]\n"
    );
    fs::write(folder.path().join("file"), "").unwrap();
    let refused = run(folder.path(), &["study", "scale", "--smoke", "--out", "file"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("regard: file: "), "{}", refused.err);
}
