//! The route of models from one language to another, and language detection.

use crate::error::{ApiError, ApiResult};
use regard_core::languages::find;
use regard_documents::language::{Lang, detect, recognised};
pub(crate) use regard_documents::language::{canonical, name};
use std::collections::BTreeMap;

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stage {
    /// The index of the model.
    pub(crate) model: usize,
    /// The language pair of a multilingual model, by language indices.
    pub(crate) pair: Option<(u16, u16)>,
}

/// The models that a translation passes through; empty if source and target are the same.
pub(crate) type Route = Vec<Stage>;

/// The language pairs of a model, as canonical codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// From one language to another.
    One(String, String),
    /// From each of these languages to every other.
    All(Vec<String>),
}

/// The indices of a source and a target language in a multilingual model.
type LanguageNumbers = (u16, u16);

impl Pairs {
    /// The name of the pair, such as `en-de`; for a multilingual model, the name of its folder.
    pub(crate) fn name(&self, folder: &str) -> String {
        match self {
            Pairs::One(source, target) => format!("{source}-{target}"),
            Pairs::All(_) => folder.to_owned(),
        }
    }

    /// Every pair, with its language indices if the model is multilingual.
    fn each(&self) -> Vec<(&String, &String, Option<LanguageNumbers>)> {
        match self {
            Pairs::One(source, target) => vec![(source, target, None)],
            Pairs::All(codes) => {
                let mut all = Vec::with_capacity(codes.len() * codes.len());
                for (i, source) in (0u16..).zip(codes) {
                    let others = (0u16..).zip(codes).filter(|(j, _)| i != *j);
                    all.extend(others.map(|(j, target)| (source, target, Some((i, j)))));
                }
                all
            }
        }
    }
}

/// The languages of all models and the routes between them.
#[derive(Debug)]
pub(crate) struct Languages {
    /// For each source language, the routes to its targets.
    routes: BTreeMap<String, BTreeMap<String, Route>>,
    /// The languages that can be detected, with their codes.
    codes: Vec<(Lang, String)>,
}

impl Languages {
    /// Computes the routes between the languages of these models.
    pub(crate) fn new(models: &[Pairs]) -> Self {
        let mut routes: BTreeMap<String, BTreeMap<String, Route>> = BTreeMap::new();
        // Bilingual models take precedence over multilingual ones.
        let order = |pairs: &Pairs| matches!(pairs, Pairs::All(_));
        let mut numbered: Vec<(usize, &Pairs)> = models.iter().enumerate().collect();
        numbered.sort_by_key(|(_, pairs)| order(pairs));
        for (model, pairs) in &numbered {
            for (source, target, pair) in pairs.each() {
                for code in [source, target] {
                    let targets = routes.entry(code.clone()).or_default();
                    targets.entry(code.clone()).or_default();
                }
                let targets = routes.entry(source.clone()).or_default();
                targets.entry(target.clone()).or_insert_with(|| vec![Stage { model: *model, pair }]);
            }
        }
        add_indirect(&mut routes);
        let mut codes: Vec<(Lang, String)> = Vec::new();
        let mut add = |code: &String| {
            if let Some(lang) = recognised(code).filter(|lang| codes.iter().all(|(l, _)| l != lang)) {
                codes.push((lang, code.clone()));
            }
        };
        // If two codes stand for the same language, a source language takes precedence.
        for pairs in models {
            match pairs {
                Pairs::One(source, _) => add(source),
                Pairs::All(all) => all.iter().for_each(&mut add),
            }
        }
        for pairs in models {
            if let Pairs::One(_, target) = pairs {
                add(target);
            }
        }
        Languages { routes, codes }
    }

    /// All source languages with their targets.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let sources = self.routes.iter().map(|(code, targets)| (code, targets.keys().map(String::as_str)));
        sources.map(|(code, targets)| (code.as_str(), targets.collect()))
    }

    /// The canonical code of a requested language; an error if it is not supported.
    pub(crate) fn known(&self, code: &str) -> ApiResult<String> {
        let canonical = canonical(code);
        if self.routes.contains_key(&canonical) {
            return Ok(canonical);
        }
        let known: Vec<&str> = self.routes.keys().map(String::as_str).collect();
        if let Ok(found) = find(code, &known) {
            return Ok(known[found].to_owned());
        }
        Err(ApiError::bad(format!("{code} is not supported")))
    }

    /// The route between two supported languages.
    pub(crate) fn route(&self, source: &str, target: &str) -> ApiResult<&Route> {
        self.routes.get(source).and_then(|targets| targets.get(target)).ok_or_else(|| {
            ApiError::bad(format!(
                "{} ({target}) is not available as a target language from {} ({source})",
                name(target),
                name(source)
            ))
        })
    }

    /// The most likely language of a text among those of the models, and the confidence from 0 to
    /// 100.
    pub(crate) fn detect(&self, text: &str) -> (String, f64) {
        self.most_likely(text, |_| true).unwrap_or_else(|| (self.first(|_| true), 0.0))
    }

    /// Like [`Languages::detect`], for a text that will be translated: unless the detector is sure,
    /// prefers a language from which there is a route to the target.
    pub(crate) fn detect_for(&self, text: &str, target: &str) -> (String, f64) {
        let found = self.detect(text);
        let has_route = |code: &str| {
            self.routes
                .get(code)
                .and_then(|targets| targets.get(target))
                .is_some_and(|route| !route.is_empty())
        };
        if found.1 >= CONFIDENT || has_route(&found.0) || !self.routes.keys().any(|code| has_route(code)) {
            return found;
        }
        let code = self.most_likely(text, has_route).map(|(code, _)| code);
        (code.unwrap_or_else(|| self.first(has_route)), 0.0)
    }

    fn most_likely(&self, text: &str, allowed: impl Fn(&str) -> bool) -> Option<(String, f64)> {
        let codes: Vec<_> = self.codes.iter().filter(|(_, code)| allowed(code)).collect();
        // With only one candidate the detector would always be certain, so `detect` then considers
        // all languages.
        let among: Vec<Lang> = codes.iter().map(|(lang, _)| *lang).collect();
        let found = detect(text, &among)?;
        let (_, code) = codes.iter().find(|(lang, _)| *lang == found.lang)?;
        Some((code.clone(), (1000.0 * found.confidence).round() / 10.0))
    }

    /// The fallback: English, as in LibreTranslate, or the first language.
    fn first(&self, allowed: impl Fn(&str) -> bool) -> String {
        let known =
            || self.codes.iter().map(|(_, code)| code).chain(self.routes.keys()).filter(|c| allowed(c));
        known().find(|code| *code == "en").or_else(|| known().next()).cloned().unwrap_or_default()
    }
}

/// Adds routes through two models between languages that no single model connects.
fn add_indirect(routes: &mut BTreeMap<String, BTreeMap<String, Route>>) {
    let direct = routes.clone();
    for (source, targets) in routes.iter_mut() {
        for (middle, first) in direct.get(source).into_iter().flatten() {
            let ([first], Some(further)) = (first.as_slice(), direct.get(middle)) else { continue };
            // A multilingual model already connects all languages.
            if targets.len() == direct.len() {
                break;
            }
            for (target, second) in further {
                if let [second] = second.as_slice() {
                    targets.entry(target.clone()).or_insert_with(|| vec![*first, *second]);
                }
            }
        }
    }
}

/// The confidence from which the detected language is used even if there is no route from it.
const CONFIDENT: f64 = 90.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn languages(pairs: &[(&str, &str)]) -> Languages {
        let pairs: Vec<_> = pairs.iter().map(|(s, t)| Pairs::One(canonical(s), canonical(t))).collect();
        Languages::new(&pairs)
    }

    fn stage(model: usize) -> Stage {
        Stage { model, pair: None }
    }

    #[test]
    fn a_model_of_many_languages_leads_everywhere() {
        let all = ["de", "en", "fr", "zh-Hans"].map(str::to_owned).to_vec();
        let one = Pairs::One("en".into(), "de".into());
        let languages = Languages::new(&[Pairs::All(all), one]);
        // A bilingual model is preferred.
        assert_eq!(languages.route("en", "de").unwrap(), &[stage(1)]);
        assert_eq!(languages.route("de", "zh-Hans").unwrap(), &[Stage { model: 0, pair: Some((0, 3)) }]);
        let sources: Vec<_> = languages.sources().collect();
        assert_eq!(sources.len(), 4);
        assert!(sources.iter().all(|(_, targets)| targets.len() == 4), "{sources:?}");
        for (asked, known) in [("zho_Hans", "zh-Hans"), ("deu_Latn", "de"), ("de-AT", "de")] {
            assert_eq!(languages.known(asked).unwrap(), known);
        }
        assert_eq!(languages.detect("Это обычное русское предложение.").1, 0.0);
        assert_eq!(languages.detect("Il fait beau aujourd'hui et les enfants jouent dehors.").0, "fr");
    }

    #[test]
    fn what_has_no_model_of_its_own_goes_through_two() {
        let languages = languages(&[("de", "en"), ("en", "fr"), ("en", "de")]);
        assert_eq!(languages.route("de", "en").unwrap(), &[stage(0)]);
        assert_eq!(languages.route("de", "fr").unwrap(), &[stage(0), stage(1)]);
        assert!(languages.route("de", "de").unwrap().is_empty());
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
        // Languages that are only targets are detected, too; texts of a few words are assigned to a
        // language that can be translated.
        let german =
            "Das Wetter war schön, als sie nach Hause kamen, und so gingen sie mit den Kindern hinaus.";
        assert_eq!((one.detect(german).0.as_str(), one.detect_for(german, "de").0.as_str()), ("de", "de"));
        for text in ["Hand", "Land in warm", "so", "12"] {
            assert_eq!(one.detect_for(text, "de").0, "en", "{text} is {:?}", one.detect(text));
        }
        assert!(one.detect("Good morning, how are you doing today?").1 > 0.0);
    }
}
