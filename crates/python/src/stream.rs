//! A translation while it is generated.

use crate::errors::of_library;
use pyo3::prelude::*;
use regard::decode::SearchOptions;
use regard::translator::LineObserver;
use regard_documents::{Document, Translation};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long to wait for the next token before looking for signals.
const LOOK: Duration = Duration::from_millis(50);

/// What a stream says: new text, or the whole translation at its end.
enum Event {
    Grown(String),
    Finished(regard::Result<String>),
}

/// An iterator of the tokens of a translation, as text.
#[pyclass(frozen, module = "regard._regard")]
pub(crate) struct Stream {
    events: Mutex<Receiver<Event>>,
    cancelled: Arc<AtomicBool>,
    translation: Mutex<Option<String>>,
}

/// Sends what is new in the text of the running sentence.
struct Follower<'a> {
    /// The text of the document before this sentence, and what has been sent.
    sent: &'a Mutex<String>,
    document: &'a Document,
    /// The sentences that are complete.
    said: &'a [String],
    events: &'a SyncSender<Event>,
    cancelled: &'a AtomicBool,
}

impl LineObserver for Follower<'_> {
    fn is_active(&self, _: usize) -> bool {
        !self.cancelled.load(Ordering::Relaxed)
    }

    fn follows(&self, _: usize) -> bool {
        true
    }

    fn on_progress(&self, _: usize, part: usize, text: &str) {
        // Further parts of a sentence that is too long for the model come with its end.
        if part == 0 {
            // What lies behind this sentence is not said before its end.
            self.send(&(self.document.render_partial(|i| self.said.get(i).cloned()) + text));
        }
    }
}

impl Follower<'_> {
    /// Sends what `text` has beyond what was sent. Bytes that do not make a character yet wait.
    fn send(&self, text: &str) {
        let text = text.trim_end_matches('\u{fffd}');
        let mut sent = self.sent.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(new) = text.strip_prefix(sent.as_str())
            && !new.is_empty()
        {
            let gone = self.events.send(Event::Grown(new.to_owned())).is_err();
            self.cancelled.fetch_or(gone, Ordering::Relaxed);
            sent.push_str(new);
        }
    }
}

impl Stream {
    /// Starts a thread that translates; a greedy search or sampling, because a beam may take back
    /// tokens.
    pub(crate) fn start(translator: Arc<regard::Translator>, text: String, options: SearchOptions) -> Self {
        let (to, events) = sync_channel(64);
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancelled);
        std::thread::spawn(move || {
            let result = translate(&translator, &text, &options, &to, &flag);
            // Nobody may listen any more.
            let _ = to.send(Event::Finished(result));
        });
        Stream { events: Mutex::new(events), cancelled, translation: Mutex::default() }
    }
}

/// Translates sentence by sentence and returns the whole text.
fn translate(
    translator: &regard::Translator,
    text: &str,
    options: &SearchOptions,
    events: &SyncSender<Event>,
    cancelled: &AtomicBool,
) -> regard::Result<String> {
    let document = Document::plain_in(text, translator.model().languages.source.as_deref());
    let (sent, mut said, mut translations) = (Mutex::default(), Vec::new(), Vec::new());
    for (k, sentence) in document.sentences.iter().enumerate() {
        let mut options = SearchOptions { attention: sentence.needs_alignment(), ..options.clone() };
        if k > 0 {
            options.prefix.clear();
        }
        let follower = Follower { sent: &sent, document: &document, said: &said, events, cancelled };
        let lines =
            translator.translate_observed(&[&sentence.text], &options, translator.threads(), &follower)?;
        if cancelled.load(Ordering::Relaxed) {
            return Ok(String::new());
        }
        let best = lines.first().map(|line| line.best());
        let mut translation = best.as_ref().map(Translation::new).unwrap_or_default();
        sentence.restore(&mut translation);
        said.push(translation.text());
        translations.push(translation);
    }
    let whole = document.render(text, &translations).text;
    let follower = Follower { sent: &sent, document: &document, said: &said, events, cancelled };
    follower.send(&whole);
    Ok(whole)
}

#[pymethods]
impl Stream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        if self.translation().is_some() {
            return Ok(None);
        }
        loop {
            let next = py.detach(|| {
                let events = self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                events.recv_timeout(LOOK)
            });
            match next {
                Ok(Event::Grown(text)) => return Ok(Some(text)),
                Ok(Event::Finished(Ok(whole))) => {
                    *self.translation.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(whole);
                    return Ok(None);
                }
                Ok(Event::Finished(Err(error))) => return Err(of_library(py, &error)),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// The whole translation, once the stream is at its end.
    #[getter]
    fn translation(&self) -> Option<String> {
        self.translation.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Gives up the rest of the translation.
    fn close(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}
