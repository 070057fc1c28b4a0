//! Finds models by name: in the model folder, in the local Hugging Face cache, which all Hugging
//! Face tools share, then on the hub.

use super::weights::NAMES;
use crate::store::{ModelStore, Progress, RemoteFile, RemoteModel, download, read};
use crate::{Error, Result};
use serde::Deserialize;
use serde_json::Value;
use std::env;
use std::path::{Path, PathBuf};

/// Files that a model may need besides its weights, including its card, which states the licence.
const FILES: [&str; 12] = [
    "README.md",
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "target_tokenizer.json",
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
];

/// The maximum length of a response about a model.
const MAX_RESPONSE_BYTES: u64 = 16 << 20;

/// The folder of a model: `name` if that is a folder, else the model of that name in the model
/// folder ([`ModelStore`]) or in the local Hugging Face cache, else the one on the hub, which is
/// downloaded into the cache.
///
/// A path that is neither a folder nor looks like a name on the hub (`organisation/model`) is
/// returned unchanged, and opening it reports what is wrong.
pub fn resolve(name: impl AsRef<Path>) -> Result<PathBuf> {
    resolve_with(name.as_ref(), &mut |_| ())
}

/// The same with progress reports of the download.
pub fn resolve_with(path: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<PathBuf> {
    let installed =
        path.to_str().filter(|_| !path.exists()).and_then(|name| ModelStore::from_env().find(name));
    match installed {
        Some(folder) => Ok(folder),
        None => Hub::from_env().resolve(path, progress),
    }
}

/// The model with this name on the hub: the files to download, and its licence.
pub fn find_on_hub(name: &str) -> Result<RemoteModel> {
    let hub = Hub::from_env();
    if !is_name(name) {
        let message = "is not a name on the hub, which is organisation/model";
        return Err(Error::file(name, message));
    }
    if hub.offline {
        return Err(Error::file(name, "HF_HUB_OFFLINE says not to fetch it"));
    }
    hub.find(name).map(|(model, _)| model)
}

/// Where to look for models.
#[derive(Debug)]
struct Hub {
    /// The folder of the cache.
    cache: PathBuf,
    /// Whether access to the hub is disabled.
    offline: bool,
    endpoint: String,
    /// The access token for private models.
    token: Option<String>,
}

/// The hub's information about a model.
#[derive(Debug, Deserialize)]
struct Info {
    sha: String,
    siblings: Vec<Sibling>,
    #[serde(default, rename = "cardData")]
    card: Option<Value>,
    #[serde(default)]
    tags: Vec<String>,
}

/// A file of a model.
#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    lfs: Option<LargeFile>,
}

/// A file in Git LFS.
#[derive(Debug, Deserialize)]
struct LargeFile {
    #[serde(default)]
    sha256: Option<String>,
}

impl Info {
    fn licence(&self) -> Option<String> {
        let stated = match self.card.as_ref().and_then(|card| card.get("license")) {
            Some(Value::String(name)) => Some(name.clone()),
            Some(Value::Array(names)) => {
                Some(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
            }
            _ => None,
        };
        let tagged = || self.tags.iter().find_map(|tag| tag.strip_prefix("license:")).map(str::to_owned);
        stated.filter(|name| !name.is_empty()).or_else(tagged)
    }
}

impl Hub {
    fn from_env() -> Self {
        let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || {
            let cache = folder("XDG_CACHE_HOME").or_else(|| Some(env::home_dir()?.join(".cache")));
            cache.unwrap_or_default().join("huggingface")
        };
        let home = folder("HF_HOME").unwrap_or_else(home);
        let cache = folder("HF_HUB_CACHE").unwrap_or_else(|| home.join("hub"));
        let offline = env::var("HF_HUB_OFFLINE").unwrap_or_default().to_lowercase();
        // The token that the Hugging Face tools store after a login.
        let token = env::var("HF_TOKEN").or_else(|_| std::fs::read_to_string(home.join("token")));
        Hub {
            cache: std::path::absolute(&cache).unwrap_or(cache),
            offline: ["1", "true", "yes", "on"].contains(&offline.as_str()),
            endpoint: env::var("HF_ENDPOINT").unwrap_or_else(|_| "https://huggingface.co".into()),
            token: token.ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()),
        }
    }

    fn resolve(&self, path: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<PathBuf> {
        let Some(name) = path.to_str().filter(|name| !path.exists() && is_name(name)) else {
            return Ok(path.to_path_buf());
        };
        let place = self.cache.join(format!("models--{}", name.replace('/', "--")));
        if let Some(folder) = snapshot(&place) {
            return Ok(folder);
        }
        let missing =
            format!("there is no such folder, and the cache has no such model in {}", place.display());
        if self.offline {
            return Err(Error::file(path, format!("{missing}; HF_HUB_OFFLINE says not to fetch it")));
        }
        let fetched = self.fetch(name, &place, progress);
        fetched.map_err(|why| Error::file(path, format!("{missing}; {} says: {why}", self.endpoint)))
    }

    /// The model with this name on the hub, and the hash of its revision.
    fn find(&self, name: &str) -> Result<(RemoteModel, String)> {
        let endpoint = self.endpoint.trim_end_matches('/');
        let url = format!("{endpoint}/api/models/{name}/revision/main?blobs=true");
        let answer = read(&url, MAX_RESPONSE_BYTES, self.token.as_deref())?;
        let info: Info = serde_json::from_slice(&answer)
            .map_err(|e| Error::file(&url, format!("the answer is odd: {e}")))?;
        if !is_hash(&info.sha) {
            return Err(Error::file(&url, format!("{:?} is not a revision", info.sha)));
        }
        let there: Vec<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
        let wanted = wanted(&there).map_err(|message| Error::file(name, message))?;
        let files = wanted.iter().map(|file| {
            let known = info.siblings.iter().find(|known| known.rfilename == *file);
            RemoteFile {
                name: (*file).to_owned(),
                // Use the hash of the revision, so that all files are of the same one.
                location: format!("{endpoint}/{name}/resolve/{}/{file}", info.sha),
                bytes: known.and_then(|known| known.size),
                sha256: known.and_then(|known| known.lfs.as_ref()?.sha256.clone()),
                unpacked_sha256: None,
            }
        });
        let model = RemoteModel {
            name: name.to_owned(),
            version: Some(info.sha.clone()),
            licence: info.licence(),
            origin: format!("{endpoint}/{name}"),
            files: files.collect(),
            token: self.token.clone(),
            ..RemoteModel::default()
        };
        Ok((model, info.sha))
    }

    /// Downloads the files we need into the cache, except those that exist.
    fn fetch(
        &self,
        name: &str,
        place: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> std::result::Result<PathBuf, String> {
        let (model, hash) = self.find(name).map_err(|error| error.to_string())?;
        let folder = place.join("snapshots").join(&hash);
        let refs = place.join("refs");
        for folder in [&folder, &refs] {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        for file in &model.files {
            download(file, &folder, self.token.as_deref(), progress).map_err(|error| error.to_string())?;
        }
        let main = refs.join("main");
        std::fs::write(&main, &hash).map_err(|e| format!("{}: {e}", main.display()))?;
        Ok(folder)
    }
}

/// Whether this can be the name of a model on the hub.
fn is_name(name: &str) -> bool {
    let plain = |part: &str| {
        let letters = part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        letters && !part.is_empty() && !part.starts_with(['.', '-']) && !part.contains("..")
    };
    name.split_once('/').is_some_and(|(organisation, model)| plain(organisation) && plain(model))
}

fn is_hash(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The folder of a model's main revision in the cache, if it is complete.
fn snapshot(place: &Path) -> Option<PathBuf> {
    let hash = std::fs::read_to_string(place.join("refs").join("main")).ok()?;
    let folder = place.join("snapshots").join(Some(hash.trim()).filter(|hash| is_hash(hash))?);
    let has = |name: &str| folder.join(name).exists();
    let weights = NAMES.iter().any(|(name, ..)| has(name));
    let text = has("tokenizer.json") || has("source.spm") || has("sentencepiece.bpe.model");
    (has("config.json") && weights && text).then_some(folder)
}

/// The files of a model on the hub to download, weights last.
fn wanted<'a>(there: &[&'a str]) -> std::result::Result<Vec<&'a str>, String> {
    let mut files: Vec<&str> = there.iter().copied().filter(|file| FILES.contains(file)).collect();
    if !files.contains(&"config.json") {
        return Err("that model has no config.json".into());
    }
    let Some((weights, ..)) = NAMES.iter().find(|(name, ..)| there.contains(name)) else {
        return Err(format!("that model has none of {}", NAMES.map(|(name, ..)| name).join(", ")));
    };
    // An index stands for the numbered files of its name.
    if let Some(whole) = weights.strip_suffix(".index.json")
        && let Some((stem, ending)) = whole.rsplit_once('.')
    {
        let is_part = |file: &&&str| {
            file.strip_prefix(stem).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(ending))
                && !file.contains('/')
        };
        files.extend(there.iter().filter(is_part));
    }
    files.extend(there.iter().filter(|file| *file == weights));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn offline(cache: &Path) -> Hub {
        let endpoint = "http://127.0.0.1:9".into();
        Hub { cache: cache.to_path_buf(), offline: true, endpoint, token: None }
    }

    #[test]
    fn names_look_like_names() {
        for name in ["Helsinki-NLP/opus-mt-en-de", "a/b", "x_1/y.2"] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["model", "a/b/c", "/a", "a/", "../b", "a/..", "./b", "~/b", "a b/c", "a/b\\c", "-a/b", "a/x..y"]
        {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_folder_wins_and_other_paths_come_back() {
        let cache = tempfile::tempdir().unwrap();
        let hub = offline(cache.path());
        assert_eq!(hub.resolve(cache.path(), &mut |_| ()).unwrap(), cache.path());
        for path in ["no-such-model", "no/such/model", "./no-such"] {
            assert_eq!(hub.resolve(Path::new(path), &mut |_| ()).unwrap(), Path::new(path));
        }
    }

    #[test]
    fn the_cache_is_searched_and_named() {
        let cache = tempfile::tempdir().unwrap();
        let hub = offline(cache.path());
        let place = cache.path().join("models--org--name");
        let folder = place.join("snapshots").join("0123abc");
        let refusal = || hub.resolve(Path::new("org/name"), &mut |_| ()).unwrap_err().to_string();
        let want = format!(
            "org/name: there is no such folder, and the cache has no such model in {}; HF_HUB_OFFLINE says not to fetch it",
            place.display()
        );
        assert_eq!(refusal(), want);
        fs::create_dir_all(place.join("refs")).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(place.join("refs").join("main"), "0123abc\n").unwrap();
        // Incomplete until all files exist.
        for file in ["config.json", "source.spm", "pytorch_model.bin"] {
            assert_eq!(refusal(), want, "before {file}");
            fs::write(folder.join(file), "").unwrap();
        }
        assert_eq!(hub.resolve(Path::new("org/name"), &mut |_| ()).unwrap(), folder);
        // A reference that leads outside is ignored.
        for reference in ["../../../etc", "", "0123abcd"] {
            fs::write(place.join("refs").join("main"), reference).unwrap();
            assert_eq!(refusal(), want);
        }
    }

    #[test]
    fn only_what_is_needed_is_fetched() {
        let all =
            ["README.md", "config.json", "source.spm", "tf_model.h5", "pytorch_model.bin", "rust_model.ot"];
        assert_eq!(wanted(&all).unwrap(), ["README.md", "config.json", "source.spm", "pytorch_model.bin"]);
        let both = ["pytorch_model.bin", "model.safetensors", "config.json"];
        assert_eq!(wanted(&both).unwrap(), ["config.json", "model.safetensors"]);
        let parts = [
            "config.json",
            "model-1-of-2.safetensors",
            "model-2-of-2.safetensors",
            "x/model-1.safetensors",
            "model.safetensors.index.json",
            "pytorch_model.bin",
            "models.safetensors",
        ];
        assert_eq!(
            wanted(&parts).unwrap(),
            [
                "config.json",
                "model-1-of-2.safetensors",
                "model-2-of-2.safetensors",
                "model.safetensors.index.json"
            ]
        );
        assert_eq!(wanted(&["pytorch_model.bin"]).unwrap_err(), "that model has no config.json");
        assert!(wanted(&["config.json", "tf_model.h5"]).unwrap_err().starts_with("that model has none of"));
    }

    #[cfg(feature = "hub")]
    #[test]
    fn what_cannot_be_reached_is_named() {
        let cache = tempfile::tempdir().unwrap();
        let hub = Hub { offline: false, ..offline(cache.path()) };
        let error = hub.resolve(Path::new("org/name"), &mut |_| ()).unwrap_err().to_string();
        let place = cache.path().join("models--org--name");
        let start = format!(
            "org/name: there is no such folder, and the cache has no such model in {}; http://127.0.0.1:9 says: ",
            place.display()
        );
        assert!(error.starts_with(&start), "{error}");
    }
}
