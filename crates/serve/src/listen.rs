//! Connections: accepts, limits and closes them.
//!
//! A slow client occupies a connection, so every wait has a timeout: for the head of a request
//! (also between two requests), for its body (`params`), for the translation (`service`), and for a
//! client that does not read its response.

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

/// How long to pause when accepting a connection fails, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The maximum size of the head of a request in bytes: the request line, the headers and any
/// buffered part of the body.
const HEAD_BYTES: usize = 32 << 10;

/// How long the server waits for unfinished request heads on shutdown.
const LAST_HEADS: Duration = Duration::from_secs(1);

/// The number of rejected clients that get a response concurrently, and how long each may take to
/// read it.
const REFUSED: usize = 64;
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Serves requests until `stop` resolves, then finishes those in progress.
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
        // The clients of a proxy share its connections, so limits apply to each request instead.
        let client = (!app.proxies.contains(address.ip())).then(|| address.ip().into());
        let slot = match connections.open(client) {
            Ok(slot) => Arc::new(slot),
            Err(refusal) => {
                app.metrics.refused_connections.add(1);
                // A TLS handshake costs more than a response, so a TLS connection is simply closed.
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
                let stream = handshake(stream, app.settings.tls.as_ref(), limits.idle).await?;
                let connection = connection(stream, address, router, limits, &slot);
                watcher.watch(connection).await.map_err(Box::from)
            };
            tokio::select! {
                // A client that disconnects or does not speak HTTP is not an error of the server.
                outcome = answered => if let Err(error) = outcome {
                    let error: Box<dyn std::error::Error + Send + Sync> = error;
                    tracing::debug!(%error, "a connection ended");
                },
                () = slot.taken() => tracing::debug!("an idle connection was closed for a new one"),
            }
        });
    }
    drop(listener);
    let mut finished = pin!(graceful.shutdown());
    if tokio::time::timeout(LAST_HEADS, &mut finished).await.is_err() {
        connections.close_waiting();
        // Every wait of a request has a timeout; a client that exhausts all of them is not waited
        // for.
        let longest = limits.timeout.saturating_mul(3);
        if tokio::time::timeout(longest, finished).await.is_err() {
            tracing::warn!("some clients did not read their responses");
        }
    }
    app.close();
    Ok(())
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(connection) => return connection,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// The byte stream of a connection.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// Prepares a connection for HTTP, with a TLS handshake if there is a certificate.
async fn handshake(stream: TcpStream, tls: Option<&Tls>, wait: Duration) -> io::Result<Box<dyn Io>> {
    // A response is written in one go, so Nagle's algorithm would only delay it.
    let _ = stream.set_nodelay(true);
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => tokio::time::timeout(wait, tls.accept(stream)).await?,
    }
}

/// Sends a rejection. What the client sends is read, because closing a connection with unread bytes
/// resets it, and the response could be lost.
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
    TokioIo<WriteTimeout>,
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
    let stream = WriteTimeout { stream, timeout: limits.timeout, timer: None };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.idle).max_buf_size(HEAD_BYTES);
    http.serve_connection(TokioIo::new(stream), service)
}

/// A response body. Its connection is not idle until the body is dropped.
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

/// A stream whose writes fail if the peer reads nothing for a while.
struct WriteTimeout {
    stream: Box<dyn Io>,
    timeout: Duration,
    /// Runs while a write is pending.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    /// The result of a write, or a timeout.
    fn outcome<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.timer = None;
            return outcome;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
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
