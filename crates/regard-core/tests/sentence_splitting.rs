//! Where sentences end, on lines that were written to be hard: `data/sentences.tsv`.

use regard_core::text::sentence_ranges;
use std::collections::BTreeMap;

const LINES: &str = include_str!("data/sentences.tsv");

/// For each language, how many lines there are and how many are split as they should be.
fn counts(language: impl Fn(&'static str) -> Option<&'static str>) -> BTreeMap<&'static str, (usize, usize)> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for line in LINES.lines().filter(|line| !line.starts_with('#')) {
        let (code, marked) = line.split_once('\t').unwrap();
        let text = marked.replace('‖', "");
        let found: Vec<&str> =
            sentence_ranges(&text, language(code)).into_iter().map(|range| &text[range]).collect();
        let right = found == marked.split('‖').map(str::trim).collect::<Vec<_>>();
        let (lines, good) = counts.entry(code).or_default();
        *lines += 1;
        *good += usize::from(right);
        if !right {
            println!("{code}: {}", found.join("‖"));
        }
    }
    counts
}

fn share(counts: &BTreeMap<&str, (usize, usize)>) -> f64 {
    let (lines, good) = counts.values().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
    println!("{good} of {lines}: {counts:?}");
    good as f64 / lines as f64
}

#[test]
fn hard_lines_are_split_where_they_should_be() {
    let of_language = counts(Some);
    assert!(of_language.len() >= 30 && of_language.values().map(|n| n.0).sum::<usize>() >= 390);
    assert!(share(&of_language) >= 0.99);
    for (code, (lines, good)) in of_language {
        assert!(lines - good <= 1, "{code}: {good} of {lines}");
    }
    // Without the language, the abbreviations of all of them.
    assert!(share(&counts(|_| None)) >= 0.97);
}

#[test]
fn a_code_may_name_a_country_or_a_script() {
    let text = "Am 3. Oktober. Danach.";
    for code in ["de", "de-AT", "deu", "deu_Latn"] {
        assert_eq!(sentence_ranges(text, Some(code)), [0..14, 15..22], "{code}");
    }
}

/// Four times the text takes about four times as long, not sixteen times.
#[test]
fn awkward_texts_take_linear_time() {
    let units = [
        "\"a. ",
        "«b. ",
        "(A. ",
        "a.b.c. ",
        ".",
        "[1",
        ".[1",
        ". ",
        " . »",
        "\"",
        "1. ",
        "« ! ",
        "》。《。",
        "( ",
        "A.",
        "J. S. ",
        "।",
        "? \" ",
    ];
    for unit in units {
        for text in
            [unit.repeat(200_000 / unit.len()), "(".repeat(100_000) + &unit.repeat(100_000 / unit.len())]
        {
            let start = std::time::Instant::now();
            let count = sentence_ranges(&text, Some("fr")).len();
            let seconds = start.elapsed().as_secs_f64();
            // Quadratic time would be minutes.
            assert!(seconds < 5.0, "{unit:?}: {count} sentences in {seconds} s");
        }
    }
}
