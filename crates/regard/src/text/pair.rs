//! The tokenizers of the two sides, which may be one and the same.

use std::path::Path;
use std::sync::Arc;

use super::train::learn;
use super::{TextSample, Tokenizer, TokenizerSettings};
use crate::Result;

/// Source and target tokenizer of a model.
#[derive(Clone, Debug)]
pub struct TokenizerPair {
    source: Arc<Tokenizer>,
    target: Arc<Tokenizer>,
}

impl TokenizerPair {
    /// File of the joint vocabulary, or of the source's.
    pub const FILE: &str = "tokenizer.json";
    /// File of the target's vocabulary, if it is a separate one.
    pub const TARGET_FILE: &str = "target_tokenizer.json";

    /// One vocabulary for both sides.
    pub fn joint(tokenizer: Tokenizer) -> Self {
        let tokenizer = Arc::new(tokenizer);
        TokenizerPair { source: tokenizer.clone(), target: tokenizer }
    }

    /// A vocabulary for each side.
    pub fn separate(source: Tokenizer, target: Tokenizer) -> Self {
        TokenizerPair { source: Arc::new(source), target: Arc::new(target) }
    }

    /// Trains on the text of both sides. Separate vocabularies get one size, the smaller of the two: a MarianMT
    /// configuration has one id for `<pad>`, which is the last of either.
    pub fn train(source: &TextSample, target: &TextSample, settings: &TokenizerSettings) -> Result<Self> {
        if !settings.separate {
            return Ok(Self::joint(Tokenizer::from_pieces(learn(&[source, target], settings)?)?));
        }
        let mut source = learn(&[source], settings)?;
        let mut target = learn(&[target], settings)?;
        target.shrink(source.size());
        source.shrink(target.size());
        Ok(Self::separate(Tokenizer::from_pieces(source)?, Tokenizer::from_pieces(target)?))
    }

    /// Reads the tokenizer or tokenizers of a model folder.
    pub fn load(folder: &Path) -> Result<Self> {
        let source = Tokenizer::load(&folder.join(Self::FILE))?;
        let target = folder.join(Self::TARGET_FILE);
        if !target.exists() {
            return Ok(Self::joint(source));
        }
        Ok(Self::separate(source, Tokenizer::load(&target)?))
    }

    /// Writes into a model folder, each file beside and renamed.
    pub fn save(&self, folder: &Path) -> Result<()> {
        self.source.save(&folder.join(Self::FILE))?;
        let target = folder.join(Self::TARGET_FILE);
        if !self.is_joint() {
            return self.target.save(&target);
        }
        match std::fs::remove_file(&target) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(crate::Error::io(target, e)),
            _ => Ok(()),
        }
    }

    /// Whether both sides have the same vocabulary.
    pub fn is_joint(&self) -> bool {
        Arc::ptr_eq(&self.source, &self.target) || self.source.to_json() == self.target.to_json()
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
