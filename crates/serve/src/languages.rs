//! Languages by code and name, which way there is from one to another, and which language a text is in.

use crate::error::{ApiError, ApiResult};
use std::collections::BTreeMap;
use whatlang::{Detector, Lang};

/// Codes as LibreTranslate spells them, the three letters of ISO 639-3, and the English name.
const NAMES: [(&str, &str, &str); 86] = [
    ("af", "afr", "Afrikaans"),
    ("am", "amh", "Amharic"),
    ("ar", "ara", "Arabic"),
    ("az", "aze", "Azerbaijani"),
    ("be", "bel", "Belarusian"),
    ("bg", "bul", "Bulgarian"),
    ("bn", "ben", "Bengali"),
    ("bs", "bos", "Bosnian"),
    ("ca", "cat", "Catalan"),
    ("cs", "ces", "Czech"),
    ("cy", "cym", "Welsh"),
    ("da", "dan", "Danish"),
    ("de", "deu", "German"),
    ("el", "ell", "Greek"),
    ("en", "eng", "English"),
    ("eo", "epo", "Esperanto"),
    ("es", "spa", "Spanish"),
    ("et", "est", "Estonian"),
    ("eu", "eus", "Basque"),
    ("fa", "pes", "Persian"),
    ("fi", "fin", "Finnish"),
    ("fr", "fra", "French"),
    ("ga", "gle", "Irish"),
    ("gl", "glg", "Galician"),
    ("gu", "guj", "Gujarati"),
    ("ha", "hau", "Hausa"),
    ("he", "heb", "Hebrew"),
    ("hi", "hin", "Hindi"),
    ("hr", "hrv", "Croatian"),
    ("ht", "hat", "Haitian Creole"),
    ("hu", "hun", "Hungarian"),
    ("hy", "hye", "Armenian"),
    ("id", "ind", "Indonesian"),
    ("ig", "ibo", "Igbo"),
    ("is", "isl", "Icelandic"),
    ("it", "ita", "Italian"),
    ("ja", "jpn", "Japanese"),
    ("jv", "jav", "Javanese"),
    ("ka", "kat", "Georgian"),
    ("kk", "kaz", "Kazakh"),
    ("km", "khm", "Khmer"),
    ("kn", "kan", "Kannada"),
    ("ko", "kor", "Korean"),
    ("ky", "kir", "Kyrgyz"),
    ("la", "lat", "Latin"),
    ("lb", "ltz", "Luxembourgish"),
    ("lo", "lao", "Lao"),
    ("lt", "lit", "Lithuanian"),
    ("lv", "lav", "Latvian"),
    ("mg", "mlg", "Malagasy"),
    ("mk", "mkd", "Macedonian"),
    ("ml", "mal", "Malayalam"),
    ("mn", "mon", "Mongolian"),
    ("mr", "mar", "Marathi"),
    ("ms", "msa", "Malay"),
    ("mt", "mlt", "Maltese"),
    ("my", "mya", "Burmese"),
    ("nb", "nob", "Norwegian"),
    ("ne", "nep", "Nepali"),
    ("nl", "nld", "Dutch"),
    ("or", "ori", "Odia"),
    ("pa", "pan", "Punjabi"),
    ("pl", "pol", "Polish"),
    ("pt", "por", "Portuguese"),
    ("pt-BR", "", "Portuguese (Brazil)"),
    ("ro", "ron", "Romanian"),
    ("ru", "rus", "Russian"),
    ("si", "sin", "Sinhala"),
    ("sk", "slk", "Slovak"),
    ("sl", "slv", "Slovenian"),
    ("sq", "sqi", "Albanian"),
    ("sr", "srp", "Serbian"),
    ("sv", "swe", "Swedish"),
    ("sw", "swa", "Swahili"),
    ("ta", "tam", "Tamil"),
    ("te", "tel", "Telugu"),
    ("th", "tha", "Thai"),
    ("tl", "tgl", "Tagalog"),
    ("tr", "tur", "Turkish"),
    ("uk", "ukr", "Ukrainian"),
    ("ur", "urd", "Urdu"),
    ("uz", "uzb", "Uzbek"),
    ("vi", "vie", "Vietnamese"),
    ("yi", "yid", "Yiddish"),
    ("zh-Hans", "cmn", "Chinese"),
    ("zh-Hant", "", "Chinese (traditional)"),
];

/// Other spellings of some codes.
const ALIASES: [(&str, &str); 8] = [
    ("pb", "pt-BR"),
    ("zh", "zh-Hans"),
    ("zho", "zh-Hans"),
    ("zt", "zh-Hant"),
    ("no", "nb"),
    ("nor", "nb"),
    ("fas", "fa"),
    ("in", "id"),
];

/// The code in the form that answers have: known codes in their own spelling, any other as it was given.
pub(crate) fn canonical(code: &str) -> String {
    let code = code.trim().replace('_', "-");
    let same = |other: &str| other.eq_ignore_ascii_case(&code);
    if let Some((_, canonical)) = ALIASES.iter().find(|(alias, _)| same(alias)) {
        return (*canonical).to_owned();
    }
    let found = NAMES.iter().find(|(c, three, _)| same(c) || (!three.is_empty() && same(three)));
    found.map_or_else(|| code.clone(), |(c, _, _)| (*c).to_owned())
}

/// The English name of a canonical code; a code that is not known is its own name.
pub(crate) fn name(code: &str) -> &str {
    NAMES.iter().find(|(c, _, _)| *c == code).map_or(code, |(_, _, name)| name)
}

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
            let three = NAMES.iter().find(|(c, _, _)| c == code).map_or("", |(_, three, _)| three);
            let three = match code.as_str() {
                "pt-BR" => "por",
                "zh-Hant" => "cmn",
                _ => three,
            };
            if let Some(lang) = Lang::from_code(three).filter(|lang| codes.iter().all(|(l, _)| l != lang)) {
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
    fn codes_have_one_spelling() {
        for (code, spelt) in [
            ("EN", "en"),
            ("eng", "en"),
            ("pb", "pt-BR"),
            ("PT-br", "pt-BR"),
            ("pt_BR", "pt-BR"),
            ("zh", "zh-Hans"),
            ("ZT", "zh-Hant"),
            ("zh-hant", "zh-Hant"),
            ("tlh", "tlh"),
        ] {
            assert_eq!(canonical(code), spelt);
        }
        assert_eq!((name("de"), name("tlh")), ("German", "tlh"));
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

    #[test]
    fn the_table_is_in_order() {
        assert!(NAMES.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
