//! The server as a process: its runtime, shutdown signals and log.
//!
//! [`serve`] blocks, so that its callers need no asynchronous runtime and do not compile the
//! futures of the server a second time.

use crate::{App, listen};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// The number of threads that serve connections; translation has separate threads.
const CONNECTION_THREADS: usize = 2;

/// The number of threads for blocking file access, in addition to those of [`App::compute`].
const FILE_THREADS: usize = 1;

/// What shuts a server down.
pub enum Shutdown {
    /// The first SIGINT or SIGTERM; a second one terminates the process immediately.
    Signals,
    /// A future that resolves.
    When(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// Why a server could not start or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address could not be listened on.
    #[error("{address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Any other I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Listens on `address` and serves requests until the shutdown, then finishes those in progress.
/// `ready` is called with the actual address.
pub fn serve(
    app: Arc<App>,
    address: SocketAddr,
    ready: &mut dyn FnMut(SocketAddr),
    shutdown: Shutdown,
) -> Result<(), ServeError> {
    // Without a bound, tokio starts another thread whenever work arrives while a thread is about to
    // become idle, and each thread retains some megabytes in its allocator.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONNECTION_THREADS)
        .max_blocking_threads(app.compute_threads() + FILE_THREADS)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
        let signals = matches!(shutdown, Shutdown::Signals);
        let stop = match shutdown {
            Shutdown::Signals => Box::pin(signal()?),
            Shutdown::When(stop) => stop,
        };
        tokio::spawn(watch_files(Arc::clone(&app), hangups(signals)?));
        ready(listener.local_addr()?);
        listen::run(listener, app, stop).await?;
        Ok(())
    })
}

/// How often to check the key and certificate files for changes.
const WATCH: Duration = Duration::from_secs(1);

/// Reloads keys and certificates when their files change, and everything when `hangups` receives a
/// signal.
async fn watch_files(app: Arc<App>, mut hangups: mpsc::UnboundedReceiver<()>) {
    let mut closed = false;
    loop {
        let all = tokio::select! {
            hangup = hangups.recv(), if !closed => {
                closed = hangup.is_none();
                !closed
            }
            () = tokio::time::sleep(WATCH) => false,
        };
        let app = Arc::clone(&app);
        // File access must not block the threads that serve requests.
        let _ = tokio::task::spawn_blocking(move || app.reload(all)).await;
    }
}

/// Receives each SIGHUP, if this server handles signals and is not attached to a terminal: a
/// terminal sends SIGHUP when it is closed, and expects the process to end.
#[cfg(unix)]
fn hangups(signals: bool) -> io::Result<mpsc::UnboundedReceiver<()>> {
    use std::io::IsTerminal;
    use tokio::signal::unix::{SignalKind, signal};
    let (to, from) = mpsc::unbounded_channel();
    if signals && !io::stderr().is_terminal() {
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move { while hangup.recv().await.is_some() && to.send(()).is_ok() {} });
    }
    Ok(from)
}

#[cfg(not(unix))]
fn hangups(_: bool) -> io::Result<mpsc::UnboundedReceiver<()>> {
    Ok(mpsc::unbounded_channel().1)
}

/// Resolves at the first SIGINT or SIGTERM; a second one terminates the process immediately.
#[cfg(unix)]
fn signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tokio::spawn(async move {
            let status = tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            };
            std::process::exit(status);
        });
    })
}

/// Resolves at the first Ctrl-C; a second one terminates the process immediately.
#[cfg(not(unix))]
fn signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // If no handler can be installed, only terminating the process stops the server.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        });
    })
}

/// What to log, and in which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// One line of text per request.
    Text,
    /// One JSON object per request.
    Json,
    /// Errors only.
    Quiet,
}

/// Directs the log of this process to standard error.
pub fn start_log(log: Log) {
    let level = match log {
        Log::Quiet => tracing::Level::ERROR,
        Log::Text | Log::Json => tracing::Level::INFO,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(level)
        .with_target(false)
        .with_ansi(false);
    match log {
        Log::Json => subscriber.json().init(),
        Log::Text | Log::Quiet => subscriber.init(),
    }
}
