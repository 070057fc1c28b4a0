//! The tokenizers of the two sides, which may be the same.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::Tokenizer;
use super::language_tokens::{Frame, LanguageToken, LanguageTokens};
use super::marian::{self, MarianTokenizer, PieceList};
use super::pipeline::{hugging_face_config, marian_config};
use super::term_tokens::TermTokens;
use crate::{Error, Result};

/// A `.spm` file, with the ids of its pieces if they differ from its own.
#[derive(Debug)]
pub struct SpmFile<'a> {
    /// The file.
    pub bytes: Vec<u8>,
    /// Its path.
    pub path: &'a Path,
    /// The ids of its pieces.
    pub vocabulary: Option<PieceList>,
}

/// The source and target tokenizers of a model.
#[derive(Clone, Debug)]
pub struct TokenizerPair {
    source: Arc<Tokenizer>,
    target: Arc<Tokenizer>,
    /// The languages, if the model has language tokens.
    languages: Option<Arc<LanguageTokens>>,
    /// The codes of the chosen language pair.
    chosen: [Option<String>; 2],
    /// The term tokens, if the model is trained with them.
    terms: Option<TermTokens>,
}

impl TokenizerPair {
    /// The file of the joint vocabulary, or of the source's.
    pub const FILE: &str = "tokenizer.json";
    /// The file of the target's vocabulary, if it is separate.
    pub const TARGET_FILE: &str = "target_tokenizer.json";

    /// Creates a pair with one vocabulary for both sides.
    pub fn joint(tokenizer: Tokenizer) -> Self {
        let tokenizer = Arc::new(tokenizer);
        Self::of_sides(tokenizer.clone(), tokenizer)
    }

    /// Creates a pair with a vocabulary for each side.
    pub fn separate(source: Tokenizer, target: Tokenizer) -> Self {
        Self::of_sides(Arc::new(source), Arc::new(target))
    }

    fn of_sides(source: Arc<Tokenizer>, target: Arc<Tokenizer>) -> Self {
        TokenizerPair { source, target, languages: None, chosen: [None, None], terms: None }
    }

    /// Reads the tokenizers of a model folder: `tokenizer.json` if it exists, else `source.spm`,
    /// `target.spm` and `vocab.json`.
    pub fn load(folder: &Path) -> Result<Self> {
        let file = folder.join(Self::FILE);
        if !file.exists() && marian::is_in(folder) {
            let (source, target) = marian::load(folder)?;
            return Ok(Self::separate(source.into(), target.into()));
        }
        let source = Tokenizer::load(&file)?;
        let target = folder.join(Self::TARGET_FILE);
        if !target.exists() {
            return Ok(Self::joint(source));
        }
        Ok(Self::separate(source, Tokenizer::load(&target)?))
    }

    /// Tokenizers from `.spm` files whose own piece numbers are the ids, unless vocabularies are
    /// given with them; one for both sides if there is no target. The paths are for messages.
    pub fn from_spm(source: SpmFile<'_>, target: Option<SpmFile<'_>>) -> Result<Self> {
        let read = |file: SpmFile<'_>| {
            MarianTokenizer::from_spm(file.bytes, file.path, file.vocabulary).map(Tokenizer::from)
        };
        let source = read(source)?;
        Ok(match target {
            None => Self::joint(source),
            Some(target) => Self::separate(source, read(target)?),
        })
    }

    /// One tokenizer from the bytes of a `.spm` file and a list of ids for its pieces; both paths
    /// are for messages.
    pub fn from_spm_and_ids(spm: (Vec<u8>, &Path), ids: (Vec<(String, u32)>, &Path)) -> Result<Self> {
        Ok(Self::joint(MarianTokenizer::with_ids(spm.0, spm.1, ids.0, ids.1)?.into()))
    }

    /// The pieces and ids of a `vocab.json`; the path is for messages.
    pub fn read_vocabulary(file: &[u8], path: &Path) -> Result<Vec<(String, u32)>> {
        marian::read_entries(file, path)
    }

    /// Adds languages, with none chosen yet. Their tokens and `hidden` are never text.
    pub fn with_languages(self, languages: LanguageTokens, hidden: &[u32]) -> Self {
        let ids = || languages.list.iter().map(|language| language.id).chain(hidden.iter().copied());
        let joint = Arc::ptr_eq(&self.source, &self.target);
        let source = Arc::new(self.source.hiding(ids()));
        let target = if joint { source.clone() } else { Arc::new(self.target.hiding(ids())) };
        let terms = self.terms;
        TokenizerPair { source, target, languages: Some(Arc::new(languages)), chosen: [None, None], terms }
    }

    /// Adds term tokens, for a model that is trained with them; they are never text.
    pub fn with_terms(self, terms: TermTokens) -> Self {
        let joint = Arc::ptr_eq(&self.source, &self.target);
        let source = Arc::new(self.source.hiding(terms.ids()));
        let target = if joint { source.clone() } else { self.target.clone() };
        TokenizerPair { source, target, terms: Some(terms), ..self }
    }

    /// The term tokens, if the model is trained with them.
    pub fn terms(&self) -> Option<&TermTokens> {
        self.terms.as_ref()
    }

    /// Adds a token before every source text, omits the end token after it, or adds a token before
    /// every target text.
    pub fn with_frames(self, source: Option<u32>, source_ends: bool, target: Option<u32>) -> Self {
        if source.is_none() && source_ends && target.is_none() {
            return self;
        }
        let frame =
            |id: Option<u32>, ends| Frame { prefix: id.into_iter().collect(), ends, ..Frame::default() };
        TokenizerPair {
            source: Arc::new(self.source.framed(frame(source, source_ends))),
            target: Arc::new(self.target.framed(frame(target, true))),
            ..self
        }
    }

    /// The languages of the model, if it has language tokens.
    pub fn languages(&self) -> Option<&LanguageTokens> {
        self.languages.as_deref()
    }

    /// The same for one language pair, and the codes of the pair in the model's spelling. A
    /// language that is not given stays open. A model without language tokens is returned
    /// unchanged.
    pub fn for_languages(
        &self,
        source: Option<&str>,
        target: Option<&str>,
    ) -> Result<(Self, [Option<String>; 2])> {
        let owned = |code: Option<&str>| code.map(str::to_owned);
        let Some(languages) = &self.languages else {
            return Ok((self.clone(), [owned(source), owned(target)]));
        };
        let find = |field, code: Option<&str>| code.map(|code| languages.find(field, code)).transpose();
        let target = find("target_lang", target)?;
        // A model without a token for the source language reads any.
        let (named, source) = match languages.needs_source() {
            true => (None, find("source_lang", source)?),
            false => (owned(source), None),
        };
        let (of_source, of_target) = languages.frames(source, target, &self.source)?;
        let framed = |tokenizer: &Tokenizer, frame: Frame| Arc::new(tokenizer.framed(frame));
        let code = |language: Option<&LanguageToken>| language.map(|language| language.code.clone());
        let chosen = [named.or(code(source)), code(target)];
        let pair = TokenizerPair {
            source: framed(&self.source, of_source),
            target: framed(&self.target, of_target),
            languages: self.languages.clone(),
            chosen: chosen.clone(),
            terms: self.terms,
        };
        Ok((pair, chosen))
    }

    /// The codes of source and target that [`for_languages`](Self::for_languages) has chosen, if
    /// any.
    pub fn chosen(&self) -> &[Option<String>; 2] {
        &self.chosen
    }

    /// Writes the files of a pair to a model folder, each atomically, and removes files that would
    /// take precedence over them. Files that were read from `.spm` files are written unchanged.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let (file, target) = (folder.join(Self::FILE), folder.join(Self::TARGET_FILE));
        if let (Some(a), Some(b)) = (self.source.as_marian(), self.target.as_marian()) {
            marian::save(a, b, folder)?;
            remove(&file)?;
            return remove(&target);
        }
        self.source.save(&file)?;
        if self.is_joint() { remove(&target) } else { self.target.save(&target) }
    }

    /// Whether both sides have the same vocabulary.
    pub fn is_joint(&self) -> bool {
        match (self.source.as_marian(), self.target.as_marian()) {
            (Some(a), Some(b)) => a.shares_vocabulary(b),
            _ => Arc::ptr_eq(&self.source, &self.target) || self.source.to_json() == self.target.to_json(),
        }
    }

    /// The files that hold the source's and the target's vocabulary.
    pub fn vocabulary_files(&self) -> (&'static str, &'static str) {
        let (source, target) = match self.source.as_marian() {
            Some(_) => (marian::VOCABULARY, marian::TARGET_VOCABULARY),
            None => (Self::FILE, Self::TARGET_FILE),
        };
        (source, if self.is_joint() { source } else { target })
    }

    /// The contents of a `tokenizer_config.json` with which `transformers` reads the files of this
    /// pair.
    pub fn hugging_face_config(&self, max_length: usize) -> Value {
        let mut config = match self.source.as_marian() {
            Some(_) => marian_config(max_length),
            None => hugging_face_config(max_length),
        };
        if !self.is_joint() {
            config["separate_vocabs"] = true.into();
        }
        config
    }

    /// The source's tokenizer.
    pub fn source(&self) -> &Tokenizer {
        &self.source
    }

    /// The target's tokenizer.
    pub fn target(&self) -> &Tokenizer {
        &self.target
    }
}

/// Removes a file that may not exist.
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, e)),
        _ => Ok(()),
    }
}
