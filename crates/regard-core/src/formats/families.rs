//! Folders of families other than Marian's, as `transformers` writes them: M2M100 and NLLB-200
//! (`m2m_100`), mBART-50 (`mbart`), T5 and MADLAD-400 (`t5`).
//!
//! Weights and configuration are almost the same as MarianMT's. The tokenizer differs: one
//! vocabulary for all languages, whose ids are not those of the `.spm` file, and language tokens.

use super::TOKENIZER_CONFIG;
use super::json::Keys;
use super::marian::bart_shape;
use super::t5;
use crate::languages::{bare, is_code};
use crate::model::{Frequencies, ModelConfig, NormPlace, Positions, Tying};
use crate::text::{
    LanguagePlacement, LanguageToken, LanguageTokens, SentencePiece, TermTokens, Tokenizer, TokenizerPair,
};
use crate::{Error, Result, bounded};
use serde_json::Value;
use std::path::Path;

/// A family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// M2M100 and NLLB-200.
    M2m100,
    /// mBART and mBART-50.
    Mbart,
    /// T5 and MADLAD-400.
    T5,
}

/// The vocabulary of all languages.
const SPM: &str = "sentencepiece.bpe.model";
const VOCABULARY: &str = "vocab.json";
const SPECIAL_TOKENS: &str = "special_tokens_map.json";
/// The key in our own folders for the position of language tokens.
pub(super) const PLACEMENT: &str = "language_placement";
/// The keys in our own folders for whether source texts end with an end token, and for the id that
/// they begin with.
pub(super) const SOURCE_END: &str = "source_end";
pub(super) const SOURCE_BEGIN: &str = "source_begin";
/// The key in our own folders that lists the term tokens, if the model is trained with them.
pub(super) const TERMS: &str = "term_tokens";
/// The key under which a folder lists special tokens.
pub(super) const LISTED: &str = "additional_special_tokens";

/// The languages of M2M100 and of its WMT21 models, in the order of their ids: its folders name the
/// list but omit its contents.
const M2M100_CODES: &str = "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht \
    hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so \
    sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu";
const WMT21_CODES: &str = "en ha is ja cs ru zh de";

impl Family {
    pub(super) const ALL: [Family; 3] = [Family::M2m100, Family::Mbart, Family::T5];

    /// Its `model_type`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Family::M2m100 => "m2m_100",
            Family::Mbart => "mbart",
            Family::T5 => "t5",
        }
    }

    /// The family named in `config.json`, if it is one of these.
    pub(super) fn of(keys: &Keys) -> Result<Option<Self>> {
        let name: Option<String> = keys.get("model_type")?;
        Ok(Self::ALL.into_iter().find(|family| name.as_deref() == Some(family.name())))
    }

    /// The language code of a language token.
    fn code(self, token: &str) -> Option<&str> {
        let code = bare(token);
        let is_token = match self {
            Family::M2m100 | Family::Mbart => code != token || code.contains('_'),
            Family::T5 => token.starts_with("<2") && code != token,
        };
        (is_token && is_code(code)).then_some(code)
    }

    /// Reads the shape from `config.json`; missing keys have the defaults of `transformers`' class.
    pub(super) fn read_config(self, keys: &Keys) -> Result<ModelConfig> {
        if self == Family::T5 {
            return t5::read_config(keys);
        }
        let (usual_activation, scaled) = match self {
            Family::M2m100 => ("relu", true),
            Family::Mbart | Family::T5 => ("gelu", false),
        };
        let shape = ModelConfig {
            start_token: Some(keys.get("decoder_start_token_id")?.unwrap_or(2)),
            norm: NormPlace::Pre,
            tying: match keys.get("tie_word_embeddings")?.unwrap_or(true) {
                true => Tying::ThreeWay,
                false => Tying::Embeddings,
            },
            scale_embeddings: keys.get("scale_embedding")?.unwrap_or(scaled),
            position_offset: 2,
            ..bart_shape(keys, usual_activation)?
        };
        Ok(match self {
            Family::M2m100 => ModelConfig { frequencies: Frequencies::Tensor2tensor, ..shape },
            Family::Mbart | Family::T5 => {
                ModelConfig { positions: Positions::Learned, norm_embeddings: true, ..shape }
            }
        })
    }

    /// The tokenizer of a folder with its languages.
    pub(super) fn load_tokenizers(self, folder: &Path) -> Result<TokenizerPair> {
        let keys = Keys::open_if_there(&folder.join(TOKENIZER_CONFIG))?;
        let mut tokens: Vec<String> = listed(&keys)?;
        tokens.extend(listed(&Keys::open_if_there(&folder.join(SPECIAL_TOKENS))?)?);
        tokens.retain(|token| self.code(token).is_some());
        let pair = if self == Family::T5 {
            t5::load_tokenizers(folder)?
        } else if folder.join(TokenizerPair::FILE).exists() {
            TokenizerPair::load(folder)?
        } else if self == Family::M2m100 && folder.join(VOCABULARY).exists() {
            load_m2m100(folder, &keys, &mut tokens)?
        } else if folder.join(SPM).exists() {
            load_fairseq(folder, &tokens)?
        } else {
            let message =
                format!("there is neither {} nor {SPM}; the tokenizer is one of them", TokenizerPair::FILE);
            return Err(Error::file(folder, message));
        };
        let source = pair.source();
        let mut list: Vec<LanguageToken> = Vec::new();
        for token in tokens {
            if let Some(language) = self.language(source, token)
                && list.iter().all(|other| other.id != language.id)
            {
                list.push(language);
            }
        }
        if list.is_empty() {
            let pieces = (0..source.size() as u32).filter_map(|id| source.piece(id));
            list = pieces.filter_map(|piece| self.language(source, piece)).collect();
        }
        if list.is_empty() && self == Family::T5 {
            // T5 itself names the languages in the text.
            return Ok(pair);
        }
        if list.is_empty() {
            let message = format!("names no languages, neither under {LISTED} nor in the vocabulary");
            return Err(Error::file(folder.join(TOKENIZER_CONFIG), message));
        }
        let behind = keys.get("legacy_behaviour")?.unwrap_or(false);
        let placement = match (self, behind) {
            (Family::T5, _) => LanguagePlacement::Target,
            (_, true) => LanguagePlacement::After,
            (_, false) => LanguagePlacement::Before,
        };
        Ok(with_languages(pair, LanguageTokens { list, placement }))
    }

    fn language(self, tokenizer: &Tokenizer, token: String) -> Option<LanguageToken> {
        let (code, id) = (self.code(&token)?.to_owned(), tokenizer.id(&token)?);
        Some(LanguageToken { code, token, id })
    }
}

/// Adds the language tokens of one of our own folders, if it has any.
pub(super) fn own_languages(pair: TokenizerPair, keys: &Keys) -> Result<TokenizerPair> {
    let pair = pair.with_frames(keys.get(SOURCE_BEGIN)?, keys.get(SOURCE_END)?.unwrap_or(true), None);
    let Some(placement) = keys.get(PLACEMENT)? else { return Ok(pair) };
    let find = |token: String| match pair.source().id(&token) {
        Some(id) => Ok(LanguageToken { code: bare(&token).to_owned(), token, id }),
        None => Err(keys.wrong(LISTED, format!("{token:?} is not in the vocabulary"))),
    };
    let list = listed(keys)?.into_iter().map(find).collect::<Result<Vec<_>>>()?;
    Ok(with_languages(pair, LanguageTokens { list, placement }))
}

/// Adds the term tokens of one of our own folders, if it has any.
pub(super) fn own_terms(pair: TokenizerPair, keys: &Keys) -> Result<TokenizerPair> {
    let Some(tokens) = keys.get::<[String; 3]>(TERMS)? else { return Ok(pair) };
    let id = |token: &String| {
        let missing = || keys.wrong(TERMS, format!("{token:?} is not in the vocabulary"));
        pair.source().id(token).ok_or_else(missing)
    };
    let [begin, is, end] = &tokens;
    let terms = TermTokens { begin: id(begin)?, is: id(is)?, end: id(end)? };
    Ok(pair.with_terms(terms))
}

/// Adds the languages whose tokens the vocabulary has, if it looks like that of a family: for
/// folders that do not name their family.
pub(super) fn scan_languages(pair: TokenizerPair) -> TokenizerPair {
    type Form = (fn(&str) -> bool, LanguagePlacement);
    /// A piece of text may look like a language code; every family has at least this many
    /// languages.
    const MIN_LANGUAGES: usize = 4;
    let source = pair.source();
    let pieces: Vec<String> = (0..source.size() as u32).filter_map(|id| source.piece(id)).collect();
    let forms: [Form; 3] = [
        (|piece| piece.starts_with("__") && bare(piece) != piece, LanguagePlacement::Before),
        (
            |piece| matches!(piece.split_once('_'), Some((_, rest)) if rest.len() == 4 || rest.len() == 2),
            LanguagePlacement::Before,
        ),
        (|piece| piece.starts_with("<2") && bare(piece) != piece, LanguagePlacement::Target),
    ];
    for (fits, placement) in forms {
        let tokens = pieces.iter().filter(|piece| fits(piece) && is_code(bare(piece)));
        let list: Vec<LanguageToken> = tokens
            .filter_map(|token| {
                let (code, id) = (bare(token).to_owned(), source.id(token)?);
                Some(LanguageToken { code, token: token.clone(), id })
            })
            .collect();
        if list.len() >= MIN_LANGUAGES {
            return with_languages(pair, LanguageTokens { list, placement });
        }
    }
    pair
}

/// Besides language tokens, the pretraining tokens `<s>` and `<mask>` are never text.
fn with_languages(pair: TokenizerPair, languages: LanguageTokens) -> TokenizerPair {
    let hidden: Vec<u32> = ["<s>", "<mask>"].iter().filter_map(|token| pair.source().id(token)).collect();
    pair.with_languages(languages, &hidden)
}

/// The languages that a folder's tokenizer is set to, with its own codes.
pub(super) fn chosen(keys: &Keys) -> Result<super::Languages> {
    Ok(super::Languages { source: keys.get("src_lang")?, target: keys.get("tgt_lang")? })
}

/// The special tokens that a file lists, in order: plain strings, or objects with settings.
fn listed(keys: &Keys) -> Result<Vec<String>> {
    let text = |value: &Value| {
        let text = value.as_str().or_else(|| value["content"].as_str());
        text.map(str::to_owned)
    };
    let mut tokens = Vec::new();
    for key in [LISTED, "extra_special_tokens"] {
        match keys.get::<Value>(key)? {
            Some(Value::Array(list)) => tokens.extend(list.iter().filter_map(text)),
            Some(Value::Object(named)) => tokens.extend(named.values().filter_map(text)),
            _ => {}
        }
    }
    Ok(tokens)
}

/// M2M100: the ids of pieces are in `vocab.json`, followed by those of the languages.
fn load_m2m100(folder: &Path, keys: &Keys, tokens: &mut Vec<String>) -> Result<TokenizerPair> {
    let (spm, vocabulary) = (folder.join(SPM), folder.join(VOCABULARY));
    if !spm.exists() {
        let message = format!("is missing; with {VOCABULARY} it is the tokenizer of M2M100");
        return Err(Error::file(spm, message));
    }
    let mut ids =
        TokenizerPair::read_vocabulary(&bounded::read(&vocabulary, bounded::MAX_TEXT_BYTES)?, &vocabulary)?;
    if tokens.is_empty() {
        let codes = match keys.get::<String>("language_codes")?.as_deref() {
            None | Some("m2m100") => M2M100_CODES,
            Some("wmt21") => WMT21_CODES,
            Some(other) => {
                let message =
                    format!("{other:?} is not known; m2m100 and wmt21 are, or list tokens under {LISTED}");
                return Err(keys.wrong("language_codes", message));
            }
        };
        *tokens = codes.split_whitespace().map(|code| format!("__{code}__")).collect();
    }
    let known: std::collections::HashSet<&str> = ids.iter().map(|(piece, _)| piece.as_str()).collect();
    let new: Vec<String> = tokens.iter().filter(|token| !known.contains(token.as_str())).cloned().collect();
    let first = ids.len() as u32;
    ids.extend(new.into_iter().zip(first..));
    TokenizerPair::from_spm_and_ids((bounded::read(&spm, bounded::MAX_TEXT_BYTES)?, &spm), (ids, &vocabulary))
}

/// NLLB-200 and mBART-50: the piece numbers of the file plus one, with fairseq's four special
/// tokens instead of its three, then the languages.
fn load_fairseq(folder: &Path, tokens: &[String]) -> Result<TokenizerPair> {
    const FIRST: [&str; 4] = ["<s>", "<pad>", "</s>", "<unk>"];
    let path = folder.join(SPM);
    let file = bounded::read(&path, bounded::MAX_TEXT_BYTES)?;
    let pieces = SentencePiece::piece_list(&file, &path)?;
    let behind = pieces.iter().skip(FIRST.len() - 1).map(String::as_str);
    let all = FIRST.into_iter().chain(behind).chain(tokens.iter().map(String::as_str)).chain(["<mask>"]);
    let ids = all.zip(0..).map(|(piece, id)| (piece.to_owned(), id)).collect();
    TokenizerPair::from_spm_and_ids((file, &path), (ids, &path))
}
