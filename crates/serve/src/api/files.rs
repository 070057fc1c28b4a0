//! `POST /translate_file` and `GET /download_file/{name}`: text files, kept in memory for a while.

use super::translate::parse;
use crate::App;
use crate::error::{ApiError, ApiResult, ok, typed};
use crate::params::Call;
use crate::service::TranslateOptions;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a file's name may end in.
pub(super) const FORMATS: [&str; 4] = [".txt", ".md", ".html", ".htm"];

/// How long a translated file can be fetched.
const KEPT: Duration = Duration::from_secs(30 * 60);

/// Bytes of all kept files together; the oldest go first.
const BYTES: usize = 64 << 20;

struct File {
    name: String,
    bytes: Bytes,
    since: Instant,
}

/// Translated files.
#[derive(Default)]
pub(crate) struct Files(Mutex<VecDeque<File>>);

impl Files {
    /// Keeps a file under a name that nobody can guess.
    fn keep(&self, ending: &str, text: String, now: Instant) -> String {
        // The keys of the standard library's hasher are random.
        let number = || RandomState::new().hash_one(text.as_str());
        let name = format!("{:016x}{:016x}{ending}", number(), number());
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| now.duration_since(file.since) < KEPT);
        files.push_back(File { name: name.clone(), bytes: text.into(), since: now });
        while files.len() > 1 && files.iter().map(|file| file.bytes.len()).sum::<usize>() > BYTES {
            files.pop_front();
        }
        name
    }

    fn get(&self, name: &str, now: Instant) -> Option<Bytes> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files.iter().find(|file| file.name == name && now.duration_since(file.since) < KEPT);
        file.map(|file| file.bytes.clone())
    }
}

#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileAnswer {
    /// Where the translated file can be fetched for half an hour.
    translated_file_url: String,
}

pub(super) async fn translate(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let file = call.file.as_ref().ok_or_else(|| ApiError::missing("file"))?;
    let (source, target) = (call.required("source")?, call.required("target")?);
    if file.name.is_empty() {
        return Err(ApiError::bad("Invalid request: empty file"));
    }
    let lower = file.name.to_ascii_lowercase();
    let Some(ending) = FORMATS.iter().find(|format| lower.ends_with(**format)) else {
        return Err(ApiError::bad(format!(
            "Invalid request: file format not supported, use {}",
            FORMATS.join(", ")
        )));
    };
    let text = std::str::from_utf8(&file.bytes).map_err(|e| {
        ApiError::bad(format!("Invalid request: the file is not UTF-8 from byte {} on", e.valid_up_to()))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (characters, limit) = (text.chars().count(), app.settings.limits.characters);
    if characters > limit {
        return Err(ApiError::too_long(characters, limit));
    }
    app.metrics.characters.add(characters);
    let (source, target) = (source.to_owned(), target.to_owned());
    let work = async {
        let ready = parse(&app, vec![text.to_owned()], source, target, ending.starts_with(".htm")).await?;
        let ready = ready.into_iter().next().ok_or_else(|| ApiError::internal("the file was lost"))?;
        app.translate(&ready.routed.route, vec![ready.parsed], TranslateOptions::default()).await
    };
    let mut outcomes = app.in_time(work).await?;
    let text = outcomes.pop().map(|outcome| outcome.best.text).unwrap_or_default();
    let name = app.files.keep(ending, text, Instant::now());
    ok(&FileAnswer { translated_file_url: format!("{}/download_file/{name}", origin(&call.headers)) })
}

/// The address that the client knows the server by; nothing, and so an address relative to the server,
/// where it names none.
fn origin(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    text("host")
        .filter(|host| is_authority(host))
        .map_or_else(String::new, |host| format!("{scheme}://{host}"))
}

/// Whether a text is the name or address of a host, perhaps with a port: it becomes part of an address that
/// clients follow.
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
    // A name that is no UTF-8 is the name of no file.
    let bytes = name.ok().and_then(|Path(name)| app.files.get(&name, Instant::now()));
    let bytes = bytes.ok_or_else(|| ApiError::not_found("The file"))?;
    let mut response = typed(StatusCode::OK, "text/plain; charset=utf-8", bytes);
    let headers = response.headers_mut();
    // Never shown as a page of this server: the text is somebody else's.
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
            assert_eq!(origin(&headers), format!("http://{good}"));
            headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
            assert_eq!(origin(&headers), format!("https://{good}"));
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
            assert_eq!(origin(&headers), "", "{bad}");
        }
        assert_eq!(origin(&HeaderMap::new()), "");
    }

    #[test]
    fn files_are_kept_for_a_while_and_not_without_end() {
        let (files, start) = (Files::default(), Instant::now());
        let first = files.keep(".txt", "one".into(), start);
        let second = files.keep(".txt", "one".into(), start);
        assert_ne!(first, second);
        assert_eq!(files.get(&first, start).as_deref(), Some(&b"one"[..]));
        assert_eq!(files.get("other.txt", start), None);
        assert_eq!(files.get(&first, start + KEPT), None);
        for _ in 0..3 {
            files.keep(".txt", "x".repeat(BYTES / 2), start);
        }
        assert_eq!(files.get(&first, start), None);
        assert_eq!(files.0.lock().unwrap().len(), 2);
    }
}
