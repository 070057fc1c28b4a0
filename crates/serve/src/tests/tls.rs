//! HTTPS: responses, changing certificates, and clients that do not speak TLS.

use super::connections::{Listening, translation};
use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use tokio::task::spawn_blocking;

/// A certificate and its key in files that tests can replace.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let files = Files(tempfile::tempdir().unwrap());
        files.put("first.pem", "cert.pem");
        files.put("first.key", "key.pem");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces `name` with one of the committed files, in the way of programs that renew
    /// certificates.
    fn put(&self, from: &str, name: &str) {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/certificates").join(from);
        std::fs::copy(committed, self.path("new")).unwrap();
        std::fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    fn load(&self) -> regard_core::Result<Tls> {
        Tls::load(&self.path("cert.pem"), &self.path("key.pem"))
    }
}

/// A connection that accepts only one of the committed certificates.
fn pinned(address: std::net::SocketAddr, certificate: &str) -> impl Read + Write {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/certificates").join(certificate);
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    crate::tls::pinned(stream, address, &file).unwrap()
}

fn asked(stream: &mut (impl Read + Write), request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    // Until the response is complete: the connection may stay open.
    while !answer.ends_with(b"}") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            break;
        }
        answer.push(byte[0]);
    }
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn requests_are_answered_over_tls_and_certificates_change_without_a_restart() {
    let files = Files::new();
    let tls = files.load().unwrap();
    let listening = Listening::with(Settings { tls: Some(tls.clone()), ..settings() }).await;
    let address = listening.address;
    let open = spawn_blocking(move || {
        let mut stream = pinned(address, "first.pem");
        let answer = asked(&mut stream, &translation("quick", "keep-alive")).unwrap();
        assert!(answer.ends_with(r#"{"translatedText":"QUICK"}"#), "{answer}");
        // Another certificate is not accepted.
        assert!(asked(&mut pinned(address, "second.pem"), &translation("quick", "close")).is_err());
        stream
    });
    let mut open = open.await.unwrap();
    assert!(!tls.reload(false).unwrap());
    // After only one of the two files has been replaced, they do not match, and nothing changes.
    files.put("second.pem", "cert.pem");
    let error = tls.reload(false).unwrap_err().to_string();
    assert!(error.contains("cert.pem: it cannot be used with "), "{error}");
    assert!(!tls.reload(false).unwrap(), "it is complained about once");
    files.put("second.key", "key.pem");
    assert!(tls.reload(false).unwrap());
    let done = spawn_blocking(move || {
        let answer = asked(&mut pinned(address, "second.pem"), &translation("quick", "close")).unwrap();
        assert!(answer.ends_with(r#"{"translatedText":"QUICK"}"#), "{answer}");
        assert!(asked(&mut pinned(address, "first.pem"), &translation("quick", "close")).is_err());
        // An open connection stays open.
        let answer = asked(&mut open, &translation("again", "close")).unwrap();
        assert!(answer.ends_with(r#"{"translatedText":"AGAIN"}"#), "{answer}");
    });
    done.await.unwrap();
    let cert = files.path("cert.pem");
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/certificates/first.pem");
    let healthy = spawn_blocking(move || [cert, other].map(|c| check_health(address, Some(&c))));
    let [healthy, foreign] = healthy.await.unwrap();
    assert!(healthy.is_ok(), "{healthy:?}");
    assert!(foreign.unwrap_err().to_string().contains("another certificate"));
    listening.end().await;
}

#[tokio::test]
async fn clients_that_speak_no_tls_cost_nothing() {
    let limits = Limits { idle: Duration::from_millis(200), ..Limits::default() };
    let tls = Some(Files::new().load().unwrap());
    let listening = Listening::with(Settings { tls, limits, ..settings() }).await;
    // A silent client is disconnected.
    let silent = listening.client(|mut stream| {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer.len()
    });
    assert_eq!(silent.await, 0);
    let address = listening.address;
    // A client that speaks plain HTTP gets a TLS alert instead of a response.
    let plain = spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(translation("quick", "close").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    let plain = plain.await.unwrap();
    assert!(!plain.contains("HTTP/1.1") && !plain.contains("QUICK"), "{plain:?}");
    listening.end().await;
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let files = Files::new();
    let error = |cert: &str, key: &str| {
        let paths = [cert, key].map(|name| files.path(name));
        Tls::load(&paths[0], &paths[1]).unwrap_err().to_string()
    };
    assert!(error("none.pem", "key.pem").contains("none.pem: "));
    assert!(error("key.pem", "key.pem").ends_with("there is no certificate in PEM format in it"));
    assert!(error("cert.pem", "cert.pem").ends_with("there is no private key in PEM format in it"));
    files.put("second.key", "key.pem");
    let error = error("cert.pem", "key.pem");
    assert!(error.contains("cert.pem: it cannot be used with "), "{error}");
}
