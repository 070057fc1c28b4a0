//! The findings of a corpus check, with advice.

use serde::Serialize;
use std::collections::BTreeMap;

/// A possible problem of parallel text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Each side is in the other side's language.
    Swapped,
    /// Line i of the source matches another line of the target.
    Shifted,
    /// The lengths of the sides are not correlated.
    Unrelated,
    /// The source is in another language.
    SourceLanguage,
    /// The target is in another language.
    TargetLanguage,
    /// Both sides are the same text.
    Identical,
    /// A validation pair is in the training data.
    InValidation,
    /// The pair occurred before.
    Duplicate,
    /// The text has encoding errors.
    Damaged,
    /// A side is not UTF-8.
    InvalidUtf8,
    /// A side is too long to be a sentence.
    TooLong,
    /// A line without source and target.
    NoPair,
    /// A message without a translation.
    Untranslated,
    /// One side is empty.
    OneSideEmpty,
    /// Both sides are empty.
    BothSidesEmpty,
    /// There is not enough text.
    TooLittle,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Common, but good to know.
    Note,
    /// It would make the model worse.
    Problem,
}

/// An example of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// As `file:line`.
    pub place: String,
    /// The text, truncated if it is long.
    pub text: String,
}

impl Example {
    pub(super) fn new(place: String, text: &str) -> Self {
        const MAX_CHARS: usize = 100;
        let mut cut: String = text.chars().take(MAX_CHARS).collect();
        if cut.len() < text.len() {
            cut.push('…');
        }
        Example { place, text: cut }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The problem.
    pub check: Problem,
    /// How bad it is.
    pub severity: Severity,
    /// The number of pairs affected.
    pub count: u64,
    /// The number of pairs checked.
    pub of: u64,
    /// The first examples.
    pub examples: Vec<Example>,
    /// The finding as a sentence.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// The language that was found instead of the expected one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckReport {
    /// The number of pairs read.
    pub pairs: u64,
    /// The number of pairs with text on both sides.
    pub usable: u64,
    /// The number of distinct validation pairs.
    pub validation_pairs: u64,
    /// Whether all pairs were read.
    pub whole: bool,
    /// The findings, problems first.
    pub findings: Vec<Finding>,
    #[serde(skip)]
    found: BTreeMap<Problem, FindingCount>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct FindingCount {
    count: u64,
    of: Option<u64>,
    examples: Vec<Example>,
    language: Option<String>,
}

impl Default for CheckReport {
    fn default() -> Self {
        CheckReport {
            pairs: 0,
            usable: 0,
            validation_pairs: 0,
            whole: true,
            findings: Vec::new(),
            found: BTreeMap::new(),
        }
    }
}

/// The number of examples of each finding.
const EXAMPLES: usize = 3;
/// With fewer pairs, a model trained from scratch does not learn to translate.
const MIN_PAIRS: u64 = 1_000;
/// With fewer pairs, it translates badly.
const RECOMMENDED_PAIRS: u64 = 20_000;

impl CheckReport {
    /// An empty report, for a corpus with this many validation pairs.
    pub(super) fn of_validation(pairs: u64) -> Self {
        CheckReport { validation_pairs: pairs, ..CheckReport::default() }
    }

    /// The findings that are more severe than a note.
    pub fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Problem)
    }

    pub(super) fn add(&mut self, problem: Problem, example: impl FnOnce() -> Example) {
        self.add_many(problem, 1, example);
    }

    pub(super) fn add_many(&mut self, problem: Problem, count: u64, example: impl FnOnce() -> Example) {
        let found = self.found.entry(problem).or_default();
        found.count += count;
        if found.examples.len() < EXAMPLES {
            found.examples.push(example());
        }
    }

    pub(super) fn remove(&mut self, problem: Problem) {
        self.found.remove(&problem);
    }

    pub(super) fn set_count(&mut self, problem: Problem, count: u64) {
        self.found.entry(problem).and_modify(|found| found.count = count);
    }

    pub(super) fn set_of(&mut self, problem: Problem, of: u64) {
        self.found.entry(problem).and_modify(|found| found.of = Some(of));
    }

    pub(super) fn set_found(&mut self, problem: Problem, language: Option<String>) {
        self.found.entry(problem).and_modify(|found| found.language = language);
    }

    /// Turns the counts into findings.
    pub(super) fn judge(&mut self, from_scratch: bool) {
        if from_scratch && self.whole && self.usable < RECOMMENDED_PAIRS {
            let (count, of) = (self.usable, Some(self.pairs));
            self.found.insert(Problem::TooLittle, FindingCount { count, of, ..FindingCount::default() });
        }
        for (problem, found) in std::mem::take(&mut self.found) {
            if found.count == 0 && problem != Problem::TooLittle {
                continue;
            }
            let of = found.of.unwrap_or(match problem {
                Problem::InValidation => self.validation_pairs,
                Problem::InvalidUtf8 | Problem::TooLong | Problem::NoPair | Problem::Untranslated => {
                    self.pairs
                }
                Problem::OneSideEmpty | Problem::BothSidesEmpty => self.pairs,
                _ => self.usable,
            });
            let share = found.count as f64 / of.max(1) as f64;
            let is_problem = match problem {
                Problem::TooLittle => found.count < MIN_PAIRS,
                _ => share > problem.tolerated(),
            };
            self.findings.push(Finding {
                check: problem,
                severity: if is_problem { Severity::Problem } else { Severity::Note },
                count: found.count,
                of,
                examples: found.examples,
                message: problem.message(found.count, of, found.language.as_deref()),
                advice: problem.advice(share).to_owned(),
                language: found.language,
            });
        }
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }
}

impl Problem {
    /// The share of affected pairs up to which the finding is common.
    fn tolerated(self) -> f64 {
        match self {
            Problem::Swapped | Problem::Shifted | Problem::Unrelated | Problem::TooLittle => 0.0,
            Problem::SourceLanguage | Problem::TargetLanguage => 0.1,
            Problem::Identical => 0.1,
            Problem::InValidation => 0.01,
            Problem::Duplicate => 0.2,
            Problem::Damaged => 0.001,
            Problem::InvalidUtf8 | Problem::TooLong | Problem::NoPair => 0.001,
            Problem::OneSideEmpty => 0.01,
            Problem::Untranslated | Problem::BothSidesEmpty => 1.0,
        }
    }

    fn message(self, count: u64, of: u64, language: Option<&str>) -> String {
        let n = |n: u64| regard_plot::grouped(n);
        let (pairs, of_all) = (if count == 1 { "pair" } else { "pairs" }, n(of));
        let count = n(count);
        let seems = language.map_or(String::new(), |code| format!(", most often {code}"));
        match self {
            Problem::Swapped => {
                format!(
                    "source and target are swapped: {count} of {of_all} {pairs} looked at are in the other's language"
                )
            }
            Problem::Shifted => {
                format!("the sides are shifted against each other in {count} of {of_all} {pairs}")
            }
            Problem::Unrelated => {
                format!("the sides do not seem to belong together in {count} of {of_all} {pairs}")
            }
            Problem::SourceLanguage => {
                format!("the source of {count} of {of_all} {pairs} looked at is in another language{seems}")
            }
            Problem::TargetLanguage => {
                format!("the target of {count} of {of_all} {pairs} looked at is in another language{seems}")
            }
            Problem::Identical => {
                format!("source and target are the same text in {count} of {of_all} {pairs}")
            }
            Problem::InValidation => {
                format!("{count} of {of_all} validation {pairs} are in the training data")
            }
            Problem::Duplicate => format!("{count} of {of_all} {pairs} were there before"),
            Problem::Damaged => format!("{count} lines of {of_all} pairs show damage by a wrong encoding"),
            Problem::InvalidUtf8 => format!("{count} of {of_all} {pairs} are not UTF-8 and are dropped"),
            Problem::TooLong => format!("{count} of {of_all} {pairs} are too long and are dropped"),
            Problem::NoPair => format!("{count} of {of_all} lines have no source and target and are dropped"),
            Problem::Untranslated => {
                format!("{count} of {of_all} messages have no translation and are left out")
            }
            Problem::OneSideEmpty => {
                format!("one side is empty in {count} of {of_all} {pairs}, which are dropped")
            }
            Problem::BothSidesEmpty => {
                format!("both sides are empty in {count} of {of_all} {pairs}, which are dropped")
            }
            Problem::TooLittle => format!("there are only {count} usable pairs"),
        }
    }

    fn advice(self, share: f64) -> &'static str {
        match self {
            Problem::Swapped => "give the source and target files the other way round, or the languages",
            Problem::Shifted => {
                "a line is missing or too many on one side at the first of these places or before it: compare the files there"
            }
            Problem::Unrelated => {
                "one of the files is of another text, or was sorted or shuffled by itself: take files of the same origin"
            }
            Problem::SourceLanguage => "set data.source_lang to the right language, or remove these lines",
            Problem::TargetLanguage => "set data.target_lang to the right language, or remove these lines",
            Problem::Identical if share > 0.5 => "the same file may have been given for both sides",
            Problem::Identical => {
                "a model learns to copy from these; filters.drop_identical=true leaves them out of training"
            }
            Problem::InValidation => {
                "scores on them say too much; remove them from the training data, or validate on other text"
            }
            Problem::Duplicate => "filters.drop_duplicates=true trains on each pair once",
            Problem::Damaged => "convert the original files again, from their real encoding to UTF-8",
            Problem::InvalidUtf8 => "convert the file to UTF-8; iconv does that",
            Problem::TooLong => "a line should be one sentence or a few: split longer texts",
            Problem::NoPair => "look at the first of them; another separator or other fields may be in use",
            Problem::Untranslated => "nothing needs to be done",
            Problem::OneSideEmpty => "see whether the translation is missing, or stands in another line",
            Problem::BothSidesEmpty => "nothing needs to be done",
            Problem::TooLittle => {
                "a model that starts from nothing needs tens of thousands of pairs; start from a trained model \
                 of these languages (data.init), which some hundred pairs can adapt"
            }
        }
    }
}
