//! Over sockets: slow clients, many clients, clients that leave, and the end.

use super::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// A server on a free port whose first model is the stand-in.
struct Listening {
    address: SocketAddr,
    stand_in: Arc<StandIn>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Listening {
    async fn start(limits: Limits) -> Self {
        let (app, stand_in) = with_stand_in(Settings { limits, ..settings() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(run(listener, app, async {
            let _ = stopped.await;
        }));
        Listening { address, stand_in, stop, server }
    }

    /// What a client does, on a thread of its own.
    fn client<T: Send + 'static>(
        &self,
        work: impl FnOnce(TcpStream) -> T + Send + 'static,
    ) -> impl Future<Output = T> {
        let address = self.address;
        let done = spawn_blocking(move || {
            let stream = TcpStream::connect(address).unwrap();
            // Nothing here takes long; whoever waits longer waits in vain.
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
            work(stream)
        });
        async { done.await.unwrap() }
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.server.await.unwrap().unwrap();
    }
}

fn translation(q: &str, connection: &str) -> String {
    let body = format!("q={}&source=en&target=fr", q.replace(' ', "+"));
    let length = body.len();
    format!(
        "POST /translate HTTP/1.1\r\nHost: x\r\nConnection: {connection}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// All that comes until the connection ends.
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
    // Nobody is let in any more.
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
    // Neither does a connection stay that does nothing after its first request.
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

#[tokio::test]
async fn connections_are_limited_and_the_others_have_their_turn() {
    let listening = Listening::start(Limits { connections: 1, ..Limits::default() }).await;
    let first = listening.client(|mut stream| {
        stream.write_all(translation("one", "keep-alive").as_bytes()).unwrap();
        let mut some = [0; 12];
        stream.read_exact(&mut some).unwrap();
        (some, stream)
    });
    let (some, first) = first.await;
    assert_eq!(&some, b"HTTP/1.1 200");
    let second = listening.client(|mut stream| {
        stream.write_all(translation("two", "close").as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let nothing = stream.read(&mut [0]).unwrap_err().kind();
        (nothing, stream)
    });
    let (nothing, second) = second.await;
    assert!(matches!(nothing, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{nothing}");
    drop(first);
    second.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let answer = spawn_blocking(move || rest(second)).await.unwrap();
    assert!(answer.ends_with(r#"{"translatedText":"TWO"}"#), "{answer}");
    listening.end().await;
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let listening = Listening::start(Limits::default()).await;
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", &[b'x'; 600_000]] {
        let answer = listening.client(move |mut stream| {
            // The server may have gone before all of it is sent, and take back its answer with that.
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
    assert_eq!(caught(async { 1 }).await, Some(1));
    assert_eq!(caught(async { [1][usize::from(std::env::args().count() > 0)] }).await, None);
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
