//! `POST /v1/translate_file/stream`: translates a file and reports the progress as server-sent
//! events.

use super::files::{FileAnswer, FileRequest};
use super::stream::{EventBody, Events};
use crate::App;
use crate::error::{ApiResult, typed};
use crate::params::Call;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The data of a server-sent event: the progress, and finally the URL of the translated file or an
/// error.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub(crate) enum FileEvent {
    Progress(Progress),
    File(FileAnswer),
    Error { error: String },
}

/// The number of sentences translated so far, and the total. With a pivot model, each sentence
/// counts once per model.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub(crate) struct Progress {
    done: usize,
    total: usize,
}

pub(super) async fn translate(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    // An invalid request gets an error status instead of a stream.
    let request = FileRequest::read(&app, &call)?;
    let (to, body) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut events = Events(to);
        let (sender, mut news) = watch::channel(Progress::default());
        // Only the latest count matters, so a watch channel may skip some.
        let work = request.answer(&app, |done, total| {
            sender.send_replace(Progress { done, total });
        });
        let mut work = std::pin::pin!(work);
        let last = loop {
            tokio::select! {
                biased;
                answer = &mut work => break answer,
                // The sender lives as long as the work.
                Ok(()) = news.changed() => {
                    let progress = *news.borrow_and_update();
                    if events.send(&FileEvent::Progress(progress)).await.is_err() {
                        // Dropping the work cancels its sentences.
                        tracing::debug!("the client of a file stream disconnected");
                        return;
                    }
                }
            }
        };
        let event = match last {
            Ok(answer) => FileEvent::File(answer),
            Err(error) => FileEvent::Error { error: error.message },
        };
        if events.send(&event).await.is_err() {
            tracing::debug!("the client of a file stream disconnected");
        }
    });
    let mut response = typed(StatusCode::OK, "text/event-stream; charset=utf-8", Body::new(EventBody(body)));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
