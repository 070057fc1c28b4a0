//! Models by their names: a cache that the test makes, and a hub of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
#[cfg(feature = "hub")]
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
};

const NAME: &str = "test-org/opus-mt-aa-bb";
const PLACE: &str = "models--test-org--opus-mt-aa-bb";
const HASH: &str = "00112233445566778899aabbccddeeff00112233";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/regard-core/tests/goldens/marian/swish-shared")
}

/// A command whose cache is under `home`; no other setting of the machine counts.
fn regard(home: &Path, endpoint: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = crate::command::regard();
    for name in ["HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_ENDPOINT", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    match endpoint {
        Some(endpoint) => command.env("HF_ENDPOINT", endpoint),
        None => command.env("HF_HUB_OFFLINE", "1"),
    };
    command.env("HF_HOME", home).current_dir(home).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn message(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The goldens' model, in a cache as the tools of Hugging Face make it.
fn cached(home: &Path) -> PathBuf {
    let place = home.join("hub").join(PLACE);
    let folder = place.join("snapshots").join(HASH);
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(place.join("refs")).unwrap();
    fs::write(place.join("refs/main"), HASH).unwrap();
    for file in fs::read_dir(golden()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    folder
}

#[test]
fn the_cache_is_found_by_every_command() {
    let home = tempfile::tempdir().unwrap();
    cached(home.path());
    let run = |arguments: &[&str]| {
        let output = regard(home.path(), None, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["info", "--model", NAME]).contains("languages   aa → bb\n"));
    let text = home.path().join("text");
    fs::write(&text, "abc d\n").unwrap();
    let text = text.to_str().unwrap();
    assert_eq!(run(&["translate", text, "--model", NAME]).lines().count(), 1);
    assert_eq!(run(&["tokenize", "--model", NAME, text]), "▁ a b c ▁ d\n");
    assert!(run(&["evaluate", "--model", NAME, "--src", text, "--ref", text]).starts_with("BLEU"));
    assert!(run(&["look", "--model", NAME, "--src", "abc"]).starts_with("Cross-attention"));
    run(&["average", NAME, NAME, "--out", "averaged"]);
    // A folder of that name wins.
    let folder = home.path().join(NAME);
    fs::create_dir_all(&folder).unwrap();
    let error = message(&regard(home.path(), None, &["info", "--model", NAME]));
    assert!(error.starts_with(&format!("regard: {NAME}/config.json: ")), "{error}");
}

#[test]
fn offline_the_place_that_was_looked_in_is_named() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("hub").join(PLACE);
    let want = format!(
        "regard: {NAME}: there is no such folder, and the cache has no such model in {}; HF_HUB_OFFLINE says not to fetch it\n",
        place.display()
    );
    fs::write(home.path().join("text"), "a\n").unwrap();
    for arguments in [
        &["info", "--model", NAME][..],
        &["translate", "--model", NAME],
        &["average", NAME, "--out", "x"],
        &["train", "--src", "text", "--tgt", "text", "--init", NAME, "--out", "y", "--preset", "tiny"],
    ] {
        assert_eq!(message(&regard(home.path(), None, arguments)), want);
    }
    assert!(!home.path().join("y").exists());
}

/// Answers one request as the hub does: what a model has, or a part of one of its files.
#[cfg(feature = "hub")]
fn answer(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut from = None;
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(range) = line.lines().last()?.to_lowercase().strip_prefix("range: bytes=") {
            let (start, end) = range.trim().split_once('-')?;
            from = Some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()));
        }
    }
    let mut respond = |status: &str, headers: &str, body: &[u8]| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(&[head.as_bytes(), body].concat()).ok()
    };
    if path == format!("/api/models/{NAME}/revision/main?blobs=true") {
        let files =
            fs::read_dir(golden()).ok()?.flatten().map(|f| f.file_name().into_string().unwrap_or_default());
        let siblings: Vec<_> = files.map(|name| serde_json::json!({"rfilename": name})).collect();
        let body = serde_json::json!({"sha": HASH, "siblings": siblings}).to_string();
        return respond("200 OK", "Content-Type: application/json\r\n", body.as_bytes());
    }
    let Some(name) = path.strip_prefix(&format!("/{NAME}/resolve/{HASH}/")) else {
        return respond("404 Not Found", "", b"");
    };
    let body = fs::read(golden().join(name)).ok()?;
    let Some((start, end)) = from else {
        return respond("200 OK", &format!("ETag: \"{name}-tag\"\r\nX-Repo-Commit: {HASH}\r\n"), &body);
    };
    let end = end.unwrap_or(body.len() - 1).min(body.len() - 1);
    let headers = format!(
        "Content-Range: bytes {start}-{end}/{}\r\nETag: \"{name}-tag\"\r\nX-Repo-Commit: {HASH}\r\n",
        body.len()
    );
    respond("206 Partial Content", &headers, body.get(start..=end)?)
}

#[cfg(feature = "hub")]
#[test]
fn the_hub_is_asked_for_what_is_needed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream);
        }
    });
    let home = tempfile::tempdir().unwrap();
    let output = regard(home.path(), Some(&endpoint), &["info", "--model", NAME]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("languages   aa → bb\n"));
    let place = home.path().join("hub").join(PLACE);
    let mut files: Vec<_> = fs::read_dir(place.join("snapshots").join(HASH))
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let want = [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ];
    assert_eq!(files, want);
    assert_eq!(fs::read_to_string(place.join("refs/main")).unwrap(), HASH);
    // From now on it is there without the hub.
    assert!(regard(home.path(), None, &["info", "--model", NAME]).status.success());
    // What the hub does not have.
    let error = message(&regard(home.path(), Some(&endpoint), &["info", "--model", "no-org/no-model"]));
    let start = format!(
        "regard: no-org/no-model: there is no such folder, and the cache has no such model in {}; {endpoint} says: ",
        home.path().join("hub/models--no-org--no-model").display()
    );
    assert!(error.starts_with(&start) && error.contains("404"), "{error}");
}
