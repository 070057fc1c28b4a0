//! Texts of any kind taken apart and put together again, for the targets in `fuzz/`: a panic is a finding.

use crate::html::{self, contents};
use crate::{Document, Translation};

/// Plain text whose sentences are their own translations comes back as it was; one whose translations are
/// lost keeps what is protected.
pub fn protected(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let document = Document::plain(&text);
    let restored = |make: fn(&str) -> Translation| -> Vec<Translation> {
        let restore = |sentence: &crate::Sentence| {
            let mut translation = make(&sentence.text);
            sentence.restore(&mut translation);
            translation
        };
        document.sentences.iter().map(restore).collect()
    };
    assert_eq!(document.render(&text, &restored(Translation::same)).text, text);
    assert_eq!(document.render_anew(&text, &restored(Translation::same)).text, text);
    for (sentence, translation) in document.sentences.iter().zip(restored(|_| Translation::default())) {
        let translation = translation.text();
        let mut rest = translation.as_str();
        for range in &sentence.protected {
            let span = &sentence.text[range.clone()];
            let at = rest.find(span).unwrap_or_else(|| panic!("{span:?} is not in {translation:?}"));
            rest = &rest[at + span.len()..];
        }
    }
    let said = document.so_far(|i| Some(document.sentences[i].text.clone()));
    assert_eq!(said, text);
}

/// HTML whose sentences are their own translations comes back as it was. Written anew, it keeps each of its
/// tags and all of its text: white space inside of sentences becomes one space, tags move to the ends of
/// words, and characters that would be markup become entities.
pub fn html(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let document = html::document(&text);
    let translate = |sentence: &crate::Sentence| {
        let mut translation = Translation::of_parts(&sentence.text, sentence.text.split_whitespace());
        sentence.restore(&mut translation);
        translation
    };
    let translation: Vec<Translation> = document.sentences.iter().map(translate).collect();
    assert_eq!(document.render(&text, &translation).text, text);
    let rendered = document.render_anew(&text, &translation).text;
    let [(tags, content), (rendered_tags, rendered_content)] = contents([&text, &rendered]);
    assert_eq!(rendered_tags, tags, "{text:?} became {rendered:?}");
    assert_eq!(rendered_content, content, "{text:?} became {rendered:?}");
}

#[cfg(test)]
mod tests {
    use regard_core::formats::fuzzing::damage_seeds;

    #[test]
    fn html_of_any_kind() {
        damage_seeds("html", super::html);
    }

    #[test]
    fn protected_text_of_any_kind() {
        damage_seeds("protected", super::protected);
    }
}
