//! Identifies the files of a Marian or Firefox model in a folder.

use super::yaml::{self, Yaml};
use crate::formats::Languages;
use crate::formats::compressed::{FileBytes, without_ending};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The metadata that Firefox publishes with a model.
const METADATA: &str = "metadata.json";
/// The extensions of vocabularies, SentencePiece models first.
const VOCABULARIES: [&str; 4] = [".spm", ".yml", ".yaml", ".json"];

/// The files of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct MarianFolder {
    /// The `.bin` or `.npz` file.
    pub model: PathBuf,
    /// The vocabulary of the source.
    pub source_vocabulary: PathBuf,
    /// The vocabulary of the target, which may be the same file: a joint vocabulary.
    pub target_vocabulary: PathBuf,
    /// `source.spm` and `target.spm`, which split text into the pieces of a vocabulary in YAML.
    pub segmenters: Option<(PathBuf, PathBuf)>,
    /// The lexical shortlist, if there is one.
    pub shortlist: Option<PathBuf>,
    /// From `metadata.json` or the names of the files.
    pub languages: Languages,
    /// The search settings in the decoder's configuration.
    pub search: MarianSearch,
}

/// Search settings of a decoder's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MarianSearch {
    /// `beam-size`
    pub beam: Option<usize>,
    /// `normalize`: the exponent of the length penalty.
    pub length_penalty: Option<f32>,
    /// `max-length-factor`
    pub max_length_factor: Option<f32>,
    /// `allow-unk`: whether the unknown token can be generated.
    pub allow_unknown: bool,
}

/// The supported keys of a decoder's configuration.
#[derive(Default)]
struct Config {
    models: Vec<String>,
    vocabularies: Vec<String>,
    shortlist: Vec<String>,
    search: MarianSearch,
}

impl MarianSearch {
    /// Reads one key, if it is supported. An error says what is accepted.
    fn set(&mut self, key: &str, value: &str) -> std::result::Result<(), String> {
        let wrong = |expected: &str| format!("{key}: {value}; {expected}");
        let number = || value.parse::<f32>().ok().filter(|x| x.is_finite() && *x >= 0.0);
        match key {
            "beam-size" => {
                let beam = value.parse().ok().filter(|&beam: &usize| beam > 0);
                self.beam = Some(beam.ok_or_else(|| wrong("a whole number of at least 1 is expected"))?);
            }
            "normalize" => {
                let power = number().ok_or_else(|| wrong("a number of at least 0 is expected"))?;
                self.length_penalty = Some(power);
            }
            "max-length-factor" => {
                let factor = number().filter(|&factor| factor > 0.0);
                self.max_length_factor = Some(factor.ok_or_else(|| wrong("a positive number is expected"))?);
            }
            "allow-unk" => {
                self.allow_unknown = match value.to_ascii_lowercase().as_str() {
                    "true" | "yes" | "on" => true,
                    "false" | "no" | "off" => false,
                    _ => return Err(wrong("true or false is expected")),
                }
            }
            "word-penalty" if number() != Some(0.0) => return Err(wrong("only 0 is supported")),
            _ => {}
        }
        Ok(())
    }
}

/// The languages in `metadata.json`.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    source_language: Option<String>,
    target_language: Option<String>,
}

/// The name and the text of a file that states the languages of a model; `None` if they are
/// unknown.
pub(crate) fn metadata_file(languages: &Languages) -> Option<(&'static str, String)> {
    let Languages { source: Some(source), target: Some(target) } = languages.clone() else { return None };
    let metadata = Metadata { source_language: Some(source), target_language: Some(target) };
    Some((METADATA, serde_json::to_string_pretty(&metadata).ok()? + "\n"))
}

/// A file in a folder that would be read as part of a model, other than those in `names`.
pub(super) fn other_model_file(folder: &Path, names: &[String]) -> Result<Option<String>> {
    let is_part = |name: &String| is_model(name) || is_shortlist(name) || is_vocabulary(name);
    let files = Files::list(folder)?.names.into_keys();
    Ok(files.filter(is_part).find(|name| !names.contains(name)))
}

fn is_model(name: &str) -> bool {
    // Published folders of Firefox may have a qualityModel.*.bin, which estimates quality.
    let is_other = name.starts_with("lex")
        || name.starts_with("quality")
        || name.ends_with(".optimizer.npz")
        || name.starts_with("pytorch_model");
    (name.ends_with(".npz") || name.ends_with(".bin")) && !is_other
}

fn is_shortlist(name: &str) -> bool {
    name.starts_with("lex") && name.ends_with(".bin")
}

fn is_vocabulary(name: &str) -> bool {
    let prefixes = ["vocab", "srcvocab", "trgvocab"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) && VOCABULARIES.iter().any(|e| name.ends_with(e))
}

/// The files of a folder by their names without `.gz` and `.zst`; if a file exists twice, the
/// uncompressed one.
struct Files<'a> {
    folder: &'a Path,
    names: BTreeMap<String, PathBuf>,
}

impl MarianFolder {
    /// Finds the files of a model; `None` if the folder has no `.bin` or `.npz` file that may be
    /// Marian's.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let files = Files::list(folder)?;
        let config = files.config()?;
        let Some(model) = files.model(&config)? else { return Ok(None) };
        let (source, target) = files.vocabularies(&config)?;
        let shortlist = match config.shortlist.first() {
            Some(name) => Some(files.named(name, "shortlist")?),
            None => files.only("shortlist lex*.bin", is_shortlist)?,
        };
        let is_spm = |path: &Path| file_name(path).ends_with(".spm");
        let segmenters = (files.names.get("source.spm").cloned().zip(files.names.get("target.spm").cloned()))
            .filter(|_| !is_spm(&source.1));
        let names = [&model.0, &source.0, &target.0].map(|name| name.as_str());
        let shortlist_name = shortlist.as_ref().map_or("", |(name, _)| name.as_str());
        let by_name = languages_of(names[0], &[names[1], names[2], shortlist_name]);
        Ok(Some(MarianFolder {
            languages: files.metadata()?.or(by_name),
            model: model.1,
            source_vocabulary: source.1,
            target_vocabulary: target.1,
            segmenters,
            shortlist: shortlist.map(|(_, path)| path),
            search: config.search,
        }))
    }

    /// Whether both sides share a vocabulary.
    pub fn is_joint(&self) -> bool {
        self.source_vocabulary == self.target_vocabulary
    }
}

/// A file name without the extension of a compressed file.
pub(super) fn file_name(path: &Path) -> &str {
    without_ending(path.file_name().and_then(|name| name.to_str()).unwrap_or_default())
}

type NamedFile = (String, PathBuf);

impl<'a> Files<'a> {
    fn list(folder: &'a Path) -> Result<Self> {
        let io = |e| Error::io(folder, e);
        let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            if !path.is_file() {
                continue;
            }
            let Some(full) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let name = without_ending(full).to_owned();
            let is_plain = name == full;
            if is_plain || !names.contains_key(&name) {
                names.insert(name, path);
            }
        }
        Ok(Files { folder, names })
    }

    fn wrong(&self, message: String) -> Error {
        Error::file(self.folder, message)
    }

    /// The only file with a matching name, if there is one.
    fn only(&self, what: &str, fits: impl Fn(&str) -> bool) -> Result<Option<NamedFile>> {
        let found: Vec<_> = self.names.iter().filter(|(name, _)| fits(name)).collect();
        match found[..] {
            [] => Ok(None),
            [(name, path)] => Ok(Some((name.clone(), path.clone()))),
            _ => {
                let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
                Err(self.wrong(format!("more than one {what}: {}; keep one in the folder", names.join(", "))))
            }
        }
    }

    /// A file in the folder that the configuration names.
    fn named(&self, name: &str, key: &str) -> Result<NamedFile> {
        // Configurations often have the paths of the machine that trained the model.
        let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let name = without_ending(last);
        let path = self.names.get(name);
        let path = path.ok_or_else(|| {
            self.wrong(format!("{last}, which the configuration names as {key}, is missing"))
        })?;
        Ok((name.to_owned(), path.clone()))
    }

    /// The configuration of a decoder: the only `config.yml`, `decoder.yml` or `*.decoder.yml`.
    fn config(&self) -> Result<Config> {
        let is_config = |name: &str| {
            matches!(name, "config.yml" | "decoder.yml")
                || name.ends_with(".decoder.yml")
                || name.starts_with("config.") && name.ends_with(".yml")
        };
        // With several configurations, use none of them.
        let Ok(Some((_, path))) = self.only("configuration", is_config) else { return Ok(Config::default()) };
        let bytes = FileBytes::open(&path)?;
        let text = std::str::from_utf8(bytes.bytes()).map_err(|_| Error::file(&path, "is not UTF-8 text"))?;
        let mut config = Config::default();
        for (key, value) in yaml::parse(text).map_err(|message| Error::file(&path, message))? {
            if let Yaml::Scalar(value) = &value {
                config.search.set(&key, value).map_err(|message| Error::file(&path, message))?;
            }
            let values = match value {
                Yaml::List(values) => {
                    values.iter().filter_map(|value| value.text().map(str::to_owned)).collect()
                }
                Yaml::Scalar(value) => vec![value],
                Yaml::Map(_) => Vec::new(),
            };
            match key.as_str() {
                "models" => config.models = values,
                "vocabs" => config.vocabularies = values,
                "shortlist" => {
                    config.shortlist = values.into_iter().take(1).filter(|name| !name.is_empty()).collect()
                }
                _ => {}
            }
        }
        Ok(config)
    }

    fn model(&self, config: &Config) -> Result<Option<NamedFile>> {
        match &config.models[..] {
            [] => {}
            [name] => return self.named(name, "models").map(Some),
            _ => {
                return Err(
                    self.wrong("the configuration names several models; ensembles are not read".into())
                );
            }
        }
        self.only("model", is_model)
    }

    /// The vocabularies of source and target.
    fn vocabularies(&self, config: &Config) -> Result<(NamedFile, NamedFile)> {
        match &config.vocabularies[..] {
            [] => {}
            [source, target] => return Ok((self.named(source, "vocabs")?, self.named(target, "vocabs")?)),
            _ => return Err(self.wrong("the configuration does not name two vocabularies".into())),
        }
        let side = |prefixes: [&'static str; 2]| {
            self.vocabulary(move |name| prefixes.iter().any(|p| name.starts_with(p)))
        };
        let source = side(["srcvocab", "vocab.src"])?;
        let target = side(["trgvocab", "vocab.trg"])?;
        match (source, target) {
            (Some(source), Some(target)) => return Ok((source, target)),
            (None, None) => {}
            (Some((name, _)), None) => return Err(self.wrong(format!("there is {name}, but no trgvocab*"))),
            (None, Some((name, _))) => return Err(self.wrong(format!("there is {name}, but no srcvocab*"))),
        }
        let joint = self.vocabulary(|name| name.starts_with("vocab") || name.contains(".vocab."))?;
        let joint = joint.ok_or_else(|| {
            self.wrong(
                "no vocabulary: vocab*.spm, srcvocab*.spm and trgvocab*.spm, or the same as .yml is expected"
                    .into(),
            )
        })?;
        Ok((joint.clone(), joint))
    }

    /// The only vocabulary with a matching name, SentencePiece models first.
    fn vocabulary(&self, fits: impl Fn(&str) -> bool) -> Result<Option<NamedFile>> {
        for ending in VOCABULARIES {
            let found = self.only("vocabulary", |name| fits(name) && name.ends_with(ending))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn metadata(&self) -> Result<Languages> {
        let Some(path) = self.names.get(METADATA) else { return Ok(Languages::default()) };
        let bytes = FileBytes::open(path)?;
        let metadata: Metadata =
            serde_json::from_slice(bytes.bytes()).map_err(|e| Error::file(path, format!("not JSON: {e}")))?;
        Ok(Languages { source: metadata.source_language, target: metadata.target_language })
    }
}

/// The languages in the name of a model, such as `model.enpt.intgemm.alphas.bin`: four letters
/// between dots, which must also occur in the name of another file, because `model.base.npz` names
/// no languages.
fn languages_of(model: &str, others: &[&str]) -> Languages {
    let is_pair = |part: &&str| part.len() == 4 && part.bytes().all(|b| b.is_ascii_lowercase());
    let also = |part: &&str| others.iter().any(|other| other.split('.').any(|p| p == *part));
    match model.split('.').filter(is_pair).find(also) {
        Some(pair) => Languages { source: Some(pair[..2].to_owned()), target: Some(pair[2..].to_owned()) },
        None => Languages::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
        folder
    }

    fn found(files: &[(&str, &str)]) -> (MarianFolder, Vec<String>) {
        let folder = folder(files);
        let found = MarianFolder::find(folder.path()).unwrap().expect("a model");
        let paths = [&found.model, &found.source_vocabulary, &found.target_vocabulary];
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = paths.into_iter().map(name).collect();
        names.extend(found.shortlist.as_ref().map(name));
        (found, names)
    }

    fn refusal(files: &[(&str, &str)]) -> String {
        MarianFolder::find(folder(files).path()).unwrap_err().to_string()
    }

    fn languages(source: &str, target: &str) -> Languages {
        Languages { source: Some(source.into()), target: Some(target.into()) }
    }

    #[test]
    fn folders_of_firefox_are_found() {
        let files = [
            ("lex.50.50.enpt.s2t.bin.gz", ""),
            ("model.enpt.intgemm.alphas.bin.gz", ""),
            ("model.enpt.intgemm.alphas.bin", ""),
            ("vocab.enpt.spm.zst", ""),
            ("README.md", ""),
        ];
        let (model, names) = found(&files);
        let want = [
            "model.enpt.intgemm.alphas.bin",
            "vocab.enpt.spm.zst",
            "vocab.enpt.spm.zst",
            "lex.50.50.enpt.s2t.bin.gz",
        ];
        assert_eq!(names, want);
        assert!(model.is_joint());
        assert_eq!(model.languages, languages("en", "pt"));
        let metadata = r#"{"architecture": "base", "sourceLanguage": "en", "targetLanguage": "zh_hant"}"#;
        let (model, names) = found(&[
            ("metadata.json", metadata),
            ("model.enzh.intgemm8.bin", ""),
            ("qualityModel.enzh.bin", ""),
            ("srcvocab.enzh.spm", ""),
            ("trgvocab.enzh.spm", ""),
        ]);
        assert_eq!(names, ["model.enzh.intgemm8.bin", "srcvocab.enzh.spm", "trgvocab.enzh.spm"]);
        assert_eq!((model.languages.clone(), model.is_joint()), (languages("en", "zh_hant"), false));
    }

    #[test]
    fn folders_of_marian_are_found() {
        let (model, names) = found(&[
            ("model.npz", ""),
            ("model.iter100.npz", ""),
            ("model.npz.optimizer.npz", ""),
            (
                "model.npz.decoder.yml",
                "models:\n  - /home/x/model.npz\nvocabs: [a.yml, \"b.yml\"]\nbeam-size: 6\n\
                 normalize: 0.6\nmax-length-factor: 2\nword-penalty: 0\nallow-unk: true\nquiet: true\n",
            ),
            ("a.yml", ""),
            ("b.yml", ""),
        ]);
        assert_eq!(names, ["model.npz", "a.yml", "b.yml"]);
        let search = MarianSearch {
            beam: Some(6),
            length_penalty: Some(0.6),
            max_length_factor: Some(2.0),
            allow_unknown: true,
        };
        assert_eq!((model.languages, model.segmenters, model.search), (Languages::default(), None, search));
        let (model, names) =
            found(&[("opus.npz", ""), ("opus.vocab.yml", ""), ("source.spm", ""), ("target.spm", "")]);
        assert_eq!(names, ["opus.npz", "opus.vocab.yml", "opus.vocab.yml"]);
        assert!(model.segmenters.is_some());
        assert_eq!(found(&[("model.base.npz", ""), ("vocab.spm", "")]).0.languages, Languages::default());
    }

    #[test]
    fn other_folders_are_not_models_and_unclear_ones_are_refused() {
        let none = |files: &[(&str, &str)]| MarianFolder::find(folder(files).path()).unwrap();
        assert_eq!(none(&[("pytorch_model.bin", ""), ("vocab.json", "")]), None);
        assert_eq!(none(&[("lex.enpt.bin", ""), ("qualityModel.enpt.bin.gz", "")]), None);
        for (files, want) in [
            (
                &[("a.npz", ""), ("b.bin", "")][..],
                "more than one model: a.npz, b.bin; keep one in the folder",
            ),
            (&[("model.npz", "")], "no vocabulary: vocab*.spm"),
            (
                &[("model.npz", ""), ("vocab.a.spm", ""), ("vocab.b.spm", "")],
                "more than one vocabulary: vocab.a.spm, vocab.b.spm",
            ),
            (&[("model.npz", ""), ("srcvocab.spm", "")], "there is srcvocab.spm, but no trgvocab*"),
            (
                &[("model.npz", ""), ("vocab.spm", ""), ("lex.a.bin", ""), ("lex.b.bin", "")],
                "more than one shortlist lex*.bin",
            ),
            (
                &[("model.npz", ""), ("config.yml", "models: [x.npz]")],
                "x.npz, which the configuration names as models, is missing",
            ),
            (&[("model.npz", ""), ("config.yml", "models: [a, b]")], "ensembles are not read"),
            (&[("model.npz", ""), ("vocab.spm", ""), ("metadata.json", "{")], "metadata.json: not JSON"),
            (&[("model.npz", ""), ("config.yml", "a: [")], "config.yml: line 1"),
            (
                &[("model.npz", ""), ("config.yml", "beam-size: 0")],
                "config.yml: beam-size: 0; a whole number of at least 1 is expected",
            ),
            (
                &[("model.npz", ""), ("config.yml", "normalize: nan")],
                "normalize: nan; a number of at least 0 is expected",
            ),
            (
                &[("model.npz", ""), ("config.yml", "max-length-factor: 0")],
                "max-length-factor: 0; a positive number is expected",
            ),
            (
                &[("model.npz", ""), ("config.yml", "word-penalty: 0.5")],
                "word-penalty: 0.5; only 0 is supported",
            ),
            (
                &[("model.npz", ""), ("config.yml", "allow-unk: maybe")],
                "allow-unk: maybe; true or false is expected",
            ),
        ] {
            let message = refusal(files);
            assert!(message.contains(want), "{files:?}: {message}");
        }
    }
}
