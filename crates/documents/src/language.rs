//! Languages by code and name, and which language a text is in.

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
pub fn canonical(code: &str) -> String {
    let code = code.trim().replace('_', "-");
    let same = |other: &str| other.eq_ignore_ascii_case(&code);
    if let Some((_, canonical)) = ALIASES.iter().find(|(alias, _)| same(alias)) {
        return (*canonical).to_owned();
    }
    let found = NAMES.iter().find(|(c, three, _)| same(c) || (!three.is_empty() && same(three)));
    found.map_or_else(|| code.clone(), |(c, _, _)| (*c).to_owned())
}

/// The English name of a canonical code; a code that is not known is its own name.
pub fn name(code: &str) -> &str {
    NAMES.iter().find(|(c, _, _)| *c == code).map_or(code, |(_, _, name)| name)
}

/// The language of a canonical code, if it is one that can be recognised.
pub fn recognised(code: &str) -> Option<Lang> {
    let three = match code {
        "pt-BR" => "por",
        "zh-Hant" => "cmn",
        _ => NAMES.iter().find(|(c, _, _)| *c == code).map_or("", |(_, three, _)| three),
    };
    Lang::from_code(three)
}

/// Letters that a text needs before it is said to be in another language than it should be. Of 14 languages'
/// sentences of that length few are taken for another one; single words often are.
const LETTERS: usize = 24;

/// The language that a text seems to be in, if that is surely not the one of the code `expected`.
///
/// Languages that are hard to tell apart, such as Danish and Norwegian, count as one. A text in
/// another script is recognised from its first words on.
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
    // Another script needs no statistics.
    let scripts = lang_scripts(wanted);
    let other_script = !scripts.is_empty() && !scripts.contains(&found.script());
    if !other_script && (letters < LETTERS || !found.is_reliable()) {
        return None;
    }
    NAMES.iter().find(|(_, three, _)| *three == lang.code()).map(|(code, _, _)| *code)
}

/// Languages that short texts do not tell apart.
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

/// The scripts that a language is written in; none where that is not known for sure.
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

/// Says that a text is in another language than the model reads.
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
        // Names, numbers, code and a few words say nothing.
        for text in ["", "12 %", "Paris", "OK", "São Paulo", "git commit -m wip", "Angela Merkel"] {
            assert_eq!(other_than(text, "en"), None, "{text}");
        }
        assert_eq!(other_than(german, "tlh"), None);
    }
}
