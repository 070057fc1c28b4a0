//! Entry points for the fuzz targets in `fuzz/`, which split arbitrary texts and render them again.
//! A panic is a bug.

use crate::files::{FileDocument, FileOptions, Format};
use crate::html::{self, contents};
use crate::{Document, Glossary, Sentence, Translation};

/// Plain text translated to itself comes back unchanged; with empty translations, its protected
/// spans are kept.
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
    // The tags of a line may move to word boundaries, as in HTML.
    let marked_up = text.split_inclusive('\n').any(html::is_marked_up);
    if !marked_up {
        assert_eq!(document.render_normalised(&text, &restored(Translation::same)).text, text);
    }
    for (sentence, translation) in document.sentences.iter().zip(restored(|_| Translation::default())) {
        let translation = translation.text();
        let mut rest = translation.as_str();
        for range in &sentence.protected {
            let span = &sentence.text[range.clone()];
            let at = rest.find(span).unwrap_or_else(|| panic!("{span:?} is not in {translation:?}"));
            rest = &rest[at + span.len()..];
        }
    }
    if !marked_up {
        let partial = document.render_partial(|i| Some(document.sentences[i].text.clone()));
        assert_eq!(partial, text);
    }
}

/// HTML translated to itself comes back unchanged. Rendered without its source spelling, it keeps
/// all tags and all text: white space inside sentences collapses to one space, tags move to word
/// boundaries, and characters that would be read as markup become entities.
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
    let rendered = document.render_normalised(&text, &translation).text;
    let [(tags, content), (rendered_tags, rendered_content)] = contents([&text, &rendered]);
    assert_eq!(rendered_tags, tags, "{text:?} became {rendered:?}");
    assert_eq!(rendered_content, content, "{text:?} became {rendered:?}");
}

/// A zip package of XML: either raw bytes, or a letter for the format and the content of the main
/// part. If it can be read, it can be written, and the result can be read again and has the same
/// text.
pub fn office(data: &[u8]) {
    use crate::files::office::samples;
    let Some((kind, rest)) = data.split_first() else { return };
    let body = String::from_utf8_lossy(rest);
    let (format, bytes) = match kind {
        b'w' => (Format::Docx, samples::docx(&body)),
        b'p' => (Format::Pptx, samples::pptx(&body)),
        b'x' => (Format::Xlsx, samples::xlsx(&body, &body)),
        b't' => (Format::Odt, samples::odf("text", &body)),
        b's' => (Format::Ods, samples::odf("spreadsheet", &body)),
        b'o' => (Format::Odp, samples::odf("presentation", &body)),
        b'e' => (Format::Epub, samples::epub(&body)),
        _ => {
            for format in Format::ALL.into_iter().filter(|format| format.is_package()) {
                let _ = FileDocument::open(format, data, &FileOptions::default());
            }
            return;
        }
    };
    let options = FileOptions { target_language: Some("xx".to_owned()), ..FileOptions::default() };
    let Ok(document) = FileDocument::open(format, &bytes, &options) else { return };
    let translate = |sentence: &crate::Sentence| {
        let mut translation = Translation::of_parts(&sentence.text, sentence.text.split_whitespace());
        sentence.restore(&mut translation);
        translation
    };
    let translations: Vec<Translation> = document.sentences().map(translate).collect();
    let letters = |document: &FileDocument| -> String {
        document.words().chars().filter(|c| c.is_alphabetic()).collect()
    };
    for written in [document.render(&translations), document.render_normalised(&translations)] {
        let written = written.expect("what could be read can be written");
        let again = FileDocument::open(format, &written, &options).expect("what was written can be read");
        assert_eq!(letters(&again), letters(&document), "{body:?}");
    }
    // The XML is well formed for any translation.
    let reversed = |translation: &Translation| Translation(translation.0.iter().rev().cloned().collect());
    let reversed: Vec<Translation> = translations.iter().map(reversed).collect();
    for translations in [reversed, vec![Translation::default(); translations.len()]] {
        let written = document.render(&translations).expect("what could be read can be written");
        FileDocument::open(format, &written, &options).expect("what was written can be read");
    }
}

/// The text file formats by the first byte of a seed.
const TEXT_FILES: [(u8, Format); 13] = [
    (b'T', Format::Text),
    (b'h', Format::Html),
    (b'm', Format::Markdown),
    (b's', Format::Srt),
    (b'v', Format::Vtt),
    (b'p', Format::Po),
    (b'x', Format::Xliff),
    (b't', Format::Tmx),
    (b'j', Format::Json),
    (b'y', Format::Yaml),
    (b'r', Format::Properties),
    (b'a', Format::AndroidStrings),
    (b'i', Format::IosStrings),
];

/// A text file after a byte that selects its format. If it can be opened, it comes back unchanged
/// when translated to itself, and can be opened again after any translation.
pub fn text_file(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let known = TEXT_FILES.iter().find(|(byte, _)| byte == first);
    let (_, format) = known.unwrap_or(&TEXT_FILES[usize::from(*first) % TEXT_FILES.len()]);
    let options = FileOptions { target_language: Some("de".to_owned()), ..FileOptions::default() };
    if *format == Format::Tmx {
        let _ = crate::files::tmx::pairs(file, "en", "de").count();
    }
    let Ok(document) = FileDocument::open(*format, file, &options) else { return };
    let render = |document: &FileDocument, make: fn(&str) -> Translation| {
        let translate = |sentence: &Sentence| {
            let mut translation = make(&sentence.text);
            sentence.restore(&mut translation);
            translation
        };
        let translations: Vec<Translation> = document.sentences().map(translate).collect();
        document.render_with_warnings(&translations).expect("a translation for each sentence").0
    };
    let same = render(&document, |text| Translation::of_parts(text, text.split_whitespace()));
    // The other formats write targets next to their sources.
    if !matches!(format, Format::Po | Format::Xliff | Format::Tmx) {
        assert_eq!(String::from_utf8_lossy(&same), String::from_utf8_lossy(file));
        assert_eq!(same, file);
    }
    let others: [fn(&str) -> Translation; 2] =
        [|_| Translation::default(), |text| Translation::same(&format!("\"{}' <: &", text.to_uppercase()))];
    for out in [same].into_iter().chain(others.map(|make| render(&document, make))) {
        if let Err(error) = FileDocument::open(*format, &out, &options) {
            panic!("{error}: {}", String::from_utf8_lossy(&out));
        }
    }
}

/// A glossary and, after a zero byte, a text to search for its terms. Parsing either fails with a
/// line number, or every match lies in the text.
pub fn glossary(data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let (file, text) = data.split_once('\0').unwrap_or((&data, &data));
    let glossary = match Glossary::parse(file) {
        Ok(glossary) => glossary,
        Err(error) => return assert!(error.line.is_some_and(|line| line <= 1 + file.len()), "{error}"),
    };
    assert_eq!(glossary.iter().count(), glossary.len());
    let mut before = 0;
    for found in glossary.find(text, &[]) {
        assert!(found.range.start >= before && text.get(found.range.clone()).is_some(), "{found:?}");
        assert!(found.entry < glossary.len());
        before = found.range.end;
    }
}

#[cfg(test)]
mod tests {
    use regard_core::formats::fuzzing::damage_seeds;

    #[test]
    fn html_of_any_kind() {
        damage_seeds("html", super::html);
    }

    #[test]
    fn glossaries_of_any_kind() {
        damage_seeds("glossary", super::glossary);
    }

    #[test]
    fn office_documents_of_any_kind() {
        damage_seeds("office", super::office);
    }

    /// Checks the seeds of the target `office`; with REGARD_WRITE_SEEDS=1 it writes them.
    #[test]
    fn seeds_of_office_documents() {
        use crate::files::office::samples;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/office");
        let mut seeds: Vec<(&str, Vec<u8>)> =
            samples::BODIES.iter().map(|(name, body)| (*name, body.as_bytes().to_vec())).collect();
        seeds.push(("package.docx", samples::docx("<w:p><w:r><w:t>A dog</w:t></w:r></w:p>")));
        seeds.push(("package.epub", samples::epub("<p>A dog</p>")));
        seeds.push(("package.odt", samples::odf("text", "<text:p>A dog</text:p>")));
        for (name, seed) in &seeds {
            if std::env::var_os("REGARD_WRITE_SEEDS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join(name), seed).unwrap();
            }
            super::office(seed);
        }
        let written = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(written, seeds.len(), "REGARD_WRITE_SEEDS=1 writes the seeds");
    }

    #[test]
    fn text_files_of_any_kind() {
        damage_seeds("text_files", super::text_file);
    }

    #[test]
    fn protected_text_of_any_kind() {
        damage_seeds("protected", super::protected);
    }
}
