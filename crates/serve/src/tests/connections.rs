//! Tests over sockets: slow clients, many clients, disconnects and shutdown.

use super::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// A server on a free port whose first model is a stand-in.
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    stand_in: Arc<StandIn>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Listening {
    async fn start(limits: Limits) -> Self {
        Self::with(Settings { limits, ..settings() }).await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        let (app, stand_in) = with_stand_in(settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = Box::pin(async {
            let _ = stopped.await;
        });
        let server = tokio::spawn(crate::listen::run(listener, app, stopped));
        Listening { address, stand_in, stop, server }
    }

    /// Runs a client on a separate thread.
    pub(super) fn client<T: Send + 'static>(
        &self,
        work: impl FnOnce(TcpStream) -> T + Send + 'static,
    ) -> impl Future<Output = T> {
        let address = self.address;
        let done = spawn_blocking(move || {
            let stream = TcpStream::connect(address).unwrap();
            // Nothing in these tests takes long, so a longer wait would never end.
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
            work(stream)
        });
        async { done.await.unwrap() }
    }

    /// The whole response to bytes that are sent at once.
    async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let bytes = bytes.as_ref().to_vec();
        self.client(move |mut stream| {
            stream.write_all(&bytes).unwrap();
            rest(stream)
        })
        .await
    }

    /// A connection on which some bytes have been sent.
    async fn open(&self, bytes: &str) -> TcpStream {
        let bytes = bytes.to_owned();
        self.client(move |mut stream| {
            stream.write_all(bytes.as_bytes()).unwrap();
            stream
        })
        .await
    }

    pub(super) async fn end(self) {
        self.stop.send(()).unwrap();
        self.server.await.unwrap().unwrap();
    }
}

pub(super) fn translation(q: &str, connection: &str) -> String {
    let body = format!("q={}&source=en&target=fr", q.replace(' ', "+"));
    let length = body.len();
    format!(
        "POST /translate HTTP/1.1\r\nHost: x\r\nConnection: {connection}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Everything that arrives until the connection is closed.
fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn what_is_under_way_is_finished_when_the_server_is_stopped() {
    let Listening { address, stand_in, stop, server } = Listening::start(Limits::default()).await;
    let client = spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(translation("slow one", "close").as_bytes()).unwrap();
        rest(stream)
    });
    until(|| stand_in.begun.load(Ordering::SeqCst) == 1).await;
    stop.send(()).unwrap();
    // New connections are refused.
    let refused = || TcpStream::connect(address).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
    until(refused).await;
    *stand_in.open.lock().unwrap() = true;
    let answer = client.await.unwrap();
    assert!(answer.ends_with(r#"{"translatedText":"SLOW ONE"}"#), "{answer}");
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_closes_its_connection_frees_its_work() {
    let listening = Listening::start(Limits::default()).await;
    let stand_in = Arc::clone(&listening.stand_in);
    let left = listening.client(|mut stream| {
        stream.write_all(translation("slow one", "close").as_bytes()).unwrap();
        stream
    });
    let stream = left.await;
    until(|| stand_in.begun.load(Ordering::SeqCst) == 1).await;
    drop(stream);
    until(|| *stand_in.given_up.lock().unwrap() == ["slow one"]).await;
    let answer = listening.client(|mut stream| {
        stream.write_all(translation("quick", "close").as_bytes()).unwrap();
        rest(stream)
    });
    assert!(answer.await.ends_with(r#"{"translatedText":"QUICK"}"#));
    listening.end().await;
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let limits = Limits { idle: Duration::from_millis(100), ..Limits::default() };
    let listening = Listening::start(limits).await;
    let answer = listening.client(|mut stream| {
        stream.write_all(b"POST /translate HTTP/1.1\r\nHost: x\r\n").unwrap();
        rest(stream)
    });
    assert!(!answer.await.contains("200 OK"));
    // A connection that stays idle after its first request is closed, too.
    let answer = listening.client(|mut stream| {
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        rest(stream)
    });
    assert!(answer.await.ends_with("{\"status\":\"ok\"}"));
    listening.end().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_refused() {
    let limits = Limits { timeout: Duration::from_millis(100), ..Limits::default() };
    let listening = Listening::start(limits).await;
    let answer = listening.client(|mut stream| {
        let head =
            "POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 30\r\n\r\nq=a";
        stream.write_all(head.as_bytes()).unwrap();
        rest(stream)
    });
    let answer = answer.await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.ends_with(r#"{"error":"Invalid request: the body came too slowly"}"#), "{answer}");
    listening.end().await;
}

#[tokio::test]
async fn a_client_that_takes_no_answer_is_left() {
    let limits = Limits { timeout: Duration::from_millis(200), ..Limits::default() };
    let listening = Listening::start(limits).await;
    let end = listening.client(|mut stream| {
        loop {
            if let Err(error) = stream.write_all(&b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100)) {
                return error.kind();
            }
        }
    });
    let end = end.await;
    assert!(matches!(end, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{end}");
    listening.end().await;
}

const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let listening = Listening::start(Limits { connections: 4, ..Limits::default() }).await;
    // Some clients have sent nothing, some a part of a head, some a whole request.
    let begun = ["", "GET /health HT", "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"];
    let mut idle = Vec::new();
    for n in 0..30 {
        idle.push(listening.open(begun[n % 3]).await);
    }
    let answer = listening.ask(HEALTH).await;
    assert!(answer.ends_with(r#"{"status":"ok"}"#), "{answer}");
    listening.end().await;
}

#[tokio::test]
async fn connections_that_are_being_answered_keep_their_place() {
    let listening = Listening::start(Limits { connections: 1, ..Limits::default() }).await;
    let stand_in = Arc::clone(&listening.stand_in);
    let first = listening.open(&translation("slow one", "close")).await;
    until(|| stand_in.begun.load(Ordering::SeqCst) == 1).await;
    let answer = listening.ask(HEALTH).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("Retry-After: 1\r\n"), "{answer}");
    assert!(answer.ends_with(r#"{"error":"too many connections, try again"}"#), "{answer}");
    *stand_in.open.lock().unwrap() = true;
    let answer = spawn_blocking(move || rest(first)).await.unwrap();
    assert!(answer.ends_with(r#"{"translatedText":"SLOW ONE"}"#), "{answer}");
    listening.end().await;
}

#[tokio::test]
async fn an_address_cannot_take_all_connections() {
    let limits = Limits { connections_per_address: 2, ..Limits::default() };
    let listening = Listening::start(limits.clone()).await;
    let held = [listening.open("").await, listening.open("").await];
    let answer = listening.ask(HEALTH).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.ends_with(r#"{"error":"too many connections from this address"}"#), "{answer}");
    drop(held);
    listening.end().await;
    // A trusted proxy stands for many clients.
    let limits = Limits { trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()], ..limits };
    let listening = Listening::start(limits).await;
    let _held = [listening.open("").await, listening.open("").await];
    assert!(listening.ask(HEALTH).await.starts_with("HTTP/1.1 200 "));
    listening.end().await;
}

#[tokio::test]
async fn the_head_of_a_request_is_limited() {
    let listening = Listening::start(Limits::default()).await;
    let head = |bytes: usize| {
        format!("GET /health HTTP/1.1\r\nConnection: close\r\nX: {}\r\n\r\n", "x".repeat(bytes))
    };
    assert!(listening.ask(head(16_000)).await.starts_with("HTTP/1.1 200 "));
    let answer = listening.client(move |mut stream| {
        // The server responds before it has read everything.
        let _ = stream.write_all(head(100_000).as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    let answer = answer.await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    listening.end().await;
}

fn keys(list: &str) -> Option<Keys> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, list).unwrap();
    Some(Keys::load(&file).unwrap())
}

/// A request whose body of `length` bytes lacks its last byte.
fn unfinished(head: &str, length: usize) -> String {
    let body = format!("q={}", "x".repeat(length - 3));
    format!("POST /translate{head}\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn clients_without_a_key_do_not_lock_out_those_with_one() {
    let limits = Limits { body_bytes: 20_000, ..Limits::default() };
    let listening = Listening::with(Settings { limits, keys: keys("secret\n"), ..settings() }).await;
    let mut held = Vec::new();
    for _ in 0..40 {
        held.push(listening.open(&unfinished(" HTTP/1.1\r\nConnection: close", 20_000)).await);
    }
    let text = ["quick"; 2_000].join("+");
    let body = format!("q={text}&source=en&target=fr");
    let length = body.len();
    for head in [
        "POST /translate?api_key=secret HTTP/1.1",
        "POST /translate HTTP/1.1\r\nAuthorization: bearer secret",
    ] {
        let request =
            format!("{head}\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        let answer = listening.ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    // One address has a share of the pool for bodies without a key, and its body stalls.
    let statuses = spawn_blocking(move || {
        let status = |stream: TcpStream| rest(stream).get(9..12).unwrap_or_default().to_owned();
        held.into_iter().map(status).collect::<Vec<_>>()
    });
    let statuses = statuses.await.unwrap();
    assert!(statuses.iter().all(|status| status == "503" || status == "408"), "{statuses:?}");
    assert!(statuses.iter().filter(|status| *status == "408").count() <= 1, "{statuses:?}");
    listening.end().await;
}

#[tokio::test]
async fn keys_are_checked_before_the_body() {
    let listening = Listening::with(Settings { keys: keys("secret\n"), ..settings() }).await;
    for (head, status) in [
        ("?api_key=wrong HTTP/1.1\r\nConnection: close", "HTTP/1.1 403 "),
        (" HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer wrong", "HTTP/1.1 403 "),
        ("?dictionary=x HTTP/1.1\r\nConnection: close", "HTTP/1.1 400 "),
    ] {
        let answer = listening.client(move |mut stream| {
            let head = format!("POST /translate{head}\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            rest(stream)
        });
        let answer = answer.await;
        assert!(answer.starts_with(status), "{answer}");
    }
    // LibreTranslate's clients send the key in the body.
    let body = "q=quick&source=en&target=fr&api_key=secret";
    let length = body.len();
    let request = format!(
        "POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    assert!(listening.ask(request).await.ends_with(r#"{"translatedText":"QUICK"}"#));
    listening.end().await;
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let limits = Limits { stall: Duration::from_millis(300), ..Limits::default() };
    let listening = Listening::start(limits).await;
    // The body stops after a large part, or delivers a byte now and then.
    let answer = listening.open(&unfinished(" HTTP/1.1\r\nConnection: close", 100_000)).await;
    let answer = spawn_blocking(move || rest(answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    let answer = listening.client(|mut stream| {
        let head =
            "POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 900\r\n\r\nq=";
        stream.write_all(head.as_bytes()).unwrap();
        let mut writer = stream.try_clone().unwrap();
        std::thread::spawn(move || {
            for _ in 0..800 {
                std::thread::sleep(Duration::from_millis(20));
                if writer.write_all(b"x").is_err() {
                    break;
                }
            }
        });
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        answer
    });
    assert_eq!(&answer.await, b"HTTP/1.1 408");
    listening.end().await;
}

#[tokio::test]
async fn trusted_proxies_name_their_clients() {
    let limits = Limits { requests_per_minute: Some(1), ..Limits::default() };
    let trusted = Limits { trusted_proxies: vec!["127.0.0.1".parse().unwrap()], ..limits.clone() };
    let request = |client: &str| {
        let head = format!("POST /detect?q=a HTTP/1.1\r\nX-Forwarded-For: 6.6.6.6, {client}");
        format!("{head}\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    };
    let clients = ["192.0.2.1", "192.0.2.2", "192.0.2.1", "2001:db8::1", "2001:db8::2"];
    for (limits, want) in
        [(trusted, ["200", "200", "429", "200", "429"]), (limits, ["200", "429", "429", "429", "429"])]
    {
        let listening = Listening::start(limits).await;
        for (client, status) in clients.into_iter().zip(want) {
            let answer = listening.ask(request(client)).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{client}: {answer}");
        }
        listening.end().await;
    }
}

#[tokio::test]
async fn waits_without_end_are_no_panic() {
    let (timeout, idle, stall) = (Duration::MAX, Duration::MAX, Duration::MAX);
    let listening = Listening::start(Limits { timeout, idle, stall, ..Limits::default() }).await;
    assert!(listening.ask(translation("quick", "close")).await.ends_with(r#"{"translatedText":"QUICK"}"#));
    listening.end().await;
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let listening = Listening::start(Limits::default()).await;
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", &[b'x'; 600_000]] {
        let answer = listening.client(move |mut stream| {
            // The server may close the connection before everything is sent, which can discard its
            // response.
            let _ = stream.write_all(bytes);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        });
        let answer = answer.await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    listening.end().await;
}

#[tokio::test]
async fn a_panic_outside_of_the_workers_costs_one_request_too() {
    assert_eq!(catch_panic(async { 1 }).await, Some(1));
    assert_eq!(catch_panic(async { [1][usize::from(std::env::args().count() > 0)] }).await, None);
}

#[test]
fn panics_say_where_and_not_what() {
    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<Vec<u8>>>);
    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let before = std::panic::take_hook();
    hide_panic_messages();
    tracing::subscriber::with_default(subscriber, || {
        let secret = String::from("sécret");
        assert!(std::panic::catch_unwind(|| secret[..2].len()).is_err());
    });
    std::panic::set_hook(before);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("connections.rs") && !text.contains("cret"), "{text}");
}
