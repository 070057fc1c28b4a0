//! Sends sentences through a route of models: creates the requests to each model, and applies the
//! guard, the translation memory and the glossary.
//!
//! A [`Job`] runs no model itself. It returns the sentences to translate ([`Job::next_round`]) and
//! takes the translations ([`Job::answer`]), so that the blocking command and the asynchronous
//! server share it.

use crate::glossary::terms::{self, Term};
use crate::guard::{self, Fault, Guarded};
use crate::protect::is_translatable;
use crate::{Glossary, GlossaryMethod, Memory, Sentence, TermReport, Translation, Word, confidence};
use regard_core::Result;
use regard_core::decode::SearchOptions;
use regard_core::translator::{Annotation, Candidate, Line, LineTerms, Phrase, Translator};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Options of a translation job.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// The number of translations per sentence; at least one.
    pub nbest: usize,
    /// Whether to align the words of all sentences; otherwise only of sentences that need it.
    pub alignment: bool,
    /// Whether the target prefix applies to the first sentence of each text only.
    pub prefix_first: bool,
    /// Whether to retry degenerate translations.
    pub guard: bool,
    /// The translation memory.
    pub memory: Option<Arc<Memory>>,
    /// The glossary.
    pub glossary: Option<Arc<Glossary>>,
    /// How the glossary is applied.
    pub glossary_method: GlossaryMethod,
    /// Whether the model is trained to read terms; always false with several models, of which the
    /// last does not read the text that contains the terms.
    pub reads_terms: bool,
}

impl JobOptions {
    /// Whether the model reads the translations of terms as annotations in the source.
    fn annotates(&self) -> bool {
        self.reads_terms && self.glossary_method != GlossaryMethod::Constrain
    }

    /// Whether a sentence whose translation lacks terms is searched again.
    fn constrains(&self) -> bool {
        self.glossary_method != GlossaryMethod::Annotate
    }
}

/// A sentence to send to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The input of the model.
    pub text: String,
    /// The number of translations to return.
    pub nbest: usize,
    /// Whether to align its words.
    pub attention: bool,
    /// Whether its translation begins with the target prefix.
    pub prefix: bool,
    /// Whether it is a second attempt, which is searched with [`guard::safer`] options.
    pub retry: bool,
    /// Terms that the translation must contain, because a first one lacked some of them. The search
    /// then uses the full vocabulary.
    pub phrases: Vec<Phrase>,
    /// Translations of terms that the model reads as annotations in the text.
    pub annotations: Vec<Annotation>,
}

impl Query {
    /// The kind of search; queries with the same kind can share a batch.
    pub fn attempt(&self) -> Attempt {
        match (self.phrases.is_empty(), self.retry, self.annotations.is_empty()) {
            (false, _, _) => Attempt::Constrained,
            (true, true, _) => Attempt::Safer,
            (true, false, false) => Attempt::Annotated,
            (true, false, true) => Attempt::Plain,
        }
    }

    /// Its terms.
    pub fn terms(&self) -> LineTerms {
        LineTerms { phrases: self.phrases.clone(), annotations: self.annotations.clone() }
    }
}

/// The kind of search for a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attempt {
    /// With the given options.
    #[default]
    Plain,
    /// With the given options, but the full vocabulary, because the translations of terms may not
    /// be in the shortlist.
    Annotated,
    /// With [`guard::safer`] options.
    Safer,
    /// With phrases that the translation must contain.
    Constrained,
}

impl Attempt {
    /// The options of this kind of search, derived from those of a first attempt.
    pub fn options(self, options: &SearchOptions) -> SearchOptions {
        let options = match self {
            Attempt::Plain => options.clone(),
            Attempt::Annotated => SearchOptions { shortlist: None, ..options.clone() },
            Attempt::Safer => guard::safer(options),
            Attempt::Constrained => terms::constrained_options(options),
        };
        SearchOptions { substitute: true, ..options }
    }
}

/// Sentences to send to one model of the route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The index of the model in the route.
    pub stage: usize,
    /// The indices of the sentences, in the order in which they were added.
    pub numbers: Vec<usize>,
    /// The sentences.
    pub queries: Vec<Query>,
}

/// The result for a sentence.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its translations, best first; at least one.
    pub translations: Vec<Translation>,
    /// The output of the last model.
    pub line: Line,
    /// The guard's result, if a first translation by any of the models was degenerate.
    pub guarded: Option<Guarded>,
    /// Whether it comes from the translation memory.
    pub from_memory: bool,
    /// Whether it is not translated because it consists of untranslatable terms only.
    pub kept: bool,
    /// The expected quality; with several models, the lowest of their confidences.
    pub confidence: Option<f32>,
    /// Which glossary terms it contains and which it lacks.
    pub terms: TermReport,
}

impl Outcome {
    /// Whether it needs no model.
    pub(crate) fn is_known(&self) -> bool {
        self.from_memory || self.kept
    }
}

/// A sentence on its way through the route.
#[derive(Debug)]
struct State {
    text: String,
    /// A token such as `>>de<<` and a space, which precede the input of the first model.
    language: String,
    aligned: bool,
    first: bool,
    terms: Vec<Term>,
    /// The terms that the model reads as annotations.
    annotations: Vec<Annotation>,
    /// The byte ranges of terms that are not translated.
    kept_terms: Vec<Range<usize>>,
    /// The output of the previous model.
    before: Option<Translation>,
    outcome: Outcome,
}

impl State {
    /// The input of the current model.
    fn input(&self) -> String {
        match &self.before {
            None => format!("{}{}", self.language, self.text),
            Some(before) => before.text(),
        }
    }

    /// The text that the current model translates, for the guard.
    fn source(&self) -> String {
        self.before.as_ref().map_or_else(|| self.text.clone(), Translation::text)
    }

    fn translations(&self) -> Vec<Translation> {
        if self.outcome.line.candidates.is_empty() {
            // The model generated nothing; protected spans are still restored.
            return vec![Translation::default()];
        }
        let of = |candidate: &Candidate| match (&self.before, self.language.is_empty()) {
            (Some(before), _) => Translation::new(candidate).after(before),
            (None, true) => Translation::new(candidate),
            (None, false) => Translation::new(&without_first_word(candidate)),
        };
        self.outcome.line.candidates.iter().map(of).collect()
    }
}

/// Corrects the alignment of a sentence that follows a language token, which is the first word of
/// the model's input.
fn without_first_word(candidate: &Candidate) -> Candidate {
    let pairs = candidate.alignment.iter().filter_map(|&(s, t)| Some((s.checked_sub(1)?, t)));
    Candidate { alignment: pairs.collect(), ..candidate.clone() }
}

#[derive(Debug)]
enum Phase {
    /// The model with this index is next.
    Send(usize),
    /// These sentences were sent to the model.
    Sent(usize, Vec<usize>),
    /// These translations were degenerate and are retried.
    Retry(usize, Vec<(usize, Fault)>),
    Retried(usize, Vec<(usize, Fault)>),
    /// These sentences lacked terms and are being searched again.
    SentForTerms(usize, Vec<usize>),
    Done,
}

/// Sentences on a route of models.
#[derive(Debug)]
pub struct Job {
    states: Vec<State>,
    stages: usize,
    options: JobOptions,
    phase: Phase,
}

impl Job {
    /// A job for a route of `stages` models.
    pub fn new(stages: usize, options: JobOptions) -> Self {
        let options = JobOptions { nbest: options.nbest.max(1), ..options };
        Job { states: Vec::new(), stages, options, phase: Phase::Send(0) }
    }

    /// Adds a sentence; `first` says whether it is the first of its text. `language`, which may be
    /// empty, precedes it in the input of the first model.
    pub fn add(&mut self, sentence: &Sentence, first: bool, language: &str) {
        let mut outcome = Outcome::default();
        // A translation from the memory does not say where tags belong.
        let plain = sentence.markup.as_ref().is_none_or(|markup| markup.is_empty());
        let memory = self.options.memory.as_ref().filter(|_| plain);
        let (mut terms, mut annotations, mut kept_terms) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(target) = memory.and_then(|memory| memory.find(&sentence.text)) {
            outcome.translations = vec![from_memory(target)];
            outcome.from_memory = true;
        } else if let Some(glossary) = &self.options.glossary {
            let matches = glossary.find(&sentence.text, &sentence.protected);
            terms = terms::terms(glossary, &sentence.text, &matches);
            if self.options.annotates() {
                annotations = terms::annotations(glossary, &sentence.text, &matches, language.len());
            }
            let same = matches.into_iter().filter(|found| glossary.entry(found.entry).target.is_none());
            kept_terms = same.map(|found| found.range).collect();
        }
        if !kept_terms.is_empty() && !is_translatable(&sentence.text, &protected_spans(sentence, &kept_terms))
        {
            outcome.translations = vec![Translation::same(&sentence.text)];
            outcome.kept = true;
        }
        self.states.push(State {
            text: sentence.text.clone(),
            language: language.to_owned(),
            aligned: self.options.alignment || sentence.needs_alignment() || !kept_terms.is_empty(),
            first,
            terms,
            annotations,
            kept_terms,
            before: None,
            outcome,
        });
    }

    /// The sentences to translate next; `None` when all are done.
    pub fn next_round(&mut self) -> Option<Round> {
        loop {
            match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Send(stage) if stage < self.stages => {
                    let wanted = |i: &usize| !self.states[*i].outcome.is_known();
                    let numbers: Vec<usize> = (0..self.states.len()).filter(wanted).collect();
                    let queries: Vec<Query> = numbers.iter().map(|&i| self.query(i, stage)).collect();
                    if queries.is_empty() {
                        return None;
                    }
                    self.phase = Phase::Sent(stage, numbers.clone());
                    return Some(Round { stage, numbers, queries });
                }
                Phase::Retry(stage, faults) if faults.is_empty() => {
                    let numbers: Vec<usize> =
                        (0..self.states.len()).filter(|&i| self.lacks_terms(i, stage)).collect();
                    if !numbers.is_empty() {
                        let queries = numbers.iter().map(|&i| self.query_for_terms(i, stage)).collect();
                        self.phase = Phase::SentForTerms(stage, numbers.clone());
                        return Some(Round { stage, numbers, queries });
                    }
                    self.advance(stage);
                }
                Phase::Retry(stage, faults) => {
                    let numbers: Vec<usize> = faults.iter().map(|&(i, _)| i).collect();
                    let queries = numbers.iter().map(|&i| self.retry(i, stage)).collect();
                    self.phase = Phase::Retried(stage, faults);
                    return Some(Round { stage, numbers, queries });
                }
                sent @ (Phase::Sent(..) | Phase::Retried(..) | Phase::SentForTerms(..)) => {
                    // Still waiting for the answer.
                    self.phase = sent;
                    return None;
                }
                Phase::Send(_) | Phase::Done => return None,
            }
        }
    }

    /// The translation of a sentence, if it comes from the memory.
    pub fn memory_match(&self, number: usize) -> Option<String> {
        let outcome = &self.states.get(number)?.outcome;
        outcome.from_memory.then(|| outcome.translations.first().map(Translation::text)).flatten()
    }

    fn query(&self, i: usize, stage: usize) -> Query {
        let state = &self.states[i];
        let last = stage + 1 == self.stages;
        Query {
            text: state.input(),
            nbest: self.nbest(stage),
            attention: state.aligned,
            prefix: last && (state.first || !self.options.prefix_first),
            retry: false,
            phrases: Vec::new(),
            annotations: Vec::new(),
        }
    }

    /// The number of translations that a model should return.
    fn nbest(&self, stage: usize) -> usize {
        if stage + 1 == self.stages { self.options.nbest } else { 1 }
    }

    fn retry(&self, i: usize, stage: usize) -> Query {
        let query = self.query(i, stage);
        Query { text: guard::second_attempt(&query.text), retry: true, ..query }
    }

    /// The terms that a model's output should contain: for the last model all of them, for the
    /// others only those that stay untranslated.
    fn terms(&self, i: usize, stage: usize) -> Vec<Term> {
        let last = stage + 1 == self.stages;
        self.states[i].terms.iter().filter(|term| last || term.same).cloned().collect()
    }

    fn lacks_terms(&self, i: usize, stage: usize) -> bool {
        let State { terms, outcome, annotations, .. } = &self.states[i];
        let annotates = stage == 0 && !annotations.is_empty();
        if terms.is_empty() || outcome.is_known() || !(annotates || self.options.constrains()) {
            return false;
        }
        let (terms, text) = (self.terms(i, stage), outcome.line.best().text);
        terms::missing(&terms, &text).next().is_some()
    }

    /// The second search for a sentence whose translation lacks terms. Only these are annotated:
    /// the model writes the others without being told.
    fn query_for_terms(&self, i: usize, stage: usize) -> Query {
        let (query, state, terms) = (self.query(i, stage), &self.states[i], self.terms(i, stage));
        let text = state.outcome.line.best().text;
        let missing: Vec<&Term> = terms::missing(&terms, &text).collect();
        let is_missing =
            |annotation: &&Annotation| missing.iter().any(|term| term.target == annotation.target);
        let annotations = match stage {
            0 => state.annotations.iter().filter(is_missing).cloned().collect(),
            _ => Vec::new(),
        };
        let constrained = if self.options.constrains() { &terms[..] } else { &[] };
        let phrases = constrained.iter().map(Term::phrase).collect();
        Query { nbest: query.nbest.max(terms::CANDIDATES), phrases, annotations, ..query }
    }

    /// Takes the translations of the last round, in the same order.
    pub fn answer(&mut self, lines: Vec<Line>) {
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Sent(stage, numbers) => {
                let mut faults = Vec::new();
                for (i, line) in numbers.into_iter().zip(lines) {
                    let state = &mut self.states[i];
                    if self.options.guard {
                        let fault = guard::fault(&state.source(), &line.best().text);
                        faults.extend(fault.map(|fault| (i, fault)));
                    }
                    state.outcome.line = line;
                }
                self.phase = Phase::Retry(stage, faults);
            }
            Phase::Retried(stage, faults) => {
                for ((i, fault), second) in faults.into_iter().zip(lines) {
                    let state = &mut self.states[i];
                    let first = std::mem::take(&mut state.outcome.line);
                    let (line, guarded) = guard::better(&state.source(), fault, first, second);
                    state.outcome.line = line;
                    state.outcome.guarded = Some(guarded);
                }
                self.phase = Phase::Retry(stage, Vec::new());
            }
            Phase::SentForTerms(stage, numbers) => {
                for (i, second) in numbers.into_iter().zip(lines) {
                    let (terms, nbest) = (self.terms(i, stage), self.nbest(stage));
                    let state = &mut self.states[i];
                    let first = std::mem::take(&mut state.outcome.line);
                    state.outcome.line = terms::merge(&state.source(), &terms, first, second, nbest);
                }
                self.advance(stage);
            }
            other => self.phase = other,
        }
    }

    /// Passes the output of a model to the next one.
    fn advance(&mut self, stage: usize) {
        for state in self.states.iter_mut().filter(|state| !state.outcome.is_known()) {
            let confidence = confidence(&state.outcome.line.best().token_scores);
            let confidence = [state.outcome.confidence, confidence].into_iter().flatten().reduce(f32::min);
            state.outcome.confidence = confidence;
            let translations = state.translations();
            match stage + 1 == self.stages {
                true => state.outcome.translations = translations,
                false => state.before = translations.into_iter().next(),
            }
        }
        self.phase = Phase::Send(stage + 1);
    }

    /// The results for the sentences, which must be those that were added. Restores the protected
    /// spans that the models lost.
    pub fn finish<'s>(self, sentences: impl IntoIterator<Item = &'s Sentence>) -> Vec<Outcome> {
        let outcomes = self.states.into_iter().zip(sentences).map(|(state, sentence)| {
            let mut outcome = state.outcome;
            if !outcome.is_known() {
                let protected = protected_spans(sentence, &state.kept_terms);
                for translation in &mut outcome.translations {
                    sentence.restore_spans(&protected, translation);
                }
            }
            let best = outcome.translations.first().map(Translation::text).unwrap_or_default();
            outcome.terms = terms::report(&state.terms, &best);
            outcome
        });
        outcomes.collect()
    }

    /// Runs all rounds; `translate` answers each of them.
    pub fn run<E>(
        &mut self,
        mut translate: impl FnMut(&Round) -> std::result::Result<Vec<Line>, E>,
    ) -> std::result::Result<(), E> {
        while let Some(round) = self.next_round() {
            let lines = translate(&round)?;
            self.answer(lines);
        }
        Ok(())
    }
}

/// The protected spans of a sentence and its untranslated terms, sorted; none of them overlap.
fn protected_spans(sentence: &Sentence, kept_terms: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut spans = [sentence.protected.as_slice(), kept_terms].concat();
    spans.sort_by_key(|span| span.start);
    spans
}

fn from_memory(text: &str) -> Translation {
    Translation(text.split(' ').map(|word| Word::new(word, None)).collect())
}

/// Answers a round by calling `translate` once per group of sentences that are searched with the
/// same options.
pub fn search_round(
    round: &Round,
    options: &SearchOptions,
    mut translate: impl FnMut(&[&str], &[LineTerms], &SearchOptions) -> Result<Vec<Line>>,
) -> Result<Vec<Line>> {
    // Attention costs time, so it is computed only for sentences that need it.
    let mut alike: BTreeMap<(Attempt, bool, bool, usize), Vec<usize>> = BTreeMap::new();
    for (i, query) in round.queries.iter().enumerate() {
        let prefix = query.prefix || options.prefix.is_empty();
        alike.entry((query.attempt(), query.attention, prefix, query.nbest)).or_default().push(i);
    }
    let mut found = vec![Line::default(); round.queries.len()];
    for ((attempt, attention, prefix, nbest), numbers) in alike {
        let mut options = attempt.options(options);
        (options.attention, options.nbest) = (attention, nbest);
        options.beam = options.beam.max(nbest);
        if !prefix {
            options.prefix.clear();
        }
        let texts: Vec<&str> = numbers.iter().map(|&i| round.queries[i].text.as_str()).collect();
        let terms: Vec<LineTerms> = numbers.iter().map(|&i| round.queries[i].terms()).collect();
        for (i, line) in numbers.into_iter().zip(translate(&texts, &terms, &options)?) {
            found[i] = line;
        }
    }
    Ok(found)
}

/// A model of a route and its search options.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The model, or an ensemble of models.
    pub translator: &'a Translator,
    /// The search options.
    pub options: &'a SearchOptions,
}

/// Answers the rounds of a job with the models of a route.
pub fn run_job(job: &mut Job, route: &[Stage<'_>]) -> Result<()> {
    job.run(|round| {
        let stage = &route[round.stage];
        search_round(round, stage.options, |texts, terms, options| {
            let threads = stage.translator.threads();
            stage.translator.translate_with_terms(texts, terms, options, threads, &())
        })
    })
}

#[cfg(test)]
mod tests;
