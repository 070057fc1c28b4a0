//! What the splitter knows about each language: abbreviations, words that begin sentences,
//! ordinals.

use crate::languages;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The kinds of a word; `abbreviations.txt` explains them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const BEFORE: Kinds = Kinds(1);
    pub(super) const NUMBER: Kinds = Kinds(2);
    pub(super) const END: Kinds = Kinds(4);
    pub(super) const MAYBE: Kinds = Kinds(8);
    const START: Kinds = Kinds(16);
    const ORDINAL: Kinds = Kinds(32);
    const COUNTED: Kinds = Kinds(64);
    const SPEECH: Kinds = Kinds(128);
    const ABBREVIATION: Kinds = Kinds(1 | 2 | 4 | 8);

    pub(super) fn is(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_abbreviation(self) -> bool {
        self.is(Kinds::ABBREVIATION)
    }

    fn named(name: &str) -> Option<Kinds> {
        Some(match name {
            "before" => Kinds::BEFORE,
            "number" => Kinds::NUMBER,
            "end" => Kinds::END,
            "maybe" => Kinds::MAYBE,
            "start" => Kinds::START,
            "ordinal" => Kinds::ORDINAL,
            "counted" => Kinds::COUNTED,
            "speech" => Kinds::SPEECH,
            _ => return None,
        })
    }
}

type Words = HashMap<&'static str, Kinds>;

/// The words of each language, of all languages (`any`), and of texts in an unknown language (``).
static LANGUAGES: LazyLock<HashMap<&'static str, Words>> =
    LazyLock::new(|| parse(include_str!("abbreviations.txt")));

fn parse(data: &'static str) -> HashMap<&'static str, Words> {
    let mut languages: HashMap<&str, Words> = HashMap::new();
    for line in data.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(' ');
        let (Some(language), Some(kind)) = (fields.next(), fields.next().and_then(Kinds::named)) else {
            continue;
        };
        for word in fields {
            languages.entry(language).or_default().entry(word).or_default().0 |= kind.0;
            // If the language is unknown, an abbreviation of one language may be a word of another.
            let unsure = if kind == Kinds::BEFORE && language != "any" { Kinds::MAYBE } else { kind };
            languages.entry("").or_default().entry(word).or_default().0 |= unsure.0;
        }
    }
    languages
}

/// Languages whose sentences end like those of another.
const WRITTEN_LIKE: [(&str, &str); 13] = [
    ("lb", "de"),
    ("gsw", "de"),
    ("ca", "es"),
    ("gl", "es"),
    ("be", "ru"),
    ("mk", "bg"),
    ("bs", "hr"),
    ("sr", "hr"),
    ("sh", "hr"),
    ("af", "nl"),
    ("no", "nb"),
    ("nn", "nb"),
    ("prs", "fa"),
];

/// Languages in which a number with a full stop is an ordinal.
const ORDINALS: [&str; 16] =
    ["", "de", "da", "nb", "fi", "et", "lv", "cs", "sk", "sl", "hr", "hu", "pl", "tr", "is", "lt"];

/// What is known about the language of a text.
#[derive(Debug)]
pub(super) struct Language {
    code: String,
    words: Option<&'static Words>,
    any: Option<&'static Words>,
}

impl Language {
    /// For a code such as `de`, `de-AT`, `deu` or `deu_Latn`; empty if it is unknown.
    pub(super) fn new(code: Option<&str>) -> Self {
        let code = code.unwrap_or_default();
        let own = || code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        let code = languages::codes(code).first().map_or_else(own, |&code| code.to_owned());
        let like = WRITTEN_LIKE.iter().find(|(language, _)| *language == code);
        let code = like.map_or(code, |(_, other)| (*other).to_owned());
        Language { words: LANGUAGES.get(code.as_str()), any: LANGUAGES.get("any"), code }
    }

    /// Whether the language has this code; the empty code stands for an unknown language.
    pub(super) fn is(&self, code: &str) -> bool {
        self.code == code
    }

    pub(super) fn has_ordinals(&self) -> bool {
        ORDINALS.contains(&self.code.as_str())
    }

    /// The kinds of a lowercased word.
    pub(super) fn kinds(&self, word: &str) -> Kinds {
        let of = |words: Option<&Words>| words.and_then(|words| words.get(word)).map_or(0, |kinds| kinds.0);
        Kinds(of(self.words) | of(self.any))
    }

    pub(super) fn begins_sentences(&self, word: &str) -> bool {
        self.kinds(word).is(Kinds::START)
    }

    pub(super) fn is_before_ordinal(&self, word: &str) -> bool {
        self.kinds(word).is(Kinds::ORDINAL)
    }

    pub(super) fn is_counted(&self, word: &str) -> bool {
        self.kinds(word).is(Kinds::COUNTED)
    }

    pub(super) fn is_speech(&self, word: &str) -> bool {
        self.kinds(word).is(Kinds::SPEECH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for (i, line) in include_str!("abbreviations.txt").lines().enumerate() {
            let mut fields = line.split(' ');
            let language = fields.next().unwrap_or_default();
            let known = |kind: &str| Kinds::named(kind).is_some();
            assert!(language == "#" || fields.next().is_some_and(known), "line {}", i + 1);
            let small = |word: &str| !word.is_empty() && word.to_lowercase() == word && !word.ends_with('.');
            assert!(language == "#" || fields.all(small), "line {}: {line}", i + 1);
        }
    }

    #[test]
    fn languages_have_several_codes() {
        for code in ["de", "DE", "de-AT", "deu_Latn", "ger", "gsw", "lb"] {
            assert!(Language::new(Some(code)).kinds("bzgl").is(Kinds::BEFORE), "{code}");
        }
        assert!(!Language::new(Some("en")).kinds("bzgl").is_abbreviation());
        assert!(Language::new(None).kinds("bzgl").is(Kinds::MAYBE));
        assert!(Language::new(Some("sw")).kinds("dr").is(Kinds::BEFORE));
    }
}
