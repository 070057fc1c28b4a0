//! The pipeline: translates lines, texts and files with a chain of models.

use crate::files::{FileDocument, FileError};
use crate::lines::translate_lines_along;
use crate::pipeline::{Job, JobOptions, Outcome, Stage, run_job};
use crate::{
    Document, Glossary, GlossaryMethod, Guarded, Memory, Rendered, Sentence, TermReport, TranslatedLine,
    Translation, html,
};
use regard_core::decode::SearchOptions;
use std::sync::Arc;

/// Text or documents → segments → sentences → models → guard → restored text.
///
/// ```no_run
/// use regard_core::{Isa, translator::Translator};
/// use regard_documents::Pipeline;
/// use regard_documents::pipeline::Stage;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let translator = Translator::load(&["model"], Isa::best(), 2)?;
/// let options = translator.options();
/// let pipeline = Pipeline::new(vec![Stage { translator: &translator, options: &options }]);
/// println!("{}", pipeline.text("A dog runs. Two men talk.")?.rendered.text);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pipeline<'a> {
    /// The models, in the order in which they translate a text.
    pub route: Vec<Stage<'a>>,
    /// The language of the text, if known; it determines where sentences end.
    pub source_language: Option<String>,
    /// The options of the translation jobs.
    pub options: JobOptions,
}

/// A translated text and a report on its translation.
#[derive(Clone, Debug, Default)]
pub struct TranslatedText {
    /// The translated text with its alignment.
    pub rendered: Rendered,
    /// Details of the translation.
    pub report: Report,
}

/// What happened to the sentences of a text or a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The number of sentences.
    pub sentences: usize,
    /// The number of sentences that came from the translation memory, individually or with their
    /// segment.
    pub from_memory: usize,
    /// The sentences whose first translation was degenerate, by index.
    pub guarded: Vec<(usize, Guarded)>,
    /// The expected quality of the translation: the mean over sentences; `None` if no model was
    /// used.
    pub confidence: Option<f32>,
    /// Which glossary terms it contains and which it lacks.
    pub terms: TermReport,
    /// Warnings about the translated file, for example about messages that lost a placeholder.
    pub warnings: Vec<String>,
}

impl Report {
    /// Adds the results for sentences, the first of which has the index `start`.
    fn add(&mut self, start: usize, outcomes: &[Outcome]) {
        let from_models = self.sentences - self.from_memory;
        let confidences: Vec<f32> = outcomes.iter().filter_map(|outcome| outcome.confidence).collect();
        let before = self.confidence.unwrap_or(0.0) * from_models as f32;
        self.sentences += outcomes.len();
        self.from_memory += outcomes.iter().filter(|outcome| outcome.from_memory).count();
        let guarded = outcomes.iter().enumerate().filter_map(|(i, o)| Some((start + i, o.guarded?)));
        self.guarded.extend(guarded);
        outcomes.iter().for_each(|outcome| self.terms.add(&outcome.terms));
        let from_models = self.sentences - self.from_memory;
        if from_models > 0 {
            self.confidence = Some((before + confidences.iter().sum::<f32>()) / from_models as f32);
        }
    }

    /// The number of sentences that are still degenerate.
    pub fn faults_left(&self) -> usize {
        self.guarded.iter().filter(|(_, guarded)| guarded.left.is_some()).count()
    }
}

/// The number of sentences per job: enough for batches of similar lengths, few enough to show
/// progress.
const SENTENCES_PER_JOB: usize = 512;

impl<'a> Pipeline<'a> {
    /// A pipeline with the guard enabled, and with the language and search options of the models.
    pub fn new(route: Vec<Stage<'a>>) -> Self {
        let source_language =
            route.first().and_then(|stage| stage.translator.model().languages.source.clone());
        let wanted = route.last().map(|stage| JobOptions::of_search(stage.options)).unwrap_or_default();
        let reads_terms = matches!(&route[..], [stage] if stage.translator.reads_terms());
        Pipeline { route, source_language, options: JobOptions { guard: true, reads_terms, ..wanted } }
    }

    /// Adds a translation memory; its translations are used without calling a model.
    pub fn with_memory(mut self, memory: Option<Arc<Memory>>) -> Self {
        self.options.memory = memory;
        self
    }

    /// Adds a glossary.
    pub fn with_glossary(mut self, glossary: Option<Arc<Glossary>>) -> Self {
        self.options.glossary = glossary;
        self
    }

    /// Sets how the glossary is applied. With a method that the models do not support
    /// ([`GlossaryMethod::fault`]), the terms are ignored.
    pub fn with_glossary_method(mut self, method: GlossaryMethod) -> Self {
        self.options.glossary_method = method;
        self
    }

    /// Translates lines: one in, one out.
    pub fn lines<T: AsRef<str> + Sync>(&self, lines: &[T]) -> regard_core::Result<Vec<TranslatedLine>> {
        translate_lines_along(&self.route, lines, &self.options, self.source_language.as_deref())
    }

    /// Translates a plain text of any number of lines.
    pub fn text(&self, text: &str) -> regard_core::Result<TranslatedText> {
        self.document(text, &Document::plain_in(text, self.source_language.as_deref()))
    }

    /// Translates HTML.
    pub fn html(&self, text: &str) -> regard_core::Result<TranslatedText> {
        self.document(text, &html::document_in(text, self.source_language.as_deref()))
    }

    fn document(&self, text: &str, document: &Document) -> regard_core::Result<TranslatedText> {
        let sentences: Vec<&Sentence> = document.sentences.iter().collect();
        let mut report = Report::default();
        let translations = self.sentences(&sentences, &mut report, &mut |_| true)?.unwrap_or_default();
        Ok(TranslatedText { rendered: document.render(text, &translations), report })
    }

    /// Translates a file. `progress` is called with the number of translated sentences, and can
    /// stop the work by returning `false`; the result is then `None`.
    pub fn file(
        &self,
        file: &mut FileDocument,
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<(Vec<u8>, Report)>, PipelineError> {
        let known = self.options.memory.as_ref().map_or(0, |memory| file.apply_memory(memory));
        let sentences: Vec<&Sentence> = file.sentences().collect();
        let mut report = Report { sentences: known, from_memory: known, ..Report::default() };
        let Some(translations) = self.sentences(&sentences, &mut report, progress)? else { return Ok(None) };
        let (bytes, warnings) = file.render_with_warnings(&translations)?;
        Ok(Some((bytes, Report { warnings, ..report })))
    }

    /// The best translation of each sentence; `None` if `progress` stops the work.
    fn sentences(
        &self,
        sentences: &[&Sentence],
        report: &mut Report,
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> regard_core::Result<Option<Vec<Translation>>> {
        let mut translations = Vec::with_capacity(sentences.len());
        let wanted = JobOptions { nbest: 1, prefix_first: true, ..self.options.clone() };
        for part in sentences.chunks(SENTENCES_PER_JOB) {
            let mut job = Job::new(self.route.len(), wanted.clone());
            part.iter().enumerate().for_each(|(i, s)| job.add(s, i == 0 && translations.is_empty(), ""));
            run_job(&mut job, &self.route)?;
            let outcomes = job.finish(part.iter().copied());
            report.add(translations.len(), &outcomes);
            translations
                .extend(outcomes.into_iter().map(|o| o.translations.into_iter().next().unwrap_or_default()));
            if !progress(translations.len()) {
                return Ok(None);
            }
        }
        Ok(Some(translations))
    }
}

/// An error in translating a file.
#[derive(Debug)]
pub enum PipelineError {
    /// A model failed.
    Model(regard_core::Error),
    /// The file could not be read or written.
    File(FileError),
}

impl std::fmt::Display for PipelineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PipelineError::Model(error) => error.fmt(f),
            PipelineError::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PipelineError {}

impl From<regard_core::Error> for PipelineError {
    fn from(error: regard_core::Error) -> Self {
        PipelineError::Model(error)
    }
}

impl From<FileError> for PipelineError {
    fn from(error: FileError) -> Self {
        PipelineError::File(error)
    }
}

impl JobOptions {
    /// Job options that match a search: its number of translations, its alignment, and its prefix
    /// for the first sentence.
    pub fn of_search(options: &SearchOptions) -> Self {
        JobOptions {
            nbest: options.nbest,
            alignment: options.attention,
            prefix_first: true,
            ..JobOptions::default()
        }
    }
}
