//! Which way there is from one language to another, and which of them a text is in.

use crate::error::{ApiError, ApiResult};
use regard_documents::language::recognised;
pub(crate) use regard_documents::language::{canonical, name};
use std::collections::BTreeMap;
use whatlang::{Detector, Lang};

/// The models that a translation goes through, by their number; none if source and target are the same.
pub(crate) type Route = Vec<usize>;

/// The languages of all models, and the ways between them.
#[derive(Debug)]
pub(crate) struct Languages {
    /// From each language, the routes to its targets.
    routes: BTreeMap<String, BTreeMap<String, Route>>,
    /// The languages that can be found out, each with its code.
    codes: Vec<(Lang, String)>,
}

impl Languages {
    /// From the pairs of the models, in canonical codes.
    pub(crate) fn new(pairs: &[(String, String)]) -> Self {
        let mut routes: BTreeMap<String, BTreeMap<String, Route>> = BTreeMap::new();
        for code in pairs.iter().flat_map(|(s, t)| [s, t]) {
            routes.entry(code.clone()).or_default().insert(code.clone(), Vec::new());
        }
        for (i, (source, target)) in pairs.iter().enumerate() {
            routes.entry(source.clone()).or_default().insert(target.clone(), vec![i]);
        }
        // Two models in a row, where one alone does not lead there.
        for (i, (source, middle)) in pairs.iter().enumerate() {
            for (j, (from, target)) in pairs.iter().enumerate() {
                if from == middle {
                    let ways = routes.entry(source.clone()).or_default();
                    ways.entry(target.clone()).or_insert_with(|| vec![i, j]);
                }
            }
        }
        let mut codes: Vec<(Lang, String)> = Vec::new();
        // Two spellings of a language are told apart by what is read.
        for code in pairs.iter().map(|(source, _)| source).chain(pairs.iter().map(|(_, target)| target)) {
            if let Some(lang) = recognised(code).filter(|lang| codes.iter().all(|(l, _)| l != lang)) {
                codes.push((lang, code.clone()));
            }
        }
        Languages { routes, codes }
    }

    /// Every language that a text can be in, with its targets.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let sources = self.routes.iter().map(|(code, ways)| (code, ways.keys().map(String::as_str)));
        sources.map(|(code, targets)| (code.as_str(), targets.collect()))
    }

    /// The known language that a request named.
    pub(crate) fn known(&self, code: &str) -> ApiResult<String> {
        let canonical = canonical(code);
        if self.routes.contains_key(&canonical) {
            return Ok(canonical);
        }
        Err(ApiError::bad(format!("{code} is not supported")))
    }

    /// The way between two known languages.
    pub(crate) fn route(&self, source: &str, target: &str) -> ApiResult<&Route> {
        self.routes.get(source).and_then(|ways| ways.get(target)).ok_or_else(|| {
            ApiError::bad(format!(
                "{} ({target}) is not available as a target language from {} ({source})",
                name(target),
                name(source)
            ))
        })
    }

    /// The likeliest language of a text among those of the models, and how sure that is, from 0 to 100.
    pub(crate) fn detect(&self, text: &str) -> (String, f64) {
        self.likeliest(text, |_| true).unwrap_or_else(|| (self.first(|_| true), 0.0))
    }

    /// The same for a text that is to be translated: in doubt it is in a language from which there is a way.
    pub(crate) fn detect_for(&self, text: &str, target: &str) -> (String, f64) {
        let found = self.detect(text);
        let leads = |code: &str| {
            self.routes.get(code).and_then(|ways| ways.get(target)).is_some_and(|route| !route.is_empty())
        };
        if found.1 >= SURE || leads(&found.0) || !self.routes.keys().any(|code| leads(code)) {
            return found;
        }
        let code = self.likeliest(text, leads).map(|(code, _)| code);
        (code.unwrap_or_else(|| self.first(leads)), 0.0)
    }

    fn likeliest(&self, text: &str, allowed: impl Fn(&str) -> bool) -> Option<(String, f64)> {
        let codes: Vec<_> = self.codes.iter().filter(|(_, code)| allowed(code)).collect();
        // Without a choice the detector is always sure; all languages together say how sure it may be.
        let found = match codes.len() {
            0 | 1 => whatlang::detect(text),
            _ => Detector::with_allowlist(codes.iter().map(|(lang, _)| *lang).collect()).detect(text),
        }?;
        let (_, code) = codes.iter().find(|(lang, _)| *lang == found.lang())?;
        Some((code.clone(), (1000.0 * found.confidence()).round() / 10.0))
    }

    /// Where there is nothing to go by: English, as LibreTranslate has it, or the first.
    fn first(&self, allowed: impl Fn(&str) -> bool) -> String {
        let known =
            || self.codes.iter().map(|(_, code)| code).chain(self.routes.keys()).filter(|c| allowed(c));
        known().find(|code| *code == "en").or_else(|| known().next()).cloned().unwrap_or_default()
    }
}

/// From here on the detector is believed, whatever the text is to become.
const SURE: f64 = 90.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn languages(pairs: &[(&str, &str)]) -> Languages {
        let pairs: Vec<_> = pairs.iter().map(|(s, t)| (canonical(s), canonical(t))).collect();
        Languages::new(&pairs)
    }

    #[test]
    fn what_has_no_model_of_its_own_goes_through_two() {
        let languages = languages(&[("de", "en"), ("en", "fr"), ("en", "de")]);
        assert_eq!(languages.route("de", "en").unwrap(), &[0]);
        assert_eq!(languages.route("de", "fr").unwrap(), &[0, 1]);
        assert_eq!(languages.route("de", "de").unwrap(), &[0usize; 0]);
        let error = languages.route("fr", "de").unwrap_err().message;
        assert_eq!(error, "German (de) is not available as a target language from French (fr)");
        assert_eq!(languages.known("zz").unwrap_err().message, "zz is not supported");
        let all: Vec<_> = languages.sources().collect();
        assert_eq!(all[0], ("de", vec!["de", "en", "fr"]));
        assert_eq!(all[2], ("fr", vec!["fr"]));
    }

    #[test]
    fn the_language_of_a_text_is_found_among_those_that_are_read() {
        let two = languages(&[("de", "en"), ("en", "de")]);
        assert_eq!(two.detect("Das ist ein ganz gewöhnlicher deutscher Satz.").0, "de");
        assert_eq!(two.detect("This is quite an ordinary English sentence.").0, "en");
        assert_eq!(two.detect("🙂"), ("en".to_owned(), 0.0));
        let one = languages(&[("en", "de")]);
        let text = "The weather was fine when they came home, and so they went out again with the children.";
        let (code, sure) = one.detect(text);
        assert!(code == "en" && sure > 0.0, "{code} {sure}");
        assert_eq!(one.detect("Это обычное русское предложение."), ("en".to_owned(), 0.0));
        // What is only written is found out, too; a few words are taken for what can be translated.
        let german =
            "Das Wetter war schön, als sie nach Hause kamen, und so gingen sie mit den Kindern hinaus.";
        assert_eq!((one.detect(german).0.as_str(), one.detect_for(german, "de").0.as_str()), ("de", "de"));
        for text in ["Hand", "Land in warm", "so", "12"] {
            assert_eq!(one.detect_for(text, "de").0, "en", "{text} is {:?}", one.detect(text));
        }
        assert!(one.detect("Good morning, how are you doing today?").1 > 0.0);
    }
}
