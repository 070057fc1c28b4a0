//! What a check of parallel text finds, and what it leaves alone.

use regard_sample_corpus as builtin;
use regard_train::corpus::{CheckReport, CheckSettings, Inputs, Problem, Severity, check};
use std::fs;
use std::path::{Path, PathBuf};

const SETTINGS: CheckSettings<'_> =
    CheckSettings { languages: (None, None), other_language: None, most: None, from_scratch: false };

fn corpus(count: usize) -> Vec<(String, String)> {
    builtin::corpus(5, count + 200).train.into_iter().take(count).collect()
}

fn write(folder: &Path, name: &str, lines: impl Iterator<Item = String>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, lines.map(|line| line + "\n").collect::<String>()).unwrap();
    path
}

/// The report about these pairs.
fn look(pairs: &[(String, String)], valid: Option<&[(String, String)]>) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    let files = |name: &str, pairs: &[(String, String)]| Inputs::Files {
        source: vec![write(folder.path(), &format!("{name}.en"), pairs.iter().map(|p| p.0.clone()))],
        target: vec![write(folder.path(), &format!("{name}.fr"), pairs.iter().map(|p| p.1.clone()))],
    };
    let (train, valid) = (files("train", pairs), valid.map(|pairs| files("valid", pairs)));
    check(&train, valid.as_ref(), SETTINGS).unwrap()
}

fn problems(report: &CheckReport) -> Vec<(Problem, u64)> {
    report.problems().map(|finding| (finding.check, finding.count)).collect()
}

#[test]
fn sound_text_has_no_problem() {
    let report = look(&corpus(3000), Some(&[("never seen".into(), "jamais vu".into())]));
    assert_eq!(problems(&report), [], "{report:#?}");
    assert_eq!((report.pairs, report.usable, report.validation_pairs, report.whole), (3000, 3000, 1, true));
}

#[test]
fn shifted_sides_are_found_where_they_begin() {
    let pairs = corpus(3000);
    for (first, missing_target) in [(0, true), (1200, true), (1200, false)] {
        let (mut source, mut target): (Vec<String>, Vec<String>) = pairs.iter().cloned().unzip();
        // One line is lost, and the last of the other side with it.
        if missing_target {
            target.remove(first);
            source.pop();
        } else {
            source.remove(first);
            target.pop();
        }
        let shifted: Vec<_> = source.into_iter().zip(target).collect();
        let report = look(&shifted, None);
        let found = report.findings.iter().find(|f| f.check == Problem::Shifted);
        let found = found.unwrap_or_else(|| panic!("from {first}: {report:#?}"));
        assert_eq!(found.severity, Severity::Problem);
        assert!(found.count as usize >= 3000 - first - 500, "{found:?}");
        let line: usize = found.examples[0].place.rsplit(':').next().unwrap().parse().unwrap();
        assert!(line.abs_diff(first + 1) <= 400, "{found:?}");
        let way = if missing_target { "one line earlier" } else { "one line later" };
        assert!(found.examples[0].text.contains(way), "{found:?}");
    }
    // Targets in another order belong to nothing.
    let (source, mut target): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
    target.rotate_left(1234);
    let report = look(&source.into_iter().zip(target).collect::<Vec<_>>(), None);
    assert!(problems(&report).iter().any(|(problem, _)| *problem == Problem::Unrelated), "{report:#?}");
}

#[test]
fn what_is_the_same_there_twice_or_damaged_is_counted() {
    let mut pairs = corpus(1000);
    for (source, target) in &mut pairs[..200] {
        target.clone_from(source);
    }
    let (start, end) = pairs.split_at_mut(500);
    end[..300].clone_from_slice(&start[200..500]);
    pairs[900].0 = "FÃ¼nf Hunde".into();
    pairs[901].1 = "caf\u{fffd}".into();
    pairs[902].0 = String::new();
    (pairs[903].0, pairs[903].1) = (String::new(), String::new());
    let valid = [pairs[10].clone(), pairs[11].clone(), ("new".into(), "neuf".into())];
    let report = look(&pairs, Some(&valid));
    let of = |problem: Problem| report.findings.iter().find(|finding| finding.check == problem).unwrap();
    assert_eq!(of(Problem::Identical).count, 200);
    assert_eq!(of(Problem::Identical).severity, Severity::Problem);
    assert_eq!(of(Problem::Duplicate).count, 300);
    assert_eq!((of(Problem::InValidation).count, of(Problem::InValidation).of), (2, 3));
    assert_eq!(of(Problem::Damaged).count, 2);
    assert_eq!(of(Problem::Damaged).examples[0].text, "FÃ¼nf Hunde");
    assert!(of(Problem::Damaged).examples[1].place.ends_with("train.fr:902"), "{report:#?}");
    assert_eq!((of(Problem::OneSideEmpty).count, of(Problem::OneSideEmpty).severity), (1, Severity::Note));
    assert_eq!(of(Problem::BothSidesEmpty).count, 1);
    // Problems come first.
    let severities: Vec<_> = report.findings.iter().map(|finding| finding.severity).collect();
    assert!(severities.is_sorted_by(|a, b| a >= b), "{severities:?}");
    assert!(report.findings.iter().all(|finding| !finding.advice.is_empty() && !finding.message.is_empty()));
}

#[test]
fn little_text_is_a_problem_only_for_a_new_model() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = corpus(100);
    let file = write(folder.path(), "a.tsv", pairs.iter().map(|(s, t)| format!("{s}\t{t}")));
    let inputs = Inputs::pairs(file);
    let report = check(&inputs, None, CheckSettings { from_scratch: true, ..SETTINGS }).unwrap();
    assert_eq!(problems(&report), [(Problem::TooLittle, 100)]);
    assert_eq!(problems(&check(&inputs, None, SETTINGS).unwrap()), []);
    // A quick look says nothing about what it has not seen.
    let quick = CheckSettings { from_scratch: true, most: Some(50), ..SETTINGS };
    let report = check(&inputs, None, quick).unwrap();
    assert_eq!((report.pairs, report.whole, problems(&report).len()), (50, false, 0));
}

#[test]
fn languages_are_compared_with_what_they_should_be() {
    let folder = tempfile::tempdir().unwrap();
    // Words of two invented languages.
    let is = |text: &str| if text.starts_with("la") { "xx" } else { "yy" };
    let other = |text: &str, expected: &str| (is(text) != expected).then(|| is(text));
    let report = |rows: &[(&str, &str)], languages| {
        let file = write(folder.path(), "a.tsv", rows.iter().map(|(s, t)| format!("{s}\t{t}")));
        let settings = CheckSettings { languages, other_language: Some(&other), ..SETTINGS };
        check(&Inputs::pairs(file), None, settings).unwrap()
    };
    let rows: Vec<(&str, &str)> = vec![("lala", "bobo"); 50];
    assert_eq!(problems(&report(&rows, (Some("xx"), Some("yy")))), [(Problem::Duplicate, 49)]);
    let swapped = report(&rows, (Some("yy"), Some("xx")));
    assert_eq!(problems(&swapped)[0], (Problem::Swapped, 50));
    assert!(!swapped.findings.iter().any(|f| f.check == Problem::SourceLanguage), "{swapped:#?}");
    let wrong = report(&rows, (Some("xx"), Some("zz")));
    let finding = wrong.problems().find(|f| f.check == Problem::TargetLanguage).unwrap();
    assert_eq!((finding.count, finding.of, finding.language.as_deref()), (50, 50, Some("yy")));
    assert!(finding.message.contains("most often yy"), "{finding:?}");
    assert_eq!(finding.examples.len(), 3);
}
