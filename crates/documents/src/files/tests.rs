use super::*;
use std::path::Path;

fn identity(document: &FileDocument) -> Vec<Translation> {
    document
        .sentences()
        .map(|sentence| {
            let mut translation = Translation::same(&sentence.text);
            sentence.restore(&mut translation);
            translation
        })
        .collect()
}

#[test]
fn text_comes_back_as_it_was() {
    for text in ["", "One dog. Two cats.\r\n\r\n\tThree birds", "\u{feff}A dog.\n12\n"] {
        let document = FileDocument::open(Format::Text, text.as_bytes(), &FileOptions::default()).unwrap();
        assert_eq!(document.render(&identity(&document)).unwrap(), text.as_bytes());
    }
}

#[test]
fn what_is_not_utf8_is_named_by_its_line() {
    let error = FileDocument::open(Format::Text, b"one\ntwo \xff\n", &FileOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "line 2 of the txt file: this is not UTF-8; save the file as UTF-8");
}

#[test]
fn a_translation_for_each_sentence() {
    let document = FileDocument::open(Format::Text, b"One. Two.", &FileOptions::default()).unwrap();
    assert_eq!(document.words(), "One. Two.");
    assert_eq!(document.render(&[]), Err(FileError::Translations { wanted: 2, found: 0 }));
}

#[test]
fn units_that_the_memory_knows_are_not_translated() {
    let pair = |source: &str, target: &str| (source.to_owned(), target.to_owned());
    let memory = Memory::new([pair("One dog. Two.", "Zwei Hunde."), pair("Three.", "Drei.")]);
    let text = b"  One dog. Two.\r\nThree. Four.\n";
    let mut document = FileDocument::open(Format::Text, text, &FileOptions::default()).unwrap();
    assert_eq!(document.apply_memory(&memory), 2);
    assert_eq!(document.words(), " Three. Four.");
    assert_eq!(document.render(&identity(&document)).unwrap(), b"  Zwei Hunde.\r\nThree. Four.\n");
}

#[test]
fn formats_are_known_by_their_names() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
        for extension in format.extensions() {
            let name = format!("a.b.{}", extension.to_uppercase());
            assert_eq!(Format::of_name(Path::new(&name), b"<resources>"), Some(format), "{name}");
        }
    }
    assert_eq!(Format::of_name(Path::new("a.xml"), b"<html>"), None);
    assert_eq!(Format::of_name(Path::new("docx"), b""), None);
    assert!("doc".parse::<Format>().unwrap_err().contains("docx"));
}
