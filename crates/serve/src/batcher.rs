//! A queue per model: sentences from many requests are collected into batches, which dedicated
//! worker threads translate.
//!
//! A worker takes the queued sentences, waiting a few milliseconds for more, and runs them as one
//! batch. Requests take turns, one sentence at a time, so that a long document delays a short text
//! only by its fair share. If a client disconnects, its waiting sentences are dropped and running
//! ones are cancelled between two decoding steps. Panics are caught: the sentences of that batch
//! are retried one by one, so that only the request that caused the panic fails. Errors are handled
//! in the same way.

use crate::limits::Limits;
use crate::metrics::ModelMetrics;
use crate::models::for_pair;
use crate::priority::lower_priority;
use crate::resident::Resident;
use regard_core::translator::{Line, LineObserver, LineTerms};
use regard_documents::pipeline::Attempt;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// How sentences are batched. The defaults are those of `regard serve`.
#[derive(Clone, Debug)]
pub struct Batching {
    /// The maximum number of sentences in a batch; 1 disables batching.
    pub max_batch: usize,
    /// How long a worker waits for more sentences.
    pub wait: Duration,
    /// The capacity of the queue in sentences; a request that does not fit is rejected. Because
    /// requests take turns, each delays the others by at most one batch, and counts for no more
    /// than that.
    pub queue: usize,
    /// The maximum time that a request may wait for its turn, estimated from the speed of recent
    /// batches; a request that would wait longer is rejected at once.
    pub max_wait: Duration,
    /// The number of worker threads per model.
    pub workers: usize,
    /// The number of cores that the workers share.
    pub cores: usize,
}

impl Default for Batching {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Batching {
            max_batch: 32,
            wait: Duration::from_millis(2),
            queue: 4_096,
            max_wait: Duration::from_secs(15),
            workers: cores,
            cores,
        }
    }
}

/// The search that a sentence needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    /// The number of translations, best first.
    pub(crate) nbest: usize,
    /// Whether to align words.
    pub(crate) attention: bool,
    /// The kind of search, which selects its options.
    pub(crate) attempt: Attempt,
    /// The language pair of a multilingual model, by language indices.
    pub(crate) pair: Option<(u16, u16)>,
}

/// A translator: a model, or a stand-in in tests.
pub(crate) trait BatchTranslator: Send + Sync + 'static {
    /// The beam width of a search for `nbest` translations; only searches with the same width share
    /// a batch.
    fn beam(&self, nbest: usize) -> usize;

    /// Translates each line, with the terms of that line.
    fn translate(
        &self,
        lines: &[&str],
        terms: &[LineTerms],
        search: Search,
        threads: usize,
        observer: &dyn LineObserver,
    ) -> regard_core::Result<Vec<Line>>;
}

/// A translator that runs a model.
#[derive(Debug)]
pub(crate) struct ModelTranslator {
    /// The model.
    pub(crate) resident: Arc<Resident>,
}

impl BatchTranslator for ModelTranslator {
    fn beam(&self, nbest: usize) -> usize {
        self.resident.details().options.beam.max(nbest)
    }

    fn translate(
        &self,
        lines: &[&str],
        terms: &[LineTerms],
        search: Search,
        threads: usize,
        observer: &dyn LineObserver,
    ) -> regard_core::Result<Vec<Line>> {
        // Holding the model keeps it from being considered idle.
        let (model, details) = self.resident.get_with_details()?;
        let mut options = search.attempt.options(&details.options);
        (options.beam, options.nbest) = (options.beam.max(search.nbest), search.nbest);
        options.attention = search.attention;
        let translator = for_pair(Arc::clone(&model), search.pair)?;
        if search.pair.is_some() {
            options.forced_first = translator.options().forced_first;
        }
        translator.translate_with_terms(lines, terms, &options, threads, observer)
    }
}

/// Why a translation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("too many requests are waiting, try again")]
    Full,
    /// The wait would exceed the limit by this much.
    #[error("too many requests are waiting, try again")]
    WaitTooLong(Duration),
    #[error("the server is shutting down")]
    Closing,
    #[error("the translation failed; the log says why")]
    Panic,
    #[error("{0}")]
    Refused(String),
}

/// A sentence to translate.
#[derive(Debug)]
pub(crate) struct QueuedSentence {
    pub(crate) text: String,
    pub(crate) search: Search,
    /// The terms that the translation should contain.
    pub(crate) terms: LineTerms,
    /// Where to send its progress, with its index, if the client streams the translation.
    pub(crate) progress: Option<(usize, mpsc::Sender<Progress>)>,
}

impl QueuedSentence {
    /// A sentence without progress reports.
    pub(crate) fn new(text: String, search: Search) -> Self {
        QueuedSentence { text, search, terms: LineTerms::default(), progress: None }
    }
}

/// The progress of a sentence: its translation so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) sentence: usize,
    pub(crate) part: usize,
    pub(crate) text: String,
}

struct Job {
    sentence: QueuedSentence,
    beam: usize,
    cancelled: Arc<AtomicBool>,
    reply: oneshot::Sender<Result<Line, Failure>>,
}

impl Job {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// The waiting sentences of a request.
struct Request {
    jobs: VecDeque<Job>,
    cancelled: Arc<AtomicBool>,
}

/// The waiting requests in turn order.
#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    closing: bool,
    /// The time in seconds per sentence for all workers together while others wait, as an
    /// exponential moving average over batches.
    seconds_per_sentence: Option<f64>,
}

/// The weight of the latest batch in the moving average.
const NEWEST: f64 = 0.2;

/// Long requests may together have this many times the queue capacity of sentences: they do not
/// delay other requests, but they take memory.
const LONG: usize = 4;

impl Queue {
    /// The number of waiting sentences.
    fn len(&self) -> usize {
        self.requests.iter().map(|request| request.jobs.len()).sum()
    }

    /// Drops the sentences of clients that have disconnected, and returns their number.
    fn drop_cancelled(&mut self) -> usize {
        let mut count = 0;
        self.requests.retain(|request| {
            let cancelled = request.cancelled.load(Ordering::Relaxed);
            count += if cancelled { request.jobs.len() } else { 0 };
            !cancelled
        });
        count
    }

    /// An upper bound on the number of sentences that are translated before those of a new request:
    /// one batch per waiting request.
    fn shares(&self, batching: &Batching) -> usize {
        self.requests.iter().map(|request| share(request.jobs.len(), batching)).sum()
    }

    /// How much longer than `max_wait` a new request would have to wait, if at all; `parsing` is
    /// the number of other requests whose texts are being parsed.
    fn excess_wait(&self, batching: &Batching, parsing: usize) -> Option<Duration> {
        let wait = self.seconds_per_sentence? * (self.shares(batching) + parsing) as f64;
        let excess = wait - batching.max_wait.as_secs_f64();
        (excess > 0.0).then(|| Duration::try_from_secs_f64(excess).unwrap_or(Limits::LONGEST))
    }

    /// Records the time of a batch that ran while others waited.
    fn ran(&mut self, sentences: usize, time: Duration, workers: usize) {
        let new = time.as_secs_f64() / (sentences.max(1) * workers.max(1)) as f64;
        self.seconds_per_sentence =
            Some(self.seconds_per_sentence.map_or(new, |old| old + NEWEST * (new - old)));
    }

    /// Whether a request with `count` sentences fits into the queue.
    fn has_room(&self, count: usize, batching: &Batching) -> bool {
        let (queue, batch) = (batching.queue.max(1), batching.max_batch.max(1));
        let shares = self.shares(batching);
        let long = self.requests.iter().map(|request| request.jobs.len()).filter(|&count| count > batch);
        let long: usize = long.sum();
        let fits = count <= batch || long == 0 || long.saturating_add(count) <= queue.saturating_mul(LONG);
        fits && shares + share(count, batching) <= queue
    }

    /// Takes up to `max_batch` sentences that can share a search, one from each request in turn.
    fn gather(&mut self, max_batch: usize) -> Vec<Job> {
        let first = self.requests.front().and_then(|request| request.jobs.front());
        let kind = |job: &Job| (job.beam, job.sentence.search.attempt, job.sentence.search.pair);
        let Some(wanted) = first.map(kind) else { return Vec::new() };
        let fits = |job: &Job| kind(job) == wanted;
        let mut batch = Vec::new();
        // Requests whose next sentence needs a different search come first in the next batch.
        let mut others = Vec::new();
        while batch.len() < max_batch
            && let Some(mut request) = self.requests.pop_front()
        {
            if !request.jobs.front().is_some_and(fits) {
                others.push(request);
                continue;
            }
            batch.extend(request.jobs.pop_front());
            if !request.jobs.is_empty() {
                self.requests.push_back(request);
            }
        }
        while let Some(request) = others.pop() {
            self.requests.push_front(request);
        }
        batch
    }
}

/// The number of sentences that a request counts for in the queue. It is capped so that a request
/// larger than the whole queue is accepted when the queue is empty.
fn share(count: usize, batching: &Batching) -> usize {
    count.min(batching.max_batch.max(1)).min(batching.queue.max(1))
}

/// Whether sentences are the first of a request, or follow earlier work for the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submission {
    First,
    Later,
}

/// Sentences that are translated together.
struct Batch {
    jobs: Vec<Job>,
    /// Whether other sentences are waiting.
    others_wait: bool,
}

struct Shared {
    translator: Arc<dyn BatchTranslator>,
    batching: Batching,
    metrics: Arc<ModelMetrics>,
    queue: Mutex<Queue>,
    filled: Condvar,
    busy: AtomicUsize,
    /// The number of requests whose texts are being parsed.
    parsing: AtomicUsize,
}

/// A request whose text is being parsed and whose sentences are not known yet. It counts until it
/// is dropped.
pub(crate) struct Reservation(Arc<Shared>);

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.parsing.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The queue of a model and its worker threads.
pub(crate) struct Batcher {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

/// Submitted sentences. Dropping the ticket cancels them.
#[derive(Debug)]
pub(crate) struct Ticket {
    replies: Vec<oneshot::Receiver<Result<Line, Failure>>>,
    cancelled: Arc<AtomicBool>,
}

impl Ticket {
    /// Waits for all translations, in the order of the sentences.
    pub(crate) async fn wait(self) -> Result<Vec<Line>, Failure> {
        self.wait_with_progress(|_| {}).await
    }

    /// Like [`Ticket::wait`]; `progress` gets the number of sentences translated so far.
    pub(crate) async fn wait_with_progress(
        mut self,
        mut progress: impl FnMut(usize),
    ) -> Result<Vec<Line>, Failure> {
        let mut lines = Vec::with_capacity(self.replies.len());
        for reply in std::mem::take(&mut self.replies) {
            lines.push(reply.await.unwrap_or(Err(Failure::Closing))?);
            progress(lines.len());
        }
        Ok(lines)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Batcher {
    /// Starts the workers.
    pub(crate) fn new(
        translator: Arc<dyn BatchTranslator>,
        batching: Batching,
        metrics: Arc<ModelMetrics>,
    ) -> std::io::Result<Self> {
        let workers = batching.workers.max(1);
        let (queue, filled) = (Mutex::default(), Condvar::new());
        let (busy, parsing) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = Arc::new(Shared { translator, batching, metrics, queue, filled, busy, parsing });
        let start = |n: usize| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(format!("worker {n}")).spawn(move || {
                lower_priority();
                shared.work();
            })
        };
        let workers = (0..workers).map(start).collect::<std::io::Result<Vec<_>>>()?;
        Ok(Batcher { shared, workers: Mutex::new(workers) })
    }

    /// Counts a request before any work is done for it, or rejects it if it would have to wait too
    /// long.
    pub(crate) fn reserve(&self) -> Result<Reservation, Failure> {
        let parsing = self.shared.parsing.load(Ordering::Relaxed);
        let excess = |queue: &Queue| queue.excess_wait(&self.shared.batching, parsing);
        let mut queue = self.shared.lock();
        if excess(&queue).is_some() {
            self.shared.metrics.cancelled.add(queue.drop_cancelled());
            if let Some(wait) = excess(&queue) {
                return Err(Failure::WaitTooLong(wait));
            }
        }
        drop(queue);
        self.shared.parsing.fetch_add(1, Ordering::Relaxed);
        Ok(Reservation(Arc::clone(&self.shared)))
    }

    /// Queues the first sentences of a request.
    #[cfg(test)]
    pub(crate) fn submit(&self, sentences: Vec<QueuedSentence>) -> Result<Ticket, Failure> {
        self.submit_as(Submission::First, sentences)
    }

    /// Queues sentences of a request. Only the first sentences of a request are rejected for their
    /// waiting time.
    pub(crate) fn submit_as(
        &self,
        submission: Submission,
        sentences: Vec<QueuedSentence>,
    ) -> Result<Ticket, Failure> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut replies = Vec::with_capacity(sentences.len());
        let mut queue = self.shared.lock();
        if queue.closing {
            return Err(Failure::Closing);
        }
        let refusal = |queue: &Queue| {
            let excess =
                queue.excess_wait(&self.shared.batching, 0).filter(|_| submission == Submission::First);
            let full = !queue.has_room(sentences.len(), &self.shared.batching);
            excess.map(Failure::WaitTooLong).or(full.then_some(Failure::Full))
        };
        if refusal(&queue).is_some() {
            // Sentences of disconnected clients do not count.
            self.shared.metrics.cancelled.add(queue.drop_cancelled());
            if let Some(refusal) = refusal(&queue) {
                return Err(refusal);
            }
        }
        let jobs: VecDeque<Job> = sentences
            .into_iter()
            .map(|sentence| {
                let (reply, receiver) = oneshot::channel();
                replies.push(receiver);
                let beam = self.shared.translator.beam(sentence.search.nbest);
                Job { sentence, beam, cancelled: Arc::clone(&cancelled), reply }
            })
            .collect();
        if !jobs.is_empty() {
            queue.requests.push_back(Request { jobs, cancelled: Arc::clone(&cancelled) });
        }
        drop(queue);
        self.shared.filled.notify_all();
        Ok(Ticket { replies, cancelled })
    }

    /// The number of waiting sentences.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.lock().len()
    }

    /// Finishes the waiting sentences, then stops the workers. Later requests are rejected.
    pub(crate) fn close(&self) {
        self.shared.lock().closing = true;
        self.shared.filled.notify_all();
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for worker in workers {
            // Workers catch all panics, so there is nothing to report.
            let _ = worker.join();
        }
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(Batch { jobs, others_wait }) = self.take() {
            if jobs.is_empty() {
                continue;
            }
            let (sentences, start) = (jobs.len(), Instant::now());
            // A single batch may use all cores; concurrent batches share them.
            let busy = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
            self.run(jobs, (self.batching.cores / busy).max(1));
            self.busy.fetch_sub(1, Ordering::Relaxed);
            if others_wait {
                self.lock().ran(sentences, start.elapsed(), busy);
            }
        }
    }

    /// Waits for the next batch; `None` when the queue is closed and empty.
    fn take(&self) -> Option<Batch> {
        let mut queue = self.lock();
        while queue.requests.is_empty() {
            if queue.closing {
                return None;
            }
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + self.batching.wait.min(Limits::LONGEST);
        while queue.len() < self.batching.max_batch && !queue.closing {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) else {
                break;
            };
            queue = self.filled.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.metrics.cancelled.add(queue.drop_cancelled());
        let jobs = queue.gather(self.batching.max_batch.max(1));
        Some(Batch { jobs, others_wait: !queue.requests.is_empty() })
    }

    fn run(&self, batch: Vec<Job>, threads: usize) {
        match self.attempt(&batch, threads) {
            Ok(lines) => answer(batch, lines),
            Err(_) if batch.len() > 1 => batch.into_iter().for_each(|job| self.run(vec![job], threads)),
            Err(failure) => batch.into_iter().for_each(|job| refuse(job, failure.clone())),
        }
    }

    fn attempt(&self, batch: &[Job], threads: usize) -> Result<Vec<Line>, Failure> {
        let texts: Vec<&str> = batch.iter().map(|job| job.sentence.text.as_str()).collect();
        // One search serves all requests; each takes the part that it needs.
        let search = Search {
            nbest: batch.iter().map(|job| job.sentence.search.nbest).max().unwrap_or(1),
            attention: batch.iter().any(|job| job.sentence.search.attention),
            // All sentences of a batch have the same kind of search.
            attempt: batch.first().map(|job| job.sentence.search.attempt).unwrap_or_default(),
            pair: batch.first().and_then(|job| job.sentence.search.pair),
        };
        let terms: Vec<LineTerms> = batch.iter().map(|job| job.sentence.terms.clone()).collect();
        let start = Instant::now();
        let observer = JobObserver(batch);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.translator.translate(&texts, &terms, search, threads, &observer)
        }));
        match outcome {
            Ok(Ok(lines)) if lines.len() == batch.len() => {
                let tokens = lines.iter().filter_map(|l| l.candidates.first()).map(|c| c.tokens.len()).sum();
                self.metrics.ran(batch.len(), tokens, start.elapsed());
                Ok(lines)
            }
            Ok(Ok(lines)) => {
                Err(Failure::Refused(format!("{} sentences gave {} lines", batch.len(), lines.len())))
            }
            Ok(Err(error)) => Err(Failure::Refused(error.to_string())),
            Err(_) => {
                self.metrics.panics.add(1);
                tracing::error!(sentences = batch.len(), "a worker caught a panic and continues");
                Err(Failure::Panic)
            }
        }
    }
}

/// Sends each job its translation; if the client has disconnected, sending has no effect.
fn answer(batch: Vec<Job>, lines: Vec<Line>) {
    for (job, mut line) in batch.into_iter().zip(lines) {
        line.candidates.truncate(job.sentence.search.nbest);
        let _ = job.reply.send(Ok(line));
    }
}

fn refuse(job: Job, failure: Failure) {
    let _ = job.reply.send(Err(failure));
}

struct JobObserver<'a>(&'a [Job]);

impl LineObserver for JobObserver<'_> {
    fn is_active(&self, index: usize) -> bool {
        !self.0[index].is_cancelled()
    }

    fn follows(&self, index: usize) -> bool {
        self.0[index].sentence.progress.is_some()
    }

    fn on_progress(&self, index: usize, part: usize, text: &str) {
        if let Some((sentence, to)) = &self.0[index].sentence.progress {
            // If the receiver is too slow, intermediate states are skipped.
            let _ = to.try_send(Progress { sentence: *sentence, part, text: text.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests;
