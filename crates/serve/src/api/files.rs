//! `POST /translate_file` and `GET /download_file/{name}`: translated files, which are kept in
//! memory for a limited time.

use super::translate::{Terms, route};
use crate::App;
use crate::error::{ApiError, ApiResult, ok, typed};
use crate::keys::hex;
use crate::params::Call;
use crate::service::{TranslateOptions, nth_best};
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use regard_documents::files::{FileDocument, FileError, FileOptions, Format};
use regard_documents::{TermReport, Translation};
use ring::rand::{SecureRandom, SystemRandom};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The supported file name extensions, with the dot.
pub(super) fn endings() -> Vec<String> {
    let extensions = Format::ALL.iter().flat_map(|format| format.extensions());
    extensions.map(|extension| format!(".{extension}")).collect()
}

/// How long a translated file can be downloaded.
const KEPT: Duration = Duration::from_secs(30 * 60);

/// The maximum total size of the kept files in bytes; the oldest are dropped first.
const BYTES: usize = 64 << 20;

/// The bytes that a file counts in addition to its content, for its name and its entry. Otherwise,
/// many small files could exceed the memory limit.
const OVERHEAD: usize = 1 << 10;

struct File {
    bytes: Bytes,
    media_type: &'static str,
    since: Instant,
}

/// Translated files.
#[derive(Default)]
pub(crate) struct Files(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    files: HashMap<String, File>,
    /// Their names, oldest first.
    order: VecDeque<String>,
    /// The total size including overhead.
    bytes: usize,
}

impl Kept {
    fn keep(&mut self, name: String, file: File) {
        self.bytes += file.bytes.len() + OVERHEAD;
        self.order.push_back(name.clone());
        self.files.insert(name, file);
    }

    fn forget_oldest(&mut self) {
        let oldest = self.order.pop_front().and_then(|name| self.files.remove(&name));
        self.bytes -= oldest.map_or(0, |file| file.bytes.len() + OVERHEAD);
    }

    fn oldest(&self) -> Option<&File> {
        self.order.front().and_then(|name| self.files.get(name))
    }
}

/// 128 random bits from the operating system.
fn random_name() -> String {
    let mut bytes = [0; 16];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // Fallback: the keys of the standard library's hasher are random, too.
        bytes[..8].copy_from_slice(&RandomState::new().hash_one(1).to_le_bytes());
        bytes[8..].copy_from_slice(&RandomState::new().hash_one(2).to_le_bytes());
    }
    hex(&bytes)
}

impl Files {
    /// Stores a file under an unguessable name.
    fn keep(&self, ending: &str, media_type: &'static str, bytes: Vec<u8>, now: Instant) -> String {
        let name = format!("{}.{ending}", random_name());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.oldest().is_some_and(|file| now.duration_since(file.since) >= KEPT) {
            kept.forget_oldest();
        }
        kept.keep(name.clone(), File { bytes: bytes.into(), media_type, since: now });
        while kept.order.len() > 1 && kept.bytes > BYTES {
            kept.forget_oldest();
        }
        name
    }

    fn get(&self, name: &str, now: Instant) -> Option<(Bytes, &'static str)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = kept.files.get(name).filter(|file| now.duration_since(file.since) < KEPT);
        file.map(|file| (file.bytes.clone(), file.media_type))
    }
}

#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileAnswer {
    /// The URL of the translated file, which is valid for half an hour.
    translated_file_url: String,
    /// Warnings, for example about messages that lost a placeholder or text in an unexpected
    /// language.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    warnings: Vec<String>,
    /// The number of sentences that came from the translation memory, if any.
    #[serde(skip_serializing_if = "is_zero")]
    from_memory: usize,
    /// The glossary terms in the file, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Terms")]
    terms: Option<Terms>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A translated file with details of its translation.
struct Translated {
    bytes: Vec<u8>,
    warnings: Vec<String>,
    from_memory: usize,
    terms: TermReport,
}

/// A file with the options of its translation.
pub(super) struct FileRequest {
    format: Format,
    /// The extension of the translated file.
    extension: String,
    bytes: Vec<u8>,
    source: String,
    target: String,
    options: TranslateOptions,
    /// The maximum number of characters.
    most: usize,
    /// The origin by which the client addresses the server.
    origin: String,
}

impl FileRequest {
    /// Parses a request.
    pub(super) fn read(app: &App, call: &Call) -> ApiResult<Self> {
        let file = call.file.as_ref().ok_or_else(|| ApiError::missing("file"))?;
        let (source, target) = (call.required("source")?, call.required("target")?);
        if file.name.is_empty() {
            return Err(ApiError::bad("Invalid request: empty file"));
        }
        let unknown = || {
            ApiError::bad(format!("Invalid request: file format not supported, use {}", endings().join(", ")))
        };
        let path = std::path::Path::new(&file.name);
        let format = Format::of_name(path, &file.bytes).ok_or_else(unknown)?;
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or(format.name());
        let options = TranslateOptions {
            glossary: call.glossary(app)?,
            without_memory: call.refuses_memory(),
            ..TranslateOptions::default()
        };
        Ok(FileRequest {
            format,
            extension: extension.to_ascii_lowercase(),
            bytes: file.bytes.to_vec(),
            source: source.to_owned(),
            target: target.to_owned(),
            options,
            most: call.characters,
            origin: origin(&call.headers, app.settings.tls.is_some()),
        })
    }

    /// Translates the file and stores it; `progress` gets the number of translated sentences and
    /// the total.
    pub(super) async fn answer(
        self,
        app: &Arc<App>,
        progress: impl FnMut(usize, usize),
    ) -> ApiResult<FileAnswer> {
        let (extension, format, origin) = (self.extension.clone(), self.format, self.origin.clone());
        let Translated { bytes, warnings, from_memory, terms } =
            app.in_time(translated(app, self, progress)).await?;
        let name = app.files.keep(&extension, media_type(format), bytes, Instant::now());
        Ok(FileAnswer {
            translated_file_url: format!("{origin}/download_file/{name}"),
            warnings,
            from_memory,
            terms: (terms.wanted > 0).then(|| terms.into()),
        })
    }
}

pub(super) async fn translate(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    ok(&FileRequest::read(&app, &call)?.answer(&app, |_, _| {}).await?)
}

/// The media type of a translated file, with the UTF-8 charset for text formats.
fn media_type(format: Format) -> &'static str {
    match format {
        Format::Text => "text/plain; charset=utf-8",
        Format::Html => "text/html; charset=utf-8",
        Format::Markdown => "text/markdown; charset=utf-8",
        format => format.media_type(),
    }
}

/// Parses a file, translates its sentences and writes it again.
async fn translated(
    app: &Arc<App>,
    request: FileRequest,
    progress: impl FnMut(usize, usize),
) -> ApiResult<Translated> {
    let FileRequest { format, bytes, source, target, options, most, .. } = request;
    let refused = |error: FileError| ApiError::bad(format!("Invalid request: {error}"));
    let shared = Arc::clone(app);
    let without_memory = options.without_memory;
    let reserved = app.reserve(&source, &target)?;
    let (document, routed, known) = app
        .compute(move |cancellation| {
            let known = |code: &str| shared.languages.known(code).ok();
            let file_options = FileOptions {
                source_language: known(&source),
                target_language: known(&target),
                ..FileOptions::default()
            };
            let mut document = FileDocument::open(format, &bytes, &file_options).map_err(refused)?;
            cancellation.check()?;
            let words = document.words();
            let characters = words.chars().count();
            if characters > most {
                return Err(ApiError::too_long(characters, most));
            }
            shared.metrics.characters.add(characters);
            let routed = route(&shared, &words, &source, &target)?;
            let memory = shared.memory(&routed.route).filter(|_| !without_memory);
            let known = memory.map_or(0, |memory| document.apply_memory(&memory));
            Ok((document, routed, known))
        })
        .await?;
    drop(reserved);
    let job = app.job(&routed.route, document.sentences(), &options);
    let job = app.run_job_with_progress(&routed.route, job, progress).await?;
    app.compute(move |_| {
        let (mut from_memory, mut terms) = (known, TermReport::default());
        let best = match routed.route.is_empty() {
            // The source and target language are the same.
            true => document.sentences().map(|sentence| Translation::same(&sentence.text)).collect(),
            false => {
                let outcomes = job.finish(document.sentences());
                from_memory += outcomes.iter().filter(|outcome| outcome.from_memory).count();
                outcomes.iter().for_each(|outcome| terms.add(&outcome.terms));
                nth_best(&outcomes, 0)
            }
        };
        let (bytes, lost) = document.render_with_warnings(&best).map_err(refused)?;
        let warnings = routed.warning.into_iter().chain(lost).collect();
        Ok(Translated { bytes, warnings, from_memory, terms })
    })
    .await
}

/// The origin by which the client addresses the server; empty if the request has none, which makes
/// the download URL relative.
fn origin(headers: &HeaderMap, tls: bool) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = if tls || text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    text("host")
        .filter(|host| is_authority(host))
        .map_or_else(String::new, |host| format!("{scheme}://{host}"))
}

/// Whether a text is a host with an optional port. This is checked because it becomes part of a URL
/// that clients follow.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => ("v6", port),
            _ => return false,
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let label = |label: &str| {
        let inner = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        inner && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    let named = host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(label);
    let number = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    named && (port.is_empty() || port.strip_prefix(':').is_some_and(number))
}

pub(super) async fn download(
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
) -> ApiResult {
    // No file has a name that is not UTF-8.
    let found = name.ok().and_then(|Path(name)| app.files.get(&name, Instant::now()));
    let (bytes, media_type) = found.ok_or_else(|| ApiError::not_found("The file"))?;
    let mut response = typed(StatusCode::OK, media_type, bytes);
    let headers = response.headers_mut();
    // Never rendered as a page of this server, because the content is untrusted.
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_checked_before_it_is_used() {
        for good in
            ["127.0.0.1:5000", "localhost", "some.example", "a-b.some.example.:80", "[::1]:5000", "[::1]"]
        {
            let mut headers = HeaderMap::new();
            headers.insert("host", good.parse().unwrap());
            assert_eq!(origin(&headers, false), format!("http://{good}"));
            assert_eq!(origin(&headers, true), format!("https://{good}"));
            headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
            assert_eq!(origin(&headers, false), format!("https://{good}"));
        }
        for bad in [
            "",
            "a b",
            "some.example/path?",
            "user@some.example",
            "a\"><script>",
            "some..example",
            "-a.example",
            "a:b",
            "a:",
            "a:99999",
            "a:+1",
            "[::1",
            "[x]:1",
            "[::1]x",
            "javascript:1//",
            &"a".repeat(64),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", bad.parse().unwrap());
            assert_eq!(origin(&headers, false), "", "{bad}");
        }
        assert_eq!(origin(&HeaderMap::new(), true), "");
    }

    #[test]
    fn files_are_kept_for_a_while_and_not_without_end() {
        let (files, start) = (Files::default(), Instant::now());
        let keep = |text: String| files.keep("txt", "text/plain", text.into_bytes(), start);
        let first = keep("one".into());
        let second = keep("one".into());
        assert_ne!(first, second);
        assert_eq!(files.get(&first, start), Some((Bytes::from_static(b"one"), "text/plain")));
        assert_eq!(files.get("other.txt", start), None);
        assert_eq!(files.get(&first, start + KEPT), None);
        for _ in 0..3 {
            keep("x".repeat(BYTES / 2 - OVERHEAD));
        }
        assert_eq!(files.get(&first, start), None);
        assert_eq!(files.0.lock().unwrap().files.len(), 2);
        // A file larger than the limit is kept alone, until the next file replaces it.
        let large = keep("x".repeat(BYTES + 1));
        assert!(files.get(&large, start).is_some() && files.0.lock().unwrap().files.len() == 1);
        let last = keep("one".into());
        assert!(files.get(&large, start).is_none() && files.get(&last, start).is_some());
    }

    #[test]
    fn many_small_files_are_not_kept_without_end_either() {
        let (files, start) = (Files::default(), Instant::now());
        let names: Vec<String> =
            (0..BYTES / OVERHEAD + 100).map(|_| files.keep("txt", "text/plain", vec![b'x'], start)).collect();
        let kept = files.0.lock().unwrap();
        assert_eq!(kept.files.len(), BYTES / (OVERHEAD + 1));
        assert_eq!((kept.order.len(), kept.bytes), (kept.files.len(), kept.files.len() * (OVERHEAD + 1)));
        drop(kept);
        assert!(files.get(&names[0], start).is_none() && files.get(&names[names.len() - 1], start).is_some());
        // Expired files are removed when the next one is stored.
        files.keep("txt", "text/plain", vec![b'x'], start + KEPT);
        assert_eq!(files.0.lock().unwrap().files.len(), 1);
    }
}
