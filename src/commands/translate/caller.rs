//! `regard translate` for programs that have loaded the models themselves: the same route and
//! results, without printing.

use super::Arguments;
use super::documents::{self, format_of};
use super::route::{LoadedModels, Route};
use crate::commands::input::Lines;
use regard::Error;
use regard::decode::SearchOptions;
use regard::translator::Translator;
use regard_documents::{Glossary, Report, TranslatedLine};
use std::path::Path;
use std::sync::Arc;

/// The settings of a call, applied to loaded models.
#[derive(Debug)]
pub(crate) struct Caller {
    arguments: Arguments,
    route: Route,
}

impl Caller {
    pub(crate) fn new(
        arguments: Arguments,
        models: &LoadedModels,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let route = Route::new(&arguments, models)?;
        Ok(Caller { arguments, route })
    }

    /// Replaces the glossary of the flags by these terms and their translations.
    pub(crate) fn with_glossary(mut self, glossary: Option<Arc<Glossary>>) -> Self {
        self.route.set_glossary(glossary);
        self
    }

    /// The model and its search settings, if there is only one model.
    pub(crate) fn single(&self) -> Result<(&Arc<Translator>, &SearchOptions), Error> {
        match self.route.models() {
            [model] => Ok((&model.translator, &model.options)),
            models => {
                let message = format!("this takes one model, and {} are used in a row", models.len());
                Err(Error::Input { operation: "models", message })
            }
        }
    }

    /// How many lines to translate between two checks for signals.
    pub(crate) fn part(&self) -> usize {
        self.route.part()
    }

    pub(crate) fn translate<T: AsRef<str> + Sync>(&self, lines: &[T]) -> Result<Vec<TranslatedLine>, Error> {
        self.route.translate(lines)
    }

    /// The bytes of a translated file; `None` if `progress`, which receives how much is done, stops
    /// the work. Files that are not documents are translated line by line.
    pub(crate) fn file(
        &self,
        file: &Path,
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<(Vec<u8>, Report)>, Error> {
        match self.arguments.format.or_else(|| format_of(file)) {
            Some(format) => {
                let bytes = std::fs::read(file).map_err(|e| Error::io(file, e))?;
                let opened = documents::open(&self.arguments, &self.route, &bytes, format);
                let mut document = opened.map_err(|e| Error::file(file, e.to_string()))?;
                let translated = self.route.pipeline().file(&mut document, progress);
                translated.map_err(|e| Error::file(file, e.to_string()))
            }
            None => self.lines(file, progress),
        }
    }

    fn lines(
        &self,
        file: &Path,
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Option<(Vec<u8>, Report)>, Error> {
        let (mut lines, mut text, mut done) = (Lines::open(file)?, String::new(), 0);
        let (mut report, mut sure) = (Report::default(), (0.0, 0.0));
        loop {
            let batch = lines.next_batch_lossy()?;
            if batch.is_empty() {
                break;
            }
            let texts: Vec<&str> = batch.iter().map(|(text, _)| text.as_str()).collect();
            for part in texts.chunks(self.part()) {
                for (line, source) in self.translate(part)?.iter().zip(part) {
                    text.push_str(&line.line.best().text);
                    text.push('\n');
                    report.guarded.extend(line.guarded.iter().map(|guarded| (done, *guarded)));
                    report.sentences += line.line.parts;
                    report.terms.add(&line.terms);
                    let length = source.chars().count() as f32;
                    sure = line.confidence.map_or(sure, |c| (sure.0 + c * length, sure.1 + length));
                    done += 1;
                }
                if !progress(done) {
                    return Ok(None);
                }
            }
        }
        report.confidence = (sure.1 > 0.0).then(|| sure.0 / sure.1);
        Ok(Some((text.into_bytes(), report)))
    }
}
