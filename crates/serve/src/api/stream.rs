//! `POST /v1/translate/stream`: the translation while it grows, as server-sent events.

use super::translate::{Wanted, document};
use crate::App;
use crate::batcher::Growth;
use crate::error::{ApiError, ApiResult, typed};
use crate::languages::Route;
use crate::params::{Call, Texts};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use regard_documents::{Document, Sentence, Translation};
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Event<'a> {
    Text { text: &'a str, done: bool },
    Error { error: &'a str, done: bool },
}

/// Where the events of a stream are put in.
struct Events(mpsc::Sender<Bytes>);

/// Where they come out: the body of the answer.
struct EventBody(mpsc::Receiver<Bytes>);

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

/// The client has gone.
struct Gone;

impl Events {
    async fn send(&mut self, event: &Event<'_>) -> Result<(), Gone> {
        let line = serde_json::to_string(event).map_err(|_| Gone)?;
        self.0.send(Bytes::from(format!("data: {line}\n\n"))).await.map_err(|_| Gone)
    }
}

pub(super) async fn translate(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let mut wanted = Wanted::read(&app, &call)?;
    let (Texts::One(text), Some(way)) = (wanted.texts, wanted.ways.pop()) else {
        return Err(ApiError::bad("Invalid request: q must be a string; a stream has one text"));
    };
    let (to, body) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut events = Events(to);
        let outcome = app.in_time(async {
            Ok(follow(&app, &way.route, &text, &document(&text, wanted.markup), &mut events).await)
        });
        // A client that has gone is told nothing; dropping the future gave up its sentences.
        let last = match outcome.await {
            Ok(Ok(text)) => events.send(&Event::Text { text: &text, done: true }).await,
            Ok(Err(Stop::Gone)) => Err(Gone),
            Ok(Err(Stop::Failed(error))) | Err(error) => {
                events.send(&Event::Error { error: &error.message, done: true }).await
            }
        };
        if last.is_err() {
            tracing::debug!("a client left its stream");
        }
    });
    let mut response = typed(StatusCode::OK, "text/event-stream; charset=utf-8", Body::new(EventBody(body)));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Why a stream ends early.
enum Stop {
    Gone,
    Failed(ApiError),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Stop::Gone
    }
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        Stop::Failed(error)
    }
}

/// Sends what the last model of the route says so far, and returns the whole text.
async fn follow(
    app: &App,
    route: &Route,
    source: &str,
    document: &Document,
    events: &mut Events,
) -> Result<String, Stop> {
    let Some((&last, before)) = route.split_last() else { return Ok(source.to_owned()) };
    let sentences: Vec<&Sentence> = document.sentences.iter().collect();
    let read = app.approach(before, &sentences, false).await?;
    let (to, mut from) = mpsc::channel(64);
    let queued = read.iter().zip(&sentences).enumerate().map(|(i, (read, sentence))| {
        let mut queued = read.queued(sentence, 1, false);
        queued.progress = Some((i, to.clone()));
        queued
    });
    let ticket = app.submit(last, queued.collect())?;
    drop(to);
    let mut parts: Vec<Vec<String>> = vec![Vec::new(); sentences.len()];
    let mut told = String::new();
    // It ends when the last sentence is finished: then nobody holds the other end.
    loop {
        let growth = tokio::select! {
            growth = from.recv() => growth,
            () = events.0.closed() => return Err(Stop::Gone),
        };
        let Some(growth) = growth else { break };
        grow(&mut parts, growth);
        let said: Vec<_> = parts.iter().map(|p| (!p.is_empty()).then(|| p.join(" "))).collect();
        let text = document.so_far(&said);
        if text != told {
            events.send(&Event::Text { text: &text, done: false }).await?;
            told = text;
        }
    }
    let lines = ticket.wait().await.map_err(ApiError::from)?;
    let mut translation: Vec<Translation> =
        lines.iter().zip(&read).map(|(line, read)| read.best(line)).collect();
    sentences.iter().zip(&mut translation).for_each(|(sentence, translation)| sentence.restore(translation));
    Ok(document.render(source, &translation).text)
}

fn grow(parts: &mut [Vec<String>], growth: Growth) {
    let Some(said) = parts.get_mut(growth.sentence) else { return };
    if said.len() <= growth.part {
        said.resize(growth.part + 1, String::new());
    }
    said[growth.part] = growth.text;
}
