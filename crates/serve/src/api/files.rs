//! `POST /translate_file` and `GET /download_file/{name}`: text files, kept in memory for a while.

use super::translate::{document, way};
use crate::App;
use crate::error::{ApiError, ApiResult, ok, typed};
use crate::params::Call;
use crate::service::Wishes;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
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
    let way = way(&app, text, source, target)?;
    let texts = [(text, document(text, ending.starts_with(".htm")))];
    let mut outcomes = app.in_time(app.translate(&way.route, &texts, Wishes::default())).await?;
    let text = outcomes.pop().map(|outcome| outcome.best.text).unwrap_or_default();
    let name = app.files.keep(ending, text, Instant::now());
    ok(&Answer { translated_file_url: format!("{}/download_file/{name}", origin(&call.headers)) })
}

/// The address that the client knows the server by.
fn origin(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    text("host").map_or_else(String::new, |host| format!("{scheme}://{host}"))
}

pub(super) async fn download(State(app): State<Arc<App>>, Path(name): Path<String>) -> ApiResult {
    let bytes = app.files.get(&name, Instant::now()).ok_or_else(|| ApiError::not_found("The file"))?;
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
