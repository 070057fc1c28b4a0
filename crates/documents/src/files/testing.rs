//! Helpers for the tests of several formats.

use super::{FileDocument, FileOptions, Format};
use crate::{Sentence, Translation, Word};

/// Translates to capitals and drops placeholders, which must then be restored.
pub(super) fn capitals(sentence: &Sentence) -> Translation {
    let lost = |word: &str| word.contains(['%', '{', '}']);
    let words = sentence.text.split_whitespace().enumerate().filter(|(_, word)| !lost(word));
    Translation(words.map(|(i, word)| Word::new(word.to_uppercase(), Some(i))).collect())
}

/// Translates a file.
pub(super) fn translated(
    format: Format,
    text: &str,
    options: &FileOptions,
    translate: impl Fn(&Sentence) -> Translation,
) -> String {
    let document = FileDocument::open(format, text.as_bytes(), options).unwrap();
    let translate = |sentence: &Sentence| {
        let mut translation = translate(sentence);
        sentence.restore(&mut translation);
        translation
    };
    let translations: Vec<Translation> = document.sentences().map(translate).collect();
    String::from_utf8(document.render(&translations).unwrap()).unwrap()
}

/// A file translated to itself, with each run of white space in its sentences collapsed to one
/// space.
pub(super) fn identity(format: Format, bytes: &[u8]) -> Vec<u8> {
    let options = FileOptions { target_language: Some("de".to_owned()), ..FileOptions::default() };
    let document = FileDocument::open(format, bytes, &options).unwrap();
    let same = |sentence: &Sentence| {
        let text = sentence.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut translation = Translation::same(&text);
        sentence.restore(&mut translation);
        translation
    };
    document.render(&document.sentences().map(same).collect::<Vec<_>>()).unwrap()
}
