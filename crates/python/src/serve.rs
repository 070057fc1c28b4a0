//! A server in a thread of this process.

use crate::errors::{of_command, other};
use pyo3::prelude::*;
use regard::cli::Failure;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long to wait before looking for signals.
const LOOK: Duration = Duration::from_millis(100);

/// The thread of a server and what ends it.
struct Running {
    thread: JoinHandle<Result<(), Failure>>,
    stop: oneshot::Sender<()>,
}

#[pyclass(frozen, module = "regard._regard")]
pub(crate) struct Server {
    address: SocketAddr,
    running: Mutex<Option<Running>>,
}

#[pymethods]
impl Server {
    /// Starts a server with the flags of `regard serve` and waits until it accepts requests.
    #[new]
    fn new(py: Python<'_>, flags: Vec<OsString>) -> PyResult<Self> {
        let (to, ready) = channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            // A sender that is dropped stops it, too.
            let until = async move { drop(stopped.await) };
            // Nobody waits for the address if a signal came first.
            let ready = |address| to.send(address).unwrap_or(());
            regard::cli::serve(flags, ready, until)
        });
        let mut ready = Some(ready);
        while let Some(receiver) = ready.take() {
            let (address, receiver) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
            match address {
                Ok(address) => {
                    let running = Mutex::new(Some(Running { thread, stop }));
                    return Ok(Server { address, running });
                }
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            ready = Some(receiver);
        }
        Err(match py.detach(move || thread.join()) {
            Ok(Err(failure)) => of_command(py, failure),
            Ok(Ok(())) => other(py, "serve: it ended before it accepted requests"),
            Err(_) => other(py, "serve: the thread of the server has panicked"),
        })
    }

    /// The host and port that it listens on.
    #[getter]
    fn address(&self) -> (String, u16) {
        (self.address.ip().to_string(), self.address.port())
    }

    /// Whether it has not been stopped.
    #[getter]
    fn running(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        running.as_ref().is_some_and(|running| !running.thread.is_finished())
    }

    /// Finishes the requests in progress and ends; a second call does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let running = self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(Running { thread, stop }) = running else { return Ok(()) };
        // It may have ended by itself.
        let _ = stop.send(());
        match py.detach(move || thread.join()) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(of_command(py, failure)),
            Err(_) => Err(other(py, "serve: the thread of the server has panicked")),
        }
    }
}
