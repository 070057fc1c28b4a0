//! Connections: how many there may be, how long they may be silent, and how they end.
//!
//! A client costs a connection for as long as it likes to be slow, so every wait has an end: for
//! the head of a request (also between two requests), for its body (`params`), for the translation
//! (`service`), and for a client that does not take its answer.

use crate::connections::{Answering, ConnectionSlot, Connections, Refusal};
use crate::limits::Limits;
use crate::tls::Tls;
use crate::{App, router};
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

/// How long to wait when the system has no more connections to give.
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes of the head of a request: the line, the headers and what is buffered of a body.
const HEAD_BYTES: usize = 32 << 10;

/// How long the server waits for unfinished request heads when it ends.
const LAST_HEADS: Duration = Duration::from_secs(1);

/// The number of refused clients that get an answer at a time, and how long each may take to read
/// it.
const REFUSED: usize = 64;
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Answers requests until `stop` comes, then finishes those that are under way.
pub(crate) async fn run(
    listener: TcpListener,
    app: Arc<App>,
    mut stop: Pin<Box<dyn Future<Output = ()> + Send>>,
) -> io::Result<()> {
    let limits = app.settings.limits.clone();
    let router = router(Arc::clone(&app));
    let connections = Connections::new(&limits);
    let refused = Arc::new(Semaphore::new(REFUSED));
    let graceful = GracefulShutdown::new();
    loop {
        let (stream, address) = tokio::select! {
            connection = accept(&listener) => connection,
            () = &mut stop => break,
        };
        // The clients of a proxy share its connections; they are told apart by request.
        let client = (!app.proxies.contains(address.ip())).then(|| address.ip().into());
        let slot = match connections.open(client) {
            Ok(slot) => Arc::new(slot),
            Err(refusal) => {
                app.metrics.refused_connections.add(1);
                // To agree on a cipher takes more time than to answer: over TLS, the connection
                // ends.
                if app.settings.tls.is_none()
                    && let Ok(slot) = Arc::clone(&refused).try_acquire_owned()
                {
                    tokio::spawn(async move {
                        let _ = tokio::time::timeout(REFUSED_FOR, refuse(stream, refusal)).await;
                        drop(slot);
                    });
                }
                continue;
            }
        };
        let (watcher, app) = (graceful.watcher(), Arc::clone(&app));
        let router = router.clone();
        tokio::spawn(async move {
            let limits = &app.settings.limits;
            let answered = async {
                let stream = opened(stream, app.settings.tls.as_ref(), limits.idle).await?;
                let connection = connection(stream, address, router, limits, &slot);
                watcher.watch(connection).await.map_err(Box::from)
            };
            tokio::select! {
                // A client that goes away or sends no HTTP is no event of ours.
                outcome = answered => if let Err(error) = outcome {
                    let error: Box<dyn std::error::Error + Send + Sync> = error;
                    tracing::debug!(%error, "a connection ended");
                },
                () = slot.taken() => tracing::debug!("an idle connection gave its slot to another"),
            }
        });
    }
    drop(listener);
    let mut finished = pin!(graceful.shutdown());
    if tokio::time::timeout(LAST_HEADS, &mut finished).await.is_err() {
        connections.close_waiting();
        // Each of a request's waits ends by itself; one that trickles through all of them is not
        // waited for.
        let longest = limits.timeout.saturating_mul(3);
        if tokio::time::timeout(longest, finished).await.is_err() {
            tracing::warn!("some clients did not take their answers");
        }
    }
    app.close();
    Ok(())
}

/// The next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(connection) => return connection,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What a connection is read from and written to.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// A connection over which HTTP is spoken, inside TLS where there is a certificate.
async fn opened(stream: TcpStream, tls: Option<&Tls>, wait: Duration) -> io::Result<Box<dyn Io>> {
    // An answer is written in one go; waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => tokio::time::timeout(wait, tls.accept(stream)).await?,
    }
}

/// Says why a connection is refused. What the client sends is read, because a connection that is
/// closed over unread bytes takes its answer back.
async fn refuse(mut stream: TcpStream, refusal: Refusal) -> io::Result<()> {
    let (status, message) = match refusal {
        Refusal::Full => ("503 Service Unavailable", "too many connections, try again"),
        Refusal::Address => ("429 Too Many Requests", "too many connections from this address"),
    };
    let body = format!("{{\"error\":\"{message}\"}}");
    let length = body.len();
    let head = "Content-Type: application/json\r\nRetry-After: 1\r\nConnection: close";
    let answer = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

fn connection(
    stream: Box<dyn Io>,
    address: SocketAddr,
    router: Router,
    limits: &Limits,
    slot: &Arc<ConnectionSlot>,
) -> http1::Connection<
    TokioIo<Patient>,
    impl Service<
        Request<Incoming>,
        Response = axum::response::Response,
        Error = std::convert::Infallible,
        Future: Send,
    > + use<>,
> {
    let inner = TowerToHyperService::new(router);
    let slot = Arc::clone(slot);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(address));
        let answering = slot.begin();
        let answer = inner.call(request);
        async move { answer.await.map(|answer| answer.map(|body| Body::new(AnswerBody { body, answering }))) }
    });
    let stream = Patient { stream, patience: limits.timeout, given_up: None };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.idle).max_buf_size(HEAD_BYTES);
    http.serve_connection(TokioIo::new(stream), service)
}

/// The body of an answer. Until it is dropped, its connection is not idle.
struct AnswerBody {
    body: Body,
    #[expect(dead_code, reason = "is dropped with the body")]
    answering: Answering,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that fails when the other side takes nothing for a while.
struct Patient {
    stream: Box<dyn Io>,
    patience: Duration,
    /// Runs while something waits to be taken.
    given_up: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    /// The outcome of a write, or the end of patience.
    fn outcome<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.given_up = None;
            return outcome;
        }
        let patience = self.patience;
        let given_up = self.given_up.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(given_up.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.outcome(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.outcome(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
