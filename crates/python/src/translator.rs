//! A loaded model.

use crate::errors::{of_command, of_library};
use crate::stream::Stream;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use regard::DType;
use regard::cli::{LoadedModels, TranslateSettings};
use regard::formats::{Model, licence, resolve};
use regard::model::AttentionKind;
use regard::translator::{Candidate, Line};
use regard_documents::{Glossary, GlossaryError, Texts, TranslatedLine};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A translation as Python gets it: text, score, tokens, their scores, pairs of words.
type Found = (String, f32, Vec<String>, Vec<f32>, Vec<(usize, usize)>);
/// The translations of a text, best first, and how good the best is likely to be.
type Rated = (Vec<Found>, Option<f32>);

/// Pairs that are scored between two checks for signals, as in the command.
const PART: usize = 512;

/// Terms and their translations.
type Terms = Vec<(String, String)>;
/// Flags and what they mean for this model; most calls have the flags of the call before.
type LastSettings = Option<(Vec<OsString>, Option<Terms>, Arc<TranslateSettings>)>;

#[pyclass(frozen, module = "regard._regard")]
pub(crate) struct Translator {
    models: LoadedModels,
    inner: Arc<regard::Translator>,
    folder: PathBuf,
    last: Mutex<LastSettings>,
}

#[pymethods]
impl Translator {
    #[new]
    fn new(
        py: Python<'_>,
        models: Vec<PathBuf>,
        threads: Option<usize>,
        precision: Option<&str>,
    ) -> PyResult<Self> {
        let precision = precision.map(str::parse::<DType>).transpose();
        let precision = precision.map_err(|e| of_library(py, &regard::Error::config("precision", e)))?;
        let load = || {
            let folders = models.iter().map(resolve).collect::<regard::Result<Vec<_>>>()?;
            let models = LoadedModels::load(&folders, precision, threads)?;
            let missing = || regard::Error::config("model", "at least one is needed");
            let inner = Arc::clone(models.first().ok_or_else(missing)?);
            let folder = folders.into_iter().next().ok_or_else(missing)?;
            Ok(Translator { models, inner, folder, last: Mutex::default() })
        };
        py.detach(load).map_err(|error| of_library(py, &error))
    }

    /// The translations of each text, and the confidence in the best of them.
    fn translate(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        flags: Vec<OsString>,
        glossary: Option<Terms>,
    ) -> PyResult<Vec<Rated>> {
        let settings = self.settings_with(py, flags, glossary)?;
        let texts = Texts::new(&texts);
        let mut translated: Vec<TranslatedLine> = Vec::with_capacity(texts.lines().len());
        for part in texts.lines().chunks(settings.part()) {
            py.check_signals()?;
            let lines = py.detach(|| settings.translate(part));
            translated.extend(lines.map_err(|error| of_library(py, &error))?);
        }
        let rated = confidences(&texts, &translated);
        let lines: Vec<Line> = translated.into_iter().map(|translated| translated.line).collect();
        let found = texts.join(lines).into_iter().zip(rated);
        Ok(found.map(|(text, rated)| (text.into_iter().map(parts).collect(), rated)).collect())
    }

    /// Translates a file into another and returns what happened.
    fn translate_document<'py>(
        &self,
        py: Python<'py>,
        file: PathBuf,
        out: PathBuf,
        flags: Vec<OsString>,
        glossary: Option<Terms>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.settings_with(py, flags, glossary)?;
        let mut interrupted = None;
        let work = || {
            let same = |path: &PathBuf| path.canonicalize().ok();
            if same(&out).is_some_and(|out| same(&file) == Some(out)) {
                return Err(regard::Error::file(&out, "is the file that is translated; choose another name"));
            }
            let mut progress = |_: usize| {
                let signals = Python::attach(|py| py.check_signals());
                interrupted = signals.err();
                interrupted.is_none()
            };
            let translated = settings.file(&file, &mut progress)?;
            if let Some((bytes, _)) = &translated {
                regard::replace(&out, |to| to.write_all(bytes))?;
            }
            Ok(translated.map(|(_, report)| report))
        };
        let report = py.detach(work).map_err(|error| of_library(py, &error))?;
        if let Some(error) = interrupted {
            return Err(error);
        }
        let (report, found) = (report.unwrap_or_default(), PyDict::new(py));
        found.set_item("sentences", report.sentences)?;
        found.set_item("from_memory", report.from_memory)?;
        found.set_item("confidence", report.confidence)?;
        found.set_item("retried", report.guarded.len())?;
        found.set_item("degenerate", report.faults_left())?;
        found.set_item("warnings", report.warnings)?;
        Ok(found)
    }

    /// The translation of a text while it is generated.
    fn stream(&self, py: Python<'_>, text: String, flags: Vec<OsString>) -> PyResult<Stream> {
        let settings = self.settings(py, flags)?;
        let (translator, options) = settings.single().map_err(|error| of_library(py, &error))?;
        Ok(Stream::start(Arc::clone(translator), text, options.clone()))
    }

    /// The log-probabilities of given translations.
    fn score(
        &self,
        py: Python<'_>,
        pairs: Vec<(String, String)>,
        flags: Vec<OsString>,
    ) -> PyResult<Vec<Found>> {
        let settings = self.settings(py, flags)?;
        let (translator, options) = settings.single().map_err(|error| of_library(py, &error))?;
        let mut found = Vec::with_capacity(pairs.len());
        for part in pairs.chunks(PART) {
            py.check_signals()?;
            let scored = py.detach(|| translator.score(part, options));
            found.extend(scored.map_err(|error| of_library(py, &error))?.into_iter().map(parts));
        }
        Ok(found)
    }

    /// Every attention of a text and a translation, by kind: its shape `[layer, head, rows,
    /// columns]` and its weights as bytes of f32; and the tokens of both sides.
    fn attention<'py>(
        &self,
        py: Python<'py>,
        source: &str,
        target: Option<&str>,
        flags: Vec<OsString>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.settings(py, flags)?;
        let (translator, options) = settings.single().map_err(|error| of_library(py, &error))?;
        let compute = || {
            let best = match target {
                Some(_) => String::new(),
                None => {
                    let lines = translator.translate(&[source], options)?;
                    lines.first().map(|line| line.best().text).unwrap_or_default()
                }
            };
            let source = translator.source().encode(source)?;
            let target = translator.target().encode(target.unwrap_or(&best))?;
            let maps = translator.attention_maps(&source, &target)?;
            Ok((source, target, maps))
        };
        let (source, target, maps) = py.detach(compute).map_err(|error| of_library(py, &error))?;
        let found = PyDict::new(py);
        for (name, kind) in [
            ("encoder", AttentionKind::Encoder),
            ("decoder", AttentionKind::Decoder),
            ("cross", AttentionKind::Cross),
        ] {
            let layers: Vec<_> = maps.iter().filter(|map| map.kind == kind).collect();
            let Some(first) = layers.first() else { continue };
            let shape = (layers.len(), first.heads, first.rows, first.columns);
            let weights: Vec<u8> =
                layers.iter().flat_map(|map| map.weights.iter().flat_map(|w| w.to_ne_bytes())).collect();
            found.set_item(name, (shape, PyBytes::new(py, &weights)))?;
        }
        let pieces = |tokenizer: &regard::text::Tokenizer, ids: &[u32]| -> Vec<String> {
            ids.iter().map(|&id| tokenizer.piece(id).unwrap_or_default()).collect()
        };
        found.set_item("source_tokens", pieces(translator.source(), &source))?;
        found.set_item("target_tokens", pieces(translator.target(), &target))?;
        Ok(found)
    }

    /// The tokens of texts and their ids, without the end token.
    fn tokenize(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        target: bool,
    ) -> PyResult<Vec<(Vec<String>, Vec<u32>)>> {
        let tokenizer = if target { self.inner.target() } else { self.inner.source() };
        let encode = |text: &String| {
            let mut ids = tokenizer.encode(text)?;
            ids.pop();
            Ok((ids.iter().map(|&id| tokenizer.piece(id).unwrap_or_default()).collect(), ids))
        };
        py.detach(|| texts.iter().map(encode).collect::<regard::Result<_>>())
            .map_err(|error| of_library(py, &error))
    }

    /// The text of token ids.
    fn detokenize(&self, ids: Vec<u32>, target: bool) -> String {
        if target { self.inner.target() } else { self.inner.source() }.decode(&ids)
    }

    /// What there is to know about the model.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let described = Model::describe(&self.folder).map_err(|error| of_library(py, &error))?;
        let licence = licence(&self.folder).map_err(|error| of_library(py, &error))?;
        let (model, info) = (self.inner.model(), PyDict::new(py));
        let config = model.transformer.config();
        info.set_item("folder", self.folder.to_string_lossy())?;
        info.set_item("model_type", described.model_type)?;
        info.set_item("source_lang", &model.languages.source)?;
        info.set_item("target_lang", &model.languages.target)?;
        let codes = model
            .tokenizers
            .languages()
            .map(|languages| languages.list.iter().map(|language| language.code.clone()).collect::<Vec<_>>());
        info.set_item("language_codes", codes.unwrap_or_default())?;
        info.set_item("licence", licence.as_ref().map(|licence| licence.name.clone()))?;
        info.set_item("commercial_use", licence.map(|licence| licence.commercial))?;
        info.set_item("parameters", model.transformer.parameters().len())?;
        info.set_item("weight_bytes", described.weight_bytes)?;
        info.set_item("precision", self.inner.dtype().name())?;
        info.set_item("instruction_set", self.inner.isa().to_string())?;
        info.set_item("threads", self.inner.threads())?;
        info.set_item("source_vocabulary", config.source_vocabulary)?;
        info.set_item("target_vocabulary", config.target_vocabulary)?;
        info.set_item("d_model", config.d_model)?;
        info.set_item("encoder_layers", config.encoder_layers)?;
        info.set_item("decoder_layers", config.decoder_layers)?;
        info.set_item("max_positions", config.max_positions)?;
        info.set_item("beam", self.inner.options().beam)?;
        Ok(info)
    }
}

impl Translator {
    /// The settings that flags of `regard translate` mean for this model.
    fn settings(&self, py: Python<'_>, flags: Vec<OsString>) -> PyResult<Arc<TranslateSettings>> {
        self.settings_with(py, flags, None)
    }

    /// The same with a glossary that is not in a file.
    fn settings_with(
        &self,
        py: Python<'_>,
        flags: Vec<OsString>,
        glossary: Option<Terms>,
    ) -> PyResult<Arc<TranslateSettings>> {
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((known, terms, settings)) = &*last
            && *known == flags
            && *terms == glossary
        {
            return Ok(Arc::clone(settings));
        }
        let parsed = TranslateSettings::parse(flags.clone(), &self.models);
        let mut settings = parsed.map_err(|error| of_command(py, error))?;
        if let Some(terms) = &glossary {
            let made = Glossary::new(terms.iter().map(|(source, target)| (source, target)));
            let wrong = |e: GlossaryError| of_library(py, &regard::Error::config("glossary", e.to_string()));
            settings = settings.with_glossary(Some(Arc::new(made.map_err(wrong)?)));
        }
        let settings = Arc::new(settings);
        *last = Some((flags, glossary, Arc::clone(&settings)));
        Ok(settings)
    }
}

/// The confidence in the translation of each text: the mean of its lines, by their length.
fn confidences(texts: &Texts<'_>, translated: &[TranslatedLine]) -> Vec<Option<f32>> {
    let mut lines = texts.lines().iter().zip(translated);
    let of_text = |count: usize| {
        let own = lines.by_ref().take(count);
        let rated = own.filter_map(|(source, line)| Some((line.confidence?, source.chars().count() as f32)));
        let (sum, length) =
            rated.fold((0.0, 0.0), |(sum, all), (c, length)| (sum + c * length, all + length));
        (length > 0.0).then(|| sum / length)
    };
    texts.line_counts().map(of_text).collect()
}

fn parts(candidate: Candidate) -> Found {
    let Candidate { text, score, tokens, token_scores, alignment } = candidate;
    (text, score, tokens, token_scores, alignment)
}
