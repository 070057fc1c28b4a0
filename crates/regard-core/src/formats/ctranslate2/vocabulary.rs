//! Vocabularies and their tokenizers.

use super::file::Contents;
use super::files::{MODEL, ModelFiles, VOCABULARIES, VOCABULARY_ENDINGS};
use super::model::Ct2Model;
use crate::formats::Languages;
use crate::formats::json::Keys;
use crate::text::{EOS, PieceList, SpmFile, Tokenizer, TokenizerPair, UNK};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Possible names of a SentencePiece model for both sides.
const JOINT_SPM: [&str; 5] =
    ["sentencepiece.model", "sentencepiece.bpe.model", "bpe.model", "spiece.model", "tokenizer.model"];
/// The same for each side.
const SEPARATE_SPM: [&str; 2] = ["source.spm", "target.spm"];

impl Ct2Model {
    fn spm(&self, name: &str) -> Result<Option<(Vec<u8>, PathBuf)>> {
        let beside = self.files.read(name)?.map(|file| (file, name));
        let found = match beside {
            Some(found) => Some(found),
            None => self.files.read_outer(name)?.map(|file| (file, name)),
        };
        Ok(found.map(|(file, name)| (file.bytes().to_vec(), self.files.path_of(name))))
    }

    pub(super) fn tokenizers(&self) -> Result<(TokenizerPair, bool)> {
        let joint = || Some(self.source.clone());
        for name in JOINT_SPM {
            if let Some((bytes, path)) = self.spm(name)? {
                let source = SpmFile { bytes: bytes.clone(), path: &path, vocabulary: joint() };
                let target = SpmFile { bytes, path: &path, vocabulary: Some(self.target.clone()) };
                let pair = TokenizerPair::from_spm(source, (!self.is_joint).then_some(target))?;
                return Ok((pair, name == "sentencepiece.bpe.model" || name == "spiece.model"));
            }
        }
        if let [Some((a, of_a)), Some((b, of_b))] = [self.spm(SEPARATE_SPM[0])?, self.spm(SEPARATE_SPM[1])?] {
            let source = SpmFile { bytes: a, path: &of_a, vocabulary: joint() };
            let target = SpmFile { bytes: b, path: &of_b, vocabulary: Some(self.target.clone()) };
            return Ok((TokenizerPair::from_spm(source, Some(target))?, true));
        }
        if let Some(file) = self.files.read(TokenizerPair::FILE)? {
            let path = self.files.path_of(TokenizerPair::FILE);
            let text = String::from_utf8(file.bytes().to_vec())
                .map_err(|_| Error::file(&path, "is not UTF-8 text"))?;
            let tokenizer = Tokenizer::from_json(text, &path)?;
            let differs =
                self.target.pieces.iter().zip(0u32..).find(|(piece, id)| tokenizer.id(piece) != Some(*id));
            if let Some((piece, id)) = differs.filter(|(piece, _)| !piece.starts_with("madeupword")) {
                let message = format!(
                    "{piece:?} has another id than {id}, which it has in the vocabulary of the model"
                );
                return Err(Error::file(&path, message));
            }
            return Ok((TokenizerPair::joint(tokenizer), true));
        }
        let message = format!(
            "there is no tokenizer; put {}, {} and {}, or {} beside {MODEL}, from the folder that was converted",
            JOINT_SPM.join(", "),
            SEPARATE_SPM[0],
            SEPARATE_SPM[1],
            TokenizerPair::FILE
        );
        Err(Error::file(self.files.path(), message))
    }

    /// Whether source sentences have an end token and a start token.
    pub(super) fn source_ends(&self, published: bool) -> Result<(bool, bool)> {
        let flag = |key: &str, old: &str| match self.contents.version {
            6.. => Ok(self.keys.get(key)?.unwrap_or(false)),
            _ => Ok::<_, Error>(self.scalar(&[old.into()])?.is_some_and(|flag| flag != 0.0)),
        };
        // Converters of published models leave the end to the tokenizer.
        Ok((
            flag("add_source_bos", "with_source_bos")?,
            published || flag("add_source_eos", "with_source_eos")?,
        ))
    }

    /// The token with which every translation of an Argos package begins.
    pub(super) fn target_prefix(&self, tokenizers: &TokenizerPair) -> Result<Option<u32>> {
        let Some(metadata) = self.files.metadata() else { return Ok(None) };
        let Some(prefix) = metadata.get::<String>("target_prefix")?.filter(|prefix| !prefix.is_empty())
        else {
            return Ok(None);
        };
        let found = tokenizers.target().id(&prefix);
        found
            .map(Some)
            .ok_or_else(|| metadata.wrong("target_prefix", format!("{prefix:?} is not in the vocabulary")))
    }

    pub(super) fn languages(&self) -> Result<Languages> {
        let Some(metadata) = self.files.metadata() else { return Ok(Languages::default()) };
        Ok(Languages { source: metadata.get("from_code")?, target: metadata.get("to_code")? })
    }
}

/// The vocabularies of both sides, and whether they are shared.
pub(super) fn read_vocabularies(
    files: &ModelFiles,
    contents: &Contents,
    keys: &Keys,
) -> Result<(PieceList, PieceList, bool)> {
    let named = |key: &str, usual: &str| match contents.version {
        6.. => Ok::<String, Error>(keys.get(key)?.unwrap_or_else(|| usual.to_owned())),
        _ => Ok(usual.to_owned()),
    };
    let (unk, eos) = (named("unk_token", UNK)?, named("eos_token", EOS)?);
    let read = |name: &str| {
        for ending in VOCABULARY_ENDINGS {
            let file = format!("{name}.{ending}");
            if let Some(bytes) = files.read(&file)? {
                return read_vocabulary(bytes.bytes(), &files.path_of(&file), ending == "json", &unk, &eos)
                    .map(Some);
            }
        }
        Ok(None)
    };
    let [shared, target, source] = VOCABULARIES;
    if let Some(joint) = read(shared)? {
        return Ok((joint.clone(), joint, true));
    }
    match (read(source)?, read(target)?) {
        (Some(source), Some(target)) => Ok((source, target, false)),
        _ => Err(Error::file(files.path(), format!("{source} or {target} is missing; both are needed"))),
    }
}

/// The words of a vocabulary: a JSON list, or one word per line.
fn read_vocabulary(bytes: &[u8], path: &Path, json: bool, unk: &str, eos: &str) -> Result<PieceList> {
    let wrong = |message: String| Error::file(path, message);
    let mut pieces: Vec<String> = match json {
        true => serde_json::from_slice(bytes).map_err(|e| wrong(format!("is not a list of words: {e}")))?,
        false => {
            let text = std::str::from_utf8(bytes).map_err(|_| wrong("is not UTF-8 text".into()))?;
            text.strip_suffix('\n').unwrap_or(text).split('\n').map(str::to_owned).collect()
        }
    };
    if !json && pieces.iter().all(|piece| piece.ends_with('\r')) {
        for piece in &mut pieces {
            piece.pop();
        }
    }
    let find = |word: &str| pieces.iter().position(|piece| piece == word).map(|id| id as u32);
    let eos = find(eos).ok_or_else(|| wrong(format!("has no {eos}, the end of a sentence")))?;
    let unk = match find(unk) {
        Some(unk) => unk,
        None => {
            pieces.push(unk.to_owned());
            pieces.len() as u32 - 1
        }
    };
    Ok(PieceList { pieces: Arc::new(pieces.into_iter().collect()), eos, unk })
}
