//! Sentences on a route of models: the requests to each model, the guard, the translation memory,
//! the terms of the glossary, and the translations at the end.
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

/// What is wanted of the translations.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// How many translations of each sentence; one at least.
    pub nbest: usize,
    /// Whether all words are aligned; otherwise only those of sentences that need it.
    pub alignment: bool,
    /// Whether the prefix of the search is for the first sentence of each text alone.
    pub prefix_first: bool,
    /// Whether degenerate translations are tried again.
    pub guard: bool,
    /// Known translations.
    pub memory: Option<Arc<Memory>>,
    /// Terms and their translations.
    pub glossary: Option<Arc<Glossary>>,
    /// How these come into the translations.
    pub glossary_method: GlossaryMethod,
    /// Whether the model is trained to read them; never with several in a row, of which the last
    /// does not read the text that has the terms.
    pub reads_terms: bool,
}

impl JobOptions {
    /// Whether the model reads the translations of terms inside of the source.
    fn annotates(&self) -> bool {
        self.reads_terms && self.glossary_method != GlossaryMethod::Constrain
    }

    /// Whether a sentence that lacks terms is searched again.
    fn constrains(&self) -> bool {
        self.glossary_method != GlossaryMethod::Annotate
    }
}

/// A sentence for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What the model reads.
    pub text: String,
    /// How many translations are wanted.
    pub nbest: usize,
    /// Whether its words are aligned.
    pub attention: bool,
    /// Whether its translation begins with the prefix of the search.
    pub prefix: bool,
    /// Whether it is a second attempt, which is searched with [`guard::safer`] settings.
    pub retry: bool,
    /// Terms that the translation must have: it lacked some of them before. Then it is
    /// searched over the whole vocabulary.
    pub phrases: Vec<Phrase>,
    /// Translations of terms that the model reads inside of the text.
    pub annotations: Vec<Annotation>,
}

impl Query {
    /// How it is searched; queries that are searched alike can go together.
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

/// How a sentence is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attempt {
    /// As the options say.
    #[default]
    Plain,
    /// The same over the whole vocabulary: the translations of terms need not be on a shortlist.
    Annotated,
    /// With [`guard::safer`] options.
    Safer,
    /// For translations with given phrases.
    Constrained,
}

impl Attempt {
    /// The options of the search, made of those of a first attempt.
    pub fn options(self, options: &SearchOptions) -> SearchOptions {
        let options = match self {
            Attempt::Plain => options.clone(),
            Attempt::Annotated => SearchOptions { shortlist: None, ..options.clone() },
            Attempt::Safer => guard::safer(options),
            Attempt::Constrained => terms::forced(options),
        };
        SearchOptions { substitute: true, ..options }
    }
}

/// Sentences for a model of the route to translate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The model's number in the route.
    pub stage: usize,
    /// The numbers of the sentences, in the order in which they were added.
    pub numbers: Vec<usize>,
    /// The sentences.
    pub queries: Vec<Query>,
}

/// The result for a sentence.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its translations, best first and one at least.
    pub translations: Vec<Translation>,
    /// What the last model said.
    pub line: Line,
    /// Whether its first translation was degenerate, in any of the models.
    pub guarded: Option<Guarded>,
    /// Whether it comes from the memory.
    pub from_memory: bool,
    /// Whether it is not translated, because it has nothing but terms that stay as they are.
    pub kept: bool,
    /// How good it is likely to be: that of the model that was least sure.
    pub confidence: Option<f32>,
    /// Which terms of the glossary it has.
    pub terms: TermReport,
}

impl Outcome {
    /// Whether no model is needed.
    pub(crate) fn is_known(&self) -> bool {
        self.from_memory || self.kept
    }
}

/// A sentence on the route.
#[derive(Debug)]
struct State {
    text: String,
    /// A token such as `>>de<<` and a space, which the first model reads before it.
    language: String,
    aligned: bool,
    first: bool,
    terms: Vec<Term>,
    /// What the model reads of them inside of the text.
    annotations: Vec<Annotation>,
    /// Where terms stand that are not translated, in bytes.
    kept_terms: Vec<Range<usize>>,
    /// What the model before said.
    before: Option<Translation>,
    outcome: Outcome,
}

impl State {
    /// What the model at hand reads.
    fn input(&self) -> String {
        match &self.before {
            None => format!("{}{}", self.language, self.text),
            Some(before) => before.text(),
        }
    }

    /// What the model at hand translates, for the guard.
    fn source(&self) -> String {
        self.before.as_ref().map_or_else(|| self.text.clone(), Translation::text)
    }

    fn translations(&self) -> Vec<Translation> {
        if self.outcome.line.candidates.is_empty() {
            // The model said nothing; what must come through still does.
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

/// The candidate of a sentence that was read behind a language token, which is the first word of
/// the model's source.
fn without_first_word(candidate: &Candidate) -> Candidate {
    let pairs = candidate.alignment.iter().filter_map(|&(s, t)| Some((s.checked_sub(1)?, t)));
    Candidate { alignment: pairs.collect(), ..candidate.clone() }
}

#[derive(Debug)]
enum Phase {
    /// The model of this number is next.
    Ask(usize),
    /// These sentences, by their number, were sent to it.
    Asked(usize, Vec<usize>),
    /// These translations of it were degenerate and are searched again.
    Retry(usize, Vec<(usize, Fault)>),
    Retried(usize, Vec<(usize, Fault)>),
    /// These sentences lack terms and are searched once more.
    AskedForTerms(usize, Vec<usize>),
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
    /// For a route of `stages` models.
    pub fn new(stages: usize, options: JobOptions) -> Self {
        let options = JobOptions { nbest: options.nbest.max(1), ..options };
        Job { states: Vec::new(), stages, options, phase: Phase::Ask(0) }
    }

    /// Adds a sentence, the first of its text or a later one. The first model reads `language`, if
    /// there is any, before it.
    pub fn add(&mut self, sentence: &Sentence, first: bool, language: &str) {
        let mut outcome = Outcome::default();
        // A translation of the memory does not say where its tags would be.
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
        if !kept_terms.is_empty() && !is_translatable(&sentence.text, &in_order(sentence, &kept_terms)) {
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

    /// What must be translated next; nothing when all is.
    pub fn next_round(&mut self) -> Option<Round> {
        loop {
            match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Ask(stage) if stage < self.stages => {
                    let wanted = |i: &usize| !self.states[*i].outcome.is_known();
                    let numbers: Vec<usize> = (0..self.states.len()).filter(wanted).collect();
                    let queries: Vec<Query> = numbers.iter().map(|&i| self.query(i, stage)).collect();
                    if queries.is_empty() {
                        return None;
                    }
                    self.phase = Phase::Asked(stage, numbers.clone());
                    return Some(Round { stage, numbers, queries });
                }
                Phase::Retry(stage, faults) if faults.is_empty() => {
                    let numbers: Vec<usize> =
                        (0..self.states.len()).filter(|&i| self.lacks_terms(i, stage)).collect();
                    if !numbers.is_empty() {
                        let queries = numbers.iter().map(|&i| self.query_for_terms(i, stage)).collect();
                        self.phase = Phase::AskedForTerms(stage, numbers.clone());
                        return Some(Round { stage, numbers, queries });
                    }
                    self.pass_on(stage);
                }
                Phase::Retry(stage, faults) => {
                    let numbers: Vec<usize> = faults.iter().map(|&(i, _)| i).collect();
                    let queries = numbers.iter().map(|&i| self.retry(i, stage)).collect();
                    self.phase = Phase::Retried(stage, faults);
                    return Some(Round { stage, numbers, queries });
                }
                asked @ (Phase::Asked(..) | Phase::Retried(..) | Phase::AskedForTerms(..)) => {
                    // Still waiting for the answer.
                    self.phase = asked;
                    return None;
                }
                Phase::Ask(_) | Phase::Done => return None,
            }
        }
    }

    /// The translation of a sentence by its number, if it comes from the memory.
    pub fn remembered(&self, number: usize) -> Option<String> {
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
            annotations: if stage == 0 { state.annotations.clone() } else { Vec::new() },
        }
    }

    /// How many translations are wanted of a model.
    fn nbest(&self, stage: usize) -> usize {
        if stage + 1 == self.stages { self.options.nbest } else { 1 }
    }

    fn retry(&self, i: usize, stage: usize) -> Query {
        let query = self.query(i, stage);
        // What went wrong may be due to the annotations; they also may not fit the other text.
        let annotations = Vec::new();
        Query { text: guard::second_attempt(&query.text), retry: true, annotations, ..query }
    }

    /// The terms that the model of a number should write: all in the last language, and before that
    /// those that stay as they are.
    fn terms(&self, i: usize, stage: usize) -> Vec<Term> {
        let last = stage + 1 == self.stages;
        self.states[i].terms.iter().filter(|term| last || term.same).cloned().collect()
    }

    fn lacks_terms(&self, i: usize, stage: usize) -> bool {
        let outcome = &self.states[i].outcome;
        if self.states[i].terms.is_empty() || outcome.is_known() || !self.options.constrains() {
            return false;
        }
        let (terms, text) = (self.terms(i, stage), outcome.line.best().text);
        terms::missing(&terms, &text).next().is_some()
    }

    fn query_for_terms(&self, i: usize, stage: usize) -> Query {
        let query = self.query(i, stage);
        let phrases = self.terms(i, stage).iter().map(Term::phrase).collect();
        Query { nbest: query.nbest.max(terms::CANDIDATES), phrases, ..query }
    }

    /// Takes the translations of the last round, in its order.
    pub fn answer(&mut self, lines: Vec<Line>) {
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Asked(stage, numbers) => {
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
            Phase::AskedForTerms(stage, numbers) => {
                for (i, second) in numbers.into_iter().zip(lines) {
                    let (terms, nbest) = (self.terms(i, stage), self.nbest(stage));
                    let state = &mut self.states[i];
                    let first = std::mem::take(&mut state.outcome.line);
                    state.outcome.line = terms::merge(&state.source(), &terms, first, second, nbest);
                }
                self.pass_on(stage);
            }
            other => self.phase = other,
        }
    }

    /// What a model said becomes what the next one reads.
    fn pass_on(&mut self, stage: usize) {
        for state in self.states.iter_mut().filter(|state| !state.outcome.is_known()) {
            let sure = confidence(&state.outcome.line.best().token_scores);
            let sure = [state.outcome.confidence, sure].into_iter().flatten().reduce(f32::min);
            state.outcome.confidence = sure;
            let translations = state.translations();
            match stage + 1 == self.stages {
                true => state.outcome.translations = translations,
                false => state.before = translations.into_iter().next(),
            }
        }
        self.phase = Phase::Ask(stage + 1);
    }

    /// What became of the sentences, which must be those that were added; what the models have lost
    /// of their protected spans is back.
    pub fn finish<'s>(self, sentences: impl IntoIterator<Item = &'s Sentence>) -> Vec<Outcome> {
        let outcomes = self.states.into_iter().zip(sentences).map(|(state, sentence)| {
            let mut outcome = state.outcome;
            if !outcome.is_known() {
                let protected = in_order(sentence, &state.kept_terms);
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

    /// Goes the whole way; `translate` answers each round.
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

/// The protected spans of a sentence and the terms that are not translated, none of which overlap.
fn in_order(sentence: &Sentence, kept_terms: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut spans = [sentence.protected.as_slice(), kept_terms].concat();
    spans.sort_by_key(|span| span.start);
    spans
}

fn from_memory(text: &str) -> Translation {
    Translation(text.split(' ').map(|word| Word::new(word, None)).collect())
}

/// Answers a round: the sentences go to `translate` with the terms of each, those together that are
/// searched alike.
pub fn search_round(
    round: &Round,
    options: &SearchOptions,
    mut translate: impl FnMut(&[&str], &[LineTerms], &SearchOptions) -> Result<Vec<Line>>,
) -> Result<Vec<Line>> {
    // Attention costs time, so only sentences that need it have it.
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

/// A model of a route and how it is searched.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The model, or several of one kind.
    pub translator: &'a Translator,
    /// Its search.
    pub options: &'a SearchOptions,
}

/// Answers the rounds of a job with the models of a route, one sentence batch after the other.
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
