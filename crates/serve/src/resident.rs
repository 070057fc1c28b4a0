//! Models that leave memory when nobody uses them, and come back with the next request.

use crate::metrics::ModelMetrics;
use regard_core::translator::Translator;
use regard_core::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Loads a model again, as it was loaded first.
#[derive(Clone)]
pub struct Loader(Arc<dyn Fn() -> Result<Translator> + Send + Sync>);

impl Loader {
    /// One that calls `load`.
    pub fn new(load: impl Fn() -> Result<Translator> + Send + Sync + 'static) -> Self {
        Loader(Arc::new(load))
    }

    /// The model, from its files.
    pub fn load(&self) -> Result<Translator> {
        (self.0)()
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Loader")
    }
}

/// A model that is in memory, or can be brought back.
#[derive(Debug)]
pub(crate) struct Resident {
    name: String,
    /// Without one, it stays.
    loader: Option<Loader>,
    metrics: Arc<ModelMetrics>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    translator: Option<Arc<Translator>>,
    used: Instant,
}

impl Resident {
    pub(crate) fn new(
        name: String,
        translator: Translator,
        loader: Option<Loader>,
        metrics: Arc<ModelMetrics>,
    ) -> Self {
        metrics.loads.add(1);
        let state = State { translator: Some(Arc::new(translator)), used: Instant::now() };
        Resident { name, loader, metrics, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model, which stays in memory as long as this is held. If it has to be loaded, that takes
    /// as long as at the start: not for threads that answer requests. Others that need it wait
    /// meanwhile.
    pub(crate) fn get(&self) -> Result<Arc<Translator>> {
        let mut state = self.lock();
        state.used = Instant::now();
        if let Some(translator) = &state.translator {
            return Ok(Arc::clone(translator));
        }
        let loader = self.loader.as_ref().ok_or_else(|| {
            let message = "it is not in memory, and nothing says where it comes from";
            Error::config("model", format!("{}: {message}", self.name))
        })?;
        let translator = Arc::new(loader.load()?);
        self.metrics.loads.add(1);
        tracing::info!(model = self.name, seconds = state.used.elapsed().as_secs_f64(), "loaded");
        state.used = Instant::now();
        state.translator = Some(Arc::clone(&translator));
        Ok(translator)
    }

    /// Gives its memory back if nobody has used it for so long; whether it did.
    pub(crate) fn unload_if_idle(&self, after: Duration) -> bool {
        if self.loader.is_none() {
            return false;
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // It is being loaded.
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
