//! A translation server: LibreTranslate's HTTP API, endpoints that show the internals of a model,
//! and a web page.
//!
//! [`router`] returns the whole application as a value that can be called without a socket;
//! [`serve`] runs it behind a listener until a signal arrives. The text of a request is split into
//! sentences (`regard_documents`), the sentences wait in the queue of their model (`batcher`), and
//! their translations are assembled into the text again.

mod api;
mod batcher;
mod bodies;
mod clients;
mod connections;
mod error;
mod files;
mod gate;
mod health;
mod keys;
mod languages;
mod limits;
mod listen;
mod metrics;
mod models;
mod page;
mod params;
mod priority;
mod process;
mod resident;
mod service;
mod spec;
mod studies;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;

pub use batcher::Batching;
pub use clients::{AddressRange, InvalidAddressRange};
pub use health::check_health;
pub use keys::{KeyFile, KeyLimits, Keys, ListedKey};
pub use limits::Limits;
pub use models::ModelSource;
pub use process::{Log, ServeError, Shutdown, serve, start_log};
pub use resident::{LoadedModel, Loader};
pub use tls::Tls;

use api::files::Files;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bodies::Bodies;
use clients::TrustedProxies;
use error::ApiError;
use gate::Gate;
use languages::Languages;
use metrics::Metrics;
use models::Served;
use regard_documents::{Glossary, Memory};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The settings of the server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits on requests.
    pub limits: Limits,
    /// How sentences are batched.
    pub batching: Batching,
    /// The accepted API keys; `None` if no key is required.
    pub keys: Option<Keys>,
    /// The certificate for HTTPS; without one, the server uses HTTP.
    pub tls: Option<Tls>,
    /// The allowed CORS origin: a single one, `*` for any, or `None`.
    pub cors: Option<String>,
    /// Translation memories by source and target code; their translations are used without calling
    /// a model.
    pub memories: BTreeMap<(String, String), Arc<Memory>>,
    /// Glossaries that requests can use by name.
    pub glossaries: BTreeMap<String, Arc<Glossary>>,
    /// Whether degenerate translations are retried with safer settings.
    pub guard: bool,
    /// How long a model may be unused before it is unloaded; the next request loads it again.
    pub unload_after: Option<Duration>,
    /// The folder of studies that the web page shows, if any.
    pub studies: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            limits: Limits::default(),
            batching: Batching::default(),
            keys: None,
            tls: None,
            cors: Some("*".to_owned()),
            memories: BTreeMap::new(),
            glossaries: BTreeMap::new(),
            guard: true,
            unload_after: None,
            studies: None,
        }
    }
}

/// The state that all requests share.
pub struct App {
    pub(crate) settings: Settings,
    pub(crate) models: Vec<Served>,
    pub(crate) languages: Languages,
    pub(crate) gate: Gate,
    pub(crate) metrics: Metrics,
    pub(crate) files: Files,
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) proxies: TrustedProxies,
    /// Limits model inspection to one request at a time, because it is not batched.
    pub(crate) inside: Arc<Semaphore>,
    /// Limits the number of texts that are parsed or rendered concurrently to the number of cores.
    pub(crate) compute_slots: Arc<Semaphore>,
    cors: Option<HeaderValue>,
}

impl App {
    /// Starts the queues of the models.
    pub fn new(models: Vec<ModelSource>, mut settings: Settings) -> regard_core::Result<Arc<Self>> {
        settings.limits = settings.limits.capped();
        if models.is_empty() {
            return Err(regard_core::Error::config("model", "at least one is needed"));
        }
        let cors = settings.cors.as_deref().map(HeaderValue::from_str).transpose();
        let cors = cors.map_err(|_| {
            let origin = settings.cors.as_deref().unwrap_or_default();
            regard_core::Error::config(
                "cors",
                format!("{origin:?} is not an origin such as https://example.org"),
            )
        })?;
        let models = Served::start(models, &settings.batching)?;
        let pairs: Vec<_> = models.iter().map(|m| m.pairs.clone()).collect();
        let app = Arc::new(App {
            languages: Languages::new(&pairs),
            gate: Gate::new(settings.keys.clone(), &settings.limits),
            metrics: Metrics::default(),
            files: Files::default(),
            bodies: Arc::new(Bodies::new(&settings.limits)),
            proxies: TrustedProxies::new(settings.limits.trusted_proxies.clone()),
            inside: Arc::new(Semaphore::new(1)),
            compute_slots: Arc::new(Semaphore::new(compute_threads(&settings))),
            cors,
            settings,
            models,
        });
        if let Some(after) = app.settings.unload_after {
            let weak = Arc::downgrade(&app);
            let thread = std::thread::Builder::new().name("unload".into());
            let started = thread.spawn(move || unload_idle_models(&weak, after));
            started.map_err(|e| {
                regard_core::Error::config("unload_after", format!("cannot start a thread: {e}"))
            })?;
        }
        Ok(app)
    }

    /// Reads the key and certificate files again if they have changed. With `all`, reads them
    /// unconditionally and reloads the models: each model is replaced once the new one is in
    /// memory, and no request is lost. If something cannot be read, this is logged, and the server
    /// continues with the old version.
    pub(crate) fn reload(&self, all: bool) {
        if let Some(keys) = &self.settings.keys {
            let count = || keys.count();
            match keys.reload(all) {
                Ok(true) => tracing::info!(keys = count(), "reloaded the keys"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "cannot reload the keys, keeping the old ones"),
            }
        }
        if let Some(tls) = &self.settings.tls {
            match tls.reload(all) {
                Ok(true) => tracing::info!("reloaded the certificate"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "cannot reload the certificate, keeping the old one"),
            }
        }
        for model in self.models.iter().filter(|_| all) {
            if let Err(error) = model.resident.reload() {
                tracing::error!(%error, model = model.pair(), "the model stays as it was");
            }
        }
    }

    /// The maximum number of texts that are parsed or rendered concurrently.
    pub(crate) fn compute_threads(&self) -> usize {
        compute_threads(&self.settings)
    }

    /// Finishes the sentences in the queues and stops the workers.
    pub fn close(&self) {
        for model in &self.models {
            model.batcher.close();
        }
    }
}

fn compute_threads(settings: &Settings) -> usize {
    settings.batching.cores.clamp(1, 1 << 10)
}

/// Unloads idle models until the application is dropped.
fn unload_idle_models(app: &Weak<App>, after: Duration) {
    let pause = (after / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    loop {
        std::thread::sleep(pause);
        let Some(app) = app.upgrade() else { return };
        for model in &app.models {
            model.resident.unload_if_idle(after);
        }
    }
}

/// The whole application as a router.
pub fn router(app: Arc<App>) -> Router {
    api::routes()
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), middleware))
        .with_state(app)
}

async fn not_found() -> ApiError {
    ApiError::not_found("The page")
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "The method is not allowed for this address")
}

/// Middleware for every request: counts, times and logs it (without its text), and adds the common
/// response headers.
async fn middleware(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let method = known_method(request.method());
    let _guard = app.metrics.in_flight.enter();
    let preflight = request.method() == Method::OPTIONS && app.cors.is_some();
    let mut response = match preflight {
        true => StatusCode::NO_CONTENT.into_response(),
        false => catch_panic(next.run(request)).await.unwrap_or_else(|| {
            ApiError::internal("the request could not be answered; the log says why").into_response()
        }),
    };
    add_headers(response.headers_mut(), app.cors.as_ref());
    let (status, time) = (response.status().as_u16(), start.elapsed());
    app.metrics.answered(&route, method, status, time);
    tracing::info!(method, route, status, ms = time.as_secs_f64() * 1e3, "answered");
    response
}

/// Runs a future, and returns `None` if it panics: a panic ends the request but not its connection.
async fn catch_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(outcome)) => Poll::Ready(Some(outcome)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// Makes panics log only their location, because their messages may contain text of users.
pub fn hide_panic_messages() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        tracing::error!(place, thread, "panicked");
    }));
}

/// The method, limited to known names, because a client can send any name.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn add_headers(headers: &mut HeaderMap, cors: Option<&HeaderValue>) {
    let always = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Pages set their own headers. Any other response is data and may contain text of users: it
    // must not be cached, and nothing in it may be executed.
    let others = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ];
    for (name, value) in others {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let Some(origin) = cors else { return };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    let fixed = [
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_MAX_AGE, "1728000"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if origin != "*" {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

/// Entry points of the fuzz targets in `fuzz/`.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::keys::read_any_keys as keys;
    pub use crate::params::fuzzing::parameters;
}

#[cfg(test)]
mod tests;
