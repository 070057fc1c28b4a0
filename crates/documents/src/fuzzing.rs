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

/// HTML whose sentences are their own translations keeps each of its tags and all of its text. White space
/// inside of sentences becomes one space, tags move to the ends of words, and characters that would be
/// markup become entities.
pub fn html(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let document = html::document(&text);
    let translate = |sentence: &crate::Sentence| {
        let mut translation = Translation::of_parts(&sentence.text, sentence.text.split_whitespace());
        sentence.restore(&mut translation);
        translation
    };
    let translation: Vec<Translation> = document.sentences.iter().map(translate).collect();
    let rendered = document.render(&text, &translation).text;
    let [(tags, content), (rendered_tags, rendered_content)] = contents([&text, &rendered]);
    assert_eq!(rendered_tags, tags, "{text:?} became {rendered:?}");
    assert_eq!(rendered_content, content, "{text:?} became {rendered:?}");
}

/// The seeds of the targets, damaged at random: a short run of what `fuzz/` does at length. REGARD_FUZZ
/// sets the number of texts that each function gets.
#[cfg(test)]
mod tests {
    use crate::testing::Random;
    use std::fs;
    use std::path::Path;

    /// A few parts changed, taken out, put in, repeated, or taken from another seed.
    fn damaged(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
        const ODD: [&str; 24] = [
            "<", ">", "&", ";", "\"", "'", "=", "/", "{", "}", "%", "@", "://", ". ", "\n", "\t", "\u{a0}",
            "é", "🙂", "\u{e000}", "1", "</b>", "<code>", "&x;",
        ];
        let mut text = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(6) {
            let at = random.below(text.len() + 1);
            let end = (at + random.below(24)).min(text.len());
            match random.below(6) {
                0 => drop(text.drain(at..end)),
                1 => text.truncate(at),
                2 => {
                    let again = text[at..end].to_vec();
                    let to = random.below(text.len() + 1);
                    text.splice(to..to, again);
                }
                3 => {
                    let other = &seeds[random.below(seeds.len())];
                    let from = random.below(other.len());
                    let part = other[from..(from + random.below(64)).min(other.len())].to_vec();
                    text.splice(at..end, part);
                }
                _ => drop(text.splice(at..at, ODD[random.below(ODD.len())].bytes())),
            }
        }
        text
    }

    fn run(seeds: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(seeds);
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let seeds: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
        seeds.iter().for_each(|seed| check(seed));
        let count = std::env::var("REGARD_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
        let mut random = Random::new(7);
        for _ in 0..count {
            check(&damaged(&mut random, &seeds));
        }
    }

    #[test]
    fn html_of_any_kind() {
        run("html", super::html);
    }

    #[test]
    fn protected_text_of_any_kind() {
        run("protected", super::protected);
    }
}
