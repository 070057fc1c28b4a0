//! The web page and its files, which are embedded in the binary.

use crate::App;
use crate::error::typed;
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::{Arc, LazyLock};
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

/// All files of the page. They load nothing from other servers.
const FILES: &[File] = files! {
    "style.css": CSS,
    "inside.css": CSS,
    "icon.svg": SVG,
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "beam-tree.js": SCRIPT,
    "chart.js": SCRIPT,
    "colour.js": SCRIPT,
    "decoding.js": SCRIPT,
    "dom.js": SCRIPT,
    "files.js": SCRIPT,
    "glossary-table.js": SCRIPT,
    "glossary.js": SCRIPT,
    "heads.js": SCRIPT,
    "heatmap.js": SCRIPT,
    "i18n.js": SCRIPT,
    "latest.js": SCRIPT,
    "lines.js": SCRIPT,
    "math.js": SCRIPT,
    "messages.js": SCRIPT,
    "remarks.js": SCRIPT,
    "ribbons.js": SCRIPT,
    "scale.js": SCRIPT,
    "sentence.js": SCRIPT,
    "sinusoid.js": SCRIPT,
    "steps-diagram.js": SCRIPT,
    "steps-panel.js": SCRIPT,
    "steps.js": SCRIPT,
    "store.js": SCRIPT,
    "strings-en.js": SCRIPT,
    "strings-zh.js": SCRIPT,
    "strip.js": SCRIPT,
    "text.js": SCRIPT,
    "theme.js": SCRIPT,
    "view-attention.js": SCRIPT,
    "view-decoding.js": SCRIPT,
    "view-model.js": SCRIPT,
    "view-positions.js": SCRIPT,
    "view-steps.js": SCRIPT,
    "view-studies.js": SCRIPT,
    "view-translate.js": SCRIPT,
    "word-links.js": SCRIPT,
};

/// A page of this server may load resources only from this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Adds a route for each file.
pub(crate) fn add_to(router: Router<Arc<App>>) -> Router<Arc<App>> {
    FILES.iter().enumerate().fold(router, |router, (i, &file)| {
        let content = move |gzip: bool| match GZIPPED.get(i) {
            Some(bytes) if gzip => bytes.as_slice(),
            _ => file.bytes,
        };
        let handler = move |headers: HeaderMap| async move {
            let gzip = accepts_gzip(&headers);
            sent(&headers, file.kind, content(gzip), gzip)
        };
        router.route(file.path, get(handler))
    })
}

/// The compressed files, created on first use.
static GZIPPED: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| FILES.iter().map(|file| gzipped(file.bytes).unwrap_or_default()).collect());

fn gzipped(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Whether a client accepts gzip, by name or as `*`, with a non-zero weight.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let listed = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = listed.flat_map(|list| list.split(',')).map(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, "q=1"));
        let weight = weight.trim().trim_start_matches("q=").parse::<f32>().unwrap_or(1.0);
        (name.trim().to_ascii_lowercase(), weight > 0.0)
    });
    codings.any(|(name, allowed)| allowed && (name == "gzip" || name == "*"))
}

/// A page or one of its files; status 304 with its ETag if the client already has it.
pub(crate) fn answer(request: &HeaderMap, kind: &'static str, bytes: impl AsRef<[u8]>) -> Response {
    sent(request, kind, bytes.as_ref(), false)
}

/// Like [`answer`]; `gzip` says that the bytes are compressed.
fn sent(request: &HeaderMap, kind: &'static str, bytes: &[u8], gzip: bool) -> Response {
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
    if gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_stays_small() {
        let plain: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        let sent: usize = GZIPPED.iter().map(Vec::len).sum();
        assert!(plain < 300_000, "{plain} bytes before compression");
        assert!(sent < plain / 2, "{sent} of {plain} bytes");
    }

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        for (value, wanted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepts_gzip(&headers), wanted, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

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
