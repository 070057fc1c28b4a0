//! The page and its files, which are part of the program.

use crate::App;
use crate::error::typed;
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A file of the page.
#[derive(Clone, Copy)]
struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

pub(crate) const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// Every file. They load nothing from anywhere else.
const FILES: [File; 2] = [
    File { path: "/", kind: HTML, bytes: include_bytes!("../page/index.html") },
    File { path: "/docs.css", kind: CSS, bytes: include_bytes!("docs.css") },
];

/// A page of this server may load from this server alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Adds a route for each file.
pub(crate) fn add_to(router: Router<Arc<App>>) -> Router<Arc<App>> {
    FILES.iter().fold(router, |router, &file| {
        router.route(
            file.path,
            get(move |headers: HeaderMap| async move { answer(&headers, file.kind, file.bytes) }),
        )
    })
}

/// A page or a file of it: nothing but its tag if the client has it already.
pub(crate) fn answer(request: &HeaderMap, kind: &'static str, bytes: impl AsRef<[u8]>) -> Response {
    let bytes = bytes.as_ref();
    let tag = format!("\"{:016x}\"", xxh3_64(bytes));
    let known = request.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let known = known.is_some_and(|tags| {
        tags.split(',').any(|t| t.trim().trim_start_matches("W/") == tag || t.trim() == "*")
    });
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => typed(StatusCode::OK, kind, bytes.to_vec()),
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
