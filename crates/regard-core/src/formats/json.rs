//! The small JSON files of a model folder: read key by key, so that errors can name the key.

use crate::replace::replace;
use crate::{Error, Result, bounded};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The maximum length of a settings file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A JSON object in a file.
#[derive(Debug)]
pub(super) struct Keys {
    path: PathBuf,
    map: Map<String, Value>,
}

impl Keys {
    /// Reads a file that holds one object.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Self::parse(path, &bounded::read(path, MAX_FILE_BYTES)?)
    }

    /// Parses the text of a file.
    pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        match serde_json::from_slice(text) {
            Ok(Value::Object(map)) => Ok(Keys { path: path.to_path_buf(), map }),
            Ok(_) => Err(Error::file(path, "an object { … } is expected")),
            Err(e) => Err(Error::file(path, format!("not JSON: {e}"))),
        }
    }

    /// The same, but a missing file is an empty object.
    pub(super) fn open_if_there(path: &Path) -> Result<Self> {
        match path.try_exists() {
            Ok(false) => Ok(Keys { path: path.to_path_buf(), map: Map::new() }),
            _ => Self::open(path),
        }
    }

    /// The value of `key`, unless it is missing or null.
    pub(super) fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value.clone()).map(Some).map_err(|e| self.wrong(key, e)),
        }
    }

    /// The value of a required `key`.
    pub(super) fn need<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        self.get(key)?.ok_or_else(|| self.wrong(key, "is missing"))
    }

    /// A value of the encoder, and that of the decoder only if it differs, so that a model with
    /// equal stacks has our own form.
    pub(super) fn two(&self, encoder: &str, decoder: &str) -> Result<(usize, Option<usize>)> {
        let (encoder, decoder) = (self.need(encoder)?, self.need(decoder)?);
        Ok((encoder, Some(decoder).filter(|&decoder| decoder != encoder)))
    }

    /// The object as a structure; an error names the key that does not match.
    pub(super) fn all<T: DeserializeOwned>(&self) -> Result<T> {
        let read = |map: Map<String, Value>| serde_json::from_value::<T>(map.into());
        read(self.map.clone()).map_err(|error| {
            // Find the key without which all others can be read; if several are wrong, the first
            // that cannot be read alone.
            let others = |key: &&String| {
                let mut others = self.map.clone();
                others.remove(key.as_str());
                read(others).is_ok()
            };
            let alone =
                |key: &&String| read(Map::from_iter([((*key).clone(), self.map[*key].clone())])).is_err();
            let found = self.map.keys().find(others).or_else(|| self.map.keys().find(alone));
            let message = error.to_string();
            match found.filter(|key| !message.starts_with(&format!("{key}: "))) {
                Some(key) => self.wrong(key, message),
                None => Error::file(&self.path, message),
            }
        })
    }

    /// The object under `key`; errors name its keys with `key` as prefix.
    pub(super) fn object(&self, key: &str) -> Result<Keys> {
        Ok(Keys { path: self.path.clone(), map: self.need(key)? })
    }

    /// An error about `key`.
    pub(super) fn wrong(&self, key: &str, message: impl std::fmt::Display) -> Error {
        Error::file(&self.path, format!("{key}: {message}"))
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `key` exists, even if null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Whether it is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

/// Writes a settings file.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::file(path, e.to_string()))?;
    replace(path, |to| writeln!(to, "{text}"))
}
