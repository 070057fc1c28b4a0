//! The server as a process: its runtime, the signals that end it, its log.
//!
//! [`serve`] blocks, so that a program around it needs no asynchronous runtime, and compiles none
//! of the server's futures a second time.

use crate::{App, listen};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Threads that handle connections; translation has threads of its own.
const CONNECTION_THREADS: usize = 2;

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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONNECTION_THREADS)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
        ready(listener.local_addr()?);
        let stop = match shutdown {
            Shutdown::Signals => Box::pin(signal()?),
            Shutdown::When(stop) => stop,
        };
        listen::run(listener, app, stop).await?;
        Ok(())
    })
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
