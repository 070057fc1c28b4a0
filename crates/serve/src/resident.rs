//! Models that are unloaded when idle, reloaded by the next request, and replaceable while in use.

use crate::metrics::ModelMetrics;
use regard_core::decode::SearchOptions;
use regard_core::model::{ModelConfig, Parts};
use regard_core::translator::Translator;
use regard_core::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

/// A loaded model and its search options.
#[derive(Debug)]
pub struct LoadedModel {
    /// The model.
    pub translator: Translator,
    /// The default search options.
    pub options: SearchOptions,
}

/// Loads a model again in the same way as the first time.
#[derive(Clone)]
pub struct Loader(Arc<dyn Fn() -> Result<LoadedModel> + Send + Sync>);

impl Loader {
    /// A loader that calls `load`.
    pub fn new(load: impl Fn() -> Result<LoadedModel> + Send + Sync + 'static) -> Self {
        Loader(Arc::new(load))
    }

    /// Loads the model from its files.
    pub fn load(&self) -> Result<LoadedModel> {
        (self.0)()
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Loader")
    }
}

/// Details of a model that are available even while it is unloaded.
#[derive(Debug)]
pub(crate) struct Details {
    /// The default search options.
    pub(crate) options: SearchOptions,
    /// The configuration.
    pub(crate) config: ModelConfig,
    /// The parameter counts.
    pub(crate) parts: Parts,
    /// Whether it is trained to read terms.
    pub(crate) reads_terms: bool,
}

/// A model that is in memory or can be loaded again.
#[derive(Debug)]
pub(crate) struct Resident {
    name: String,
    /// Without a loader, the model stays in memory.
    loader: Option<Loader>,
    metrics: Arc<ModelMetrics>,
    state: Mutex<State>,
    /// The same details as in `state`, which is locked while a model is loaded.
    details: RwLock<Arc<Details>>,
}

#[derive(Debug)]
struct State {
    translator: Option<Arc<Translator>>,
    details: Arc<Details>,
    used: Instant,
}

/// Splits off the details of a model.
fn split(loaded: LoadedModel) -> (Arc<Translator>, Arc<Details>) {
    let LoadedModel { translator, options } = loaded;
    let transformer = &translator.model().transformer;
    let (config, parts) = (transformer.config().clone(), transformer.parameters().parts());
    let reads_terms = translator.reads_terms();
    (Arc::new(translator), Arc::new(Details { options, config, parts, reads_terms }))
}

impl Resident {
    pub(crate) fn new(
        name: String,
        model: LoadedModel,
        loader: Option<Loader>,
        metrics: Arc<ModelMetrics>,
    ) -> Self {
        metrics.loads.add(1);
        let (translator, details) = split(model);
        let current = RwLock::new(Arc::clone(&details));
        let state = State { translator: Some(translator), details, used: Instant::now() };
        Resident { name, loader, metrics, state: Mutex::new(state), details: current }
    }

    /// The details of the model; does not wait for a model that is being loaded.
    pub(crate) fn details(&self) -> Arc<Details> {
        Arc::clone(&self.details.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores a loaded model.
    fn put(&self, state: &mut State, model: LoadedModel) -> Arc<Translator> {
        let (translator, details) = split(model);
        *self.details.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&details);
        (state.translator, state.details) = (Some(Arc::clone(&translator)), details);
        state.used = Instant::now();
        self.metrics.loads.add(1);
        translator
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model, which stays in memory as long as the result is held. If it has to be loaded, this
    /// takes as long as at startup, so threads that serve connections must not call it. Concurrent
    /// callers wait.
    pub(crate) fn get(&self) -> Result<Arc<Translator>> {
        Ok(self.get_with_details()?.0)
    }

    /// Like [`Resident::get`], with the details of exactly this model, which may be replaced later.
    pub(crate) fn get_with_details(&self) -> Result<(Arc<Translator>, Arc<Details>)> {
        let mut state = self.lock();
        state.used = Instant::now();
        if let Some(translator) = &state.translator {
            return Ok((Arc::clone(translator), Arc::clone(&state.details)));
        }
        let loader = self.loader.as_ref().ok_or_else(|| {
            let message = "it is not in memory, and cannot be loaded again";
            Error::config("model", format!("{}: {message}", self.name))
        })?;
        let model = loader.load()?;
        tracing::info!(model = self.name, seconds = state.used.elapsed().as_secs_f64(), "loaded");
        let translator = self.put(&mut state, model);
        Ok((translator, Arc::clone(&state.details)))
    }

    /// Replaces the model with the current version of its files, and returns whether it did.
    /// Nothing is loaded if the model is not in memory. Requests use the old model until the new
    /// one is ready, and requests in progress finish with the one that they started with. If the
    /// new one cannot be loaded, the old one stays.
    pub(crate) fn reload(&self) -> Result<bool> {
        let Some(loader) = &self.loader else { return Ok(false) };
        // Otherwise the next request loads it.
        if self.lock().translator.is_none() {
            return Ok(false);
        }
        let begin = Instant::now();
        let model = loader.load()?;
        let mut state = self.lock();
        let old = state.translator.take();
        self.put(&mut state, model);
        drop(state);
        if old.is_some() {
            self.metrics.unloads.add(1);
        }
        tracing::info!(model = self.name, seconds = begin.elapsed().as_secs_f64(), "replaced");
        Ok(true)
    }

    /// Unloads the model if it has been idle for this long, and returns whether it did.
    pub(crate) fn unload_if_idle(&self, after: Duration) -> bool {
        if self.loader.is_none() {
            return false;
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The model is being loaded.
            Err(TryLockError::WouldBlock) => return false,
        };
        match &state.translator {
            None => return false,
            Some(translator) if Arc::strong_count(translator) > 1 => {
                state.used = Instant::now();
                return false;
            }
            Some(_) if state.used.elapsed() < after => return false,
            Some(_) => {}
        }
        let translator = state.translator.take();
        drop(state);
        drop(translator);
        self.metrics.unloads.add(1);
        tracing::info!(model = self.name, "unloaded");
        true
    }
}
