//! From texts to translated texts: documents go along a route of models, sentence by sentence.
//!
//! Taking texts apart and putting them together is work for a core, not for the threads that answer
//! requests: [`App::compute`] does it elsewhere, a few texts at a time, so that the server answers whatever
//! it is sent.

use crate::App;
use crate::batcher::{Failure, QueuedSentence, Search, Ticket};
use crate::error::{ApiError, ApiResult};
use axum::http::StatusCode;
use regard_core::translator::Line;
use regard_documents::{Document, Rendered, Sentence, Translation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::Instant;

/// What is wanted beside the best translation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TranslateOptions {
    pub(crate) alternatives: usize,
    pub(crate) alignment: bool,
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
}

/// Tells work on another thread that nobody waits for it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// An error as soon as the result is no longer needed; no client sees it.
    pub(crate) fn check(&self) -> ApiResult<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(ApiError::busy("the request was given up")),
            false => Ok(()),
        }
    }
}

/// Cancels when it is dropped.
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
            Failure::Panic => ApiError::internal(message),
            Failure::Refused(_) => ApiError::internal(format!("Cannot translate text: {message}")),
        }
    }
}

impl App {
    /// When a request that begins now must be answered.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.limits.timeout
    }

    /// Runs the work of a request for as long as it may take.
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

    /// Runs work that needs a core on a thread of its own, as soon as one of a few is free. When the future
    /// is dropped, the work is cancelled.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Cancellation) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let ending = |_| ApiError::busy("the server is shutting down");
        let permit = Arc::clone(&self.compute_slots).acquire_owned().await.map_err(ending)?;
        let cancel = CancelOnDrop(Cancellation::default());
        let cancellation = cancel.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            // Work that was given up frees its slot when it ends, not before.
            let _permit = permit;
            cancellation.check()?;
            work(&cancellation)
        });
        let failed = |_| ApiError::internal("the request could not be answered; the log says why");
        task.await.map_err(failed)?
    }

    /// Translates texts; all their sentences go into the queue together.
    pub(crate) async fn translate(
        &self,
        route: &[usize],
        texts: Vec<Parsed>,
        options: TranslateOptions,
    ) -> ApiResult<Vec<Outcome>> {
        let Some((&last, before)) = route.split_last() else {
            // From a language to itself.
            let same = |text: Parsed| Rendered { text: text.source, alignment: Vec::new() };
            let outcome = |text| Outcome { best: same(text), alternatives: Vec::new() };
            return Ok(texts.into_iter().map(outcome).collect());
        };
        let sentences: Vec<&Sentence> = texts.iter().flat_map(|text| &text.document.sentences).collect();
        let inputs = self.pivot(before, &sentences, options.alignment).await?;
        let count = 1 + options.alternatives;
        let queued =
            inputs.iter().zip(&sentences).map(|(input, s)| input.queued(s, count, options.alignment));
        let lines = self.submit(last, queued.collect())?.wait().await?;
        self.compute(move |cancellation| {
            let mut lines = lines.iter().zip(&inputs);
            let outcome = |text: &Parsed| {
                cancellation.check()?;
                let nbest =
                    text.document.sentences.iter().zip(lines.by_ref()).map(|(sentence, (line, input))| {
                        let mut candidates = input.candidates(line);
                        candidates.iter_mut().for_each(|translation| sentence.restore(translation));
                        candidates
                    });
                let nbest: Vec<_> = nbest.collect();
                Ok(assemble(text, &nbest, options.alternatives))
            };
            texts.iter().map(outcome).collect()
        })
        .await
    }

    /// The sentences as the last model of a route reads them: what the models before it say.
    pub(crate) async fn pivot(
        &self,
        before: &[usize],
        sentences: &[&Sentence],
        alignment: bool,
    ) -> ApiResult<Vec<Input>> {
        let mut inputs: Vec<Input> = sentences.iter().map(|_| Input(None)).collect();
        for &model in before {
            let queued = inputs.iter().zip(sentences).map(|(input, s)| input.queued(s, 1, alignment));
            let lines = self.submit(model, queued.collect())?.wait().await?;
            inputs = lines.iter().zip(&inputs).map(|(line, input)| Input(Some(input.best(line)))).collect();
        }
        Ok(inputs)
    }

    /// Puts sentences into a model's queue.
    pub(crate) fn submit(&self, model: usize, sentences: Vec<QueuedSentence>) -> ApiResult<Ticket> {
        let missing = || ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "there is no such model");
        let model = self.models.get(model).ok_or_else(missing)?;
        model.metrics.requests.add(1);
        Ok(model.batcher.submit(sentences)?)
    }
}

/// What a model reads: the sentence itself, or what the model before it said.
#[derive(Debug)]
pub(crate) struct Input(Option<Translation>);

impl Input {
    pub(crate) fn queued(&self, sentence: &Sentence, nbest: usize, alignment: bool) -> QueuedSentence {
        let text = self.0.as_ref().map_or_else(|| sentence.text.clone(), Translation::text);
        let attention = alignment || sentence.needs_alignment();
        QueuedSentence::new(text, Search { nbest, attention })
    }

    /// What became of it, as translations of the sentence.
    fn candidates(&self, line: &Line) -> Vec<Translation> {
        if line.candidates.is_empty() {
            // The model before it said nothing; what must come through still does.
            return vec![Translation::default()];
        }
        let translation = line.candidates.iter().map(Translation::new);
        match &self.0 {
            None => translation.collect(),
            Some(before) => translation.map(|translation| translation.after(before)).collect(),
        }
    }

    pub(crate) fn best(&self, line: &Line) -> Translation {
        self.candidates(line).into_iter().next().unwrap_or_default()
    }
}

/// A text and its alternatives: the n-th best of each sentence together, those that differ.
fn assemble(text: &Parsed, nbest: &[Vec<Translation>], alternatives: usize) -> Outcome {
    let rendered = |n: usize| {
        let nth = |c: &Vec<Translation>| c.get(n).or(c.last()).cloned().unwrap_or_default();
        text.document.render(&text.source, &nbest.iter().map(nth).collect::<Vec<_>>())
    };
    let best = rendered(0);
    let mut others: Vec<String> = Vec::new();
    for n in 1..=alternatives {
        let text = rendered(n).text;
        if text != best.text && !others.contains(&text) {
            others.push(text);
        }
    }
    Outcome { best, alternatives: others }
}
