//! Where the text of a run is, and in which languages it is.

use crate::config::DataConfig;
use crate::corpus::Inputs;
use regard_core::formats::Languages;
use regard_core::{Error, Result};
use std::path::{Path, PathBuf};

/// Where the text of a configuration is.
pub(crate) fn inputs(data: &DataConfig) -> Result<Inputs> {
    match &data.tsv {
        Some(tsv) if data.src.is_empty() && data.tgt.is_empty() => Ok(Inputs::Tsv(tsv.clone())),
        Some(_) => Err(Error::config("data.tsv", "give either this or source and target files")),
        None if data.src.is_empty() && data.tgt.is_empty() => {
            let message = "there is no text to train on; set data.src and data.tgt, or data.tsv";
            Err(Error::config("data.src", message))
        }
        None if data.tgt.is_empty() => {
            let message = "is not set: every file of data.src needs a file with its translation";
            Err(Error::config("data.tgt", message))
        }
        None if data.src.is_empty() => {
            let message = "is not set: every file of data.tgt needs a file with the text that it translates";
            Err(Error::config("data.src", message))
        }
        None => Ok(Inputs::Files { source: data.src.clone(), target: data.tgt.clone() }),
    }
}

/// The languages: as given, else the files' extensions, those of compression left out; or of a TSV,
/// a part of its name such as `en-de`.
pub(crate) fn languages(data: &DataConfig) -> Languages {
    let (source, target) = data.tsv.as_deref().and_then(pair_in_name).unzip();
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
    Languages {
        source: of(&data.source_lang, &data.src).or(source),
        target: of(&data.target_lang, &data.tgt).or(target),
    }
}

/// The two languages that a file such as `train.en-de.tsv.gz` is named after.
fn pair_in_name(path: &Path) -> Option<(String, String)> {
    let is_tag = |text: &str| text.len() == 2 && text.chars().all(|c| c.is_ascii_lowercase());
    let name = path.file_name()?.to_str()?;
    let mut pairs = name.split('.').filter_map(|part| part.split_once(['-', '_']));
    let (source, target) = pairs.rfind(|(source, target)| is_tag(source) && is_tag(target))?;
    Some((source.to_owned(), target.to_owned()))
}

/// The files to validate on, if there are any.
pub(super) fn validation_files(data: &DataConfig) -> Result<Option<Inputs>> {
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
    fn what_is_missing_is_named() {
        let refusal = |data: DataConfig| inputs(&data).unwrap_err().to_string();
        let (src, tgt) = (vec!["a.en".into()], vec!["a.de".into()]);
        assert!(refusal(DataConfig::default()).starts_with("data.src: there is no text to train on"));
        assert!(refusal(DataConfig { src, ..DataConfig::default() }).starts_with("data.tgt: is not set"));
        assert!(refusal(DataConfig { tgt, ..DataConfig::default() }).starts_with("data.src: is not set"));
    }
}
