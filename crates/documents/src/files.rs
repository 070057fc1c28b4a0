//! Document files: splits them into units of text and writes them back with the translations in
//! place.
//!
//! ```
//! use regard_documents::Translation;
//! use regard_documents::files::{FileDocument, FileOptions, Format};
//!
//! let file = b"One dog. Two cats.\n";
//! let document = FileDocument::open(Format::Text, file, &FileOptions::default())?;
//! // A model translates the sentences; here each sentence is its own translation.
//! let translations: Vec<Translation> = document
//!     .sentences()
//!     .map(|sentence| {
//!         let mut translation = Translation::same(&sentence.text);
//!         sentence.restore(&mut translation);
//!         translation
//!     })
//!     .collect();
//! assert_eq!(document.render(&translations)?, file);
//! # Ok::<(), regard_documents::files::FileError>(())
//! ```

pub mod tmx;

mod android;
mod codes;
mod encoding;
mod error;
mod format;
mod ios;
mod json;
mod markdown;
pub(crate) mod office;
mod po;
mod properties;
mod splice;
mod subtitles;
mod tags;
mod text;
mod xliff;
mod yaml;

#[cfg(test)]
mod strings_tests;
#[cfg(test)]
mod testing;

pub use error::FileError;
pub use format::Format;

use crate::{Document, Memory, Sentence, Translation};
use std::fmt::Debug;

/// Options for reading and writing a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Translate only messages that have no translation yet, in formats that store translations
    /// next to the source (po, xliff).
    pub only_empty: bool,
    /// The language of the source text, for formats that record it.
    pub source_language: Option<String>,
    /// The language of the translation, for formats that record it.
    pub target_language: Option<String>,
}

/// A part of a file that is translated independently: a paragraph, a message, a cell.
#[derive(Debug)]
pub struct Unit {
    source: String,
    document: Document,
}

impl Unit {
    /// A unit from a document that has already been parsed; `source` is the text that `document`
    /// was made from.
    pub fn new(source: impl Into<String>, document: Document) -> Self {
        Unit { source: source.into(), document }
    }

    /// Plain text.
    pub fn plain(source: impl Into<String>) -> Self {
        Self::plain_in(source, None)
    }

    /// Plain text in the language with this code.
    pub fn plain_in(source: impl Into<String>, language: Option<&str>) -> Self {
        let source = source.into();
        let document = Document::plain_in(&source, language);
        Unit { source, document }
    }

    /// HTML. The translation is HTML, too.
    pub fn html(source: impl Into<String>) -> Self {
        Self::html_in(source, None)
    }

    /// HTML in the language with this code.
    pub fn html_in(source: impl Into<String>, language: Option<&str>) -> Self {
        let source = source.into();
        let document = crate::html::document_in(&source, language);
        Unit { source, document }
    }

    /// Its text in the file.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its sentences and the text between them.
    pub fn document(&self) -> &Document {
        &self.document
    }
}

/// Writes a file from its translated units.
pub trait WriteFile: Debug + Send + Sync {
    /// The file with these texts, one per unit and in the same order.
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError>;

    /// Warnings about a file with these texts, one sentence each.
    fn warnings(&self, texts: &[String]) -> Vec<String> {
        let _ = texts;
        Vec::new()
    }
}

/// A parsed file.
#[derive(Debug)]
pub struct FileDocument {
    units: Vec<Unit>,
    writer: Box<dyn WriteFile>,
}

impl FileDocument {
    /// A file with these `units`; `writer` writes it back.
    pub fn new(units: Vec<Unit>, writer: impl WriteFile + 'static) -> Self {
        FileDocument { units, writer: Box::new(writer) }
    }

    /// Parses the bytes of a file.
    pub fn open(format: Format, bytes: &[u8], options: &FileOptions) -> Result<Self, FileError> {
        match format {
            Format::Text => text::open(format, bytes, options),
            format if format.is_package() => office::open(format, bytes, options),
            Format::Html => {
                let (text, encoding) = encoding::decode(format, bytes)?;
                let document = crate::html::document_in(&text, options.source_language.as_deref());
                Ok(splice::whole(text, encoding, document))
            }
            Format::Markdown => markdown::open(bytes, options),
            Format::Srt | Format::Vtt => subtitles::open(format, bytes, options),
            Format::Po => po::open(bytes, options),
            Format::Xliff => xliff::open(bytes, options),
            Format::Tmx => tmx::open(bytes, options),
            Format::Json => json::open(bytes, options),
            Format::Yaml => yaml::open(bytes, options),
            Format::Properties => properties::open(bytes, options),
            Format::AndroidStrings => android::open(bytes, options),
            Format::IosStrings => ios::open(bytes, options),
            format => Err(FileError::Unsupported { format }),
        }
    }

    /// The units of the file, in order.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The sentences to translate, in file order.
    pub fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        self.units.iter().flat_map(|unit| &unit.document.sentences)
    }

    /// Looks up whole units of plain text in the memory. Units that are found keep the stored
    /// translation and have no sentences left to translate. Returns the number of sentences that
    /// those units had.
    pub fn apply_memory(&mut self, memory: &Memory) -> usize {
        let mut known = 0;
        for unit in &mut self.units {
            let plain = unit.document.sentences.iter().all(|sentence| sentence.markup.is_none());
            let Some(target) = memory.find_segment(&unit.source).filter(|_| plain) else { continue };
            known += unit.document.sentences.len();
            unit.document = Document::kept(&target);
        }
        known
    }

    /// All sentences joined by spaces, for language detection.
    pub fn words(&self) -> String {
        let texts: Vec<String> = self.units.iter().map(|unit| unit.document.words()).collect();
        texts.join(" ")
    }

    /// The file with its sentences replaced by their translations; there must be one translation
    /// per sentence.
    pub fn render(&self, translations: &[Translation]) -> Result<Vec<u8>, FileError> {
        Ok(self.render_with_warnings(translations)?.0)
    }

    /// Like [`FileDocument::render`], and also returns warnings, for example about messages that
    /// lost a placeholder.
    pub fn render_with_warnings(
        &self,
        translations: &[Translation],
    ) -> Result<(Vec<u8>, Vec<String>), FileError> {
        let texts = self.texts(translations, |document, source, own| document.render(source, own).text)?;
        let warnings = self.writer.warnings(&texts);
        Ok((self.writer.write(texts)?, warnings))
    }

    /// Like [`FileDocument::render`], but never reuses the original spelling of a sentence.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn render_normalised(&self, translations: &[Translation]) -> Result<Vec<u8>, FileError> {
        let texts =
            self.texts(translations, |document, source, own| document.render_normalised(source, own).text)?;
        self.writer.write(texts)
    }

    /// The translated text of each unit.
    fn texts(
        &self,
        translations: &[Translation],
        render: impl Fn(&Document, &str, &[Translation]) -> String,
    ) -> Result<Vec<String>, FileError> {
        let wanted = self.sentences().count();
        if translations.len() != wanted {
            return Err(FileError::Translations { wanted, found: translations.len() });
        }
        let mut rest = translations;
        let texts = self.units.iter().map(|unit| {
            let (own, others) = rest.split_at(unit.document.sentences.len());
            rest = others;
            render(&unit.document, &unit.source, own)
        });
        Ok(texts.collect())
    }
}

#[cfg(test)]
mod tests;
