//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A gauge that counts its live guards.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

/// Counts one in a gauge until dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a>(&'a Gauge);

impl Gauge {
    pub(crate) fn enter(&self) -> Guard<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Guard(self)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A histogram of values.
#[derive(Debug)]
struct Histogram<const N: usize> {
    bounds: [f64; N],
    counts: [u64; N],
    sum: f64,
    count: u64,
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: [f64; N]) -> Self {
        Histogram { bounds, counts: [0; N], sum: 0.0, count: 0 }
    }

    fn observe(&mut self, value: f64) {
        for (bound, count) in self.bounds.iter().zip(&mut self.counts) {
            *count += u64::from(value <= *bound);
        }
        self.sum += value;
        self.count += 1;
    }

    fn write(&self, out: &mut String, name: &str, labels: &str) {
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            line(out, &format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), count);
        }
        line(out, &format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), self.count);
        line(out, &format!("{name}_sum"), labels, self.sum);
        line(out, &format!("{name}_count"), labels, self.count);
    }
}

const SECONDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const SENTENCES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// The metrics of a model.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    pub(crate) panics: Counter,
    /// Sentences dropped from the queue because their client disconnected.
    pub(crate) cancelled: Counter,
    /// The number of times the model was loaded and unloaded.
    pub(crate) loads: Counter,
    pub(crate) unloads: Counter,
    /// Requests that used the model.
    pub(crate) requests: Counter,
    tokens: Counter,
    busy_us: Counter,
    batches: Mutex<Histogram<7>>,
}

impl Default for ModelMetrics {
    fn default() -> Self {
        ModelMetrics {
            panics: Counter::default(),
            cancelled: Counter::default(),
            loads: Counter::default(),
            unloads: Counter::default(),
            requests: Counter::default(),
            tokens: Counter::default(),
            busy_us: Counter::default(),
            batches: Mutex::new(Histogram::new(SENTENCES)),
        }
    }
}

impl ModelMetrics {
    /// Records a translated batch.
    pub(crate) fn ran(&self, sentences: usize, tokens: usize, time: Duration) {
        self.tokens.add(tokens);
        self.busy_us.add(time.as_micros() as usize);
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).observe(sentences as f64);
    }

    /// Target tokens per second of worker time; 0 before the first batch.
    pub(crate) fn tokens_per_second(&self) -> f64 {
        let seconds = self.busy_us.get() as f64 / 1e6;
        if seconds > 0.0 { self.tokens.get() as f64 / seconds } else { 0.0 }
    }
}

/// The metrics of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) in_flight: Gauge,
    pub(crate) characters: Counter,
    /// Connections that were rejected.
    pub(crate) refused_connections: Counter,
    /// Requests with an invalid key.
    pub(crate) wrong_keys: Counter,
    requests: Mutex<BTreeMap<Request, Histogram<10>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    route: String,
    method: &'static str,
    status: u16,
}

impl Metrics {
    /// Records a response; `route` is the route pattern, never text from the client.
    pub(crate) fn answered(&self, route: &str, method: &'static str, status: u16, time: Duration) {
        let request = Request { route: route.to_owned(), method, status };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.entry(request).or_insert_with(|| Histogram::new(SECONDS)).observe(time.as_secs_f64());
    }

    /// The metrics in the text format of Prometheus; `models` gives each model's name, metrics and
    /// number of waiting sentences.
    pub(crate) fn render<'a>(
        &self,
        models: impl Iterator<Item = (String, &'a ModelMetrics, usize)>,
    ) -> String {
        let mut out = String::new();
        head(&mut out, "regard_requests_in_flight", "gauge", "Requests in progress.");
        line(&mut out, "regard_requests_in_flight", "", self.in_flight.0.load(Ordering::Relaxed));
        head(&mut out, "regard_characters_total", "counter", "Characters submitted for translation.");
        line(&mut out, "regard_characters_total", "", self.characters.get());
        let counters = [
            (
                "regard_refused_connections_total",
                "Connections that were rejected.",
                &self.refused_connections,
            ),
            ("regard_wrong_keys_total", "Requests with an invalid key.", &self.wrong_keys),
        ];
        for (name, help, counter) in counters {
            head(&mut out, name, "counter", help);
            line(&mut out, name, "", counter.get());
        }
        head(&mut out, "regard_request_seconds", "histogram", "Time to answer, by route and status.");
        for (request, histogram) in self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let Request { route, method, status } = request;
            let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
            histogram.write(&mut out, "regard_request_seconds", &labels);
        }
        let models: Vec<_> =
            models.map(|(name, m, waiting)| (format!("model=\"{name}\""), m, waiting)).collect();
        let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&ModelMetrics, usize) -> f64| {
            head(&mut out, name, kind, help);
            for (labels, model, waiting) in &models {
                line(&mut out, name, labels, value(model, *waiting));
            }
        };
        each("regard_queue_sentences", "gauge", "Sentences in the queue.", &|_, waiting| waiting as f64);
        each("regard_model_requests_total", "counter", "Requests that used the model.", &|m, _| {
            m.requests.get() as f64
        });
        each("regard_tokens_total", "counter", "Target tokens of the best translations.", &|m, _| {
            m.tokens.get() as f64
        });
        each("regard_busy_seconds_total", "counter", "Time that workers spent translating.", &|m, _| {
            m.busy_us.get() as f64 / 1e6
        });
        each("regard_model_loaded", "gauge", "1 if the model is in memory, else 0.", &|m, _| {
            m.loads.get().saturating_sub(m.unloads.get()) as f64
        });
        each("regard_model_loads_total", "counter", "Number of times the model was loaded.", &|m, _| {
            m.loads.get() as f64
        });
        each("regard_panics_total", "counter", "Panics in workers.", &|m, _| m.panics.get() as f64);
        each("regard_given_up_total", "counter", "Sentences whose clients disconnected.", &|m, _| {
            m.cancelled.get() as f64
        });
        head(&mut out, "regard_batch_sentences", "histogram", "Sentences per batch.");
        for (labels, model, _) in &models {
            let batches = model.batches.lock().unwrap_or_else(PoisonError::into_inner);
            batches.write(&mut out, "regard_batch_sentences", labels);
        }
        out
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = match labels.is_empty() {
        true => writeln!(out, "{name} {value}"),
        false => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_a_line_for_each_number() {
        let (metrics, model) = (Metrics::default(), ModelMetrics::default());
        metrics.answered("/translate", "POST", 200, Duration::from_millis(7));
        metrics.answered("/translate", "POST", 200, Duration::from_secs(60));
        model.ran(3, 30, Duration::from_millis(500));
        let guard = metrics.in_flight.enter();
        let text = metrics.render([("en-de".to_owned(), &model, 5)].into_iter());
        drop(guard);
        for wanted in [
            "regard_requests_in_flight 1\n",
            "regard_wrong_keys_total 0\n",
            "regard_request_seconds_bucket{route=\"/translate\",method=\"POST\",status=\"200\",le=\"0.005\"} 0\n",
            "regard_request_seconds_bucket{route=\"/translate\",method=\"POST\",status=\"200\",le=\"0.01\"} 1\n",
            "regard_request_seconds_bucket{route=\"/translate\",method=\"POST\",status=\"200\",le=\"+Inf\"} 2\n",
            "regard_request_seconds_count{route=\"/translate\",method=\"POST\",status=\"200\"} 2\n",
            "regard_queue_sentences{model=\"en-de\"} 5\n",
            "regard_tokens_total{model=\"en-de\"} 30\n",
            "regard_batch_sentences_bucket{model=\"en-de\",le=\"4\"} 1\n",
            "# TYPE regard_batch_sentences histogram\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert_eq!(model.tokens_per_second(), 60.0);
        assert!(metrics.render(std::iter::empty()).contains("regard_requests_in_flight 0\n"));
    }
}
