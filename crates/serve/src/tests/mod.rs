//! Tests the API through the router, without a socket, with small models with random weights.

mod compute;
mod connections;
mod errors;
mod inside;
mod many_languages;
mod pages;
mod security;
mod steps;
#[cfg(feature = "tls")]
mod tls;
mod translate;

use super::*;
use crate::batcher::{BatchTranslator, Batcher, Search};
use axum::body::Body;
use regard_core::DType;
use regard_core::decode::SearchOptions;
use regard_core::formats::{Languages as ModelLanguages, Model};
use regard_core::model::{ModelConfig, Positions, Transformer};
use regard_core::text::{TextSample, TokenizerPair, TokenizerSettings};
use regard_core::translator::{Candidate, Line, LineObserver, LineTerms, Translator};
use regard_core::{Isa, Key};
use regard_sample_corpus as builtin;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tower::ServiceExt;

/// A tokenizer shared by all models.
fn tokenizers() -> TokenizerPair {
    static TOKENIZERS: OnceLock<TokenizerPair> = OnceLock::new();
    let make = || {
        let corpus = builtin::corpus(1, 300);
        let (source, target): (TextSample, TextSample) = corpus.train.into_iter().unzip();
        let settings = TokenizerSettings { size: Some(500), ..TokenizerSettings::default() };
        TokenizerPair::train(&source, &target, &settings).unwrap()
    };
    TOKENIZERS.get_or_init(make).clone()
}

/// A model with random weights, in a folder named after the pair.
fn model(source: &str, target: &str, positions: Positions) -> ModelSource {
    let tokenizers = tokenizers();
    let words = tokenizers.target().size();
    let transformer = Transformer::new(ModelConfig {
        source_vocabulary: words,
        target_vocabulary: words,
        d_model: 16,
        heads: 2,
        d_ff: 24,
        encoder_layers: 2,
        decoder_layers: 3,
        max_positions: 40,
        positions,
        ..ModelConfig::default()
    })
    .unwrap();
    let seed = Key::new(7).child(source.len() as u64).bits(target.as_bytes()[0].into());
    let weights = transformer.parameters().initialise(seed.into());
    let languages = ModelLanguages { source: Some(source.into()), target: Some(target.into()) };
    let generation = Default::default();
    let model = Model { transformer, weights, tokenizers, languages, generation, shortlist: None };
    let translator = Translator::new(vec![model], DType::F32, Isa::best(), 1).unwrap();
    // Random weights never generate an end of sentence, so a limit keeps the tests quick. The byte
    // pieces decode to control characters, which no translation contains.
    let banned = (2..258).collect();
    let options = SearchOptions { max_length: Some(9), banned, ..translator.options() };
    let folder = PathBuf::from(format!("{source}-to-{target}"));
    ModelSource { folder, translator, options, languages: None, loader: None }
}

/// English to French and back, and French to Chinese.
pub(crate) fn app(settings: Settings) -> Arc<App> {
    let models = vec![
        model("en", "fr", Positions::Sinusoidal),
        model("fr", "en", Positions::Learned),
        model("fr", "zh", Positions::None),
    ];
    App::new(models, settings).unwrap()
}

/// The default app, which tests share.
pub(crate) fn usual() -> Arc<App> {
    static APP: OnceLock<Arc<App>> = OnceLock::new();
    Arc::clone(APP.get_or_init(|| app(settings())))
}

fn settings() -> Settings {
    let batching = Batching { workers: 1, cores: 1, wait: Duration::ZERO, ..Batching::default() };
    // Models with random weights repeat themselves.
    Settings { batching, guard: false, ..Settings::default() }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The value of a successful response.
    pub(crate) fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()
    }

    /// The status and message of an error response, which must have the format that clients know.
    fn error(&self) -> (u16, String) {
        let value = self.json();
        assert_eq!(value.as_object().map(serde_json::Map::len), Some(1), "{value}");
        assert_eq!(self.header("content-type"), "application/json");
        (self.status, value["error"].as_str().unwrap().to_owned())
    }
}

pub(crate) async fn send(app: &Arc<App>, request: Request) -> Answer {
    let response = router(Arc::clone(app)).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

pub(crate) fn request(method: &str, path: &str, kind: &str, body: impl Into<Body>) -> Request {
    let request = axum::http::Request::builder().method(method).uri(path);
    let request = if kind.is_empty() { request } else { request.header("content-type", kind) };
    request.body(body.into()).unwrap()
}

pub(crate) async fn get(app: &Arc<App>, path: &str) -> Answer {
    send(app, request("GET", path, "", Body::empty())).await
}

pub(crate) async fn post(app: &Arc<App>, path: &str, value: Value) -> Answer {
    send(app, request("POST", path, "application/json", value.to_string())).await
}

pub(crate) async fn form(app: &Arc<App>, path: &str, body: &str) -> Answer {
    send(app, request("POST", path, "application/x-www-form-urlencoded", body.to_owned())).await
}

/// Stands in for a model: `panic` panics, `slow` waits until it is cancelled or the gate opens,
/// `silence` becomes empty, and other text becomes capitals, with required phrases in place of its
/// last words.
struct StandIn {
    /// The number of batches that were started.
    begun: AtomicUsize,
    open: std::sync::Mutex<bool>,
    /// Texts that were cancelled while in progress.
    given_up: std::sync::Mutex<Vec<String>>,
}

impl BatchTranslator for StandIn {
    fn beam(&self, nbest: usize) -> usize {
        nbest
    }

    fn translate(
        &self,
        lines: &[&str],
        terms: &[LineTerms],
        search: Search,
        _: usize,
        observer: &dyn LineObserver,
    ) -> regard_core::Result<Vec<Line>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        assert!(!lines.contains(&"panic"), "told to");
        let line = |(i, text): (usize, &&str)| {
            while text.contains("slow") && !*self.open.lock().unwrap() {
                if !observer.is_active(i) {
                    self.given_up.lock().unwrap().push(text.to_string());
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let words = text.split(' ').count();
            let wanted = terms.get(i).map_or(&[][..], |terms| &terms.phrases);
            let output = text.to_uppercase();
            let kept = output.split(' ').take(words - wanted.len().min(words));
            let output = kept.chain(wanted.iter().map(|phrase| phrase.spellings[0].as_str()));
            let output: Vec<&str> = output.collect();
            let candidate = Candidate {
                text: if text.contains("silence") { String::new() } else { output.join(" ") },
                score: 0.0,
                tokens: vec![String::new(); words],
                token_scores: Vec::new(),
                alignment: (0..words).map(|i| (i, i)).collect(),
            };
            observer.on_progress(i, 0, &candidate.text);
            Line { candidates: vec![candidate; search.nbest], ..Line::default() }
        };
        Ok(lines.iter().enumerate().map(line).collect())
    }
}

/// Waits until a condition holds, which must be soon.
async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("it never came to be");
}

/// An app whose first model is the stand-in.
fn with_stand_in(settings: Settings) -> (Arc<App>, Arc<StandIn>) {
    let stand_in = Arc::new(StandIn { begun: 0.into(), open: false.into(), given_up: Vec::new().into() });
    let batching = settings.batching.clone();
    let mut app = app(settings);
    let model = &mut Arc::get_mut(&mut app).unwrap().models[0];
    model.batcher = Batcher::new(stand_in.clone(), batching, Arc::clone(&model.metrics)).unwrap();
    (app, stand_in)
}

#[test]
fn models_must_say_their_languages_and_differ() {
    let refusal = |models| match App::new(models, settings()) {
        Ok(_) => panic!("this should be refused"),
        Err(error) => error.to_string(),
    };
    assert_eq!(refusal(Vec::new()), "model: at least one is needed");
    let mut silent = model("", "fr", Positions::None);
    silent.folder = "some".into();
    let error = refusal(vec![silent]);
    assert!(error.starts_with("some: the model does not say from which language to which"), "{error}");
    assert!(error.contains("en-de=some"), "{error}");
    let mut named = model("", "fr", Positions::None);
    named.languages = Some(("EN".into(), "fr".into()));
    let error = refusal(vec![model("en", "fr", Positions::None), named]);
    assert!(error.ends_with("translates from en to fr, and so does en-to-fr; one is needed"), "{error}");
    let bad = Settings { cors: Some("a\nb".into()), ..settings() };
    let error = App::new(vec![model("en", "fr", Positions::None)], bad).err().unwrap().to_string();
    assert!(error.starts_with("cors: \"a\\nb\" is not an origin"), "{error}");
}
