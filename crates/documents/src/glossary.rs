//! Glossaries: prescribed translations of terms, and terms that must not be translated.
//!
//! A file has one entry per line: a term, a tab and its translation. `=` instead of a translation
//! keeps the term untranslated. Empty lines and lines that begin with `#` are ignored.
//!
//! Terms are matched at word boundaries, longest first, also with a plural `s` or `es`. Matching
//! ignores case unless the term contains capitals. Each sentence is first translated without the
//! glossary. If the translation then lacks a term in every inflected form, a second, constrained
//! search looks for translations that contain it (`glossary/terms.rs`). A model trained to read
//! terms gets them with their translations in the first search already ([`GlossaryMethod`]).

pub(crate) mod terms;

use regard_core::text::is_spaced;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Written instead of a translation to keep a term untranslated.
const SAME: &str = "=";

/// The maximum length of a term in characters.
const LONGEST: usize = 100;

/// Terms and their translations.
///
/// ```
/// use regard_documents::Glossary;
/// let glossary = Glossary::parse("# terms\nfile\tFicheiro\nFirefox\t=\n").unwrap();
/// assert_eq!(glossary.len(), 2);
/// let error = Glossary::parse("file").unwrap_err();
/// let expected = "line 1: there is no tab; expected a term, a tab and its translation";
/// assert_eq!(error.to_string(), expected);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glossary {
    entries: Vec<Entry>,
    /// The entries by their first letter in lower case; longest first.
    starts: HashMap<char, Vec<usize>>,
}

/// How a glossary is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GlossaryMethod {
    /// As `Constrain`; a model that is trained to read terms also reads the missing ones in the
    /// second search.
    #[default]
    Auto,
    /// A sentence whose translation lacks a term is searched again for translations that contain
    /// it.
    Constrain,
    /// In the second search, the model, which must be trained to, reads the missing terms; nothing
    /// forces it to use them.
    Annotate,
}

impl GlossaryMethod {
    /// The reason why the method cannot be used with these chained models; `reads_terms` says of
    /// each whether it is trained to read terms.
    ///
    /// ```
    /// use regard_documents::GlossaryMethod;
    /// assert_eq!(GlossaryMethod::Auto.fault(&[false]), None);
    /// assert_eq!(GlossaryMethod::Annotate.fault(&[true]), None);
    /// assert!(GlossaryMethod::Annotate.fault(&[false]).unwrap().contains("not trained"));
    /// ```
    pub fn fault(self, reads_terms: &[bool]) -> Option<&'static str> {
        match (self, reads_terms) {
            (GlossaryMethod::Auto | GlossaryMethod::Constrain, _) | (_, [true]) => None,
            (_, [false]) => Some("the model is not trained to read terms"),
            _ => Some("it supports a single model, not a chain of models"),
        }
    }
}

/// A term and its translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) source: String,
    /// `None` for a term that is not translated.
    pub(crate) target: Option<String>,
}

/// An occurrence of a term in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TermMatch {
    /// Its byte range.
    pub(crate) range: Range<usize>,
    pub(crate) entry: usize,
}

/// An error in a glossary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlossaryError {
    /// The file, if the glossary comes from one.
    pub path: Option<PathBuf>,
    /// The line, counted from 1; `None` if the file could not be read or if the pairs do not come
    /// from a file.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for GlossaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.line) {
            (Some(path), Some(line)) => write!(f, "{}:{line}: {}", path.display(), self.message),
            (Some(path), None) => write!(f, "{}: {}", path.display(), self.message),
            (None, Some(line)) => write!(f, "line {line}: {}", self.message),
            (None, None) => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for GlossaryError {}

impl From<String> for GlossaryError {
    fn from(message: String) -> Self {
        GlossaryError { path: None, line: None, message }
    }
}

impl Glossary {
    /// Builds a glossary from pairs of a term and its translation; `=` as the translation keeps the
    /// term untranslated.
    ///
    /// ```
    /// use regard_documents::Glossary;
    /// let glossary = Glossary::new([("file", "Datei"), ("Firefox", "=")]).unwrap();
    /// assert!(!glossary.is_empty());
    /// let error = Glossary::new([("file", "Datei"), ("file", "Akte")]).unwrap_err();
    /// assert_eq!(error.to_string(), "\"file\" has two translations: \"Datei\" and \"Akte\"");
    /// ```
    pub fn new<S: AsRef<str>, T: AsRef<str>>(
        pairs: impl IntoIterator<Item = (S, T)>,
    ) -> Result<Self, GlossaryError> {
        let mut builder = Builder::default();
        for (source, target) in pairs {
            builder.add(source.as_ref(), target.as_ref())?;
        }
        Ok(builder.finish())
    }

    /// Parses a glossary file: on each line a term, a tab and its translation.
    pub fn parse(text: &str) -> Result<Self, GlossaryError> {
        let mut builder = Builder::default();
        for (i, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |error: GlossaryError| GlossaryError { line: Some(i + 1), ..error };
            let columns: Vec<&str> = line.split('\t').collect();
            let expected = "expected a term, a tab and its translation";
            match columns[..] {
                [source, target] => builder.add(source, target).map_err(at)?,
                [_] => return Err(at(format!("there is no tab; {expected}").into())),
                _ => return Err(at(format!("{} columns; {expected}", columns.len()).into())),
            }
        }
        Ok(builder.finish())
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, GlossaryError> {
        let named = |error: GlossaryError| GlossaryError { path: Some(path.to_owned()), ..error };
        let bytes = std::fs::read(path).map_err(|error| named(error.to_string().into()))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = Some(1 + valid.iter().filter(|&&byte| byte == b'\n').count());
            named(GlossaryError { line, ..GlossaryError::from("not UTF-8".to_owned()) })
        })?;
        Self::parse(&text).map_err(named)
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The terms and their translations, `=` for those that are not translated.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|entry| (entry.source.as_str(), entry.target.as_deref().unwrap_or(SAME)))
    }

    pub(crate) fn entry(&self, number: usize) -> &Entry {
        &self.entries[number]
    }

    /// The terms in a text from left to right. Spans in `protected`, which are sorted, are skipped.
    pub(crate) fn find(&self, text: &str, protected: &[Range<usize>]) -> Vec<TermMatch> {
        let mut found = Vec::new();
        let mut protected = protected.iter().peekable();
        let mut before = None;
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            while protected.next_if(|span| span.end <= at).is_some() {}
            let next_span = protected.peek().map(|span| span.start);
            let free = |end: usize| next_span.is_none_or(|start| end <= start);
            let first = c.to_lowercase().next().unwrap_or(c);
            let candidates = self.starts.get(&first).filter(|_| !joins(before, Some(c)));
            let candidates = candidates.into_iter().flatten();
            let mut matches =
                candidates.filter_map(|&i| Some((i, match_end(&self.entries[i].source, text, at)?)));
            let end = match matches.find(|&(_, end)| free(end)) {
                Some((entry, end)) => {
                    found.push(TermMatch { range: at..end, entry });
                    end
                }
                None => at + c.len_utf8(),
            };
            before = text[..end].chars().next_back();
            at = end;
        }
        found
    }
}

/// A glossary that is being built.
#[derive(Default)]
struct Builder {
    entries: Vec<Entry>,
    /// The index of each entry by its term.
    known: HashMap<String, usize>,
}

impl Builder {
    fn add(&mut self, source: &str, target: &str) -> Result<(), GlossaryError> {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (source, target) = (words(source), words(target));
        let (source, target) = (source.as_str(), target.as_str());
        if !source.contains(char::is_alphanumeric) {
            return Err(format!("{source:?} is no term; a letter or digit is needed").into());
        }
        if target.is_empty() {
            let message =
                format!("{source:?} has no translation; {SAME:?} in its place leaves it untranslated");
            return Err(message.into());
        }
        for text in [source, target] {
            let length = text.chars().count();
            if length > LONGEST {
                return Err(format!("a term has {length} characters; the limit is {LONGEST}").into());
            }
            if text.contains(char::is_control) {
                return Err(format!("{text:?} has a control character").into());
            }
        }
        let entry = Entry {
            source: source.to_owned(),
            target: (target != SAME && target != source).then(|| target.to_owned()),
        };
        if let Some(&i) = self.known.get(source) {
            if self.entries[i] == entry {
                return Ok(());
            }
            let of = |entry: &Entry| entry.target.clone().unwrap_or_else(|| SAME.to_owned());
            let (a, b) = (of(&self.entries[i]), of(&entry));
            return Err(format!("{source:?} has two translations: {a:?} and {b:?}").into());
        }
        self.known.insert(source.to_owned(), self.entries.len());
        self.entries.push(entry);
        Ok(())
    }

    fn finish(self) -> Glossary {
        let mut starts: HashMap<char, Vec<usize>> = HashMap::new();
        for (i, entry) in self.entries.iter().enumerate() {
            let first = entry.source.chars().next().and_then(|c| c.to_lowercase().next());
            starts.entry(first.unwrap_or_default()).or_default().push(i);
        }
        for list in starts.values_mut() {
            // Of two spellings, the one with capitals comes first, because it matches fewer places.
            list.sort_by_key(|&i| {
                let source = &self.entries[i].source;
                (std::cmp::Reverse(source.chars().count()), !source.contains(char::is_uppercase))
            });
        }
        Glossary { entries: self.entries, starts }
    }
}

/// Whether two characters are part of the same word.
fn joins(a: Option<char>, b: Option<char>) -> bool {
    let of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && is_spaced(c));
    of_word(a) && of_word(b)
}

/// The end of the term that begins at `at`, if it occurs there as a word. Any white space matches a
/// space in the term.
fn match_end(term: &str, text: &str, at: usize) -> Option<usize> {
    let exact = term.contains(char::is_uppercase);
    let mut rest = text[at..].chars().peekable();
    let mut end = at;
    for c in term.chars() {
        if c.is_whitespace() {
            let mut spaces = 0;
            while let Some(space) = rest.next_if(|c| c.is_whitespace()) {
                spaces += 1;
                end += space.len_utf8();
            }
            if spaces == 0 {
                return None;
            }
            continue;
        }
        let other = rest.next()?;
        if other != c && (exact || !other.to_lowercase().eq(c.to_lowercase())) {
            return None;
        }
        end += other.len_utf8();
    }
    let last = term.chars().next_back();
    let ends = |end: usize| !joins(last, text[end..].chars().next());
    if ends(end) {
        return Some(end);
    }
    let letters = term.chars().filter(|c| c.is_alphabetic()).count();
    let plural = ["s", "es", "S", "ES"].iter().filter(|_| letters >= 3);
    let mut plural = plural.filter(|ending| text[end..].starts_with(**ending)).map(|e| end + e.len());
    plural.find(|&end| ends(end))
}

/// Which terms a translation contains and which it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct TermReport {
    /// The number of glossary terms in the source, each counted once per sentence.
    pub wanted: usize,
    /// The terms that the translation lacks: source term and target term.
    pub missing: Vec<(String, String)>,
}

impl TermReport {
    /// Adds another report.
    pub fn add(&mut self, other: &TermReport) {
        self.wanted += other.wanted;
        self.missing.extend_from_slice(&other.missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(glossary: &[(&str, &str)], text: &'t str, protected: &[Range<usize>]) -> Vec<&'t str> {
        let glossary = Glossary::new(glossary.iter().copied()).unwrap();
        glossary.find(text, protected).into_iter().map(|found| &text[found.range]).collect()
    }

    #[test]
    fn terms_are_found_at_the_bounds_of_words_longest_first() {
        let glossary = [("file", "a"), ("file  name", "b"), ("Go", "="), ("box", "c"), ("文件", "d")];
        for (text, wanted) in [
            ("A file. The FILES and profiles", vec!["file", "FILES"]),
            ("the file\u{a0}name, filenames", vec!["file\u{a0}name"]),
            ("go or Go, Gos", vec!["Go"]),
            ("boxes-box", vec!["boxes", "box"]),
            ("打开文件夹", vec!["文件"]),
            ("", vec![]),
        ] {
            assert_eq!(found(&glossary, text, &[]), wanted, "{text}");
        }
        assert_eq!(found(&glossary, "file {file} file {file}", &[5..11, 17..23]), ["file", "file"]);
        assert_eq!(found(&[("polish", "x"), ("Polish", "y")], "Polish polish", &[]), ["Polish", "polish"]);
    }

    #[test]
    fn a_file_is_read_line_by_line() {
        let text = "\u{feff}# comment\r\n\r\nfile\tFicheiro \r\nFirefox\t=\r\nfile\tFicheiro\r\nweb\tweb\n";
        let glossary = Glossary::parse(text).unwrap();
        let pairs: Vec<_> = glossary.iter().collect();
        assert_eq!(pairs, [("file", "Ficheiro"), ("Firefox", "="), ("web", "=")]);
        for (text, problem) in [
            ("a\tb\nfile", "line 2: there is no tab"),
            ("a\tb\tc", "line 1: 3 columns"),
            ("\tb", "line 1: \"\" is no term"),
            ("a\t ", "line 1: \"a\" has no translation; \"=\" in its place"),
            ("#x\na\tb\na\tc", "line 3: \"a\" has two translations: \"b\" and \"c\""),
        ] {
            let error = Glossary::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
        let long = "x".repeat(LONGEST + 1);
        assert!(Glossary::new([(&long, "y")]).is_err());
        assert!(Glossary::new([("a", "b\u{7}")]).is_err());
    }

    #[test]
    fn errors_name_the_file() {
        let folder = std::env::temp_dir().join(format!("regard-glossary-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("terms.tsv");
        std::fs::write(&path, b"a\tb\n\xff\tc\n").unwrap();
        let error = Glossary::load(&path).unwrap_err().to_string();
        assert!(error.ends_with("terms.tsv:2: not UTF-8"), "{error}");
        std::fs::write(&path, "a\tb\n\nc\n").unwrap();
        assert!(Glossary::load(&path).unwrap_err().to_string().contains("terms.tsv:3: there is no tab"));
        let error = Glossary::load(&folder.join("none.tsv")).unwrap_err();
        assert!(error.line.is_none() && error.to_string().contains("none.tsv: "));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
