//! The server as a process: its runtime, the signals that end it, its log.
//!
//! [`serve`] blocks, so that a program around it needs no asynchronous runtime, and compiles none
//! of the server's futures a second time.

use crate::{App, listen};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Threads that handle connections; translation has threads of its own.
const CONNECTION_THREADS: usize = 2;

/// Threads for what blocks, besides those of [`App::compute`]: files that are read again.
const FILE_THREADS: usize = 1;

/// What ends a server.
pub enum Shutdown {
    /// The first SIGINT or SIGTERM; a second one ends the process at once.
    Signals,
    /// This future.
    When(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// Why a server could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address could not be listened on.
    #[error("{address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else of the system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Listens on `address` and answers requests until the shutdown, then finishes those in progress.
/// `ready` gets the address that it listens on.
pub fn serve(
    app: Arc<App>,
    address: SocketAddr,
    ready: &mut dyn FnMut(SocketAddr),
    shutdown: Shutdown,
) -> Result<(), ServeError> {
    // Without a bound, tokio starts another thread whenever work comes while one is about to be
    // free, and each keeps some megabytes of what its allocator holds back.
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

/// How often the files of keys and certificates are looked at.
const WATCH: Duration = Duration::from_secs(1);

/// Reads keys and certificates again when their files change, and everything when `hangups` says
/// so, as long as the runtime lasts.
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
        // Files are read elsewhere than where requests are answered.
        let _ = tokio::task::spawn_blocking(move || app.reload(all)).await;
    }
}

/// Where each SIGHUP arrives, if signals are this server's: not at a terminal, which sends one when
/// it is closed and expects that to be the end.
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

/// Ends with the first SIGINT or SIGTERM; a second one ends the process at once.
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

/// Ends with the first Ctrl-C; a second one ends the process at once.
#[cfg(not(unix))]
fn signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a handler nothing but the end of the process stops the server.
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

/// What the log has a line for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// One line of text per request.
    Text,
    /// One JSON object per request.
    Json,
    /// Errors only.
    Quiet,
}

/// Sends the log of this process to standard error.
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
