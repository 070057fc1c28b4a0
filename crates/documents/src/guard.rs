//! Detects degenerate translations.
//!
//! A translation has a [`Fault`] if it
//!
//! 1. has no letter or digit, although the source has letters;
//! 2. repeats itself: a unit of up to [`LONGEST_PERIOD`] characters occurs at least three times in
//!    a row over at least 24 characters (or five times over 10), and this covers more than twice as
//!    much text as any repetition in the source; or more than two thirds of at least 12 words are
//!    repeats of earlier ones, and at most one third in the source;
//! 3. is too long: more than 30 characters longer than three times the source;
//! 4. is too short: less than a quarter of a source of at least 30 characters;
//! 5. is identical to a source of at least three words in capitals.
//!
//! Chinese, Japanese and Korean characters count as more than one in these lengths, because texts
//! in these scripts are that much shorter. A faulty sentence is translated once more with [`safer`]
//! settings, in lower case if it was in capitals, and the better of the two translations is kept.

use regard_core::decode::SearchOptions;
use regard_core::translator::{Candidate, Line};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// What is wrong with a translation; later variants are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It is identical to the source, which is in capitals.
    Untranslated,
    /// It is far too short for its source.
    TooShort,
    /// It is far too long for its source.
    TooLong,
    /// It repeats itself.
    Repetition,
    /// It has no letters or digits.
    Empty,
}

impl Fault {
    /// A short description of the fault.
    pub fn describe(self) -> &'static str {
        match self {
            Fault::Untranslated => "not translated",
            Fault::TooShort => "far too short",
            Fault::TooLong => "far too long",
            Fault::Repetition => "repeats itself",
            Fault::Empty => "empty",
        }
    }
}

/// A sentence whose first translation was degenerate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Guarded {
    /// The fault of the first translation.
    pub fault: Fault,
    /// The fault of the translation that was kept; `None` if the second attempt is good.
    pub left: Option<Fault>,
}

/// The length in characters of the longest repeated unit that is detected.
pub const LONGEST_PERIOD: usize = 48;

/// The fault of a translation, if it has one.
///
/// ```
/// use regard_documents::guard::{Fault, fault};
/// assert_eq!(fault("Settings", "Einstellungen"), None);
/// let looping = "Einstellungen Einstellungen Einstellungen Einstellungen";
/// assert_eq!(fault("Settings", looping), Some(Fault::Repetition));
/// ```
pub fn fault(source: &str, target: &str) -> Option<Fault> {
    let letters = source.chars().any(char::is_alphabetic);
    if letters && !target.chars().any(char::is_alphanumeric) {
        return Some(Fault::Empty);
    }
    if repeats(source, target) {
        return Some(Fault::Repetition);
    }
    let (from, to) = (length(source), length(target));
    if to > 3 * from + 30 {
        return Some(Fault::TooLong);
    }
    if from >= 30 && 4 * to < from {
        return Some(Fault::TooShort);
    }
    let same = || target.to_lowercase() == source.to_lowercase();
    if is_all_caps(source) && source.split_whitespace().count() >= 3 && same() {
        return Some(Fault::Untranslated);
    }
    None
}

/// The length in characters of an equivalent text in an alphabetic script.
fn length(text: &str) -> usize {
    let weight = |c: char| match c {
        '\u{ac00}'..='\u{d7af}' => 2,
        '\u{3040}'..='\u{30ff}' => 2,
        '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => 3,
        _ => 1,
    };
    text.trim().chars().map(weight).sum()
}

fn repeats(source: &str, target: &str) -> bool {
    let of_target = periodic(target);
    if of_target > 0 && of_target > 2 * periodic(source) {
        return true;
    }
    let words: Vec<String> = target.split_whitespace().map(str::to_lowercase).collect();
    if words.len() < 12 {
        return false;
    }
    let new = |words: &[String]| words.iter().collect::<HashSet<_>>().len();
    let source: Vec<String> = source.split_whitespace().map(str::to_lowercase).collect();
    3 * new(&words) < words.len() && 3 * new(&source) >= 2 * source.len()
}

/// The length in characters of the longest stretch in which a short unit repeats at least three
/// times; 0 if no repetition is significant.
fn periodic(text: &str) -> usize {
    // A space after the last word makes it match the other words.
    let characters: Vec<char> = text.chars().flat_map(char::to_lowercase).chain([' ']).collect();
    let mut longest = 0;
    for period in 1..=LONGEST_PERIOD.min(characters.len() / 3) {
        // A stretch counts if it has three units and 24 characters, or five units and 10. All of
        // its characters but the last unit recur one period later: at least `shortest` in a row.
        let shortest = (2 * period).max(24_usize.saturating_sub(period));
        let shortest = shortest.min((4 * period).max(10_usize.saturating_sub(period)));
        let end = characters.len() - period;
        let repeats = |at: usize| characters[at] == characters[at + period];
        // Every such stretch contains one of the positions that are tried.
        let mut at = shortest - 1;
        while at < end {
            let mut next = at + 1;
            if repeats(at) {
                let mut start = at;
                while start > 0 && repeats(start - 1) {
                    start -= 1;
                }
                while next < end && repeats(next) {
                    next += 1;
                }
                if next - start >= shortest {
                    longest = longest.max(next - start + period);
                }
            }
            at = next + shortest - 1;
        }
    }
    longest
}

/// Whether a text is in capitals: it has at least four of them and no lower-case letters.
pub fn is_all_caps(text: &str) -> bool {
    let mut capitals = 0;
    for c in text.chars() {
        if c.is_lowercase() {
            return false;
        }
        capitals += usize::from(c.is_uppercase());
    }
    capitals >= 4
}

/// The input of the second attempt: text in capitals becomes lower case except for its first
/// letter.
pub(crate) fn second_attempt(source: &str) -> String {
    if !is_all_caps(source) {
        return source.to_owned();
    }
    let mut first = true;
    let mut text = String::with_capacity(source.len());
    for c in source.chars() {
        if c.is_alphabetic() && std::mem::take(&mut first) {
            text.push(c);
        } else {
            text.extend(c.to_lowercase());
        }
    }
    text
}

/// The search options of a second attempt: a beam of at least four, no repeated trigram, a penalty
/// on repeated tokens, and no sampling.
pub fn safer(options: &SearchOptions) -> SearchOptions {
    let ngram = if options.no_repeat_ngram == 0 { 3 } else { options.no_repeat_ngram.min(3) };
    SearchOptions {
        beam: options.beam.max(4),
        no_repeat_ngram: ngram,
        repetition_penalty: options.repetition_penalty.max(1.2),
        sampling: None,
        ..options.clone()
    }
}

/// The better of two attempts and its remaining fault. `second` must be the translation of
/// [`second_attempt`].
pub(crate) fn better(source: &str, fault_of_first: Fault, first: Line, second: Line) -> (Line, Guarded) {
    let capitals = is_all_caps(source);
    let mut second = second;
    if capitals {
        second.candidates.iter_mut().for_each(raise);
    }
    let left = fault(source, &second.best().text);
    // A second attempt that still equals the source is a name, and no worse than the first.
    let wins = left.is_none_or(|left| left < fault_of_first);
    let (line, left) = if wins { (second, left) } else { (first, Some(fault_of_first)) };
    (line, Guarded { fault: fault_of_first, left })
}

fn raise(candidate: &mut Candidate) {
    candidate.text = candidate.text.to_uppercase();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_found() {
        for (source, target) in [
            ("Settings", "Einstellungen Einstellungen Einstellungen"),
            ("OK", "Ok Ok Ok Ok Ok Ok"),
            ("Table of contents", "Índice do índice do índice do índice do índice"),
            ("Chapter 4", "Capítulo 4 ................................"),
            ("目录", "目录目录目录目录目录目录目录"),
            ("He came and saw the large house on the hill.", "a b a c b a c a b c b a b c a c"),
        ] {
            assert_eq!(fault(source, target), Some(Fault::Repetition), "{target}");
        }
    }

    #[test]
    fn skipping_finds_what_looking_everywhere_finds() {
        let everywhere = |text: &str| {
            let characters: Vec<char> = text.chars().chain([' ']).collect();
            let mut longest = 0;
            for period in 1..=LONGEST_PERIOD.min(characters.len() / 3) {
                let mut run = 0;
                for (a, b) in characters.iter().zip(&characters[period..]) {
                    run = if a == b { run + 1 } else { 0 };
                    let (covered, times) = (run + period, (run + period) / period);
                    if (times >= 3 && covered >= 24) || (times >= 5 && covered >= 10) {
                        longest = longest.max(covered);
                    }
                }
            }
            longest
        };
        let (mut seed, mut found) = (1u32, 0);
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..3000 {
            let letters = |random: &mut dyn FnMut(u32) -> u32, count: u32, kinds: u32| -> String {
                (0..count).filter_map(|_| char::from_u32(u32::from(b'a') + random(kinds))).collect()
            };
            let (before, unit, times) = (random(30), 1 + random(12), 1 + random(7));
            let unit = letters(&mut random, unit, 4);
            let text =
                letters(&mut random, before, 3) + &unit.repeat(times as usize) + &letters(&mut random, 20, 3);
            assert_eq!(periodic(&text), everywhere(&text), "{text}");
            found += usize::from(periodic(&text) > 0);
        }
        assert!((500..2500).contains(&found), "{found}");
    }

    #[test]
    fn what_the_source_repeats_may_be_repeated() {
        for (source, target) in [
            ("No, no, no, no, no, no!", "Nein, nein, nein, nein, nein, nein!"),
            (
                "1 Introduction .............................. 3",
                "1 Introdução .............................. 3",
            ),
            ("ha ha ha ha ha ha ha", "há há há há há há há"),
            ("----------------------------", "----------------------------"),
            ("1.1.1.1.1.1.1.1.1", "1.1.1.1.1.1.1.1.1"),
            ("Bora Bora", "Bora Bora"),
            ("The dog saw the dog that saw the dog.", "O cão viu o cão que viu o cão."),
            ("10000000000000000000000000000", "10000000000000000000000000000"),
        ] {
            assert_eq!(fault(source, target), None, "{target}");
        }
    }

    #[test]
    fn it_costs_little() {
        // A model takes roughly ten milliseconds for such a sentence.
        let source =
            "The committee met on Tuesday to discuss the new budget for the library, and then went home.";
        let target = "A comissão reuniu-se na terça-feira para discutir o novo orçamento da biblioteca e foi para casa.";
        let start = std::time::Instant::now();
        for _ in 0..1_000 {
            assert_eq!(fault(source, target), None);
        }
        let each = start.elapsed() / 1_000;
        println!("{each:?} for a sentence");
        assert!(each < std::time::Duration::from_micros(500), "{each:?}");
    }

    #[test]
    fn lengths_are_bounded_on_both_sides() {
        let long = "The committee met on Tuesday to discuss the new budget for the library.";
        assert_eq!(fault(long, "O comité."), Some(Fault::TooShort));
        assert_eq!(fault(long, "委员会星期二开会讨论图书馆的新预算。"), None);
        assert_eq!(fault("委员会星期二开会。", long), None);
        assert_eq!(fault("Yes", "um dois três quatro cinco seis sete oito nove"), Some(Fault::TooLong));
        assert_eq!(fault("Yes", "Sim, é isso mesmo"), None);
        assert_eq!(fault("Yes", ""), Some(Fault::Empty));
        assert_eq!(fault("Yes", " . "), Some(Fault::Empty));
        assert_eq!(fault("12 %", "%"), None);
    }

    #[test]
    fn capitals_are_lowered_and_raised_again() {
        assert_eq!(fault("DO NOT ENTER", "DO NOT ENTER"), Some(Fault::Untranslated));
        assert_eq!(fault("NATO EU", "NATO EU"), None);
        assert_eq!(second_attempt("«DO NOT ENTER» NOW"), "«Do not enter» now");
        assert_eq!(second_attempt("Do not enter"), "Do not enter");
        let line = |text: &str| {
            let mut line = Line { parts: 1, ..Line::default() };
            line.candidates.push(Candidate { text: text.into(), ..line.best() });
            line
        };
        let (kept, guarded) =
            better("DO NOT ENTER", Fault::Untranslated, line("DO NOT ENTER"), line("Não entrar"));
        assert_eq!((kept.best().text.as_str(), guarded.left), ("NÃO ENTRAR", None));
        let (kept, guarded) = better("Yes", Fault::TooLong, line("sim e não"), line(""));
        assert_eq!((kept.best().text.as_str(), guarded.left), ("sim e não", Some(Fault::TooLong)));
    }
}
