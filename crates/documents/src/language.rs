//! Language codes and names, and language detection.

#[cfg(feature = "lingua")]
mod short_texts;

use regard_core::languages::codes;
use whatlang::Detector;
pub use whatlang::Lang;

/// Codes in the spelling of LibreTranslate, and the English name. Other codes of a language are in
/// [`regard_core::languages`].
const NAMES: [(&str, &str); 190] = [
    ("ace", "Acehnese"),
    ("af", "Afrikaans"),
    ("ak", "Akan"),
    ("am", "Amharic"),
    ("ar", "Arabic"),
    ("as", "Assamese"),
    ("ast", "Asturian"),
    ("av", "Avar"),
    ("awa", "Awadhi"),
    ("ay", "Aymara"),
    ("az", "Azerbaijani"),
    ("ba", "Bashkir"),
    ("ban", "Balinese"),
    ("be", "Belarusian"),
    ("bem", "Bemba"),
    ("bg", "Bulgarian"),
    ("bho", "Bhojpuri"),
    ("bm", "Bambara"),
    ("bn", "Bengali"),
    ("bo", "Tibetan"),
    ("br", "Breton"),
    ("bs", "Bosnian"),
    ("ca", "Catalan"),
    ("ce", "Chechen"),
    ("ceb", "Cebuano"),
    ("ckb", "Central Kurdish"),
    ("co", "Corsican"),
    ("cs", "Czech"),
    ("cv", "Chuvash"),
    ("cy", "Welsh"),
    ("da", "Danish"),
    ("de", "German"),
    ("dv", "Dhivehi"),
    ("dz", "Dzongkha"),
    ("ee", "Ewe"),
    ("el", "Greek"),
    ("en", "English"),
    ("eo", "Esperanto"),
    ("es", "Spanish"),
    ("et", "Estonian"),
    ("eu", "Basque"),
    ("fa", "Persian"),
    ("ff", "Fula"),
    ("fi", "Finnish"),
    ("fj", "Fijian"),
    ("fo", "Faroese"),
    ("fon", "Fon"),
    ("fr", "French"),
    ("fur", "Friulian"),
    ("fy", "Western Frisian"),
    ("ga", "Irish"),
    ("gd", "Scottish Gaelic"),
    ("gl", "Galician"),
    ("gn", "Guarani"),
    ("gsw", "Swiss German"),
    ("gu", "Gujarati"),
    ("ha", "Hausa"),
    ("haw", "Hawaiian"),
    ("he", "Hebrew"),
    ("hi", "Hindi"),
    ("hmn", "Hmong"),
    ("hne", "Chhattisgarhi"),
    ("hr", "Croatian"),
    ("ht", "Haitian Creole"),
    ("hu", "Hungarian"),
    ("hy", "Armenian"),
    ("id", "Indonesian"),
    ("ig", "Igbo"),
    ("ilo", "Ilocano"),
    ("is", "Icelandic"),
    ("it", "Italian"),
    ("iu", "Inuktitut"),
    ("ja", "Japanese"),
    ("jv", "Javanese"),
    ("ka", "Georgian"),
    ("kab", "Kabyle"),
    ("kg", "Kongo"),
    ("ki", "Kikuyu"),
    ("kk", "Kazakh"),
    ("kl", "Kalaallisut"),
    ("km", "Khmer"),
    ("kn", "Kannada"),
    ("ko", "Korean"),
    ("kr", "Kanuri"),
    ("ks", "Kashmiri"),
    ("ku", "Kurdish"),
    ("ky", "Kyrgyz"),
    ("la", "Latin"),
    ("lb", "Luxembourgish"),
    ("lg", "Ganda"),
    ("li", "Limburgish"),
    ("lij", "Ligurian"),
    ("lmo", "Lombard"),
    ("ln", "Lingala"),
    ("lo", "Lao"),
    ("lt", "Lithuanian"),
    ("lua", "Luba-Kasai"),
    ("luo", "Luo"),
    ("lus", "Mizo"),
    ("lv", "Latvian"),
    ("mai", "Maithili"),
    ("mg", "Malagasy"),
    ("mi", "Maori"),
    ("mk", "Macedonian"),
    ("ml", "Malayalam"),
    ("mn", "Mongolian"),
    ("mni", "Meitei"),
    ("mos", "Mossi"),
    ("mr", "Marathi"),
    ("ms", "Malay"),
    ("mt", "Maltese"),
    ("my", "Burmese"),
    ("nb", "Norwegian"),
    ("ne", "Nepali"),
    ("nl", "Dutch"),
    ("nn", "Norwegian Nynorsk"),
    ("ns", "Northern Sotho"),
    ("nus", "Nuer"),
    ("ny", "Nyanja"),
    ("oc", "Occitan"),
    ("om", "Oromo"),
    ("or", "Odia"),
    ("os", "Ossetian"),
    ("pa", "Punjabi"),
    ("pag", "Pangasinan"),
    ("pap", "Papiamento"),
    ("pl", "Polish"),
    ("prs", "Dari"),
    ("ps", "Pashto"),
    ("pt", "Portuguese"),
    ("pt-BR", "Portuguese (Brazil)"),
    ("qu", "Quechua"),
    ("rn", "Rundi"),
    ("ro", "Romanian"),
    ("ru", "Russian"),
    ("rw", "Kinyarwanda"),
    ("sa", "Sanskrit"),
    ("sat", "Santali"),
    ("sc", "Sardinian"),
    ("scn", "Sicilian"),
    ("sd", "Sindhi"),
    ("se", "Northern Sami"),
    ("sg", "Sango"),
    ("shn", "Shan"),
    ("si", "Sinhala"),
    ("sk", "Slovak"),
    ("sl", "Slovenian"),
    ("sm", "Samoan"),
    ("sn", "Shona"),
    ("so", "Somali"),
    ("sq", "Albanian"),
    ("sr", "Serbian"),
    ("ss", "Swati"),
    ("st", "Southern Sotho"),
    ("su", "Sundanese"),
    ("sv", "Swedish"),
    ("sw", "Swahili"),
    ("szl", "Silesian"),
    ("ta", "Tamil"),
    ("te", "Telugu"),
    ("tg", "Tajik"),
    ("th", "Thai"),
    ("ti", "Tigrinya"),
    ("tk", "Turkmen"),
    ("tl", "Tagalog"),
    ("tn", "Tswana"),
    ("to", "Tongan"),
    ("tpi", "Tok Pisin"),
    ("tr", "Turkish"),
    ("ts", "Tsonga"),
    ("tt", "Tatar"),
    ("tum", "Tumbuka"),
    ("tw", "Twi"),
    ("ug", "Uyghur"),
    ("uk", "Ukrainian"),
    ("ur", "Urdu"),
    ("uz", "Uzbek"),
    ("ve", "Venda"),
    ("vec", "Venetian"),
    ("vi", "Vietnamese"),
    ("war", "Waray"),
    ("wo", "Wolof"),
    ("xh", "Xhosa"),
    ("yi", "Yiddish"),
    ("yo", "Yoruba"),
    ("yue", "Cantonese"),
    ("za", "Zhuang"),
    ("zh-Hans", "Chinese"),
    ("zh-Hant", "Chinese (traditional)"),
    ("zu", "Zulu"),
];

/// Codes for which LibreTranslate has a special spelling.
const ALIASES: [(&str, &str); 4] = [("pb", "pt-BR"), ("zt", "zh-Hant"), ("zh", "zh-Hans"), ("no", "nb")];

/// The canonical form of a code, as it appears in responses; unknown codes are returned unchanged.
pub fn canonical(code: &str) -> String {
    let code = code.trim().replace('_', "-");
    let spelt = |code: &str| {
        let same = |other: &str| other.eq_ignore_ascii_case(code);
        let alias = ALIASES.iter().find(|(alias, _)| same(alias)).map(|(_, canonical)| *canonical);
        alias.or_else(|| NAMES.iter().map(|(code, _)| *code).find(|known| same(known)))
    };
    // Three-letter codes map to a language; a code with a script or a region is not shortened.
    let short = || codes(&code).first().filter(|_| !code.contains('-')).and_then(|code| spelt(code));
    spelt(&code).or_else(short).map_or_else(|| code.clone(), str::to_owned)
}

/// The English name for a canonical code; an unknown code is its own name.
pub fn name(code: &str) -> &str {
    NAMES.iter().find(|(c, _)| *c == code).map_or(code, |(_, name)| name)
}

/// The language with this canonical code, if it can be detected.
pub fn recognised(code: &str) -> Option<Lang> {
    codes(code).iter().find_map(|code| Lang::from_code(*code))
}

/// The result of language detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detected {
    /// The most likely language.
    pub lang: Lang,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
}

/// The most likely of these languages for a text; if fewer than two are given, of all languages.
///
/// Texts of a few words go to `lingua` if that feature is enabled and `lingua` knows all of the
/// languages; `whatlang`, which is ten times as fast and small, handles the rest.
///
/// ```
/// use regard_documents::language::{Lang, detect};
/// let found = detect("Das ist ein ganz gewöhnlicher Satz.", &[Lang::Deu, Lang::Eng]);
/// assert_eq!(found.map(|found| found.lang), Some(Lang::Deu));
/// assert_eq!(detect("12 %", &[]), None);
/// ```
pub fn detect(text: &str, among: &[Lang]) -> Option<Detected> {
    #[cfg(feature = "lingua")]
    if let Some(found) = short_texts::detect(text, among) {
        return Some(found);
    }
    let detector = if among.len() < 2 { Detector::new() } else { Detector::with_allowlist(among.to_vec()) };
    let found = detector.detect(text)?;
    Some(Detected { lang: found.lang(), confidence: found.confidence() })
}

/// The number of letters that a text needs before it is reported to be in an unexpected language.
/// In 14 languages, few sentences of that length are misclassified; single words often are.
const LETTERS: usize = 24;

/// The language of a text, if it clearly differs from the language with the code `expected`.
///
/// Languages that are hard to distinguish, such as Danish and Norwegian, count as the same. A text
/// in another script is recognised from a few letters.
///
/// ```
/// use regard_documents::language::other_than;
/// let french = "Le conseil a décidé hier de reporter la réunion à la semaine prochaine.";
/// assert_eq!(other_than(french, "en"), Some("fr"));
/// assert_eq!(other_than(french, "fr"), None);
/// assert_eq!(other_than("Bonjour", "en"), None);
/// ```
pub fn other_than(text: &str, expected: &str) -> Option<&'static str> {
    let expected = canonical(expected);
    let wanted = recognised(&expected)?;
    let text: String = text.chars().take(4_000).collect();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let found = Detector::new().detect(&text)?;
    let lang = found.lang();
    if lang == wanted || letters < 4 || are_alike(lang, wanted) {
        return None;
    }
    // A different script needs no statistics.
    let scripts = lang_scripts(wanted);
    let other_script = !scripts.is_empty() && !scripts.contains(&found.script());
    if !other_script && (letters < LETTERS || !found.is_reliable()) {
        return None;
    }
    let found = canonical(lang.code());
    NAMES.iter().find(|(code, _)| *code == found).map(|(code, _)| *code)
}

/// Whether short texts do not suffice to distinguish two languages.
fn are_alike(a: Lang, b: Lang) -> bool {
    const GROUPS: [&[Lang]; 9] = [
        &[Lang::Dan, Lang::Nob, Lang::Swe],
        &[Lang::Spa, Lang::Por, Lang::Cat],
        &[Lang::Ces, Lang::Slk],
        &[Lang::Hrv, Lang::Srp, Lang::Slv],
        &[Lang::Rus, Lang::Ukr, Lang::Bel, Lang::Bul, Lang::Mkd, Lang::Srp],
        &[Lang::Ind, Lang::Jav, Lang::Tgl],
        &[Lang::Hin, Lang::Mar, Lang::Nep],
        &[Lang::Ara, Lang::Pes, Lang::Urd],
        &[Lang::Nld, Lang::Afr],
    ];
    GROUPS.iter().any(|group| group.contains(&a) && group.contains(&b))
}

/// The scripts of a language; empty if not known for certain.
fn lang_scripts(lang: Lang) -> &'static [whatlang::Script] {
    use whatlang::Script;
    match lang {
        Lang::Eng
        | Lang::Deu
        | Lang::Fra
        | Lang::Spa
        | Lang::Ita
        | Lang::Por
        | Lang::Nld
        | Lang::Pol
        | Lang::Ces
        | Lang::Slk
        | Lang::Swe
        | Lang::Dan
        | Lang::Nob
        | Lang::Fin
        | Lang::Hun
        | Lang::Ron
        | Lang::Tur
        | Lang::Vie
        | Lang::Ind
        | Lang::Cat
        | Lang::Est
        | Lang::Lit
        | Lang::Lav
        | Lang::Hrv
        | Lang::Slv => &[Script::Latin],
        Lang::Rus | Lang::Ukr | Lang::Bul | Lang::Bel | Lang::Mkd => &[Script::Cyrillic],
        Lang::Ell => &[Script::Greek],
        Lang::Ara | Lang::Pes | Lang::Urd => &[Script::Arabic],
        Lang::Heb => &[Script::Hebrew],
        Lang::Hin | Lang::Mar | Lang::Nep => &[Script::Devanagari],
        Lang::Tha => &[Script::Thai],
        _ => &[],
    }
}

/// A warning that a text is not in the source language of the model.
///
/// ```
/// use regard_documents::language::warning;
/// assert_eq!(warning("fr", "en"), "this looks like French; this model translates from English");
/// ```
pub fn warning(found: &str, expected: &str) -> String {
    format!("this looks like {}; this model translates from {}", name(found), name(&canonical(expected)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("ger", "de"),
            ("nob", "nb"),
            ("pes", "fa"),
            ("cmn", "zh-Hans"),
            ("sr-Latn", "sr-Latn"),
        ] {
            assert_eq!(canonical(code), spelt);
        }
        assert_eq!((name("de"), name("tlh")), ("German", "tlh"));
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(NAMES.windows(2).all(|w| w[0].0 < w[1].0));
    }

    #[test]
    fn a_text_in_another_language_is_noticed() {
        let german = "Der Ausschuss hat gestern beschlossen, die Sitzung auf nächste Woche zu verschieben.";
        assert_eq!((other_than(german, "en"), other_than(german, "de")), (Some("de"), None));
        assert_eq!(other_than("Привет, мир!", "en"), Some("ru"));
        assert_eq!(other_than("今日は雨です。", "de"), Some("ja"));
        // Names, numbers, code and single words are not evidence of a language.
        for text in ["", "12 %", "Paris", "OK", "São Paulo", "git commit -m wip", "Angela Merkel"] {
            assert_eq!(other_than(text, "en"), None, "{text}");
        }
        assert_eq!(other_than(german, "tlh"), None);
    }
}
