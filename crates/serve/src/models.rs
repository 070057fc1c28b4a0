//! The served models: where they come from, their language pairs and their queues.

use crate::batcher::{BatchTranslator, Batcher, Batching, ModelTranslator};
use crate::languages::{Pairs, Stage, canonical};
use crate::metrics::ModelMetrics;
use crate::resident::{LoadedModel, Loader, Resident};
use regard_core::decode::SearchOptions;
use regard_core::formats::{Languages, Record, StepRecord, ValidationRecord, read_log};
use regard_core::languages::shortest;
use regard_core::translator::Translator;
use regard_core::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// A model to serve.
#[derive(Debug)]
pub struct ModelSource {
    /// Its folder.
    pub folder: PathBuf,
    /// The model.
    pub translator: Translator,
    /// The search options.
    pub options: SearchOptions,
    /// The language pair, if it should not be taken from the folder.
    pub languages: Option<(String, String)>,
    /// Loads the model again after it has been unloaded; without a loader it stays in memory.
    pub loader: Option<Loader>,
}

/// The maximum number of languages of a model of which every pair is served.
const MOST_LANGUAGES: usize = 1_000;

/// A model that is being served.
pub(crate) struct Served {
    /// Its source language; for a multilingual model, the default one.
    pub(crate) source: String,
    /// Its target language; for a multilingual model, the default one.
    pub(crate) target: String,
    /// The language pairs that it translates.
    pub(crate) pairs: Pairs,
    pub(crate) name: String,
    pub(crate) resident: Arc<Resident>,
    pub(crate) batcher: Batcher,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) history: LiveHistory,
}

impl Served {
    /// Starts a queue for each model; no two models may have the same language pair.
    pub(crate) fn start(sources: Vec<ModelSource>, batching: &Batching) -> Result<Vec<Served>> {
        let mut served: Vec<Served> = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for source in sources {
            let folder = source.folder.clone();
            let model = Served::start_one(source, batching)?;
            let twin = served.iter().position(|m| m.pairs == model.pairs);
            if let Some(twin) = twin {
                let (from, to, other) = (&model.source, &model.target, folders[twin].display());
                let message = format!("translates from {from} to {to}, and so does {other}; one is needed");
                return Err(Error::file(folder, message));
            }
            served.push(model);
            folders.push(folder);
        }
        Ok(served)
    }

    fn start_one(model: ModelSource, batching: &Batching) -> Result<Served> {
        let ModelSource { folder, translator, options, languages, loader } = model;
        let all = languages.is_none().then(|| all_languages(&translator)).flatten();
        if let Some(codes) = all.as_ref().filter(|codes| codes.len() > MOST_LANGUAGES) {
            let message = format!(
                "the model has {} languages; every pair of at most {MOST_LANGUAGES} can be served, or one that is named",
                codes.len()
            );
            return Err(Error::file(folder, message));
        }
        let (source, target) = match (languages, &all) {
            (Some((source, target)), _) => (source, target),
            (None, Some(codes)) => default_pair(&translator, codes),
            (None, None) => pair(&folder, &translator)?,
        };
        let loader = loader.map(|loader| {
            let expected = Expected { folder: folder.clone(), languages: languages_of(&translator) };
            let (source, target) = (source.clone(), target.clone());
            Loader::new(move || {
                let model = loader.load()?;
                expected.check(&model.translator)?;
                set_languages(model, &source, &target)
            })
        });
        let model = set_languages(LoadedModel { translator, options }, &source, &target)?;
        let history = LiveHistory::new(&folder);
        let metrics = Arc::new(ModelMetrics::default());
        let name = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let name = name.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let (source, target) = (canonical(&source), canonical(&target));
        let pairs = match all {
            Some(codes) => Pairs::All(codes.iter().map(|code| canonical(code)).collect()),
            None => Pairs::One(source.clone(), target.clone()),
        };
        let known_as = pairs.name(&name);
        let resident = Arc::new(Resident::new(known_as, model, loader, Arc::clone(&metrics)));
        let searched: Arc<dyn BatchTranslator> =
            Arc::new(ModelTranslator { resident: Arc::clone(&resident) });
        let batcher = Batcher::new(searched, batching.clone(), Arc::clone(&metrics))
            .map_err(|e| Error::config("workers", format!("a thread could not be started: {e}")))?;
        Ok(Served { source, target, pairs, name, resident, batcher, metrics, history })
    }

    /// The source and target codes of a stage of a route.
    pub(crate) fn languages(&self, stage: Stage) -> (&str, &str) {
        match (&self.pairs, stage.pair) {
            (Pairs::All(codes), Some((source, target))) => {
                (&codes[usize::from(source)], &codes[usize::from(target)])
            }
            _ => (&self.source, &self.target),
        }
    }

    /// The model, set to the languages of a stage. It may have to be loaded first.
    pub(crate) fn translator(&self, stage: Stage) -> Result<Arc<Translator>> {
        for_pair(self.resident.get()?, stage.pair)
    }

    /// The name of the pair, such as `en-de`; for a multilingual model, its name.
    pub(crate) fn pair(&self) -> String {
        self.pairs.name(&self.name)
    }
}

/// The codes of a multilingual model in their shortest form; `None` if the model has one pair.
fn all_languages(translator: &Translator) -> Option<Vec<String>> {
    let tokens = translator.model().tokenizers.languages()?;
    let codes: Vec<&str> = tokens.list.iter().map(|language| language.code.as_str()).collect();
    Some(shortest(&codes))
}

/// The default languages of a multilingual model: those named in its folder, otherwise the first
/// ones.
fn default_pair(translator: &Translator, codes: &[String]) -> (String, String) {
    let languages = &translator.model().languages;
    let or = |code: &Option<String>, other: usize| {
        let named = code.clone().filter(|code| !code.trim().is_empty());
        named.or_else(|| codes.get(other).or(codes.first()).cloned()).unwrap_or_default()
    };
    (or(&languages.source, 0), or(&languages.target, 1))
}

/// A multilingual model, set to a language pair by indices.
pub(crate) fn for_pair(translator: Arc<Translator>, pair: Option<(u16, u16)>) -> Result<Arc<Translator>> {
    let Some((source, target)) = pair else { return Ok(translator) };
    let list = translator.model().tokenizers.languages().map(|tokens| &tokens.list);
    let code = |i: u16| list.and_then(|list| list.get(usize::from(i))).map(|language| language.code.as_str());
    Ok(Arc::new(translator.for_languages(code(source), code(target))?))
}

/// Sets the language pair of a multilingual model.
fn set_languages(model: LoadedModel, source: &str, target: &str) -> Result<LoadedModel> {
    if model.translator.model().tokenizers.languages().is_none() {
        return Ok(model);
    }
    let translator = model.translator.for_languages(Some(source), Some(target))?;
    let options = SearchOptions { forced_first: translator.options().forced_first, ..model.options };
    Ok(LoadedModel { translator, options })
}

/// The language pair that a model names, and all languages of a multilingual model.
type ModelLanguages = (Languages, Option<Vec<String>>);

fn languages_of(translator: &Translator) -> ModelLanguages {
    (translator.model().languages.clone(), all_languages(translator))
}

/// What a reloaded model must match: clients already know the languages of the server.
struct Expected {
    folder: PathBuf,
    languages: ModelLanguages,
}

impl Expected {
    fn check(&self, translator: &Translator) -> Result<()> {
        match languages_of(translator) == self.languages {
            true => Ok(()),
            false => {
                let message = "the languages of the model have changed; restart the server to serve it";
                Err(Error::file(&self.folder, message))
            }
        }
    }
}

fn pair(folder: &Path, translator: &Translator) -> Result<(String, String)> {
    let languages = &translator.model().languages;
    let named = |code: &Option<String>| code.clone().filter(|code| !code.trim().is_empty());
    named(&languages.source).zip(named(&languages.target)).ok_or_else(|| {
        let message = format!(
            "the model does not say from which language to which it translates; name the pair, as in en-de={}",
            folder.display()
        );
        Error::file(folder, message)
    })
}

/// The training history of a model: its curves and examples.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) training: Vec<Point>,
    pub(crate) examples: Vec<Example>,
}

/// The training history in a folder. The training may still be running, so its log is read again
/// when it changes.
#[derive(Debug)]
pub(crate) struct LiveHistory {
    log: PathBuf,
    last: Mutex<LastRead>,
}

/// The content of a log when it was last read.
#[derive(Debug, Default)]
struct LastRead {
    /// Its modification time and length.
    stamp: Option<(SystemTime, u64)>,
    history: Arc<History>,
}

impl LiveHistory {
    fn new(folder: &Path) -> Self {
        LiveHistory { log: folder.join("logs").join("log.jsonl"), last: Mutex::default() }
    }

    /// The current history; empty for a model without a log.
    pub(crate) fn current(&self) -> Arc<History> {
        let metadata = std::fs::metadata(&self.log).ok();
        let stamp = metadata.and_then(|m| Some((m.modified().ok()?, m.len())));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.stamp != stamp {
            // A partly written line must not discard the lines before it.
            if let Ok(records) = read_log(&self.log) {
                *last = LastRead { stamp, history: Arc::new(History::new(records)) };
            }
        }
        Arc::clone(&last.history)
    }
}

/// A point of the training curves.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub(crate) struct Point {
    step: u64,
    loss: Option<f64>,
    bleu: Option<f64>,
    rate: Option<f64>,
}

/// A sentence of the last validation.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub(crate) struct Example {
    source: String,
    target: String,
    reference: String,
}

/// The maximum number of points per curve.
const POINTS: usize = 500;

impl History {
    fn new(records: Vec<Record>) -> Self {
        let (mut steps, mut validations): (Vec<StepRecord>, Vec<ValidationRecord>) = Default::default();
        for record in records {
            match record {
                Record::Step(step) => steps.push(step),
                Record::Validation(validation) => validations.push(validation),
            }
        }
        let every = steps.len().div_ceil(POINTS.saturating_sub(validations.len()).max(1)).max(1);
        let thinned = steps.iter().enumerate().filter(|(i, _)| i % every == 0 || i + 1 == steps.len());
        let mut training: Vec<Point> = thinned
            .map(|(_, s)| Point { step: s.step, loss: Some(s.loss), bleu: None, rate: Some(s.rate) })
            .collect();
        let scored = validations.iter().rev().take(POINTS / 2);
        training.extend(scored.map(|v| Point { step: v.step, loss: None, bleu: Some(v.bleu), rate: None }));
        training.sort_by_key(|point| point.step);
        training.truncate(POINTS);
        let last = validations.into_iter().rev().find(|v| !v.samples.is_empty());
        let samples = last.map(|v| v.samples).unwrap_or_default();
        let examples = samples
            .into_iter()
            .map(|(source, target, reference)| Example { source, target, reference })
            .collect();
        History { training, examples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_grows_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let history = LiveHistory::new(folder.path());
        assert!(history.current().training.is_empty());
        let line = |step| {
            format!(
                r#"{{"kind":"step","step":{step},"epoch":0.0,"loss":2.5,"rate":0.1,"gradient_norm":1.0,"tokens_per_second":1.0,"seconds":1.0}}"#
            )
        };
        std::fs::create_dir(folder.path().join("logs")).unwrap();
        let log = folder.path().join("logs").join("log.jsonl");
        for count in 1..3 {
            let lines: Vec<String> = (1..=count).map(line).collect();
            std::fs::write(&log, lines.join("\n") + "\n").unwrap();
            assert_eq!(history.current().training.len(), count);
        }
        assert!(Arc::ptr_eq(&history.current(), &history.current()), "what has not changed is not read");
    }

    #[test]
    fn a_history_is_thinned_to_what_a_chart_shows() {
        let step = |step| {
            Record::Step(StepRecord {
                step,
                epoch: 0.0,
                loss: 1.0 / step as f64,
                nll: None,
                rate: 0.1,
                gradient_norm: 1.0,
                tokens_per_second: 1.0,
                seconds: 1.0,
            })
        };
        let mut records: Vec<Record> = (1..=3_000).map(step).collect();
        records.push(Record::Validation(ValidationRecord {
            step: 1_500,
            loss: 1.0,
            perplexity: 2.0,
            bleu: 30.0,
            chrf: 50.0,
            seconds: 1.0,
            weights: "step".into(),
            samples: vec![("a".into(), "b".into(), "c".into())],
        }));
        let history = History::new(records);
        assert!(history.training.len() <= POINTS, "{}", history.training.len());
        assert_eq!(history.training[0].step, 1);
        assert_eq!(history.training.last().map(|p| p.step), Some(3_000));
        assert!(history.training.iter().any(|p| p.step == 1_500 && p.bleu == Some(30.0)));
        assert_eq!(
            history.examples,
            [Example { source: "a".into(), target: "b".into(), reference: "c".into() }]
        );
        assert!(History::new(Vec::new()).training.is_empty());
    }
}
