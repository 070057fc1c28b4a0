//! Language tokens: they tell a multilingual model which languages to read and to write.

use super::Tokenizer;
use crate::languages::find;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Where language tokens are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LanguagePlacement {
    /// The source's before the source, the target's at the beginning of the translation: M2M100,
    /// NLLB-200, mBART-50.
    Before,
    /// The source's after the end of the source, the target's at the beginning of the translation:
    /// older folders of NLLB-200.
    #[serde(rename = "behind")]
    After,
    /// The target's before the source: MADLAD-400, and multilingual models that we train.
    Target,
}

/// A language of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageToken {
    /// Its code in the model's spelling, for example `deu_Latn`.
    pub code: String,
    /// Its token, for example `__de__`.
    pub token: String,
    /// The id of the token.
    pub id: u32,
}

/// The languages of a model, and where their tokens are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageTokens {
    /// In the order of the folder.
    pub list: Vec<LanguageToken>,
    /// Where they are placed.
    pub placement: LanguagePlacement,
}

/// The ids around every text of a side: before it, and after its end token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) prefix: Vec<u32>,
    /// Whether a text has an end token.
    pub(super) ends: bool,
    pub(super) suffix: Vec<u32>,
}

impl Default for Frame {
    fn default() -> Self {
        Frame { prefix: Vec::new(), ends: true, suffix: Vec::new() }
    }
}

impl LanguageTokens {
    /// The token of a language in a vocabulary trained here.
    pub fn token(code: &str) -> String {
        format!("<2{code}>")
    }

    /// The language for a code; `field` is the setting with the code.
    pub fn find(&self, field: &str, code: &str) -> Result<&LanguageToken> {
        let codes: Vec<&str> = self.list.iter().map(|language| language.code.as_str()).collect();
        let found = find(code, &codes).map_err(|similar| {
            let others = match similar.is_empty() {
                false => format!("similar ones are {}", similar.join(", ")),
                true => {
                    let some: Vec<&str> = codes.iter().take(8).copied().collect();
                    let more = if codes.len() > some.len() { ", …" } else { "" };
                    format!("they are {}{more}", some.join(", "))
                }
            };
            let count = codes.len();
            Error::config(field, format!("{code:?} is none of the {count} languages of the model; {others}"))
        })?;
        Ok(&self.list[found])
    }

    /// Whether the model needs a token for the source language.
    pub fn needs_source(&self) -> bool {
        self.placement != LanguagePlacement::Target
    }

    /// The frames of the texts of both sides, for a pair of languages; an unknown language has no
    /// token.
    pub(super) fn frames(
        &self,
        source: Option<&LanguageToken>,
        target: Option<&LanguageToken>,
        tokenizer: &Tokenizer,
    ) -> Result<(Frame, Frame)> {
        let id =
            |language: Option<&LanguageToken>| language.map(|language| language.id).into_iter().collect();
        let with_prefix = |prefix| Frame { prefix, ..Frame::default() };
        let first = with_prefix(id(target));
        Ok(match self.placement {
            LanguagePlacement::Before => (with_prefix(id(source)), first),
            LanguagePlacement::After => (Frame { suffix: id(source), ..Frame::default() }, first),
            LanguagePlacement::Target => {
                // Encode the token as text, because a tokenizer may put a space before it. In our
                // own vocabularies, what looks like the token is plain text.
                let token = match target {
                    Some(target) => Some(tokenizer.text_ids(&target.token)?)
                        .filter(|ids| ids.contains(&target.id))
                        .unwrap_or_else(|| vec![target.id]),
                    None => Vec::new(),
                };
                (with_prefix(token), Frame::default())
            }
        })
    }
}
