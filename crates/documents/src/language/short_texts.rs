//! Uses `lingua` for texts of a few words, where it is more accurate than `whatlang`
//! (docs/translating.md has the figures) but takes ten times as long.

use super::Detected;
use lingua::{Language, LanguageDetector, LanguageDetectorBuilder};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use whatlang::Lang;

/// The maximum number of words in a short text.
const WORDS: usize = 6;

/// The detectors created so far, by their languages. A detector is small: language models are
/// loaded on first use and shared.
static DETECTORS: LazyLock<Mutex<HashMap<Vec<Language>, Arc<LanguageDetector>>>> =
    LazyLock::new(Mutex::default);

/// The languages that both detectors know.
static LANGUAGES: LazyLock<HashMap<Lang, Language>> = LazyLock::new(|| {
    let known = Lang::all().iter().filter_map(|&lang| Some((lang, language(lang)?)));
    known.collect()
});

/// The most likely of these languages for a short text; if fewer than two are given, of all that
/// `lingua` knows. `None` for a longer text, if one of the languages is unknown, or if the text
/// gives no evidence.
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
    // Without evidence, all languages are equally likely.
    if confidence <= 1.5 / languages.len() as f64 {
        return None;
    }
    let (&lang, _) = LANGUAGES.iter().find(|(_, language)| **language == found)?;
    Some(Detected { lang, confidence })
}

/// The same language in `lingua`, which uses other codes for two of them.
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
