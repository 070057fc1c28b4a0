//! The models that are served: where they come from, from what to what they translate, and their queues.

use crate::batcher::{BatchTranslator, Batcher, Batching, ModelTranslator};
use crate::languages::canonical;
use crate::metrics::ModelMetrics;
use regard_core::decode::SearchOptions;
use regard_core::formats::{Record, StepRecord, ValidationRecord, read_log};
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
    /// How it is searched.
    pub options: SearchOptions,
    /// From what to what it translates, where that is not to be taken from its folder.
    pub languages: Option<(String, String)>,
}

/// A model that is being served.
pub(crate) struct Served {
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) name: String,
    pub(crate) translator: Arc<Translator>,
    pub(crate) batcher: Batcher,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) history: LiveHistory,
}

impl Served {
    /// Starts the queue of each model, one for each pair of languages.
    pub(crate) fn start(sources: Vec<ModelSource>, batching: &Batching) -> Result<Vec<Served>> {
        let mut served: Vec<Served> = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for source in sources {
            let folder = source.folder.clone();
            let model = Served::one(source, batching)?;
            let twin = served.iter().position(|m| m.source == model.source && m.target == model.target);
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

    fn one(model: ModelSource, batching: &Batching) -> Result<Served> {
        let ModelSource { folder, translator, options, languages } = model;
        let (source, target) = match languages {
            Some((source, target)) => (source, target),
            None => pair(&folder, &translator)?,
        };
        let (translator, options) = for_pair(translator, options, &source, &target)?;
        let history = LiveHistory::new(&folder);
        let metrics = Arc::new(ModelMetrics::default());
        let translator = Arc::new(translator);
        let searched: Arc<dyn BatchTranslator> =
            Arc::new(ModelTranslator { translator: Arc::clone(&translator), options });
        let batcher = Batcher::new(searched, batching.clone(), Arc::clone(&metrics))
            .map_err(|e| Error::config("workers", format!("a thread could not be started: {e}")))?;
        let name = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let name = name.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let (source, target) = (canonical(&source), canonical(&target));
        Ok(Served { source, target, name, translator, batcher, metrics, history })
    }

    /// For example `en-de`.
    pub(crate) fn pair(&self) -> String {
        format!("{}-{}", self.source, self.target)
    }
}

/// A model of many languages is told the pair that it serves.
fn for_pair(
    translator: Translator,
    options: SearchOptions,
    source: &str,
    target: &str,
) -> Result<(Translator, SearchOptions)> {
    if translator.model().tokenizers.languages().is_none() {
        return Ok((translator, options));
    }
    let translator = translator.for_languages(Some(source), Some(target))?;
    let forced_first = translator.options().forced_first;
    Ok((translator, SearchOptions { forced_first, ..options }))
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

/// What a run left behind: curves and examples.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) training: Vec<Point>,
    pub(crate) examples: Vec<Example>,
}

/// The history of a folder. A run may still go on: its log is read again when it has changed.
#[derive(Debug)]
pub(crate) struct LiveHistory {
    log: PathBuf,
    last: Mutex<LastRead>,
}

/// What was in a log when it was last read.
#[derive(Debug, Default)]
struct LastRead {
    /// When it had been changed, and how long it was.
    stamp: Option<(SystemTime, u64)>,
    history: Arc<History>,
}

impl LiveHistory {
    fn new(folder: &Path) -> Self {
        LiveHistory { log: folder.join("logs").join("log.jsonl"), last: Mutex::default() }
    }

    /// What the log says now; a model without one has no history.
    pub(crate) fn current(&self) -> Arc<History> {
        let metadata = std::fs::metadata(&self.log).ok();
        let stamp = metadata.and_then(|m| Some((m.modified().ok()?, m.len())));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.stamp != stamp {
            // A line that is being written is no reason to forget the others.
            if let Ok(records) = read_log(&self.log) {
                *last = LastRead { stamp, history: Arc::new(History::new(records)) };
            }
        }
        Arc::clone(&last.history)
    }
}

/// A moment of training.
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

/// Points of a curve at most.
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
