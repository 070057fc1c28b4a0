//! Translates lines of plain text sentence by sentence: one line in, one line out.

use crate::pipeline::{Job, JobOptions, Outcome, Stage, run_job};
use crate::{Document, Guarded, Match, TermReport, Translation};
use regard_core::decode::SearchOptions;
use regard_core::translator::{Candidate, Line, Translator, single_line};
use regard_core::{Result, parallel};
use std::collections::HashSet;

/// A translated line and details of its translation.
#[derive(Clone, Debug, Default)]
pub struct TranslatedLine {
    /// Its translations.
    pub line: Line,
    /// Sentences whose first translation was degenerate.
    pub guarded: Vec<Guarded>,
    /// What the translation memory contributed.
    pub memory: Option<Match>,
    /// The expected quality: the mean over its sentences, weighted by length; `None` if no model
    /// was used.
    pub confidence: Option<f32>,
    /// Which glossary terms it contains and which it lacks.
    pub terms: TermReport,
}

/// Translates each line sentence by sentence with one model, and returns as many lines as it gets.
/// Text between sentences is kept, and so are URLs, placeholders, numbers and emoji; a line that
/// contains nothing else is returned unchanged. Degenerate translations are retried.
///
/// Candidate `n` of a line consists of the `n`-th best translation of each sentence, and its score
/// is their mean. Its tokens are those that the model generated. Word indices of the alignment
/// refer to the whole line, split at white space.
///
/// A prefix is the start of the translation of a line, so it applies to the first sentence only.
pub fn translate_lines<T: AsRef<str> + Sync>(
    translator: &Translator,
    lines: &[T],
    options: &SearchOptions,
) -> Result<Vec<Line>> {
    let wanted = JobOptions { guard: true, ..JobOptions::of_search(options) };
    let language = translator.model().languages.source.as_deref();
    let found = translate_lines_along(&[Stage { translator, options }], lines, &wanted, language)?;
    Ok(found.into_iter().map(|found| found.line).collect())
}

/// Like [`translate_lines`], through a route of one or more models, for lines in the language with
/// this code.
pub(crate) fn translate_lines_along<T: AsRef<str> + Sync>(
    route: &[Stage<'_>],
    lines: &[T],
    wanted: &JobOptions,
    source_language: Option<&str>,
) -> Result<Vec<TranslatedLine>> {
    let threads = route.first().map_or(1, |stage| stage.translator.threads());
    let lines: Vec<PlainLine<'_>> = parallel::map(threads, lines, |line| {
        let line = line.as_ref().trim_end_matches(['\r', '\n']);
        // A token such as `>>de<<` applies to every sentence of the line.
        let trimmed = line.trim_start();
        let language = route.first().and_then(|stage| {
            let (token, rest) = stage.translator.source().split_language(trimmed);
            token.map(|_| trimmed.len() - rest.trim_start().len())
        });
        match language {
            Some(length) => PlainLine::new(trimmed, length, source_language),
            None => PlainLine::new(line, 0, source_language),
        }
    });
    let mut job = line_job(&lines, route.len(), wanted);
    run_job(&mut job, route)?;
    Ok(assemble(&lines, job, wanted, threads))
}

/// A job with the sentences of all lines except those found in the memory.
fn line_job(lines: &[PlainLine<'_>], stages: usize, wanted: &JobOptions) -> Job {
    let mut job = Job::new(stages, wanted.clone());
    for line in lines.iter().filter(|line| line.known(wanted).is_none()) {
        for (k, sentence) in line.document.sentences.iter().enumerate() {
            job.add(sentence, k == 0, line.language);
        }
    }
    job
}

/// Reassembles the lines from their translated sentences.
fn assemble(lines: &[PlainLine<'_>], job: Job, wanted: &JobOptions, threads: usize) -> Vec<TranslatedLine> {
    let translated = lines.iter().filter(|line| line.known(wanted).is_none());
    let sentences = translated.flat_map(|line| &line.document.sentences);
    let mut outcomes = job.finish(sentences).into_iter();
    let own = |line| match PlainLine::known(line, wanted) {
        Some(target) => (line, Some(target), Vec::new()),
        None => (line, None, outcomes.by_ref().take(line.document.sentences.len()).collect()),
    };
    let found: Vec<(&PlainLine<'_>, Option<String>, Vec<Outcome>)> = lines.iter().map(own).collect();
    parallel::map(threads, &found, |(line, known, own)| match known {
        Some(target) => PlainLine::from_memory(target, wanted),
        None => line.assemble(own, wanted),
    })
}

/// A parsed line.
struct PlainLine<'a> {
    /// The language token and the space after it, or an empty string.
    language: &'a str,
    /// The text after the language token.
    text: &'a str,
    document: Document,
}

impl<'a> PlainLine<'a> {
    /// Parses a line whose first `language` bytes are a language token and white space.
    fn new(line: &'a str, language: usize, source_language: Option<&str>) -> Self {
        let (language, text) = line.split_at(language);
        PlainLine { language, text, document: Document::plain_in(text, source_language) }
    }

    /// The translation of the whole line, if it is in the memory.
    fn known(&self, wanted: &JobOptions) -> Option<String> {
        wanted.memory.as_ref()?.find_segment(self.text)
    }

    fn from_memory(target: &str, wanted: &JobOptions) -> TranslatedLine {
        let candidate = Candidate { text: single_line(target).into_owned(), ..Line::default().best() };
        let line = Line { candidates: vec![candidate; wanted.nbest.max(1)], ..Line::default() };
        TranslatedLine { line, memory: Some(Match::Segment), ..TranslatedLine::default() }
    }

    /// Assembles the line from the translations of its sentences.
    fn assemble(&self, found: &[Outcome], wanted: &JobOptions) -> TranslatedLine {
        let nbest = wanted.nbest.max(1);
        let kept = self.document.sentences.is_empty() && self.text.contains(is_visible);
        let from_memory = found.iter().any(|outcome| outcome.from_memory);
        // A sentence for which the model generated no token has no candidate, and its place stays
        // empty.
        let counts = found.iter().map(|outcome| outcome.line.candidates.len()).filter(|&count| count > 0);
        let known = found.iter().any(Outcome::is_known);
        let count = counts.min().unwrap_or(if kept || known { nbest } else { 0 });
        let candidates = (0..count).map(|n| self.candidate(found, n, wanted.alignment)).collect();
        let weights = found.iter().zip(&self.document.sentences);
        let weights =
            weights.filter_map(|(outcome, s)| Some((outcome.confidence?, s.text.chars().count() as f32)));
        let (sum, weight) =
            weights.fold((0.0, 0.0), |(sum, all), (c, weight)| (sum + c * weight, all + weight));
        let mut terms = TermReport::default();
        found.iter().for_each(|outcome| terms.add(&outcome.terms));
        TranslatedLine {
            line: Line {
                candidates,
                parts: found.iter().map(|outcome| outcome.line.parts).sum(),
                cut: found.iter().map(|outcome| outcome.line.cut).sum(),
                source: found.iter().flat_map(|outcome| outcome.line.source.iter().cloned()).collect(),
            },
            guarded: found.iter().filter_map(|outcome| outcome.guarded).collect(),
            memory: from_memory.then_some(Match::Sentences),
            confidence: (weight > 0.0).then(|| sum / weight),
            terms,
        }
    }

    /// Builds a candidate for the line from the `n`-th best translation of each sentence.
    fn candidate(&self, found: &[Outcome], n: usize, alignment: bool) -> Candidate {
        let nth = |outcome: &Outcome| {
            let translations = &outcome.translations;
            translations.get(n).or(translations.last()).cloned().unwrap_or_default()
        };
        let translations: Vec<Translation> = found.iter().map(nth).collect();
        let rendered = self.document.render(self.text, &translations);
        let chosen: Vec<&Candidate> =
            found.iter().filter_map(|outcome| outcome.line.candidates.get(n)).collect();
        let (mut pairs, mut known) = (Vec::new(), HashSet::new());
        if alignment {
            let before = self.language.chars().count();
            let source = words_of_characters(self.language.chars().chain(self.text.chars()));
            let target = words_of_characters(rendered.text.chars());
            for [from, _, start, end] in rendered.alignment {
                let pair = source.get(before + from).copied().zip(target.get(start).copied());
                pairs.extend(pair.filter(|pair| start < end && known.insert(*pair)));
            }
        }
        Candidate {
            text: single_line(&rendered.text).into_owned(),
            score: chosen.iter().map(|c| c.score).sum::<f32>() / chosen.len().max(1) as f32,
            tokens: chosen.iter().flat_map(|c| c.tokens.iter().cloned()).collect(),
            token_scores: chosen.iter().flat_map(|c| c.token_scores.iter().copied()).collect(),
            alignment: pairs,
        }
    }
}

/// Whether a character is visible: neither white space nor zero-width.
fn is_visible(c: char) -> bool {
    !c.is_whitespace()
        && !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// The index of the white-space separated word that each character belongs to.
fn words_of_characters(text: impl Iterator<Item = char>) -> Vec<usize> {
    let (mut begun, mut inside) = (0usize, false);
    text.map(|c| {
        begun += usize::from(!c.is_whitespace() && !inside);
        inside = !c.is_whitespace();
        begun.saturating_sub(1)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use crate::pipeline::search_round;
    use std::sync::Arc;

    /// A model that translates to capitals and loses braces, digits and URLs; its second-best
    /// candidate ends with a question mark.
    fn capitals(sentence: &str, options: &SearchOptions) -> Line {
        let lost = |word: &str| word.contains(['{', ':']) || word.chars().all(|c| c.is_ascii_digit());
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let language = words.first().is_some_and(|word| word.starts_with(">>"));
        let kept: Vec<(usize, String)> = (words.iter().enumerate().skip(usize::from(language)))
            .filter(|(_, word)| !lost(word))
            .map(|(i, word)| (i, word.to_uppercase()))
            .collect();
        let candidate = |n: usize| Candidate {
            text: kept.iter().map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(" ") + &"?".repeat(n),
            score: -(kept.len() as f32) - n as f32,
            tokens: kept.iter().map(|(_, word)| word.clone()).collect(),
            token_scores: vec![-1.0; kept.len() + 1],
            alignment: match options.attention {
                true => kept.iter().enumerate().map(|(t, (s, _))| (*s, t)).collect(),
                false => Vec::new(),
            },
        };
        let source = words.iter().map(|word| word.to_string()).collect();
        Line { candidates: (0..options.nbest).map(candidate).collect(), source, parts: 1, cut: 0 }
    }

    /// The translation of each line, and the sentences of each search.
    fn translated(lines: &[&str], options: &SearchOptions) -> (Vec<Line>, Vec<(Vec<String>, SearchOptions)>) {
        let (found, searches) = translated_with(lines, options, &JobOptions::of_search(options));
        (found.into_iter().map(|found| found.line).collect(), searches)
    }

    fn translated_with(
        lines: &[&str],
        options: &SearchOptions,
        wanted: &JobOptions,
    ) -> (Vec<TranslatedLine>, Vec<(Vec<String>, SearchOptions)>) {
        let mut searches = Vec::new();
        let language = |line: &str| if line.starts_with(">>") { 7 } else { 0 };
        let lines: Vec<PlainLine<'_>> =
            lines.iter().map(|line| PlainLine::new(line, language(line), Some("en"))).collect();
        let mut job = line_job(&lines, 1, wanted);
        job.run(|round| {
            search_round(round, options, |sentences, _, options| {
                let texts: Vec<String> = sentences.iter().map(|text| (*text).to_owned()).collect();
                searches.push((texts, options.clone()));
                Ok(sentences.iter().map(|sentence| capitals(sentence, options)).collect())
            })
        })
        .unwrap();
        (assemble(&lines, job, wanted, 2), searches)
    }

    #[test]
    fn the_memory_knows_whole_lines_and_sentences() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let pairs = [pair("One dog. Two dogs.", "Zwei Zeilen."), pair("One dog.", "Ein Hund.")];
        let options = SearchOptions::default();
        let wanted =
            JobOptions { memory: Some(Arc::new(Memory::new(pairs))), ..JobOptions::of_search(&options) };
        let lines = [" One dog. Two dogs. ", "One dog. Three", "Four", "One dog."];
        let (found, searches) = translated_with(&lines, &options, &wanted);
        let texts: Vec<String> = found.iter().map(|found| found.line.best().text).collect();
        assert_eq!(texts, [" Zwei Zeilen. ", "Ein Hund. THREE", "FOUR", "Ein Hund."]);
        let matches: Vec<Option<Match>> = found.iter().map(|found| found.memory).collect();
        assert_eq!(matches, [Some(Match::Segment), Some(Match::Sentences), None, Some(Match::Segment)]);
        assert_eq!(searches[0].0, ["Three", "Four"]);
        let sure: Vec<bool> = found.iter().map(|found| found.confidence.is_some()).collect();
        assert_eq!(sure, [false, true, true, false]);
    }

    fn texts(lines: &[&str]) -> Vec<String> {
        translated(lines, &SearchOptions::default()).0.iter().map(|line| line.best().text).collect()
    }

    #[test]
    fn sentences_are_translated_one_by_one_and_spans_come_through() {
        let lines = [
            "One dog. Two dogs!  Three",
            "Hi {name} see http://a.example now. Go.",
            "",
            "  12 % ",
            "🙂 Ha 🙂",
        ];
        let want = [
            "ONE DOG. TWO DOGS!  THREE",
            "HI {name} SEE http://a.example NOW. GO.",
            "",
            "  12 % ",
            "🙂 HA 🙂",
        ];
        assert_eq!(texts(&lines), want);
        let (found, searches) = translated(&lines, &SearchOptions::default());
        let sentences: Vec<&[String]> = searches.iter().map(|(s, _)| s.as_slice()).collect();
        assert_eq!(sentences[0], ["One dog.", "Two dogs!", "Three", "Go.", "Ha"]);
        assert_eq!(sentences[1], ["Hi {name} see http://a.example now."]);
        assert!(!searches[0].1.attention && searches[1].1.attention);
        // An empty line has no candidate; a line without words has one.
        assert_eq!(found.iter().map(|l| l.candidates.len()).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
        assert!(found.iter().all(|line| line.candidates.iter().all(|c| c.alignment.is_empty())));
        assert_eq!((found[0].parts, found[0].source.len(), found[0].best().token_scores.len()), (3, 5, 8));
        assert_eq!(found[0].best().score, -5.0 / 3.0);
    }

    #[test]
    fn one_line_in_is_one_line_out() {
        for line in ["a.\u{2028}B", "a.\rB", "One.\u{85}Two", "A\u{b}b.\u{c}C", "12\u{2029}%"] {
            let found = texts(&[line]);
            assert!(
                found.len() == 1 && !found[0].contains(regard_core::translator::is_line_break),
                "{found:?}"
            );
        }
        assert_eq!(texts(&["one\tdog.\tTwo"]), ["ONE DOG.\tTWO"]);
        assert_eq!(texts(&[" \t ", "\u{200b}", "\u{feff}"]), ["", "", ""]);
    }

    #[test]
    fn the_nth_best_of_a_line_has_the_nth_best_of_each_sentence() {
        let options = SearchOptions { nbest: 2, ..SearchOptions::default() };
        let (found, _) = translated(&["One dog. Two", "12 %", ""], &options);
        let of = |line: &Line| line.candidates.iter().map(|c| (c.text.clone(), c.score)).collect::<Vec<_>>();
        assert_eq!(of(&found[0]), [("ONE DOG. TWO".into(), -1.5), ("ONE DOG.? TWO?".into(), -2.5)]);
        assert_eq!(of(&found[1]), [("12 %".into(), 0.0), ("12 %".into(), 0.0)]);
        assert_eq!(of(&found[2]), []);
    }

    #[test]
    fn words_are_counted_in_the_whole_line() {
        let options = SearchOptions { attention: true, ..SearchOptions::default() };
        let (found, searches) = translated(&["🙂 One dog. Give {name} that"], &options);
        assert_eq!(searches.len(), 1);
        let best = found[0].best();
        assert_eq!(best.text, "🙂 ONE DOG. GIVE {name} THAT");
        assert_eq!(best.alignment, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
        // Two sentences that form one word when split at white space.
        assert_eq!(translated(&["一。二。"], &options).0[0].best().alignment, [(0, 0)]);
    }

    #[test]
    fn a_language_token_is_for_every_sentence() {
        let options = SearchOptions { attention: true, ..SearchOptions::default() };
        let (found, searches) = translated(&[">>de<< One {n} dog. Two"], &options);
        assert_eq!(searches[0].0, [">>de<< One {n} dog.", ">>de<< Two"]);
        assert_eq!(found[0].best().text, "ONE {n} DOG. TWO");
        assert_eq!(found[0].best().alignment, [(1, 0), (2, 1), (3, 2), (4, 3)]);
    }

    #[test]
    fn a_prefix_is_for_the_first_sentence() {
        let options = SearchOptions { prefix: vec![5], ..SearchOptions::default() };
        let (_, searches) = translated(&["One. Two. Three.", "Four"], &options);
        let of = |prefix: &[u32]| searches.iter().find(|(_, o)| o.prefix == prefix).map(|(s, _)| s.clone());
        assert_eq!(of(&[5]).unwrap(), ["One.", "Four"]);
        assert_eq!(of(&[]).unwrap(), ["Two.", "Three."]);
    }
}
