//! Document files: split into units of text, and written again with the translations in their
//! place.
//!
//! ```
//! use regard_documents::Translation;
//! use regard_documents::files::{FileDocument, FileOptions, Format};
//!
//! let file = b"One dog. Two cats.\n";
//! let document = FileDocument::open(Format::Text, file, &FileOptions::default())?;
//! // A model translates the sentences; here each is its own translation.
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

/// How a file is read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// In formats that hold translations beside the text (po, xliff), translates only the messages
    /// that have none.
    pub only_empty: bool,
    /// The language of the text, for formats that say it.
    pub source_language: Option<String>,
    /// The language of the translation, for formats that say it.
    pub target_language: Option<String>,
}

/// A piece of a file that is translated by itself: a paragraph, a message, a cell.
#[derive(Debug)]
pub struct Unit {
    source: String,
    document: Document,
}

impl Unit {
    /// Text of some kind that has been taken apart; `source` is what `document` was made of.
    pub fn new(source: impl Into<String>, document: Document) -> Self {
        Unit { source: source.into(), document }
    }

    /// Plain text.
    pub fn plain(source: impl Into<String>) -> Self {
        Self::plain_in(source, None)
    }

    /// Plain text in the language of this code.
    pub fn plain_in(source: impl Into<String>, language: Option<&str>) -> Self {
        let source = source.into();
        let document = Document::plain_in(&source, language);
        Unit { source, document }
    }

    /// HTML. Its translation is HTML, too.
    pub fn html(source: impl Into<String>) -> Self {
        Self::html_in(source, None)
    }

    /// HTML in the language of this code.
    pub fn html_in(source: impl Into<String>, language: Option<&str>) -> Self {
        let source = source.into();
        let document = crate::html::document_in(&source, language);
        Unit { source, document }
    }

    /// What it says in the file.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its sentences, and what is between them.
    pub fn document(&self) -> &Document {
        &self.document
    }
}

/// What remains of a file when its texts have been taken out, and where they go.
pub trait WriteFile: Debug + Send + Sync {
    /// The file with these texts, one for each unit and in their order.
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError>;

    /// Warnings about the file with these texts, one sentence each.
    fn warnings(&self, texts: &[String]) -> Vec<String> {
        let _ = texts;
        Vec::new()
    }
}

/// A file taken apart.
#[derive(Debug)]
pub struct FileDocument {
    units: Vec<Unit>,
    writer: Box<dyn WriteFile>,
}

impl FileDocument {
    /// A file of `units`, which `writer` puts together again.
    pub fn new(units: Vec<Unit>, writer: impl WriteFile + 'static) -> Self {
        FileDocument { units, writer: Box::new(writer) }
    }

    /// Takes the bytes of a file apart.
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

    /// The pieces that are translated, in the order of the file.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// What is translated, in the order of the file.
    pub fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        self.units.iter().flat_map(|unit| &unit.document.sentences)
    }

    /// Units of plain text that the memory knows as a whole get its translation, and their
    /// sentences are not translated any more; how many sentences those are.
    pub fn recall(&mut self, memory: &Memory) -> usize {
        let mut known = 0;
        for unit in &mut self.units {
            let plain = unit.document.sentences.iter().all(|sentence| sentence.markup.is_none());
            let Some(target) = memory.find_segment(&unit.source).filter(|_| plain) else { continue };
            known += unit.document.sentences.len();
            unit.document = Document::kept(&target);
        }
        known
    }

    /// All that is translated, for finding out its language.
    pub fn words(&self) -> String {
        let texts: Vec<String> = self.units.iter().map(|unit| unit.document.words()).collect();
        texts.join(" ")
    }

    /// The file with its sentences replaced by their translations, one for each sentence.
    pub fn render(&self, translations: &[Translation]) -> Result<Vec<u8>, FileError> {
        Ok(self.render_with_warnings(translations)?.0)
    }

    /// The same, with warnings: messages that lost a placeholder, for example.
    pub fn render_with_warnings(
        &self,
        translations: &[Translation],
    ) -> Result<(Vec<u8>, Vec<String>), FileError> {
        let texts = self.texts(translations, |document, source, own| document.render(source, own).text)?;
        let warnings = self.writer.warnings(&texts);
        Ok((self.writer.write(texts)?, warnings))
    }

    /// The same, as if no sentence were its own translation.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn render_anew(&self, translations: &[Translation]) -> Result<Vec<u8>, FileError> {
        let texts =
            self.texts(translations, |document, source, own| document.render_anew(source, own).text)?;
        self.writer.write(texts)
    }

    /// The translations of the units.
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
