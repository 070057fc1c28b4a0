//! What a run needs before its first step: a folder of its own, tokenizers, the corpus, sentences to validate on.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::training_loop::Progress;
use crate::config::{DataConfig, TrainConfig};
use crate::corpus::{CacheState, Corpus, Inputs, Pairs, Side, train_tokenizers};
use crate::distributed::ConsistencyCheck;
use regard_core::batch::Batch;
use regard_core::counter::{Counter, mix};
use regard_core::formats::{Languages, Model};
use regard_core::model::ModelConfig;
use regard_core::text::{Tokenizer, TokenizerPair};
use regard_core::{Error, Result};

/// The output folder, which is ours as long as this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) out: PathBuf,
    pub(crate) checkpoints: PathBuf,
    pub(crate) logs: PathBuf,
    pub(crate) cache: PathBuf,
    _lock: File,
}

/// Whether `out` is the folder of a training run.
pub fn has_run(out: &Path) -> bool {
    config_file(out).exists()
}

pub(crate) fn config_file(out: &Path) -> PathBuf {
    out.join("logs").join("config.toml")
}

impl Folder {
    /// Makes the folder, or takes over that of a run to resume; refuses one that holds anything else.
    pub(crate) fn open(out: &Path, resume: bool) -> Result<Self> {
        if !resume && has_run(out) {
            let message = "already holds a training run: resume it, or choose another folder";
            return Err(Error::file(out, message));
        }
        if !has_run(out)
            && let Some(other) = foreign_entry(out)?
        {
            let message = format!("is not empty ({other}): a run needs a new or an empty folder");
            return Err(Error::file(out, message));
        }
        let [checkpoints, logs, cache] = ["checkpoints", "logs", "cache"].map(|name| out.join(name));
        for folder in [&checkpoints, &logs, &cache] {
            fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        }
        let path = cache.join("lock");
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(|e| Error::io(&path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::file(out, "another process is training here; wait for it or end it"));
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        Ok(Folder { out: out.to_owned(), checkpoints, logs, cache, _lock: lock })
    }
}

/// Something in the folder that an earlier start of a run has not made: the cache, and its own folders while empty.
fn foreign_entry(out: &Path) -> Result<Option<String>> {
    let entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(out, e)),
    };
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(out, e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let empty = || {
            fs::read_dir(entry.path()).is_ok_and(|inside| {
                let leftover = |name: &str| name.ends_with(".part");
                inside.flatten().all(|e| leftover(&e.file_name().to_string_lossy()))
            })
        };
        let ours = name == "cache" || (["logs", "checkpoints"].contains(&name.as_str()) && empty());
        if !ours {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Tokenized text, and which of it is for what.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) tokenizers: TokenizerPair,
    pub(crate) corpus: Corpus,
    /// The pairs to train on, and their lengths in the same order.
    pub(crate) pairs: Vec<u32>,
    pub(crate) lengths: Vec<(u32, u32)>,
    /// The pairs to validate on.
    pub(crate) valid: Vec<ValidationPair>,
    /// Equal for equal corpora.
    pub(crate) hash: u64,
}

/// What the cache of the corpus is called.
const CACHE: &str = "train";

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

impl Data {
    /// Finds or trains the tokenizers and encodes the corpus. `known` are the tokenizers of a run that is resumed.
    pub(crate) fn prepare(
        config: &TrainConfig,
        folder: &Folder,
        known: Option<TokenizerPair>,
        threads: usize,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let inputs = inputs(&config.data)?;
        let tokenizers = match (known, &config.tokenizer.file) {
            (Some(known), _) => known,
            (None, Some(file)) => TokenizerPair::joint(Tokenizer::load(file)?),
            (None, None) => {
                progress.message("training the tokenizer");
                train_tokenizers(&inputs, &config.filters, &config.tokenizer_settings())?
            }
        };
        if tokenizers.is_joint() {
            progress.message(&format!("a joint vocabulary of {} pieces", tokenizers.source().size()));
        } else {
            let sizes = (tokenizers.source().size(), tokenizers.target().size());
            progress.message(&format!("vocabularies of {} and {} pieces", sizes.0, sizes.1));
        }
        for (side, tokenizer) in [("source", tokenizers.source()), ("target", tokenizers.target())] {
            if tokenizer.pad() as usize + 1 != tokenizer.size() {
                let message = format!(
                    "of the {side} tokenizer's {} ids, <pad> must be the last; it is {}",
                    tokenizer.size(),
                    tokenizer.pad()
                );
                return Err(Error::config("tokenizer.file", message));
            }
            if config.tokenizer.bpe_dropout > 0.0 {
                // Said now, and not at the first batch.
                tokenizer.resample(&[], config.tokenizer.bpe_dropout, 0)?;
            }
        }
        let corpus = Corpus::prepare(&inputs, &config.filters, &tokenizers, &folder.cache, CACHE, threads)?;
        progress.message(&corpus.summary().to_string());
        if let CacheState::Rebuilt(why) = corpus.state() {
            progress.message(&format!("the cache was built again: {why}"));
        }
        Self::new(tokenizers, corpus, |corpus, tokenizers, pairs| match validation_files(&config.data)? {
            Some(files) => read_valid(&files, config, tokenizers, progress),
            None => hold_out(config, corpus, tokenizers, pairs, progress),
        })
    }

    /// The same on another rank, which has the tokenizers from rank 0 and validates nothing. Its cache is that of rank 0 where it sees
    /// that and has the same files, else one of its own.
    pub(crate) fn prepare_on_rank(
        config: &TrainConfig,
        (cache, rank): (&Path, usize),
        tokenizers: TokenizerPair,
        threads: usize,
    ) -> Result<Self> {
        let inputs = inputs(&config.data)?;
        let corpus = match Corpus::reuse(&inputs, &config.filters, &tokenizers, cache, CACHE)? {
            Some(corpus) => corpus,
            None => {
                let name = format!("{CACHE}-{rank}");
                Corpus::prepare(&inputs, &config.filters, &tokenizers, cache, &name, threads)?
            }
        };
        Self::new(tokenizers, corpus, |corpus, tokenizers, pairs| match validation_files(&config.data)? {
            Some(_) => Ok(Vec::new()),
            None => hold_out(config, corpus, tokenizers, pairs, &mut ()),
        })
    }

    /// `valid` finds the pairs to validate on, and may take them out of those to train on.
    fn new(
        tokenizers: TokenizerPair,
        corpus: Corpus,
        valid: impl FnOnce(&Corpus, &TokenizerPair, &mut Vec<u32>) -> Result<Vec<ValidationPair>>,
    ) -> Result<Self> {
        let all = corpus.lengths();
        let mut hash = Xxh3::new();
        for (source, target) in &all {
            hash.update(&source.to_le_bytes());
            hash.update(&target.to_le_bytes());
        }
        hash.update(&tokenizers.source().hash().to_le_bytes());
        let mut pairs: Vec<u32> = (0..all.len() as u32).collect();
        let valid = valid(&corpus, &tokenizers, &mut pairs)?;
        let lengths = pairs.iter().map(|&i| all[i as usize]).collect();
        Ok(Data { tokenizers, corpus, pairs, lengths, valid, hash: hash.digest() })
    }

    /// The pairs of one entry of an epoch's plan.
    pub(crate) fn batch(&self, config: &TrainConfig, epoch: u64, pairs: &[u32]) -> Result<Batch> {
        let pairs = pairs.iter().map(|&i| self.pairs[i as usize] as usize);
        let start = config.model.target_pad();
        let dropout = config.tokenizer.bpe_dropout;
        if dropout == 0.0 {
            let pairs = pairs.map(|i| self.corpus.pair(i)).collect::<Result<Vec<_>>>()?;
            return Batch::new(pairs.iter().map(|pair| (pair.source(), pair.target())), start);
        }
        let (source, target) = (self.tokenizers.source(), self.tokenizers.target());
        let most = config.filters.max_tokens;
        let mut both = Vec::new();
        for i in pairs {
            // Another segmentation each epoch, the same in a resumed one.
            let seed = mix(mix(config.seed ^ epoch) ^ i as u64);
            let again = |tokenizer: &Tokenizer, ids: &[u32], seed| {
                let drawn = tokenizer.resample(ids, dropout, seed)?;
                Ok::<_, Error>(if drawn.len() > most { ids.to_vec() } else { drawn })
            };
            let pair = self.corpus.pair(i)?;
            both.push((again(source, pair.source(), seed)?, again(target, pair.target(), !seed)?));
        }
        Batch::new(both.iter().map(|(s, t)| (&s[..], &t[..])), start)
    }

    /// What all ranks must have the same of.
    pub(crate) fn facts(&self) -> ConsistencyCheck {
        let tokens: u64 = self.lengths.iter().map(|l| u64::from(l.0) + u64::from(l.1)).sum();
        let (pairs, content) = (self.corpus.len(), self.corpus.content_hash());
        vec![("the corpus".into(), format!("{pairs} pairs of {tokens} tokens ({content:016x})"))]
    }
}

fn validation_files(data: &DataConfig) -> Result<Option<Inputs>> {
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

fn read_valid(
    files: &Inputs,
    config: &TrainConfig,
    tokenizers: &TokenizerPair,
    progress: &mut dyn Progress,
) -> Result<Vec<ValidationPair>> {
    let most = config.validation.max_sentences;
    let (mut valid, mut read) = (Vec::new(), 0);
    for pair in Pairs::open(files, config.filters.max_line_bytes)? {
        read += 1;
        if let (Side::Text(source), Side::Text(target)) = {
            let p = pair?;
            (p.source, p.target)
        } && !source.trim().is_empty()
            && !target.trim().is_empty()
            && valid.len() < most
        {
            valid.push(ValidationPair {
                source_ids: tokenizers.source().encode(&source)?,
                target_ids: tokenizers.target().encode(&target)?,
                source,
                target,
            });
        }
    }
    if valid.is_empty() {
        return Err(Error::file(files.paths()[0], "no pair of the validation files can be used"));
    }
    if valid.len() < read {
        let note = format!(
            "{} of the {read} validation pairs are used (those with text, at most validation.max_sentences = {most})",
            valid.len()
        );
        progress.message(&note);
    }
    Ok(valid)
}

/// A pair to validate on, as text and as ids.
#[derive(Clone, Debug)]
pub(crate) struct ValidationPair {
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) source_ids: Vec<u32>,
    pub(crate) target_ids: Vec<u32>,
}

/// Keeps one pair in fifty from training, drawn by the seed.
fn hold_out(
    config: &TrainConfig,
    corpus: &Corpus,
    tokenizers: &TokenizerPair,
    pairs: &mut Vec<u32>,
    progress: &mut dyn Progress,
) -> Result<Vec<ValidationPair>> {
    if corpus.len() < 2 {
        return Err(Error::config(
            "data.valid_src",
            "one pair is too few to hold any out; name a file to validate on",
        ));
    }
    let count = (corpus.len() / 50).clamp(1, config.validation.max_sentences);
    // Any number that no epoch has.
    let mut random = Counter::new(config.seed, u64::MAX);
    random.shuffle(pairs);
    let held_out = pairs.split_off(pairs.len() - count);
    pairs.sort_unstable();
    progress.message(&format!("no validation files: {count} pairs of the corpus are held out"));
    let text = |i: &u32| {
        let pair = corpus.pair(*i as usize)?;
        Ok(ValidationPair {
            source: tokenizers.source().decode(pair.source()),
            target: tokenizers.target().decode(pair.target()),
            source_ids: pair.source().to_vec(),
            target_ids: pair.target().to_vec(),
        })
    };
    held_out.iter().map(text).collect()
}

/// The model to start from.
pub(crate) fn load_init(config: &TrainConfig) -> Result<Option<Model>> {
    let Some(folder) = &config.data.init else { return Ok(None) };
    let model = Model::load(folder)?;
    check_init(config, &model, folder)?;
    Ok(Some(model))
}

/// Refuses a shape that is not the one that the model in `folder`, to start from, has. What is as in `usual` does not count.
pub fn check_shape(
    asked: &ModelConfig,
    has: &ModelConfig,
    usual: Option<&ModelConfig>,
    folder: &Path,
) -> Result<()> {
    /// These follow from the tokenizer or may change.
    const FREE: [&str; 5] =
        ["source_vocabulary", "target_vocabulary", "dropout", "attention_dropout", "activation_dropout"];
    let fields = |config: &ModelConfig| serde_json::to_value(config).unwrap_or_default();
    let (asked, has, usual) = (fields(asked), fields(has), usual.map(fields));
    for (field, value) in asked.as_object().into_iter().flatten() {
        let free =
            FREE.contains(&field.as_str()) || usual.as_ref().is_some_and(|usual| usual[field] == *value);
        if !free && *value != has[field] {
            return Err(other_than(
                folder,
                &format!("model.{field}"),
                value.to_string(),
                has[field].to_string(),
            ));
        }
    }
    Ok(())
}

fn other_than(folder: &Path, field: &str, asked: String, has: String) -> Error {
    let folder = folder.display();
    Error::config(
        field,
        format!("{asked} does not fit the model to start from, {folder}, which has {has}; leave this out"),
    )
}

/// Refuses settings that ask for another shape or vocabulary than the model to start from has, naming both.
fn check_init(config: &TrainConfig, model: &Model, folder: &Path) -> Result<()> {
    // What is as the preset has it may not have been asked for.
    let usual = TrainConfig::new(config.preset).model;
    check_shape(&config.model, model.transformer.config(), Some(&usual), folder)?;
    let refuse = |field, wanted, has| Err(other_than(folder, field, wanted, has));
    let (source, target) = (model.tokenizers.source(), model.tokenizers.target());
    let pieces = |n: usize| format!("a vocabulary of {n} pieces");
    if let Some(file) = &config.tokenizer.file {
        let wanted = Tokenizer::load(file)?;
        if [source, target].iter().any(|tokenizer| tokenizer.hash() != wanted.hash()) {
            let wanted = format!("{} ({} pieces)", file.display(), wanted.size());
            return refuse("tokenizer.file", wanted, format!("another tokenizer ({} pieces)", source.size()));
        }
    }
    if let Some(size) = config.tokenizer.size.filter(|&size| size != source.size()) {
        return refuse("tokenizer.size", pieces(size), pieces(source.size()));
    }
    if config.tokenizer.separate && model.tokenizers.is_joint() {
        return refuse("tokenizer.separate", "a vocabulary for each language".into(), "a joint one".into());
    }
    Ok(())
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

    #[test]
    fn a_folder_with_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "x").unwrap();
        let error = Folder::open(folder.path(), false).unwrap_err().to_string();
        assert!(
            error.ends_with("is not empty (thesis.txt): a run needs a new or an empty folder"),
            "{error}"
        );
        assert!(Folder::open(folder.path(), true).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        let folder = tempfile::tempdir().unwrap();
        let held = Folder::open(folder.path(), false).unwrap();
        let error = Folder::open(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains("another process is training here"), "{error}");
        drop(held);
        let open = Folder::open(folder.path(), false).unwrap();
        fs::write(config_file(folder.path()), "").unwrap();
        drop(open);
        let error = Folder::open(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains("already holds a training run: resume it"), "{error}");
        assert!(Folder::open(folder.path(), true).is_ok());
    }
}
