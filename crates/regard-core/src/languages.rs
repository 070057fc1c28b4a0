//! Language codes: their spellings in models and in use, and which of a model's codes is meant.
//!
//! A code is a language (ISO 639-1 `de`, ISO 639-3 `deu`), optionally with a script (`deu_Latn`) or
//! a region (`de_DE`), and possibly written as a token (`__de__`, `<2de>`, `>>deu<<`).

/// The codes of one language: ISO 639-1 first, then ISO 639-3, then alternatives in use (the main
/// member of a macrolanguage, the code of ISO 639-2/B, or a withdrawn one).
const LANGUAGES: &[&[&str]] = &[
    &["af", "afr"],
    &["ak", "aka"],
    &["am", "amh"],
    &["ar", "ara", "arb"],
    &["as", "asm"],
    &["av", "ava"],
    &["ay", "aym", "ayr"],
    &["az", "aze", "azj"],
    &["ba", "bak"],
    &["be", "bel"],
    &["bg", "bul"],
    &["bm", "bam"],
    &["bn", "ben"],
    &["bo", "bod", "tib"],
    &["br", "bre"],
    &["bs", "bos"],
    &["ca", "cat"],
    &["ce", "che"],
    &["cs", "ces", "cze"],
    &["cv", "chv"],
    &["cy", "cym", "wel"],
    &["da", "dan"],
    &["de", "deu", "ger"],
    &["dv", "div"],
    &["dz", "dzo"],
    &["ee", "ewe"],
    &["el", "ell", "gre"],
    &["en", "eng"],
    &["eo", "epo"],
    &["es", "spa"],
    &["et", "est", "ekk"],
    &["eu", "eus", "baq"],
    &["fa", "fas", "pes", "per"],
    &["ff", "ful", "fuv"],
    &["fi", "fin"],
    &["fj", "fij"],
    &["fo", "fao"],
    &["fr", "fra", "fre"],
    &["fy", "fry"],
    &["ga", "gle"],
    &["gd", "gla"],
    &["gl", "glg"],
    &["gn", "grn", "gug"],
    &["gu", "guj"],
    &["ha", "hau"],
    &["he", "heb", "iw"],
    &["hi", "hin"],
    &["hr", "hrv"],
    &["ht", "hat"],
    &["hu", "hun"],
    &["hy", "hye", "arm"],
    &["id", "ind", "in"],
    &["ig", "ibo"],
    &["is", "isl", "ice"],
    &["it", "ita"],
    &["iu", "iku"],
    &["ja", "jpn"],
    &["jv", "jav", "jw"],
    &["ka", "kat", "geo"],
    &["kg", "kon"],
    &["ki", "kik"],
    &["kk", "kaz"],
    &["kl", "kal"],
    &["km", "khm"],
    &["kn", "kan"],
    &["ko", "kor"],
    &["kr", "kau", "knc"],
    &["ks", "kas"],
    &["ku", "kur", "kmr"],
    &["ky", "kir"],
    &["la", "lat"],
    &["lb", "ltz"],
    &["lg", "lug"],
    &["li", "lim"],
    &["ln", "lin"],
    &["lo", "lao"],
    &["lt", "lit"],
    &["lv", "lav", "lvs"],
    &["mg", "mlg", "plt"],
    &["mi", "mri", "mao"],
    &["mk", "mkd", "mac"],
    &["ml", "mal"],
    &["mn", "mon", "khk"],
    &["mr", "mar"],
    &["ms", "msa", "zsm", "may"],
    &["mt", "mlt"],
    &["my", "mya", "bur"],
    &["nb", "nob"],
    &["ne", "nep", "npi"],
    &["nl", "nld", "dut"],
    &["nn", "nno"],
    &["no", "nor", "nob", "nb"],
    &["ns", "nso"],
    &["ny", "nya"],
    &["oc", "oci"],
    &["om", "orm", "gaz"],
    &["or", "ori", "ory"],
    &["os", "oss"],
    &["pa", "pan"],
    &["pl", "pol"],
    &["ps", "pus", "pbt"],
    &["pt", "por"],
    &["qu", "que", "quy"],
    &["rn", "run"],
    &["ro", "ron", "rum", "mo"],
    &["ru", "rus"],
    &["rw", "kin"],
    &["sa", "san"],
    &["sc", "srd"],
    &["sd", "snd"],
    &["se", "sme"],
    &["sg", "sag"],
    &["si", "sin"],
    &["sk", "slk", "slo"],
    &["sl", "slv"],
    &["sm", "smo"],
    &["sn", "sna"],
    &["so", "som"],
    &["sq", "sqi", "als", "alb"],
    &["sr", "srp"],
    &["ss", "ssw"],
    &["st", "sot"],
    &["su", "sun"],
    &["sv", "swe"],
    &["sw", "swa", "swh"],
    &["ta", "tam"],
    &["te", "tel"],
    &["tg", "tgk"],
    &["th", "tha"],
    &["ti", "tir"],
    &["tk", "tuk"],
    &["tl", "tgl", "fil"],
    &["tn", "tsn"],
    &["to", "ton"],
    &["tr", "tur"],
    &["ts", "tso"],
    &["tt", "tat"],
    &["tw", "twi"],
    &["ug", "uig"],
    &["uk", "ukr"],
    &["ur", "urd"],
    &["uz", "uzb", "uzn"],
    &["ve", "ven"],
    &["vi", "vie"],
    &["wo", "wol"],
    &["xh", "xho"],
    &["yi", "yid", "ydd", "ji"],
    &["yo", "yor"],
    &["za", "zha"],
    &["zh", "zho", "cmn", "chi"],
    &["zu", "zul"],
];

/// The number of similar codes that an error lists.
const SIMILAR: usize = 8;

/// The parts of a code, lowercased.
#[derive(Debug, PartialEq, Eq)]
struct Code {
    language: String,
    script: Option<String>,
    region: Option<String>,
}

/// A code without its token markers: `__de__`, `<2de>` and `>>deu<<` are `de`, `de` and `deu`.
///
/// ```
/// use regard_core::languages::bare;
/// assert_eq!(["__de__", "<2de>", ">>deu<<", "de_DE"].map(bare), ["de", "de", "deu", "de_DE"]);
/// ```
pub fn bare(code: &str) -> &str {
    let code = code.trim();
    for (start, end) in [("__", "__"), ("<2", ">"), (">>", "<<")] {
        if let Some(inner) = code.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)) {
            return inner;
        }
    }
    code
}

/// Whether a text has the form of a language code: two or three letters, optionally with a script
/// or a region.
///
/// ```
/// use regard_core::languages::is_code;
/// assert!(["de", "deu_Latn", "de_DE", "pt-BR", "ast"].into_iter().all(is_code));
/// assert!(["", "german", "d", "de_", "translate", "a b"].into_iter().all(|text| !is_code(text)));
/// ```
pub fn is_code(text: &str) -> bool {
    parse(text).is_some()
}

fn parse(code: &str) -> Option<Code> {
    let mut parts = code.split(['_', '-']);
    let letters = |part: &str, lengths: &[usize]| {
        lengths.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphabetic())
    };
    let language = parts.next().filter(|part| letters(part, &[2, 3]))?.to_ascii_lowercase();
    let (mut script, mut region) = (None, None);
    for part in parts {
        let lower = Some(part.to_ascii_lowercase());
        if script.is_none() && region.is_none() && letters(part, &[4]) {
            script = lower;
        } else if region.is_none()
            && (letters(part, &[2]) || part.len() == 3 && part.bytes().all(|b| b.is_ascii_digit()))
        {
            region = lower;
        } else {
            return None;
        }
    }
    Some(Code { language, script, region })
}

/// All codes of the language of a code, the shortest first; empty if the table does not have it.
///
/// ```
/// use regard_core::languages::codes;
/// assert_eq!(codes("deu_Latn"), ["de", "deu", "ger"]);
/// assert_eq!(codes("no")[0], "no");
/// assert!(codes("tlh").is_empty());
/// ```
pub fn codes(code: &str) -> &'static [&'static str] {
    let Some(Code { language, .. }) = parse(bare(code)) else { return &[] };
    let own = LANGUAGES.iter().find(|group| group[0] == language);
    own.or_else(|| LANGUAGES.iter().find(|group| group.contains(&language.as_str()))).copied().unwrap_or(&[])
}

/// The shortest spelling of each of a model's codes that [`find`] resolves to that code: `de` for
/// `deu_Latn`, but `zh-Hant` for `zho_Hant` if there is also a `zho_Hans`.
///
/// ```
/// use regard_core::languages::shortest;
/// let nllb = ["ace_Arab", "ace_Latn", "deu_Latn", "zho_Hans", "zho_Hant"];
/// assert_eq!(shortest(&nllb), ["ace", "ace-Latn", "de", "zh", "zh-Hant"]);
/// ```
pub fn shortest(of_model: &[&str]) -> Vec<String> {
    let spell = |(i, code): (usize, &&str)| {
        let Some(parts) = parse(code) else { return (*code).to_owned() };
        let language = codes(code).first().copied().unwrap_or(&parts.language);
        let script = parts.script.as_deref().map(|script| {
            let (first, rest) = script.split_at(1);
            format!("{language}-{}{rest}", first.to_ascii_uppercase())
        });
        let region = parts.region.as_deref().map(|region| format!("{language}-{}", region.to_uppercase()));
        let short = [Some(language.to_owned()), script, region, Some(code.replace('_', "-"))];
        let mut short = short.into_iter().flatten();
        short.find(|short| find(short, of_model) == Ok(i)).unwrap_or_else(|| (*code).to_owned())
    };
    of_model.iter().enumerate().map(spell).collect()
}

/// Whether two codes mean the same language.
fn is_same_language(a: &str, b: &str) -> bool {
    a == b || LANGUAGES.iter().any(|group| group.contains(&a) && group.contains(&b))
}

/// The script in a code or, for Chinese, the one that its region implies.
fn script_of(code: &Code) -> Option<&str> {
    let chinese = is_same_language(&code.language, "zh");
    code.script.as_deref().or(match code.region.as_deref() {
        Some("tw" | "hk" | "mo") if chinese => Some("hant"),
        Some("cn" | "sg") if chinese => Some("hans"),
        _ => None,
    })
}

/// Which of a model's codes `wanted` means; if none, similar ones.
///
/// ```
/// use regard_core::languages::find;
/// let nllb = ["eng_Latn", "deu_Latn", "zho_Hans", "zho_Hant"];
/// assert_eq!(find("de", &nllb), Ok(1));
/// assert_eq!(find("zh_TW", &nllb), Ok(3));
/// assert_eq!(find("dex", &nllb), Err(vec!["deu_Latn".to_owned()]));
/// ```
pub fn find(wanted: &str, codes: &[&str]) -> Result<usize, Vec<String>> {
    let wanted = bare(wanted);
    let same = |a: &str, b: &str| a.replace('-', "_").eq_ignore_ascii_case(&b.replace('-', "_"));
    if let Some(exact) = codes.iter().position(|code| same(code, wanted)) {
        return Ok(exact);
    }
    let Some(asked) = parse(wanted) else { return Err(similar(wanted, codes)) };
    let script = script_of(&asked);
    // Prefer the same code of the language, then the same script over an unspecified one, then the
    // same region, then simplified over traditional Chinese; then the first.
    let rank = |code: &Code| {
        let theirs = script_of(code);
        if !is_same_language(&asked.language, &code.language)
            || script.zip(theirs).is_some_and(|(a, b)| a != b)
        {
            return None;
        }
        Some((
            code.language != asked.language,
            theirs != script,
            code.region != asked.region,
            theirs == Some("hant"),
        ))
    };
    let ranked = codes.iter().enumerate().filter_map(|(i, code)| Some((rank(&parse(code)?)?, i)));
    ranked.min().map(|(_, i)| i).ok_or_else(|| similar(wanted, codes))
}

/// Codes with the same beginning, the most similar first.
fn similar(wanted: &str, codes: &[&str]) -> Vec<String> {
    let wanted = wanted.to_ascii_lowercase();
    let common = |code: &str| {
        wanted.bytes().zip(code.to_ascii_lowercase().bytes()).take_while(|(a, b)| a == b).count()
    };
    let mut found: Vec<(usize, &str)> = codes.iter().map(|code| (common(code), *code)).collect();
    found.retain(|(common, _)| *common > 0);
    found.sort_by_key(|(common, _)| std::cmp::Reverse(*common));
    found.into_iter().take(SIMILAR).map(|(_, code)| code.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_form_are_found() {
        let m2m = ["ar", "de", "en", "fa", "he", "no", "ns", "pt", "sr", "tl", "zh"];
        let nllb = [
            "arb_Arab", "deu_Latn", "eng_Latn", "heb_Hebr", "nob_Latn", "nso_Latn", "pes_Arab", "prs_Arab",
            "srp_Cyrl", "swh_Latn", "tgl_Latn", "zho_Hans", "zho_Hant",
        ];
        let mbart = ["ar_AR", "de_DE", "en_XX", "fa_IR", "pt_XX", "zh_CN"];
        for (wanted, codes, expected) in [
            ("de", &m2m[..], "de"),
            ("deu_Latn", &m2m, "de"),
            ("de_DE", &m2m, "de"),
            ("__de__", &m2m, "de"),
            ("DE-at", &m2m, "de"),
            ("iw", &m2m, "he"),
            ("nb", &m2m, "no"),
            ("nso_Latn", &m2m, "ns"),
            ("fil", &m2m, "tl"),
            ("de", &nllb, "deu_Latn"),
            ("de_DE", &nllb, "deu_Latn"),
            ("<2de>", &nllb, "deu_Latn"),
            ("fa", &nllb, "pes_Arab"),
            ("prs", &nllb, "prs_Arab"),
            ("no", &nllb, "nob_Latn"),
            ("sw", &nllb, "swh_Latn"),
            ("ar", &nllb, "arb_Arab"),
            ("zh", &nllb, "zho_Hans"),
            ("zh-Hant", &nllb, "zho_Hant"),
            ("zh_HK", &nllb, "zho_Hant"),
            ("ENG_LATN", &nllb, "eng_Latn"),
            ("en", &mbart, "en_XX"),
            ("pt_BR", &mbart, "pt_XX"),
            (">>deu<<", &mbart, "de_DE"),
            ("zho_Hans", &mbart, "zh_CN"),
        ] {
            assert_eq!(find(wanted, codes).map(|i| codes[i]), Ok(expected), "{wanted}");
        }
        assert_eq!(find("srp_Latn", &nllb), Err(vec!["srp_Cyrl".to_owned(), "swh_Latn".to_owned()]));
        assert_eq!(find("zh_TW", &mbart), Err(vec!["zh_CN".to_owned()]));
        assert_eq!(find("xx", &m2m), Err(Vec::new()));
        assert_eq!(find("", &m2m), Err(Vec::new()));
    }

    #[test]
    fn the_table_has_every_code_once_but_for_norwegian() {
        let mut codes: Vec<&str> = LANGUAGES.iter().flat_map(|group| group.iter().copied()).collect();
        codes.sort_unstable();
        let twice: Vec<&str> = codes.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
        assert_eq!(twice, ["nb", "nob"]);
        assert!(codes.iter().all(|code| matches!(code.len(), 2 | 3)));
    }
}
