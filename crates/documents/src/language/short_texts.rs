//! `lingua` for texts of a few words, where it finds the language more often than `whatlang`
//! (docs/translating.md has the figures), at ten times the time.

use super::Detected;
use lingua::{Language, LanguageDetector, LanguageDetectorBuilder};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use whatlang::Lang;

/// Words of the longest text that is a short one.
const WORDS: usize = 6;

/// Detectors that were asked for, by their languages. A detector is small: the models of the
/// languages are loaded when they are first needed, and shared.
static DETECTORS: LazyLock<Mutex<HashMap<Vec<Language>, Arc<LanguageDetector>>>> =
    LazyLock::new(Mutex::default);

/// The languages of both detectors.
static LANGUAGES: LazyLock<HashMap<Lang, Language>> = LazyLock::new(|| {
    let known = Lang::all().iter().filter_map(|&lang| Some((lang, language(lang)?)));
    known.collect()
});

/// The likeliest of some languages for a short text; with fewer than two of them, of all that
/// `lingua` knows. Nothing for a longer text, if a language is not known, and if the text says
/// nothing.
pub(super) fn detect(text: &str, among: &[Lang]) -> Option<Detected> {
    if text.split_whitespace().nth(WORDS).is_some() {
        return None;
    }
    let mut languages = match among {
        [] | [_] => LANGUAGES.values().copied().collect::<Vec<Language>>(),
        _ => among.iter().map(|lang| LANGUAGES.get(lang).copied()).collect::<Option<Vec<Language>>>()?,
    };
    languages.sort();
    let detector = {
        let mut detectors = DETECTORS.lock().unwrap_or_else(PoisonError::into_inner);
        let build = || Arc::new(LanguageDetectorBuilder::from_languages(&languages).build());
        Arc::clone(detectors.entry(languages.clone()).or_insert_with(build))
    };
    let (found, confidence) = detector.compute_language_confidence_values(text).into_iter().next()?;
    // With nothing to go by, all languages are as likely as one another.
    if confidence <= 1.5 / languages.len() as f64 {
        return None;
    }
    let (&lang, _) = LANGUAGES.iter().find(|(_, language)| **language == found)?;
    Some(Detected { lang, confidence })
}

/// The same language in `lingua`, which names two of them by other codes.
fn language(lang: Lang) -> Option<Language> {
    let code = match lang {
        Lang::Pes => "fas",
        Lang::Cmn => "zho",
        _ => lang.code(),
    };
    Language::all().into_iter().find(|language| language.iso_code_639_3().to_string() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_words_are_told_apart() {
        let among = [Lang::Deu, Lang::Eng, Lang::Fra, Lang::Por, Lang::Spa];
        for (text, lang) in [
            ("Fenster", Lang::Deu),
            ("window", Lang::Eng),
            ("fenêtre ouverte", Lang::Fra),
            ("configurações", Lang::Por),
            ("ventana abierta", Lang::Spa),
        ] {
            let found = detect(text, &among).unwrap();
            assert_eq!(found.lang, lang, "{text}");
            assert!((0.0..=1.0).contains(&found.confidence), "{text}: {found:?}");
        }
        assert_eq!(detect("42", &among), None);
        assert_eq!(detect("", &[]), None);
    }

    #[test]
    fn longer_texts_and_other_languages_are_left_alone() {
        let among = [Lang::Deu, Lang::Eng];
        assert_eq!(detect("This sentence has more words than a short one.", &among), None);
        assert_eq!(detect("window", &[Lang::Eng, Lang::Aka]), None);
    }
}
