//! Finds likely problems of parallel text in one pass, before training on it.
//!
//! Everything is streamed: memory holds a few examples of each finding, counters, and a bounded
//! number of pair hashes.

mod alignment;
mod damage;
mod findings;
mod pair_hashes;

pub use findings::{CheckReport, Example, Finding, Problem, Severity};

use std::collections::HashMap;

use super::filter::hash;
use super::{Filters, Inputs, Pair, Pairs, Side};
use alignment::Alignment;
use pair_hashes::PairHashes;
use regard_core::Result;

/// Language identification: given a text and the code of its expected language, returns the code of
/// the actual language if that is certainly another one.
pub type OtherLanguage<'a> = &'a dyn Fn(&str, &str) -> Option<&'static str>;

/// Settings of a corpus check.
#[derive(Clone, Copy)]
pub struct CheckSettings<'a> {
    /// The expected languages of the sides; a side without one is not checked.
    pub languages: (Option<&'a str>, Option<&'a str>),
    /// The language identifier; without it, languages are not checked.
    pub other_language: Option<OtherLanguage<'a>>,
    /// The number of pairs after which to stop, for a quick check of a large corpus.
    pub most: Option<u64>,
    /// Whether a model is to be trained on this text alone: only then is a small corpus a problem.
    pub from_scratch: bool,
}

impl std::fmt::Debug for CheckSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckSettings").field("languages", &self.languages).field("most", &self.most).finish()
    }
}

/// The number of pairs whose languages are checked before sampling begins.
const FULL_CHECK_PAIRS: u64 = 4_000;

/// Checks the pairs of a corpus, and whether it contains pairs of `valid`.
pub fn check(inputs: &Inputs, valid: Option<&Inputs>, settings: CheckSettings<'_>) -> Result<CheckReport> {
    let longest = Filters::default().max_line_bytes;
    let mut validation = HashMap::new();
    if let Some(valid) = valid {
        for pair in Pairs::open(valid, longest)? {
            let pair = pair?;
            if let (Side::Text(source), Side::Text(target)) = (&pair.source, &pair.target)
                && !source.trim().is_empty()
            {
                validation.insert(hash(source, target), false);
            }
        }
    }
    let mut checker = Checker::new(inputs, settings, validation);
    for pair in Pairs::open(inputs, longest)? {
        if settings.most.is_some_and(|most| checker.report.pairs >= most) {
            checker.report.whole = false;
            break;
        }
        checker.check_pair(&pair?);
    }
    Ok(checker.finish())
}

/// How many sides had their language checked, and how many were in another language.
#[derive(Debug, Default)]
struct LanguageCount {
    all: u64,
    other: u64,
    /// The other languages found.
    found: HashMap<&'static str, u64>,
}

struct Checker<'a> {
    inputs: &'a Inputs,
    settings: CheckSettings<'a>,
    report: CheckReport,
    seen: PairHashes,
    /// Hashes of the validation pairs, and whether they were found.
    validation: HashMap<u64, bool>,
    alignment: Alignment,
    /// Source and target.
    language_counts: [LanguageCount; 2],
    /// Pairs whose sides seem to be in each other's language.
    swapped: u64,
    languages_checked: u64,
}

impl<'a> Checker<'a> {
    fn new(inputs: &'a Inputs, settings: CheckSettings<'a>, validation: HashMap<u64, bool>) -> Self {
        Checker {
            inputs,
            settings,
            report: CheckReport::of_validation(validation.len() as u64),
            seen: PairHashes::default(),
            validation,
            alignment: Alignment::default(),
            language_counts: Default::default(),
            swapped: 0,
            languages_checked: 0,
        }
    }

    fn add(&mut self, problem: Problem, pair: &Pair, of_target: bool, text: &str) {
        let inputs = self.inputs;
        self.report.add(problem, || Example::new(inputs.place(pair, of_target), text));
    }

    fn check_pair(&mut self, pair: &Pair) {
        self.report.pairs += 1;
        let (source, target) = match (&pair.source, &pair.target) {
            (Side::Text(source), Side::Text(target)) => (source.trim(), target.trim()),
            (source, target) => {
                let of_target = matches!(source, Side::Text(_));
                let side = if of_target { target } else { source };
                return self.add(unusable(side), pair, of_target, "");
            }
        };
        if source.is_empty() || target.is_empty() {
            if source != target {
                let text = if source.is_empty() { target } else { source };
                self.add(Problem::OneSideEmpty, pair, !source.is_empty(), text);
            } else {
                self.add(Problem::BothSidesEmpty, pair, false, "");
            }
            return self.alignment.skip();
        }
        self.report.usable += 1;
        for (text, of_target) in [(source, false), (target, true)] {
            if damage::is_damaged(text) {
                self.add(Problem::Damaged, pair, of_target, text);
            }
        }
        if source.chars().any(char::is_alphabetic) && source.split_whitespace().eq(target.split_whitespace())
        {
            self.add(Problem::Identical, pair, false, source);
        } else {
            self.check_languages(pair, source, target);
        }
        let hash = hash(source, target);
        if self.seen.insert(hash) {
            self.add(Problem::Duplicate, pair, false, source);
        }
        if let Some(met) = self.validation.get_mut(&hash)
            && !std::mem::replace(met, true)
        {
            self.add(Problem::InValidation, pair, false, source);
        }
        self.alignment.add(pair, source, target);
    }

    /// Checks every pair at first, and then fewer and fewer: identifying a language takes longer
    /// than everything else.
    fn check_languages(&mut self, pair: &Pair, source: &str, target: &str) {
        let Some(other) = self.settings.other_language else { return };
        let every = (self.languages_checked / FULL_CHECK_PAIRS + 1).next_power_of_two();
        if !self.report.pairs.is_multiple_of(every) {
            return;
        }
        self.languages_checked += 1;
        let sides = [(source, self.settings.languages.0), (target, self.settings.languages.1)];
        let mut found = [None, None];
        for (i, (text, expected)) in sides.into_iter().enumerate() {
            let Some(expected) = expected else { continue };
            found[i] = other(text, expected);
            self.language_counts[i].all += 1;
            if let Some(code) = found[i] {
                self.language_counts[i].other += 1;
                *self.language_counts[i].found.entry(code).or_default() += 1;
                let problem = if i == 0 { Problem::SourceLanguage } else { Problem::TargetLanguage };
                self.add(problem, pair, i == 1, text);
            }
        }
        // Texts that are certainly not in the expected language and may be in the other one.
        let (from, to) = self.settings.languages;
        let may_be = |text: &str, code: Option<&str>| code.is_some_and(|code| other(text, code).is_none());
        let other_way = match found {
            [Some(_), Some(_)] => may_be(source, to) && may_be(target, from),
            _ => false,
        };
        if other_way {
            self.swapped += 1;
            self.add(Problem::Swapped, pair, false, source);
        }
    }

    fn finish(mut self) -> CheckReport {
        self.report.set_count(Problem::Duplicate, self.seen.duplicates());
        // Swapped sides are one problem, not three.
        if 2 * self.swapped > self.languages_checked {
            self.report.remove(Problem::SourceLanguage);
            self.report.remove(Problem::TargetLanguage);
        } else {
            self.report.remove(Problem::Swapped);
        }
        for (counts, problem) in
            self.language_counts.iter().zip([Problem::SourceLanguage, Problem::TargetLanguage])
        {
            let most = counts.found.iter().max_by_key(|(code, count)| (**count, std::cmp::Reverse(**code)));
            self.report.set_of(problem, counts.all);
            self.report.set_found(problem, most.map(|(code, _)| (*code).to_owned()));
        }
        self.report.set_of(Problem::Swapped, self.languages_checked);
        for shifted in self.alignment.finish() {
            let (problem, first) = shifted.problem();
            let place = self.inputs.place(&first, false);
            let text = shifted.text();
            self.report.add_many(problem, shifted.pairs, || Example { place, text });
        }
        self.report.judge(self.settings.from_scratch);
        self.report
    }
}

fn unusable(side: &Side) -> Problem {
    match side {
        Side::InvalidUtf8 => Problem::InvalidUtf8,
        Side::TooLong => Problem::TooLong,
        Side::Untranslated => Problem::Untranslated,
        Side::NoTab | Side::NoObject | Side::Text(_) => Problem::NoPair,
    }
}
