//! From texts to translated texts: documents go along a route of models, sentence by sentence.

use crate::App;
use crate::batcher::{Failure, Search, Sentence as Queued, Ticket};
use crate::error::{ApiError, ApiResult};
use crate::languages::Route;
use axum::http::StatusCode;
use regard_core::translator::Line;
use regard_documents::{Document, Rendered, Sentence, Translation};

/// What is wanted beside the best translation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) alternatives: usize,
    pub(crate) alignment: bool,
}

/// A translated text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) best: Rendered,
    pub(crate) alternatives: Vec<String>,
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
    /// Runs a translation for as long as a request may take.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = ApiResult<T>>) -> ApiResult<T> {
        let limit = self.settings.limits.timeout;
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
            let message = format!("The translation took longer than {} s", limit.as_secs_f64());
            Err(ApiError::busy(message))
        })
    }

    /// Translates texts; all their sentences go into the queue together.
    pub(crate) async fn translate(
        &self,
        route: &Route,
        texts: &[(&str, Document)],
        wishes: Wishes,
    ) -> ApiResult<Vec<Outcome>> {
        let Some((&last, before)) = route.split_last() else {
            // From a language to itself.
            let same = |source: &str| Rendered { text: source.to_owned(), alignment: Vec::new() };
            let outcome = |best| Outcome { best, alternatives: Vec::new() };
            return Ok(texts.iter().map(|(source, _)| outcome(same(source))).collect());
        };
        let sentences: Vec<&Sentence> = texts.iter().flat_map(|(_, document)| &document.sentences).collect();
        let read = self.approach(before, &sentences, wishes.alignment).await?;
        let count = 1 + wishes.alternatives;
        let queued = read.iter().zip(&sentences).map(|(read, s)| read.queued(s, count, wishes.alignment));
        let lines = self.submit(last, queued.collect())?.wait().await?;
        let mut nbest: Vec<Vec<Translation>> =
            lines.iter().zip(&read).map(|(line, read)| read.candidates(line)).collect();
        for (sentence, candidates) in sentences.iter().zip(&mut nbest) {
            candidates.iter_mut().for_each(|translation| sentence.restore(translation));
        }
        let mut rest = nbest.as_slice();
        let outcomes = texts.iter().map(|(source, document)| {
            let (own, others) = rest.split_at(document.sentences.len().min(rest.len()));
            rest = others;
            assemble(source, document, own, wishes.alternatives)
        });
        Ok(outcomes.collect())
    }

    /// The sentences as the last model of a route reads them: what the models before it say.
    pub(crate) async fn approach(
        &self,
        before: &[usize],
        sentences: &[&Sentence],
        alignment: bool,
    ) -> ApiResult<Vec<Read>> {
        let mut read: Vec<Read> = sentences.iter().map(|_| Read(None)).collect();
        for &model in before {
            let queued = read.iter().zip(sentences).map(|(read, s)| read.queued(s, 1, alignment));
            let lines = self.submit(model, queued.collect())?.wait().await?;
            read = lines.iter().zip(&read).map(|(line, read)| Read(Some(read.best(line)))).collect();
        }
        Ok(read)
    }

    /// Puts sentences into a model's queue.
    pub(crate) fn submit(&self, model: usize, sentences: Vec<Queued>) -> ApiResult<Ticket> {
        let missing = || ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "there is no such model");
        let model = self.models.get(model).ok_or_else(missing)?;
        model.metrics.requests.add(1);
        Ok(model.batcher.submit(sentences)?)
    }
}

/// What a model reads: the sentence itself, or what the model before it said.
#[derive(Debug)]
pub(crate) struct Read(Option<Translation>);

impl Read {
    pub(crate) fn queued(&self, sentence: &Sentence, nbest: usize, alignment: bool) -> Queued {
        let text = self.0.as_ref().map_or_else(|| sentence.text.clone(), Translation::text);
        let attention = alignment || sentence.needs_alignment();
        Queued::new(text, Search { nbest, attention })
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
fn assemble(source: &str, document: &Document, nbest: &[Vec<Translation>], alternatives: usize) -> Outcome {
    let rendered = |n: usize| {
        let nth = |c: &Vec<Translation>| c.get(n).or(c.last()).cloned().unwrap_or_default();
        document.render(source, &nbest.iter().map(nth).collect::<Vec<_>>())
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
