//! The endpoints; each file contains a related group.

pub(crate) mod beam;
pub(crate) mod file_stream;
pub(crate) mod files;
pub(crate) mod inside;
pub(crate) mod languages;
pub(crate) mod steps;
pub(crate) mod stream;
pub(crate) mod translate;

use crate::App;
use crate::{page, spec, studies};
use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

/// All endpoints; `spec` describes them, and a test checks that the two match.
pub(crate) fn routes() -> Router<Arc<App>> {
    let router = Router::new()
        .route("/translate", post(translate::translate))
        .route("/languages", get(languages::list))
        .route("/detect", post(languages::detect))
        .route("/health", get(languages::health))
        .route("/frontend/settings", get(languages::settings))
        .route("/translate_file", post(files::translate))
        .route("/download_file/{name}", get(files::download))
        .route("/v1/translate_file/stream", post(file_stream::translate))
        .route("/v1/translate/stream", post(stream::translate))
        .route("/v1/attention", post(inside::attention))
        .route("/v1/steps", post(steps::steps))
        .route("/v1/beam", post(beam::beam))
        .route("/v1/positions", get(inside::positions))
        .route("/v1/model", get(inside::models))
        .route("/metrics", get(languages::metrics))
        .route("/spec", get(spec::document))
        .route("/docs", get(spec::viewer));
    studies::add_to(page::add_to(router))
}
