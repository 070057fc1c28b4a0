//! The tokenizers and pairs of ids of a run, for training and validation.

use super::folder::Folder;
use super::progress::Progress;
use super::sampling::by_temperature;
use super::texts::{inputs, target_languages, validation_files};
use crate::config::{DataConfig, TrainConfig};
use crate::corpus::{CacheState, Corpus, Inputs, Pairs, Side, train_tokenizers_for};
use crate::terms::{Pairs as TermPairs, Terms};
use regard_core::batch::Batch;
use regard_core::random::{Rng, mix};
use regard_core::text::{LanguagePlacement, TermTokens, Tokenizer, TokenizerPair};
use regard_core::{Error, Result};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// The tokenized text of a run.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) tokenizers: TokenizerPair,
    pub(crate) corpus: Corpus,
    /// The training pairs, and their lengths in the same order.
    pub(crate) pairs: Vec<u32>,
    pub(crate) lengths: Vec<(u32, u32)>,
    /// The validation pairs.
    pub(crate) valid: Vec<ValidationPair>,
    /// Equal for equal corpora.
    pub(crate) hash: u64,
    /// Annotates source sentences, if the model learns terms.
    terms: Option<Terms>,
}

/// The name of the corpus cache.
const CACHE: &str = "train";

impl Data {
    /// Finds or trains the tokenizers and encodes the corpus. `known` are the tokenizers of a
    /// resumed run.
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
            (None, Some(file)) => {
                let pair = TokenizerPair::joint(Tokenizer::load(file)?);
                match TermTokens::find(pair.source()) {
                    Some(tokens) if config.terms.share > 0.0 => pair.with_terms(tokens),
                    _ => pair,
                }
            }
            (None, None) => {
                progress.message("training the tokenizer");
                let mut codes = target_languages(&config.data)?.to_vec();
                codes.sort();
                codes.dedup();
                let (filters, vocabulary) = (&config.filters, &config.tokenizer.vocabulary);
                train_tokenizers_for(&inputs, filters, vocabulary, &codes, config.terms.share > 0.0)?
            }
        };
        check_terms(config, &tokenizers)?;
        let each = for_each_file(config, &tokenizers)?;
        let tokenizers = usual(config, tokenizers)?;
        if tokenizers.is_joint() {
            progress.message(&format!("a joint vocabulary of {} pieces", tokenizers.source().size()));
        } else {
            let sizes = (tokenizers.source().size(), tokenizers.target().size());
            progress.message(&format!("vocabularies of {} and {} pieces", sizes.0, sizes.1));
        }
        for (side, tokenizer) in [("source", tokenizers.source()), ("target", tokenizers.target())] {
            if config.model.start_token.is_none() && tokenizer.pad() as usize + 1 != tokenizer.size() {
                let message = format!(
                    "of the {side} tokenizer's {} ids, <pad> must be the last; it is {}",
                    tokenizer.size(),
                    tokenizer.pad()
                );
                return Err(Error::config("tokenizer.file", message));
            }
            if config.tokenizer.bpe_dropout > 0.0 {
                // Fail now rather than at the first batch.
                tokenizer.resample(&[], config.tokenizer.bpe_dropout, 0)?;
            }
        }
        let corpus = Corpus::prepare_each(&inputs, &config.filters, &each, &folder.cache, CACHE, threads)?;
        progress.message(&corpus.summary().to_string());
        if let CacheState::Rebuilt(why) = corpus.state() {
            progress.message(&format!("the cache was built again: {why}"));
        }
        let data =
            Self::new(config, tokenizers, corpus, |corpus, tokenizers, pairs| {
                match validation_files(&config.data)? {
                    Some(files) => read_valid(&files, config, tokenizers, progress),
                    None => hold_out(config, corpus, tokenizers, pairs, progress),
                }
            })?;
        if data.pairs.len() > data.corpus.len() {
            let (pairs, temperature) = (data.pairs.len(), config.data.temperature);
            progress.message(&format!("an epoch has {pairs} pairs at temperature {temperature}"));
        }
        if let Some(terms) = &data.terms {
            let (words, share) = (terms.words(), config.terms.share);
            let message = format!("terms: translations of {words} words; {share} of the sentences get some");
            progress.message(&message);
        }
        Ok(data)
    }

    /// The same for a process that receives the tokenizers and does not validate. It uses the
    /// corpus in the folder `cache` if that was made from the same files, and otherwise its own,
    /// whose name ends in `own`.
    pub(crate) fn prepare_with(
        config: &TrainConfig,
        (cache, own): (&Path, &str),
        tokenizers: TokenizerPair,
        threads: usize,
    ) -> Result<Self> {
        let inputs = inputs(&config.data)?;
        let each = for_each_file(config, &tokenizers)?;
        let corpus = match Corpus::reuse(&inputs, &config.filters, &each, cache, CACHE)? {
            Some(corpus) => corpus,
            None => {
                let name = format!("{CACHE}-{own}");
                Corpus::prepare_each(&inputs, &config.filters, &each, cache, &name, threads)?
            }
        };
        Self::new(config, tokenizers, corpus, |corpus, tokenizers, pairs| {
            match validation_files(&config.data)? {
                Some(_) => Ok(Vec::new()),
                None => hold_out(config, corpus, tokenizers, pairs, &mut ()),
            }
        })
    }

    /// `valid` finds the validation pairs, and may remove them from the training pairs.
    fn new(
        config: &TrainConfig,
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
        if config.data.temperature != 1.0 {
            let all: Vec<usize> = corpus.files().collect();
            let files: Vec<usize> = pairs.iter().map(|&i| all[i as usize]).collect();
            pairs = by_temperature(&pairs, &files, config.data.temperature, config.seed);
        }
        let lengths = pairs.iter().map(|&i| all[i as usize]).collect();
        let terms = learn_terms(config, &tokenizers, &corpus, &pairs)?;
        Ok(Data { tokenizers, corpus, pairs, lengths, valid, hash: hash.digest(), terms })
    }

    /// The pairs of one batch of an epoch's plan.
    pub(crate) fn batch(&self, config: &TrainConfig, epoch: u64, pairs: &[u32]) -> Result<Batch> {
        let pairs = pairs.iter().map(|&i| self.pairs[i as usize] as usize);
        let start = config.model.start();
        let dropout = config.tokenizer.bpe_dropout;
        if dropout == 0.0 && self.terms.is_none() {
            let pairs = pairs.map(|i| self.corpus.pair(i)).collect::<Result<Vec<_>>>()?;
            return Batch::new(pairs.iter().map(|pair| (pair.source(), pair.target())), start);
        }
        let (source, target) = (self.tokenizers.source(), self.tokenizers.target());
        let most = config.filters.max_tokens;
        let mut both = Vec::new();
        for i in pairs {
            // A different segmentation and different terms in each epoch, but the same in a resumed
            // run.
            let seed = mix(mix(config.seed ^ epoch) ^ i as u64);
            let again = |tokenizer: &Tokenizer, ids: &[u32], seed| {
                if dropout == 0.0 {
                    return Ok(ids.to_vec());
                }
                // Keep the language token out of the text.
                let (language, text) = ids.split_at(tokenizer.prefix_ids().len().min(ids.len()));
                let drawn = [language, &tokenizer.resample(text, dropout, seed)?].concat();
                Ok::<_, Error>(if drawn.len() > most { ids.to_vec() } else { drawn })
            };
            let pair = self.corpus.pair(i)?;
            let annotate = |terms: &Terms| terms.annotate(pair.source(), pair.target(), seed).transpose();
            let annotated = self.terms.as_ref().and_then(annotate).transpose()?;
            let from = annotated.as_deref().unwrap_or(pair.source());
            both.push((again(source, from, seed)?, again(target, pair.target(), !seed)?));
        }
        Batch::new(both.iter().map(|(s, t)| (&s[..], &t[..])), start)
    }
}

/// Rejects tokenizers without term tokens, if the model is to learn terms.
fn check_terms(config: &TrainConfig, tokenizers: &TokenizerPair) -> Result<()> {
    if config.terms.share == 0.0 || tokenizers.terms().is_some() {
        return Ok(());
    }
    let [begin, is, end] = TermTokens::TOKENS;
    let whose = match config.data.init {
        Some(_) => "the model to start from",
        None => "the tokenizer",
    };
    let message = format!("{whose} has no tokens {begin}, {is} and {end}; terms need a new vocabulary");
    Err(Error::config("terms.share", message))
}

/// Learns from the training pairs how to annotate source sentences.
fn learn_terms(
    config: &TrainConfig,
    tokenizers: &TokenizerPair,
    corpus: &Corpus,
    pairs: &[u32],
) -> Result<Option<Terms>> {
    let Some(tokens) = tokenizers.terms().filter(|_| config.terms.share > 0.0) else { return Ok(None) };
    let read = |i: usize| {
        let pair = corpus.pair(pairs[i] as usize)?;
        Ok((pair.source().to_vec(), pair.target().to_vec()))
    };
    let pairs = TermPairs { len: pairs.len(), read: &read };
    Terms::learn(config.terms, *tokens, tokenizers, config.filters.max_tokens, pairs).map(Some)
}

/// The tokenizers of each pair of files: all the same, unless the files have different target
/// languages.
fn for_each_file(config: &TrainConfig, tokenizers: &TokenizerPair) -> Result<Vec<TokenizerPair>> {
    let languages = target_languages(&config.data)?;
    if languages.is_empty() {
        return Ok(vec![tokenizers.clone()]);
    }
    match tokenizers.languages().map(|tokens| tokens.placement) {
        Some(LanguagePlacement::Target) => {}
        found => {
            let reason = match found {
                None => "the model to start from has no tokens of languages",
                Some(_) => "the model to start from is told the target language behind the source",
            };
            let message =
                format!("{reason}; several target languages need a new model, or one that is told before");
            return Err(Error::config("data.target_langs", message));
        }
    }
    let pair = |code: &String| Ok(tokenizers.for_languages(None, Some(code))?.0);
    languages.iter().map(pair).collect()
}

/// The tokenizers for the default target language.
fn usual(config: &TrainConfig, tokenizers: TokenizerPair) -> Result<TokenizerPair> {
    let DataConfig { target_lang, target_langs, .. } = &config.data;
    match target_langs.first() {
        None => Ok(tokenizers),
        Some(first) => {
            let code = target_lang.as_ref().unwrap_or(first);
            Ok(tokenizers.for_languages(None, Some(code))?.0)
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

/// A validation pair, as text and as ids.
#[derive(Clone, Debug)]
pub(crate) struct ValidationPair {
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) source_ids: Vec<u32>,
    pub(crate) target_ids: Vec<u32>,
}

/// Holds out one pair in fifty, chosen at random with the seed.
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
    // A stream that no epoch uses.
    let mut random = Rng::stream(config.seed, u64::MAX);
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
