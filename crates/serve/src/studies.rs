//! `/studies/…`: serves the reports of `regard study --out DIR` to the web page. They are files in
//! a folder chosen by the operator, so they need no key. They are read on each request, so a study
//! that finishes while the server runs appears at once.

use crate::App;
use crate::error::{ApiError, ApiResult, ok, typed};
use crate::page;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::routing::get;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of a report in the folder of its study, and of the index next to those folders.
const REPORT: &str = "report.json";
const INDEX: &str = "index.json";
/// The name of the study if its report lies in the root folder itself.
const ONLY: &str = "study";
/// The maximum size of a report or a picture in bytes.
const MOST: u64 = 32 << 20;

pub(crate) fn add_to(router: Router<Arc<App>>) -> Router<Arc<App>> {
    router.route("/studies/index.json", get(list)).route("/studies/{study}/{file}", get(file))
}

/// A study in the list. Its texts are lists of words and formulas, as in its report.
#[derive(Serialize)]
struct Entry {
    name: String,
    title: Value,
    question: Value,
    answer: Value,
    /// The Chinese versions of title, question and answer.
    zh: Value,
}

/// Whether a name is safe to use in a path: the name of a study or of one of its files.
fn is_plain(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.chars().all(letter)
}

/// The folders of the studies by name: first in index order, then those that the index does not
/// list.
fn folders(app: &App) -> Vec<(String, PathBuf)> {
    let Some(root) = &app.settings.studies else { return Vec::new() };
    if root.join(REPORT).is_file() {
        return vec![(ONLY.to_owned(), root.clone())];
    }
    let listed = std::fs::read(root.join(INDEX)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut names: Vec<String> = listed.unwrap_or_default();
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut others: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    others.retain(|name| !names.contains(name));
    others.sort();
    names.extend(others);
    names.retain(|name| is_plain(name) && root.join(name).join(REPORT).is_file());
    names.into_iter().map(|name| (name.clone(), root.join(name))).collect()
}

/// Reads a file of a study, if it exists and is not too large.
fn read(path: &std::path::Path) -> Option<Vec<u8>> {
    let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    (size <= MOST).then(|| std::fs::read(path).ok())?
}

async fn list(State(app): State<Arc<App>>) -> ApiResult {
    let shared = Arc::clone(&app);
    let work = app.compute(move |_| {
        let entry = |(name, folder): (String, PathBuf)| {
            let mut report: Value = serde_json::from_slice(&read(&folder.join(REPORT))?).ok()?;
            let mut part = |key: &str| report.get_mut(key).map(Value::take).unwrap_or_default();
            let (title, question) = (part("title"), part("question"));
            Some(Entry { name, title, question, answer: part("answer"), zh: part("zh") })
        };
        ok(&folders(&shared).into_iter().filter_map(entry).collect::<Vec<_>>())
    });
    app.in_time(work).await
}

async fn file(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    path: Result<Path<(String, String)>, PathRejection>,
) -> ApiResult {
    let missing = || ApiError::not_found("The study");
    let Path((study, file)) = path.map_err(|_| missing())?;
    let kind = match file.rsplit_once('.') {
        _ if file == REPORT => "application/json",
        Some((name, "svg")) if is_plain(name) => "image/svg+xml",
        Some((name, "csv")) if is_plain(name) => "text/csv; charset=utf-8",
        _ => return Err(missing()),
    };
    let shared = Arc::clone(&app);
    let work = app.compute(move |_| {
        let folder = folders(&shared).into_iter().find(|(name, _)| *name == study).map(|(_, folder)| folder);
        folder.and_then(|folder| read(&folder.join(&file))).ok_or_else(missing)
    });
    let bytes = app.in_time(work).await?;
    let mut response = match kind {
        "image/svg+xml" => typed(StatusCode::OK, kind, bytes),
        kind => page::answer(&headers, kind, bytes),
    };
    if kind == "image/svg+xml" {
        // An SVG picture has inline styles and nothing else.
        let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use crate::Settings;
    use crate::tests::{app as app_with, get, usual};
    use std::fs;

    #[tokio::test]
    async fn studies_are_listed_and_nothing_else_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        for (name, question) in [("scale", "Why?"), ("cost", "How much?")] {
            let study = folder.path().join(name);
            fs::create_dir(&study).unwrap();
            let report = serde_json::json!({
                "title": [name], "question": [question], "answer": ["So."], "zh": {"answer": ["如此。"]}, "parts": []
            });
            fs::write(study.join("report.json"), report.to_string()).unwrap();
            fs::write(study.join("curve.svg"), "<svg/>").unwrap();
            fs::write(study.join("secret.txt"), "no").unwrap();
        }
        fs::write(folder.path().join("index.json"), "[\"scale\"]").unwrap();
        fs::write(folder.path().join("secret.svg"), "no").unwrap();
        let app = app_with(Settings { studies: Some(folder.path().to_owned()), ..Settings::default() });
        let list = get(&app, "/studies/index.json").await.good();
        let names: Vec<&str> = list.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["scale", "cost"], "the order of the index, then the others");
        assert_eq!(list[0]["question"], serde_json::json!(["Why?"]));
        assert_eq!(list[0]["zh"]["answer"], serde_json::json!(["如此。"]));
        let picture = get(&app, "/studies/scale/curve.svg").await;
        assert_eq!((picture.status, picture.header("content-type")), (200, "image/svg+xml"));
        assert_eq!(get(&app, "/studies/cost/report.json").await.good()["title"][0], "cost");
        for path in [
            "scale/secret.txt",
            "%2e%2e/secret.svg",
            "scale/%2e%2e%2fsecret.svg",
            "none/report.json",
            "scale/none.svg",
        ] {
            assert_eq!(get(&app, &format!("/studies/{path}")).await.status, 404, "{path}");
        }
        // A folder with one study, and no folder.
        let alone = Settings { studies: Some(folder.path().join("cost")), ..Settings::default() };
        let list = get(&app_with(alone), "/studies/index.json").await.good();
        assert_eq!(list[0]["name"], "study");
        assert_eq!(get(&usual(), "/studies/index.json").await.good(), serde_json::json!([]));
    }
}
