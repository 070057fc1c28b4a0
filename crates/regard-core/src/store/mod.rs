//! Models on this machine: a folder with one folder per model, downloaded from the Hugging Face hub
//! or from a published list, or added by hand.

mod download;
pub(crate) mod http;
mod index;
mod sha256;

pub use download::{FileRecord, Progress, RemoteFile};
pub use index::read_index;

pub(crate) use download::{download, read};

use crate::formats::{Languages, Licence, Model, licence, metadata_file};
use crate::{Error, Result, replace};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The record that a download leaves beside the files of a model.
const RECORD: &str = ".download.json";
/// The maximum length of a record.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// A model that can be downloaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteModel {
    /// Its name: `organisation/model`, or its languages, as in `en-de`.
    pub name: String,
    /// Its languages, if known in advance.
    pub languages: Languages,
    /// Its version, if stated.
    pub version: Option<String>,
    /// The licence of the weights, if stated.
    pub licence: Option<String>,
    /// The list or the hub that it comes from.
    pub origin: String,
    /// Its files.
    pub files: Vec<RemoteFile>,
    /// The access token for private models; only sent to the hub.
    pub(crate) token: Option<String>,
    /// Whether the folder lacks the languages.
    pub(crate) needs_metadata: bool,
}

impl RemoteModel {
    /// The total size of its files in bytes, if known for all of them.
    pub fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The record of a download.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct DownloadRecord {
    name: String,
    origin: String,
    version: Option<String>,
    licence: Option<String>,
    files: Vec<FileRecord>,
}

/// A model in the model folder.
#[derive(Clone, Debug, Serialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The kind of its folder; `None` if it cannot be read.
    pub model_type: Option<&'static str>,
    /// Its languages.
    pub languages: Languages,
    /// The size of all its files.
    pub bytes: u64,
    /// The licence of the weights, if stated.
    pub licence: Option<Licence>,
    /// Where it was downloaded from; `None` if it was added by hand.
    pub origin: Option<String>,
    /// Its version, if stated.
    pub version: Option<String>,
    /// Why it cannot be read.
    pub problem: Option<String>,
}

/// A folder of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelStore {
    folder: PathBuf,
}

impl ModelStore {
    /// The store in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        ModelStore { folder: folder.into() }
    }

    /// The folder in `REGARD_MODELS`, else `regard/models` in the user's data folder.
    pub fn from_env() -> Self {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = || {
            let own = || Some(std::env::home_dir()?.join(".local").join("share"));
            let data = folder("XDG_DATA_HOME").or_else(|| folder("LOCALAPPDATA").filter(|_| cfg!(windows)));
            data.or_else(own).unwrap_or_default().join("regard").join("models")
        };
        ModelStore::new(folder("REGARD_MODELS").unwrap_or_else(data))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the model with this name, if it exists.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(folder_name(name)?)).filter(|folder| folder.is_dir())
    }

    /// All models, sorted by name.
    pub fn list(&self) -> Result<Vec<Installed>> {
        let io = |e| Error::io(&self.folder, e);
        let mut names = Vec::new();
        match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            entries => {
                for entry in entries.map_err(io)? {
                    let entry = entry.map_err(io)?;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    if is_plain(&name) && entry.path().is_dir() {
                        names.push(name);
                    }
                }
            }
        }
        names.sort();
        names.into_iter().map(|name| self.describe(&name)).collect()
    }

    /// Describes the model in the folder of this name.
    fn describe(&self, name: &str) -> Result<Installed> {
        let folder = self.folder.join(name);
        let record = read_record(&folder)?;
        let found = Model::describe(&folder).and_then(|description| {
            let languages = Model::languages(&folder)?;
            Ok((description.model_type, languages))
        });
        let (model_type, languages, problem) = match found {
            Ok((model_type, languages)) => (Some(model_type), languages, None),
            Err(error) => (None, Languages::default(), Some(error.to_string())),
        };
        let stated = record.as_ref().and_then(|record| record.licence.as_deref()).map(Licence::new);
        Ok(Installed {
            name: record.as_ref().map_or_else(|| name.to_owned(), |record| record.name.clone()),
            bytes: size(&folder)?,
            licence: stated.map_or_else(|| licence(&folder), |licence| Ok(Some(licence)))?,
            origin: record.as_ref().map(|record| record.origin.clone()),
            version: record.and_then(|record| record.version),
            folder,
            model_type,
            languages,
            problem,
        })
    }

    /// Downloads a model. Skips files that an earlier attempt has completed, and resumes a partial
    /// one; the model is installed once all files exist.
    pub fn install(&self, model: &RemoteModel, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Installed> {
        let Some(name) = folder_name(&model.name) else {
            return Err(Error::config("name", format!("{:?} cannot be the name of a model", model.name)));
        };
        if model.files.is_empty() {
            return Err(Error::file(&model.origin, format!("{} has no files", model.name)));
        }
        let folder = self.folder.join(&name);
        if folder.exists() {
            return self.already_installed(model, &name);
        }
        let part = self.folder.join(format!(".{name}.part"));
        fs::create_dir_all(&part).map_err(|e| Error::io(&part, e))?;
        let mut files = Vec::new();
        for file in &model.files {
            if !is_plain(&file.name) {
                return Err(Error::file(&model.origin, format!("{:?} is not the name of a file", file.name)));
            }
            files.push(download(file, &part, model.token.as_deref(), progress)?);
        }
        if model.needs_metadata
            && let Some((name, text)) = metadata_file(&model.languages)
        {
            replace(&part.join(name), |to| to.write_all(text.as_bytes()))?;
        }
        // Only install valid models.
        Model::describe(&part)?;
        let RemoteModel { name: called, origin, version, licence, .. } = model.clone();
        let record = DownloadRecord { name: called, origin, version, licence, files };
        let text = serde_json::to_string_pretty(&record).map_err(Error::other)? + "\n";
        replace(&part.join(RECORD), |to| to.write_all(text.as_bytes()))?;
        fs::rename(&part, &folder).map_err(|e| Error::io(&folder, e))?;
        self.describe(&name)
    }

    fn already_installed(&self, model: &RemoteModel, name: &str) -> Result<Installed> {
        let there = self.describe(name)?;
        if there.origin.as_ref() == Some(&model.origin) && there.version == model.version {
            return Ok(there);
        }
        let version = |version: &Option<String>| {
            version.as_ref().map_or_else(String::new, |version| format!(", version {version},"))
        };
        let origin = there.origin.as_deref().unwrap_or("another place");
        let message = format!(
            "is installed already: it comes from {origin}{}; {}{} would replace it. Remove it first, or choose another name",
            version(&there.version).trim_end_matches(','),
            model.origin,
            version(&model.version),
        );
        Err(Error::file(&there.folder, message))
    }

    /// Removes a model, or the remains of an interrupted download.
    pub fn remove(&self, name: &str) -> Result<()> {
        let missing = || Error::file(self.folder.join(name), "there is no such model");
        let folder = self.folder.join(folder_name(name).ok_or_else(missing)?);
        let part = folder_name(name).map(|name| self.folder.join(format!(".{name}.part")));
        let mut removed = false;
        for folder in [Some(folder), part].into_iter().flatten() {
            let Ok(metadata) = fs::symlink_metadata(&folder) else { continue };
            // Remove a link itself, not its target.
            match metadata.is_dir() {
                true => fs::remove_dir_all(&folder),
                false => fs::remove_file(&folder),
            }
            .map_err(|e| Error::io(&folder, e))?;
            removed = true;
        }
        if removed { Ok(()) } else { Err(missing()) }
    }

    /// The files of a model that differ from the download; `None` if there is no record.
    pub fn changed_files(&self, name: &str) -> Result<Option<Vec<String>>> {
        let missing = || Error::file(self.folder.join(name), "there is no such model");
        let folder = self.find(name).ok_or_else(missing)?;
        let Some(record) = read_record(&folder)? else { return Ok(None) };
        let is_changed = |file: &&FileRecord| {
            let path = folder.join(&file.name);
            !is_plain(&file.name) || download::record(&path).map_or(true, |found| found != **file)
        };
        Ok(Some(record.files.iter().filter(is_changed).map(|file| file.name.clone()).collect()))
    }
}

/// Whether a name has only letters, digits, hyphens, underscores and dots, and does not begin with
/// a dot: such a name cannot lead outside the folder.
pub(crate) fn is_plain(name: &str) -> bool {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@'));
    letters && !name.is_empty() && !name.starts_with(['.', '-']) && !name.contains("..")
}

/// The folder name for a model: a slash, as in names on the hub, becomes two hyphens.
fn folder_name(name: &str) -> Option<String> {
    match name.split_once('/') {
        Some((organisation, model)) if is_plain(organisation) && is_plain(model) => {
            Some(format!("{organisation}--{model}"))
        }
        None if is_plain(name) => Some(name.to_owned()),
        _ => None,
    }
}

fn read_record(folder: &Path) -> Result<Option<DownloadRecord>> {
    let path = folder.join(RECORD);
    if !path.exists() {
        return Ok(None);
    }
    let text = crate::bounded::read(&path, MAX_RECORD_BYTES)?;
    serde_json::from_slice(&text).map(Some).map_err(|e| Error::file(&path, format!("cannot be read: {e}")))
}

/// The licence recorded at download.
pub(crate) fn recorded_licence(folder: &Path) -> Option<String> {
    read_record(folder).ok().flatten()?.licence
}

/// The total size of the files in a folder, recursively.
fn size(folder: &Path) -> Result<u64> {
    let io = |e| Error::io(folder, e);
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        // Links are not followed: their targets are not in the folder.
        let metadata = entry.metadata().map_err(io)?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Reads arbitrary bytes as a list of models, for a target in `fuzz/`: no file name may lead
/// outside the folder.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing {
    use super::*;

    /// A list of models, or a model card.
    pub fn index(bytes: &[u8]) {
        let base = index::Base { index: "https://a.example/index.json", files: None };
        for model in index::parse(bytes, &base).into_iter().flatten() {
            assert!(folder_name(&model.name).is_some_and(|name| !name.contains(['/', '\\'])));
            assert!(model.files.iter().all(|file| is_plain(&file.name)), "{model:?}");
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            crate::formats::fuzzing::model_card(text);
        }
    }
}

#[cfg(test)]
mod tests;
