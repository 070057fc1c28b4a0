//! Error responses: a status and a one-sentence message, in the format of LibreTranslate.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// An error response: `{"error": message}` with a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// When the client should try again.
    pub(crate) retry_after: Option<Duration>,
}

/// The result of a handler.
pub(crate) type ApiResult<T = Response> = Result<T, ApiError>;

/// The body of an error response.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ErrorAnswer<'a> {
    /// What is wrong.
    error: &'a str,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), retry_after: None }
    }

    /// 400: the request is invalid.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 400: a parameter is missing.
    pub(crate) fn missing(name: &str) -> Self {
        Self::bad(format!("Invalid request: missing {name} parameter"))
    }

    /// 400: the request has more characters, texts or tokens than allowed.
    pub(crate) fn too_long(size: usize, limit: usize) -> Self {
        Self::bad(format!("Invalid request: request ({size}) exceeds text limit ({limit})"))
    }

    /// 404: the resource does not exist.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{what} not found"))
    }

    /// 500: an internal error.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// 503: the server is overloaded.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).after(Duration::from_secs(1))
    }

    /// Sets the time after which to try again.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &ErrorAnswer { error: &self.message });
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never 0, which would mean "at once".
            let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => typed(status, "application/json", bytes),
        Err(error) => typed(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string()),
    }
}

/// A response with a content type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A JSON response with status 200.
pub(crate) fn ok(value: &impl Serialize) -> ApiResult {
    Ok(json(StatusCode::OK, value))
}
