//! A loaded model.

use crate::errors::{of_command, of_library};
use crate::stream::Stream;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use regard::cli::TranslateSettings;
use regard::formats::{Model, resolve};
use regard::model::AttentionKind;
use regard::translator::Candidate;
use regard::{DType, Isa};
use regard_documents::Texts;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A translation as Python gets it: text, score, tokens, their scores, pairs of words.
type Found = (String, f32, Vec<String>, Vec<f32>, Vec<(usize, usize)>);

/// Lines that are translated between two looks for signals, as in the command.
const PART: usize = 512;

/// Flags and what they mean for this model; most calls have the flags of the call before.
type LastSettings = Option<(Vec<OsString>, Arc<TranslateSettings>)>;

#[pyclass(frozen, module = "regard._regard")]
pub(crate) struct Translator {
    inner: Arc<regard::Translator>,
    folders: Vec<PathBuf>,
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
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let load = || {
            let isa = Isa::from_env().map_err(regard::Error::other)?;
            let folders = models.iter().map(resolve).collect::<regard::Result<Vec<_>>>()?;
            let inner = regard::Translator::load_as(&folders, precision, isa, threads)?;
            Ok((inner, folders))
        };
        let (inner, folders) = py.detach(load).map_err(|error| of_library(py, &error))?;
        Ok(Translator { inner: Arc::new(inner), folders, last: Mutex::default() })
    }

    /// The translations of each text, best first.
    fn translate(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        flags: Vec<OsString>,
    ) -> PyResult<Vec<Vec<Found>>> {
        let settings = self.settings(py, flags)?;
        let texts = Texts::new(&texts);
        let mut translated = Vec::with_capacity(texts.lines().len());
        for part in texts.lines().chunks(PART) {
            py.check_signals()?;
            let lines = py.detach(|| settings.translate(&self.inner, part));
            translated.extend(lines.map_err(|error| of_library(py, &error))?);
        }
        let found = texts.join(translated);
        Ok(found.into_iter().map(|text| text.into_iter().map(parts).collect()).collect())
    }

    /// The translation of a text while it is generated.
    fn stream(&self, py: Python<'_>, text: String, flags: Vec<OsString>) -> PyResult<Stream> {
        let settings = self.settings(py, flags)?;
        Ok(Stream::start(Arc::clone(&self.inner), text, settings.options().clone()))
    }

    /// The log-probabilities of given translations.
    fn score(
        &self,
        py: Python<'_>,
        pairs: Vec<(String, String)>,
        flags: Vec<OsString>,
    ) -> PyResult<Vec<Found>> {
        let settings = self.settings(py, flags)?;
        let mut found = Vec::with_capacity(pairs.len());
        for part in pairs.chunks(PART) {
            py.check_signals()?;
            let scored = py.detach(|| self.inner.score(part, settings.options()));
            found.extend(scored.map_err(|error| of_library(py, &error))?.into_iter().map(parts));
        }
        Ok(found)
    }

    /// Every attention of a text and a translation, by kind: its shape `[layer, head, rows, columns]` and its
    /// weights as bytes of f32; and the tokens of both sides.
    fn attention<'py>(
        &self,
        py: Python<'py>,
        source: &str,
        target: Option<&str>,
        flags: Vec<OsString>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.settings(py, flags)?;
        let translator = &self.inner;
        let compute = || {
            let best = match target {
                Some(_) => String::new(),
                None => {
                    let lines = translator.translate(&[source], settings.options())?;
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
        let described = Model::describe(&self.folders[0]).map_err(|error| of_library(py, &error))?;
        let (model, info) = (self.inner.model(), PyDict::new(py));
        let config = model.transformer.config();
        info.set_item("folder", self.folders[0].to_string_lossy())?;
        info.set_item("model_type", described.model_type)?;
        info.set_item("source_lang", &model.languages.source)?;
        info.set_item("target_lang", &model.languages.target)?;
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
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((known, settings)) = &*last
            && *known == flags
        {
            return Ok(Arc::clone(settings));
        }
        let parsed = TranslateSettings::parse(flags.clone(), &self.inner);
        let settings = Arc::new(parsed.map_err(|error| of_command(py, error))?);
        *last = Some((flags, Arc::clone(&settings)));
        Ok(settings)
    }
}

fn parts(candidate: Candidate) -> Found {
    let Candidate { text, score, tokens, token_scores, alignment } = candidate;
    (text, score, tokens, token_scores, alignment)
}
