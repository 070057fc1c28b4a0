use super::samples::{docx, epub, odf, package, pptx, xlsx};
use super::*;
use crate::{Sentence, Translation, Word};
use std::io::{Cursor, Read};

mod broken;
mod formats;

/// The text of a part of a package.
fn part(bytes: &[u8], name: &str) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut text = String::new();
    archive.by_name(name).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// A translated package. Rendering without the source spelling must give the same parts.
fn translated(format: Format, bytes: &[u8], translate: impl Fn(&Sentence) -> Translation) -> Vec<u8> {
    let (written, normalised) = both(format, bytes, translate);
    for part in document_parts(&written) {
        assert_eq!(super::tests::part(&written, &part), super::tests::part(&normalised, &part), "{part}");
    }
    written
}

/// A package rendered normally, and rendered without reusing the original spelling.
fn both(format: Format, bytes: &[u8], translate: impl Fn(&Sentence) -> Translation) -> (Vec<u8>, Vec<u8>) {
    let options = FileOptions { target_language: Some("de".to_owned()), ..FileOptions::default() };
    let document = FileDocument::open(format, bytes, &options).unwrap();
    let translations: Vec<Translation> = document
        .sentences()
        .map(|sentence| {
            let mut translation = translate(sentence);
            sentence.restore(&mut translation);
            translation
        })
        .collect();
    (document.render(&translations).unwrap(), document.render_normalised(&translations).unwrap())
}

/// The parts of a package that are text.
fn document_parts(bytes: &[u8]) -> Vec<String> {
    let archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let names = archive.file_names().map(|name| name.unwrap().into_owned());
    names.filter(|name| !name.ends_with(".png")).collect()
}

fn same(sentence: &Sentence) -> Translation {
    Translation::same(&sentence.text)
}

/// The words in capitals and in reverse order.
fn reversed(sentence: &Sentence) -> Translation {
    let words: Vec<&str> = sentence.text.split_whitespace().collect();
    let turned = words.iter().enumerate().rev().map(|(i, word)| Word::new(word.to_uppercase(), Some(i)));
    Translation(turned.collect())
}

/// The body of a Word document after translation.
fn word(body: &str, translate: impl Fn(&Sentence) -> Translation) -> String {
    let bytes = translated(Format::Docx, &docx(body), translate);
    let text = part(&bytes, "word/document.xml");
    let start = text.find("<w:body>").unwrap() + 8;
    text[start..text.find("</w:body>").unwrap()].to_owned()
}
