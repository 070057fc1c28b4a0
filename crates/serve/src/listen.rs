//! Connections: how many there may be, how long they may be silent, and how they end.
//!
//! A client costs a connection for as long as it likes to be slow, so every wait has an end: for the head of a request (also between two
//! requests), for its body (`params`), for the translation (`service`), and for a client that does not take its answer.

use crate::limits::Limits;
use crate::{App, router};
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// How long to wait when the system has no more connections to give.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests until `stop` comes, then finishes those that are under way.
pub async fn run(
    listener: TcpListener,
    app: Arc<App>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let limits = app.settings.limits.clone();
    let router = router(Arc::clone(&app));
    let slots = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let (stream, address, slot) = tokio::select! {
            connection = accept(&listener, &slots) => connection,
            () = &mut stop => break,
        };
        let connection = connection(stream, address, router.clone(), &limits);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that goes away or sends no HTTP is no event of ours.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(slot);
        });
    }
    drop(listener);
    // Each of a request's waits ends by itself; one that trickles through all of them is not waited for.
    let longest = limits.idle + 3 * limits.timeout;
    if tokio::time::timeout(longest, graceful.shutdown()).await.is_err() {
        tracing::warn!("some clients did not take their answers");
    }
    app.close();
    Ok(())
}

/// The next connection, when there is room for it. Until then, others wait with the system.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address, slot),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn connection(
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    limits: &Limits,
) -> http1::Connection<
    TokioIo<Patient>,
    impl Service<
        Request<Incoming>,
        Response = axum::response::Response,
        Error = std::convert::Infallible,
        Future: Send,
    > + use<>,
> {
    // An answer is written in one go; waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(address));
        inner.call(request)
    });
    let stream = Patient { stream, patience: limits.timeout, given_up: None };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.idle);
    http.serve_connection(TokioIo::new(stream), service)
}

/// A stream that fails when the other side takes nothing for a while.
struct Patient {
    stream: TcpStream,
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
