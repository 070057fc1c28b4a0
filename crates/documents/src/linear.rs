//! Checks on adversarial texts of 100,000 characters that every function runs in linear time.

use crate::html;
use crate::testing::thread_time;
use crate::words::Word;
use crate::{Document, Translation};
use regard_core::random::Rng;
use regard_core::text::sentence_ranges;
use std::time::{Duration, Instant};

const CHARACTERS: usize = 100_000;

/// The time limit per text and function; ten times as long without optimisation.
const LIMIT: Duration = if cfg!(debug_assertions) { Duration::from_secs(10) } else { Duration::from_secs(1) };

/// Units that, when repeated, are difficult for patterns, quotes, brackets and counters.
const UNITS: [&str; 66] = [
    "1-",
    "𝟙-",
    "a@",
    "<",
    "&",
    "{",
    "((",
    "http://",
    ". ",
    "🙂",
    "\"",
    "'",
    "a",
    "1",
    " ",
    "\n",
    "é",
    "日本",
    "1 ",
    "a. ",
    "A. ",
    "Dr. ",
    "! ",
    "a! ",
    "。",
    "」",
    "。」",
    "…\" ",
    ")) ",
    "@a.",
    "a@b.c",
    "a@b.http://",
    "www.",
    "www.a ",
    "http://.",
    "http://a ",
    "%",
    "%(",
    "%(a",
    "%0",
    "%s ",
    "{a",
    "{{",
    "{a} ",
    "${",
    "}",
    "<a",
    "<a ",
    "</a",
    "<b>",
    "</b>",
    "<b>a ",
    "<a b=\"",
    "<a b='>",
    "<!--",
    "<code>",
    "<kbd>a</kbd> ",
    "<p>",
    "&a;",
    "&#x1;",
    "&amp",
    "\u{e000}",
    "👩\u{200d}",
    "1,",
    "a1",
    "x y, ",
];

/// Runs a function and fails if it exceeds the time limit.
fn timed<T>(what: &str, unit: &str, work: impl FnOnce() -> T) -> T {
    let (wall, before) = (Instant::now(), thread_time());
    let outcome = work();
    let time = thread_time().zip(before).map_or_else(|| wall.elapsed(), |(after, before)| after - before);
    assert!(time < LIMIT, "{what} of {unit:?} took {time:?}");
    outcome
}

/// Translations of a sentence: itself, an empty one, its words in capitals and in reverse order,
/// and one long word.
const TRANSLATIONS: [fn(&str) -> Translation; 4] = [
    |text| Translation::same(text),
    |_| Translation::default(),
    |text| {
        let words: Vec<String> = text.split_whitespace().map(str::to_uppercase).collect();
        Translation(words.iter().enumerate().rev().map(|(i, word)| Word::new(word, Some(i))).collect())
    },
    |text| Translation(vec![Word::new(text.split_whitespace().collect::<String>(), Some(0))]),
];

fn check(unit: &str, text: &str) {
    timed("the sentences", unit, || sentence_ranges(text, None));
    timed("the guard", unit, || crate::guard::fault(text, text));
    for (kind, read) in [("plain text", Document::plain as fn(&str) -> Document), ("HTML", html::document)] {
        let document = timed(kind, unit, || read(text));
        timed("the words", unit, || document.words());
        timed("the text so far", unit, || {
            document.render_partial(|i| Some(document.sentences[i].text.clone()))
        });
        for make in TRANSLATIONS {
            let mut translation: Vec<Translation> =
                document.sentences.iter().map(|s| make(&s.text)).collect();
            let name = format!("restoring {kind}");
            timed(&name, unit, || {
                document
                    .sentences
                    .iter()
                    .zip(&mut translation)
                    .for_each(|(s, translation)| s.restore(translation));
            });
            timed(&format!("rendering {kind}"), unit, || document.render(text, &translation));
        }
    }
}

fn repeated(unit: &str) -> String {
    unit.chars().cycle().take(CHARACTERS).collect()
}

#[test]
fn repeated_units_take_linear_time() {
    for unit in UNITS {
        check(unit, &repeated(unit));
        // Adds something translatable at the end, and white space in between.
        let spaced: String =
            format!("{unit} ").chars().cycle().take(CHARACTERS - 10).chain(" dogs run.".chars()).collect();
        check(unit, &spaced);
    }
}

#[test]
fn random_units_take_linear_time() {
    let mut random = Rng::new(5);
    for _ in 0..24 {
        let count = 2 + random.below(6);
        let some: Vec<&str> = (0..count).map(|_| UNITS[random.below(UNITS.len())]).collect();
        let mut text = String::new();
        let mut characters = 0;
        while characters < CHARACTERS {
            let unit = some[random.below(count)];
            text.push_str(unit);
            characters += unit.chars().count();
        }
        check(&some.join("|"), &text);
    }
}
