//! The pipeline: models in a row and how they are used, for lines, texts and files.

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
    /// The models, in the order in which a text goes through them.
    pub route: Vec<Stage<'a>>,
    /// The language of the text, if it is known: where its sentences end depends on it.
    pub source_language: Option<String>,
    /// What is wanted of the translations.
    pub options: JobOptions,
}

/// A translated text, and how it was made.
#[derive(Clone, Debug, Default)]
pub struct TranslatedText {
    /// The text.
    pub rendered: Rendered,
    /// What happened on the way.
    pub report: Report,
}

/// What happened to the sentences of a text or a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// How many there were.
    pub sentences: usize,
    /// How many of them came from the memory, one by one or with their segment.
    pub from_memory: usize,
    /// Sentences whose first translation was degenerate, by their number from 0.
    pub guarded: Vec<(usize, Guarded)>,
    /// How good the translation is likely to be: the mean over sentences; nothing where no model
    /// was asked.
    pub confidence: Option<f32>,
    /// What became of the terms of the glossary.
    pub terms: TermReport,
    /// Warnings about the translated file: messages that lost a placeholder, for
    /// example.
    pub warnings: Vec<String>,
}

impl Report {
    /// Of these sentences, which begin at number `start`.
    fn add(&mut self, start: usize, outcomes: &[Outcome]) {
        let asked = self.sentences - self.from_memory;
        let sure: Vec<f32> = outcomes.iter().filter_map(|outcome| outcome.confidence).collect();
        let before = self.confidence.unwrap_or(0.0) * asked as f32;
        self.sentences += outcomes.len();
        self.from_memory += outcomes.iter().filter(|outcome| outcome.from_memory).count();
        let guarded = outcomes.iter().enumerate().filter_map(|(i, o)| Some((start + i, o.guarded?)));
        self.guarded.extend(guarded);
        outcomes.iter().for_each(|outcome| self.terms.add(&outcome.terms));
        let asked = self.sentences - self.from_memory;
        if asked > 0 {
            self.confidence = Some((before + sure.iter().sum::<f32>()) / asked as f32);
        }
    }

    /// How many sentences are still degenerate.
    pub fn faults_left(&self) -> usize {
        self.guarded.iter().filter(|(_, guarded)| guarded.left.is_some()).count()
    }
}

/// Sentences that go through the models together: enough for batches of similar lengths, few enough
/// to show progress.
const TOGETHER: usize = 512;

impl<'a> Pipeline<'a> {
    /// With the guard on, and the language and search of the models.
    pub fn new(route: Vec<Stage<'a>>) -> Self {
        let source_language =
            route.first().and_then(|stage| stage.translator.model().languages.source.clone());
        let wanted = route.last().map(|stage| JobOptions::of_search(stage.options)).unwrap_or_default();
        let reads_terms = matches!(&route[..], [stage] if stage.translator.reads_terms());
        Pipeline { route, source_language, options: JobOptions { guard: true, reads_terms, ..wanted } }
    }

    /// The same with known translations, which are not asked of the models.
    pub fn with_memory(mut self, memory: Option<Arc<Memory>>) -> Self {
        self.options.memory = memory;
        self
    }

    /// The same with terms and their translations.
    pub fn with_glossary(mut self, glossary: Option<Arc<Glossary>>) -> Self {
        self.options.glossary = glossary;
        self
    }

    /// The same with a method for these terms; one that the models cannot
    /// ([`GlossaryMethod::fault`]) leaves them out.
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

    /// Translates a file. `progress` gets how many sentences are done and may stop the work;
    /// then there is no file.
    pub fn file(
        &self,
        file: &mut FileDocument,
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<(Vec<u8>, Report)>, PipelineError> {
        let known = self.options.memory.as_ref().map_or(0, |memory| file.recall(memory));
        let sentences: Vec<&Sentence> = file.sentences().collect();
        let mut report = Report { sentences: known, from_memory: known, ..Report::default() };
        let Some(translations) = self.sentences(&sentences, &mut report, progress)? else { return Ok(None) };
        let (bytes, warnings) = file.render_with_warnings(&translations)?;
        Ok(Some((bytes, Report { warnings, ..report })))
    }

    /// The best translation of each sentence; nothing if `progress` stops the work.
    fn sentences(
        &self,
        sentences: &[&Sentence],
        report: &mut Report,
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> regard_core::Result<Option<Vec<Translation>>> {
        let mut translations = Vec::with_capacity(sentences.len());
        let wanted = JobOptions { nbest: 1, prefix_first: true, ..self.options.clone() };
        for part in sentences.chunks(TOGETHER) {
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

/// Why a file could not be translated.
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
    /// What a search returns: its number of translations, alignment, and its prefix for the
    /// first sentence.
    pub fn of_search(options: &SearchOptions) -> Self {
        JobOptions {
            nbest: options.nbest,
            alignment: options.attention,
            prefix_first: true,
            ..JobOptions::default()
        }
    }
}
