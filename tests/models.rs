//! `regard models`: downloads from a server that the tests run, and what is done with them.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/regard-core/tests/goldens")
}

/// What `sha256sum` says, by the program that is tested by its own vectors.
fn sha256(bytes: &[u8]) -> String {
    let output = crate::command::output(std::process::Command::new("sha256sum"), bytes);
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// A server of files by their paths, which notes each request and where it wants to begin.
#[derive(Clone, Default)]
struct Server {
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    seen: Arc<Mutex<Vec<(String, usize)>>>,
    /// The path of a file of which only half is sent, once.
    cut: Arc<Mutex<Option<String>>>,
}

impl Server {
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = self.clone();
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = server.answer(stream);
            }
        });
        address
    }

    fn add(&self, path: &str, bytes: Vec<u8>) {
        self.files.lock().unwrap().insert(path.to_owned(), bytes);
    }

    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
        let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
        let mut from = 0;
        for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
            if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
                from = range.trim_end_matches('-').parse().ok()?;
            }
        }
        self.seen.lock().unwrap().push((path.clone(), from));
        let Some(body) = self.files.lock().unwrap().get(&path).cloned() else {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .ok();
        };
        let (length, last) = (body.len() - from, body.len() - 1);
        let status = match from {
            0 => "200 OK".to_owned(),
            _ => format!("206 Partial Content\r\nContent-Range: bytes {from}-{last}/{}", body.len()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: \"{path}\"\r\nConnection: close\r\n\r\n"
        );
        let mut rest = &body[from..];
        let mut cut = self.cut.lock().unwrap();
        if cut.as_ref() == Some(&path) {
            *cut = None;
            rest = &rest[..rest.len() / 2];
        }
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(rest).ok()
    }

    /// The requests for a path: where each begins.
    fn begins(&self, path: &str) -> Vec<usize> {
        self.seen.lock().unwrap().iter().filter(|(seen, _)| seen == path).map(|(_, from)| *from).collect()
    }
}

/// What a run says: whether it succeeded, its output, its messages.
fn regard(home: &Path, endpoint: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = crate::command::regard();
    for name in ["HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"] {
        command.env_remove(name);
    }
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command
        .env("HF_HOME", home.join("hf"))
        .env("HF_ENDPOINT", endpoint)
        .env("REGARD_MODELS", home.join("models"));
    let output = command.current_dir(home).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// A model of the hub under this name, with a card.
fn add_to_hub(server: &Server, name: &str) {
    let (folder, hash) = (goldens().join("marian/swish-shared"), "0011223344556677");
    let mut siblings = Vec::new();
    let mut add = |file: &str, bytes: Vec<u8>| {
        siblings.push(match file.ends_with(".safetensors") {
            true => json!({"rfilename": file, "size": bytes.len(), "lfs": {"sha256": sha256(&bytes)}}),
            false => json!({"rfilename": file, "size": bytes.len()}),
        });
        server.add(&format!("/{name}/resolve/{hash}/{file}"), bytes);
    };
    add("README.md", b"---\nlicense: cc-by-nc-4.0\n---\n# A model\n".to_vec());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        add(path.file_name().unwrap().to_str().unwrap(), fs::read(&path).unwrap());
    }
    let info = json!({"sha": hash, "siblings": siblings, "tags": ["license:cc-by-nc-4.0"]});
    server.add(&format!("/api/models/{name}/revision/main?blobs=true"), info.to_string().into_bytes());
}

#[test]
fn a_model_of_the_hub_is_continued_checked_listed_used_and_removed() {
    let (home, server) = (tempfile::tempdir().unwrap(), Server::default());
    let home = home.path();
    add_to_hub(&server, "org/small");
    let endpoint = server.start();
    let run = |arguments: &[&str]| regard(home, &endpoint, arguments);
    assert_eq!(run(&["models"]).1, "");
    let weights = "/org/small/resolve/0011223344556677/model.safetensors";
    *server.cut.lock().unwrap() = Some(weights.to_owned());
    let (ok, _, error) = run(&["models", "download", "org/small"]);
    assert!(!ok && error.contains("model.safetensors: ") && error.contains("which are kept"), "{error}");
    assert_eq!(run(&["models"]).1, "", "half a model is none");
    let (ok, _, error) = run(&["models", "download", "org/small"]);
    assert!(ok, "{error}");
    assert!(
        error.contains("regard: the licence of these weights, cc-by-nc-4.0, forbids commercial use"),
        "{error}"
    );
    let begins = server.begins(weights);
    assert!(begins.len() == 2 && begins[0] == 0 && begins[1] > 0, "{begins:?}");
    assert_eq!(server.begins("/org/small/resolve/0011223344556677/config.json"), [0], "what is there stays");

    let (_, list, _) = run(&["models"]);
    assert!(
        list.contains("org/small  aa → bb") && list.contains("cc-by-nc-4.0 (forbids commercial use)"),
        "{list}"
    );
    let (_, line, _) = run(&["models", "list", "--json"]);
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (value["name"].as_str(), value["licence"]["commercial"].as_bool()),
        (Some("org/small"), Some(false))
    );
    let (_, info, error) = run(&["info", "--model", "org/small"]);
    assert!(info.contains("licence     cc-by-nc-4.0 (forbids commercial use)\n"), "{info}{error}");
    let (ok, translated, error) = run(&["translate", "--model", "org/small", "--text", "abc"]);
    assert!(ok && translated.lines().count() == 1, "{error}");
    let requests = server.seen.lock().unwrap().len();
    assert!(run(&["models", "download", "org/small"]).0, "again is no error");
    assert_eq!(server.seen.lock().unwrap().len(), requests + 1, "and asks for the list alone");

    assert!(run(&["models", "--verify"]).0);
    fs::write(home.join("models/org--small/README.md"), "changed").unwrap();
    let (ok, _, error) = run(&["models", "list", "--verify"]);
    assert!(!ok && error.contains("not as they were downloaded: org/small (README.md)"), "{error}");
    assert!(run(&["models", "remove", "org/small"]).0);
    assert_eq!(run(&["models"]).1, "");
    let (ok, _, error) = run(&["models", "remove", "org/small"]);
    assert!(!ok && error.contains("there is no such model"), "{error}");
    // A server that changed a file, and a name that it does not have.
    let length = server.files.lock().unwrap()[weights].len();
    server.add(weights, vec![1; length]);
    let (ok, _, error) = run(&["models", "download", "org/small"]);
    assert!(!ok && error.contains("model.safetensors should have the SHA-256 "), "{error}");
    let (ok, _, error) = run(&["models", "download", "org/none"]);
    assert!(!ok && error.contains("HTTP status 404"), "{error}");
    let (ok, _, error) = run(&["models", "download", "small"]);
    assert!(!ok && error.contains("is not a name on the hub, which is organisation/model"), "{error}");
}

#[test]
fn models_of_indexes_are_found_by_their_languages() {
    let (home, server) = (tempfile::tempdir().unwrap(), Server::default());
    let home = home.path();
    let endpoint = server.start();
    let run = |arguments: &[&str]| regard(home, &endpoint, arguments);
    // The index of Argos Translate at a URL, whose package is beside it.
    let package = fs::read(goldens().join("ctranslate2/argos.argosmodel")).unwrap();
    let index = json!([{"type": "translate", "from_code": "en", "to_code": "de", "package_version": "1.0",
        "links": ["en_de.argosmodel"], "sha256": sha256(&package), "size": package.len(), "license": "CC0"}]);
    server.add("/argos/index.json", index.to_string().into_bytes());
    server.add("/argos/en_de.argosmodel", package);
    let argos = format!("{endpoint}/argos/index.json");
    let (_, list, error) = run(&["models", "list", "--index", &argos]);
    assert!(list.contains("en-de  en → de") && list.contains("CC0"), "{list}{error}");
    let (ok, _, error) = run(&["models", "download", "en_de", "--index", &argos, "--as", "argos"]);
    assert!(ok && error.contains("regard: licence of the weights: CC0"), "{error}");
    let (ok, out, error) = run(&["translate", "--model", "argos", "--max-length", "5", "--text", "a b"]);
    assert!(ok && out.lines().count() == 1, "{error}");
    let (ok, _, error) = run(&["models", "download", "fr-de", "--index", &argos]);
    assert!(!ok && error.contains("there is no fr-de; it has en-de"), "{error}");

    // Firefox's records in a file, with the files in a folder.
    crate::firefox::exported(home);
    let folder = home.join("firefox");
    let mut records = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let kind = match name.split('.').next().unwrap() {
            "model" => "model",
            "lex" => "lex",
            "srcvocab" => "srcvocab",
            "trgvocab" => "trgvocab",
            "vocab" => "vocab",
            _ => continue,
        };
        let bytes = fs::read(&path).unwrap();
        records.push(json!({"name": name, "fileType": kind, "sourceLanguage": "en", "targetLanguage": "pt", "version": "1.0",
            "attachment": {"location": name, "hash": sha256(&bytes), "size": bytes.len()}}));
    }
    fs::write(home.join("records.json"), json!({ "data": records }).to_string()).unwrap();
    let files = folder.to_str().unwrap();
    let arguments = ["models", "download", "en-pt", "--index", "records.json", "--files", files];
    let (ok, _, error) = run(&arguments);
    assert!(ok && error.contains("the licence of these weights is not stated"), "{error}");
    let (_, info, error) = run(&["info", "--model", "en-pt"]);
    assert!(info.contains("languages   en → pt\n"), "{info}{error}");
    let names: Vec<String> = run(&["models", "list", "--json"])
        .1
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["argos", "en-pt"]);
}
