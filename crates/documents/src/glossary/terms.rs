//! The terms of a sentence: checks whether a translation contains them, and builds the constraints
//! of the second search.

use super::{Glossary, TermMatch, TermReport};
use crate::guard;
use regard_core::decode::SearchOptions;
use regard_core::text::{fold, is_spaced, share_stem};
use regard_core::translator::{Annotation, Candidate, Line, Phrase};
use std::ops::Range;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// A term that the translation of a sentence should contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) source: String,
    pub(crate) target: String,
    /// Whether it stays untranslated, and so is not inflected either.
    pub(crate) same: bool,
    /// The number of occurrences in the source.
    times: usize,
    /// Whether all occurrences in the source are in capitals.
    capitals: bool,
}

/// The distinct terms of a sentence.
pub(crate) fn terms(glossary: &Glossary, text: &str, matches: &[TermMatch]) -> Vec<Term> {
    let mut terms: Vec<(usize, Term)> = Vec::new();
    for TermMatch { range, entry } in matches {
        let written = &text[range.clone()];
        let found = glossary.entry(*entry);
        let capitals = guard::is_all_caps(written) && !found.source.contains(char::is_uppercase);
        if let Some((_, term)) = terms.iter_mut().find(|(number, _)| number == entry) {
            term.times += 1;
            term.capitals &= capitals;
            continue;
        }
        let target = found.target.clone().unwrap_or_else(|| written.to_owned());
        let (source, same) = (found.source.clone(), found.target.is_none());
        terms.push((*entry, Term { source, target, same, times: 1, capitals }));
    }
    terms.into_iter().map(|(_, term)| term).collect()
}

/// The terms of a sentence with their translations, for a model that reads them as annotations;
/// `before` is the number of bytes in front of the sentence in the model's input.
pub(crate) fn annotations(
    glossary: &Glossary,
    text: &str,
    matches: &[TermMatch],
    before: usize,
) -> Vec<Annotation> {
    let annotation = |TermMatch { range, entry }: &TermMatch| {
        let target = glossary.entry(*entry).target.as_deref().unwrap_or(&text[range.clone()]);
        Annotation { range: before + range.start..before + range.end, target: target.to_owned() }
    };
    matches.iter().map(annotation).collect()
}

impl Term {
    /// The number of occurrences in a text, in any inflected form.
    pub(crate) fn count(&self, text: &str) -> usize {
        occurrences(&text.to_lowercase(), &self.target, self.same).len()
    }

    /// The number of occurrences in a text in any form, even of a term that is not inflected: a model
    /// may write a form of it besides the term.
    fn count_forms(&self, text: &str) -> usize {
        occurrences(&text.to_lowercase(), &self.target, false).len()
    }

    /// The constraint for the second search.
    pub(crate) fn phrase(&self) -> Phrase {
        let mut spellings = vec![self.target.clone()];
        if !self.same && !self.target.contains(char::is_uppercase) {
            // At the start of a sentence, the first letter is a capital.
            let mut rest = self.target.chars();
            let first = rest.next().into_iter().flat_map(char::to_uppercase);
            spellings.push(first.chain(rest).collect());
        }
        if self.capitals {
            spellings.push(self.target.to_uppercase());
        }
        Phrase { spellings, inflected: !self.same }
    }
}

/// The byte range of a word, and its folded form, in which word forms are compared.
type FoldedWord = (Range<usize>, String);

/// The folded words of a text.
fn folded_words(text: &str) -> Vec<FoldedWord> {
    let of_word = |c: char| c.is_alphanumeric() || c.general_category_group() == GeneralCategoryGroup::Mark;
    let mut at = 0;
    let mut words = Vec::new();
    for part in text.split_inclusive(|c| !of_word(c)) {
        let word = part.trim_end_matches(|c| !of_word(c));
        if !word.is_empty() {
            words.push((at..at + word.len(), fold(word)));
        }
        at += part.len();
    }
    words
}

/// The occurrences of a term in a text: its words in sequence, each in any inflected form unless
/// `same` is set. In scripts without spaces its characters are searched for, and `text` must be in
/// lower case.
fn occurrences(text: &str, term: &str, same: bool) -> Vec<Range<usize>> {
    let term_words = folded_words(term);
    if term_words.is_empty() || !term.chars().all(is_spaced) {
        let term = term.to_lowercase();
        return text.match_indices(&term).map(|(at, _)| at..at + term.len()).collect();
    }
    let is_form = |((_, a), (_, b)): (&FoldedWord, &FoldedWord)| {
        a == b || (!same && a.chars().chain(b.chars()).all(char::is_alphabetic) && share_stem(a, b))
    };
    let words = folded_words(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(window) = words.get(at..at + term_words.len()) {
        let here = window.iter().zip(&term_words).all(is_form);
        if here {
            found.push(window[0].0.start..window[window.len() - 1].0.end);
        }
        at += if here { term_words.len() } else { 1 };
    }
    found
}

/// Whether a text contains all words of another in the same order.
fn has_all_words(text: &str, other: &str) -> bool {
    let mut words = folded_words(text).into_iter().map(|(_, word)| word);
    folded_words(other).into_iter().all(|(_, wanted)| words.any(|word| word == wanted))
}

/// The terms that a text lacks.
pub(crate) fn missing<'t>(terms: &'t [Term], text: &str) -> impl Iterator<Item = &'t Term> {
    terms.iter().filter(move |term| term.count(text) == 0)
}

/// Which terms a text contains and which it lacks.
pub(crate) fn report(terms: &[Term], text: &str) -> TermReport {
    let missing = missing(terms, text).map(|term| (term.source.clone(), term.target.clone()));
    TermReport { wanted: terms.len(), missing: missing.collect() }
}

/// The number of candidates of the second search to consider.
pub(crate) const CANDIDATES: usize = 4;

/// The options of the second search: the full vocabulary and no sampling.
pub(crate) fn constrained_options(options: &SearchOptions) -> SearchOptions {
    SearchOptions { shortlist: None, sampling: None, beam: options.beam.max(CANDIDATES), ..options.clone() }
}

/// How much lower the mean log-probability per token may be in a translation with the terms than in
/// the one without; below that, the translation is considered degenerate.
const MAX_LOGPROB_DROP: f32 = 1.5;

fn mean(scores: &[f32]) -> f32 {
    scores.iter().sum::<f32>() / scores.len().max(1) as f32
}

/// The mean log-probability of the tokens that the search was free to choose. It excludes the
/// tokens of the terms: a glossary is meant to force words that the model finds unlikely.
fn mean_free_score(candidate: &Candidate, terms: &[Term]) -> f32 {
    let Candidate { tokens, token_scores, .. } = candidate;
    // The end-of-sentence token has a score, and so may a language token in front. A line in
    // several parts has more end-of-sentence tokens.
    let in_front = token_scores.len().saturating_sub(tokens.len() + 1);
    let known = if in_front <= 1 { tokens.as_slice() } else { &[] };
    let mut text = String::new();
    let mut ends = Vec::with_capacity(known.len());
    for token in known {
        text.push_str(&token.replace('▁', " ").to_lowercase());
        ends.push(text.len());
    }
    let spans: Vec<_> = terms.iter().flat_map(|term| occurrences(&text, &term.target, term.same)).collect();
    // The space in front of a term may be a separate token.
    let from = |start: usize| text[..start].trim_end().len();
    let spans: Vec<Range<usize>> = spans.into_iter().map(|span| from(span.start)..span.end).collect();
    let of_term = |i: usize| {
        let Some(&end) = i.checked_sub(in_front).and_then(|i| ends.get(i)) else { return false };
        let start = (i - in_front).checked_sub(1).map_or(0, |before| ends[before]);
        spans.iter().any(|span| start < span.end && span.start < end)
    };
    let free = token_scores.iter().enumerate().filter(|&(i, _)| !of_term(i));
    mean(&free.map(|(_, &score)| score).collect::<Vec<_>>())
}

/// Merges the translations of both searches of a sentence, best first. A candidate of the second
/// search comes before those of the first if it has more of the terms, repeats none of them too
/// often, is no more degenerate and not far less likely; only the candidates that lack the fewest
/// terms are used.
///
/// A term should replace another word. If it does, the scores of its own tokens do not count. If it
/// was merely added to the first translation, they do, because the model found no place for it.
pub(crate) fn merge(source: &str, terms: &[Term], plain: Line, constrained: Line, nbest: usize) -> Line {
    let best = plain.best().text;
    let fault = guard::fault(source, &best);
    let (likelihood, free) = (mean(&plain.best().token_scores), mean_free_score(&plain.best(), terms));
    let replaces = |candidate: &Candidate| !has_all_words(&candidate.text, &best);
    let is_acceptable = |candidate: &Candidate| {
        let repeats =
            |term: &Term| term.count_forms(&candidate.text) > term.times.max(term.count_forms(&best));
        let likely = match replaces(candidate) {
            true => mean_free_score(candidate, terms) >= free - MAX_LOGPROB_DROP,
            false => mean(&candidate.token_scores) >= likelihood - MAX_LOGPROB_DROP,
        };
        likely && !terms.iter().any(repeats) && guard::fault(source, &candidate.text) <= fault
    };
    let lacks = |candidate: &Candidate| missing(terms, &candidate.text).count();
    let before = missing(terms, &best).count();
    let mut better: Vec<(usize, Candidate)> = constrained
        .candidates
        .into_iter()
        .map(|candidate| (lacks(&candidate), candidate))
        .filter(|(lacks, candidate)| *lacks < before && is_acceptable(candidate))
        .collect();
    // The sort is stable, so equal candidates stay in score order.
    better.sort_by_key(|(lacks, candidate)| (*lacks, !replaces(candidate)));
    if let Some(&(fewest, _)) = better.first() {
        better.retain(|(lacks, _)| *lacks == fewest);
    }
    let mut line = plain;
    let candidates = better.into_iter().map(|(_, candidate)| candidate).chain(line.candidates);
    let mut found: Vec<Candidate> = Vec::with_capacity(nbest);
    for candidate in candidates {
        if found.len() < nbest && found.iter().all(|other| other.text != candidate.text) {
            found.push(candidate);
        }
    }
    line.candidates = found;
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(glossary: &[(&str, &str)], text: &str) -> Vec<Term> {
        let glossary = Glossary::new(glossary.iter().copied()).unwrap();
        terms(&glossary, text, &glossary.find(text, &[]))
    }

    fn line(texts: &[&str]) -> Line {
        let candidate = |text: &&str| Candidate { text: (*text).to_owned(), ..Line::default().best() };
        Line { candidates: texts.iter().map(candidate).collect(), parts: 1, ..Line::default() }
    }

    #[test]
    fn every_form_of_a_term_counts() {
        for (text, term, same, count) in [
            ("Os ficheiros e o Ficheiro", "ficheiro", false, 2),
            ("As configurações de rede", "configuração de rede", false, 1),
            ("A configuração da rede", "configuração de rede", false, 0),
            ("perfis", "perfil", false, 1),
            ("Firefoxes, firefox", "Firefox", true, 1),
            ("打开文件和文件", "文件", false, 2),
            ("o R$ e o r$", "R$", true, 2),
            ("v12 v123", "v12", false, 1),
            ("", "a", false, 0),
        ] {
            assert_eq!(occurrences(&text.to_lowercase(), term, same).len(), count, "{text}");
        }
    }

    #[test]
    fn a_search_is_told_how_a_term_may_be_spelt() {
        let found = of(&[("file", "ficheiro"), ("Firefox", "=")], "FILE FILES in Firefox, FILE");
        assert_eq!(found.iter().map(|term| term.times).collect::<Vec<_>>(), [3, 1]);
        let file = found[0].phrase();
        assert_eq!(
            (&file.spellings[..], file.inflected),
            (&["ficheiro".into(), "Ficheiro".into(), "FICHEIRO".into()][..], true)
        );
        assert_eq!(found[1].phrase(), Phrase { spellings: vec!["Firefox".into()], inflected: false });
    }

    #[test]
    fn the_second_search_counts_where_it_has_the_terms_once() {
        let terms = of(&[("file", "ficheiro"), ("folder", "pasta")], "The file in the folder");
        let plain = || line(&["O arquivo na pasta", "O arquivo na diretoria"]);
        let source = "The file in the folder";
        let merged = |constrained: &[&str], nbest| {
            let line = merge(source, &terms, plain(), line(constrained), nbest);
            line.candidates.into_iter().map(|c| c.text).collect::<Vec<_>>()
        };
        let good = "O ficheiro na pasta";
        assert_eq!(merged(&["ficheiro ficheiro pasta", good], 1), [good]);
        assert_eq!(
            merged(&[good, "Um ficheiro na pasta"], 3),
            [good, "Um ficheiro na pasta", "O arquivo na pasta"]
        );
        // No candidate is better than the first translation.
        assert_eq!(merged(&["O arquivo na pasta", "O ficheiro"], 1), ["O arquivo na pasta"]);
        assert_eq!(merged(&[], 1), ["O arquivo na pasta"]);
        // A form of an untranslated term besides the term is a repetition.
        let same = of(&[("Fox", "=")], "The Fox");
        let merged = |text| merge("The Fox", &same, line(&["A raposa"]), line(&[text]), 1).best().text;
        assert_eq!((merged("O Foxes Fox"), merged("O Fox")), ("A raposa".to_owned(), "O Fox".to_owned()));
        assert_eq!(report(&terms, "O arquivo na pasta").missing, [("file".into(), "ficheiro".into())]);
    }

    #[test]
    fn a_term_in_the_place_of_a_word_comes_before_one_beside_it() {
        let terms = of(&[("cat", "matou")], "The cat sleeps.");
        let merged = |constrained: &[&str]| {
            merge("The cat sleeps.", &terms, line(&["Le chat dort."]), line(constrained), 1).best().text
        };
        assert_eq!(merged(&["Le chat dort matou.", "Le matou dort."]), "Le matou dort.");
        // Better than a translation without it, if the model finds it likely.
        assert_eq!(merged(&["Le chat dort matou."]), "Le chat dort matou.");
    }

    #[test]
    fn the_terms_themselves_may_be_unlikely_but_not_the_rest() {
        let terms = of(&[("cat", "matou")], "The cat sleeps.");
        let with_scores = |tokens: &[&str], token_scores: &[f32]| {
            let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
            let text = tokens.concat().replace('▁', " ").trim().to_owned();
            let candidate =
                Candidate { text, tokens, token_scores: token_scores.to_vec(), ..Line::default().best() };
            Line { candidates: vec![candidate], parts: 1, ..Line::default() }
        };
        let plain = || with_scores(&["▁Le", "▁chat", "▁dort", "."], &[-0.1; 5]);
        let merged =
            |constrained: Line| merge("The cat sleeps.", &terms, plain(), constrained, 1).best().text;
        let pieces = ["▁Le", "▁mat", "ou", "▁dort", "."];
        assert_eq!(merged(with_scores(&pieces, &[-0.1, -14.0, -9.0, -1.0, -0.1, -0.1])), "Le matou dort.");
        assert_eq!(merged(with_scores(&pieces, &[-0.1, -14.0, -9.0, -9.0, -3.0, -0.1])), "Le chat dort.");
        // A term that was added to the first translation counts with its own scores.
        let beside = ["▁Le", "▁chat", "▁dort", ".", "▁mat", "ou"];
        assert_eq!(
            merged(with_scores(&beside, &[-0.1, -0.1, -0.1, -0.1, -14.0, -9.0, -0.1])),
            "Le chat dort."
        );
        // A space may be a separate token.
        let pieces_with_space = ["▁Le", "▁", "mat", "ou", "▁dort", "."];
        let scores = [-0.1, -13.0, -14.0, -9.0, -2.0, -0.1, -0.1];
        assert_eq!(merged(with_scores(&pieces_with_space, &scores)), "Le matou dort.");
        // With the score of a language token in front.
        let scores = [0.0, -0.1, -14.0, -9.0, -1.0, -0.1, -0.1];
        assert_eq!(merged(with_scores(&pieces, &scores)), "Le matou dort.");
        // In a line of several parts the scores cannot be assigned to tokens, so all of them count.
        let scores = [-0.1, -14.0, -9.0, -1.0, -0.1, -0.1, -0.1, -0.1];
        assert_eq!(merged(with_scores(&pieces, &scores)), "Le chat dort.");
    }
}
