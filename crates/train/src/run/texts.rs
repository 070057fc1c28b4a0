//! The text files of a run and their languages.

use crate::config::DataConfig;
use crate::corpus::Inputs;
use regard_core::formats::Languages;
use regard_core::languages::is_code;
use regard_core::{Error, Result};
use std::path::{Path, PathBuf};

/// The training files of a configuration.
pub fn inputs(data: &DataConfig) -> Result<Inputs> {
    let of_both = data.tsv.iter().chain(&data.pairs);
    let files: Vec<PathBuf> = of_both.cloned().collect();
    match (files.is_empty(), data.src.is_empty(), data.tgt.is_empty()) {
        (false, true, true) => Ok(Inputs::Pairs { files, languages: languages(data) }),
        (false, _, _) => {
            let field = if data.tsv.is_some() { "data.tsv" } else { "data.pairs" };
            Err(Error::config(field, "give either this or source and target files"))
        }
        (true, true, true) => {
            let message = "there is no text to train on; set data.src and data.tgt, or data.pairs";
            Err(Error::config("data.src", message))
        }
        (true, false, true) => {
            let message = "is not set: every file of data.src needs a file with its translation";
            Err(Error::config("data.tgt", message))
        }
        (true, true, false) => {
            let message = "is not set: every file of data.tgt needs a file with the text that it translates";
            Err(Error::config("data.src", message))
        }
        (true, false, false) => Ok(Inputs::Files { source: data.src.clone(), target: data.tgt.clone() }),
    }
}

/// The languages: those given, else the extensions of the files, ignoring compression; for a file
/// with both sides, a part of its name such as `en-de`.
pub fn languages(data: &DataConfig) -> Languages {
    let mut of_both = data.tsv.iter().chain(&data.pairs);
    let (source, target) = of_both.find_map(|path| pair_in_name(path)).unzip();
    let of = |given: &Option<String>, files: &[PathBuf]| {
        given.clone().or_else(|| {
            let name = files.first()?.file_name()?.to_str()?;
            let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
            let (_, extension) = name.rsplit_once('.')?;
            let is_tag = (2..=8).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_'))
                && !["txt", "text", "tsv", "csv", "tok", "raw", "src", "tgt"].contains(&extension);
            is_tag.then(|| extension.to_owned())
        })
    };
    let told = data.target_lang.clone().or_else(|| data.target_langs.first().cloned());
    Languages { source: of(&data.source_lang, &data.src).or(source), target: of(&told, &data.tgt).or(target) }
}

/// The two languages in a file name such as `train.en-de.tsv.gz`.
fn pair_in_name(path: &Path) -> Option<(String, String)> {
    let is_tag = |text: &str| text.len() == 2 && text.chars().all(|c| c.is_ascii_lowercase());
    let name = path.file_name()?.to_str()?;
    let mut pairs = name.split('.').filter_map(|part| part.split_once(['-', '_']));
    let (source, target) = pairs.rfind(|(source, target)| is_tag(source) && is_tag(target))?;
    Some((source.to_owned(), target.to_owned()))
}

/// The target language of each pair of files, if the model has several.
pub(super) fn target_languages(data: &DataConfig) -> Result<&[String]> {
    const FIELD: &str = "data.target_langs";
    let (languages, files) = (&data.target_langs, data.src.len());
    if languages.is_empty() {
        return Ok(&[]);
    }
    if data.tsv.is_some() || languages.len() != files {
        let found =
            if data.tsv.is_some() { "one file of pairs".into() } else { format!("{files} pairs of files") };
        let message = format!(
            "{} languages for {found}; give one for each pair of data.src and data.tgt",
            languages.len()
        );
        return Err(Error::config(FIELD, message));
    }
    match languages.iter().find(|code| !is_code(code)) {
        Some(code) => {
            Err(Error::config(FIELD, format!("{code:?} is not a language code such as de or pt_BR")))
        }
        None => Ok(languages),
    }
}

/// The validation files, if there are any.
pub fn validation_files(data: &DataConfig) -> Result<Option<Inputs>> {
    if let Some(file) = &data.valid_pairs {
        if data.valid_src.is_some() || data.valid_tgt.is_some() {
            return Err(Error::config("data.valid_pairs", "give either this or source and target files"));
        }
        return Ok(Some(Inputs::Pairs { files: vec![file.clone()], languages: languages(data) }));
    }
    match (&data.valid_src, &data.valid_tgt) {
        (Some(source), Some(target)) => {
            Ok(Some(Inputs::Files { source: vec![source.clone()], target: vec![target.clone()] }))
        }
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(Error::config("data.valid_tgt", "is missing; data.valid_src needs its translation"))
        }
        (None, Some(_)) => {
            Err(Error::config("data.valid_src", "is missing; data.valid_tgt needs what it translates"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_come_from_the_extensions() {
        let of = |src: &str, given: Option<&str>| {
            let data = DataConfig {
                src: vec![src.into()],
                source_lang: given.map(str::to_owned),
                ..DataConfig::default()
            };
            languages(&data).source
        };
        assert_eq!(of("a/train.en", None).as_deref(), Some("en"));
        assert_eq!(of("train.zh_Hans.gz", None).as_deref(), Some("zh_Hans"));
        assert_eq!(of("train.pt-BR.zst", None).as_deref(), Some("pt-BR"));
        assert_eq!(of("train.txt", None), None);
        assert_eq!(of("train", None), None);
        assert_eq!(of("train.v2", None), None);
        assert_eq!(of("train.en", Some("eng")).as_deref(), Some("eng"));
    }

    #[test]
    fn languages_of_a_tsv_come_from_its_name() {
        let of = |tsv: &str, given: Option<&str>| {
            let data = DataConfig {
                tsv: Some(tsv.into()),
                target_lang: given.map(str::to_owned),
                ..DataConfig::default()
            };
            let Languages { source, target } = languages(&data);
            (source.unwrap_or_default(), target.unwrap_or_default())
        };
        let pair = |source: &str, target: &str| (source.to_owned(), target.to_owned());
        assert_eq!(of("a/train.en-de.tsv", None), pair("en", "de"));
        assert_eq!(of("en_fr.tsv.gz", None), pair("en", "fr"));
        assert_eq!(of("train.en-de.tsv", Some("gsw")), pair("en", "gsw"));
        assert_eq!(of("pairs.tsv", None), pair("", ""));
        assert_eq!(of("my-data.tsv", Some("de")), pair("", "de"));
    }

    #[test]
    fn several_target_languages_have_files_each() {
        let data = |languages: &[&str], files: usize| DataConfig {
            src: vec!["a.en".into(); files],
            tgt: vec!["a.txt".into(); files],
            target_langs: languages.iter().map(|&code| code.to_owned()).collect(),
            ..DataConfig::default()
        };
        assert!(target_languages(&data(&[], 3)).unwrap().is_empty());
        assert_eq!(target_languages(&data(&["de", "pt_BR"], 2)).unwrap(), ["de", "pt_BR"]);
        assert_eq!(languages(&data(&["de", "pt_BR"], 2)).target.as_deref(), Some("de"));
        let refusal = |data: DataConfig| target_languages(&data).unwrap_err().to_string();
        assert_eq!(
            refusal(data(&["de"], 2)),
            "data.target_langs: 1 languages for 2 pairs of files; give one for each pair of data.src and data.tgt"
        );
        assert_eq!(
            refusal(data(&["german", "pt"], 2)),
            "data.target_langs: \"german\" is not a language code such as de or pt_BR"
        );
        assert!(
            refusal(DataConfig { tsv: Some("a".into()), ..data(&["de"], 1) }).contains("one file of pairs")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let refusal = |data: DataConfig| inputs(&data).unwrap_err().to_string();
        let (src, tgt) = (vec!["a.en".into()], vec!["a.de".into()]);
        assert!(refusal(DataConfig::default()).starts_with("data.src: there is no text to train on"));
        assert!(refusal(DataConfig { src, ..DataConfig::default() }).starts_with("data.tgt: is not set"));
        assert!(refusal(DataConfig { tgt, ..DataConfig::default() }).starts_with("data.src: is not set"));
    }
}
