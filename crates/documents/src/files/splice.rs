//! Text files in which strings are replaced in place. Everything around them stays byte for byte,
//! and so does a string whose translation is identical to it.

use super::encoding::Encoding;
use super::{FileDocument, FileError, FileOptions, Unit, WriteFile};
use crate::message;
use std::fmt;
use std::ops::Range;

/// A string in a file.
pub(super) struct Place {
    /// Its byte range in the text.
    pub(super) range: Range<usize>,
    /// Its decoded value.
    pub(super) source: String,
    /// Encodes a value for the file.
    pub(super) encode: Box<dyn Fn(&str) -> String + Send + Sync>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("range", &self.range)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// A file with strings that are replaced in place.
#[derive(Debug)]
struct Splice {
    text: String,
    encoding: Encoding,
    places: Vec<Place>,
}

/// A file whose `places`, which are sorted, are messages.
pub(super) fn messages(
    text: String,
    encoding: Encoding,
    places: Vec<Place>,
    options: &FileOptions,
) -> FileDocument {
    let language = options.source_language.as_deref();
    let units =
        places.iter().map(|place| Unit::new(&*place.source, message::document(&place.source, language)));
    FileDocument::new(units.collect(), Splice { text, encoding, places })
}

impl WriteFile for Splice {
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError> {
        let (mut out, mut at) = (String::with_capacity(self.text.len()), 0);
        for (place, text) in self.places.iter().zip(texts) {
            out.push_str(&self.text[at..place.range.start]);
            match text == place.source {
                true => out.push_str(&self.text[place.range.clone()]),
                false => out.push_str(&(place.encode)(&text)),
            }
            at = place.range.end;
        }
        out.push_str(&self.text[at..]);
        Ok(self.encoding.encode(&out))
    }
}

/// A text file that consists of one unit.
#[derive(Debug)]
struct WholeText {
    encoding: Encoding,
}

/// A file that consists of one document.
pub(super) fn whole(text: String, encoding: Encoding, document: crate::Document) -> FileDocument {
    FileDocument::new(vec![Unit::new(text, document)], WholeText { encoding })
}

impl WriteFile for WholeText {
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError> {
        Ok(self.encoding.encode(&texts.concat()))
    }
}
