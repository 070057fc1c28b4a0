//! Phrases that translations must contain, as token sequences.

use super::Translator;
use crate::Result;
use crate::decode::Constraint;
use crate::text::{Tokenizer, fold, is_spaced, share_stem};
use std::collections::{HashMap, HashSet};

/// A phrase that a translation must contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase {
    /// Its accepted spellings.
    pub spellings: Vec<String>,
    /// Whether other words of the vocabulary with the same stem are accepted.
    pub inflected: bool,
}

/// The maximum number of other forms of a word that the search may choose from.
const FORMS: usize = 8;

/// The words of a vocabulary that are one piece each, by their first three letters.
#[derive(Debug)]
pub(super) struct WholeWords(HashMap<String, Vec<(String, u32)>>);

impl WholeWords {
    fn new(tokenizer: &Tokenizer) -> Self {
        let mut words: HashMap<String, Vec<(String, u32)>> = HashMap::new();
        for id in 0..tokenizer.size() as u32 {
            let piece = tokenizer.piece(id);
            let word = piece.as_deref().and_then(|piece| piece.strip_prefix('▁'));
            if let Some(word) = word.filter(|word| word.chars().all(char::is_alphabetic)) {
                words.entry(beginning(&fold(word))).or_default().push((word.to_owned(), id));
            }
        }
        WholeWords(words)
    }

    /// The forms of a word, those of similar length first.
    fn forms(&self, word: &str) -> impl Iterator<Item = u32> {
        let folded = fold(word);
        let capital = starts_with_capital(word);
        let alike = self.0.get(&beginning(&folded)).map_or(&[][..], Vec::as_slice);
        // The search may capitalise it at the beginning of a sentence, but must not lowercase a
        // name.
        let mut found: Vec<&(String, u32)> = alike
            .iter()
            .filter(|(form, _)| share_stem(&fold(form), &folded) && (!capital || starts_with_capital(form)))
            .collect();
        found.sort_by_key(|(form, id)| (form.chars().count().abs_diff(word.chars().count()), *id));
        found.into_iter().take(FORMS).map(|(_, id)| *id).collect::<Vec<_>>().into_iter()
    }
}

fn beginning(word: &str) -> String {
    word.chars().take(3).collect()
}

fn starts_with_capital(word: &str) -> bool {
    word.starts_with(char::is_uppercase)
}

impl Translator {
    pub(super) fn constraint(&self, phrase: &Phrase) -> Result<Constraint> {
        let mut forms: Vec<Vec<u32>> = Vec::new();
        for spelling in &phrase.spellings {
            forms.extend(self.inside_of_a_sentence(spelling)?);
            forms.push(self.target().text_ids(spelling)?);
        }
        if phrase.inflected {
            let words = self.whole_words.get_or_init(|| WholeWords::new(self.target()));
            let single = phrase.spellings.iter().filter(|s| s.chars().all(char::is_alphabetic));
            forms.extend(single.flat_map(|word| words.forms(word)).map(|id| vec![id]));
        }
        let unknown = self.target().unk();
        forms.retain(|form| !form.is_empty() && !form.contains(&unknown));
        let mut known = HashSet::new();
        forms.retain(|form| known.insert(form.clone()));
        Ok(Constraint { forms })
    }

    /// The tokens of a phrase inside a sentence: after a word, or after punctuation in scripts
    /// without spaces.
    fn inside_of_a_sentence(&self, phrase: &str) -> Result<Option<Vec<u32>>> {
        let spaced = phrase.chars().next().is_none_or(is_spaced);
        let before = if spaced { "a" } else { "。" };
        let prefix = self.target().text_ids(before)?;
        let all = self.target().text_ids(&format!("{before}{}{phrase}", if spaced { " " } else { "" }))?;
        Ok(all.strip_prefix(prefix.as_slice()).map(<[u32]>::to_vec))
    }
}
