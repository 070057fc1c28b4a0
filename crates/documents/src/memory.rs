//! A translation memory of segments and sentences.

use crate::files::tmx;
use regard_core::formats::compressed::decompress;
use regard_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Known translations, looked up by the exact source text except for white space.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    targets: HashMap<String, String>,
}

/// What the memory contributed to a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Match {
    /// The whole segment: a line, a paragraph, a message.
    Segment,
    /// Some or all of its sentences, one by one.
    Sentences,
}

impl Match {
    /// The name in responses: `segment` or `sentences`.
    pub fn name(self) -> &'static str {
        match self {
            Match::Segment => "segment",
            Match::Sentences => "sentences",
        }
    }
}

impl Memory {
    /// Builds a memory from pairs of source and target. If a source has several translations, the
    /// last one is used; pairs with an empty side are skipped.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut targets = HashMap::new();
        for (source, target) in pairs {
            let (source, target) = (key(&source), target.trim().to_owned());
            if !source.is_empty() && !target.is_empty() {
                targets.insert(source, target);
            }
        }
        Memory { targets }
    }

    /// Loads the pairs between two languages from a TMX file, plain or compressed; the region of a
    /// language may differ. A file without any such pair is an error.
    pub fn load(path: &Path, source: &str, target: &str) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let reader = decompress(BufReader::new(file)).map_err(|e| Error::io(path, e))?;
        let mut pairs = Vec::new();
        for pair in tmx::pairs(reader, source, target) {
            pairs.push(pair.map_err(|e| Error::file(path, e.to_string()))?);
        }
        let memory = Memory::new(pairs);
        match memory.is_empty() {
            true => Err(Error::file(path, format!("no unit of a TMX file with both {source} and {target}"))),
            false => Ok(memory),
        }
    }

    /// The number of translations.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no translations.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The translation of a text.
    ///
    /// ```
    /// use regard_documents::Memory;
    /// let memory = Memory::new([("Good  morning.".to_owned(), "Guten Morgen.".to_owned())]);
    /// assert_eq!(memory.find(" Good morning. "), Some("Guten Morgen."));
    /// assert_eq!(memory.find("good morning."), None);
    /// ```
    pub fn find(&self, text: &str) -> Option<&str> {
        if self.targets.is_empty() {
            return None;
        }
        self.targets.get(&key(text)).map(String::as_str)
    }
}

impl Memory {
    /// The translation of a whole segment, with the white space around the segment preserved.
    pub fn find_segment(&self, text: &str) -> Option<String> {
        let target = self.find(text)?;
        let start = text.len() - text.trim_start().len();
        Some(format!("{}{target}{}", &text[..start], &text[text.trim_end().len()..]))
    }
}

/// The text with each run of white space collapsed to one space.
fn key(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_translation_counts_and_empty_ones_do_not() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let pairs = [pair("A", "1"), pair(" A ", "2"), pair("B", " "), pair("", "3")];
        let memory = Memory::new(pairs);
        assert_eq!(
            (memory.len(), memory.find("A"), memory.find("B"), memory.find("")),
            (1, Some("2"), None, None)
        );
        assert!(Memory::default().is_empty());
    }

    #[test]
    fn a_file_is_read_for_two_languages() {
        let folder = std::env::temp_dir().join(format!("regard-memory-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("memory.tmx");
        let unit = "<tu><tuv xml:lang=\"en-US\"><seg>A dog</seg></tuv><tuv xml:lang=\"de\"><seg>Ein Hund</seg></tuv></tu>";
        std::fs::write(&path, format!("<tmx><body>{unit}</body></tmx>")).unwrap();
        assert_eq!(Memory::load(&path, "en", "de").unwrap().find("A dog"), Some("Ein Hund"));
        assert_eq!(Memory::load(&path, "de", "en").unwrap().find("Ein Hund"), Some("A dog"));
        let message = |error: Error| error.to_string();
        let error = message(Memory::load(&path, "en", "fr").unwrap_err());
        assert!(error.ends_with("memory.tmx: no unit of a TMX file with both en and fr"), "{error}");
        std::fs::write(&path, "<tmx><body><tu></body></tmx>").unwrap();
        assert!(message(Memory::load(&path, "en", "de").unwrap_err()).contains("the XML is damaged"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(message(Memory::load(&path, "en", "de").unwrap_err()).contains("memory.tmx"));
    }
}
