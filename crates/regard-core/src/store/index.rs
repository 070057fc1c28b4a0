//! Published lists of models: the packages of Argos Translate, and Firefox's models in both of
//! their lists (Remote Settings, and the registry of the training repository).

use super::download::{RemoteFile, is_url, read};
use super::{RemoteModel, is_plain};
use crate::formats::{Languages, compressed};
use crate::{Error, Result};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The maximum length of a list.
const MAX_INDEX_BYTES: u64 = 64 << 20;
/// Where the files listed in Firefox's Remote Settings are.
const FIREFOX_FILES: &str = "https://firefox-settings-attachments.cdn.mozilla.net/";

/// Reads the list in a file or at a URL: the newest model for each language pair. Files without an
/// address of their own are located under `files`, a URL or a folder.
pub fn read_index(location: &str, files: Option<&str>) -> Result<Vec<RemoteModel>> {
    let bytes = read(location, MAX_INDEX_BYTES, None)?;
    let base = Base { index: location, files };
    parse(&bytes, &base).map_err(|message| Error::file(location, message))
}

/// The base of relative addresses.
pub(super) struct Base<'a> {
    pub(super) index: &'a str,
    pub(super) files: Option<&'a str>,
}

impl Base<'_> {
    /// The address of a listed file. Files of a local list may be beside it.
    fn locate(&self, location: &str, published_at: Option<&str>) -> String {
        if is_url(location) {
            return location.to_owned();
        }
        let beside = PathBuf::from(self.index).with_file_name(location);
        match (self.files, published_at) {
            (Some(files), _) => join(files, location),
            (None, Some(_)) if !is_url(self.index) && beside.exists() => {
                beside.to_string_lossy().into_owned()
            }
            (None, Some(published_at)) => join(published_at, location),
            (None, None) if is_url(self.index) => {
                let folder = self.index.rsplit_once('/').map_or(self.index, |(folder, _)| folder);
                join(folder, location)
            }
            (None, None) => beside.to_string_lossy().into_owned(),
        }
    }
}

fn join(base: &str, location: &str) -> String {
    match is_url(base) {
        true => format!("{}/{}", base.trim_end_matches('/'), location.trim_start_matches('/')),
        false => Path::new(base).join(location).to_string_lossy().into_owned(),
    }
}

/// Parses a list, whose structure determines its kind.
pub(super) fn parse(bytes: &[u8], base: &Base<'_>) -> std::result::Result<Vec<RemoteModel>, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|e| format!("not JSON: {e}"))?;
    let wrong = |e: serde_json::Error| format!("an entry cannot be read: {e}");
    match &value {
        Value::Array(packages) => {
            let packages = packages.iter().map(|value| serde_json::from_value(value.clone()));
            argos(packages.collect::<std::result::Result<Vec<_>, _>>().map_err(wrong)?, base)
        }
        Value::Object(list) if list.contains_key("data") => {
            let records: Vec<Record> = serde_json::from_value(list["data"].clone()).map_err(wrong)?;
            remote_settings(records, base)
        }
        Value::Object(list) if list.contains_key("models") => {
            registry(serde_json::from_value(value.clone()).map_err(wrong)?, base)
        }
        _ => Err("is neither a list of Argos packages nor of Firefox models".into()),
    }
}

/// A package in the index of Argos Translate.
#[derive(Debug, Deserialize)]
struct Package {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    package_version: Option<String>,
    #[serde(default)]
    from_code: Option<String>,
    #[serde(default)]
    to_code: Option<String>,
    #[serde(default)]
    links: Vec<String>,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    license: Option<String>,
}

fn argos(packages: Vec<Package>, base: &Base<'_>) -> std::result::Result<Vec<RemoteModel>, String> {
    let mut models = Vec::new();
    for package in packages {
        // There are also packages of other kinds.
        let is_translation = package.kind.as_deref().is_none_or(|kind| kind == "translate");
        let (true, Some(source), Some(target)) = (is_translation, package.from_code, package.to_code) else {
            continue;
        };
        let is_usable = |link: &&String| is_url(link) || !link.contains(':');
        let Some(link) = package.links.iter().find(is_usable) else { continue };
        let file = RemoteFile {
            name: format!("{source}-{target}.argosmodel"),
            location: base.locate(link, None),
            bytes: package.size,
            sha256: package.sha256,
            unpacked_sha256: None,
        };
        let mut model = RemoteModel::new(&source, &target, base.index)?;
        (model.version, model.licence, model.files) = (package.package_version, package.license, vec![file]);
        models.push((true, model));
    }
    Ok(newest(models))
}

/// A file in Firefox's Remote Settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    name: String,
    file_type: String,
    #[serde(alias = "fromLang")]
    source_language: String,
    #[serde(alias = "toLang")]
    target_language: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    architecture: Option<String>,
    #[serde(default)]
    decompressed_hash: Option<String>,
    #[serde(default, rename = "filter_expression")]
    filter_expression: Option<String>,
    attachment: Attachment,
}

#[derive(Debug, Deserialize)]
struct Attachment {
    location: String,
    #[serde(default)]
    hash: Option<String>,
    #[serde(default)]
    size: Option<u64>,
}

/// The kinds of files of a model, with their names in the registry.
const KINDS: [(&str, &str); 5] = [
    ("model", "model"),
    ("lex", "lexicalShortlist"),
    ("vocab", "vocab"),
    ("srcvocab", "srcVocab"),
    ("trgvocab", "trgVocab"),
];

fn remote_settings(records: Vec<Record>, base: &Base<'_>) -> std::result::Result<Vec<RemoteModel>, String> {
    type Key = (String, String, Option<String>, Option<String>, Option<String>);
    let mut groups: BTreeMap<Key, Vec<Record>> = BTreeMap::new();
    for record in records {
        // Other files estimate quality.
        if KINDS.iter().any(|(kind, _)| *kind == record.file_type) {
            let languages = (record.source_language.clone(), record.target_language.clone());
            let rest =
                (record.version.clone(), record.architecture.clone(), record.filter_expression.clone());
            groups.entry((languages.0, languages.1, rest.0, rest.1, rest.2)).or_default().push(record);
        }
    }
    let mut models = Vec::new();
    for ((source, target, version, _, filter), records) in groups {
        let has = |kind: &str| records.iter().any(|record| record.file_type == kind);
        if !has("model") || !(has("vocab") || has("srcvocab") && has("trgvocab")) {
            continue;
        }
        let mut model = RemoteModel::firefox(&source, &target, base.index)?;
        model.version = version;
        for record in records {
            let Attachment { location, hash, size } = record.attachment;
            let location = base.locate(&location, Some(FIREFOX_FILES));
            let name = named(&record.name, &location)?;
            let is_packed = compressed::without_ending(&name) != name;
            let unpacked_sha256 = record.decompressed_hash.filter(|_| is_packed);
            model.files.push(RemoteFile { name, location, bytes: size, sha256: hash, unpacked_sha256 });
        }
        // A model with a filter is only for some channels and systems.
        models.push((filter.is_none_or(|filter| filter.is_empty()), model));
    }
    Ok(newest(models))
}

/// The registry of Firefox's models.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Registry {
    base_url: String,
    models: BTreeMap<String, Vec<RegistryModel>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistryModel {
    source_language: String,
    target_language: String,
    #[serde(default)]
    release_status: Option<String>,
    #[serde(default)]
    version: Option<String>,
    files: BTreeMap<String, Option<RegistryFile>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistryFile {
    path: String,
    #[serde(default)]
    uncompressed_hash: Option<String>,
}

fn registry(list: Registry, base: &Base<'_>) -> std::result::Result<Vec<RemoteModel>, String> {
    let mut models = Vec::new();
    for found in list.models.into_values().flatten() {
        let mut model = RemoteModel::firefox(&found.source_language, &found.target_language, base.index)?;
        model.version = found.version;
        for (kind, file) in found.files.into_iter().filter_map(|(kind, file)| Some((kind, file?))) {
            if !KINDS.iter().any(|(_, known)| *known == kind) {
                continue;
            }
            let location = base.locate(&file.path, Some(&list.base_url));
            let name = named(file.path.rsplit('/').next().unwrap_or_default(), &location)?;
            let unpacked_sha256 = file.uncompressed_hash;
            model.files.push(RemoteFile { name, location, unpacked_sha256, ..RemoteFile::default() });
        }
        let is_released = found.release_status.is_some_and(|status| status.starts_with("Release"));
        models.push((is_released, model));
    }
    Ok(newest(models))
}

/// The name of a file, with the extension of a compressed one if that is what is downloaded.
fn named(name: &str, location: &str) -> std::result::Result<String, String> {
    if !is_plain(name) {
        return Err(format!("{name:?} is not the name of a file"));
    }
    let ending = &location[compressed::without_ending(location).len()..];
    Ok(if name.ends_with(ending) { name.to_owned() } else { format!("{name}{ending}") })
}

/// The newest model for each language pair, preferring released ones.
fn newest(models: Vec<(bool, RemoteModel)>) -> Vec<RemoteModel> {
    let version = |model: &RemoteModel| -> Vec<u64> {
        let parts = model.version.as_deref().unwrap_or_default().split('.');
        parts.map(|part| part.parse().unwrap_or(0)).collect()
    };
    let mut best: BTreeMap<String, (bool, RemoteModel)> = BTreeMap::new();
    for (released, model) in models {
        let better =
            |(known, other): &(bool, RemoteModel)| (released, version(&model)) > (*known, version(other));
        if best.get(&model.name).is_none_or(better) {
            best.insert(model.name.clone(), (released, model));
        }
    }
    best.into_values().map(|(_, model)| model).collect()
}

impl RemoteModel {
    fn new(source: &str, target: &str, origin: &str) -> std::result::Result<Self, String> {
        let name = format!("{source}-{target}");
        if !is_plain(&name) {
            return Err(format!("{source:?} and {target:?} are not codes of languages"));
        }
        let languages = Languages { source: Some(source.to_owned()), target: Some(target.to_owned()) };
        Ok(RemoteModel { name, languages, origin: origin.to_owned(), ..RemoteModel::default() })
    }

    /// A model that needs a metadata file stating its languages.
    fn firefox(source: &str, target: &str, origin: &str) -> std::result::Result<Self, String> {
        Ok(RemoteModel { needs_metadata: true, ..Self::new(source, target, origin)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Base<'_> = Base { index: "https://a.example/v1/index.json", files: None };

    fn of(text: &str) -> std::result::Result<Vec<RemoteModel>, String> {
        parse(text.as_bytes(), &LIST)
    }

    #[test]
    fn argos_packages_are_found_by_their_languages() {
        let models = of(
            r#"[{"type": "translate", "from_code": "en", "to_code": "de", "package_version": "1.9",
                 "links": ["ipfs://x", "https://b.example/en_de.argosmodel"]},
                {"from_code": "en", "to_code": "de", "package_version": "1.10", "links": ["en_de-1_10.argosmodel"],
                 "sha256": "ab", "size": 5, "license": "cc0-1.0"},
                {"type": "sbd", "links": ["c"]}]"#,
        )
        .unwrap();
        assert_eq!(models.len(), 1);
        let RemoteModel { name, version, licence, files, .. } = &models[0];
        assert_eq!(
            (name.as_str(), version.as_deref(), licence.as_deref()),
            ("en-de", Some("1.10"), Some("cc0-1.0"))
        );
        assert_eq!(files[0].location, "https://a.example/v1/en_de-1_10.argosmodel");
        assert_eq!((files[0].bytes, files[0].sha256.as_deref()), (Some(5), Some("ab")));
        assert!(
            of(r#"[{"from_code": "../en", "to_code": "de", "links": ["x"]}]"#).unwrap_err().contains("../en")
        );
    }

    #[test]
    fn firefox_models_are_found_in_both_of_their_lists() {
        let file = |name: &str, kind: &str, version: &str| {
            format!(
                r#"{{"name": "{name}", "fileType": "{kind}", "sourceLanguage": "en", "targetLanguage": "pt",
                    "version": "{version}", "decompressedHash": "cd", "attachment": {{"location": "w/{name}.zst", "hash": "ab", "size": 7}}}}"#
            )
        };
        let files = [
            file("model.enpt.bin", "model", "2.0"),
            file("vocab.enpt.spm", "vocab", "2.0"),
            file("q.bin", "qualityModel", "2.0"),
            // A newer one that is incomplete.
            file("model.enpt.bin", "model", "3.0"),
        ];
        let models = of(&format!(r#"{{"data": [{}]}}"#, files.join(","))).unwrap();
        assert_eq!((models.len(), models[0].version.as_deref()), (1, Some("2.0")));
        assert_eq!(models[0].files.len(), 2);
        let model = &models[0].files[0];
        assert_eq!(model.name, "model.enpt.bin.zst");
        assert_eq!(model.location, format!("{FIREFOX_FILES}w/model.enpt.bin.zst"));
        assert_eq!((model.sha256.as_deref(), model.unpacked_sha256.as_deref()), (Some("ab"), Some("cd")));

        let models = of(
            r#"{"baseUrl": "https://c.example/d", "models": {"en-pt": [
                {"sourceLanguage": "en", "targetLanguage": "pt", "releaseStatus": "Nightly", "files": {}},
                {"sourceLanguage": "en", "targetLanguage": "pt", "releaseStatus": "Release Desktop",
                 "files": {"model": {"path": "m/model.bin.gz", "uncompressedHash": "ef"}, "vocab": {"path": "m/vocab.spm.gz"},
                           "srcVocab": null, "qualityModel": {"path": "q"}}}]}}"#,
        )
        .unwrap();
        let files = &models[0].files;
        assert_eq!(files.len(), 2);
        assert_eq!(
            (files[0].location.as_str(), files[0].name.as_str()),
            ("https://c.example/d/m/model.bin.gz", "model.bin.gz")
        );
        assert_eq!(files[0].unpacked_sha256.as_deref(), Some("ef"));
        assert!(of("{}").unwrap_err().starts_with("is neither"));
        assert!(of("[3]").unwrap_err().starts_with("an entry cannot be read"));
        assert!(of("x").unwrap_err().starts_with("not JSON"));
    }

    #[test]
    fn files_may_lie_beside_a_list_or_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index.json");
        let index = index.to_str().unwrap();
        let base = Base { index, files: None };
        let near = folder.path().join("x").to_string_lossy().into_owned();
        assert_eq!(base.locate("x", Some(FIREFOX_FILES)), format!("{FIREFOX_FILES}x"));
        std::fs::write(&near, "").unwrap();
        assert_eq!(base.locate("x", Some(FIREFOX_FILES)), near);
        assert_eq!(base.locate("y", None), folder.path().join("y").to_string_lossy());
        let base = Base { index, files: Some("http://m.example/z/") };
        assert_eq!(base.locate("/x", Some(FIREFOX_FILES)), "http://m.example/z/x");
        assert_eq!(base.locate("https://o.example/x", None), "https://o.example/x");
    }
}
