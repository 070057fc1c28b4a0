//! Detection of the language of one to five words: `whatlang`, which the program uses, against
//! `lingua`.
//!
//!     cargo run --release -- sentences.tsv en=flores.en de=flores.de pt=flores.pt
//!
//! The first file has a language, a tab and a line of text per line, such as
//! `crates/regard-core/tests/data/sentences.tsv`; the others are text in one language. Both
//! detectors choose among the same 17 languages. Every line gives one text of each number of words,
//! from its middle.

use lingua::{Language, LanguageDetectorBuilder};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use whatlang::{Detector, Lang};

const LANGUAGES: [(&str, Lang, Language); 17] = [
    ("cs", Lang::Ces, Language::Czech),
    ("da", Lang::Dan, Language::Danish),
    ("de", Lang::Deu, Language::German),
    ("el", Lang::Ell, Language::Greek),
    ("en", Lang::Eng, Language::English),
    ("es", Lang::Spa, Language::Spanish),
    ("fi", Lang::Fin, Language::Finnish),
    ("fr", Lang::Fra, Language::French),
    ("hu", Lang::Hun, Language::Hungarian),
    ("it", Lang::Ita, Language::Italian),
    ("nl", Lang::Nld, Language::Dutch),
    ("pl", Lang::Pol, Language::Polish),
    ("pt", Lang::Por, Language::Portuguese),
    ("ru", Lang::Rus, Language::Russian),
    ("sv", Lang::Swe, Language::Swedish),
    ("tr", Lang::Tur, Language::Turkish),
    ("uk", Lang::Ukr, Language::Ukrainian),
];

/// Texts of a language and what was found of them: how many there are, right by whatlang and by
/// lingua.
type Counts = BTreeMap<(String, usize), [usize; 3]>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut lines: Vec<(String, String, &str)> = Vec::new();
    for argument in &arguments {
        match argument.split_once('=') {
            Some((code, path)) => {
                lines.extend(read(path).lines().map(|line| (code.to_owned(), line.to_owned(), "long")));
            }
            None => {
                let file = read(argument);
                let pairs = file.lines().filter_map(|line| line.split_once('\t'));
                lines.extend(pairs.map(|(code, text)| (code.to_owned(), text.replace('‖', ""), "hard")));
            }
        }
    }
    lines.retain(|(code, ..)| LANGUAGES.iter().any(|(known, ..)| known == code));
    let whatlang = Detector::with_allowlist(LANGUAGES.iter().map(|(_, lang, _)| *lang).collect());
    let languages: Vec<Language> = LANGUAGES.iter().map(|(_, _, language)| *language).collect();
    let start = Instant::now();
    let lingua = LanguageDetectorBuilder::from_languages(&languages).with_preloaded_language_models().build();
    println!("lingua loads its models in {:.1} s", start.elapsed().as_secs_f64());
    let (mut counts, mut times) = (Counts::new(), [Duration::ZERO; 2]);
    for (code, line, kind) in &lines {
        let words: Vec<&str> = line.split_whitespace().filter(|w| w.contains(char::is_alphabetic)).collect();
        for length in 1..=5 {
            let Some(start) = words.len().checked_sub(length) else { continue };
            let text = words[start / 2..start / 2 + length].join(" ");
            let clock = Instant::now();
            let first = whatlang.detect_lang(&text);
            times[0] += clock.elapsed();
            let clock = Instant::now();
            let second = lingua.detect_language_of(&text);
            times[1] += clock.elapsed();
            let right = |lang: Option<Lang>| LANGUAGES.iter().any(|(c, l, _)| c == code && Some(*l) == lang);
            let same = second.is_some_and(|l| l.iso_code_639_1().to_string() == *code);
            let name = if *kind == "hard" { "all of the first file".to_owned() } else { code.clone() };
            let count = counts.entry((name, length)).or_default();
            count[0] += 1;
            count[1] += usize::from(right(first));
            count[2] += usize::from(same);
        }
    }
    println!("| text | words | texts | whatlang | lingua |\n|---|---|---|---|---|");
    for ((code, length), [all, a, b]) in &counts {
        let share = |part: &usize| 100.0 * *part as f64 / *all as f64;
        println!("| {code} | {length} | {all} | {:.1} % | {:.1} % |", share(a), share(b));
    }
    let all: usize = counts.values().map(|count| count[0]).sum();
    let each = |time: Duration| 1e6 * time.as_secs_f64() / all as f64;
    println!("microseconds a text: whatlang {:.0}, lingua {:.0}", each(times[0]), each(times[1]));
}
