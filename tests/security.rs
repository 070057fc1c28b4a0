//! `regard keys`, TLS, SIGHUP and users' text, with a server as an operator runs it.

use super::serve::{Server, copy_model};
use super::translate::folder;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn keys(arguments: &[&str], file: &Path) -> Output {
    crate::command::regard().arg("keys").args(arguments).arg("--file").arg(file).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Waits until something is so; a server notices changed files within a second, and more if the
/// machine is busy.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: not after a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn keys_are_made_and_revoked_while_a_server_runs() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("keys");
    let added = keys(&["add", "office", "--requests-per-minute", "1000", "--char-limit", "8"], &file);
    assert!(added.status.success(), "{}", text(&added.stderr));
    assert!(text(&added.stderr).contains("the only time that the key of office is shown"));
    let office = text(&added.stdout).trim().to_owned();
    let flags = ["--api-keys", file.to_str().unwrap(), "--wrong-keys-per-minute", "1000000"];
    let server = Server::start(&flags);
    let ask = |key: &str, q: &str| {
        let body = format!("q={q}&source=en&target=fr&api_key={key}");
        server.ask("POST /translate", &body).lines().next().unwrap_or_default().to_owned()
    };
    assert!(ask(&office, "12345678").starts_with("HTTP/1.1 200"));
    assert!(ask(&office, "123456789").starts_with("HTTP/1.1 400"), "it is longer than the key allows");
    assert!(ask("none", "1").starts_with("HTTP/1.1 403"));
    let second = text(&keys(&["add", "home"], &file).stdout).trim().to_owned();
    until("a new key", || ask(&second, "1").starts_with("HTTP/1.1 200"));
    assert!(keys(&["revoke", "office"], &file).status.success());
    until("a revoked key", || ask(&office, "1").starts_with("HTTP/1.1 403"));
    assert!(ask(&second, "1").starts_with("HTTP/1.1 200"));
    let log = server.stop("-TERM");
    assert!(!log.contains(&office) && !log.contains(&second), "{log}");
    let list = keys(&["list"], &file);
    let lines: Vec<&str> = text(&list.stdout).lines().collect();
    assert!(
        lines.len() == 2 && lines[1].starts_with("home\t20") && lines[1].ends_with("\t-\t-"),
        "{lines:?}"
    );
    for (arguments, message) in [
        (vec!["revoke", "office"], "there is no key \"office\"; those with names: home"),
        (vec!["add", "home"], "there is a key \"home\" already"),
        (vec!["add", "a b"], "a name has 1 to 64 letters"),
    ] {
        let output = keys(&arguments, &file);
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(1) && error.contains(message), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_server_speaks_tls_and_its_health_can_be_checked() {
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/serve/src/tests/certificates");
    let place = tempfile::tempdir().unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| place.path().join(name));
    std::fs::copy(certificates.join("first.pem"), &cert).unwrap();
    std::fs::copy(certificates.join("first.key"), &key).unwrap();
    let tls = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let server = Server::start(&tls);
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let healthy = |cert: &Path| {
        let mut command = crate::command::regard();
        command.args(["serve", "--health-check", "--port", &port, "--tls-cert"]).arg(cert);
        command.output().unwrap()
    };
    assert!(healthy(&cert).status.success());
    let other = healthy(&certificates.join("second.pem"));
    assert!(!other.status.success() && text(&other.stderr).contains("another certificate"), "{other:?}");
    let plain = crate::command::regard().args(["serve", "--health-check", "--port", &port]).output();
    assert!(!plain.unwrap().status.success());
    // A renewed certificate is shown without a restart.
    std::fs::copy(certificates.join("second.key"), &key).unwrap();
    std::fs::copy(certificates.join("second.pem"), &cert).unwrap();
    until("the new certificate", || healthy(&certificates.join("second.pem")).status.success());
    let log = server.stop("-TERM");
    assert!(log.contains("regard: page https://127.0.0.1:"), "{log}");
    let model = folder().to_str().unwrap();
    let half = crate::command::regard().args(["serve", "--model", model]).args(&tls[..2]).output().unwrap();
    assert_eq!(text(&half.stderr), "regard: --tls-cert needs --tls-key\n");
}

#[cfg(unix)]
#[test]
fn a_hangup_replaces_models_and_loses_no_request() {
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("small");
    copy_model(&model);
    let mut command = crate::command::regard();
    command.args(["serve", "--port", "0", "--max-length", "9", "--model", model.to_str().unwrap()]);
    let server = Server::of(command);
    let loads = || {
        let metrics = server.ask("GET /metrics", "");
        let line = metrics.lines().find(|line| line.starts_with("regard_model_loads_total")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|n| {
                let (server, done) = (&server, &done);
                scope.spawn(move || {
                    let mut count = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        let body = format!("q=A+dog+{n}+runs.&source=en&target=fr");
                        let answer = server.ask("POST /translate", &body);
                        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for wanted in 2..=4 {
            let pid = server.child.id().to_string();
            assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
            until("a model that was loaded again", || loads() == wanted);
        }
        // What cannot be loaded is not used.
        std::fs::write(model.join("config.json"), "{").unwrap();
        let pid = server.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).sum::<u32>()
    });
    assert!(answered >= 4 && loads() == 4, "{answered}");
    let log = server.stop("-TERM");
    assert!(log.contains("the model stays as it was") && log.contains("replaced"), "{log}");
}

/// A word that is in no message of ours.
const MARK: &str = "Quarzuhrenmanufaktur";

/// Sends the marked text by every route, in good and in broken requests.
fn send_marked(server: &Server) {
    let json =
        |more: &str| format!("{{\"q\": \"{MARK} runs.\", \"source\": \"en\", \"target\": \"fr\"{more}}}");
    for path in ["/translate", "/detect", "/v1/translate/stream", "/v1/attention", "/v1/steps", "/v1/beam"] {
        for body in [
            json(""),
            json(", \"api_key\": \"Quarzuhrenmanufaktur\""),
            json(", \"format\": \"Quarzuhrenmanufaktur\""),
            json(", \"glossary\": \"Quarzuhrenmanufaktur\""),
            json(", \"glossary\": {\"Quarzuhrenmanufaktur\": \"Quarzuhrenmanufaktur\"}"),
            json(", \"alternatives\": \"Quarzuhrenmanufaktur\""),
            format!("{{\"q\": \"{MARK}"),
            format!("q={MARK}&source=en&target={MARK}"),
        ] {
            server.ask(&format!("POST {path}"), &body);
            server.ask(&format!("POST {path}?q={MARK}&api_key={MARK}"), &body);
        }
    }
    for path in [
        format!("/{MARK}?q={MARK}"),
        format!("/download_file/{MARK}"),
        format!("/v1/positions?pair={MARK}"),
        format!("/v1/model?{MARK}={MARK}"),
    ] {
        server.ask(&format!("GET {path}"), "");
        server.ask(&format!("{MARK} {path}"), "");
    }
    for (file, content) in [("a.txt", "good"), ("a.docx", "broken"), ("a.nothing", "unknown")] {
        let part = |name: &str, more: &str, value: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{value}\r\n")
        };
        let name = format!("; filename=\"{MARK}-{file}\"");
        let body = part("source", "", "en")
            + &part("target", "", "fr")
            + &part("file", &name, &format!("{MARK} {content}"))
            + "--x--\r\n";
        for path in ["/translate_file", "/v1/translate_file/stream"] {
            let head =
                format!("POST {path} HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nX-Ignore:");
            server.ask(&head, &body);
        }
    }
}

#[test]
fn users_text_is_nowhere_but_in_their_answers() {
    let place = tempfile::tempdir().unwrap();
    let [temporary, working] = ["tmp", "work"].map(|name| place.path().join(name));
    for folder in [&temporary, &working] {
        std::fs::create_dir(folder).unwrap();
    }
    let start = |flags: &[&str]| {
        let mut command = crate::command::regard();
        command.args(["serve", "--port", "0", "--max-length", "9", "--model", folder().to_str().unwrap()]);
        command.args(flags).current_dir(&working);
        for name in ["TMPDIR", "TMP", "TEMP"] {
            command.env(name, &temporary);
        }
        Server::of(command)
    };
    let key_file = place.path().join("keys");
    std::fs::write(&key_file, "secret\n").unwrap();
    for flags in [vec![], vec!["--log", "json", "--api-keys", key_file.to_str().unwrap()]] {
        let server = start(&flags);
        send_marked(&server);
        let metrics = server.ask("GET /metrics", "");
        assert!(metrics.contains("regard_request_seconds_count") && !metrics.contains(MARK), "{metrics}");
        let log = server.stop("-TERM");
        assert!(log.contains("/translate") && log.contains("400"), "{log}");
        assert!(!log.contains(MARK), "the log has a user's text: {log}");
        for folder in [&temporary, &working] {
            let left: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path()).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}
