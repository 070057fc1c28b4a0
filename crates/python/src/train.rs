//! Training, followed by a Python function.

use crate::errors::{of_command, other};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard::cli::Failure;
use regard::train::{End, Outcome, Progress, StepRecord, ValidationRecord};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How long to wait for the next event before looking for signals.
const LOOK: Duration = Duration::from_millis(100);

/// What happens in a run.
enum Event {
    Message(String),
    Step(StepRecord, Option<u64>),
    Validated(ValidationRecord, bool),
}

/// Sends events to the thread that called [`train`].
struct Sender(SyncSender<Event>);

impl Sender {
    fn send(&mut self, event: Event) {
        // The receiver lives as long as the run.
        let _ = self.0.send(event);
    }
}

impl Progress for Sender {
    fn message(&mut self, text: &str) {
        self.send(Event::Message(text.to_owned()));
    }

    fn step(&mut self, record: &StepRecord, total: Option<u64>) {
        self.send(Event::Step(record.clone(), total));
    }

    fn validated(&mut self, record: &ValidationRecord, best: bool) {
        self.send(Event::Validated(record.clone(), best));
    }
}

impl Event {
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        match self {
            Event::Message(text) => {
                found.set_item("kind", "message")?;
                found.set_item("text", text)?;
            }
            Event::Step(record, total) => {
                found.set_item("kind", "step")?;
                found.set_item("step", record.step)?;
                found.set_item("total", total)?;
                found.set_item("epoch", record.epoch)?;
                found.set_item("loss", record.loss)?;
                found.set_item("nll", record.nll)?;
                found.set_item("rate", record.rate)?;
                found.set_item("gradient_norm", record.gradient_norm)?;
                found.set_item("tokens_per_second", record.tokens_per_second)?;
                found.set_item("seconds", record.seconds)?;
            }
            Event::Validated(record, best) => {
                found.set_item("kind", "validation")?;
                found.set_item("step", record.step)?;
                found.set_item("loss", record.loss)?;
                found.set_item("perplexity", record.perplexity)?;
                found.set_item("bleu", record.bleu)?;
                found.set_item("chrf", record.chrf)?;
                found.set_item("seconds", record.seconds)?;
                found.set_item("weights", &record.weights)?;
                found.set_item("samples", &record.samples)?;
                found.set_item("best", best)?;
            }
        }
        Ok(found)
    }
}

/// Trains with the flags of `regard train`. `progress` is called in the calling thread with each
/// event. A signal, or an exception of `progress`, ends the run with everything saved and is raised
/// then.
#[pyfunction]
pub(crate) fn train<'py>(
    py: Python<'py>,
    flags: Vec<OsString>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let stop = AtomicBool::new(false);
    let mut raised = None;
    let outcome = std::thread::scope(|scope| {
        let (to, events) = sync_channel(16);
        let stop = &stop;
        let run = scope.spawn(move || regard::cli::train(flags, &mut Sender(to), stop));
        let mut raise = |error: PyErr| {
            stop.store(true, Ordering::Relaxed);
            raised.get_or_insert(error);
        };
        // The receiver is not shared: it is lent to the closure and comes back.
        let mut events = Some(events);
        while let Some(receiver) = events.take() {
            let (next, receiver) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
            match (next, progress) {
                (Err(RecvTimeoutError::Disconnected), _) => break,
                (Ok(event), Some(progress)) => {
                    let called = event.to_dict(py).and_then(|event| progress.call1((event,)));
                    called.map_or_else(&mut raise, |_| ());
                }
                (Ok(_), None) | (Err(RecvTimeoutError::Timeout), _) => {}
            }
            py.check_signals().unwrap_or_else(&mut raise);
            events = Some(receiver);
        }
        // It has nothing left to say, so this is short.
        py.detach(move || run.join())
    });
    let outcome: Result<Outcome, Failure> =
        outcome.map_err(|_| other(py, "training: the thread of the run has panicked"))?;
    if let Some(error) = raised {
        return Err(error);
    }
    let outcome = outcome.map_err(|error| of_command(py, error))?;
    let found = PyDict::new(py);
    found.set_item("finished", outcome.end == End::Finished)?;
    found.set_item("steps", outcome.steps)?;
    found.set_item("bleu", outcome.bleu)?;
    found.set_item("chrf", outcome.chrf)?;
    found.set_item("seconds", outcome.seconds)?;
    found.set_item("all_seconds", outcome.all_seconds)?;
    found.set_item("target_tokens", outcome.target_tokens)?;
    Ok(found)
}
