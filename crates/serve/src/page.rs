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

const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal: $kind:ident,)*) => {
        &[
            File { path: "/", kind: HTML, bytes: include_bytes!("../page/index.html") },
            File { path: "/docs.css", kind: CSS, bytes: include_bytes!("docs.css") },
            $(File { path: concat!("/", $name), kind: $kind, bytes: include_bytes!(concat!("../page/", $name)) },)*
        ]
    };
}

/// Every file. They load nothing from anywhere else.
const FILES: &[File] = files! {
    "style.css": CSS,
    "icon.svg": SVG,
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "chart.js": SCRIPT,
    "colour.js": SCRIPT,
    "dom.js": SCRIPT,
    "heatmap.js": SCRIPT,
    "heads.js": SCRIPT,
    "latest.js": SCRIPT,
    "lines.js": SCRIPT,
    "scale.js": SCRIPT,
    "sinusoid.js": SCRIPT,
    "store.js": SCRIPT,
    "text.js": SCRIPT,
    "theme.js": SCRIPT,
    "view-attention.js": SCRIPT,
    "view-model.js": SCRIPT,
    "view-positions.js": SCRIPT,
    "view-translate.js": SCRIPT,
    "word-links.js": SCRIPT,
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            // The first is served as `/`; the second is for the tests of the modules.
            if name != "index.html" && name != "package.json" {
                assert!(FILES.iter().any(|file| file.path == format!("/{name}")), "{name}");
            }
        }
    }
}
