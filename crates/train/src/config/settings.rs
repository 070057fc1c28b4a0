//! Reads settings from a file or the command line on top of a preset, and writes them to a file.
//!
//! The keys are those to which [`TrainConfig`] serialises, so there is no second list of them.

use std::path::Path;

use serde_json::Value;

use super::TrainConfig;
use regard_core::model::Preset;
use regard_core::{Error, Result};

/// The beginning of the error about an unknown key.
const UNKNOWN: &str = "there is no such setting";

/// Names that other programs use for some of the settings.
const ELSEWHERE: [(&str, &str); 10] = [
    ("lr", "schedule.peak"),
    ("learning_rate", "schedule.peak"),
    ("warmup_steps", "schedule.warmup"),
    ("batch_size", "batch.max_tokens"),
    ("max_steps", "steps"),
    ("max_epochs", "epochs"),
    ("num_layers", "model.encoder_layers"),
    ("layers", "model.encoder_layers"),
    ("vocab_size", "tokenizer.size"),
    ("clip_norm", "optimizer.clip"),
];

/// Derived from the tokenizer, so they cannot be set.
const COMPUTED: [&str; 2] = ["model.source_vocabulary", "model.target_vocabulary"];

impl TrainConfig {
    /// The settings of `preset`, or of the preset that the file names, else of `fallback`,
    /// overridden by the TOML `file` and then by the `key=value` texts.
    pub fn read(
        preset: Option<Preset>,
        fallback: impl FnOnce(&Value) -> Preset,
        file: Option<&Path>,
        sets: &[String],
    ) -> Result<Self> {
        let written = match file {
            Some(path) => parse(path)?,
            None => Value::Object(serde_json::Map::new()),
        };
        let preset = preset.or(named_preset(&written)).unwrap_or_else(|| fallback(&written));
        let mut config = TrainConfig::new(preset);
        if let Some(path) = file {
            config.put_written(&written, path)?;
        }
        config.preset = preset;
        // Set the kind of encoder first, because it determines which other settings exist.
        let is_kind = |set: &&String| set.split('=').next().is_some_and(|key| is_kind(key.trim()));
        for set in sets.iter().filter(is_kind).chain(sets.iter().filter(|set| !is_kind(set))) {
            config.set(set)?;
        }
        Ok(config)
    }

    /// Applies the settings of a file.
    pub fn put_file(&mut self, file: &Path) -> Result<()> {
        self.put_written(&parse(file)?, file)
    }

    fn put_written(&mut self, written: &Value, file: &Path) -> Result<()> {
        self.put_all("", written).map_err(|e| match e {
            Error::Config { field, message } => {
                Error::config(format!("{}: {field}", file.display()), message)
            }
            e => e,
        })
    }

    /// Reads a file that [`TrainConfig::to_toml`] wrote, by this build or an older one.
    pub fn load(path: &Path) -> Result<Self> {
        let written = parse(path)?;
        let preset = named_preset(&written).unwrap_or(Preset::Base);
        let mut config = TrainConfig::new(preset).without_later_settings();
        config.put_written(&written, path)?;
        Ok(config)
    }

    /// Presets have settings that files of older builds lack: their runs go on without them.
    fn without_later_settings(mut self) -> Self {
        (self.optimizer.step.muon, self.optimizer.step.r_drop) = (None, None);
        self.optimizer.r_drop_after = 0;
        self.optimizer.deepnorm = false;
        self
    }

    /// Applies one setting as `key=value`; the section may be omitted if only one section has the
    /// key.
    pub fn set(&mut self, set: &str) -> Result<()> {
        let Some((key, value)) = set.split_once('=') else {
            return Err(Error::config(set, "write it as key=value"));
        };
        let (key, text) = (key.trim(), value.trim());
        let parsed: Option<Value> = toml::from_str::<Value>(&format!("x = {text}"))
            .ok()
            .and_then(|mut t| t.get_mut("x").map(Value::take));
        // What is not TOML is an unquoted string.
        let value = parsed.unwrap_or_else(|| Value::String(text.to_owned()));
        let key = self.resolve(key)?;
        self.put(&key, value)
    }

    /// Every key; those in sections with a dot.
    pub fn keys(&self) -> Vec<String> {
        self.leaves().into_iter().map(|(key, _)| key).collect()
    }

    /// The keys whose values differ from those of `other`.
    pub fn differences(&self, other: &TrainConfig) -> Vec<String> {
        let others = other.leaves();
        let differs = |(key, value): &(String, Value)| !others.iter().any(|(k, v)| k == key && v == value);
        self.leaves().into_iter().filter(differs).map(|(key, _)| key).collect()
    }

    /// All keys with their values as text.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (String, String)> {
        self.leaves().into_iter().map(|(key, value)| (key, shown(&value)))
    }

    fn leaves(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        let Ok(Value::Object(top)) = serde_json::to_value(self) else { return all };
        for (name, value) in top {
            match value {
                Value::Object(section) => {
                    all.extend(section.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
                }
                leaf => all.push((name, leaf)),
            }
        }
        all.retain(|(key, _)| !COMPUTED.contains(&key.as_str()));
        all
    }

    /// The full name of a key that may lack its section.
    fn resolve(&self, key: &str) -> Result<String> {
        let keys = self.keys();
        if keys.iter().any(|k| k == key) {
            return Ok(key.to_owned());
        }
        if COMPUTED.iter().any(|c| *c == key || c.ends_with(&format!(".{key}"))) {
            return Err(Error::config(key, "follows from the tokenizer; set tokenizer.size"));
        }
        let fits: Vec<&String> = keys.iter().filter(|k| k.ends_with(&format!(".{key}"))).collect();
        match fits[..] {
            [only] => Ok(only.clone()),
            [] => Err(unknown(key, &keys)),
            _ => {
                let names: Vec<&str> = fits.into_iter().map(String::as_str).collect();
                Err(Error::config(key, format!("there are several; write {}", names.join(" or "))))
            }
        }
    }

    fn put_all(&mut self, section: &str, values: &Value) -> Result<()> {
        let Value::Object(values) = values else {
            return Err(Error::config(section, "a table of settings is expected"));
        };
        let keys = self.keys();
        let kinds = values.iter().filter(|(name, _)| is_kind(name));
        for (name, value) in kinds.chain(values.iter().filter(|(name, _)| !is_kind(name))) {
            let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
            let is_section = section.is_empty() && keys.iter().any(|k| k.starts_with(&format!("{name}.")));
            if is_section {
                self.put_all(name, value)?;
            } else if keys.contains(&key) {
                self.put(&key, value.clone())?;
            } else if COMPUTED.contains(&key.as_str()) {
                return Err(Error::config(key, "follows from the tokenizer; set tokenizer.size"));
            } else {
                return Err(unknown(&key, &keys));
            }
        }
        Ok(())
    }

    /// Sets one value, if it is of the right type.
    fn put(&mut self, key: &str, value: Value) -> Result<()> {
        let value = if value == "none" { Value::Null } else { value };
        let mut all = serde_json::to_value(&*self).map_err(|e| Error::config(key, e.to_string()))?;
        let place = key.split('.').try_fold(&mut all, |at, part| at.get_mut(part));
        let Some(place) = place else { return Err(unknown(key, &self.keys())) };
        let shown = shown(&value);
        *place = value;
        *self = serde_json::from_value(all)
            .map_err(|e| Error::config(key, format!("{shown} cannot be used: {e}")))?;
        Ok(())
    }

    /// All settings as TOML; unset ones are comments.
    pub fn to_toml(&self) -> String {
        let mut text = String::from("# The settings of this run, as they were in effect.\n");
        let leaves = self.leaves();
        let usual = TrainConfig::new(self.preset).leaves();
        let line = |name: &str, key: &str, value: &Value| match value {
            // Write the null explicitly, or else the preset's value would return.
            Value::Null if usual.iter().any(|(k, v)| k == name && !v.is_null()) => {
                format!("{key} = \"none\"\n")
            }
            Value::Null => format!("# {key} is not set\n"),
            value => format!("{key} = {}\n", shown(value)),
        };
        for (key, value) in leaves.iter().filter(|(key, _)| !key.contains('.')) {
            text += &line(key, key, value);
        }
        let mut section = "";
        for (name, value) in &leaves {
            let Some((of, key)) = name.split_once('.') else { continue };
            if of != section {
                text += &format!("\n[{of}]\n");
                section = of;
            }
            text += &line(name, key, value);
        }
        text
    }
}

/// The preset that a file names.
fn named_preset(written: &Value) -> Option<Preset> {
    written.get("preset").cloned().and_then(|preset| serde_json::from_value(preset).ok())
}

/// Whether a key selects a variant that determines which other settings exist; such keys are
/// applied first.
fn is_kind(key: &str) -> bool {
    matches!(key, "encoder" | "model.encoder")
}

/// A value in TOML syntax.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::Number(n) if n.is_f64() => {
            let wide = n.as_f64().unwrap_or_default();
            // Write a number that comes from an f32 with the digits that f32 needs.
            let narrow = wide as f32;
            if f64::from(narrow) == wide { format!("{narrow:?}") } else { format!("{wide:?}") }
        }
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::String(text) => toml::Value::String(text.clone()).to_string(),
        other => other.to_string(),
    }
}

fn parse(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).map_err(|e| Error::io(file, e))?;
    toml::from_str(&text).map_err(|e| Error::file(file, format!("not TOML: {e}")))
}

fn unknown(key: &str, keys: &[String]) -> Error {
    let leaf = |k: &str| k.rsplit('.').next().unwrap_or_default().to_owned();
    let apart = |k: &String| distance(key, k).min(distance(&leaf(key), &leaf(k)));
    let known = ELSEWHERE.iter().find(|(name, _)| *name == leaf(key)).map(|(_, here)| *here);
    let near = keys.iter().min_by_key(|k| (apart(k), k.len())).filter(|k| apart(k) <= 1 + key.len() / 3);
    let message = match known.or(near.map(String::as_str)) {
        Some(name) => format!("{UNKNOWN}; did you mean {name}?"),
        None => {
            let similar: Vec<&str> =
                keys.iter().filter(|k| shares_word(key, k)).map(String::as_str).take(3).collect();
            match similar[..] {
                [] => UNKNOWN.to_owned(),
                _ => format!("{UNKNOWN}; did you mean {}?", similar.join(" or ")),
            }
        }
    };
    Error::config(key, message)
}

/// Whether two names have a word of more than two letters in common.
fn shares_word(a: &str, b: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        let name = name.rsplit('.').next().unwrap_or_default();
        name.split('_').filter(|word| word.len() > 2).map(str::to_lowercase).collect()
    };
    let of_b = words(b);
    words(a).iter().any(|word| of_b.contains(word))
}

/// The edit distance with insertions, deletions, substitutions and transpositions.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Every;

    fn tiny() -> TrainConfig {
        TrainConfig::new(Preset::Tiny)
    }

    #[test]
    fn settings_by_key() {
        let mut config = tiny();
        for set in [
            "dropout=0.2",
            "schedule.peak = 0.001",
            "kind=linear",
            "model.heads=8",
            "validation.every=1 epochs",
            "clip=1",
            "steps=none",
            "epochs=3",
            "data.src=[\"a.en\", \"b.en\"]",
            "separate=true",
            "activation=gelu",
            "segmentation=unigram",
            "source_lang=en",
        ] {
            config.set(set).unwrap_or_else(|e| panic!("{set}: {e}"));
        }
        assert_eq!((config.model.dropout, config.schedule.peak, config.model.heads), (0.2, Some(0.001), 8));
        assert_eq!(
            (config.steps, config.epochs, config.optimizer.step.adam.clip),
            (None, Some(3), Some(1.0))
        );
        assert_eq!(config.validation.every, Every::Epochs(1));
        assert_eq!(config.data.src.len(), 2);
        assert_eq!(config.data.source_lang.as_deref(), Some("en"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refusal = |set: &str| tiny().set(set).unwrap_err().to_string();
        assert_eq!(refusal("dropuot=1"), "dropuot: there is no such setting; did you mean model.dropout?");
        assert_eq!(
            refusal("model.d_modle=1"),
            "model.d_modle: there is no such setting; did you mean model.d_model?"
        );
        assert_eq!(
            refusal("shedule.warmup=1"),
            "shedule.warmup: there is no such setting; did you mean schedule.warmup?"
        );
        assert_eq!(refusal("xyzzy_quux=1"), "xyzzy_quux: there is no such setting");
        assert_eq!(
            refusal("smoothing_of_labels=1"),
            "smoothing_of_labels: there is no such setting; did you mean optimizer.label_smoothing?"
        );
        assert_eq!(
            refusal("learning_rate=1"),
            "learning_rate: there is no such setting; did you mean schedule.peak?"
        );
        assert!(ELSEWHERE.iter().all(|(_, here)| tiny().keys().iter().any(|key| key == here)));
        assert_eq!(
            refusal("max_tokens=1"),
            "max_tokens: there are several; write batch.max_tokens or filters.max_tokens"
        );
        assert!(refusal("heads=many").starts_with("model.heads: \"many\" cannot be used: "));
        assert_eq!(refusal("dropout"), "dropout: write it as key=value");
        assert!(refusal("model.source_vocabulary=9").contains("follows from the tokenizer"));
    }

    #[test]
    fn a_file_and_its_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(
            &path,
            "preset = \"tiny\"\nseed = 7\n[model]\ndropout = 0.25\n[optimizer]\nema = 0.999\n",
        )
        .unwrap();
        let config = TrainConfig::read(
            None,
            |_| Preset::Big,
            Some(&path),
            &["seed=9".into(), "steps=none".into(), "epochs=2".into()],
        )
        .unwrap();
        assert_eq!((config.preset, config.seed, config.model.dropout), (Preset::Tiny, 9, 0.25));
        assert_eq!(config.optimizer.ema, Some(0.999));
        let other = TrainConfig::read(Some(Preset::Small), |_| Preset::Big, Some(&path), &[]).unwrap();
        assert_eq!((other.preset, other.model.d_model), (Preset::Small, 512));

        let saved = config.to_toml();
        assert!(saved.contains("dropout = 0.25\n") && saved.contains("beta2 = 0.98\n"), "{saved}");
        assert!(saved.contains("# minutes is not set\n") && saved.contains("steps = \"none\"\n"), "{saved}");
        std::fs::write(&path, &saved).unwrap();
        assert_eq!(TrainConfig::load(&path).unwrap(), config);

        std::fs::write(&path, "[model]\ndrop_out = 1\n").unwrap();
        let error = TrainConfig::load(&path).unwrap_err().to_string();
        assert!(
            error
                .ends_with("run.toml: model.drop_out: there is no such setting; did you mean model.dropout?"),
            "{error}"
        );
        std::fs::write(&path, "[model\n").unwrap();
        assert!(TrainConfig::load(&path).unwrap_err().to_string().contains("not TOML"));
    }

    #[test]
    fn distances_count_letters() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("warmup", "warm_up"), 1);
        assert_eq!(distance("dropuot", "dropout"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
