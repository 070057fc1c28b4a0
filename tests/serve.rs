//! `regard serve` as a user runs it: started, asked over a socket, ended by a signal.

use super::translate::folder;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A server that is ended with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    log: BufReader<ChildStderr>,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = crate::command::regard();
        command.args(["serve", "--port", "0", "--max-length", "9", "--model", folder().to_str().unwrap()]);
        command.args(flags);
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("regard: serving on ").and_then(|url| url.split_once("://"));
        let (_, address) = address.unwrap_or_else(|| panic!("{line}"));
        Server { address: address.to_owned(), child, log }
    }

    pub(crate) fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let kind =
            if body.starts_with('{') { "application/json" } else { "application/x-www-form-urlencoded" };
        let request = format!(
            "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ends it by a signal, where there are signals; what it logged.
    pub(crate) fn stop(mut self, signal: &str) -> String {
        if cfg!(unix) {
            let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
            assert!(kill.unwrap().success());
        } else {
            self.child.kill().unwrap();
        }
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        let status = self.child.wait().unwrap();
        assert!(cfg!(not(unix)) || status.code() == Some(0), "{status}: {log}");
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_answers_and_ends_with_a_signal() {
    let server = Server::start(&[]);
    assert!(server.address.starts_with("127.0.0.1:"), "{}", server.address);
    let answer = server.ask("GET /health", "");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"status\":\"ok\"}"), "{answer}");
    let answer = server.ask("POST /translate", "q=The+secret+dog+sleeps.&source=en&target=fr");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("{\"translatedText\":\""), "{answer}");
    let log = server.stop("-TERM");
    assert!(log.contains("route=\"/translate\"") && log.contains("status=200"), "{log}");
    assert!(!log.contains("secret"), "the log has a user's text: {log}");
    assert!(cfg!(not(unix)) || log.ends_with("regard: finished what was under way\n"), "{log}");
}

#[test]
fn look_opens_on_the_layer_and_head_that_the_page_opens_on() {
    let server = Server::start(&[]);
    let model = folder().to_str().unwrap();
    for text in ["The dog sleeps.", "A cat runs.", "The dog runs in the garden."] {
        let body = format!("{{\"q\": \"{text}\", \"translation\": \"Le chien dort.\"}}");
        let answer = server.ask("POST /v1/attention", &body);
        let answer: serde_json::Value =
            serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        for kind in ["cross", "encoder", "decoder"] {
            let layer = answer["sharpest"][kind].as_u64().unwrap() as usize;
            let head = answer["hints"][kind][layer]["sharpest"].as_u64().unwrap();
            let arguments =
                ["look", "--model", model, "--src", text, "--tgt", "Le chien dort.", "--kind", kind];
            let output = crate::command::regard().args(arguments).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            let title = said.lines().next().unwrap();
            let wanted = [format!("layer {} of", layer + 1), format!(", head {} (", head + 1)];
            assert!(wanted.iter().all(|part| title.contains(part)), "{kind}: {title} instead of {wanted:?}");
        }
    }
}

#[test]
fn every_limit_is_a_flag() {
    let flags = "--char-limit 40 --batch-limit 2 --alternatives-limit 1 --max-body-bytes 300 --attention-limit 3 --idle-timeout 20 \
                 --max-connections 5 --timeout 30 --queue 9 --max-batch 3 --batch-wait-ms 1 --cors none --requests-per-minute 7 \
                 --max-connections-per-address 4 --stall-timeout 10 --trusted-proxy 10.0.0.0/8,::1 --wrong-keys-per-minute 5 \
                 --max-wait 20";
    let server = Server::start(&flags.split_whitespace().collect::<Vec<_>>());
    let answer = server.ask("GET /languages", "");
    assert!(!answer.contains("access-control"), "{answer}");
    let of = |q: &str, more: &str| format!("{{\"q\": {q}, \"source\": \"en\", \"target\": \"fr\"{more}}}");
    let long = format!("\"{}\"", "x".repeat(41));
    for (path, body, message) in [
        ("/translate", of(&long, ""), "Invalid request: request (41) exceeds text limit (40)"),
        (
            "/translate",
            of("[\"a\", \"b\", \"c\"]", ""),
            "Invalid request: request (3) exceeds text limit (2)",
        ),
        (
            "/translate",
            of("\"a\"", ", \"alternatives\": 2"),
            "Invalid request: alternatives parameter must be <= 1",
        ),
        ("/v1/attention", of("\"a b c d\"", ""), "tokens; attention can be shown for at most 3"),
        ("/translate", " ".repeat(301), "Invalid request: the body has more than 300 bytes"),
        ("/translate", of("\"1\"", ""), "{\"translatedText\":\"1\"}"),
        ("/translate", of("\"1\"", ""), "{\"translatedText\":\"1\"}"),
        ("/translate", of("\"1\"", ""), "Slowdown: 7 per 1 minute"),
    ] {
        let answer = server.ask(&format!("POST {path}"), &body);
        assert!(answer.contains(message), "{message} is not in {answer}");
    }
    server.stop("-TERM");
}

#[test]
fn the_log_can_be_json() {
    let server = Server::start(&["--log", "json"]);
    server.ask("GET /nothing?q=secret", "");
    let log = server.stop("-INT");
    let line = log.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{log}"));
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(value["fields"]["status"], 404);
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn what_cannot_be_served_is_refused_with_one_message() {
    let model = folder().to_str().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (flags, message) in [
        (vec!["--model", "no-such-folder"], "no-such-folder: no such folder"),
        (vec!["--model", model, "--model", model], "translates from en to fr, and so does"),
        (vec!["--model", model, "--port", &port], "choose another --host or --port"),
        (vec!["--model", model, "--api-keys", "no-such-file"], "no-such-file: "),
    ] {
        let output = crate::command::regard().arg("serve").args(&flags).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(message), "{flags:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for (flags, message) in [
        (["--timeout", "1e19"], "'1e19' for '--timeout <SECONDS>': a number from 0.001 to 86400 is needed"),
        (["--idle-timeout", "1e19"], "'1e19' for '--idle-timeout <SECONDS>': a number from 0.001 to 86400"),
        (["--idle-timeout", "0"], "'0' for '--idle-timeout <SECONDS>': a number from 0.001 to 86400"),
        (["--batch-wait-ms", "nan"], "'nan' for '--batch-wait-ms <MS>': a number from 0 to 60000 is needed"),
        (
            ["--threads", "99999999"],
            "'99999999' for '--threads <N>': a whole number from 1 to 1024 is needed",
        ),
        (["--beam", "0"], "'0' for '--beam <N>': a whole number from 1 to 1000 is needed"),
        (
            ["--trusted-proxy", "10.0.0.0/40"],
            "\"10.0.0.0/40\" is not an IP address or a range such as 10.0.0.0/8",
        ),
    ] {
        let output = crate::command::regard().args(["serve", "--model", model]).args(flags).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(message), "{flags:?}: {error}");
    }
}

#[test]
fn settings_come_from_the_environment_and_a_file() {
    let place = tempfile::tempdir().unwrap();
    let (models, file) = (place.path().join("models"), place.path().join("serve.toml"));
    std::fs::create_dir_all(models.join("small")).unwrap();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, models.join("small").join(from.file_name().unwrap())).unwrap();
    }
    let text = format!(
        "model = {:?}\nport = 0\nmax_length = 9\nchar-limit = 30\nqueue = 7\n",
        models.to_str().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = crate::command::regard();
    command.args(["serve", "--log", "quiet"]).env("REGARD_CONFIG", &file).env("LT_CHAR_LIMIT", "20");
    let server = Server::of(command);
    let body = format!("{{\"q\": \"{}\", \"source\": \"en\", \"target\": \"fr\"}}", "x".repeat(25));
    let answer = server.ask("POST /translate", &body);
    assert!(answer.contains("request (25) exceeds text limit (20)"), "{answer}");
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let healthy = || {
        let mut command = crate::command::regard();
        command.args(["serve", "--health-check"]).env("REGARD_PORT", &port).env("REGARD_HOST", "0.0.0.0");
        command.output().unwrap().status.code()
    };
    assert_eq!(healthy(), Some(0));
    let log = server.stop("-TERM");
    assert!(log.contains("regard: en → fr ("), "{log}");
    assert!(
        log.contains(&format!("regard: page http://127.0.0.1:{port}/, API http://127.0.0.1:{port}/docs")),
        "{log}"
    );
    assert_eq!(healthy(), Some(1));

    let output = crate::command::regard().arg("serve").env("REGARD_PORT", "x").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.starts_with("regard: environment: invalid value 'x' for 'REGARD_PORT"), "{error}");
}

/// Copies the small model into a folder.
pub(crate) fn copy_model(to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
    }
}

#[test]
fn idle_models_of_a_folder_are_unloaded_and_come_back() {
    let place = tempfile::tempdir().unwrap();
    copy_model(&place.path().join("small"));
    std::fs::write(place.path().join("notes.txt"), "x").unwrap();
    for name in [".hidden", "lost+found"] {
        std::fs::create_dir(place.path().join(name)).unwrap();
    }
    let mut command = crate::command::regard();
    command.args(["serve", "--port", "0", "--max-length", "9", "--unload-after", "0.2", "--models-dir"]);
    // The line about the note comes before the address.
    command.arg(place.path()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    assert!(line.contains("notes.txt: neither a folder nor a package"), "{line}");
    line.clear();
    log.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("regard: serving on http://").unwrap_or_else(|| panic!("{line}"));
    let server = Server { address: address.to_owned(), child, log };
    let body = "q=The+dog+sleeps.+A+cat+runs.&source=en&target=fr";
    let metric = |name: &str| {
        let answer = server.ask("GET /metrics", "");
        let line = answer.lines().find(|line| line.starts_with(&format!("{name}{{"))).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let wait_until_unloaded = || {
        let start = std::time::Instant::now();
        while metric("regard_model_loaded") != 0.0 {
            assert!(start.elapsed().as_secs() < 20, "it stays");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let first = server.ask("POST /translate", body);
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    let text = |answer: &str| answer.split("\r\n\r\n").nth(1).unwrap().to_owned();
    for round in 1..=2 {
        wait_until_unloaded();
        // Several at once: one of them loads the model, and all are answered.
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| server.ask("POST /translate", body))).collect();
            for answer in asked {
                assert_eq!(text(&answer.join().unwrap()), text(&first));
            }
        });
        assert_eq!(metric("regard_model_loads_total"), 1.0 + round as f64);
    }
    // What looks inside brings it back, too, and what does not need it does not.
    wait_until_unloaded();
    assert!(server.ask("GET /v1/model", "").contains("\"parameters\""));
    assert_eq!(metric("regard_model_loaded"), 0.0);
    let answer = server.ask("POST /v1/attention", "q=A+dog&source=en&target=fr");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    wait_until_unloaded();
    assert!(server.ask("POST /v1/steps", "q=A+dog&source=en&target=fr").starts_with("HTTP/1.1 200"));
    // Without its files it cannot come back, and the server goes on.
    wait_until_unloaded();
    std::fs::remove_dir_all(place.path().join("small")).unwrap();
    let answer = server.ask("POST /translate", body);
    assert!(answer.starts_with("HTTP/1.1 500") && answer.contains("no such folder"), "{answer}");
    assert!(server.ask("GET /health", "").starts_with("HTTP/1.1 200"));
    copy_model(&place.path().join("small"));
    assert_eq!(text(&server.ask("POST /translate", body)), text(&first));
    let log = server.stop("-TERM");
    assert!(log.contains("unloaded") && log.contains("loaded model=\"en-fr\""), "{log}");
}

#[test]
fn the_models_of_the_folder_of_models_are_served() {
    let place = tempfile::tempdir().unwrap();
    let mut empty = crate::command::regard();
    empty.args(["serve", "--port", "0"]).env("REGARD_MODELS", place.path());
    let output = empty.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("there is no model to serve"), "{error}");
    // What a container without models says.
    std::fs::create_dir(place.path().join("lost+found")).unwrap();
    let mut empty = crate::command::regard();
    empty.args(["serve", "--port", "0"]).env("REGARD_MODEL", place.path());
    let error = String::from_utf8(empty.output().unwrap().stderr).unwrap();
    assert!(error.ends_with(": there are no models in this folder\n"), "{error}");
    copy_model(&place.path().join("small"));
    let mut command = crate::command::regard();
    command.args(["serve", "--port", "0", "--log", "quiet"]).env("REGARD_MODELS", place.path());
    let server = Server::of(command);
    assert!(server.ask("GET /languages", "").contains("\"targets\":[\"en\",\"fr\"]"));
    server.stop("-TERM");
    let output = crate::command::regard().args(["serve", "--models-dir", "no-such"]).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("regard: no-such: "));
}
