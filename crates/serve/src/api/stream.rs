//! `POST /v1/translate/stream`: sends the growing translation as server-sent events.

use super::translate::TranslateRequest;
use crate::App;
use crate::batcher::{Progress, QueuedSentence};
use crate::error::{ApiError, ApiResult, typed};
use crate::languages::Stage;
use crate::params::{Call, Texts};
use crate::service::{Parsed, TranslateOptions, nth_best, queued};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use regard_documents::Document;
use regard_documents::pipeline::{Attempt, Job};
use schemars::JsonSchema;
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The data of a server-sent event: the text so far, or an error.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(untagged)]
pub(crate) enum Event<'a> {
    Text { text: &'a str, done: bool },
    Error { error: &'a str, done: bool },
}

/// The sending end of an event stream.
pub(super) struct Events(pub(super) mpsc::Sender<Bytes>);

/// The receiving end, which is the response body.
pub(super) struct EventBody(pub(super) mpsc::Receiver<Bytes>);

impl HttpBody for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The client has disconnected.
pub(super) struct Disconnected;

impl Events {
    pub(super) async fn send(&mut self, event: &impl Serialize) -> Result<(), Disconnected> {
        let line = serde_json::to_string(event).map_err(|_| Disconnected)?;
        self.0.send(Bytes::from(format!("data: {line}\n\n"))).await.map_err(|_| Disconnected)
    }
}

pub(super) async fn translate(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let request = TranslateRequest::read(&app, &call)?;
    let options = TranslateOptions {
        glossary: call.glossary(&app)?,
        without_memory: call.refuses_memory(),
        ..TranslateOptions::default()
    };
    if let Texts::Many(_) = request.texts {
        return Err(ApiError::bad("Invalid request: q must be a string; a stream has one text"));
    }
    let deadline = app.deadline();
    let text = app.until(deadline, request.parse(&app)).await?.pop();
    let text = text.ok_or_else(|| ApiError::missing("q"))?;
    let (to, body) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut events = Events(to);
        let work = async { Ok(follow(&app, &text.routed.route, text.parsed, &options, &mut events).await) };
        let outcome = app.until(deadline, work);
        // A client that has disconnected gets no response; dropping the future cancelled its
        // sentences.
        let last = match outcome.await {
            Ok(Ok(text)) => events.send(&Event::Text { text: &text, done: true }).await,
            Ok(Err(Stop::Disconnected)) => Err(Disconnected),
            Ok(Err(Stop::Failed(error))) | Err(error) => {
                events.send(&Event::Error { error: &error.message, done: true }).await
            }
        };
        if last.is_err() {
            tracing::debug!("the client of a stream disconnected");
        }
    });
    let mut response = typed(StatusCode::OK, "text/event-stream; charset=utf-8", Body::new(EventBody(body)));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Why a stream ends early.
enum Stop {
    Disconnected,
    Failed(ApiError),
}

impl From<Disconnected> for Stop {
    fn from(_: Disconnected) -> Self {
        Stop::Disconnected
    }
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        Stop::Failed(error)
    }
}

/// Each event contains the whole text so far. An event is sent when the text has grown by this
/// fraction (1/64) of its length, which bounds the total size of all events for a long text.
const GROWTH: usize = 64;

/// Streams the output of the last model in the route, and returns the whole text.
async fn follow(
    app: &App,
    route: &[Stage],
    text: Parsed,
    options: &TranslateOptions,
    events: &mut Events,
) -> Result<String, Stop> {
    if route.is_empty() {
        return Ok(text.source);
    }
    let mut job = app.job(route, text.document.sentences.iter(), options);
    let mut sent = String::new();
    while let Some(round) = job.next_round() {
        let mut sentences: Vec<QueuedSentence> = round.queries.iter().map(queued).collect();
        let followed = round.stage + 1 == route.len()
            && round.queries.iter().all(|q| matches!(q.attempt(), Attempt::Plain | Attempt::Annotated));
        let (to, from) = mpsc::channel(64);
        if followed {
            for (sentence, &number) in sentences.iter_mut().zip(&round.numbers) {
                sentence.progress = Some((number, to.clone()));
            }
        }
        let ticket = app.submit_round(route, &round, sentences)?;
        drop(to);
        if followed {
            send_updates(&text.document, &job, from, &mut sent, events).await?;
        }
        job.answer(ticket.wait().await.map_err(ApiError::from)?);
    }
    let rendered = app.compute(move |_| {
        let outcomes = job.finish(&text.document.sentences);
        Ok(text.document.render(&text.source, &nth_best(&outcomes, 0)).text)
    });
    Ok(rendered.await?)
}

/// Sends the text while its sentences grow. Returns when all sentences are finished, because then
/// every sender of `from` has been dropped.
async fn send_updates(
    document: &Document,
    job: &Job,
    mut from: mpsc::Receiver<Progress>,
    sent: &mut String,
    events: &mut Events,
) -> Result<(), Stop> {
    let known: Vec<Option<String>> = (0..document.sentences.len()).map(|i| job.memory_match(i)).collect();
    let mut parts: Vec<Vec<String>> = vec![Vec::new(); document.sentences.len()];
    let mut grown = 0;
    loop {
        let progress = tokio::select! {
            progress = from.recv() => progress,
            () = events.0.closed() => return Err(Stop::Disconnected),
        };
        let Some(progress) = progress else { return Ok(()) };
        grown += record_progress(&mut parts, progress);
        if grown < sent.len() / GROWTH {
            continue;
        }
        grown = 0;
        let partial =
            |i: usize| known[i].clone().or_else(|| (!parts[i].is_empty()).then(|| parts[i].join(" ")));
        let text = document.render_partial(partial);
        if text != *sent {
            events.send(&Event::Text { text: &text, done: false }).await?;
            *sent = text;
        }
    }
}

/// Stores the progress of a sentence, and returns the number of bytes by which it has grown.
fn record_progress(parts: &mut [Vec<String>], progress: Progress) -> usize {
    let Some(sentence) = parts.get_mut(progress.sentence) else { return 0 };
    if sentence.len() <= progress.part {
        sentence.resize(progress.part + 1, String::new());
    }
    let before = std::mem::replace(&mut sentence[progress.part], progress.text).len();
    sentence[progress.part].len().saturating_sub(before)
}
