//! Translates texts: sends their sentences through a route of models.
//!
//! Parsing and rendering a text keeps a core busy, so threads that serve requests do it only for
//! short texts: [`App::compute`] runs it on other threads, a few texts at a time, and the server
//! stays responsive.

use crate::App;
use crate::batcher::{Failure, QueuedSentence, Reservation, Search, Submission, Ticket};
use crate::error::{ApiError, ApiResult};
use crate::languages::Stage;
use crate::priority::lower_priority;
use axum::http::StatusCode;
use regard_documents::pipeline::{Job, JobOptions, Outcome as SentenceOutcome, Query, Round};
use regard_documents::{
    Document, Glossary, GlossaryMethod, Guarded, Match, Memory, Rendered, Sentence, TermReport, Translation,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::Instant;

/// Options in addition to the best translation.
#[derive(Clone, Debug, Default)]
pub(crate) struct TranslateOptions {
    pub(crate) alternatives: usize,
    pub(crate) alignment: bool,
    /// Terms with their translations.
    pub(crate) glossary: Option<Arc<Glossary>>,
    /// Whether to ignore the translation memory.
    pub(crate) without_memory: bool,
}

/// A text and its sentences.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) source: String,
    pub(crate) document: Document,
}

/// A translated text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) best: Rendered,
    pub(crate) alternatives: Vec<String>,
    pub(crate) report: TextReport,
}

/// Details of a translation.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextReport {
    /// The expected quality; `None` if no model was used.
    pub(crate) confidence: Option<f32>,
    /// Sentences whose first translation was degenerate.
    pub(crate) guarded: Vec<Guarded>,
    /// What the translation memory contributed.
    pub(crate) memory: Option<Match>,
    /// The expected quality of each sentence.
    pub(crate) sentences: Vec<Option<f32>>,
    /// Which glossary terms it contains and which it lacks.
    pub(crate) terms: TermReport,
}

impl TextReport {
    /// The report on the sentences of a text.
    pub(crate) fn new(outcomes: &[SentenceOutcome]) -> Self {
        let sure: Vec<f32> = outcomes.iter().filter_map(|outcome| outcome.confidence).collect();
        let mut terms = TermReport::default();
        outcomes.iter().for_each(|outcome| terms.add(&outcome.terms));
        TextReport {
            confidence: (!sure.is_empty()).then(|| sure.iter().sum::<f32>() / sure.len() as f32),
            guarded: outcomes.iter().filter_map(|outcome| outcome.guarded).collect(),
            memory: outcomes.iter().any(|outcome| outcome.from_memory).then_some(Match::Sentences),
            sentences: outcomes.iter().map(|outcome| outcome.confidence).collect(),
            terms,
        }
    }
}

/// Tells work on another thread that its client has disconnected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Returns an error once the result is no longer needed; no client sees this error.
    pub(crate) fn check(&self) -> ApiResult<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(ApiError::busy("the request was cancelled")),
            false => Ok(()),
        }
    }
}

/// Cancels the work when dropped.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::Full | Failure::Closing => ApiError::busy(message),
            Failure::WaitTooLong(wait) => ApiError::busy(message).after(wait),
            Failure::Panic => ApiError::internal(message),
            Failure::Refused(_) => ApiError::internal(format!("Cannot translate text: {message}")),
        }
    }
}

/// The length in bytes up to which a text is short.
const SHORT_TEXT: usize = 1_000;

/// The answer to a request whose work panicked.
const UNANSWERED: &str = "the request could not be answered; the log says why";

impl App {
    /// The deadline of a request that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.limits.timeout
    }

    /// Runs the work of a request with the standard timeout.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = ApiResult<T>>) -> ApiResult<T> {
        self.until(self.deadline(), work).await
    }

    /// Runs the work of a request until a deadline.
    pub(crate) async fn until<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        tokio::time::timeout_at(deadline, work).await.unwrap_or_else(|_| {
            let limit = self.settings.limits.timeout.as_secs_f64();
            Err(ApiError::busy(format!("The translation took longer than {limit} s")))
        })
    }

    /// Runs CPU-bound work on another thread, as soon as one of a limited number of slots is free.
    /// Dropping the future cancels the work.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Cancellation) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let ending = |_| ApiError::busy("the server is shutting down");
        let permit = Arc::clone(&self.compute_slots).acquire_owned().await.map_err(ending)?;
        let cancel = CancelOnDrop(Cancellation::default());
        let cancellation = cancel.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            // Cancelled work keeps its slot until it has actually ended.
            let _permit = permit;
            lower_priority();
            cancellation.check()?;
            work(&cancellation)
        });
        task.await.map_err(|_| ApiError::internal(UNANSWERED))?
    }

    /// [`App::compute`] for work on a text of this length. A short one stays on this thread: to wake
    /// up another takes as long as the work.
    pub(crate) async fn compute_text<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Cancellation) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        if bytes > SHORT_TEXT {
            return self.compute(work).await;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&Cancellation::default())));
        outcome.unwrap_or_else(|_| Err(ApiError::internal(UNANSWERED)))
    }

    /// Translates texts; all their sentences are queued together.
    pub(crate) async fn translate(
        &self,
        route: &[Stage],
        texts: Vec<Parsed>,
        options: TranslateOptions,
    ) -> ApiResult<Vec<Outcome>> {
        if route.is_empty() {
            // The source and target language are the same.
            let same = |text: Parsed| Rendered { text: text.source, alignment: Vec::new() };
            return Ok(texts
                .into_iter()
                .map(|text| Outcome { best: same(text), ..Outcome::default() })
                .collect());
        }
        let known: Vec<Option<String>> =
            texts.iter().map(|text| self.memory_match(route, &text.source, &options)).collect();
        let asked = texts.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(text, _)| text);
        let sentences = asked.flat_map(|text| &text.document.sentences);
        let job = self.job(route, sentences, &options);
        let job = self.run_job(route, job).await?;
        let bytes = texts.iter().map(|text| text.source.len()).sum();
        self.compute_text(bytes, move |cancellation| {
            let asked = texts.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(text, _)| text);
            let mut outcomes = job.finish(asked.flat_map(|text| &text.document.sentences)).into_iter();
            let outcome = |(text, known): (&Parsed, &Option<String>)| {
                cancellation.check()?;
                if let Some(text) = known {
                    let report = TextReport { memory: Some(Match::Segment), ..TextReport::default() };
                    let best = Rendered { text: text.clone(), alignment: Vec::new() };
                    return Ok(Outcome { best, report, ..Outcome::default() });
                }
                let own: Vec<_> = outcomes.by_ref().take(text.document.sentences.len()).collect();
                Ok(assemble(text, &own, options.alternatives))
            };
            texts.iter().zip(&known).map(outcome).collect()
        })
        .await
    }

    /// The translation of a whole text, if the memory has it, with the white space around it
    /// preserved.
    fn memory_match(&self, route: &[Stage], text: &str, options: &TranslateOptions) -> Option<String> {
        self.memory(route).filter(|_| !options.without_memory)?.find_segment(text)
    }

    /// The translation memory for the source and target language of a route.
    pub(crate) fn memory(&self, route: &[Stage]) -> Option<Arc<Memory>> {
        let languages = |stage: &Stage| Some(self.models.get(stage.model)?.languages(*stage));
        let ((source, _), (_, target)) = (languages(route.first()?)?, languages(route.last()?)?);
        self.settings.memories.get(&(source.to_owned(), target.to_owned())).cloned()
    }

    /// Runs a job through a route of models.
    pub(crate) async fn run_job(&self, route: &[Stage], job: Job) -> ApiResult<Job> {
        self.run_job_with_progress(route, job, |_, _| {}).await
    }

    /// Like [`App::run_job`]; `progress` gets the number of finished sentences and the total,
    /// including retries.
    pub(crate) async fn run_job_with_progress(
        &self,
        route: &[Stage],
        mut job: Job,
        mut progress: impl FnMut(usize, usize),
    ) -> ApiResult<Job> {
        let (mut done, mut total) = (0, 0);
        while let Some(round) = job.next_round() {
            let queued: Vec<QueuedSentence> = round.queries.iter().map(queued).collect();
            let count = queued.len();
            // The later models of the route will have to translate as many sentences.
            let later = route.len().saturating_sub(round.stage + 1);
            total = total.max(done + count * (1 + later));
            progress(done, total);
            let ticket = self.submit_round(route, &round, queued)?;
            let lines = ticket.wait_with_progress(|answered| progress(done + answered, total)).await?;
            done += count;
            job.answer(lines);
        }
        Ok(job)
    }

    /// Whether a route consists of one model that is trained to read terms.
    fn reads_terms(&self, route: &[Stage]) -> bool {
        let [stage] = route else { return false };
        self.models.get(stage.model).is_some_and(|model| model.resident.details().reads_terms)
    }

    /// A new job with these sentences.
    pub(crate) fn job<'s>(
        &self,
        route: &[Stage],
        sentences: impl Iterator<Item = &'s Sentence>,
        options: &TranslateOptions,
    ) -> Job {
        let wanted = JobOptions {
            nbest: 1 + options.alternatives,
            alignment: options.alignment,
            prefix_first: false,
            guard: self.settings.guard,
            memory: self.memory(route).filter(|_| !options.without_memory),
            glossary: options.glossary.clone(),
            glossary_method: GlossaryMethod::Auto,
            reads_terms: self.reads_terms(route),
        };
        let mut job = Job::new(route.len(), wanted);
        sentences.for_each(|sentence| job.add(sentence, true, ""));
        job
    }

    /// Queues a round for its model.
    pub(crate) fn submit_round(
        &self,
        route: &[Stage],
        round: &Round,
        sentences: Vec<QueuedSentence>,
    ) -> ApiResult<Ticket> {
        let missing = || ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "there is no such model");
        let submission = if round.stage == 0 { Submission::First } else { Submission::Later };
        self.submit_as(submission, *route.get(round.stage).ok_or_else(missing)?, sentences)
    }

    /// Counts a request in the queue of its first model before its text is parsed, or rejects it.
    /// `None` if the model is not known yet.
    pub(crate) fn reserve(&self, source: &str, target: &str) -> ApiResult<Option<Reservation>> {
        let codes = self.languages.known(source).and_then(|s| Ok((s, self.languages.known(target)?)));
        let route = codes.and_then(|(source, target)| self.languages.route(&source, &target));
        let model = match route {
            Ok(route) => route.first().and_then(|stage| self.models.get(stage.model)),
            // The language has to be detected, but there is only one model.
            Err(_) => self.models.first().filter(|_| self.models.len() == 1),
        };
        Ok(model.map(|model| model.batcher.reserve()).transpose()?)
    }

    /// Queues the first sentences of a request for a model.
    pub(crate) fn submit(&self, stage: Stage, sentences: Vec<QueuedSentence>) -> ApiResult<Ticket> {
        self.submit_as(Submission::First, stage, sentences)
    }

    fn submit_as(
        &self,
        submission: Submission,
        stage: Stage,
        mut sentences: Vec<QueuedSentence>,
    ) -> ApiResult<Ticket> {
        let missing = || ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "there is no such model");
        let model = self.models.get(stage.model).ok_or_else(missing)?;
        sentences.iter_mut().for_each(|sentence| sentence.search.pair = stage.pair);
        model.metrics.requests.add(1);
        Ok(model.batcher.submit_as(submission, sentences)?)
    }
}

/// Converts a query of a job for the queue.
pub(crate) fn queued(query: &Query) -> QueuedSentence {
    let (nbest, attention, attempt) = (query.nbest, query.attention, query.attempt());
    let search = Search { nbest, attention, attempt, pair: None };
    QueuedSentence { terms: query.terms(), ..QueuedSentence::new(query.text.clone(), search) }
}

/// Assembles a text and its alternatives: the n-th alternative uses the n-th best translation of
/// each sentence, and duplicates are dropped.
fn assemble(text: &Parsed, outcomes: &[SentenceOutcome], alternatives: usize) -> Outcome {
    let rendered = |n: usize| text.document.render(&text.source, &nth_best(outcomes, n));
    let best = rendered(0);
    let mut others: Vec<String> = Vec::new();
    for n in 1..=alternatives {
        let text = rendered(n).text;
        if text != best.text && !others.contains(&text) {
            others.push(text);
        }
    }
    Outcome { best, alternatives: others, report: TextReport::new(outcomes) }
}

/// The `n`-th best translation of each sentence, or its last one if there are fewer.
pub(crate) fn nth_best(outcomes: &[SentenceOutcome], n: usize) -> Vec<Translation> {
    let nth = |outcome: &SentenceOutcome| {
        let translations = &outcome.translations;
        translations.get(n).or(translations.last()).cloned().unwrap_or_default()
    };
    outcomes.iter().map(nth).collect()
}
