//! The capabilities and the state of the server: `/languages`, `/detect`, `/health`,
//! `/frontend/settings`, `/metrics`.

use super::translate::Detected;
use crate::App;
use crate::error::{ApiError, ApiResult, ok, typed};
use crate::languages::name;
use crate::params::Call;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// A source language.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Language<'a> {
    code: &'a str,
    name: &'a str,
    /// The languages into which it can be translated.
    targets: Vec<&'a str>,
}

/// `GET /languages`. Some clients send a body with it, which is ignored.
pub(super) async fn list(State(app): State<Arc<App>>) -> ApiResult {
    let all = app.languages.sources().map(|(code, targets)| Language { code, name: name(code), targets });
    ok(&all.collect::<Vec<_>>())
}

/// `POST /detect`.
pub(super) async fn detect(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let texts = call.texts()?;
    let characters = texts.list().iter().map(|text| text.chars().count()).sum();
    let limit = call.characters;
    if characters > limit {
        return Err(ApiError::too_long(characters, limit));
    }
    let shared = Arc::clone(&app);
    let work = app.compute(move |_| Ok(shared.languages.detect(&texts.list().join(" "))));
    let (language, confidence) = app.in_time(work).await?;
    ok(&[Detected { confidence, language }])
}

#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Health {
    status: Status,
}

#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
}

/// `GET /health`.
pub(super) async fn health() -> ApiResult {
    ok(&Health { status: Status::Ok })
}

#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrontendSettings<'a> {
    char_limit: usize,
    frontend_timeout: u32,
    api_keys: bool,
    key_required: bool,
    suggestions: bool,
    files_translation: bool,
    supported_files_format: Vec<String>,
    /// The names of the glossaries that requests can use.
    glossaries: Vec<String>,
    /// Whether there is a translation memory.
    memory: bool,
    language: Sides<'a>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Sides<'a> {
    source: Side<'a>,
    target: Side<'a>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Side<'a> {
    code: &'a str,
    name: &'a str,
}

/// `GET /frontend/settings`.
pub(super) async fn settings(State(app): State<Arc<App>>) -> ApiResult {
    let side = |code| Side { code, name: name(code) };
    let first = app.models.first().ok_or_else(|| ApiError::internal("there is no model"))?;
    ok(&FrontendSettings {
        char_limit: app.settings.limits.characters,
        frontend_timeout: 500,
        api_keys: app.gate.needs_key(),
        key_required: app.gate.needs_key(),
        suggestions: false,
        files_translation: true,
        supported_files_format: super::files::endings(),
        glossaries: app.settings.glossaries.keys().cloned().collect(),
        memory: !app.settings.memories.is_empty(),
        language: Sides { source: side("auto").named("Auto Detect"), target: side(&first.target) },
    })
}

impl<'a> Side<'a> {
    fn named(self, name: &'a str) -> Self {
        Side { name, ..self }
    }
}

/// `GET /metrics`.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> ApiResult {
    let models = app.models.iter().map(|m| (m.pair(), &*m.metrics, m.batcher.waiting()));
    let text = app.metrics.render(models);
    Ok(typed(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}
