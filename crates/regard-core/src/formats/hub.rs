//! Models by their names on the Hugging Face hub: the local cache, which every tool of theirs
//! shares, then the hub itself.

use super::weights::NAMES;
use crate::{Error, Result};
use std::env;
use std::path::{Path, PathBuf};

/// Files that a model may need besides its weights.
#[cfg(feature = "hub")]
const FILES: [&str; 11] = [
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

/// The folder of a model: `name` if there is such a folder, else the model of that name in the
/// local Hugging Face cache, else that of the hub, whose files are fetched into the cache.
///
/// What is neither a folder nor looks like a name on the hub (`organisation/model`) comes back unchanged, and
/// opening it says what is wrong.
pub fn resolve(name: impl AsRef<Path>) -> Result<PathBuf> {
    Hub::from_env().resolve(name.as_ref())
}

/// Where models are looked for.
#[derive(Debug)]
struct Hub {
    /// The folder of the cache.
    cache: PathBuf,
    /// Whether the hub may not be asked.
    offline: bool,
    endpoint: String,
}

impl Hub {
    fn from_env() -> Self {
        let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || {
            let cache = folder("XDG_CACHE_HOME").or_else(|| Some(env::home_dir()?.join(".cache")));
            cache.unwrap_or_default().join("huggingface")
        };
        let cache =
            folder("HF_HUB_CACHE").unwrap_or_else(|| folder("HF_HOME").unwrap_or_else(home).join("hub"));
        let offline = env::var("HF_HUB_OFFLINE").unwrap_or_default().to_lowercase();
        Hub {
            // The links inside are made relative to one another, which needs one beginning.
            cache: std::path::absolute(&cache).unwrap_or(cache),
            offline: ["1", "true", "yes", "on"].contains(&offline.as_str()),
            endpoint: env::var("HF_ENDPOINT").unwrap_or_else(|_| "https://huggingface.co".into()),
        }
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
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
        self.fetch(name).map_err(|why| Error::file(path, format!("{missing}; {} says: {why}", self.endpoint)))
    }

    #[cfg(not(feature = "hub"))]
    fn fetch(&self, _: &str) -> std::result::Result<PathBuf, String> {
        Err("nothing, for this build cannot fetch models (cargo feature `hub`)".into())
    }

    /// Fetches the files that we need, those that are there already excepted.
    #[cfg(feature = "hub")]
    fn fetch(&self, name: &str) -> std::result::Result<PathBuf, String> {
        use hf_hub::api::sync::ApiBuilder;
        use hf_hub::{Cache, Repo, RepoType};
        use std::io::IsTerminal;
        let cache = Cache::new(self.cache.clone());
        let api = ApiBuilder::from_cache(cache.clone())
            .with_endpoint(self.endpoint.trim_end_matches('/').to_owned())
            .with_progress(std::io::stderr().is_terminal())
            .build()
            .map_err(|e| e.to_string())?;
        let info = api.model(name.to_owned()).info().map_err(|e| e.to_string())?;
        let there: Vec<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
        let wanted = wanted(&there)?;
        if !is_hash(&info.sha) {
            return Err(format!("{:?} is not a revision", info.sha));
        }
        // The revision by its hash, so that all files are of one.
        let repo = api.repo(Repo::with_revision(name.to_owned(), RepoType::Model, info.sha.clone()));
        for file in wanted {
            repo.get(file).map_err(|e| format!("{file}: {e}"))?;
        }
        let main = cache.model(name.to_owned());
        main.create_ref(&info.sha).map_err(|e| e.to_string())?;
        Ok(main.pointer_path(&info.sha))
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

/// The folder that the cache has for a model's main revision, if it has what it takes to be one.
fn snapshot(place: &Path) -> Option<PathBuf> {
    let hash = std::fs::read_to_string(place.join("refs").join("main")).ok()?;
    let folder = place.join("snapshots").join(Some(hash.trim()).filter(|hash| is_hash(hash))?);
    let has = |name: &str| folder.join(name).exists();
    let weights = NAMES.iter().any(|(name, ..)| has(name));
    let text = has("tokenizer.json") || has("source.spm") || has("sentencepiece.bpe.model");
    (has("config.json") && weights && text).then_some(folder)
}

/// Which of the files of a model on the hub are to be fetched, the weights last.
#[cfg(feature = "hub")]
fn wanted<'a>(there: &[&'a str]) -> std::result::Result<Vec<&'a str>, String> {
    let mut files: Vec<&str> = there.iter().copied().filter(|file| FILES.contains(file)).collect();
    if !files.contains(&"config.json") {
        return Err("that model has no config.json".into());
    }
    let Some((weights, ..)) = NAMES.iter().find(|(name, ..)| there.contains(name)) else {
        return Err(format!("that model has none of {}", NAMES.map(|(name, ..)| name).join(", ")));
    };
    // An index stands for the files of its name with a number in it.
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
        Hub { cache: cache.to_path_buf(), offline: true, endpoint: "http://127.0.0.1:9".into() }
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
        assert_eq!(hub.resolve(cache.path()).unwrap(), cache.path());
        for path in ["no-such-model", "no/such/model", "./no-such"] {
            assert_eq!(hub.resolve(Path::new(path)).unwrap(), Path::new(path));
        }
    }

    #[test]
    fn the_cache_is_searched_and_named() {
        let cache = tempfile::tempdir().unwrap();
        let hub = offline(cache.path());
        let place = cache.path().join("models--org--name");
        let folder = place.join("snapshots").join("0123abc");
        let refusal = || hub.resolve(Path::new("org/name")).unwrap_err().to_string();
        let want = format!(
            "org/name: there is no such folder, and the cache has no such model in {}; HF_HUB_OFFLINE says not to fetch it",
            place.display()
        );
        assert_eq!(refusal(), want);
        fs::create_dir_all(place.join("refs")).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(place.join("refs").join("main"), "0123abc\n").unwrap();
        // Until all is there.
        for file in ["config.json", "source.spm", "pytorch_model.bin"] {
            assert_eq!(refusal(), want, "before {file}");
            fs::write(folder.join(file), "").unwrap();
        }
        assert_eq!(hub.resolve(Path::new("org/name")).unwrap(), folder);
        // A reference that leads elsewhere leads nowhere.
        for reference in ["../../../etc", "", "0123abcd"] {
            fs::write(place.join("refs").join("main"), reference).unwrap();
            assert_eq!(refusal(), want);
        }
    }

    #[cfg(feature = "hub")]
    #[test]
    fn only_what_is_needed_is_fetched() {
        let all =
            ["README.md", "config.json", "source.spm", "tf_model.h5", "pytorch_model.bin", "rust_model.ot"];
        assert_eq!(wanted(&all).unwrap(), ["config.json", "source.spm", "pytorch_model.bin"]);
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
        let error = hub.resolve(Path::new("org/name")).unwrap_err().to_string();
        let place = cache.path().join("models--org--name");
        let start = format!(
            "org/name: there is no such folder, and the cache has no such model in {}; http://127.0.0.1:9 says: ",
            place.display()
        );
        assert!(error.starts_with(&start), "{error}");
    }
}
