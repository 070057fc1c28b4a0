//! Checks that apply to every study, on a run at smoke scale.

use crate::{Part, Report, Scale, Setup, Study};
use regard_plot::math::{Piece, pieces};
use std::collections::HashSet;

/// Runs the study at smoke scale and checks the parts of its report. Returns the report for checks
/// of the study's own claims.
pub(crate) fn smoke(study: &Study) -> Report {
    let report = study.run(&Setup::new(Scale::Smoke)).unwrap();
    assert_eq!(report.title(), study.title);
    assert!(!report.found().is_empty(), "a summary is missing");
    assert!(report.question().ends_with('?'), "{}", report.question());
    let answer = report.answered();
    assert!(!answer.is_empty(), "an answer is missing");
    assert!(!answer.contains(|c: char| c.is_ascii_digit()), "the answer is in words: {answer}");
    let [title, question, chinese] = report.chinese();
    assert!(!title.is_empty() && question.ends_with(['？', '?']), "{question}");
    assert!(chinese.ends_with('。') && !chinese.contains(|c: char| c.is_ascii_digit()), "{chinese}");
    assert!(!report.tables_as_text().contains('$'), "a formula that is not closed");
    let texts = report.parts().iter().filter_map(|part| match part {
        Part::Heading(text) | Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    for text in texts.chain([report.title(), report.found()]) {
        let words =
            pieces(text).into_iter().filter_map(|p| if let Piece::Words(w) = p { Some(w) } else { None });
        for words in words {
            assert!(!words.contains(['^', '_', '{', '$']), "a formula in plain letters: {words}");
        }
    }
    assert!(report.tables().next().is_some() && report.pictures().next().is_some());
    // A table and a picture with the same name are two files.
    let tables = report.tables().map(|t| format!("{}.csv", t.name));
    let mut seen = HashSet::new();
    for file in tables.chain(report.pictures().map(|p| format!("{}.svg", p.name))) {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(!file.starts_with('.') && file.chars().all(plain), "{file}: not a name of a file");
        assert!(seen.insert(file.clone()), "{file}: twice");
    }
    for table in report.tables() {
        assert!(!table.caption.is_empty() && !table.rows.is_empty(), "{}: empty", table.name);
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "{}: {row:?}", table.name);
        }
    }
    for picture in report.pictures() {
        let svg = picture.drawing.to_svg();
        assert!(!picture.caption.is_empty(), "{}: no caption", picture.name);
        assert!(!svg.contains("no data"), "{}: nothing is drawn", picture.name);
        roxmltree::Document::parse(&svg).unwrap();
    }
    report
}

#[test]
fn names_are_unique_and_found() {
    let mut seen = HashSet::new();
    for study in crate::studies() {
        assert!(seen.insert(study.name), "{}", study.name);
        assert_eq!(crate::find(study.name).unwrap().title, study.title);
        assert!(!study.about.is_empty() && study.about.chars().count() <= 110, "{}", study.about);
    }
    assert!(crate::find("all").is_none(), "all is not a name: it means every study");
}
